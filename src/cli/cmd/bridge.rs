use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::UsageError;
use super::super::select::type_pattern;
use crate::analysis::{BridgeQuery, bridge};
use crate::base::Answer;
use crate::model::BridgeReport;
use crate::output::Format;
use crate::session::TypePattern;

/// Objects shared with another collector (Java): dead ones as strongly connected components, and the references between.
#[derive(Debug, Args)]
pub(in crate::cli) struct Bridge {
    /// Objects of this type are bridged as well: its full name, in which * and ? may stand for something else, or its method
    /// table as 0x… (repeatable). Objects that cross-reference handles lead to always are.
    #[arg(long, value_name = "GLOB|MT", value_parser = type_pattern)]
    bridged: Vec<TypePattern>,

    /// Objects of this type are not looked into: opaque, or opaque-bridge where they are bridged (repeatable).
    #[arg(long, value_name = "GLOB|MT", value_parser = type_pattern)]
    opaque: Vec<TypePattern>,

    /// Exceptions from --opaque: transparent, or transparent-bridge, as all types are without a rule (repeatable).
    #[arg(long, value_name = "GLOB|MT", value_parser = type_pattern)]
    transparent: Vec<TypePattern>,

    /// Also bridged objects that something else than the bridge's handles keeps alive.
    #[arg(long)]
    all: bool,

    /// Short for --format dot.
    #[arg(long)]
    dot: bool,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Bridge {
    const NAME: &'static str = "bridge";
    const GROUP: Group = Group::Holders;
    const EXAMPLES: &'static [Example] = &[
        example("bridge DUMP", "components and cross references of dead bridged objects"),
        example("bridge --bridged 'Lab.*' --all --dot DUMP", "as a graph for Graphviz"),
    ];
    type Report = BridgeReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn format(&self, asked: Format) -> Result<Format> {
        match (self.dot, asked) {
            (false, asked) => Ok(asked),
            (true, Format::Table | Format::Dot) => Ok(Format::Dot),
            _ => Err(UsageError("--dot is a format of its own: leave out --format and --json".into()).into()),
        }
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<BridgeReport>> {
        let query = BridgeQuery {
            bridged: self.bridged.clone(),
            opaque: self.opaque.clone(),
            transparent: self.transparent.clone(),
            all: self.all,
        };
        Ok(bridge(&at.heap()?, &query)?)
    }
}
