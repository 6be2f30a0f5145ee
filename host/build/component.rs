//! Turns a core module into a component, and says what a component imports.

use std::path::Path;

use wit_component::{ComponentEncoder, DecodedWasm};

/// Wraps a core module that wit-bindgen's types were compiled into.
pub fn encode(module: &[u8]) -> Result<Vec<u8>, String> {
    ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|encoder| encoder.encode())
        .map_err(|error| format!("cannot make a component of the module: {error:#}"))
}

/// The names of all that a component asks from its host.
pub fn imports(component: &[u8]) -> Result<Vec<String>, String> {
    let decoded =
        wit_component::decode(component).map_err(|error| format!("cannot read the component: {error:#}"))?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        return Err("the file is a WIT package, not a component".to_owned());
    };
    Ok(resolve.worlds[world].imports.keys().map(|key| resolve.name_world_key(key)).collect())
}

/// Writes a file so that whoever reads it meanwhile finds the old or the new one.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
    std::fs::write(&temporary, bytes)
        .and_then(|()| std::fs::rename(&temporary, path))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}
