//! An allocator that knows how much a thread has allocated at a time. Per thread, because other tests run beside the
//! campaign; a command of a campaign stays on its worker's thread, in a rayon pool of one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Bytes that one thread has allocated since [`start`].
#[derive(Clone, Copy)]
struct Count {
    /// Below zero where older memory, or that of another thread, was freed.
    live: i64,
    peak: i64,
}

thread_local! {
    // Constant and without a destructor: the first use of it allocates nothing.
    static COUNT: Cell<Count> = const { Cell::new(Count { live: 0, peak: 0 }) };
}

/// Counts, and leaves the work to the system.
pub struct Counting;

fn add(bytes: usize) {
    COUNT.with(|count| {
        let Count { live, peak } = count.get();
        let live = live + bytes as i64;
        count.set(Count { live, peak: peak.max(live) });
    });
}

fn sub(bytes: usize) {
    COUNT.with(|count| {
        let now = count.get();
        count.set(Count { live: now.live - bytes as i64, ..now });
    });
}

// SAFETY: every call goes to the system's allocator with the arguments that came in.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        sub(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new may be there at once.
        add(size);
        sub(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Counts this thread's allocations from zero.
pub fn start() {
    COUNT.with(|count| count.set(Count { live: 0, peak: 0 }));
}

/// Most bytes that this thread had allocated at a time since [`start`].
pub fn peak() -> u64 {
    COUNT.with(|count| count.get().peak.max(0) as u64)
}
