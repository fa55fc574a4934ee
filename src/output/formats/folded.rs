//! Folded stacks, the input of flame graph tools and speedscope: frames from the outermost, separated by semicolons, and a count.

use std::io;

use super::{Out, Whole, Writer};
use crate::output::sanitize;
use crate::output::table::Heading;

pub(super) struct Folded;

fn refuse(out: &Out<'_>) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("{} has no stacks to fold: this format is for stacks", out.head.command))
}

impl Writer for Folded {
    fn has_sections(&self) -> bool {
        false
    }

    fn list(&self, out: &mut Out<'_>, _heading: &Heading) -> io::Result<()> {
        Err(refuse(out))
    }

    fn end(&self, out: &mut Out<'_>, answer: &dyn Whole) -> io::Result<()> {
        let Some(stacks) = answer.folded() else { return Err(refuse(out)) };
        // A semicolon within a name would start another frame.
        let frame = |name: &String| sanitize(name).replace(';', ",");
        stacks.iter().try_for_each(|(stack, count)| writeln!(out.to, "{} {count}", stack.iter().map(frame).collect::<Vec<_>>().join(";")))
    }
}
