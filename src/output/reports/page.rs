//! The answer of `report`: the chapters of the HTML page, made of the sections of the other reports.

use super::analyze::reason;
use super::exceptions::trace;
use super::retained::path_lines;
use crate::analysis::{PageReport, PageSuspect, PageType, PageTypes, ProblemId, ProblemSeverity};
use crate::base::{len64, share, total};
use crate::output::columns::{Columns, columns};
use crate::output::report::{Chapter, Picture, Report, Sections, Tile};
use crate::output::table::Table;
use crate::output::{Cell, bytes, plural};

const PROCESS: Chapter = Chapter { id: "process", title: "Process" };
const FINDINGS: Chapter = Chapter { id: "findings", title: "Findings" };
const CHANGES: Chapter = Chapter { id: "changes", title: "What changed" };
const EXCEPTIONS: Chapter = Chapter { id: "exceptions", title: "Exceptions in flight" };
const OOM: Chapter = Chapter { id: "oom", title: "Failed allocations" };
const HEAP: Chapter = Chapter { id: "heap", title: "Heap by generation" };
const TYPES: Chapter = Chapter { id: "types", title: "Types" };
const ICICLE: Chapter = Chapter { id: "icicle", title: "What retains what" };
const SUSPECTS: Chapter = Chapter { id: "suspects", title: "Suspects" };
const REQUESTS: Chapter = Chapter { id: "requests", title: "HTTP requests and sockets" };
const STATICS: Chapter = Chapter { id: "statics", title: "Static fields" };
const MEMORY: Chapter = Chapter { id: "memory", title: "Memory of the process" };
const THROWN: Chapter = Chapter { id: "thrown", title: "Exceptions by type" };
const MODULES: Chapter = Chapter { id: "modules", title: "Modules" };
const ENVIRONMENT: Chapter = Chapter { id: "environment", title: "Environment" };
const STACKS: Chapter = Chapter { id: "stacks", title: "Stacks" };
const LOCKS: Chapter = Chapter { id: "locks", title: "Locks and waits" };
const CHAINS: Chapter = Chapter { id: "async", title: "Asynchronous methods" };
const POOL: Chapter = Chapter { id: "pool", title: "Thread pool" };
const WASTE: Chapter = Chapter { id: "waste", title: "Waste" };
const FRAGMENTATION: Chapter = Chapter { id: "fragmentation", title: "Free space and pins" };
const HANDLES: Chapter = Chapter { id: "handles", title: "Handles" };
const FINALIZERS: Chapter = Chapter { id: "finalizers", title: "Finalizers" };
const LACKING: Chapter = Chapter { id: "lacking", title: "Not answered" };

fn type_columns<'r>() -> Columns<'r, PageType> {
    columns![
        PageType,
        count(stat.count),
        bytes(stat.bytes),
        share(stat.share),
        bytes(retained),
        address(stat.method_table),
        names(stat.type_name, 60),
        text(stat.module, 30)
    ]
}

fn types<'r>(to: &mut Sections<'r>, types: &'r PageTypes) {
    let t = &types.totals;
    let blank = || Cell::Text("".into());
    let totals =
        vec![Cell::Count(t.count), Cell::Bytes(t.bytes), blank(), blank(), blank(), Cell::Text(plural(t.types, "type").into()), blank()];
    to.table(Table::new(&types.rows, type_columns()).totals(totals));
    if types.rest.types > 0 {
        to.line(format!(
            "{} with {} not listed: gcdump stat --top 0 lists all.",
            plural(types.rest.types, "type"),
            plural(types.rest.bytes, "byte")
        ));
    }
}

fn suspect<'r>(to: &mut Sections<'r>, s: &'r PageSuspect) {
    to.title(&*s.suspect.text);
    if let Some(path) = &s.path {
        to.lines(path_lines(path, true));
    }
}

/// The chapters of a page, each with its sections.
struct Chapters<'r> {
    complete: bool,
    list: Vec<(Chapter, Sections<'r>)>,
}

