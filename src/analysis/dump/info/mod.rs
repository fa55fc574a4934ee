//! The kind of a dump, its runtimes, and the commands that it can answer.

mod report;

pub use report::*;

use crate::analysis::dump::analyze::command_line;
use crate::analysis::dump::answers::{Answers, Imprecise, answers};
use crate::analysis::dump::env::{command_line as command_line_of, gc_with_properties, note_lost, settings, startup};
use crate::analysis::dump::modules::module_count;
use crate::analysis::threads::suspension::suspension;
use crate::base::missed::tried;
use crate::base::{AddrRange, Answer, Collector, Missing, len64};
use crate::contract::Description;
use crate::gc::{Facts, Gc};
use crate::memory::{Memory, hex};
use crate::model::{CollectionsModel, DumpModel, GcLatencyMode, HeapSizeModel, NamedCount, RuntimeModel, SegmentModel, StandaloneGc};
use crate::session::{Dump, HeapEvidence, Runtime, Startup, kind};

/// Returns the header of every JSON answer: summaries of the dump and the runtime, and the number of runtimes.
pub fn head_parts(dump: &Dump, runtime: Option<&Runtime>) -> (DumpModel, Option<RuntimeModel>, u64) {
    let f = &dump.file().facts;
    let model = DumpModel {
        path: f.shown_path(),
        format: f.container,
        compression: f.compression,
        file_bytes: f.file_bytes,
        captured_bytes: f.captured_bytes,
        os: f.os,
        architecture: f.arch,
        pointer_bytes: dump.memory().ptr_bytes(),
        process_id: f.pid,
    };
    let runtime = runtime.map(|runtime| (len64(runtime.index()), runtime.description())).map(|(index, r)| RuntimeModel {
        index,
        version: r.version.clone(),
        module: r.site.module.as_ref().map(|m| m.path.clone()),
        base: r.base(),
        build_id: r.site.image.as_ref().and_then(|i| i.build_id.as_deref()).map(hex),
        vm: r.vm,
        gc: r.gc,
        overlay: r.overlay.clone(),
    });
    (model, runtime, dump.runtimes().map_or(0, |all| len64(all.len())))
}

/// Results of probing a runtime: the commands that the dump can answer, and other facts that `info` shows.
#[derive(Default)]
struct Probe {
    gc: Option<GcModel>,
    heap: Option<HeapSizeModel>,
    segments: Vec<SegmentModel>,
    answers: Vec<AnswerModel>,
    imprecise: Option<Imprecise>,
    managed_threads: Option<u64>,
    segments_whole: bool,
}

/// Arguments of `info`.
#[derive(Clone, Debug, Default)]
pub struct InfoQuery {
    /// Index of the runtime.
    pub runtime: usize,
    /// Options that the suggested command repeats, so that it reads the dump in the same way.
    pub options: Vec<String>,
}

