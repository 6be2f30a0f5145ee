//! Asks a component who it is.
//!
//! A component that imports nothing answers the same every time, so what it says here
//! is what it would say to a client; a server that knows it need not load the component
//! before it can shake hands.

use wasmtime::component::{Component, ComponentType, Lift, Linker};
use wasmtime::{Config, Engine, Error, OptLevel, Result, Store};

/// The function that answers, whichever of the interfaces has it.
const FUNCTION: &str = "about";

/// The record `identity` of the contract.
#[derive(ComponentType, Lift)]
#[component(record)]
pub struct Identity {
    name: String,
    version: String,
    instructions: String,
}

impl Identity {
    /// Runs a component for it.
    pub fn of(component: &[u8]) -> Result<Self> {
        let mut config = Config::new();
        // It runs once.
        config.cranelift_opt_level(OptLevel::None);
        let engine = Engine::new(&config)?;
        let component = Component::new(&engine, component)?;
        let ty = component.component_type();
        let function = ty
            .exports(&engine)
            .filter_map(|(name, _)| component.get_export_index(None, name))
            .find_map(|interface| component.get_export_index(Some(&interface), FUNCTION))
            .ok_or_else(|| Error::msg(format!("it exports no interface with {FUNCTION}")))?;
        let mut store = Store::new(&engine, ());
        let instance = Linker::new(&engine).instantiate(&mut store, &component)?;
        let about = instance.get_typed_func::<(), (Self,)>(&mut store, function)?;
        Ok(about.call(&mut store, ())?.0)
    }

    /// The same as an expression of Rust: name, version and instructions.
    pub fn expression(&self) -> String {
        format!("({:?}, {:?}, {:?})", self.name, self.version, self.instructions)
    }
}
