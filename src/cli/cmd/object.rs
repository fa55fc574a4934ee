use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::select::address;
use crate::analysis::{ObjectQuery, object};
use crate::base::{Addr, Answer};
use crate::model::ObjectReport;

/// One object: type, place, lock and hash code, fields or elements. An address inside of an object finds it.
#[derive(Debug, Args)]
pub(in crate::cli) struct Object {
    /// The address.
    #[arg(value_parser = address)]
    address: Addr,

    /// First element of an array to list.
    #[arg(long, value_name = "N", default_value_t = 0)]
    start: u64,

    /// Most elements to list.
    #[arg(long, value_name = "N", default_value_t = 100)]
    count: u64,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Object {
    const NAME: &'static str = "object";
    const GROUP: Group = Group::Objects;
    const SOS: &'static [&'static str] = &["dumpobj", "do"];
    const EXAMPLES: &'static [Example] = &[example("object ADDR DUMP", "type, fields with values, lock, hash code")];
    type Report = ObjectReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<ObjectReport>> {
        Ok(object(&at.heap()?, &ObjectQuery { address: self.address, start: self.start, count: self.count })?)
    }
}
