//! `memory`: the address space of the process by use.
//!
//! The container lists ranges of memory. Claims say what a range is used for; they may overlap. A [sweep](sweep) assigns each address to one listed
//! range and to the most specific claim, so that nothing is counted twice.

mod claims;
mod malloc;
mod process;
mod report;
mod sweep;

pub use report::*;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use claims::Claim;
use process::Process;
use sweep::{Piece, Span, sweep};

use crate::base::{AddrRange, Answer, Collector, Count, Missing, cut, ranges, share};
use crate::contract::own_program;
use crate::dump::{Backing, DumpFile, MappedRegion};
use crate::memory::is_by_createdump;
use crate::memory::malloc::malloc_heaps;
use crate::model::{Container, Generation, LoaderHeapKind};
use crate::session::{Dump, Runtime};

/// Arguments of `memory`.
#[derive(Clone, Copy, Debug)]
pub struct MemoryQuery {
    /// Whether to list every range.
    pub ranges: bool,
    /// Number of unexplained ranges to list; 0 for all.
    pub top: usize,
    /// Index of the runtime to use, from 0.
    pub runtime: usize,
    /// Whether to analyze `malloc` heaps and to look for pages of zeros, which reads all of that memory.
    pub contents: bool,
}

/// Returns the address space of `dump` by use. Does not require a readable runtime.
pub fn memory_map(dump: &Dump, query: &MemoryQuery) -> Answer<MemoryReport> {
    let notes = Collector::new();
    notes.extend(dump.notes());
    let runtime = dump.runtime_at(query.runtime);
    let runtime_error = runtime.as_ref().err().map(ToString::to_string);
    runtime.iter().for_each(|runtime| runtime.note_others(&notes));
    if let Some(e) = &runtime_error {
        notes.add(Missing::NativeMemory, None, format!("memory of the runtime and its GC cannot be identified: {e}"));
    }
    let process = Process { file: dump.file(), memory: dump.memory() };
    let listing = listing(process);
    if listing == MemoryListing::Captured {
        let what = "the dump lists only captured memory, images and mapped files: the process may have had more";
        notes.add(Missing::NativeMemory, None, what);
    }
    mapped((process, listing), runtime.as_ref().ok(), runtime_error, query, notes)
}

/// Returns the address space of the process of `runtime`, with the largest unexplained range. If the dump does not list the whole address space, only
/// [`MemoryReport::listing`] shows this: no note is added.
pub(in crate::analysis) fn memory_of(runtime: &Runtime, contents: bool) -> Answer<MemoryReport> {
    let query = MemoryQuery { ranges: false, top: 1, runtime: runtime.index(), contents };
    let process = Process { file: runtime.file(), memory: runtime.memory() };
    mapped((process, listing(process)), Some(runtime), None, &query, runtime.begin())
}

