//! `object`: arguments and query, for objects and for values in memory (`--as`).

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::completion::types;
use super::super::object_name::{ObjectName, ObjectNames, object_names};
use super::super::values::type_pattern;
use crate::analysis::ObjectReport;
use crate::analysis::{ObjectQuery, object, value};
use crate::base::{Answer, len64};
use crate::session::TypePattern;

/// One object: type, location, lock, hash code, and fields or elements. Accepts interior addresses.
#[derive(Debug, Args)]
pub(in crate::cli) struct Object {
    /// The address, or the name of a static field that refers to the object: Lab.Program.Keep, Lab.Program.Keep[3].Name. Several have an answer
    /// each; `-` takes them from standard input, one on each line.
    #[arg(value_parser = object_names)]
    address: ObjectNames,

    /// Index of the first array element to list.
    #[arg(long, value_name = "N", default_value_t = 0)]
    start: u64,

    /// Maximum number of elements to list.
    #[arg(long, value_name = "N", default_value_t = 100)]
    count: u64,

    /// Maximum number of elements of a collection, or of parts of a multicast delegate, to list.
    #[arg(long, value_name = "N", default_value_t = 100)]
    items: u64,

    /// Leave out fields and elements.
    #[arg(long, conflicts_with_all = ["start", "count", "items"])]
    no_fields: bool,

    /// Show the value of this structure, enum or primitive type at the address, which need not be in an object: a method table or a
    /// name.
    #[arg(long = "as", value_name = "TYPE", value_parser = type_pattern, add = ArgValueCompleter::new(types))]
    #[arg(conflicts_with_all = ["start", "count", "items", "no_fields"])]
    as_type: Option<TypePattern>,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Object {
    const NAME: &'static str = "object";
    const GROUP: Group = Group::Objects;
    const EXAMPLES: &'static [Example] = &[
        example("object ADDR DUMP", "type, field values, lock, hash code"),
        example("object ADDR --as System.Int64 DUMP", "the value of a type at an address"),
    ];
    type Report = ObjectReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn objects(&self) -> Result<Vec<ObjectName>> {
        Ok(self.address.0.clone())
    }

    fn is_last(&self, report: &ObjectReport) -> Option<bool> {
        let listed = report.first_element.saturating_add(len64(report.elements.len()));
        Some(report.elements.is_empty() || report.length.is_none_or(|length| listed >= length))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<ObjectReport>> {
        if let Some(wanted) = &self.as_type {
            return Ok(value(&at.heap()?, at.address()?, wanted)?);
        }
        let query =
            ObjectQuery { address: at.address()?, start: self.start, count: self.count, items: self.items, fields: !self.no_fields };
        Ok(object(&at.heap()?, &query)?)
    }
}
