//! The component in the runtime that the server has in it, on a state that is read
//! from a server's own database by the contract's types alone.

use std::path::Path;
use std::sync::OnceLock;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value, json};
use wasmtime::component::{Component, Func, Instance, Linker, Type, Val, types};
use wasmtime::{Engine, Store};

use crate::value::{Dialect, read, shown, source};

/// An instance, and the loop of the database.
pub struct Native {
    store: Store<()>,
    instance: Instance,
    state: Val,
    proofs: Val,
}

impl Native {
    /// Takes the only loop of a database.
    pub fn of(component: &Path, database: &Path) -> Native {
        // Compiled once for all tests.
        static COMPILED: OnceLock<(Engine, Component)> = OnceLock::new();
        let (engine, component) = COMPILED.get_or_init(|| {
            let engine = Engine::default();
            let component = Component::from_file(&engine, component).expect("the component");
            (engine, component)
        });
        let mut store = Store::new(engine, ());
        let instance = Linker::new(engine).instantiate(&mut store, component).expect("an instance");
        let mut native = Native { store, instance, state: Val::Bool(false), proofs: Val::Bool(false) };
        let audit = native.function("audit", "audit");
        let ty = audit.ty(&native.store);
        let mut parameters = ty.params().map(|(_, ty)| ty);
        let (Some(Type::Record(state)), Some(Type::List(proofs))) = (parameters.next(), parameters.next())
        else {
            panic!("audit takes a state and its proofs");
        };
        let db =
            Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the database");
        native.state = Val::Record(
            state.fields().map(|field| (field.name.to_owned(), part(&db, field.name, &field.ty))).collect(),
        );
        let proofs = rows(&db, "event WHERE evidence IS NOT NULL ORDER BY seq", &proofs.ty());
        native.proofs = Val::List(proofs);
        native
    }

    fn function(&mut self, interface: &str, name: &str) -> Func {
        let interface = format!("loop-state:logic/{interface}@0.1.0");
        let interface = self.instance.get_export_index(&mut self.store, None, &interface);
        let function = self.instance.get_export_index(&mut self.store, interface.as_ref(), name);
        self.instance.get_func(&mut self.store, function.expect("the function")).expect("a function")
    }

    fn run(&mut self, interface: &str, name: &str, arguments: &[Val]) -> Val {
        let function = self.function(interface, name);
        let mut results = [Val::Bool(false)];
        function.call(&mut self.store, arguments, &mut results).expect("an answer");
        let [result] = results;
        result
    }

    /// Calls a function with plain arguments.
    pub fn call(&mut self, interface: &str, name: &str, arguments: &[Value], dialect: Dialect) -> Value {
        let ty = self.function(interface, name).ty(&self.store);
        let arguments: Vec<_> = ty.params().zip(arguments).map(|((_, ty), value)| read(value, &ty)).collect();
        shown(&self.run(interface, name, &arguments), dialect).expect("a value")
    }

    /// The loop's audit.
    pub fn audit(&mut self, dialect: Dialect) -> Value {
        let arguments = [self.state.clone(), self.proofs.clone()];
        shown(&self.run("audit", "audit", &arguments), dialect).expect("a report")
    }

    /// The loop's first view.
    pub fn page(&mut self, dialect: Dialect) -> Value {
        let version = Val::String(env!("CARGO_PKG_VERSION").to_owned());
        let arguments = [self.state.clone(), Val::List(Vec::new()), version];
        let set = shown(&self.run("views", "render", &arguments), dialect).expect("views");
        set["views"][0].clone()
    }

    /// The state as a JavaScript module.
    pub fn javascript(&self) -> String {
        format!(
            "export const state = {};\nexport const proofs = {};\n",
            source(&self.state),
            source(&self.proofs)
        )
    }

    /// The state as Python reads it.
    pub fn python(&self) -> String {
        let shown = |value| shown(value, Dialect::Python).expect("a value");
        json!([shown(&self.state), shown(&self.proofs)]).to_string()
    }
}

/// One field of the state of the database's only loop.
fn part(db: &Connection, name: &str, ty: &Type) -> Val {
    let from = match name {
        "loop" => "\"loop\"",
        "phases" => "loop_phase ORDER BY rank",
        "tasks" => "task ORDER BY position",
        "totals" => "step_total ORDER BY task, phase",
        "open-step" => "step WHERE ended_at IS NULL ORDER BY seq DESC LIMIT 1",
        "goals" => "goal_state ORDER BY target",
        other => panic!("a state has no {other}"),
    };
    match ty {
        Type::List(list) => Val::List(rows(db, from, &list.ty())),
        Type::Option(some) => Val::Option(rows(db, from, &some.ty()).pop().map(Box::new)),
        one => rows(db, from, one).pop().expect("a loop"),
    }
}

/// The rows of a table as records of this type.
fn rows(db: &Connection, from: &str, ty: &Type) -> Vec<Val> {
    let Type::Record(ty) = ty else { panic!("a row is a record") };
    let mut statement = db.prepare(&format!("SELECT * FROM {from}")).expect("a table");
    let names: Vec<_> = statement.column_names().map(str::to_owned).collect();
    let mut found = statement.query([]).expect("rows");
    let mut list = Vec::new();
    while let Some(row) = found.next().expect("a row") {
        let cells = names.iter().enumerate().map(|(n, name)| {
            let value = match row.get_ref(n).expect("a cell") {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(value) => json!(value),
                ValueRef::Text(text) => json!(std::str::from_utf8(text).expect("text")),
                other => panic!("{name} holds {other:?}"),
            };
            (name.clone(), value)
        });
        list.push(record(&cells.collect(), ty, ""));
    }
    list
}

/// A record out of columns; one inside another has the field's name before its own.
fn record(cells: &Map<String, Value>, ty: &types::Record, prefix: &str) -> Val {
    let field = |field: types::Field<'_>| {
        let column = prefix.to_owned() + &field.name.replace('-', "_");
        let inner = format!("{column}_");
        let value = match &field.ty {
            Type::Record(ty) => record(cells, ty, &inner),
            Type::Option(some) => match some.ty() {
                Type::Record(ty) => {
                    let there =
                        cells.iter().any(|(name, value)| name.starts_with(&inner) && !value.is_null());
                    Val::Option(there.then(|| Box::new(record(cells, &ty, &inner))))
                }
                _ => read(&cells[&column], &field.ty),
            },
            // Lists are JSON in a text.
            Type::List(_) => {
                let text = cells[&column].as_str().expect("a list as text");
                read(&serde_json::from_str(text).expect("JSON"), &field.ty)
            }
            plain => read(&cells[&column], plain),
        };
        (field.name.to_owned(), value)
    };
    Val::Record(ty.fields().map(field).collect())
}
