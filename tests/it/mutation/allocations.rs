//! An allocator that tracks the peak allocation per thread. Other tests run in parallel with the campaign, whose commands
//! stay on their worker's thread, in a rayon pool of one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Bytes allocated by a thread since [`start`].
#[derive(Clone, Copy)]
struct Count {
    /// Negative if freed memory is older or from another thread.
    live: i64,
    peak: i64,
}

thread_local! {
    // Constant and without a destructor: first use does not allocate.
    static COUNT: Cell<Count> = const { Cell::new(Count { live: 0, peak: 0 }) };
}

/// Counts, and delegates to the system allocator.
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

// SAFETY: every call is forwarded to the system allocator with unchanged arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        sub(layout.size());
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks may exist at once.
        add(size);
        sub(layout.size());
        // SAFETY: guaranteed by the caller.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Resets the counts of this thread.
pub fn start() {
    COUNT.with(|count| count.set(Count { live: 0, peak: 0 }));
}

/// Resets the peak to the current allocation.
pub fn forget_peak() {
    COUNT.with(|count| count.set(Count { peak: count.get().live, ..count.get() }));
}

/// Runs `work`, whose allocations are not counted.
pub fn uncounted<T>(work: impl FnOnce() -> T) -> T {
    let before = COUNT.with(Cell::get);
    let done = work();
    COUNT.with(|count| count.set(before));
    done
}

/// Peak allocation of this thread since [`start`] or [`forget_peak`], in bytes.
pub fn peak() -> u64 {
    COUNT.with(|count| count.get().peak.max(0) as u64)
}