impl<'r> Chapters<'r> {
    fn add(&mut self, chapter: Chapter, describe: impl FnOnce(&mut Sections<'r>)) {
        let mut sections = Sections::new(self.complete);
        describe(&mut sections);
        self.list.push((chapter, sections));
    }

    /// Adds a chapter for another answer, if there is one.
    fn of<R: Report>(&mut self, chapter: Chapter, answer: Option<&'r R>) {
        if let Some(answer) = answer {
            self.add(chapter, |to| answer.describe(to));
        }
    }
}

impl Report for PageReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let mut page = Chapters { complete: to.complete, list: Vec::new() };
        if !self.exceptions.is_empty() {
            page.add(EXCEPTIONS, |to| self.exceptions.iter().for_each(|e| trace(to, e)));
        }
        page.of(OOM, self.oom.as_ref());
        page.of(REQUESTS, self.requests.as_ref());
        page.of(CHANGES, self.diff.as_ref());
        page.of(HEAP, self.heap.as_ref());
        if let Some(icicle) = &self.icicle {
            page.add(ICICLE, |to| to.picture(Picture::Icicle(icicle, self.diff.as_ref())));
        }
        if let Some(list) = self.suspects.as_ref().filter(|s| !s.is_empty()) {
            page.add(SUSPECTS, |to| list.iter().for_each(|s| suspect(to, s)));
        }
        if let Some(list) = &self.types {
            page.add(TYPES, |to| types(to, list));
        }
        page.of(STATICS, self.statics.as_ref());
        page.of(MEMORY, self.memory.as_ref());
        page.of(STACKS, self.stacks.as_ref());
        page.of(LOCKS, self.locks.as_ref());
        page.of(CHAINS, self.chains.as_ref());
        page.of(POOL, self.pool.as_ref());
        page.of(THROWN, self.thrown.as_ref());
        page.of(WASTE, self.inspect.as_ref());
        page.of(FRAGMENTATION, self.fragmentation.as_ref());
        page.of(HANDLES, self.handles.as_ref());
        page.of(FINALIZERS, self.finalizers.as_ref());
        page.add(PROCESS, |to| {
            self.info.describe(to);
            let contents = if self.without_contents { " The contents of strings and arrays are left out." } else { "" };
            to.gap();
            to.line(format!("This page was made by: {}{contents}", self.made_by));
        });
        page.of(MODULES, self.modules.as_ref());
        page.of(ENVIRONMENT, self.env.as_ref());
        // Chapters that findings link to come first, in the order of the findings.
        let first: Vec<&str> = self.analyze.findings.iter().filter_map(|f| chapter_of(f.id)).map(|c| c.id).collect();
        page.list.sort_by_key(|(chapter, _)| first.iter().position(|id| *id == chapter.id).unwrap_or(first.len()));
        let mut findings = Sections::new(to.complete);
        self.analyze.describe(&mut findings);
        page.list.insert(0, (FINDINGS, findings));
        if !self.lacking.is_empty() {
            page.add(LACKING, |to| to.lines(self.lacking.iter().map(|l| format!("{}: {}", l.part, reason(&l.reason, l.needs)))));
        }
        let chapters: Vec<Chapter> = page.list.iter().map(|(chapter, _)| *chapter).collect();
        let tiles = tiles(self, &chapters);
        to.contents(self.lead(to.complete), chapters);
        to.tiles(tiles);
        for (chapter, sections) in page.list {
            to.chapter(chapter);
            // CSV can have only one list: the findings.
            to.append(sections, chapter.id == FINDINGS.id);
        }
    }
}

/// Returns the chapter with the details of a finding.
fn chapter_of(id: ProblemId) -> Option<Chapter> {
    Some(match id {
        ProblemId::Crash => EXCEPTIONS,
        ProblemId::Oom => OOM,
        ProblemId::Deadlock | ProblemId::OrphanedLock | ProblemId::LockQueue | ProblemId::SyncOverAsync => LOCKS,
        ProblemId::StuckFinalizer => FINALIZERS,
        ProblemId::PoolStarvation => POOL,
        ProblemId::Requests | ProblemId::ConnectionPools => REQUESTS,
        ProblemId::AsyncWaits | ProblemId::UnobservedExceptions => CHAINS,
        ProblemId::SamePlace => STACKS,
        ProblemId::Exceptions => THROWN,
        ProblemId::Growth => CHANGES,
        ProblemId::Fragmentation => FRAGMENTATION,
        ProblemId::Garbage | ProblemId::Damage | ProblemId::GcInProgress => HEAP,
        ProblemId::FreeRegions | ProblemId::NativeMemory => MEMORY,
        ProblemId::Suspects => SUSPECTS,
        ProblemId::Handles => HANDLES,
        ProblemId::DynamicAssemblies => MODULES,
        ProblemId::EventLeaks
        | ProblemId::Registrations
        | ProblemId::LoadContexts
        | ProblemId::EqualStrings
        | ProblemId::SparseArrays
        | ProblemId::OversizedCollections
        | ProblemId::EmptyCollections
        | ProblemId::EqualArrays
        | ProblemId::ZeroArrays
        | ProblemId::ZeroTails => WASTE,
        ProblemId::Timers | ProblemId::MissingParts => return None,
    })
}