/// Describes the dump, a runtime, and the commands that the dump can answer. Does not require a readable runtime.
pub fn info(dump: &Dump, query: &InfoQuery) -> Answer<InfoReport> {
    let notes = Collector::new();
    notes.extend(dump.notes());
    let f = &dump.file().facts;
    [f.lost.of_modules(), f.lost.of_threads(), f.lost.of_process(), f.lost.of_crash()].iter().for_each(|lost| notes.extend(lost));
    let runtime = dump.runtime_at(query.runtime);
    let probe = runtime.as_ref().map(|r| probe(r, &notes)).unwrap_or_default();
    let lacking: Vec<&str> = probe
        .answers
        .iter()
        .filter(|a| !matches!(a.answer, AnswerKind::Full | AnswerKind::Undescribed))
        .map(|a| a.command.as_str())
        .collect();
    if !lacking.is_empty() {
        notes.add(Missing::Answer, None, format!("commands not answered in full: {}", lacking.join(", ")));
    }
    let found = HeapEvidence { gc: probe.gc.is_some(), segments: &probe.segments, whole: probe.segments_whole };
    let (kind, kind_evidence, writer) = kind(dump.file(), dump.memory(), runtime.as_ref().ok().map(Runtime::description), &found);
    let all = dump.runtimes().unwrap_or_default();
    let descriptions: Vec<&Description> = all.iter().map(Runtime::description).collect();
    runtime.iter().for_each(|runtime| runtime.note_others(&notes));
    let crash = dump.file().crash.as_ref();
    let startup = startup(dump);
    // Dumps of some kinds do not have this memory.
    let is_lost = |startup: &&Startup| startup.lost.is_some_and(|at| dump.memory().is_lost(AddrRange::of(at, 1)));
    startup.iter().filter(is_lost).for_each(|startup| note_lost(startup, &notes));
    let recorded = || f.command_line.as_ref().map(|line| if dump.memory().hides_contents() { Memory::HIDDEN.into() } else { line.clone() });
    let report = InfoReport {
        kind,
        kind_evidence,
        format: f.container,
        os: f.os,
        architecture: f.arch,
        process_id: f.pid,
        file_bytes: f.file_bytes,
        captured_bytes: f.captured_bytes,
        writer,
        mapped_bytes: f.mapped_bytes,
        truncated_bytes: f.truncated_bytes,
        process_name: f.process_name.clone(),
        command_line: startup.as_ref().and_then(command_line_of).or_else(recorded),
        settings: settings(startup.as_ref(), runtime.as_ref().ok()),
        arguments: startup.and_then(|startup| startup.arguments),
        time: f.time,
        started: f.started,
        modules: module_count(dump, runtime.as_ref().ok()),
        os_threads: len64(dump.file().threads.len()),
        crash: crash.map(|c| c.name.clone()),
        crashed_thread: crash.and_then(|c| c.thread),
        fault: dump.fault(runtime.as_ref().ok()),
        suspension: runtime.as_ref().ok().and_then(|runtime| suspension(runtime, &Collector::new())),
        crash_report: descriptions.iter().find_map(|r| r.crash_report.clone()),
        gc: probe.gc,
        heap: probe.heap,
        managed_threads: probe.managed_threads,
        runtimes: all.iter().map(brief).collect(),
        runtime_error: runtime.as_ref().err().map(ToString::to_string),
        module_files: descriptions.iter().filter_map(|r| module_file(r)).collect(),
        contracts: runtime
            .map(|r| r.descriptor().contracts.iter().map(|(n, c)| format!("{n}:{}", c.version)).collect())
            .unwrap_or_default(),
        more_precise: probe.imprecise.map(|imprecise| more_precise(imprecise, &query.options, &f.path_in_commands())),
        next: next(&probe.answers, &query.options, &f.path_in_commands()),
        answers: probe.answers,
    };
    notes.finish(report)
}

/// Returns the module files that stacks need, and the command that downloads them for the dump at `path`.
fn more_precise(imprecise: Imprecise, options: &[String], path: &str) -> MorePrecise {
    // `--no-local-files` would exclude the files that this command is about.
    let options = options.iter().map(String::as_str).filter(|option| *option != "--no-local-files");
    // A build without downloads can only list the files.
    let words = ["modules", if cfg!(feature = "fetch") { "--fetch" } else { "--needed" }];
    let words: Vec<&str> = words.into_iter().chain(options).collect();
    let (command, short_command) = (command_line(words.iter().copied(), path), command_line(words.into_iter(), "DUMP"));
    MorePrecise { stacks: imprecise.stacks, total: imprecise.total, files: imprecise.files, command, short_command }
}

fn module_file(r: &Description) -> Option<ModuleFileModel> {
    let file = r.site.filled.file.as_ref()?;
    Some(ModuleFileModel { file: file.display().to_string(), bytes: r.site.filled.bytes })
}

