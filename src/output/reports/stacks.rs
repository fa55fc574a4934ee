use serde::Serialize;

use super::exceptions::trace;
use super::threads::wait;
use crate::analysis::{folded_stacks, frame_label};
use crate::base::{Name, file_name};
use crate::model::{
    ArgumentModel, CodeTier, FaultModel, FramePart, MergedFrame, NativeFrameModel, StackCoverage, StackFrameKind, StackFrameModel, StackGap,
    StackRootModel, StacksReport, ThreadStackModel,
};
use crate::output::plural;
use crate::output::report::{Report, Sections};
use crate::output::table::{Columns, Readers, Table, columns};

/// Maximum frames printed per thread, for runaway recursion.
const MAX_FRAMES: usize = 200;
/// Maximum width of the tree's indent.
const MAX_INDENT: usize = 60;

/// A frame with its thread.
#[derive(Serialize)]
struct Row<'r> {
    managed_id: Option<u32>,
    os_id: Option<u64>,
    /// From 0, innermost first.
    index: usize,
    #[serde(flatten)]
    frame: &'r StackFrameModel,
}

fn rows(threads: &[ThreadStackModel]) -> impl Iterator<Item = Row<'_>> + Clone {
    threads.iter().flat_map(|t| {
        let frames = t.frames.iter().enumerate();
        frames.map(move |(index, frame)| Row { managed_id: t.managed_id, os_id: t.os_id, index, frame })
    })
}

fn row_columns<'r>() -> Columns<'r, Row<'r>> {
    columns::<Row<'r>>()
        .id("managed_id", |r| r.managed_id.map(u64::from))
        .id("os_id", |r| r.os_id)
        .id("index", |r| u64::try_from(r.index).ok())
        .text("kind", 8, |r| r.frame.kind.name())
        .whole()
        .address("sp", |r| r.frame.sp)
        .address("ip", |r| r.frame.ip)
        .address("method_desc", |r| r.frame.method_desc)
        .id("offset", |r| r.frame.offset)
        .text_or_none("module", 30, |r| r.frame.module.as_deref())
        .extra()
        .text_or_none("frame_type", 24, |r| r.frame.frame_type.as_deref())
        .text_or_none("tier", 18, |r| r.frame.tier.map(CodeTier::name))
        .whole()
        .extra()
        .text_or_none("method", 80, |r| r.frame.method.as_deref())
        .name()
        .text_or_none("file", 40, |r| r.frame.file.as_deref())
        .id("line", |r| r.frame.line.map(u64::from))
}

fn frame_columns<'r>() -> Columns<'r, StackFrameModel> {
    columns::<StackFrameModel>()
        .address("sp", |f| f.sp)
        .keep(2)
        .address("ip", |f| f.ip)
        .keep(4)
        .text_or_none("tier", 18, |f| f.tier.map(CodeTier::name))
        .whole()
        .extra()
        .made("method", 100, line)
        .name()
        .least(60)
        .keep(9)
}

/// A frame in words.
fn line(f: &StackFrameModel) -> String {
    let mut out = frame_label(f).to_string();
    if f.kind == StackFrameKind::Runtime {
        if let Some(method) = &f.display {
            out.push_str(&format!(" {method}"));
        }
        return out;
    }
    if let Some(offset) = f.offset {
        out.push_str(&format!(" +{offset:#x}"));
    }
    match f.part {
        Some(FramePart::Handler) => out.push_str(" (handler)"),
        Some(FramePart::Filter) => out.push_str(" (filter)"),
        _ if f.unwound => out.push_str(" (left by an exception)"),
        _ => {}
    }
    if let Some(module) = &f.module {
        out.push_str(&format!(" [{module}]"));
    }
    out.push_str(&source(f.file.as_deref(), f.line));
    out
}

/// The source line as .NET prints it; empty if it is not known.
fn source(file: Option<&str>, line: Option<u32>) -> String {
    file.zip(line).map(|(file, line)| format!(" in {}:line {line}", file_name(file))).unwrap_or_default()
}

fn root(r: &StackRootModel) -> String {
    let object = r.object.map_or_else(|| "not in the dump".into(), |o| o.to_string());
    let marks = [(r.interior, "interior"), (r.pinned, "pinned"), (!r.precise, "may be none")];
    let marks: Vec<&str> = marks.into_iter().filter(|m| m.0).map(|m| m.1).collect();
    let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
    format!("        {:<16} {object} {}{marks}", r.location, r.type_name.as_ref().map_or("?", Name::shown))
}

fn argument(a: &ArgumentModel) -> String {
    let (name, at) = (a.name.as_deref().unwrap_or("?"), a.location.as_deref().unwrap_or("-"));
    let value = match (&a.value, &a.reason) {
        (Some(value), _) => value.text.clone(),
        (None, reason) => format!("? ({})", reason.as_deref().unwrap_or("not told")),
    };
    format!("        {:<16} {} {name} = {value}", at, a.type_name)
}

/// The gaps that matter to what is shown: where only the references of known frames are unknown, nothing is missing without these.
fn gaps(t: &ThreadStackModel) -> impl Iterator<Item = &StackGap> {
    let roots = t.frames.iter().any(|f| f.roots.is_some());
    t.gaps.iter().filter(move |gap| roots || gap.loses_frames)
}

fn title(t: &ThreadStackModel) -> String {
    let id = t.managed_id.map_or_else(|| "?".into(), |id| id.to_string());
    let os = t.os_id.map_or_else(String::new, |os| format!(" (OS {os})"));
    let name = t.name.as_ref().map_or_else(String::new, |name| format!(" {name:?}"));
    let crashed = if t.crashed { " CRASHED" } else { "" };
    let coverage = match t.coverage {
        other if gaps(t).next().is_some() => format!(" – {other}"),
        _ => String::new(),
    };
    format!("Thread {id}{os}{name}{crashed}{coverage}")
}

