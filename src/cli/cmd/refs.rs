use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::StacksArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::Exit;
use super::super::line::is_path;
use super::super::object_name::{ObjectName, object_and_dump};
use super::super::select::{FilterArg, SortArg, TopArg, TypesArg};
use super::super::values;

use crate::analysis::{RefBy, RefSort, RefsReport};
use crate::analysis::{RefsQuery, refs};
use crate::base::Answer;
use crate::output::Paging;

/// References of an object, both ways: which objects point at it through which fields, and at which it points. With --type, of all objects
/// of the type, merged by type and field.
///
/// Incoming references come from all objects of the heap, garbage as well; gcdump path shows what keeps an object alive.
#[derive(Debug, Args)]
pub(in crate::cli) struct Refs {
    /// Address of the object, or an interior address, or the name of a static field that refers to it (Lab.Program.Keep,
    /// Lab.Program.Keep[3].Name; not with --type), then the dump [default: $GCDUMP_DUMP, else the only
    /// dump in the current folder]. Several objects have an answer each; `-` takes them from standard input, one on each line.
    #[arg(value_names = ["ADDR", "DUMP"], num_args = 0..=2)]
    what: Vec<OsString>,

    #[command(flatten)]
    types: TypesArg,

    /// Only incoming references [default: both directions].
    #[arg(long = "in", conflicts_with = "outgoing")]
    incoming: bool,

    /// Only outgoing references.
    #[arg(long = "out")]
    outgoing: bool,

    /// Group references instead of listing them [default: type with --type].
    #[arg(long, value_name = "KEY", value_enum, ignore_case = true)]
    by: Option<RefBy>,

    /// Number of references to follow, one after another.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    depth: u32,

    /// List only references from older objects to younger ones. They keep young objects alive in a collection of the young generations, which
    /// finds them through the card table. Without an address or --type, sum up the references to all young objects by type, and count the
    /// cards that are set.
    #[arg(long, conflicts_with_all = ["outgoing", "depth"])]
    young: bool,

    /// Show retained sizes of the objects at the other ends.
    #[arg(long)]
    retained: bool,

    #[command(flatten)]
    sort: SortArg<RefSort>,

    #[command(flatten)]
    top: TopArg,

    #[command(flatten)]
    filter: FilterArg,

    #[command(flatten)]
    stacks: StacksArg,
}

impl Refs {
    /// Whether the arguments name no object: with `--type`, or with `--young` and nothing but a dump.
    fn needs_no_object(&self) -> bool {
        let is_dump = |only: &OsString| is_path(only) && values::address(&only.to_string_lossy()).is_err();
        !self.types.is_empty() || self.young && (self.what.is_empty() || matches!(self.what.as_slice(), [only] if is_dump(only)))
    }
}

impl Command for Refs {
    const NAME: &'static str = "refs";
    const GROUP: Group = Group::Holders;
    const EXAMPLES: &'static [Example] = &[
        example("refs ADDR DUMP", "what points at this object, and what it points at"),
        example("refs --in --retained ADDR DUMP", "which objects point at it, with what they retain"),
        example("refs --type Lab.Dog --in DUMP", "which fields of which types point at objects of this type"),
        example("refs --young DUMP", "which older objects point at younger ones, and how many cards are set"),
    ];
    type Report = RefsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(object_and_dump("refs", &self.what, self.needs_no_object())?.1)
    }

    fn objects(&self) -> Result<Vec<ObjectName>> {
        Ok(object_and_dump("refs", &self.what, self.needs_no_object())?.0)
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.sort.of(self.filter.of(self.top.page(at))))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<RefsReport>> {
        let (object, types) = match at.object() {
            Some(name) => at.object_or_type(name)?,
            None => (None, self.types.patterns()),
        };
        let query = RefsQuery {
            incoming: !self.outgoing,
            outgoing: !self.incoming && !self.young,
            young: self.young,
            by: self.by.or((object.is_none()).then_some(RefBy::Type)),
            object,
            types,
            depth: self.depth,
            retained: self.retained,
            stacks: self.stacks.stacks,
            sort: self.sort.given(),
            top: self.sort.before(self.filter.before(self.top.counted(at))),
        };
        Ok(refs(&*at.source_at(0)?, &query)?)
    }

    fn exit(&self, report: &Self::Report, exit: Exit) -> Exit {
        let lists = [&report.incoming, &report.outgoing].into_iter().flatten();
        let rooted = report.roots.as_ref().is_some_and(|roots| !roots.is_empty());
        exit.negative_if(!rooted && lists.map(|list| list.references).all(|n| n == 0))
    }
}