fn mapped(
    (process, listing): (Process<'_>, MemoryListing),
    runtime: Option<&Runtime>,
    runtime_error: Option<String>,
    query: &MemoryQuery,
    notes: Collector,
) -> Answer<MemoryReport> {
    let lost = process.file.facts.lost;
    [lost.of_modules(), lost.of_threads(), lost.of_regions()].iter().for_each(|lost| notes.extend(lost));
    let mut map = Map { process, by_gdb: is_by_gdb(process), listed: listed(process.file), claims: Vec::new() };
    let mapped = (listing != MemoryListing::Captured).then(|| ranges::union(map.listed.iter().map(|l| l.range).collect(), 0));
    let program = own_program(process.file).filter(|_| process.file.facts.container == Container::ElfCore);
    map.claim(runtime, mapped.as_deref(), &notes);
    let heaps = malloc_heaps(process.file, process.memory, program.map(|m| m.base.plus(m.size)), &claims::of_gc_alone(&map.claims));
    claims::of_malloc(&heaps, &mut map.claims);
    let pieces = map.pieces();
    let (kinds, totals) = map.sums(&pieces, query.contents);
    let malloc = (query.contents && !heaps.is_empty()).then(|| malloc::blocks(process.memory, &heaps, &notes));
    let rows = || pieces.iter().filter_map(|p| map.row(p));
    let mut unexplained: Vec<MemoryRangeModel> = rows().filter(|r| !r.kind.explains()).collect();
    unexplained.sort_by_key(|r| (Reverse((r.accessible, r.bytes)), r.start));
    cut(&mut unexplained, query.top);
    let ranges = query.ranges.then(|| rows().collect());
    notes.finish(MemoryReport { listing, runtime_error, kinds, unexplained, malloc, ranges, totals })
}

/// Whether gdb wrote the dump. Such an ELF core lists only captured mappings, and does not have the page of createdump.
fn is_by_gdb(Process { file, memory }: Process<'_>) -> bool {
    let facts = &file.facts;
    facts.container == Container::ElfCore && facts.uncaptured_mappings == 0 && !is_by_createdump(file, memory)
}

/// Determines how much of the address space the dump lists.
fn listing(process: Process<'_>) -> MemoryListing {
    let file = process.file;
    let facts = &file.facts;
    if facts.container == Container::Minidump {
        // A trimmed copy keeps the flags of the original, although it has less memory.
        return match (file.regions.is_empty(), facts.states_all_memory() && facts.trimmed.is_none()) {
            (false, _) => MemoryListing::All,
            (true, true) => MemoryListing::Accessible,
            (true, false) => MemoryListing::Captured,
        };
    }
    // A core that the kernel wrote lists every mapping, even those that were not captured.
    if facts.uncaptured_mappings > 0 {
        return MemoryListing::All;
    }
    // createdump lists only captured memory, which in a full dump is all readable memory. gdb omits only unmodified pages of files.
    let mapped = ranges::union(file.regions.iter().map(|r| r.range).collect(), 0);
    let files = ranges::union(file.files.iter().map(|f| f.range).collect(), 0);
    let whole = is_by_gdb(process) || ranges::subtract(&files, &mapped).is_empty();
    if whole { MemoryListing::Accessible } else { MemoryListing::Captured }
}

/// A range listed by the container.
struct Listed {
    range: AddrRange,
    /// Rank of the list that has the range; 0 for the most informative list.
    rank: u8,
    /// `None` if the list does not have permissions.
    region: Option<MappedRegion>,
}

impl Listed {
    fn permissions(&self) -> Option<String> {
        let r = self.region?;
        let bit = |set: bool, letter: char| if set { letter } else { '-' };
        Some([bit(r.read, 'r'), bit(r.write, 'w'), bit(r.execute, 'x')].iter().collect())
    }
}

/// Returns all ranges that the container lists as mapped.
fn listed(file: &DumpFile) -> Vec<Listed> {
    let regions = file.regions.iter().chain(&file.reserved).map(|r| Listed { range: r.range, rank: 0, region: Some(*r) });
    let plain = |range: AddrRange, rank: u8| Listed { range, rank, region: None };
    let captured = file.ranges.iter().map(|r| plain(r.range(), 1));
    let files = file.files.iter().map(|f| plain(f.range, 2));
    // In an ELF core, the extent of a module includes memory between its mappings, so it does not prove that the range was mapped.
    let modules = file.modules.iter().filter(|_| file.files.is_empty());
    let images = modules.map(|m| plain(m.range(), 3));
    regions.chain(captured).chain(files).chain(images).collect()
}

struct Map<'d> {
    process: Process<'d>,
    by_gdb: bool,
    listed: Vec<Listed>,
    claims: Vec<Claim>,
}

