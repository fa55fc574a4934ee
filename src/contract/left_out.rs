//! Determines whether the runtime cannot be read because the dump writer left memory out, and how to write a better dump.
//!
//! Source: `docs/internals/containers.md#kernel-cores`; measured on stack dumps of the crate `minidump-writer` and of lldb.

use crate::base::{AddrRange, PAGE, ranges};
use crate::dump::{Container, DumpFile, OsThread, ThreadStacks};
use crate::memory::{Memory, is_by_createdump};

/// Maximum bytes outside of stacks in a stack dump: the code around instruction pointers, the memory that registers point to, TLS blocks.
const BESIDE_STACKS: u64 = 256 << 10;

/// Bytes of stacks in a dump that has little else, like dumps of Breakpad, Crashpad and lldb; `None` if the dump has more than stacks.
pub(super) fn only_stacks(dump: &DumpFile) -> Option<u64> {
    let index = ThreadStacks::new(dump);
    let stack = |t: &OsThread| t.stack.or_else(|| index.whole(t, None));
    let stacks = ranges::union(dump.threads.iter().filter_map(stack).collect(), PAGE);
    let captured = ranges::union(dump.ranges.iter().map(|r| r.range()).collect(), 0);
    let in_stacks = ranges::bytes(&ranges::intersect(&captured, &stacks));
    let others = ranges::bytes(&ranges::subtract(&captured, &stacks));
    (in_stacks > 0 && others <= BESIDE_STACKS).then_some(in_stacks)
}

/// Kinds of memory that the process's `coredump_filter` excludes from a core. Both the kernel and gdb honor this filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Bit 4: the first pages of mapped ELF files.
    pub(super) headers: bool,
    /// Bit 1: shared memory, which contains the runtime's method tables, stubs and code.
    pub(super) shared: bool,
}

impl LeftOut {
    pub(super) fn of(dump: &DumpFile, memory: &Memory) -> LeftOut {
        let facts = &dump.facts;
        if facts.container != Container::ElfCore || is_by_createdump(dump, memory) {
            return LeftOut::default();
        }
        let is_library = |path: &str| path.ends_with(".so") || path.contains(".so.");
        let libraries: Vec<_> = dump.modules.iter().filter(|m| is_library(m.file_name())).collect();
        let shared: Vec<AddrRange> = dump.double_mapped().collect();
        LeftOut {
            headers: !libraries.is_empty() && !libraries.iter().any(|m| memory.is_from_dump(m.base)),
            shared: !shared.is_empty() && shared.iter().all(|r| memory.captured(*r) == 0),
        }
    }

    /// A sentence that names the missing memory and says how to write a core that contains it.
    pub(super) fn sentence(self) -> Option<String> {
        let headers = self.headers.then_some("bit 4 (the headers of mapped files)");
        let shared = self.shared.then_some("bit 1 (shared memory, where the runtime has its method tables and code)");
        let bits: Vec<&str> = [headers, shared].into_iter().flatten().collect();
        let what = "the core was written with a coredump_filter without";
        let advice = "the default is 0x33: echo 0x33 > /proc/PID/coredump_filter";
        (!bits.is_empty()).then(|| format!("{what} {}; {advice}", bits.join(" and ")))
    }
}

/// The path of the host that loads the runtime, if it is loaded.
pub(super) fn host(dump: &DumpFile) -> Option<&str> {
    const HOSTS: [&str; 4] = ["libhostfxr.so", "libhostpolicy.so", "hostfxr.dll", "hostpolicy.dll"];
    dump.modules.iter().find(|m| HOSTS.contains(&m.file_name())).map(|m| m.path.as_str())
}
