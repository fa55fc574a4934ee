use std::path::PathBuf;

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use crate::analysis::{UnreachableQuery, unreachable};
use crate::base::Answer;
use crate::model::{Stacks, UnreachableReport};

/// Garbage that has not been collected: objects that no root reaches, by type, and what each still waits for.
#[derive(Debug, Args)]
pub(in crate::cli) struct Unreachable {
    /// The objects instead of their types, in the order of the heap.
    #[arg(long)]
    objects: bool,

    /// Rows to list, 0 for all; the totals are always over everything [default: what fits the screen in a table, all in
    /// other formats].
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Whether stack values and registers count as roots. Each may be stale: without them, what only they hold is listed as
    /// well.
    #[arg(long, value_parser = stacks(), ignore_case = true, default_value_t = Stacks::All)]
    stacks: Stacks,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Unreachable {
    const NAME: &'static str = "unreachable";
    const GROUP: Group = Group::Holders;
    const EXAMPLES: &'static [Example] = &[
        example("unreachable DUMP", "garbage by type, and what it waits for"),
        example("unreachable --stacks none DUMP", "also what only stale stack values hold"),
    ];
    type Report = UnreachableReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<UnreachableReport>> {
        let query = UnreachableQuery { objects: self.objects, top: at.rows(self.top), stacks: self.stacks };
        Ok(unreachable(&at.heap()?, &query)?)
    }
}

fn stacks() -> impl TypedValueParser<Value = Stacks> {
    let values = [Stacks::All, Stacks::None].into_iter().filter_map(|s| s.to_possible_value());
    PossibleValuesParser::new(values).try_map(|name| name.parse())
}
