use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use crate::analysis::{HandlesQuery, handles};
use crate::base::Answer;
use crate::model::{HandleBy, HandleKind, HandlesReport};

/// Every GC handle: type, object, method table, secondary value.
#[derive(Debug, Args)]
pub(in crate::cli) struct Handles {
    /// Only handles of this type (repeatable).
    #[arg(long = "type", value_name = "TYPE", value_enum, ignore_case = true)]
    kinds: Vec<HandleKind>,

    /// Only the number of handles by type.
    #[arg(long)]
    stat: bool,

    /// Only the number of handles by type, by the type of the object, or by the generation that the object lies in.
    #[arg(long, value_enum, ignore_case = true, conflicts_with = "stat")]
    by: Option<HandleBy>,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Handles {
    const NAME: &'static str = "handles";
    const GROUP: Group = Group::Heap;
    const SOS: &'static [&'static str] = &["gchandles"];
    const EXAMPLES: &'static [Example] = &[
        example("handles --type strong DUMP", "what strong handles keep alive"),
        example("handles --by object-type DUMP", "which types have handles"),
    ];
    type Report = HandlesReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<HandlesReport>> {
        let query = HandlesQuery { kinds: self.kinds.clone(), stat: self.stat, by: self.by };
        Ok(handles(&at.runtime()?, &query)?)
    }
}
