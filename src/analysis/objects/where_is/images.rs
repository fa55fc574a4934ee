//! Addresses in images: module, section, nearest export; and other mapped memory.

use super::finder::Finder;
use crate::analysis::{PlaceKind, WhereReport};
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Missing};
use crate::contract::GlobalValue;
use crate::dump::Module;
use crate::memory::{Image, ImageFormat};
use crate::session::Images;

impl Finder<'_> {
    pub(super) fn module(&self, blank: &WhereReport) -> Option<WhereReport> {
        let (memory, address) = (self.heap.memory(), blank.address);
        let (module, range, image) = self.image_around(address)?;
        let offset = address.since(module.base);
        // Notes on missing parts of the image are added below.
        let section = image.as_ref().and_then(|i| tried(|| i.section(memory, address)));
        let nearest = image.as_ref().map(|i| tried(|| i.nearest_export(memory, address, section.as_ref().map(|s| s.range))));
        if image.is_none() || nearest.as_ref().is_some_and(|n| n.incomplete) {
            let what = if image.is_none() { "headers" } else { "exports" };
            self.notes.add(Missing::Modules, module.base, format!("not all {what} of {} are in the dump", module.file_name()));
        }
        let export = nearest.and_then(|n| n.export);
        let symbol_offset = export.as_ref().and_then(|(_, at)| address.since(*at));
        let mut text = format!("{}+{:#x}", module.file_name(), offset.unwrap_or(0));
        if let Some(s) = &section {
            text.push_str(&format!(" ({})", s.name));
        }
        if let Some(name) = self.global(address) {
            text.push_str(&format!(", the runtime's global {name}"));
        }
        if let (Some((name, _)), Some(offset)) = (&export, symbol_offset) {
            let offset = if offset == 0 { String::new() } else { format!("+{offset:#x}") };
            text.push_str(&format!(", nearest export {name}{offset}"));
        }
        let (symbol, name) = (export.map(|(name, _)| name), Some(module.path.clone()));
        let (range, section) = (Some(range), section.map(|s| s.name));
        Some(WhereReport { kind: PlaceKind::Module, text, range, offset, name, section, symbol, symbol_offset, ..blank.clone() })
    }

    /// Returns the module that contains an address, its extent, and its image if it can be read. The extent that the container lists for an ELF
    /// module ends before `.bss`.
    fn image_around(&self, address: Addr) -> Option<(&Module, AddrRange, Option<Image>)> {
        let runtime = self.heap.runtime();
        let modules = Images::of(runtime.file(), self.heap.memory(), Some(runtime)).modules;
        let listed = |m: &Module| m.range();
        let image = |m: &Module| tried(|| Image::at(self.heap.memory(), m.base));
        if let Some(m) = modules.iter().find(|m| listed(m).contains(address)) {
            return Some((m, listed(m), image(m)));
        }
        let below = modules.into_iter().filter(|m| m.base <= address).max_by_key(|m| m.base)?;
        let image = image(below)?;
        // Only for ELF images: the size in a PE header is wrong if the image is mapped as a flat file.
        (image.format == ImageFormat::Elf && image.range.contains(address)).then_some((below, image.range, Some(image)))
    }

    /// Returns the name that the descriptor has for the global variable at an address.
    fn global(&self, address: Addr) -> Option<&str> {
        let globals = &self.heap.runtime().descriptor().globals;
        globals.iter().find(|(_, g)| g.value == GlobalValue::Pointer(address)).map(|(name, _)| name.as_str())
    }

    pub(super) fn memory(&self, blank: &WhereReport) -> Option<WhereReport> {
        let region = self.heap.runtime().file().regions.iter().find(|r| r.range.contains(blank.address));
        let file = self.heap.runtime().file().files.iter().find(|f| f.range.contains(blank.address));
        let name = file.map(|f| f.path.clone());
        let of = name.as_ref().map_or_else(String::new, |n| format!(" of {n}"));
        let range = region.map(|r| r.range).or(file.map(|f| f.range));
        if blank.captured {
            let text = match &name {
                Some(name) => format!("Readable memory of {name}, outside the heap, stacks and modules"),
                None => "Readable memory outside the heap, stacks and modules".into(),
            };
            return Some(WhereReport { kind: PlaceKind::Memory, text, range, name, ..blank.clone() });
        }
        range?;
        Some(WhereReport {
            kind: PlaceKind::NotCaptured,
            text: format!("mapped memory{of}, not in the dump"),
            range,
            name,
            ..blank.clone()
        })
    }
}
