//! `whatif`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::{DumpArg, StacksArg};
use super::super::command::{At, Command, Example, Group, example};
use super::super::object_name::{ObjectName, object_name};
use super::super::select::RowsArgs;
use crate::analysis::WhatifReport;
use crate::analysis::{WhatifQuery, whatif};
use crate::base::Answer;
use crate::output::Paging;

/// Objects that would survive or be freed if objects were rooted or roots were removed.
#[derive(Debug, Args)]
pub(in crate::cli) struct Whatif {
    /// Assume this object is rooted; accepts interior addresses and names of static fields (repeatable, comma-separated).
    #[arg(long, value_name = "ADDR", value_parser = object_name, value_delimiter = ',', required_unless_present = "dead")]
    alive: Vec<ObjectName>,

    /// Assume that this root does not exist: address of a handle, static field, stack word or any other root, as printed by other commands, or the name of a static field
    /// (repeatable, comma-separated).
    #[arg(long, value_name = "HANDLE", value_parser = object_name, value_delimiter = ',')]
    dead: Vec<ObjectName>,

    #[command(flatten)]
    rows: RowsArgs,

    #[command(flatten)]
    stacks: StacksArg,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Whatif {
    const NAME: &'static str = "whatif";
    const GROUP: Group = Group::Holders;
    const EXAMPLES: &'static [Example] = &[
        example("whatif --dead HANDLE DUMP", "what would be freed without this handle"),
        example("whatif --alive ADDR DUMP", "what would survive with this object"),
    ];
    type Report = WhatifReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.rows.page(at))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<WhatifReport>> {
        let top = self.rows.counted(at);
        let components = if at.is_table() { top } else { 0 };
        let alive = self.alive.iter().map(|name| at.address_of(0, name)).collect::<Result<_>>()?;
        let dead = self.dead.iter().map(|name| at.root_of(name)).collect::<Result<_>>()?;
        let stacks = self.stacks.stacks;
        Ok(whatif(&at.heap()?, &WhatifQuery { alive, dead, top, components, stacks })?)
    }
}
