//! What a dump is, and what it can answer.

use crate::base::SharedNotes;
use crate::clr::threads::Threads;
use crate::contract::{Process, Runtime};
use crate::dump::Trimmed;
use crate::gc::Gc;
use crate::memory::{diag_page, hex};
use crate::model::{
    AnswerKind, AnswerModel, DumpKind, DumpModel, DumpWriter, GcKind, GcLayout, GcModel, InfoReport, ModuleFileModel, RuntimeBrief,
    RuntimeModel, SegmentModel,
};

/// Flags of a minidump (`MINIDUMP_TYPE`, minidumpapiset.h) that tell its kind.
const WITH_FULL_MEMORY: u64 = 0x2;
const WITH_PRIVATE_READ_WRITE: u64 = 0x200;
const FILTER_TRIAGE: u64 = 0x10_0000;

/// The parts of the envelope that every command shares.
pub fn envelope_parts(process: &Process, runtime: Option<&Runtime>) -> (DumpModel, Option<RuntimeModel>) {
    let f = &process.dump.facts;
    let dump = DumpModel {
        path: f.path.display().to_string(),
        format: f.container,
        compression: f.compression,
        file_bytes: f.file_bytes,
        captured_bytes: f.captured_bytes,
        os: f.os,
        architecture: f.arch,
        pointer_bytes: process.memory.ptr_bytes(),
        process_id: f.pid,
    };
    let runtime = runtime.map(|r| RuntimeModel {
        version: r.version.clone(),
        module: r.site.module.as_ref().map(|m| m.path.clone()),
        base: r.base(),
        build_id: r.site.image.as_ref().and_then(|i| i.build_id.as_deref()).map(hex),
        vm: r.vm,
        gc: r.gc,
        overlay: r.overlay.clone(),
    });
    (dump, runtime)
}

/// What the readers can get out of this dump, each tried with notes of its own.
#[derive(Default)]
struct Probe {
    gc: Option<GcModel>,
    segments: Vec<SegmentModel>,
    answers: Vec<AnswerModel>,
    managed_threads: Option<u64>,
    segments_whole: bool,
}

/// Reads what `info` shows. `index` is the runtime to look at.
pub fn info(process: &Process, index: usize, notes: &SharedNotes) -> InfoReport {
    let f = &process.dump.facts;
    let runtime = process.runtime(index);
    let probe = runtime.as_ref().map(|r| probe(process, r, notes)).unwrap_or_default();
    let (kind, kind_evidence, writer) = kind(process, runtime.as_ref().ok().copied(), &probe);
    let runtimes = process.runtimes.as_ref().map(Vec::as_slice).unwrap_or_default();
    let crash = process.dump.crash.as_ref();
    InfoReport {
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
        time: f.time,
        modules: u64::try_from(process.dump.modules.len()).unwrap_or(u64::MAX),
        os_threads: u64::try_from(process.dump.threads.len()).unwrap_or(u64::MAX),
        crash: crash.map(|c| c.name.clone()),
        crashed_thread: crash.and_then(|c| c.thread),
        gc: probe.gc,
        managed_threads: probe.managed_threads,
        runtimes: runtimes.iter().map(brief).collect(),
        runtime_error: runtime.as_ref().err().map(ToString::to_string),
        module_files: runtimes.iter().filter_map(module_file).collect(),
        contracts: runtime.map(|r| r.descriptor.contracts.iter().map(|(n, c)| format!("{n}:{}", c.version)).collect()).unwrap_or_default(),
        next: next(&probe.answers, crash.is_some(), &f.path.display().to_string()),
        answers: probe.answers,
    }
}

fn module_file(r: &Runtime) -> Option<ModuleFileModel> {
    let file = r.site.filled.file.as_ref()?;
    Some(ModuleFileModel { file: file.display().to_string(), bytes: r.site.filled.bytes })
}

