//! Why a file is no logic for this host, by name.
//!
//! The runtime only says that something does not match. Here a component's types are
//! held against those of the built-in one, which follows the contract by
//! construction, and the first places where they part are told in the contract's own
//! words.

use std::collections::BTreeSet;

use wasmtime::Engine;
use wasmtime::component::types::{Component, ComponentFunc, ComponentInstance, ComponentItem, Type};

/// The package of the contract, as a component's exports name it.
const CONTRACT: &str = "loop-state:logic/";

/// The interfaces that the host asks for.
const INTERFACES: [&str; 3] = ["model", "tools", "views"];

/// How many differences are told; one change mostly shows in several places.
const TOLD: usize = 3;

/// What a file is instead of a component, as far as its first bytes tell.
pub(super) fn wrong_kind(bytes: &[u8]) -> Option<&'static str> {
    const CORE: [u8; 4] = [1, 0, 0, 0];
    const COMPONENT: [u8; 4] = [0x0d, 0, 1, 0];
    match bytes.strip_prefix(b"\0asm") {
        Some(rest) if rest.starts_with(&COMPONENT) => None,
        Some(rest) if rest.starts_with(&CORE) => Some(
            "it is a core module, which a component is made of; wrap it as one, for instance with `wasm-tools component new`",
        ),
        Some(_) => Some("it is WebAssembly of another version than components have; build it anew"),
        None if bytes.is_empty() => Some("it is empty; build it anew"),
        None if bytes.trim_ascii_start().starts_with(b"(") && std::str::from_utf8(bytes).is_ok() => {
            Some("it is the text form; translate it, for instance with `wasm-tools parse`")
        }
        None if std::str::from_utf8(bytes).is_ok() => Some("it is text; name the built file"),
        None => Some("it does not begin as WebAssembly does; name the built file"),
    }
}

/// The first import that no host gives to a logic.
pub(super) fn foreign_import(engine: &Engine, found: &Component) -> Option<String> {
    let foreign = found.imports(engine).map(|(name, _)| name).find(|name| !name.starts_with("wasi:"))?;
    Some(format!("it imports `{foreign}`, and a logic imports nothing but WASI 0.2"))
}

/// Where `found` differs from `expected`, a component that fits; `None` where it does
/// not differ in what the host calls.
pub(super) fn difference(engine: &Engine, expected: &Component, found: &Component) -> Option<String> {
    let offered: Vec<_> = found.exports(engine).map(|(name, _)| name).collect();
    let ours: Vec<_> = offered.iter().filter(|name| name.starts_with(CONTRACT)).copied().collect();
    let wanted: Vec<_> = INTERFACES.iter().filter_map(|name| interface(engine, expected, name)).collect();
    let version = wanted.first().and_then(|(name, _)| version(name)).unwrap_or("?");
    if ours.is_empty() {
        let offers = match offered.as_slice() {
            [] => "nothing at all".to_owned(),
            [first, ..] if offered.len() == 1 => format!("only `{first}`"),
            [first, rest @ ..] => format!("`{first}` and {} more", rest.len()),
        };
        return Some(format!(
            "it exports nothing of the contract `loop-state:logic@{version}`, but {offers}"
        ));
    }
    let mut parts = Vec::new();
    let mut pairs = Vec::new();
    for (name, wanted) in &wanted {
        match found.get_export(engine, name).map(|item| item.ty) {
            Some(ComponentItem::ComponentInstance(instance)) => pairs.push((name, wanted, instance)),
            Some(_) => parts.push(format!("its `{name}` is no interface")),
            None => {
                let (plain, _) = name.split_once('@').unwrap_or((name, ""));
                let other = ours.iter().find(|offered| offered.split('@').next() == Some(plain));
                match other.and_then(|other| self::version(other)) {
                    Some(other) => {
                        let said = format!(
                            "it follows version {other} of the contract, and this host version {version}"
                        );
                        if !parts.contains(&said) {
                            parts.push(said);
                        }
                    }
                    None => parts.push(format!("it does not export `{name}`")),
                }
            }
        }
    }
    let mut walk = Walk { names: Vec::new(), told: BTreeSet::new(), parts };
    for (_, wanted, _) in &pairs {
        walk.names.extend(wanted.exports(engine).filter_map(|(name, item)| match item.ty {
            ComponentItem::Type(ty) => Some((name.to_owned(), ty)),
            _ => None,
        }));
    }
    for (name, wanted, found) in &pairs {
        walk.interface(engine, short(name), wanted, found);
    }
    let more = walk.parts.len().saturating_sub(TOLD);
    walk.parts.truncate(TOLD);
    let mut said = (!walk.parts.is_empty()).then(|| walk.parts.join("; "))?;
    if more > 0 {
        said.push_str(&format!("; and {more} more"));
    }
    Some(said)
}

