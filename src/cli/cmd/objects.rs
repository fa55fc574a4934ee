//! `objects`: arguments and query; its rows are printed as they are produced.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::advice::advised_notes;
use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, conclude, example};
use super::super::exit::Exit;
use super::super::select::{Select, SortArg};
use super::super::streams::Streams;
use crate::analysis::{self, ObjectBatch, ObjectsQuery};
use crate::analysis::{ObjectBrief, ObjectsReport, ObjectsTail};
use crate::base::missed::Carried;
use crate::base::{Answer, Collector};
use crate::model::ObjectSort;
use crate::output::{self, objects_list};

/// List of objects, in heap order or the largest first. By what they retain: gcdump retained.
#[derive(Debug, Args)]
pub(in crate::cli) struct Objects {
    /// Also list the references of each object: offset, target, field.
    #[arg(long)]
    refs: bool,

    /// Also show these fields, separated by commas (repeatable): names, or paths through references and structures (_owner._name). Names in
    /// --select that are not columns are fields as well.
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    fields: Vec<String>,

    /// Only print the addresses, one a line.
    #[arg(long, conflicts_with_all = ["refs", "fields", "json", "format"])]
    short: bool,

    #[command(flatten)]
    sort: SortArg<ObjectSort>,

    /// Number of objects to skip.
    #[arg(long, visible_alias = "skip", value_name = "N", default_value_t = 0)]
    start: u64,

    /// Maximum number of objects to list, 0 for all [default: what fits a terminal; all in pipes, files and other formats].
    #[arg(short = 'n', long, visible_alias = "top", value_name = "N")]
    count: Option<u64>,

    #[command(flatten)]
    select: Select,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Objects {
    const NAME: &'static str = "objects";
    const GROUP: Group = Group::Objects;
    const EXAMPLES: &'static [Example] = &[
        example("objects --type 'Lab.*' --count 5 DUMP", "the first five objects of these types"),
        example("objects --sort size --top 10 DUMP", "the ten largest objects"),
        example("objects --type String --fields _stringLength DUMP", "strings with the values of chosen fields"),
        example(
            "objects --where 'size > 1K and field(\"_size\") = 0' --fields _size,_version DUMP",
            "objects by the values of their fields",
        ),
        example("objects --refs --count 3 --format ndjson DUMP", "objects with references, one record per line"),
    ];
    type Report = ObjectsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<ObjectsReport>> {
        let heap = at.heap()?;
        let mut list = Vec::new();
        let mut keep = |o: &ObjectBrief| {
            list.push(o.clone());
            Ok(())
        };
        let namer = heap.namer();
        let query = self.query(at)?;
        query.selection.refuse_hidden(&heap)?;
        let tail = analysis::objects(&heap, &namer, &query, |batch| batch.each(&mut keep))?;
        Ok(namer.noted(tail).map(|tail| ObjectsReport { objects: list, tail }))
    }

    fn exit(&self, report: &ObjectsReport, exit: Exit) -> Exit {
        self.exit_of(&report.tail, exit)
    }

    /// Streams the rows, because a heap may have a hundred million objects. Short lists on a terminal are collected first, so that columns are as
    /// wide as their contents.
    fn run(&self, at: &At<'_>, streams: &mut Streams<'_>) -> Result<Exit> {
        const FEW: u64 = 1000;
        let query = self.query(at)?;
        if at.is_table() && !self.short && query.fields.len() <= 1 && streams.screen.terminal && (1..=FEW).contains(&query.count) {
            let mut answer = self.answer(at)?;
            answer.notes = advised_notes(&answer.notes);
            output::emit(&at.head()?, &answer, at.format(), at.target(streams))?;
            return Ok(self.exit(&answer, conclude(at, &answer.notes, streams)?));
        }
        let heap = at.heap()?;
        query.selection.refuse_hidden(&heap)?;
        let namer = heap.namer();
        if self.short {
            let out = &mut streams.out;
            let print = |batch: ObjectBatch<'_>| batch.addresses().try_for_each(|a| writeln!(out, "{a}"));
            let mut tail = namer.noted(analysis::objects(&heap, &namer, &query, print)?);
            tail.notes = advised_notes(&tail.notes);
            return self.concluded(at, &tail, streams);
        }
        let list = objects_list(self.refs, &query.fields).select(at.format(), &at.config.select)?;
        let answer = output::stream(&at.head()?, &list, at.format(), at.target(streams), |batches| {
            // Type names are resolved while rows are printed, so errors in this step belong to the answer.
            let notes = Collector::new();
            let rows = Carried::here();
            let print = |batch| rows.run(|| batches.print(ObjectBatch::len(&batch), |row| batch.each(row)));
            let tail = notes.take(analysis::objects(&heap, &namer, &query, print)?);
            batches.flush()?;
            namer.note(&notes);
            let answer = notes.finish(tail);
            Ok(Answer { notes: advised_notes(&answer.notes), ..answer })
        })?;
        self.concluded(at, &answer, streams)
    }
}

impl Objects {
    fn concluded(&self, at: &At<'_>, answer: &Answer<ObjectsTail>, streams: &mut Streams<'_>) -> Result<Exit> {
        Ok(self.exit_of(answer, conclude(at, &answer.notes, streams)?))
    }

    fn exit_of(&self, tail: &ObjectsTail, exit: Exit) -> Exit {
        exit.negative_if(tail.listed == 0 && self.start == 0 && !self.select.selection().is_everything())
    }

    /// The fields to read: those of `--fields`, and names in `--select` that are not columns of every list of objects.
    fn fields(&self, at: &At<'_>) -> Vec<String> {
        let list = objects_list(self.refs, &[]);
        let selected = at.config.select.iter().filter(|name| !list.has(name) && !self.fields.contains(name));
        self.fields.iter().chain(selected).cloned().collect()
    }

    fn query(&self, at: &At<'_>) -> Result<ObjectsQuery> {
        let fitting = if self.short { 0 } else { u64::try_from(at.rows(None))? };
        let count = self.count.unwrap_or(fitting);
        let (start, sort) = (self.start, self.sort.known()?);
        Ok(ObjectsQuery { selection: self.select.selection(), sort, start, count, refs: self.refs, fields: self.fields(at) })
    }
}
