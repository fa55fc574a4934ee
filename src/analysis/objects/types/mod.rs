//! Finds loaded types by name or pattern, and the layout of one type.

mod report;

pub use report::*;

use crate::analysis::objects::layout;
use crate::analysis::objects::type_methods::type_methods;
use crate::base::{Addr, Answer, Collector, Missing, NoteKind};
use crate::clr::fields::Types;
use crate::session::{Error, LoadedTypes, Runtime, StaticsReader, TypeFilter, TypePattern, loaded_types};

/// Returns the loaded types that match `wanted`. If exactly one type matches, includes its layout and, with `methods`, its methods.
///
/// # Errors
/// [`Error::Contract`] if the descriptor does not describe types.
pub fn types(runtime: &Runtime, wanted: &TypePattern, methods: bool) -> Result<Answer<TypesReport>, Error> {
    let (notes, namer) = (runtime.begin(), runtime.namer());
    let types = namer.types()?;
    let found = find(types, wanted, &notes);
    let layout = match found.as_slice() {
        [one] => layout::layout(types, one.method_table).map(|mut layout| {
            let reader = StaticsReader::bind(runtime, types, &notes);
            match runtime.thread_reader() {
                Ok(list) => notes.extend(list.identity_losses()),
                Err(e) => notes.add(Missing::Statics, None, format!("thread statics cannot be read: {e}")),
            }
            let threads = runtime.thread_list().map_or(&[][..], |list| notes.with(list).as_slice());
            let reader = reader.with_threads(threads);
            layout.statics = reader.of_type(one.method_table);
            if layout.statics.iter().any(|s| s.thread.is_some()) {
                runtime.note_thread_ids(&notes);
            }
            reader.note(&notes);
            layout.methods = if methods { type_methods(runtime, &namer, types, one.method_table, &notes) } else { None };
            layout
        }),
        _ => None,
    };
    if layout.as_ref().is_some_and(|l| l.fields.is_none()) {
        notes.add(Missing::Metadata, layout.as_ref().map(|l| l.method_table), "the fields of the type are not in the dump");
    }
    namer.note(&notes);
    Ok(notes.finish(TypesReport { pattern: wanted.to_string(), types: found, layout }))
}

/// Returns the loaded types that match a name or pattern, sorted by name, or the type at an address.
pub(in crate::analysis) fn find(types: &Types, wanted: &TypePattern, notes: &Collector) -> Vec<TypeBrief> {
    if let TypePattern::MethodTable(mt) = *wanted {
        let valid = types.names().method_tables().is_valid(mt);
        if valid == Ok(false) && types.loader().defines(types.modules(), mt) {
            notes.add(NoteKind::Invalid, mt, format!("the type table of a module contains {mt}, but the type there is invalid"));
        }
        return if valid == Ok(true) { vec![layout::brief(types, mt)] } else { Vec::new() };
    }
    if let Some(why) = types.lacks() {
        notes.add(Missing::Modules, None, format!("{why}: types of most modules are missing"));
    }
    let name = |mt: &Addr| types.names().name(*mt).to_name();
    // The type of free blocks is in no module.
    let all: Vec<Addr> = loaded_types(types).into_iter().chain(types.names().method_tables().free).collect();
    let known = LoadedTypes { names: types.names(), tables: || all.clone() };
    let filter = TypeFilter::of(std::slice::from_ref(wanted), &known, notes);
    let mut out: Vec<TypeBrief> = all.iter().filter(|mt| filter.matches(**mt, || name(mt))).map(|mt| layout::brief(types, *mt)).collect();
    out.sort_by(|a, b| (&a.name, a.method_table).cmp(&(&b.name, b.method_table)));
    out.dedup_by_key(|t| t.method_table);
    out
}
