//! The answer of `info`: facts about process, dump, runtime and GC, and the commands to run next.

use super::collections::{counts_line, last_line, recorded_line};
use crate::analysis::{AnswerBasis, AnswerKind, AnswerModel, GcModel, InfoReport};
use crate::clr::values::utc;
use crate::model::{CrashReport, DumpKind, FaultModel, GcKind, GcLayout, GcPhase, LayoutSource, NamedCount, RuntimeKind, StandaloneGc};
use crate::output::advice;
use crate::output::columns::columns;
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{bytes, count, plural};

/// Formats the crash: `System.ApplicationException: out of luck, in Lab.Program.Crash(), thread 27678`.
fn crash_line(report: &CrashReport) -> String {
    let exception = report.exception.as_ref().map(|e| {
        let message = e.message.as_ref().map(|m| format!(": {m}")).unwrap_or_default();
        let method = e.stack.iter().find_map(|f| f.method.as_ref()).map(|m| format!(", in {m}")).unwrap_or_default();
        format!("{}{message}{method}", e.type_name.as_deref().unwrap_or("an exception"))
    });
    let what = exception.or_else(|| report.message.clone()).or_else(|| report.reason.clone());
    let thread = report.thread.map(|t| format!(", thread {t}")).unwrap_or_default();
    format!("{}{thread}", what.as_deref().unwrap_or("no reason given"))
}

/// Formats a standalone GC: `standalone libclrgc.so (interface 5.5, build ID 0123…)`.
fn standalone(gc: &StandaloneGc) -> String {
    let version = gc.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let build_id = gc.build_id.as_ref().map(|id| format!(", build ID {id}")).unwrap_or_default();
    format!("standalone {}{version} (interface {}{build_id})", gc.file, gc.interface_version)
}

fn gc_line(gc: &GcModel) -> String {
    if let Some(carved) = &gc.carved {
        let standalone = gc.standalone.as_ref().map(standalone);
        let collector = standalone.or_else(|| carved.collector.as_ref().map(|file| format!("standalone, {file}")));
        let collector = collector.unwrap_or_else(|| "not known".into());
        return format!("{collector}; heap carved out of memory");
    }
    let mut parts = Vec::new();
    parts.push(match gc.kind {
        Some(GcKind::Server) => "server".to_string(),
        Some(GcKind::Workstation) => "workstation".to_string(),
        None => "unknown kind".to_string(),
    });
    parts.extend(gc.layout.map(|l| match l {
        GcLayout::Regions => "regions".to_string(),
        GcLayout::Segments => "segments".to_string(),
    }));
    parts.extend(gc.concurrent.map(|on| if on { "concurrent" } else { "non-concurrent" }.to_string()));
    parts.extend((gc.datas == Some(true)).then(|| "DATAS".to_string()));
    parts.extend(gc.heap_count.map(|n| plural(n, "heap")));
    parts.extend(gc.standalone.as_ref().map(standalone));
    parts.join(", ")
}

/// Describes whether a collection was in progress.
fn running_line(gc: &GcModel) -> String {
    let running = match gc.phase {
        Some(GcPhase::Moving) => {
            "YES, COMPACTING OR SWEEPING: objects may be half moved, so answers about them may be wrong; take another dump"
        }
        Some(GcPhase::Marking) => "yes, a blocking collection that was marking, or about to begin or to end",
        Some(GcPhase::Background) => "yes, a background collection",
        Some(GcPhase::Suspending) => "no, but threads were being suspended",
        Some(GcPhase::None) => "no",
        None => "not known",
    };
    running.into()
}

/// Formats seconds since 1970 as date and time in UTC.
fn utc_seconds(seconds: u64) -> String {
    /// 1970-01-01 in ticks of `DateTime`, and ticks per second.
    const EPOCH: u64 = 621_355_968_000_000_000;
    const TICKS: u64 = 10_000_000;
    let time = seconds.checked_mul(TICKS).and_then(|ticks| utc(ticks.checked_add(EPOCH)?));
    time.unwrap_or_else(|| format!("{seconds} seconds after 1970-01-01 UTC"))
}

/// Formats a duration: `3 h 20 min`.
fn duration(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, s) => format!("{s} s"),
        (0, 0, m, s) => format!("{m} min {s} s"),
        (0, h, m, _) => format!("{h} h {m} min"),
        (d, h, _, _) => format!("{} {h} h", plural(d, "day")),
    }
}

