//! Loaded types by name or pattern, and the layout of one.

use super::layout;
use crate::base::{Addr, Answer, NoteKind, glob};
use crate::clr::fields::Types;
use crate::model::{TypeBrief, TypesReport};
use crate::session::{Error, Runtime, StaticsReader, loaded_types};

/// The loaded types that match `wanted`: a full name, a pattern, or a method table as `0x…`. If exactly one matches, with
/// its layout.
///
/// # Errors
/// [`Error::Contract`] if types are not described.
pub fn types(runtime: &Runtime, wanted: &str) -> Result<Answer<TypesReport>, Error> {
    let (notes, namer) = (runtime.begin(), runtime.namer());
    let types = namer.types()?;
    let found = find(types, wanted);
    let layout = match found.as_slice() {
        [one] => layout::layout(types, one.method_table).map(|mut layout| {
            let reader = StaticsReader::bind(runtime, types, &notes);
            match runtime.thread_reader() {
                Ok(list) => notes.extend(list.identity_losses()),
                Err(e) => notes.add(NoteKind::Missing, None, format!("thread statics cannot be read: {e}")),
            }
            let threads = runtime.threads().map_or(&[][..], |list| notes.with(list).as_slice());
            layout.statics = reader.with_threads(threads).of_type(one.method_table);
            layout
        }),
        _ => None,
    };
    if layout.as_ref().is_some_and(|l| l.fields.is_none()) {
        notes.add(NoteKind::Missing, layout.as_ref().map(|l| l.method_table), "the fields of the type are not in the dump");
    }
    namer.note(&notes);
    Ok(notes.finish(TypesReport { pattern: wanted.into(), types: found, layout }))
}

/// The loaded types that match a name or pattern, by name, or the one at an address.
fn find(types: &Types, wanted: &str) -> Vec<TypeBrief> {
    let hex = wanted.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()).map(Addr);
    if let Some(mt) = hex {
        let valid = types.names().method_tables().is_valid(mt) == Ok(true);
        return if valid { vec![layout::brief(types, mt)] } else { Vec::new() };
    }
    let names = types.names();
    let all = loaded_types(types).into_iter();
    let mut out: Vec<TypeBrief> = all.filter(|mt| glob(wanted, &names.name(*mt).name)).map(|mt| layout::brief(types, mt)).collect();
    out.sort_by(|a, b| (&a.name, a.method_table).cmp(&(&b.name, b.method_table)));
    out.dedup_by_key(|t| t.method_table);
    out
}
