use std::collections::BTreeMap;

use anyhow::Result;

use super::super::args::{Config, DumpArg};
use super::super::exit::UsageError;
use super::{Exit, Streams, finish, gc, open};
use crate::analysis::Namer;
use crate::gc::HandleFilter;
use crate::model::{HandleKind, HandleModel, HandleStat, HandlesReport};

/// `gcdump handles`.
pub(super) fn run(config: &Config, dump: &DumpArg, kinds: &[HandleKind], stat: bool, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let runtime = process.runtime(config.runtime)?;
    let gc = gc(&process, runtime)?;
    let supported = gc.supported_handles();
    if let Some(kind) = kinds.iter().find(|k| !supported.contains(k)) {
        let names: Vec<&str> = supported.iter().map(|k| k.name()).collect();
        return Err(UsageError(format!("this runtime has no handles of type {kind}; it has {}", names.join(", "))).into());
    }
    let mut counts: BTreeMap<HandleKind, u64> = BTreeMap::new();
    let mut handles: Vec<HandleModel> = Vec::new();
    let tables = gc.walk_handles(&HandleFilter { kinds: kinds.to_vec() }, |h| {
        let n = counts.entry(h.kind).or_default();
        *n = n.saturating_add(1);
        if !stat {
            handles.push(h);
        }
    });
    let namer = Namer::new(&process, runtime);
    for h in &mut handles {
        h.object_type = h.method_table.and_then(|mt| namer.name(mt));
    }
    namer.note(&process.notes);
    let report = HandlesReport {
        complete: true,
        total: counts.values().fold(0u64, |a, n| a.saturating_add(*n)),
        counts: counts.into_iter().map(|(kind, count)| HandleStat { kind, count }).collect(),
        supported,
        tables,
        handles: (!stat).then_some(handles),
    };
    finish(config, "handles", &process, Some(runtime), report, streams)
}