impl Report for InfoReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.itself("info", self);
        let fact_columns = columns![(&'static str, String), text("fact", 20, |f| f.0), text("value", 60, |f| &f.1)];
        // Of several dumps, each block of CSV begins with the path.
        let in_list = to.view.path.clone();
        let path = in_list.iter().map(|path| ("path", path.clone()));
        to.table(Table::new(path.chain(self.facts()).collect::<Vec<_>>(), fact_columns).csv(true).shown(false));
        if let Some(path) = in_list {
            return to.line(format!("{path}: {}", self.in_short()));
        }
        to.facts(if to.view.detail { self.facts() } else { self.overview() });
        if let Some(error) = &self.runtime_error {
            to.gap();
            to.line(error);
        }
        to.gap_if(!self.answers.is_empty());
        if to.view.detail && !self.answers.is_empty() {
            to.title("This dump answers:");
            to.lines(self.answers.iter().map(|a| {
                let unwalked = if a.basis == AnswerBasis::Bound && a.answer == AnswerKind::Full { " (not walked)" } else { "" };
                format!("  {:<10} {}{unwalked}{}", a.command, a.answer, self.reason(a))
            }));
        } else if !self.answers.is_empty() {
            self.answered(to);
        }
        if let Some(more) = &self.more_precise {
            let files = more.files.iter().take(FILES).map(String::as_str).collect::<Vec<_>>().join(", ");
            let rest = more.files.len().saturating_sub(FILES);
            let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            let known = if self.answers.iter().any(|a| a.command == "stacks" && a.reason.is_some()) {
                String::new()
            } else {
                format!(" ({})", more.stacks())
            };
            to.gap();
            let line = |command: &str| format!("With the files of {files}{rest}, answers are more precise{known}: {command}");
            to.fitting(line(&more.command), line(&more.short_command));
        }
        if let Some(next) = &self.next {
            to.gap();
            to.line(format!("Next: {next}"));
        }
    }
}

/// Maximum number of files to name.
const FILES: usize = 6;

impl InfoReport {
    /// Returns why a command cannot be answered completely. A separate line lists the files that stacks need.
    fn reason(&self, a: &AnswerModel) -> String {
        let shortened = |reason: &String| -> Option<String> {
            self.more_precise.as_ref().filter(|_| a.command == "stacks")?;
            Some(reason.split_once(" without the files of ")?.0.to_owned())
        };
        let advised = |reason: &String| advice::joined(reason, advice::of_answer(a));
        let reason = a.reason.as_ref().map(|reason| shortened(reason).unwrap_or_else(|| advised(reason)));
        reason.map(|r| format!(": {r}")).unwrap_or_default()
    }

    /// Adds what the dump can answer: one line if all answers are complete.
    fn answered(&self, to: &mut Sections<'_>) {
        let full: Vec<&str> = self.answers.iter().filter(|a| a.answer == AnswerKind::Full).map(|a| a.command.as_str()).collect();
        let lacking = self.answers.iter().filter(|a| a.answer != AnswerKind::Full);
        match (full.is_empty(), full.len() == self.answers.len()) {
            (_, true) => to.line(format!("This dump answers {} in full.", full.join(", "))),
            (true, _) => to.line("This dump answers no command in full:"),
            (false, false) => to.line(format!("This dump answers in full: {}. Others:", full.join(", "))),
        }
        for a in lacking {
            to.line(format!("  {:<10} {}{}", a.command, a.answer, self.reason(a)));
        }
    }

