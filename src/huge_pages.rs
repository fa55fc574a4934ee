//! The allocator of the program, which the library does not set.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, which asks for huge pages where an allocation is large.
///
/// To touch new memory costs a fault a page, 2 to 4 µs each in a virtual machine: of `retained` on 16.8 million objects, a quarter of the
/// time. Most distributions give huge pages to those alone who ask (`madvise` in `/sys/kernel/mm/transparent_hugepage/enabled`). Where the
/// system has none, nothing changes, and only Linux is asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HugePages;

/// Bytes of an allocation that is worth it: two huge pages, since it need not begin with one.
const LARGE: usize = 4 << 20;

impl HugePages {
    /// The memory, for which huge pages have been asked where it is `size` bytes large.
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
        // With the allocator's own bytes before it, which are on the first page.
        let before = memory.addr() % rustix::param::page_size();
        let start = memory.wrapping_byte_sub(before);
        // SAFETY: the advice changes no contents and takes no access, to whichever bytes of the allocator's it extends. Without effect
        // where it fails.
        let _ = unsafe { rustix::mm::madvise(start.cast(), size.saturating_add(before), rustix::mm::Advice::LinuxHugepage) };
    }

    #[cfg(not(target_os = "linux"))]
    fn ask(_: *mut u8, _: usize) {}
}

// SAFETY: the system's allocator does all that is asked of it; advice about pages changes nothing of what it returned.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what the caller owes, it owes the system's allocator. The same below.
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
