//! Turns a core module into a component, and says what a component imports.

use std::path::Path;

use wit_component::{ComponentEncoder, DecodedWasm};

/// The section that names functions, which nobody reads: a panic tells its own place.
/// Machine code would carry it along.
const NAMES: &str = "name";

/// Wraps a core module that wit-bindgen's types were compiled into.
pub fn encode(module: &[u8]) -> Result<Vec<u8>, String> {
    ComponentEncoder::default()
        .validate(true)
        .module(&without_names(module)?)
        .and_then(|encoder| encoder.encode())
        .map_err(|error| format!("cannot make a component of the module: {error:#}"))
}

/// The module as it is, but for the names in it.
fn without_names(module: &[u8]) -> Result<Vec<u8>, String> {
    use wasmparser::{Parser, Payload};
    // Magic and version.
    let mut out = module.get(..8).unwrap_or(module).to_vec();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload.map_err(|error| format!("cannot read the module: {error}"))?;
        let names = matches!(&payload, Payload::CustomSection(section) if section.name() == NAMES);
        if let Some((id, range)) = payload.as_section().filter(|_| !names) {
            // Positions in what is in memory.
            let content = usize::try_from(range.start)
                .ok()
                .zip(usize::try_from(range.end).ok())
                .and_then(|(start, end)| module.get(start..end))
                .ok_or("a section of the module ends outside of it")?;
            out.push(id);
            push_length(&mut out, content.len());
            out.extend_from_slice(content);
        }
    }
    Ok(out)
}

/// Appends a length in LEB128, seven bits a byte, the lowest first.
fn push_length(out: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
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