    /// Summarizes the program, the runtime, the heap, and how the process ended.
    fn in_short(&self) -> String {
        let runtime = self.runtimes.first().map(|r| format!(".NET {}", r.version.as_deref().unwrap_or("(unknown version)")));
        let program = self.process_name.clone().map(|name| self.process_id.map_or(name.clone(), |pid| format!("{name} ({pid})")));
        let heap = self.heap.map(|heap| format!("GC heap {}", bytes(heap.allocated_bytes)));
        let threads = (self.kind != DumpKind::Snapshot).then(|| plural(self.os_threads, "thread"));
        let crash = self.fault.as_ref().map(FaultModel::words).or_else(|| self.crash.clone());
        let cut = (self.truncated_bytes > 0).then(|| "CUT OFF".to_string());
        let parts = [program, runtime, Some(format!("{} dump", self.kind)), heap, threads, cut, crash, self.runtime_error.clone()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Returns the facts for people: first the process, the dump last.
    fn overview(&self) -> Vec<(&'static str, String)> {
        let mut out = Vec::new();
        let mut fact = |name: &'static str, value: Option<String>| out.extend(value.map(|v| (name, v)));
        let is_dump = self.kind != DumpKind::Snapshot;
        let crash = self.fault.as_ref().map(FaultModel::words).or_else(|| self.crash.clone());
        let crashed = self.crashed_thread.map(|t| format!(" in thread {t}")).unwrap_or_default();
        fact("died of", crash.map(|c| format!("{c}{crashed}")));
        fact("P/Invoke", self.fault.as_ref().filter(|f| f.native).and_then(|f| f.pinvoke.as_ref()).map(ToString::to_string));
        fact("crash report", self.crash_report.as_ref().map(crash_line));
        let pid = self.process_id.map(|p| format!("process {p}"));
        let platform = is_dump.then(|| format!("{} {}", self.os.name(), self.architecture.name()));
        let program: Vec<String> = [self.process_name.clone(), pid, platform].into_iter().flatten().collect();
        fact("program", Some(program.join(", ")).filter(|s| !s.is_empty()));
        fact("command line", self.command_line.clone());
        let up = self.time.zip(self.started).and_then(|(time, started)| time.checked_sub(started));
        let up = up.map(|n| format!(", {} after its start", duration(n))).unwrap_or_default();
        fact("taken", self.time.map(|time| format!("{}{up}", utc_seconds(time))));
        for r in &self.runtimes {
            let kind = kind_of(r.kind);
            let index = if self.runtimes.len() > 1 { format!("{}: ", r.index) } else { String::new() };
            fact("runtime", Some(format!("{index}{kind} {}", r.version.as_deref().unwrap_or("(unknown version)"))));
        }
        let gc = self.gc.as_ref();
        fact("gc", gc.map(gc_line));
        fact("gc limit", gc.and_then(|gc| gc.limit).map(|limit| limit.words()));
        fact("settings", (!self.settings.is_empty()).then(|| self.settings.iter().map(|s| s.words()).collect::<Vec<_>>().join(" ")));
        fact(
            "gc heap",
            self.heap.map(|heap| {
                let free = match heap.free_region_bytes {
                    Some(0) => String::new(),
                    Some(free) => format!(", {} more in free regions", bytes(free)),
                    None => ", free regions unknown".to_string(),
                };
                format!("{} allocated, {} committed{free}", bytes(heap.allocated_bytes), bytes(heap.committed_bytes))
            }),
        );
        if let Some(c) = gc.and_then(|gc| gc.collections.as_ref()) {
            let last = c
                .last
                .as_ref()
                .map(|l| format!("; the last was GC #{} of gen{} ({})", l.index, l.generation, l.reason))
                .unwrap_or_default();
            fact("collections", Some(format!("{}{last}", counts_line(c))));
        }
        fact("gc running", gc.filter(|gc| gc.phase != Some(GcPhase::None)).map(running_line));
        fact("suspension", self.suspension.as_ref().map(|s| format!("under way: {}", s.words())));
        let managed = self.managed_threads.map(|n| format!(", {n} managed")).unwrap_or_default();
        fact("threads", is_dump.then(|| format!("{}{managed}", self.os_threads)));
        let by = self.writer.map(|w| format!(" by {w}")).unwrap_or_default();
        let what = match self.kind {
            DumpKind::Full | DumpKind::Heap | DumpKind::Mini | DumpKind::Triage => format!("{} dump{by}", self.kind),
            DumpKind::KernelCore => "kernel core".into(),
            DumpKind::Gcore => "core by gdb (gcore)".into(),
            DumpKind::Snapshot => "heap snapshot".into(),
            DumpKind::Unknown => format!("dump of an unknown kind{by}"),
        };
        let mapped = self.mapped_bytes.filter(|n| *n > self.captured_bytes && is_dump);
        let of = mapped.map(|n| format!(", {} of {} of memory", bytes(self.captured_bytes), bytes(n))).unwrap_or_default();
        let cut =
            if self.truncated_bytes > 0 { format!("; CUT OFF: {} missing at the end", bytes(self.truncated_bytes)) } else { String::new() };
        fact("dump", Some(format!("{what}, {}{of}{cut}", bytes(self.file_bytes))));
        out
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let pid = self.process_id.map(|p| format!(", process {p}")).unwrap_or_default();
        // A snapshot contains only the objects of a process. Facts about the rest of the process are left out.
        let is_dump = self.kind != DumpKind::Snapshot;
        let mut out = vec![
            (
                "dump",
                if is_dump {
                    format!("{}, {} {}{pid}", self.format, self.os.name(), self.architecture.name())
                } else {
                    format!("{}{pid}", self.format)
                },
            ),
            ("kind", format!("{} ({})", self.kind, self.kind_evidence)),
            (
                "size",
                if is_dump {
                    format!("{}, {} of memory captured", bytes(self.file_bytes), bytes(self.captured_bytes))
                } else {
                    bytes(self.file_bytes)
                },
            ),
        ];
        let mut fact = |name: &'static str, value: Option<String>| out.extend(value.map(|v| (name, v)));
        fact("written by", self.writer.map(|w| w.to_string()));
        fact("mapped", self.mapped_bytes.filter(|n| *n > self.captured_bytes).map(|n| format!("{} of address space", bytes(n))));
        fact("truncated", (self.truncated_bytes > 0).then(|| format!("{} missing at the end of the file", bytes(self.truncated_bytes))));
        fact("process", self.process_name.clone());
        fact("command line", self.command_line.clone());
        fact("modules", is_dump.then(|| count(self.modules)));
        let managed = self.managed_threads.map(|n| format!(", {n} managed")).unwrap_or_default();
        fact("threads", is_dump.then(|| format!("{}{managed}", self.os_threads)));
        let crashed = self.crashed_thread.map(|t| format!(" in thread {t}")).unwrap_or_default();
        let crash = self.fault.as_ref().map(FaultModel::words).or_else(|| self.crash.clone());
        fact("crash", crash.map(|c| format!("{c}{crashed}")));
        fact("P/Invoke", self.fault.as_ref().filter(|f| f.native).and_then(|f| f.pinvoke.as_ref()).map(ToString::to_string));
        if let Some(report) = &self.crash_report {
            fact("crash report", Some(crash_line(report)));
        }
        for r in &self.runtimes {
            let version = r.version.as_deref().unwrap_or("(unknown version)");
            let by = r.version_source.as_ref().map(|s| format!(" (by {s})")).unwrap_or_default();
            let kind = kind_of(r.kind);
            // The index matters only if there are several runtimes.
            let index = if self.runtimes.len() > 1 { format!("{}: ", r.index) } else { String::new() };
            fact("runtime", Some(format!("{index}{kind} {version}{by}, {}", r.module.as_deref().unwrap_or("unknown module"))));
            let gc = match r.gc {
                LayoutSource::Descriptor => "runtime descriptor".to_string(),
                LayoutSource::OverlayJson => "GC pointer data with bundled JSON".to_string(),
                LayoutSource::Synthesized => "synthesized from GcDacVars".to_string(),
                other => other.to_string(),
            };
            let overlay = r.overlay.as_ref().map(|o| format!(" ({o})")).unwrap_or_default();
            let vm = match r.vm {
                LayoutSource::Descriptor => "runtime descriptor".to_string(),
                LayoutSource::OverlayJson => format!("runtime pointer data with bundled JSON{overlay}"),
                LayoutSource::Overlay => format!("bundled overlay{overlay}"),
                LayoutSource::DebugHeader => format!("debug header of the program{overlay}"),
                LayoutSource::Inferred => "inferred from objects".to_string(),
                other => other.to_string(),
            };
            fact("layouts", Some(format!("VM: {vm}; GC: {gc}")));
        }
        for f in &self.module_files {
            fact("module file", Some(format!("{} supplied {}", f.file, bytes(f.bytes))));
        }
        if let Some(gc) = &self.gc {
            fact("gc", Some(gc_line(gc)));
            fact("gc limit", gc.limit.map(|limit| limit.words()));
            let generation = gc.max_generation.map(|n| format!("max generation {n}"));
            let bounds = gc.lowest_address.zip(gc.highest_address).map(|(l, h)| format!("bounds {l} to {h}"));
            let state = gc.state.as_ref().map(|s| format!("state {s}"));
            let state: Vec<String> = [generation, bounds, state].into_iter().flatten().collect();
            fact("gc state", Some(state.join(", ")).filter(|s| !s.is_empty()));
            let counts =
                |list: &Vec<NamedCount>| list.iter().map(|c| format!("{} {}", c.name, count(c.count))).collect::<Vec<_>>().join(", ");
            let mechanisms = gc.global_mechanisms.as_ref().map(counts).filter(|text| !text.is_empty());
            fact("gc mechanisms", mechanisms);
            let by = gc.suspended_by.filter(|a| !a.is_null()).map(|a| format!(" (suspended by the thread at {a})"));
            fact("gc running", Some(format!("{}{}", running_line(gc), by.unwrap_or_default())));
            fact("suspension", self.suspension.as_ref().map(|s| format!("under way: {}", s.words())));
            if let Some(c) = &gc.collections {
                fact("collections", Some(counts_line(c)));
                fact("last gc", c.last.as_ref().map(last_line));
                fact("last finished", c.recorded.first().map(recorded_line));
            }
        }
        fact("contracts", (!self.contracts.is_empty()).then(|| self.contracts.join(" ")));
        out
    }
}

/// Name of a kind of runtime, before its version.
fn kind_of(kind: RuntimeKind) -> &'static str {
    match kind {
        RuntimeKind::CoreClr => ".NET",
        RuntimeKind::NativeAot => ".NET NativeAOT",
        RuntimeKind::Mono => "Mono",
    }
}