fn brief(r: &Runtime) -> RuntimeBrief {
    RuntimeBrief {
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

fn probe(process: &Process, runtime: &Runtime, notes: &SharedNotes) -> Probe {
    let mut out = Probe::default();
    let (memory, limits, d) = (&process.memory, &process.limits, &runtime.descriptor);
    let mut answer = |command: &str, some: bool, quiet: &SharedNotes, error: Option<String>| {
        let first = quiet.all().into_iter().find(|n| n.kind.makes_partial()).map(|n| n.message);
        let reason = error.or(first);
        let answer = match (&reason, some) {
            (None, _) => AnswerKind::Full,
            (Some(_), true) => AnswerKind::Partial,
            (Some(_), false) => AnswerKind::No,
        };
        out.answers.push(AnswerModel { command: command.into(), answer, reason });
    };
    match Gc::bind(memory, d, notes, limits) {
        Err(e) => {
            for command in ["heap", "segments", "handles", "oom"] {
                answer(command, false, &SharedNotes::new(), Some(e.to_string()));
            }
        }
        Ok(gc) => {
            let quiet = SharedNotes::new();
            if let Ok(gc) = Gc::bind(memory, d, &quiet, limits) {
                out.segments = gc.segments();
            }
            out.segments_whole = !quiet.partial();
            answer("heap", !out.segments.is_empty(), &quiet, None);
            answer("segments", !out.segments.is_empty(), &quiet, None);
            let sum = |f: fn(&SegmentModel) -> u64| out.segments.iter().map(f).fold(0u64, u64::saturating_add);
            let (allocated, captured) = (sum(|s| s.allocated_bytes), sum(|s| s.captured_bytes));
            let lacking = (captured < allocated || out.segments.is_empty())
                .then(|| format!("{captured} of the {allocated} bytes of objects are in the dump"));
            answer("objects", captured > 0, &SharedNotes::new(), lacking);
            let quiet = SharedNotes::new();
            let found = Gc::bind(memory, d, &quiet, limits).map(|gc| gc.probe_handles());
            let nothing = (found == Ok((0, 0))).then(|| "no handle table was found".to_string());
            answer("handles", found.is_ok_and(|f| f.1 > 0), &quiet, nothing.filter(|_| !quiet.partial()));
            let quiet = SharedNotes::new();
            let oom = Gc::bind(memory, d, &quiet, limits).map(|gc| gc.oom());
            answer("oom", oom.is_ok_and(|o| !o.heaps.is_empty()), &quiet, None);
            out.gc = Some(gc_model(&gc));
        }
    }
    let quiet = SharedNotes::new();
    match Threads::bind(memory, d, &quiet, limits) {
        Err(e) => answer("threads", false, &quiet, Some(e.to_string())),
        Ok(threads) => {
            let list = threads.list();
            answer("threads", !list.is_empty(), &quiet, None);
            out.managed_threads = Some(u64::try_from(list.len()).unwrap_or(u64::MAX));
        }
    }
    out
}

fn gc_model(gc: &Gc) -> GcModel {
    let f = gc.facts();
    GcModel {
        kind: Some(if f.server { GcKind::Server } else { GcKind::Workstation }),
        layout: Some(if f.regions { GcLayout::Regions } else { GcLayout::Segments }),
        identifiers: f.identifiers.clone(),
        background: f.background,
        datas: f.adaptation_mode.map(|m| m == 1),
        dynamic_adaptation_mode: f.adaptation_mode,
        heap_count: f.heap_count,
        max_generation: f.max_generation,
        lowest_address: f.lowest,
        highest_address: f.highest,
        state: f.state_name(),
        state_value: f.state,
        structures_valid: f.structures_valid,
        gc_in_progress: f.gc_in_progress(),
        global_mechanisms: gc.global_mechanisms(),
    }
}

/// Kind of dump, what tells it, and who wrote it.
fn kind(process: &Process, runtime: Option<&Runtime>, probe: &Probe) -> (DumpKind, String, Option<DumpWriter>) {
    let facts = &process.dump.facts;
    let allocated = probe.segments.iter().fold(0u64, |n, s| n.saturating_add(s.allocated_bytes));
    let captured = probe.segments.iter().fold(0u64, |n, s| n.saturating_add(s.captured_bytes));
    let heap_there = captured > 0 && captured.saturating_mul(10) >= allocated.saturating_mul(9);
    let trimmed = match facts.trimmed {
        None => "",
        Some(Trimmed { redacted: false }) => "; trimmed by gcdump",
        Some(Trimmed { redacted: true }) => "; trimmed by gcdump, strings and arrays overwritten",
    };
    let say = |kind, why: &str, writer| (kind, format!("{why}{trimmed}"), writer);
    if let Some(flags) = facts.minidump_flags {
        let has = |flag: u64| flags & flag != 0;
        let why = format!("minidump flags {flags:#x}");
        let kind = if has(WITH_FULL_MEMORY) {
            DumpKind::Full
        } else if has(FILTER_TRIAGE) {
            DumpKind::Triage
        } else if has(WITH_PRIVATE_READ_WRITE) || heap_there {
            DumpKind::Heap
        } else {
            DumpKind::Mini
        };
        return say(kind, &why, Some(DumpWriter::Windows).filter(|_| facts.os == crate::base::Os::Windows));
    }
    if diag_page(&process.memory).is_some() {
        // createdump does not record the type that it was asked for.
        let image = runtime.and_then(|r| r.site.image.as_ref());
        let code_there = image.is_some_and(|i| process.memory.captured(i.range).saturating_mul(10) >= i.range.len().saturating_mul(9));
        let from_file = runtime.is_some_and(|r| r.site.filled.bytes > 0);
        return match (heap_there, code_there && !from_file) {
            (true, true) => say(DumpKind::Full, "createdump; GC heap and code of the runtime captured", Some(DumpWriter::Createdump)),
            (true, false) => say(DumpKind::Heap, "createdump; GC heap captured, code of the runtime not", Some(DumpWriter::Createdump)),
            (false, _) if runtime.is_none() || probe.gc.is_none() => {
                say(DumpKind::Unknown, "createdump; no GC heap was found", Some(DumpWriter::Createdump))
            }
            (false, _) if probe.segments_whole => {
                say(DumpKind::Mini, "createdump; segment list captured, objects not", Some(DumpWriter::Createdump))
            }
            (false, _) => say(DumpKind::Triage, "createdump; neither objects nor the segment list captured", Some(DumpWriter::Createdump)),
        };
    }
    if facts.uncaptured_mappings > 0 {
        let why = format!("{} mappings without any captured byte, as kernels write them", facts.uncaptured_mappings);
        return say(DumpKind::KernelCore, &why, Some(DumpWriter::Kernel));
    }
    say(DumpKind::Gcore, "ELF core without createdump's page, all mappings captured", Some(DumpWriter::Gdb))
}

fn next(answers: &[AnswerModel], crashed: bool, path: &str) -> Option<String> {
    let can = |command: &str| answers.iter().any(|a| a.command == command && a.answer != AnswerKind::No);
    let command = if crashed && can("threads") {
        "threads"
    } else {
        let full = |command: &str| answers.iter().any(|a| a.command == command && a.answer == AnswerKind::Full);
        let useful = ["heap", "threads", "oom", "segments"];
        let objects = full("objects").then_some("stat");
        objects.or_else(|| useful.into_iter().find(|c| full(c))).or_else(|| useful.into_iter().find(|c| can(c)))?
    };
    Some(format!("gcdump {command} {path}"))
}
