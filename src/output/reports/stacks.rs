//! The answer of `stacks`: frames of each thread, or the merged tree.

use serde::Serialize;

use super::exceptions::trace;
use super::folds::{self, Indent, Part};
use super::threads::wait;
use crate::analysis::{
    FramePart, MergedFrame, StackFrameModel, StackGap, StackRepeat, StackRootModel, StacksReport, StacksRows, ThreadStackModel,
};
use crate::analysis::{folded_stacks, folded_tree, frame_label, repeated_frames};
use crate::base::{Name, file_name, len64};
use crate::model::{ArgumentModel, FaultModel, NativeFrameModel, StackFrameKind};
use crate::output::Paging;
use crate::output::advice;
use crate::output::columns::{Columns, Readers, columns};
use crate::output::plural;
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

/// Maximum number of frames printed for each thread; runaway recursion has more.
const MAX_FRAMES: usize = 200;
/// Maximum width of the tree's indent.
const MAX_INDENT: usize = 60;

/// A frame with its thread.
#[derive(Serialize)]
struct Row<'r> {
    managed_id: Option<u32>,
    os_id: Option<u64>,
    /// Index of the frame from 0, innermost first.
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
    columns![
        Row<'r>,
        id(managed_id),
        id(os_id),
        id(index),
        word(frame.kind, 8),
        address(frame.sp),
        address(frame.ip),
        address(frame.method_desc),
        id(frame.offset),
        text(frame.module, 30).extra(),
        text(frame.frame_type, 24),
        word(frame.tier, 18).extra(),
        text(frame.method, 80).name(),
        text(frame.file, 40),
        id(frame.line)
    ]
}

/// Why a frame is unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unwound {
    /// An exception has left the frame.
    Exception,
    /// The method has called its `finally` block without an exception.
    Finally,
}

/// A line of the list of frames.
#[derive(Clone)]
enum Listed<'r> {
    /// A frame, and why it is unwound.
    Frame(&'r StackFrameModel, Option<Unwound>),
    /// A cycle of frames.
    Cycle(&'r StackRepeat, &'r StackFrameModel),
    /// Folded frames of the framework: their number, and the line that replaces them.
    Folded(u64, String),
}

impl<'r> Listed<'r> {
    fn text(&self) -> String {
        match self {
            Listed::Frame(frame, unwound) => line(frame, *unwound),
            Listed::Cycle(r, _) => repeated_frames(&r.cycle, r.times, r.times),
            Listed::Folded(_, text) => text.clone(),
        }
    }

    /// Returns the frame, or the innermost frame of a cycle.
    fn frame(&self) -> Option<&'r StackFrameModel> {
        match self {
            Listed::Frame(frame, _) | Listed::Cycle(_, frame) => Some(frame),
            Listed::Folded(..) => None,
        }
    }

    /// Returns the frame if the line shows exactly one frame.
    fn single(&self) -> Option<&'r StackFrameModel> {
        match self {
            Listed::Frame(frame, _) => Some(frame),
            Listed::Cycle(..) | Listed::Folded(..) => None,
        }
    }

    /// Returns the number of frames in the line.
    fn frames(&self) -> u64 {
        match self {
            Listed::Frame(..) => 1,
            Listed::Cycle(r, _) => r.frames.saturating_mul(r.times),
            Listed::Folded(frames, _) => *frames,
        }
    }
}

/// Folds intermediate frames of the framework.
fn folded(list: Vec<Listed<'_>>) -> Vec<Listed<'_>> {
    let frames: Vec<Option<&StackFrameModel>> = list.iter().map(Listed::single).collect();
    let part = |part: Part| match part {
        Part::Item(i) => list.get(i).cloned(),
        Part::Fold(range) => {
            let of = frames.get(range).unwrap_or_default();
            let names = of.iter().flatten().filter_map(|f| f.method.as_deref());
            Some(Listed::Folded(len64(of.len()), folds::line(of.len(), names)))
        }
    };
    folds::of_stack(&frames).into_iter().filter_map(part).collect()
}

/// Returns the frames of a thread as lines.
fn listed(t: &ThreadStackModel) -> Vec<Listed<'_>> {
    // A runtime frame that a method set up for a call is in the list twice: before the method and within it. The second entry is left out.
    let first_method = t.frames.iter().position(|f| f.kind == StackFrameKind::Managed).unwrap_or(t.frames.len());
    let again = |i: usize, f: &StackFrameModel| {
        f.kind == StackFrameKind::Runtime
            && t.frames.get(..i).unwrap_or_default().iter().rev().take(first_method.max(8)).any(|b| b.address == f.address)
    };
    let (mut out, mut repeats, mut repeated) = (Vec::new(), t.repeats.iter().peekable(), 0u64);
    for (i, frame) in t.frames.iter().enumerate() {
        if let Some(repeat) = repeats.next_if(|repeat| repeat.first == len64(i)) {
            repeated = repeat.first.saturating_add(repeat.frames.saturating_mul(repeat.times));
            out.push(Listed::Cycle(repeat, frame));
        }
        if len64(i) >= repeated && !again(i, frame) {
            out.push(Listed::Frame(frame, unwound(t.frames.get(..i).unwrap_or_default(), frame)));
        }
    }
    out
}

