use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::select::address;
use crate::analysis::{WhatifQuery, whatif};
use crate::base::{Addr, Answer};
use crate::model::WhatifReport;

/// What would live and die if these objects were kept alive, or these handles were gone.
#[derive(Debug, Args)]
pub(in crate::cli) struct Whatif {
    /// This object is kept alive; any address inside of it will do (repeatable, or separated by commas).
    #[arg(long, value_name = "ADDR", value_parser = address, value_delimiter = ',', required_unless_present = "dead")]
    alive: Vec<Addr>,

    /// This handle is gone; any other place that holds a root will do, too (repeatable, or separated by commas).
    #[arg(long, value_name = "HANDLE", value_parser = address, value_delimiter = ',')]
    dead: Vec<Addr>,

    /// Types to list of each, 0 for all; the sums are always over everything [default: what fits the screen in a table, all in
    /// other formats].
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Whatif {
    const NAME: &'static str = "whatif";
    const GROUP: Group = Group::Holders;
    const EXAMPLES: &'static [Example] = &[
        example("whatif --dead HANDLE DUMP", "what would be freed if this handle were gone"),
        example("whatif --alive ADDR DUMP", "what would live if this object did"),
    ];
    type Report = WhatifReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<WhatifReport>> {
        let top = at.rows(self.top);
        let components = if at.is_table() { top } else { 0 };
        Ok(whatif(&at.heap()?, &WhatifQuery { alive: self.alive.clone(), dead: self.dead.clone(), top, components })?)
    }
}