fn brief(runtime: &Runtime) -> RuntimeBrief {
    let r = runtime.description();
    RuntimeBrief {
        index: len64(runtime.index()),
        kind: r.kind(),
        version: r.version.clone(),
        version_source: r.version_source,
        module: r.site.module.as_ref().map(|m| m.path.clone()),
        base: r.base(),
        build_id: r.site.image.as_ref().and_then(|i| i.build_id.as_deref()).map(hex),
        descriptor: r.site.descriptor,
        descriptor_found_by: r.site.descriptor_found_by.map(Into::into),
        descriptor_version: r.descriptor_version,
        dac_table: r.site.dac_table.map(|t| t.address),
        gc_dac_vars: r.gc_dac_vars.map(|v| v.address),
        vm: r.vm,
        gc: r.gc,
        overlay: r.overlay.clone(),
    }
}

/// Probes the commands. Missing data of a command becomes the reason why it cannot answer in full. `notes` are only about facts that `info` itself
/// shows.
fn probe(runtime: &Runtime, notes: &Collector) -> Probe {
    let Answers { list: answers, segments, imprecise } = answers(runtime);
    let gc = gc_with_properties(runtime).ok().map(|gc| {
        let gc = notes.with(gc);
        let collections = runtime.collections(notes).map(|c| c.process);
        gc_model(gc, runtime.standalone_gc(), collections, notes.take(gc.global_mechanisms()))
    });
    // If segments are missing, the size of the heap is unknown. The answers of the commands show that they are partial.
    let heap = runtime.gc().ok().map(|gc| tried(|| gc.data.size())).filter(|_| segments.as_ref().is_some_and(Answer::complete));
    Probe {
        gc,
        heap,
        segments_whole: segments.as_ref().is_some_and(Answer::complete),
        segments: segments.map(|s| s.data).unwrap_or_default(),
        answers,
        imprecise,
        managed_threads: runtime.thread_list().ok().map(|threads| len64(threads.len())),
    }
}

fn gc_model(
    gc: &Gc,
    standalone: Option<StandaloneGc>,
    collections: Option<CollectionsModel>,
    global_mechanisms: Option<Vec<NamedCount>>,
) -> GcModel {
    let f = gc.facts();
    GcModel {
        kind: gc.kind(),
        layout: gc.layout(),
        carved: gc.carved_model(),
        standalone,
        identifiers: f.identifiers.clone(),
        background: f.background,
        concurrent: concurrent(f, collections.as_ref()),
        datas: f.adaptation_mode.map(|m| m == 1),
        dynamic_adaptation_mode: f.adaptation_mode,
        heap_count: f.heap_count,
        max_generation: f.max_generation,
        lowest_address: f.lowest,
        highest_address: f.highest,
        state: f.state_name(),
        state_value: f.state,
        structures_valid: f.structures_valid,
        phase: f.phase,
        gc_in_progress: f.gc_in_progress(),
        limit: gc.limit(),
        suspended_by: f.suspended_by,
        collections,
        global_mechanisms,
    }
}

/// Whether background collections are enabled. The GC's identifiers show only whether the build supports them. `DOTNET_gcConcurrent` in the
/// environment is not conclusive, since a setting of the program takes precedence.
fn concurrent(facts: &Facts, collections: Option<&CollectionsModel>) -> Option<bool> {
    if !facts.background {
        // For a carved heap, the GC's facts are unknown.
        return (facts.total_generations > 0).then_some(false);
    }
    let by_mode = || match collections?.last.as_ref()?.latency_mode {
        GcLatencyMode::Interactive | GcLatencyMode::SustainedLowLatency => Some(true),
        GcLatencyMode::Batch => Some(false),
        GcLatencyMode::LowLatency | GcLatencyMode::NoGc => None,
    };
    if facts.background_runs() == Some(true) { Some(true) } else { by_mode() }
}

/// Returns the command line of `analyze`, if the dump can answer any command.
fn next(answers: &[AnswerModel], options: &[String], path: &str) -> Option<String> {
    let words = std::iter::once("analyze").chain(options.iter().map(String::as_str));
    answers.iter().any(|a| a.answer != AnswerKind::No).then(|| command_line(words, path))
}
