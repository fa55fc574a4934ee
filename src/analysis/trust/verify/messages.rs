//! Messages of findings.

use super::sink::{Detail, Found};
use crate::analysis::{FindingId, FindingModel, Severity};
use crate::base::{Addr, Name, plural};
use crate::gc::Walker;
use crate::session::Namer;

/// Converts a finding for the report.
pub(super) fn model(heap: &Walker, namer: &Namer, severity: Severity, found: &Found) -> FindingModel {
    let name = |object: Addr| heap.object(object).map(|(kind, _)| namer.name_or_address(kind.method_table));
    let type_name = found.object.and_then(name);
    FindingModel {
        id: found.id,
        severity,
        address: found.address,
        object: found.object,
        message: message(found, type_name.as_ref()),
        type_name,
        related: found.related,
        also: found.also,
    }
}

fn message(f: &Found, type_name: Option<&Name>) -> String {
    let at = f.address;
    let related = f.related.map_or_else(|| "an address that is not in the dump".to_string(), |a| a.to_string());
    let (number, name) = match f.detail {
        Detail::Number(n) => (n, ""),
        Detail::Name(name) => (0, name),
        Detail::Gap(n, _) => (n, ""),
        Detail::Ends(at) => (at.0, ""),
        Detail::None => (0, ""),
    };
    let object = match (f.object, type_name) {
        (Some(object), Some(name)) => format!("the {name} at {object}"),
        (Some(object), None) => format!("the object at {object}"),
        _ => "nothing".into(),
    };
    let reference = |what: &str| format!("{object} refers at {at} to {related}, {what}");
    let mut text = match f.id {
        FindingId::ObjectBadMethodTable => {
            let why = match f.detail {
                Detail::Ends(end) => format!("an object of that type would end at {end}, which does not match what follows"),
                Detail::Gap(_, Some(before)) => {
                    format!("{} without an object follow, or the length of the object at {before} is wrong", plural(number, "byte"))
                }
                _ => format!("{} without an object follow", plural(number, "byte")),
            };
            format!("{object} has {related} where its method table should be; {why}")
        }
        FindingId::ObjectBadSize => format!("{object} has a length of {number}, which does not match what follows it"),
        FindingId::TypeBadReferences => format!("the GCDesc before the method table {at} of {object} is invalid"),
        FindingId::ReferenceUnaligned => reference("which is not a multiple of the pointer size"),
        FindingId::ReferenceOutsideHeap => reference("which is outside the heap"),
        FindingId::ReferenceToMiddle => reference(&format!("which is inside the object at {}", Addr(number))),
        FindingId::ReferenceToFree => reference("which is free space"),
        FindingId::ReferenceToUnused => reference("which is not yet filled with objects"),
        FindingId::SyncBlockBadIndex => format!("{object} has sync block {number}, which does not exist"),
        FindingId::SyncBlockWrongObject => format!("{object} has sync block {number}, which belongs to {related}"),
        FindingId::SyncBlockBadObject => format!("the sync table entry at {at} points to {related}, {name}"),
        FindingId::SyncBlockNotInHeader => format!("sync block {number} belongs to {object}, whose header does not refer to it"),
        FindingId::ThinLockNoThread => format!("{object} is locked by managed thread {number}, which does not exist"),
        FindingId::HandleBadObject => format!("the handle {at} points to {related}, {name}"),
        FindingId::HandleBadSecondary => format!("the secondary value of the dependent handle {at} is {related}, {name}"),
        FindingId::FinalizerBadObject => format!("the finalization queue entry at {at} points to {related}, {name}"),
        FindingId::SegmentBadBounds => {
            format!("the segment at {at} has bounds out of order at {related}; its objects were not walked")
        }
        FindingId::SegmentBadLink => format!("the segment list links {at} to {related}: {name}"),
        FindingId::SegmentNotListed => format!("heap {number} allocates from the segment at {at}, which is on none of its lists"),
        FindingId::SegmentOverlap => format!("the segment at {at} shares memory with the one at {related}"),
        FindingId::SegmentWrongHeap => format!("the segment at {at} is on a list of heap {number} but names {related} as its owner"),
        FindingId::GenerationBadStart => {
            format!("heap {number}: generations inside the ephemeral segment at {at} are out of order at {related}")
        }
        FindingId::ContextBadBounds => format!("the allocation context at {at} of thread {number} ends at {related}, which is invalid"),
        FindingId::ContextOutsideGen0 => format!("the allocation context at {at} of thread {number} is not in generation 0"),
        FindingId::ContextOverlap => format!("the allocation context at {at} of thread {number} overlaps the one at {related}"),
        FindingId::CardClear => reference("which is younger, and its card is clear"),
    };
    if f.also > 0 {
        text.push_str(&format!("; {} more references or entries point there", f.also));
    }
    text
}
