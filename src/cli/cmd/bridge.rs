//! `bridge`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::{DumpArg, StacksArg};
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::UsageError;
use super::super::values::type_pattern;
use crate::analysis::BridgeReport;
use crate::analysis::{BridgeQuery, bridge};
use crate::base::Answer;
use crate::output::Format;
use crate::session::TypePattern;

/// Objects shared with another collector (Java): dead ones as strongly connected components, and their cross references.
#[derive(Debug, Args)]
pub(in crate::cli) struct Bridge {
    /// Also treat objects of this type as bridged (repeatable): full or simple name, part of one, glob (* and ?), or method table;
    /// see gcdump help patterns. Targets of cross-reference handles always are.
    #[arg(long, value_name = "TYPE", value_parser = type_pattern)]
    bridged: Vec<TypePattern>,

    /// Do not follow references of objects of this type: opaque, or opaque-bridge if bridged (repeatable).
    #[arg(long, value_name = "TYPE", value_parser = type_pattern)]
    opaque: Vec<TypePattern>,

    /// Exclude this type from --opaque: transparent, or transparent-bridge if bridged (repeatable).
    #[arg(long, value_name = "TYPE", value_parser = type_pattern)]
    transparent: Vec<TypePattern>,

    /// Also list bridged objects that something besides the bridge's own handles keeps alive.
    #[arg(long)]
    all: bool,

    /// Same as --format dot.
    #[arg(long)]
    dot: bool,

    #[command(flatten)]
    stacks: StacksArg,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Bridge {
    const NAME: &'static str = "bridge";
    const GROUP: Group = Group::Holders;
    const EXAMPLES: &'static [Example] = &[
        example("bridge DUMP", "components and cross references of dead bridged objects"),
        example("bridge --bridged 'Lab.*' --all --dot DUMP", "the graph for Graphviz"),
    ];
    type Report = BridgeReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn format(&self, asked: Format) -> Result<Format> {
        match (self.dot, asked) {
            (false, asked) => Ok(asked),
            (true, Format::Table | Format::Dot) => Ok(Format::Dot),
            _ => Err(UsageError("--dot cannot be combined with --format or --json".into()).into()),
        }
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<BridgeReport>> {
        let query = BridgeQuery {
            bridged: self.bridged.clone(),
            opaque: self.opaque.clone(),
            transparent: self.transparent.clone(),
            all: self.all,
            stacks: self.stacks.stacks,
        };
        Ok(bridge(&at.heap()?, &query)?)
    }
}