/// Returns the overview; each tile links to its chapter if the page has it.
fn tiles(page: &PageReport, chapters: &[Chapter]) -> Vec<Tile> {
    let mut tiles = Vec::new();
    let mut tile = |name: &'static str, value: String, about: String, chapter: Chapter| {
        let chapter = chapters.iter().any(|c| c.id == chapter.id).then_some(chapter.id);
        tiles.push(Tile { name, value, about, chapter });
    };
    let of = |severity: ProblemSeverity| len64(page.analyze.findings.iter().filter(|f| f.severity == severity).count());
    let by_severity = [ProblemSeverity::Critical, ProblemSeverity::Warning, ProblemSeverity::Info];
    let severities: Vec<String> = by_severity.into_iter().filter(|s| of(*s) > 0).map(|s| format!("{} {}", of(s), s.name())).collect();
    tile("findings", page.analyze.findings.len().to_string(), severities.join(", "), FINDINGS);
    if let Some(types) = &page.types {
        tile("objects", bytes(types.totals.bytes), plural(types.totals.count, "object"), TYPES);
    }
    if let Some(icicle) = &page.icicle {
        let t = &icicle.totals;
        let garbage = t.bytes.saturating_sub(t.reachable_bytes);
        let part = share(garbage, t.bytes).unwrap_or(0.0) * 100.0;
        tile("reachable", bytes(t.reachable_bytes), format!("{part:.1} % garbage"), ICICLE);
    }
    if let Some(heap) = &page.info.heap {
        tile("GC heap", bytes(heap.committed_bytes), "committed".into(), HEAP);
    }
    if let Some(memory) = &page.memory {
        tile("process", bytes(memory.totals.accessible_bytes), "accessible memory".into(), MEMORY);
    }
    if let Some(threads) = page.info.managed_threads {
        let waiting = page.locks.as_ref().map(|l| format!("{} blocked", l.waits.len())).unwrap_or_default();
        tile("threads", threads.to_string(), waiting, STACKS);
    }
    if let Some(pool) = &page.pool {
        let state = if pool.starved { "starved" } else { "items queued" };
        tile("thread pool", pool.pending.to_string(), state.into(), POOL);
    }
    if let Some(chains) = &page.chains {
        tile("async methods", chains.totals.methods.to_string(), "pending".into(), CHAINS);
    }
    if let Some(requests) = &page.requests {
        tile("HTTP requests", requests.requests.len().to_string(), "in flight".into(), REQUESTS);
    }
    if let Some(thrown) = &page.thrown {
        let thrown = total(thrown.groups.iter().map(|g| g.count));
        tile("exceptions", thrown.to_string(), "on the heap".into(), THROWN);
    }
    tiles
}

impl PageReport {
    /// Summarizes the process, its runtime, the dump, and whether everything could be read.
    fn lead(&self, complete: bool) -> String {
        let i = &self.info;
        let process = i.process_id.map(|pid| format!(" (process {pid})")).unwrap_or_default();
        let version = i.runtimes.first().and_then(|r| r.version.as_deref()).unwrap_or("of an unknown version");
        let whole = if complete { "" } else { " Some of it could not be read: see the warnings at the end." };
        let system = format!("{} {}", i.os.name(), i.architecture.name());
        format!("{}{process}, .NET {version} on {system}; {} dump, {}.{whole}", self.title, i.kind, bytes(i.file_bytes))
    }
}
