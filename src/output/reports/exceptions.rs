//! The answer of `exceptions`: exceptions with their messages and traces, or their numbers by type.

use super::number;
use crate::analysis::{ExceptionGroup, ExceptionModel, ExceptionsReport, ExceptionsRows, FrameModel, HeapExceptionModel};
use crate::base::{Name, len64};
use crate::output::Paging;
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{count, plural};

/// Maximum number of frames printed for each exception; runaway recursion has more.
const MAX_FRAMES: usize = 64;

/// Prefix of an inner exception.
const INNER: &str = "---> ";

/// Formats an HRESULT: `0x80131600`.
fn hresult(n: i32) -> String {
    format!("{:#010x}", n.cast_unsigned())
}

fn title(type_name: Option<&Name>, message: Option<&str>) -> String {
    let name = type_name.map_or("<unknown type>", Name::shown);
    message.map_or_else(|| name.into(), |m| format!("{name}: {m}"))
}

/// Prints the exception like `Exception.ToString`. Adds HResult and address to the first line, and offset and module to each frame.
pub(super) fn trace<'r>(to: &mut Sections<'r>, exception: &'r ExceptionModel) {
    traces(to, vec![("", exception)]);
}

/// Prints the exceptions in `stack`, last first, each with its prefix and followed by its inner exceptions.
fn traces<'r>(to: &mut Sections<'r>, mut stack: Vec<(&'static str, &'r ExceptionModel)>) {
    while let Some((arrow, e)) = stack.pop() {
        let code = e.hresult.map(|n| format!(", HResult {}", hresult(n))).unwrap_or_default();
        to.line(format!("{arrow}{} ({}{code})", title(e.type_name.as_ref(), e.message.as_deref()), e.address));
        remote(to, e.remote_stack_text.as_deref());
        frames(to, &e.stack);
        // The first inner exception is printed next, so it is pushed last.
        stack.extend(e.inners.iter().rev().map(|i| (INNER, i)));
        stack.extend(e.inner.as_deref().map(|i| (INNER, i)));
    }
}

/// Prints the text of frames from an earlier throw.
fn remote<'r>(to: &mut Sections<'r>, text: Option<&'r str>) {
    to.lines(text.into_iter().flat_map(str::lines).map(ToString::to_string));
}

/// Returns the number of frames of a stack trace, including those recorded only as text.
fn frame_count(e: &HeapExceptionModel) -> u64 {
    let of_text = e.remote_stack_text.iter().flat_map(|text| text.lines()).filter(|line| line.trim_start().starts_with("at "));
    number(&e.stack).saturating_add(len64(of_text.count()))
}

/// Describes the location of a frame: its offset in the method's code, the module, and the source line as .NET prints it.
fn place(f: &FrameModel) -> String {
    let mut out = f.offset.map_or_else(String::new, |offset| format!(" +{offset:#x}"));
    if let Some(module) = &f.module {
        out.push_str(&format!(" [{module}]"));
    }
    if let Some((file, line)) = f.file.as_ref().zip(f.line) {
        out.push_str(&format!(" in {file}:line {line}"));
    }
    out
}

fn frames<'r>(to: &mut Sections<'r>, frames: &'r [FrameModel]) {
    for f in frames.iter().take(MAX_FRAMES) {
        let unknown = || f.method_desc.map_or_else(|| format!("<code {}>", f.ip), |method| format!("<method {method}>"));
        let method = f.method.as_ref().map_or_else(unknown, ToString::to_string);
        to.line(format!("   at {method}{}", place(f)));
        if f.last_of_foreign {
            to.line("   --- End of stack trace from previous location ---");
        }
    }
    match frames.len().saturating_sub(MAX_FRAMES) {
        0 => {}
        more => to.line(format!("   … {} (--json lists all)", plural(len64(more), "more frame"))),
    }
}

fn exception_columns<'r>() -> Columns<'r, HeapExceptionModel> {
    columns![
        HeapExceptionModel,
        address(address).keep(8),
        names(type_name, 40),
        text("hresult", 10, |e| e.hresult.map(hresult)).whole().keep(4),
        count("frames", frame_count).keep(3),
        id(thread),
        text("role" = thread_role, 12).whole().keep(6),
        address(inner).keep(2),
        text(message, 40).lines(2).keep(8)
    ]
}

fn group_columns<'r>() -> Columns<'r, ExceptionGroup> {
    columns![
        ExceptionGroup,
        count(count).keep(9),
        count(thrown).keep(6),
        address(example).keep(7),
        names(type_name, 40),
        names("method" = display, 40).keep(8),
        text(message, 40).lines(2).keep(5)
    ]
}

impl Report for ExceptionsReport {
    fn page(&mut self, to: &mut Paging) {
        self.not_listed = match &mut self.rows {
            ExceptionsRows::Exceptions { exceptions } => to.whole_list("exceptions", exceptions, &exception_columns()),
            ExceptionsRows::Groups => to.whole_list("groups", &mut self.groups, &group_columns()),
        };
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let all = self.rows.fields();
        let (some, listed) = (self.total > Some(0), all.exceptions.is_some());
        to.table(Table::records("exception-group", &self.groups, group_columns()).csv(!listed).shown(some && !listed));
        let exceptions = all.exceptions.into_iter().flatten();
        to.table(Table::records("exception", exceptions.clone(), exception_columns()).csv(listed).shown(some && listed));
        let Some(total) = self.total else {
            return to.line("Exceptions cannot be read (see the warnings); gcdump stat --type '*Exception' counts them by type.");
        };
        if !some {
            return to.none("No exception objects found");
        }
        to.not_listed(self.not_listed, if listed { "exception" } else { "group" });
        to.gap();
        for e in exceptions.filter(|e| e.inner_exceptions.is_some()) {
            to.line(format!("{} ({})", title(e.type_name.as_ref(), e.message.as_deref()), e.address));
            remote(to, e.remote_stack_text.as_deref());
            frames(to, &e.stack);
            traces(to, e.inner_exceptions.iter().flatten().rev().map(|inner| (INNER, inner)).collect());
            to.gap();
        }
        let distinct = len64(self.groups.len()).saturating_add(self.not_listed.filter(|_| !listed).unwrap_or(0));
        let kept = if self.preallocated > 0 {
            format!("; {} preallocated by the runtime, never thrown", count(self.preallocated))
        } else {
            String::new()
        };
        to.line(format!("{}, {} by type and throwing method{kept}", plural(total, "exception object"), plural(distinct, "kind")));
    }
}
