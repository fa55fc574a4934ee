//! The image that contains the GC, and the layouts of unpublished GC structures.

use super::descriptor::{Descriptor, Origin};
use super::overlay;
use crate::base::{Addr, Collector, Missing};
use crate::dump::DumpFile;
use crate::memory::{Image, Memory};
use crate::model::OriginKind;

/// Variables that every build of the GC publishes. Each of these variables is in the GC's image.
const ANCHORS: [&str; 3] = ["MaxGeneration", "StructureInvalidCount", "BookkeepingStart"];

/// Finds the image of the GC: the image of the runtime or of a standalone GC. Adds the layouts of the GC's records to `descriptor`, except for types
/// that the runtime describes itself.
pub(super) fn find(
    dump: &DumpFile,
    memory: &Memory,
    runtime: Option<&Image>,
    descriptor: &mut Descriptor,
    notes: &Collector,
) -> Option<Image> {
    let anchor = ANCHORS.iter().find_map(|name| descriptor.pointer(name).ok().filter(|a| !a.is_null()))?;
    let image = match runtime.filter(|i| i.range.contains(anchor)) {
        Some(image) => image.clone(),
        None => image_of(dump, memory, anchor, notes)?,
    };
    if let Some(records) = overlay::gc_records(memory.shape().ptr) {
        let mut raw = records.raw.clone();
        raw.types.retain(|(name, _)| !descriptor.types.contains_key(name));
        raw.globals.retain(|(name, _)| !descriptor.globals.contains_key(name));
        let (kind, name) = (OriginKind::Overlay, format!("overlay {}", records.section.name));
        let origin = descriptor.add_origin(Origin { kind, name, address: None, version: raw.version });
        descriptor.merge(&raw, origin, |_| None);
    }
    Some(image)
}

/// The image of the module around `address`. The list of modules ends a module at its last file-backed page, but an image includes `.bss`.
fn image_of(dump: &DumpFile, memory: &Memory, address: Addr, notes: &Collector) -> Option<Image> {
    let module = dump.modules.iter().filter(|m| m.base <= address).max_by_key(|m| m.base)?;
    let image = Image::at(memory, module.base);
    // Dump writers keep whole pages, so a partial page is a loss.
    if image.is_none() && memory.is_torn(module.base) {
        notes.add(Missing::Modules, module.base, format!("a part of the headers of {} is not in the dump", module.path));
    }
    image.filter(|i| i.range.contains(address))
}