impl Map<'_> {
    /// Whether the process could read, write or execute a range that `claim` describes. Memory in lists without permissions was at least readable.
    ///
    /// gdb marks all memory as readable (`make_output_phdrs`, gcore.c), including memory without permissions: guard pages, and memory reserved by
    /// allocators. A file or image may really be readable; any other memory without write permission is treated as inaccessible, because nothing
    /// could have been written to it.
    fn is_accessible(&self, listed: &Listed, claim: Option<&Claim>) -> bool {
        let Some(r) = listed.region else { return true };
        let read_only = r.read && !r.write && !r.execute;
        let of_file = claim.is_some_and(|c| matches!(c.kind, MemoryKind::Module | MemoryKind::File | MemoryKind::DoubleMapped));
        r.is_accessible() && (!self.by_gdb || !read_only || of_file)
    }

    fn claim(&mut self, runtime: Option<&Runtime>, mapped: Option<&[AddrRange]>, notes: &Collector) {
        if let Some(runtime) = runtime {
            claims::of_gc(runtime, notes, &mut self.claims);
            claims::of_code(runtime, mapped, notes, &mut self.claims);
        }
        claims::of_container(self.process, runtime, notes, &mut self.claims);
    }

    fn pieces(&self) -> Vec<Piece> {
        let listed: Vec<Span> = self.listed.iter().map(|l| Span { range: l.range, rank: l.rank }).collect();
        let claims: Vec<Span> = self.claims.iter().map(Claim::span).collect();
        sweep(&listed, &claims)
    }

    fn listed_at(&self, piece: &Piece) -> Option<&Listed> {
        self.listed.get(piece.listed?)
    }

    fn claim_at(&self, piece: &Piece) -> Option<&Claim> {
        self.claims.get(piece.claim?)
    }

    /// Returns the kind of a listed range that has no claim.
    fn unclaimed(&self, listed: &Listed) -> MemoryKind {
        let file = self.process.file;
        match listed.region.and_then(|r| r.backing) {
            _ if !self.is_accessible(listed, None) => MemoryKind::Reserved,
            Some(Backing::Image) => MemoryKind::Module,
            Some(Backing::Section) => MemoryKind::Shared,
            Some(Backing::Private) => MemoryKind::Anonymous,
            None if file.files.is_empty() => MemoryKind::Unknown,
            None => MemoryKind::Anonymous,
        }
    }

    fn kind_of(&self, piece: &Piece) -> Option<(MemoryKind, Option<Generation>)> {
        match (self.claim_at(piece), self.listed_at(piece)) {
            (Some(claim), _) => Some((claim.kind, claim.generation)),
            (None, Some(listed)) => Some((self.unclaimed(listed), None)),
            (None, None) => None,
        }
    }

    fn captured(&self, range: AddrRange) -> u64 {
        self.process.memory.in_dump(range).fold(0, |sum, r| sum.saturating_add(r.len()))
    }

    /// Returns the row of a piece.
    fn row(&self, piece: &Piece) -> Option<MemoryRangeModel> {
        let listed = self.listed_at(piece)?;
        let (kind, generation) = self.kind_of(piece)?;
        let claim = self.claim_at(piece);
        Some(MemoryRangeModel {
            start: piece.range.start,
            end: piece.range.end,
            kind,
            generation,
            loader_heap: claim.and_then(|c| c.loader_heap),
            bytes: piece.range.len(),
            accessible: self.is_accessible(listed, claim),
            captured_bytes: self.captured(piece.range),
            permissions: listed.permissions(),
            heap: claim.and_then(|c| c.heap),
            os_id: claim.and_then(|c| c.os_id),
            name: claim.and_then(|c| c.name.clone()),
        })
    }

    fn sums(&self, pieces: &[Piece], contents: bool) -> (Vec<MemoryKindModel>, MemoryTotals) {
        let mut kinds: BTreeMap<(MemoryKind, Option<Generation>, Option<LoaderHeapKind>), MemoryKindModel> = BTreeMap::new();
        let mut totals = MemoryTotals::default();
        for piece in pieces {
            let Some((kind, generation)) = self.kind_of(piece) else { continue };
            let loader_heap = self.claim_at(piece).and_then(|c| c.loader_heap);
            let blank = MemoryKindModel {
                kind,
                generation,
                loader_heap,
                ranges: 0,
                bytes: 0,
                accessible_bytes: 0,
                captured_bytes: 0,
                zero_bytes: None,
                share: 0.0,
                unlisted_bytes: 0,
            };
            let sum = kinds.entry((kind, generation, loader_heap)).or_insert(blank);
            let bytes = piece.range.len();
            let Some(listed) = self.listed_at(piece) else {
                sum.unlisted_bytes.grow(bytes);
                totals.unlisted_bytes.grow(bytes);
                continue;
            };
            let accessible = if self.is_accessible(listed, self.claim_at(piece)) { bytes } else { 0 };
            let captured = self.captured(piece.range);
            sum.ranges.bump();
            sum.bytes.grow(bytes);
            sum.accessible_bytes.grow(accessible);
            sum.captured_bytes.grow(captured);
            if contents && matches!(kind, MemoryKind::Stack | MemoryKind::Malloc | MemoryKind::Anonymous | MemoryKind::Unknown) {
                sum.zero_bytes.get_or_insert(0).grow(malloc::zero_pages(self.process.memory, piece.range));
            }
            totals.ranges.bump();
            totals.bytes.grow(bytes);
            totals.accessible_bytes.grow(accessible);
            totals.captured_bytes.grow(captured);
            if kind.explains() {
                totals.explained_bytes.grow(accessible);
            }
        }
        // Rounded down to four digits, so that the output is the same on every machine.
        let part = |bytes: u64| share(bytes, totals.accessible_bytes).map_or(0.0, |s| (s * 10_000.0).floor() / 10_000.0);
        let explained_share = part(totals.explained_bytes);
        let mut kinds: Vec<MemoryKindModel> =
            kinds.into_values().map(|k| MemoryKindModel { share: part(k.accessible_bytes), ..k }).collect();
        kinds.sort_by_key(|k| Reverse((k.accessible_bytes, k.bytes, k.unlisted_bytes)));
        (kinds, MemoryTotals { explained_share, ..totals })
    }
}
