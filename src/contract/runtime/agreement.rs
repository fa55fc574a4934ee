//! Agreement of an overlay with the descriptor of the runtime.

use crate::contract::dac_table::DacTable;
use crate::contract::header::DescriptorPart;
use crate::contract::json::RawValue;
use crate::contract::overlay::{self, Overlay};
use crate::memory::Memory;

/// The first offset on which the runtime's descriptor and `overlay` disagree. A bundled overlay must also have every type of the
/// descriptor; otherwise it is for another release.
pub(super) fn disagreement(overlay: &Overlay, parts: &[DescriptorPart]) -> Option<String> {
    for (name, own) in parts.iter().flat_map(|p| &p.raw.types) {
        let Some((_, theirs)) = overlay.raw.types.iter().find(|t| t.0 == *name) else {
            if overlay.given {
                continue;
            }
            return Some(format!("a type {name}"));
        };
        for (field, offset, _) in &own.fields {
            if theirs.fields.iter().any(|f| f.0 == *field && f.1 != *offset) {
                return Some(format!("{name}.{field} at {offset}"));
            }
        }
    }
    None
}

/// The number of entries by which the process's `g_dacTable` is shifted relative to the overlay's order. Servicing releases have inserted entries:
/// 8.0.0 differs from 8.0.29. Variables whose addresses are in the runtime's descriptor determine the shift. `None` if the variables disagree.
pub(super) fn shift(parts: &[DescriptorPart], order: &overlay::DacTableOrder, memory: &Memory, table: DacTable) -> Option<i64> {
    let anchors = parts.iter().flat_map(|p| {
        p.raw.globals.iter().filter_map(move |(name, g)| match g.value {
            RawValue::Slot(i) => Some((*order.index.get(name)?, p.header.slot(memory, i).filter(|a| !a.is_null())?)),
            RawValue::Literal { .. } => None,
        })
    });
    // Only entries up to the Free method table are compared, because all variables that are read through the table are among these.
    let last = order.index.get("FreeObjectMethodTable").copied().unwrap_or(u64::MAX);
    let mut shifts = anchors.filter(|(index, _)| *index <= last).filter_map(|(index, address)| {
        (-8i64..=8).find(|s| index.checked_add_signed(*s).and_then(|i| table.entry(memory, i)) == Some(address))
    });
    let first = shifts.next();
    match first {
        None => Some(0),
        Some(s) => shifts.all(|other| other == s).then_some(s),
    }
}