/// An interface of the contract by its short name, with its whole one.
fn interface(engine: &Engine, of: &Component, name: &str) -> Option<(String, ComponentInstance)> {
    of.exports(engine).find_map(|(whole, item)| match item.ty {
        ComponentItem::ComponentInstance(instance) if short(whole) == name => {
            Some((whole.to_owned(), instance))
        }
        _ => None,
    })
}

/// `tools` of `loop-state:logic/tools@0.1.0`.
fn short(name: &str) -> &str {
    let plain = name.strip_prefix(CONTRACT).unwrap_or(name);
    plain.split('@').next().unwrap_or(plain)
}

fn version(name: &str) -> Option<&str> {
    name.split_once('@').map(|(_, version)| version)
}

/// Two components side by side.
struct Walk {
    /// The contract's types by name.
    names: Vec<(String, Type)>,
    /// The named types that were compared already.
    told: BTreeSet<String>,
    parts: Vec<String>,
}

/// Where in the contract two types are.
#[derive(Clone)]
struct Place {
    /// The function by which they were reached.
    function: String,
    /// The nearest thing around them that has a name.
    what: String,
}

impl Walk {
    fn interface(
        &mut self,
        engine: &Engine,
        name: &str,
        wanted: &ComponentInstance,
        found: &ComponentInstance,
    ) {
        for (function, item) in wanted.exports(engine) {
            let ComponentItem::ComponentFunc(wanted) = item.ty else { continue };
            let whole = format!("{name}.{function}");
            match found.get_export(engine, function).map(|item| item.ty) {
                Some(ComponentItem::ComponentFunc(found)) => self.function(&whole, &wanted, &found),
                _ => self.parts.push(format!("it lacks the function `{whole}`")),
            }
        }
    }

    fn function(&mut self, function: &str, wanted: &ComponentFunc, found: &ComponentFunc) {
        let names = |of: &ComponentFunc| of.params().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
        let (ours, theirs) = (names(wanted), names(found));
        if ours != theirs || wanted.async_() != found.async_() {
            let told = |names: Vec<String>| names.join(", ");
            self.parts.push(format!(
                "its function `{function}` takes ({}), and this host gives ({})",
                told(theirs),
                told(ours)
            ));
            return;
        }
        for ((name, ours), (_, theirs)) in wanted.params().zip(found.params()) {
            let what = format!("parameter `{name}`");
            self.types(&Place { function: function.to_owned(), what }, &ours, &theirs);
        }
        let results = (wanted.results().collect::<Vec<_>>(), found.results().collect::<Vec<_>>());
        if results.0.len() != results.1.len() {
            self.parts.push(format!("its function `{function}` has another result"));
        }
        for (ours, theirs) in results.0.iter().zip(&results.1) {
            self.types(&Place { function: function.to_owned(), what: "result".to_owned() }, ours, theirs);
        }
    }