fn frame_columns<'r>() -> Columns<'r, Listed<'r>> {
    columns![
        Listed<'r>,
        address("sp", |l| l.frame().map(|f| f.sp)).keep(2),
        address("ip", |l| l.frame().and_then(|f| f.ip)).keep(4),
        word("tier", 18, |l| l.single().and_then(|f| f.tier)).extra(),
        text("method", 100, Listed::text).name().least(60).keep(9)
    ]
}

/// Why a frame is unwound; `None` if it is not. `inner` are the frames that it has called, innermost first. When a method runs a `finally` block
/// without an exception, it calls the block itself. After an exception, frames of the runtime are between the two.
fn unwound(inner: &[StackFrameModel], frame: &StackFrameModel) -> Option<Unwound> {
    let own = |f: &&StackFrameModel| f.kind == StackFrameKind::Runtime && f.sp >= frame.sp;
    let called = inner.iter().rev().find(|f| !own(f));
    let called = called.filter(|f| f.part == Some(FramePart::Handler) && f.method_desc.is_some() && f.method_desc == frame.method_desc);
    frame.unwound.then_some(if called.is_some() { Unwound::Finally } else { Unwound::Exception })
}

/// Describes a frame.
fn line(f: &StackFrameModel, unwound: Option<Unwound>) -> String {
    let mut out = frame_label(f).to_string();
    if f.kind == StackFrameKind::Runtime {
        return out;
    }
    if let Some(offset) = f.offset {
        out.push_str(&format!(" +{offset:#x}"));
    }
    match (f.part, unwound) {
        (Some(FramePart::Handler), _) => out.push_str(" (handler)"),
        (Some(FramePart::Filter), _) => out.push_str(" (filter)"),
        (_, Some(Unwound::Exception)) => out.push_str(" (left by an exception)"),
        (_, Some(Unwound::Finally)) => out.push_str(" (its finally block runs)"),
        (_, None) => {}
    }
    if let Some(module) = &f.module {
        out.push_str(&format!(" [{module}]"));
    }
    out.push_str(&source(f.file.as_deref(), f.line));
    out
}

/// Formats the source line like .NET; empty if unknown.
fn source(file: Option<&str>, line: Option<u32>) -> String {
    file.zip(line).map(|(file, line)| format!(" in {}:line {line}", file_name(file))).unwrap_or_default()
}

fn root(r: &StackRootModel) -> String {
    let object = r.object.map_or_else(|| "not in the dump".into(), |o| o.to_string());
    let marks = [(r.interior, "interior"), (r.pinned, "pinned"), (!r.precise, "conservative")];
    let marks: Vec<&str> = marks.into_iter().filter(|m| m.0).map(|m| m.1).collect();
    let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
    format!("        {:<16} {object} {}{marks}", r.location, r.type_name.as_ref().map_or("?", Name::shown))
}

fn argument(a: &ArgumentModel) -> String {
    let (name, at) = (a.name.as_deref().unwrap_or("?"), a.location.as_deref().unwrap_or("-"));
    let value = match (&a.value, &a.reason) {
        (Some(value), _) => value.text.clone(),
        (None, reason) => format!("? ({})", reason.as_deref().unwrap_or("unknown")),
    };
    format!("        {:<16} {} {name} = {value}", at, a.type_name)
}

/// Returns the gaps that matter for what is shown: gaps in the references of known frames matter only with `--roots`.
fn gaps(t: &ThreadStackModel) -> impl Iterator<Item = &StackGap> {
    let roots = t.frames.iter().any(|f| f.roots.is_some());
    t.gaps.iter().filter(move |gap| roots || gap.loses_frames)
}

/// Formats the locals of a frame. Locals without name and value, mostly compiler temporaries, are only counted.
fn local_lines(locals: &[ArgumentModel]) -> Vec<String> {
    let unnamed = |a: &ArgumentModel| {
        let slot = a.name.as_deref().and_then(|name| name.strip_prefix("local_"));
        slot.is_some_and(|slot| slot.bytes().all(|b| b.is_ascii_digit()))
    };
    let (left_out, shown): (Vec<&ArgumentModel>, Vec<&ArgumentModel>) = locals.iter().partition(|a| a.value.is_none() && unnamed(a));
    let title = (!locals.is_empty()).then(|| "      locals".to_string());
    let more = (!left_out.is_empty()).then(|| format!("        {} without a name and a value", left_out.len()));
    title.into_iter().chain(shown.into_iter().map(argument)).chain(more).collect()
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
    columns![NativeFrameModel, address(sp).keep(2), address(ip).keep(4), text("native", 100, NativeFrameModel::place).least(60).keep(9)]
}

