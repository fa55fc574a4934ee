use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args;
use rustc_hash::FxHashMap;

use super::super::args::{Config, DumpArg};
use super::super::exit::UsageError;
use super::{Exit, Streams, finish, gc, open};
use crate::analysis::{self, Namer};
use crate::base::Addr;
use crate::gc::HandleFilter;
use crate::model::{HandleBy, HandleGroup, HandleKind, HandleModel, HandleStat, HandlesReport};

/// What `handles` is asked.
#[derive(Clone, Debug, Args)]
pub struct HandlesArgs {
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
    pub(super) dump: DumpArg,
}

/// `gcdump handles`.
pub(super) fn run(config: &Config, args: &HandlesArgs, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, &args.dump, streams)?;
    let runtime = process.runtime(config.runtime)?;
    let gc = gc(&process, runtime)?;
    let supported = gc.supported_handles();
    if let Some(kind) = args.kinds.iter().find(|k| !supported.contains(k)) {
        let names: Vec<&str> = supported.iter().map(|k| k.name()).collect();
        return Err(UsageError(format!("this runtime has no handles of type {kind}; it has {}", names.join(", "))).into());
    }
    let by = args.by;
    let heap = if by == Some(HandleBy::Generation) { Some(analysis::open_heap(&process, runtime, &gc)?) } else { None };
    let namer = Namer::new(&process, runtime);
    // A process may have millions of handles, but only some thousand types.
    let mut names: FxHashMap<Addr, Option<String>> = FxHashMap::default();
    let mut name = |mt: Addr| names.entry(mt).or_insert_with(|| namer.name(mt)).clone();
    let list = !args.stat && by.is_none();
    let mut counts: BTreeMap<HandleKind, u64> = BTreeMap::new();
    let mut groups: BTreeMap<Option<String>, u64> = BTreeMap::new();
    let mut handles: Vec<HandleModel> = Vec::new();
    let tables = gc.walk_handles(&HandleFilter { kinds: args.kinds.clone() }, |mut h| {
        let n = counts.entry(h.kind).or_default();
        *n = n.saturating_add(1);
        if let Some(by) = by {
            let key = match by {
                HandleBy::Type => Some(h.kind.name().to_string()),
                HandleBy::ObjectType => h.method_table.map(|mt| name(mt).unwrap_or_else(|| mt.to_string())),
                HandleBy::Generation => heap.as_ref().and_then(|heap| heap.generation_of(h.object)).map(|g| g.name().to_string()),
            };
            let n = groups.entry(key).or_default();
            *n = n.saturating_add(1);
        }
        if list {
            h.object_type = h.method_table.and_then(&mut name);
            let secondary = h.secondary.filter(|s| h.kind == HandleKind::Dependent && !s.is_null());
            h.secondary_type = secondary.and_then(|s| gc.method_table(s)).and_then(&mut name);
            handles.push(h);
        }
    });
    let mut groups: Vec<HandleGroup> = groups.into_iter().map(|(key, count)| HandleGroup { key, count }).collect();
    groups.sort_by_key(|g| std::cmp::Reverse(g.count));
    namer.note(&process.notes);
    let report = HandlesReport {
        total: counts.values().fold(0u64, |a, n| a.saturating_add(*n)),
        counts: counts.into_iter().map(|(kind, count)| HandleStat { kind, count }).collect(),
        supported,
        tables,
        handles: list.then_some(handles),
        by,
        groups: by.map(|_| groups),
    };
    finish(config, "handles", &process, Some(runtime), report, streams)
}