    fn types(&mut self, at: &Place, ours: &Type, theirs: &Type) {
        // Not left early where the two are equal: to the engine two enumerations are that
        // whatever the order of their cases.
        let mut at = at.clone();
        if let Some((name, _)) = self.names.iter().find(|(_, known)| known == ours) {
            if !self.told.insert(name.clone()) {
                return;
            }
            at.what = format!("`{name}`");
        }
        match (ours, theirs) {
            (Type::Record(ours), Type::Record(theirs)) => {
                let pairs = |of: &wasmtime::component::types::Record| {
                    of.fields().map(|field| (field.name.to_owned(), Some(field.ty))).collect()
                };
                self.members(&at, "field", pairs(ours), pairs(theirs));
            }
            (Type::Variant(ours), Type::Variant(theirs)) => {
                let pairs = |of: &wasmtime::component::types::Variant| {
                    of.cases().map(|case| (case.name.to_owned(), case.ty)).collect()
                };
                self.members(&at, "case", pairs(ours), pairs(theirs));
            }
            (Type::Enum(ours), Type::Enum(theirs)) => {
                let pairs = |of: &wasmtime::component::types::Enum| {
                    of.names().map(|name| (name.to_owned(), None)).collect()
                };
                self.members(&at, "case", pairs(ours), pairs(theirs));
            }
            (Type::List(ours), Type::List(theirs)) => self.types(&at, &ours.ty(), &theirs.ty()),
            (Type::Option(ours), Type::Option(theirs)) => self.types(&at, &ours.ty(), &theirs.ty()),
            (Type::Result(ours), Type::Result(theirs)) => {
                self.maybe(&at, "the good case", ours.ok().as_ref(), theirs.ok().as_ref());
                self.maybe(&at, "the bad case", ours.err().as_ref(), theirs.err().as_ref());
            }
            (Type::Tuple(ours), Type::Tuple(theirs)) if ours.types().len() == theirs.types().len() => {
                for (ours, theirs) in ours.types().zip(theirs.types()) {
                    self.types(&at, &ours, &theirs);
                }
            }
            _ if ours == theirs => {}
            _ => self.tell(&at, format!("is {} and should be {}", kind(theirs), kind(ours))),
        }
    }

    fn maybe(&mut self, at: &Place, which: &str, ours: Option<&Type>, theirs: Option<&Type>) {
        match (ours, theirs) {
            (Some(ours), Some(theirs)) => self.types(at, ours, theirs),
            (None, None) => {}
            (Some(_), None) => self.tell(at, format!("has no value in {which}")),
            (None, Some(_)) => {
                self.tell(at, format!("has a value in {which}, which this host does not know"))
            }
        }
    }

    /// Compares what a type consists of, name by name.
    fn members(
        &mut self,
        at: &Place,
        member: &str,
        ours: Vec<(String, Option<Type>)>,
        theirs: Vec<(String, Option<Type>)>,
    ) {
        let before = self.parts.len();
        for (name, _) in theirs.iter().filter(|(name, _)| ours.iter().all(|(known, _)| known != name)) {
            self.tell(at, format!("has the {member} `{name}`, which this host does not know"));
        }
        for (name, ours) in &ours {
            match theirs.iter().find(|(theirs, _)| theirs == name) {
                None => self.tell(at, format!("lacks the {member} `{name}`")),
                Some((_, theirs)) => {
                    let what = format!("the {member} `{name}` of {}", at.what);
                    let inner = Place { what, ..at.clone() };
                    self.maybe(&inner, "it", ours.as_ref(), theirs.as_ref());
                }
            }
        }
        let order =
            |of: &[(String, Option<Type>)]| of.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        if self.parts.len() == before && order(&ours) != order(&theirs) {
            self.tell(at, format!("has its {member}s in another order"));
        }
    }

    fn tell(&mut self, at: &Place, what: String) {
        self.parts.push(format!("in its `{}`, {} {what}", at.function, at.what));
    }
}

/// What kind of type it is, as WIT says it.
fn kind(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::S8 => "s8",
        Type::U8 => "u8",
        Type::S16 => "s16",
        Type::U16 => "u16",
        Type::S32 => "s32",
        Type::U32 => "u32",
        Type::S64 => "s64",
        Type::U64 => "u64",
        Type::Float32 => "f32",
        Type::Float64 => "f64",
        Type::Char => "char",
        Type::String => "string",
        Type::List(_) => "a list",
        Type::Record(_) => "a record",
        Type::Tuple(_) => "a tuple of as many",
        Type::Variant(_) => "a variant",
        Type::Enum(_) => "an enum",
        Type::Option(_) => "an option",
        Type::Result(_) => "a result",
        Type::Flags(_) => "flags",
        _ => "of a kind that the contract does not use",
    }
}