/// Describes where a thread crashed, and its native frames.
fn fault<'r>(to: &mut Sections<'r>, f: &'r FaultModel) {
    to.line(format!("  {}", f.words()));
    if !f.native {
        return;
    }
    if let Some(method) = &f.pinvoke {
        to.line(format!("  in the P/Invoke {method}"));
    }
    if !f.at_fault && !f.frames.is_empty() {
        to.line("  the registers at the fault are not in the dump; frames from the signal handler on:");
    }
    if !f.frames.is_empty() {
        to.table(Table::new(&f.frames, native_columns()));
    }
    if let Some(end) = f.end.as_ref().filter(|_| !f.ends_in_managed_code()) {
        to.line(format!("  native frames end here: {end}"));
    }
}

/// Describes a crashed thread that the runtime does not know.
fn native_thread<'r>(to: &mut Sections<'r>, f: &'r FaultModel) {
    let os = f.thread.map_or_else(|| "?".into(), |id| id.to_string());
    to.alarm(format!("Native thread (OS {os}) CRASHED"));
    fault(to, f);
    to.gap();
}

/// Describes a line with the contents of its frames. For a cycle, describes only the frames of the innermost repetition.
fn detailed<'r>(to: &mut Sections<'r>, t: &'r ThreadStackModel, l: &Listed<'r>) {
    let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let frames = match l {
        Listed::Cycle(r, _) => t.frames.get(at(r.first)..at(r.first.saturating_add(r.frames))).unwrap_or_default(),
        Listed::Frame(frame, _) => std::slice::from_ref(*frame),
        Listed::Folded(..) => &[],
    };
    for (i, f) in frames.iter().enumerate() {
        let why = if let Listed::Frame(_, why) = l { *why } else { unwound(frames.get(..i).unwrap_or_default(), f) };
        let ip = f.ip.map_or_else(String::new, |ip| ip.to_string());
        to.line(format!("  {} {ip} {}", f.sp, line(f, why)));
        to.lines(f.arguments.iter().flatten().map(argument));
        to.lines(f.locals.iter().flat_map(|locals| local_lines(locals)));
        to.lines(f.roots.iter().flatten().map(root));
    }
    if let Listed::Cycle(r, _) = l {
        to.line(format!("  … {}", repeated_frames(&r.cycle, r.times, r.times)));
    }
}

fn thread<'r>(to: &mut Sections<'r>, t: &'r ThreadStackModel, crash: Option<&'r FaultModel>, fold: bool) {
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
    let with_more = t.frames.iter().any(|f| f.roots.is_some() || f.arguments.is_some() || f.locals.is_some());
    let mut shown = listed(t);
    // Frames are not folded if references or variables are listed with them.
    if fold && !with_more {
        shown = folded(shown);
    }
    let more = shown.split_off(shown.len().min(MAX_FRAMES)).iter().map(Listed::frames).fold(0, u64::saturating_add);
    if shown.is_empty() {
        to.line("  no managed frames");
    } else if with_more {
        for l in &shown {
            detailed(to, t, l);
        }
    } else {
        to.table(Table::new(shown, frame_columns()));
    }
    if more > 0 {
        to.line(format!("  … {} (--json lists all)", plural(more, "more frame")));
    }
    for gap in gaps(t) {
        to.line(format!("  not precise: {}", advice::joined(&gap.reason, advice::of_gap(gap))));
    }
    to.gap();
}

/// Columns by which threads can be sorted.
fn list_columns<'r>() -> Columns<'r, ThreadStackModel> {
    columns![ThreadStackModel, id(managed_id), id(os_id), names(name, 16), count("frames", |t| t.frames.len())]
}

fn indented(depth: u32, text: &str) -> String {
    format!("{}{text}", " ".repeat(usize::try_from(depth).unwrap_or(MAX_INDENT).min(MAX_INDENT)))
}

fn merged_text(f: &MergedFrame) -> String {
    let ids: Vec<String> = f.managed_ids.iter().take(8).map(ToString::to_string).collect();
    let more = if f.managed_ids.len() > ids.len() { ", …" } else { "" };
    let ids = if ids.is_empty() { String::new() } else { format!("  ← {}{more}", ids.join(", ")) };
    let frame = f.times.map_or_else(|| f.frame.to_string(), |times| repeated_frames(&f.frame, times.least, times.most));
    format!("{frame}{}{ids}", source(f.file.as_deref(), f.line))
}

/// A row of merged stacks on the screen.
#[derive(Clone)]
struct MergedRow<'r> {
    threads: u64,
    text: String,
    module: Option<&'r Name>,
}