fn native_columns<'r>() -> Columns<'r, NativeFrameModel> {
    columns::<NativeFrameModel>()
        .address("sp", |f| f.sp)
        .keep(2)
        .address("ip", |f| f.ip)
        .keep(4)
        .made("native", 100, NativeFrameModel::place)
        .least(60)
        .keep(9)
}

/// Where a thread crashed, and its native frames.
fn fault<'r>(to: &mut Sections<'r>, f: &'r FaultModel) {
    to.line(format!("  {}", f.words()));
    if let Some(method) = &f.pinvoke {
        to.line(format!("  in the P/Invoke {method}"));
    }
    if !f.at_fault && !f.frames.is_empty() {
        to.line("  where it was raised is not in the dump; frames from the handler of the signal:");
    }
    if !f.frames.is_empty() {
        to.table(Table::new(&f.frames, native_columns()));
    }
    if let Some(end) = f.end.as_ref().filter(|_| !f.ends_in_managed_code()) {
        to.line(format!("  native frames end here: {end}"));
    }
}

/// The crashed thread, where the runtime does not know it.
fn native_thread<'r>(to: &mut Sections<'r>, f: &'r FaultModel) {
    let os = f.thread.map_or_else(|| "?".into(), |id| id.to_string());
    to.alarm(format!("Native thread (OS {os}) CRASHED"));
    fault(to, f);
    to.gap();
}

fn thread<'r>(to: &mut Sections<'r>, t: &'r ThreadStackModel, crash: Option<&'r FaultModel>) {
    if t.crashed {
        to.alarm(title(t))
    } else {
        to.title(title(t))
    }
    if let Some(crash) = crash {
        fault(to, crash);
    }
    if let Some(waits_for) = &t.waits_for {
        to.line(format!("  waits for {}", wait(waits_for)));
    }
    if let Some(exception) = &t.exception {
        trace(to, exception);
    }
    // The runtime's own list shows a frame that a method has set up for a call twice: before and inside the method.
    let first_method = t.frames.iter().position(|f| f.kind == StackFrameKind::Managed).unwrap_or(t.frames.len());
    let repeated = |i: usize, f: &StackFrameModel| {
        f.kind == StackFrameKind::Runtime
            && t.frames.get(..i).unwrap_or_default().iter().rev().take(first_method.max(8)).any(|b| b.address == f.address)
    };
    let shown: Vec<&StackFrameModel> =
        t.frames.iter().enumerate().filter(|(i, f)| !repeated(*i, f)).map(|(_, f)| f).take(MAX_FRAMES).collect();
    let with_more = shown.iter().any(|f| f.roots.is_some() || f.arguments.is_some());
    if shown.is_empty() {
        to.line("  no managed frames");
    } else if with_more {
        for f in shown {
            let ip = f.ip.map_or_else(String::new, |ip| ip.to_string());
            to.line(format!("  {} {ip} {}", f.sp, line(f)));
            to.lines(f.arguments.iter().flatten().map(argument));
            to.lines(f.roots.iter().flatten().map(root));
        }
    } else {
        to.table(Table::new(shown, frame_columns()));
    }
    match t.frames.len().saturating_sub(MAX_FRAMES) {
        0 => {}
        more => to.line(format!("  … about {more} more frames (see --json)")),
    }
    for gap in gaps(t) {
        to.line(format!("  not precise: {}", gap.reason));
    }
    to.gap();
}

fn merged_columns<'r>() -> Columns<'r, MergedFrame> {
    columns::<MergedFrame>()
        .count("threads", |f| f.threads)
        .made("frame", 100, |f| {
            let indent = usize::try_from(f.depth).unwrap_or(MAX_INDENT).min(MAX_INDENT);
            let ids: Vec<String> = f.managed_ids.iter().take(8).map(ToString::to_string).collect();
            let more = if f.managed_ids.len() > ids.len() { ", …" } else { "" };
            let ids = if ids.is_empty() { String::new() } else { format!("  ← {}{more}", ids.join(", ")) };
            format!("{}{}{}{ids}", " ".repeat(indent), f.frame, source(f.file.as_deref(), f.line))
        })
        .name()
        .least(60)
        .text_or_none("module", 30, |f| f.module.as_deref())
        .extra()
        .address("method_desc", |f| f.method_desc)
        .only(Readers::Machines)
}

impl Report for StacksReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let merged = self.merged.is_some();
        let threads = self.threads.as_deref().unwrap_or_default();
        to.table(Table::records("frame", rows(threads), row_columns()).csv(!merged).shown(false));
        to.table(Table::records("merged-frame", self.merged.iter().flatten(), merged_columns()).csv(merged).shown(merged));
        to.records("thread-stack", threads);
        let fault = self.fault.as_ref().filter(|fault| fault.native);
        if let Some(f) = fault.filter(|f| f.managed_id.is_none()) {
            to.part(|to| native_thread(to, f));
        }
        for t in threads {
            to.part(move |to| thread(to, t, fault.filter(|_| t.crashed)));
        }
        to.gap_if(merged);
        to.line(format!("{} with a stack", plural(self.total, "managed thread")));
    }

    fn folded(&self) -> Option<Vec<(Vec<String>, u64)>> {
        Some(folded_stacks(self.threads.as_deref().unwrap_or_default()))
    }
}
