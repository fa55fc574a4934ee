//! The allocator of the program. The library does not set one.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system allocator with huge pages for large allocations.
///
/// The first access to a page causes a page fault, which takes 2 to 4 µs in a virtual machine: together a quarter of the time of `retained` on 16.8
/// million objects. Most distributions enable huge pages only on request (`madvise` in `/sys/kernel/mm/transparent_hugepage/enabled`). They are
/// requested on Linux only; on systems without huge pages, nothing changes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HugePages;

/// Minimum size in bytes of an allocation that gets huge pages: two huge pages, since it need not begin on a huge-page boundary.
const LARGE: usize = 4 << 20;

impl HugePages {
    /// Returns the memory, after requesting huge pages if `size` is large enough.
    #[inline(always)]
    fn asked(memory: *mut u8, size: usize) -> *mut u8 {
        if size >= LARGE {
            HugePages::ask(memory, size);
        }
        memory
    }

    #[cfg(target_os = "linux")]
    #[cold]
    #[inline(never)]
    #[allow(unsafe_code)]
    fn ask(memory: *mut u8, size: usize) {
        if memory.is_null() {
            return;
        }
        // `madvise` requires a page-aligned start. The advice therefore includes bytes of the allocator that precede the memory on its first page.
        let before = memory.addr() % rustix::param::page_size();
        let start = memory.wrapping_byte_sub(before);
        // SAFETY: the advice changes neither contents nor access of the memory, even if it covers bytes of the allocator. A failure has no
        // effect.
        let _ = unsafe { rustix::mm::madvise(start.cast(), size.saturating_add(before), rustix::mm::Advice::LinuxHugepage) };
    }

    #[cfg(not(target_os = "linux"))]
    fn ask(_: *mut u8, _: usize) {}
}

// SAFETY: all calls go to the system allocator; advice about pages does not change the memory that it returned.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `GlobalAlloc`, which is passed on to `System`; also below.
        HugePages::asked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see above.
        HugePages::asked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: see above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: see above.
        HugePages::asked(unsafe { System.realloc(memory, layout, size) }, size)
    }
}