/// Returns the rows of merged stacks for the screen.
fn merged_rows(frames: &[MergedFrame], fold: bool) -> Vec<MergedRow<'_>> {
    let parts = if fold { folds::of_merged(frames) } else { (0..frames.len()).map(Part::Item).collect() };
    let mut indent = Indent::default();
    let row = |part: Part| match part {
        Part::Item(i) => {
            let f = frames.get(i)?;
            Some(MergedRow { threads: f.threads, text: indented(indent.shown(f.depth), &merged_text(f)), module: f.module.as_ref() })
        }
        Part::Fold(range) => {
            let of = frames.get(range)?;
            let (first, last) = (of.first()?, of.last()?);
            let text = indented(indent.shown(first.depth), &folds::line(of.len(), of.iter().filter_map(|f| f.method.as_deref())));
            indent.fold(last.depth, of.len());
            Some(MergedRow { threads: first.threads, text, module: None })
        }
    };
    parts.into_iter().filter_map(row).collect()
}

fn shown_columns<'r>() -> Columns<'r, MergedRow<'r>> {
    columns![
        MergedRow<'r>,
        count(threads),
        text("frame" = text, 100).name().least(60),
        text("module", 30, |r| r.module.map(|m| &**m)).extra()
    ]
}

fn merged_columns<'r>() -> Columns<'r, MergedFrame> {
    columns![
        MergedFrame,
        count(threads),
        text("frame", 100, |f| indented(f.depth, &merged_text(f))).name().least(60),
        text(module, 30).extra(),
        address(method_desc).only(Readers::Machines)
    ]
}

impl Report for StacksReport {
    fn page(&mut self, to: &mut Paging) {
        if let StacksRows::Threads { threads, not_listed } = &mut self.rows {
            *not_listed = to.whole_list("threads", threads, &list_columns());
        }
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let (threads, frames, merged): (&[_], &[_], _) = match &self.rows {
            StacksRows::Threads { threads, .. } => (threads, &[], false),
            StacksRows::Merged { merged } => (&[], merged, true),
        };
        to.table(Table::records("frame", rows(threads), row_columns()).csv(!merged).shown(false));
        to.table(Table::records("merged-frame", frames, merged_columns()).csv(merged).shown(false));
        let fold = !to.view.framework;
        let rows = merged_rows(frames, fold);
        to.table(Table::new(rows, shown_columns()).shown(merged));
        to.records("thread-stack", threads);
        let fault = self.fault.as_ref().filter(|fault| fault.native || fault.stack_overflow);
        if let Some(f) = fault.filter(|f| f.managed_id.is_none()) {
            to.gap_if(merged);
            to.part(|to| native_thread(to, f));
        }
        for t in threads {
            to.part(move |to| thread(to, t, fault.filter(|_| t.crashed), fold));
        }
        if let StacksRows::Threads { not_listed, .. } = &self.rows {
            to.not_listed(*not_listed, "thread");
        }
        to.gap_if(merged);
        to.line(format!("{} with a stack", plural(self.total, "managed thread")));
    }

    fn folded(&self) -> Option<Vec<(Vec<String>, u64)>> {
        Some(match &self.rows {
            StacksRows::Merged { merged } => folded_tree(merged),
            StacksRows::Threads { threads, .. } => folded_stacks(threads),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Addr;

    #[test]
    fn a_finally_block_that_its_method_called_is_not_an_exception() {
        let frame = |kind, sp, method: Option<u64>, part| {
            let mut frame = StackFrameModel::new(kind, Addr(sp));
            (frame.method_desc, frame.part) = (method.map(Addr), part);
            frame
        };
        let managed = |sp, method, part| frame(StackFrameKind::Managed, sp, Some(method), Some(part));
        let runtime = |sp| frame(StackFrameKind::Runtime, sp, None, None);
        let mut body = managed(0x80, 1, FramePart::Body);
        let handler = managed(0x40, 1, FramePart::Handler);
        assert_eq!(unwound(std::slice::from_ref(&handler), &body), None);
        body.unwound = true;
        for (inner, expected) in [
            (vec![handler.clone()], Unwound::Finally),
            // The explicit frame is within the body.
            (vec![handler.clone(), runtime(0x90)], Unwound::Finally),
            (vec![managed(0x20, 1, FramePart::Handler), handler.clone()], Unwound::Finally),
            (vec![handler.clone(), runtime(0x60)], Unwound::Exception),
            (vec![handler.clone(), managed(0x60, 2, FramePart::Body)], Unwound::Exception),
            (vec![managed(0x40, 2, FramePart::Handler)], Unwound::Exception),
            (vec![], Unwound::Exception),
        ] {
            assert_eq!(unwound(&inner, &body), Some(expected), "{inner:?}");
        }
    }
}
