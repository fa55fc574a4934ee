use super::collections::{counts_line, last_line, recorded_line};
use crate::model::{
    AnswerBasis, AnswerKind, CrashReport, DumpKind, FaultModel, GcKind, GcLayout, GcModel, GcPhase, InfoReport, LayoutSource, MorePrecise,
    RuntimeKind,
};
use crate::output::report::{Report, Sections};
use crate::output::table::{Table, columns};
use crate::output::{bytes, count, plural};

/// `System.ApplicationException: out of luck, in Lab.Program.Crash(), thread 27678`.
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

fn gc_line(gc: &GcModel) -> String {
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
    parts.join(", ")
}

impl Report for InfoReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.itself("info", self);
        let fact_columns = columns::<(&'static str, String)>().text("fact", 20, |f| f.0).text("value", 60, |f| &f.1);
        to.table(Table::new(self.facts(), fact_columns).csv(true).shown(false));
        to.facts(self.facts());
        if let Some(error) = &self.runtime_error {
            to.gap();
            to.line(error);
        }
        if !self.answers.is_empty() {
            to.gap();
            to.title("This dump answers:");
            to.lines(self.answers.iter().map(|a| {
                // A separate line has the files.
                let stacks = self.more_precise.as_ref().filter(|_| a.command == "stacks" && a.reason.is_some());
                let reason = stacks.map(MorePrecise::stacks).or_else(|| a.reason.clone());
                let reason = reason.map(|r| format!(": {r}")).unwrap_or_default();
                let unwalked = if a.basis == AnswerBasis::Bound && a.answer == AnswerKind::Full { " (not walked)" } else { "" };
                format!("  {:<10} {}{unwalked}{reason}", a.command, a.answer)
            }));
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
            to.line(format!("More precise with the files of {files}{rest}{known}: {}", more.command));
        }
        if let Some(next) = &self.next {
            to.gap();
            to.line(format!("Next: {next}"));
        }
    }
}

/// Most files that are named.
const FILES: usize = 6;

impl InfoReport {
    fn facts(&self) -> Vec<(&'static str, String)> {
        let pid = self.process_id.map(|p| format!(", process {p}")).unwrap_or_default();
        // A snapshot has nothing of the process but objects.
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
            let kind = if r.kind == RuntimeKind::NativeAot { " NativeAOT" } else { "" };
            // The number matters where there is a choice.
            let index = if self.runtimes.len() > 1 { format!("{}: ", r.index) } else { String::new() };
            fact("runtime", Some(format!("{index}.NET{kind} {version}{by}, {}", r.module.as_deref().unwrap_or("unknown module"))));
            let gc = match r.gc {
                LayoutSource::Descriptor => "runtime descriptor".to_string(),
                LayoutSource::OverlayJson => "GC pointer data with bundled JSON".to_string(),
                LayoutSource::Synthesised => "synthesised from GcDacVars".to_string(),
                other => other.to_string(),
            };
            let overlay = r.overlay.as_ref().map(|o| format!(" ({o})")).unwrap_or_default();
            let vm = match r.vm {
                LayoutSource::Descriptor => "runtime descriptor".to_string(),
                LayoutSource::OverlayJson => format!("runtime pointer data with bundled JSON{overlay}"),
                LayoutSource::Overlay => format!("bundled overlay{overlay}"),
                LayoutSource::DebugHeader => format!("debug header of the program{overlay}"),
                other => other.to_string(),
            };
            fact("layouts", Some(format!("VM: {vm}; GC: {gc}")));
        }
        for f in &self.module_files {
            fact("module file", Some(format!("{} supplied {}", f.file, bytes(f.bytes))));
        }
        if let Some(gc) = &self.gc {
            fact("gc", Some(gc_line(gc)));
            let generation = gc.max_generation.map(|n| format!("max generation {n}"));
            let bounds = gc.lowest_address.zip(gc.highest_address).map(|(l, h)| format!("bounds {l} to {h}"));
            let state = gc.state.as_ref().map(|s| format!("state {s}"));
            let state: Vec<String> = [generation, bounds, state].into_iter().flatten().collect();
            fact("gc state", Some(state.join(", ")).filter(|s| !s.is_empty()));
            let running = match gc.phase {
                Some(GcPhase::Moving) => "YES, COMPACTING OR SWEEPING: objects may be half moved, do not trust this heap",
                Some(GcPhase::Marking) => "yes, a blocking collection that was marking, or about to begin or to end",
                Some(GcPhase::Background) => "yes, a background collection",
                Some(GcPhase::Suspending) => "no, but threads were being suspended",
                Some(GcPhase::None) => "no",
                None => "not known",
            };
            let by = gc.suspended_by.filter(|a| !a.is_null()).map(|a| format!(" (suspended by the thread at {a})"));
            let running = Some(format!("{running}{}", by.unwrap_or_default()));
            fact("gc running", running);
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
