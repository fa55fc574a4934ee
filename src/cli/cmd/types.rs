use anyhow::Result;

use super::super::args::{Config, DumpArg};
use super::{Exit, Streams, finish, open};
use crate::analysis::{Namer, StaticsReader, fields, object_limits};
use crate::base::{Addr, NoteKind, glob};
use crate::clr::fields::Types;
use crate::clr::statics::Statics;
use crate::clr::threads::Threads;
use crate::clr::values::Values;
use crate::model::{TypeBrief, TypesReport};

/// `gcdump type`.
pub(super) fn run(config: &Config, wanted: &str, dump: &DumpArg, streams: &mut Streams<'_>) -> Result<Exit> {
    let process = open(config, dump, streams)?;
    let runtime = process.runtime(config.runtime)?;
    runtime.require("RuntimeTypeSystem")?;
    let namer = Namer::new(&process, runtime);
    let types = namer.layouts()?;
    let found = find(types, wanted);
    let layout = match found.as_slice() {
        [one] => fields::layout(types, one.method_table).map(|mut layout| {
            let values = Values::new(&process.memory, &runtime.descriptor, types, object_limits());
            let statics = Statics::new(&process.memory, &runtime.descriptor, types);
            let threads = Threads::bind(&process.memory, &runtime.descriptor, &process.notes, &process.limits);
            let threads = threads.map(|t| t.list()).unwrap_or_default();
            layout.statics = StaticsReader::new(types, &values, &statics, &threads).of_type(one.method_table);
            layout
        }),
        _ => None,
    };
    if layout.as_ref().is_some_and(|l| l.fields.is_none()) {
        process.notes.add(NoteKind::Missing, layout.as_ref().map(|l| l.method_table), "the fields of the type are not in the dump");
    }
    namer.note(&process.notes);
    let none = found.is_empty();
    let report = TypesReport { pattern: wanted.into(), types: found, layout };
    let exit = finish(config, "type", &process, Some(runtime), report, streams)?;
    Ok(exit.negative_if(none))
}

/// The loaded types that fit a name or a pattern, by name; the one at an address.
fn find(types: &Types, wanted: &str) -> Vec<TypeBrief> {
    let hex = wanted.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()).map(Addr);
    if let Some(mt) = hex {
        let valid = types.names().method_tables().is_valid(mt) == Ok(true);
        return if valid { vec![fields::brief(types, mt)] } else { Vec::new() };
    }
    let names = types.names();
    let all = fields::loaded_types(types).into_iter();
    let mut out: Vec<TypeBrief> = all.filter(|mt| glob(wanted, &names.name(*mt).name)).map(|mt| fields::brief(types, mt)).collect();
    out.sort_by(|a, b| (&a.name, a.method_table).cmp(&(&b.name, b.method_table)));
    out.dedup_by_key(|t| t.method_table);
    out
}
