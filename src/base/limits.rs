//! Limits on everything that a hostile or damaged dump could make unbounded. See `docs/limits.md`.

/// The limits, each with its rationale. If a limit is reached, a note reports it and the answer is partial.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of one descriptor's JSON. Largest seen: 10,934 (10.0 win-arm64). Microsoft's reader accepts 10 MB.
    pub descriptor_json_bytes: u64,
    /// Slots of one descriptor's pointer data. Largest seen: 25.
    pub descriptor_slots: u64,
    /// Nesting depth of sub-descriptors. .NET 11 has one level.
    pub descriptor_depth: usize,
    /// Descriptors in one process, sub-descriptors included.
    pub descriptors: usize,
    /// Runtimes in one process. Single-file programs that host other programs have two.
    pub runtimes: usize,
    /// Heaps of server GC. The runtime's own maximum is 1,024.
    pub gc_heaps: u64,
    /// Generations of one heap. The runtime has 5.
    pub generations: u64,
    /// Segments in one list: the cap of the runtime's own reader (dotnet/runtime, contract `GC`).
    pub segments_per_list: usize,
    /// Entries of an array stored per heap, such as fill pointers. Longest seen: 12.
    pub per_heap_array: u64,
    /// Handle table maps in the linked list.
    pub handle_maps: usize,
    /// Buckets per handle table map. The runtime has 10.
    pub handle_buckets: u64,
    /// Handle table slots per bucket: one per processor.
    pub handle_slots: u64,
    /// 64 KiB segments per handle table: the cap of the runtime's own reader.
    pub handle_segments: usize,
    /// Bookkeeping regions: the cap of the runtime's own reader. One is usual.
    pub bookkeeping_regions: usize,
    /// Managed threads.
    pub threads: usize,
    /// Bytes of a decompressed dump, unless the disk is full earlier.
    pub decompressed_bytes: u64,
    /// Bytes of one string read from the dump (paths, names).
    pub string_bytes: u64,
    /// Bytes of notes read from an ELF core. NT_FILE of a process with 65,000 mappings takes about 10 MB.
    pub note_bytes: u64,
    /// Sync blocks: contended locks, and objects with both a lock and a hash code. Busy servers have tens of thousands.
    pub sync_blocks: u64,
    /// Inner exceptions of one exception, transitively.
    pub inner_exceptions: usize,
    /// Entries of one heap's finalization queue. Leaks reach millions.
    pub finalizer_entries: usize,
    /// Bytes scanned of one thread's stack. Main threads have 8 MiB by default; custom sizes rarely exceed 64 MiB.
    pub stack_bytes: u64,
    /// Roots of one dump. Most come from handles, which reach millions when they leak.
    pub roots: usize,
    /// Modules, from NT_FILE or a module list.
    pub modules: usize,
    /// Bytes of memory that opening the dump, and each answer, may take in addition to the mapped dump; `None` for no limit.
    pub max_memory: Option<u64>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            descriptor_json_bytes: 4 << 20,
            descriptor_slots: 4096,
            descriptor_depth: 4,
            descriptors: 16,
            runtimes: 16,
            gc_heaps: 4096,
            generations: 64,
            segments_per_list: 65_536,
            per_heap_array: 64,
            handle_maps: 1024,
            handle_buckets: 1024,
            handle_slots: 4096,
            handle_segments: 8192,
            bookkeeping_regions: 32,
            threads: 100_000,
            decompressed_bytes: 1 << 40,
            string_bytes: 32 << 10,
            note_bytes: 256 << 20,
            sync_blocks: 1 << 22,
            inner_exceptions: 256,
            finalizer_entries: 1 << 26,
            stack_bytes: 64 << 20,
            roots: 1 << 26,
            modules: 100_000,
            max_memory: None,
        }
    }
}
