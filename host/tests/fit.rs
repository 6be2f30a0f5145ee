//! What does not fit is refused when it is loaded, and the message names the file,
//! the difference, and what to do.
//!
//! Components of another contract are made on the spot, by other names and types in one
//! that fits.

use std::fs;
use std::path::Path;

use loop_state_mcp::logic::{Logic, LogicError};
use loop_state_test_components::FAULTY;

fn load(bytes: &[u8]) -> Result<Logic, LogicError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.wasm");
    fs::write(&path, bytes).unwrap();
    Logic::from_file(&path, None)
}

/// Bytes, and what comes in their place.
type Edit = (&'static [u8], &'static [u8]);

/// A component that fits, but for these bytes of its types, each of which gets others
/// of the same length in its place.
fn edited(edits: &[Edit]) -> Vec<u8> {
    let mut bytes = FAULTY.to_vec();
    for (from, to) in edits {
        assert_eq!(from.len(), to.len(), "{}", from.escape_ascii());
        let mut found = 0;
        for at in 0..=bytes.len() - from.len() {
            if bytes[at..].starts_with(from) {
                bytes[at..at + to.len()].copy_from_slice(to);
                found += 1;
            }
        }
        assert!(found > 0, "the component has no {}", from.escape_ascii());
    }
    bytes
}

#[track_caller]
fn refused(bytes: &[u8], says: &[&str]) -> LogicError {
    let error = load(bytes).err().unwrap_or_else(|| panic!("it was taken; it should say {says:?}"));
    for part in says.iter().chain(&["other.wasm", "--logic"]) {
        assert!(error.to_string().contains(part), "{part:?} is not in: {error}");
    }
    error
}

/// A later version that only says more of the same.
#[test]
fn a_compatible_version_fits() {
    load(&edited(&[(b"@0.1.0", b"@0.1.7")])).unwrap();
}

/// In a component's types `y` is u32 and `w` is u64; a name has its length before it.
/// Each row compiles a component, so a row has as many edits as are told together.
#[test]
fn another_contract_is_refused_by_what_differs() {
    let table: &[(&[Edit], &[&str])] = &[
        (
            &[(b"@0.1.0", b"@0.2.0")],
            &["server: it follows version 0.2.0 of the contract, and this host version 0.1.0; build it"],
        ),
        (&[(b"logic/views@", b"logic/looks@")], &["it does not export `loop-state:logic/views@0.1.0`"]),
        (
            &[
                (b"\x09log-lines", b"\x09log-marks"),
                (b"\x07retriesy", b"\x07retriesw"),
                (b"\x04core\x08standard", b"\x08standard\x04core"),
            ],
            &[
                "in its `tools.tools`, `profile` has its cases in another order",
                "the field `retries` of `task` is u64 and should be u32",
                "it lacks the function `views.log-lines`",
            ],
        ),
        // A field of one name, and a parameter.
        (
            &[(b"\x04text", b"\x04word")],
            &[
                "`document-view` has the field `word`",
                "its function `views.strip` takes (word), and this host gives (text)",
            ],
        ),
        (
            &[(b"\x08put-loop", b"\x08put-card")],
            &[
                "in its `tools.decide`, `write` has the case `put-card`, which this host does not know",
                "`write` lacks the case `put-loop`",
            ],
        ),
        // The query and its answer: more differences than are told.
        (
            &[(b"\x0aloop-slugs", b"\x0aloop-names")],
            &[
                "`query` has the case `loop-names`",
                "`query` lacks the case `loop-slugs`",
                "; and 1 more; build it",
            ],
        ),
    ];
    for (edits, says) in table {
        let error = refused(&edited(edits), says);
        assert!(matches!(error, LogicError::Misfit { .. }), "{error:?}");
        assert!(error.to_string().contains("wit/"), "{error}");
    }
}

#[test]
fn a_component_of_something_else_is_refused_by_what_it_has() {
    let foreign = r#"(component
        (import "acme:weather/now@1.0.0" (instance (export "sunny" (func (result bool))))))"#;
    let function = r#"(component
        (core module $m (func (export "run")))
        (core instance $i (instantiate $m))
        (func (export "run") (canon lift (core func $i "run"))))"#;
    let beyond = r#"(component
        (import "wasi:keyvalue/store@0.2.0" (instance (export "open" (func)))))"#;
    let part = r#"(component
        (instance $none)
        (export "loop-state:logic/tools@0.1.0" (instance $none)))"#;
    let table: &[(&str, &[&str])] = &[
        ("(component)", &["nothing of the contract `loop-state:logic@0.1.0`", "nothing at all"]),
        (function, &["nothing of the contract", "only `run`"]),
        (foreign, &["imports `acme:weather/now@1.0.0`", "nothing but WASI"]),
        (beyond, &["wasi:keyvalue/store@0.2.0"]),
        (part, &["does not export `loop-state:logic/model@0.1.0`", "lacks the function `tools.about`"]),
    ];
    for (text, says) in table {
        let error = refused(&wat::parse_str(text).unwrap(), says);
        assert!(matches!(error, LogicError::Misfit { .. }), "{error:?}");
    }
}

#[test]
fn what_is_no_component_is_refused_by_what_it_is() {
    let module = wat::parse_str("(module)").unwrap();
    let table: &[(&[u8], &[&str])] = &[
        (b"", &["it is empty"]),
        (b"hello", &["it is text"]),
        (b"  (component)", &["the text form", "wasm-tools parse"]),
        (b"\x7fELF\xff", &["does not begin as WebAssembly"]),
        (b"\0asm\x02\0\0\0", &["another version"]),
        (b"\0asm", &["another version"]),
        (&module, &["a core module", "wasm-tools component new"]),
    ];
    for (bytes, says) in table {
        let error = refused(bytes, says);
        assert!(matches!(error, LogicError::WrongKind { .. }), "{error:?}");
    }
    let half = &FAULTY[..FAULTY.len() / 2];
    let error = refused(half, &["not a WebAssembly component that can be compiled", "build it anew"]);
    assert!(matches!(error, LogicError::Compile { .. }), "{error:?}");
    let error = Logic::from_file(Path::new("no/such/logic.wasm"), None).unwrap_err();
    assert!(matches!(error, LogicError::Unreadable { .. }), "{error:?}");
}
