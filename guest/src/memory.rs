//! The component's allocator: made for an instance that lives for one call.
//!
//! Memory is handed out from low to high. Only what was handed out last is taken
//! back, or grows where it is, which is what growing texts and lists need; all
//! else goes with the instance. A list of records crosses the boundary as one
//! allocation for every text in it, so these few instructions are a good part of
//! what a call costs.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::arch::wasm32;
use std::cell::Cell;
use std::ptr;

#[global_allocator]
static MEMORY: Memory = Memory { next: Cell::new(0), end: Cell::new(0) };

/// The unit in which memory grows, in bytes.
const PAGE: usize = 64 << 10;

/// How many pages it grows by at least: asking the host costs more than all that
/// is then handed out of them.
const PAGES_MIN: usize = 16;

struct Memory {
    /// The first byte that is free; 0 before the first allocation.
    next: Cell<usize>,
    /// The first byte that is not ours any more.
    end: Cell<usize>,
}

// SAFETY: the target has no threads.
unsafe impl Sync for Memory {}

unsafe extern "C" {
    /// Where the linker's data and stack end; only its address means something.
    static __heap_base: u8;
}

impl Memory {
    /// Moves the end of what is handed out to `next`; false when there is not as
    /// much memory.
    fn advance(&self, next: usize) -> bool {
        let end = self.end.get();
        if next > end {
            let pages = (next - end).div_ceil(PAGE).max(PAGES_MIN);
            let before = wasm32::memory_grow(0, pages);
            if before == usize::MAX {
                return false;
            }
            self.end.set((before + pages) * PAGE);
        }
        self.next.set(next);
        true
    }

    #[cold]
    fn begin(&self) {
        self.next.set((&raw const __heap_base).addr());
        self.end.set(wasm32::memory_size(0) * PAGE);
    }
}

// SAFETY: what is handed out lies between the linker's data and the end of the
// memory, is aligned as asked, and is handed out again only after it was returned.
unsafe impl GlobalAlloc for Memory {
    // Not inlined: copies at the many places that allocate would make the code a
    // fifth larger.
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if self.next.get() == 0 {
            self.begin();
        }
        let free = self.next.get().checked_next_multiple_of(layout.align());
        match free.and_then(|start| Some((start, start.checked_add(layout.size())?))) {
            Some((start, next)) if self.advance(next) => ptr::with_exposed_provenance_mut(start),
            _ => ptr::null_mut(),
        }
    }

    #[inline(never)]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if at.addr() + layout.size() == self.next.get() {
            self.next.set(at.addr());
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the same contract.
        let at = unsafe { self.alloc(layout) };
        if !at.is_null() {
            // SAFETY: just handed out, of this size. It may have been used before.
            unsafe { ptr::write_bytes(at, 0, layout.size()) };
        }
        at
    }

    #[inline(never)]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let is_last = at.addr() + layout.size() == self.next.get();
        if is_last && at.addr().checked_add(size).is_some_and(|next| self.advance(next)) {
            return at;
        }
        if size <= layout.size() {
            return at;
        }
        // SAFETY: the caller keeps to `realloc`'s contract: the alignment is valid
        // and the size, rounded up to it, does not overflow.
        let new = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !new.is_null() {
            // SAFETY: the old block has its old size and the new one is longer; the
            // two do not overlap, because the old one was not returned.
            unsafe { ptr::copy_nonoverlapping(at, new, layout.size()) };
        }
        new
    }
}
