//! Finds out what a component said before it died.

use std::str;

use memchr::memmem;
use wasmtime::{AsContext, AsContextMut, Store, Val, ValType, WasmCoreDump};

/// The record's form, from the side that writes it.
#[allow(dead_code, reason = "the half that writes is for the component")]
#[path = "../../../guest/src/panic.rs"]
mod form;

use form::{HEADER, MARK, MAX_TEXT, checksum};

/// Finds the panic record in the memory of a component that trapped.
pub(super) fn in_dump<T>(dump: &WasmCoreDump, store: &Store<T>) -> Option<String> {
    dump.memories().iter().find_map(|memory| in_memory(memory.data(store.as_context()))).map(str::to_owned)
}

fn in_memory(memory: &[u8]) -> Option<&str> {
    memmem::find_iter(memory, &MARK).find_map(|at| {
        let (header, rest) = memory[at..].split_at_checked(HEADER)?;
        let number = |at: usize| Some(u32::from_le_bytes(header.get(at..at + 4)?.try_into().ok()?));
        let length = usize::try_from(number(MARK.len())?).ok()?;
        let text = rest.get(..length).filter(|_| length <= MAX_TEXT)?;
        if checksum(text) != number(MARK.len() + 4)? {
            return None;
        }
        str::from_utf8(text).ok()
    })
}

/// Whether the component's own stack, which compilers keep in its memory with
/// the pointer to it in a global, ran below address 0.
///
/// Such an overflow shows as an access out of bounds: the pointer wraps round to
/// addresses above 2 GiB, where a component has no memory.
pub(super) fn stack_ran_out<T: Send + 'static>(dump: &WasmCoreDump, store: &mut Store<T>) -> bool {
    dump.globals().iter().any(|global| {
        let ty = global.ty(store.as_context());
        matches!(ty.content(), ValType::I32)
            && ty.mutability().is_var()
            && matches!(global.get(store.as_context_mut()), Val::I32(value) if value < 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_mark_alone_is_not_a_record() {
        assert_eq!(in_memory(&MARK), None);
        let mut memory = MARK.repeat(3);
        memory.extend_from_slice(&form::record("src/lib.rs:1:2: broken"));
        assert_eq!(in_memory(&memory), Some("src/lib.rs:1:2: broken"));
        // Cut short at the end of the memory.
        memory.pop();
        assert_eq!(in_memory(&memory), None);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let record = form::record(&"é".repeat(MAX_TEXT));
        let text = in_memory(&record).unwrap();
        assert_eq!(text.len(), MAX_TEXT);
        let record = form::record(&format!("a{}", "é".repeat(MAX_TEXT)));
        assert_eq!(in_memory(&record).unwrap().len(), MAX_TEXT - 1);
    }

    proptest! {
        #[test]
        fn what_is_written_is_found(
            before in prop::collection::vec(any::<u8>(), 0..200),
            text in ".{0,200}",
            after in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let memory = [before, form::record(&text), after].concat();
            prop_assert_eq!(in_memory(&memory), Some(text.as_str()));
        }

        #[test]
        fn any_memory_is_searched_without_a_panic(parts in prop::collection::vec(
            prop_oneof![Just(MARK.to_vec()), prop::collection::vec(any::<u8>(), 0..12)], 0..12,
        )) {
            in_memory(&parts.concat());
        }
    }
}
