//! Releases before .NET 8, of which only types and objects are read. Their `g_dacTable` is not exported, so the variables that point to the
//! well-known method tables are found by the contents of these method tables.

use super::{Opener, Vm};
use crate::base::{Addr, Missing, len64};
use crate::contract::checks::{self, Check};
use crate::contract::descriptor::Descriptor;
use crate::contract::overlay;
use crate::data::{Bound, EEClass, MethodTable, bind, component_size};
use crate::memory::Memory;
use crate::model::LayoutSource;

/// Number of checks that must pass: three method tables and the round trip through the `EEClass`.
const LEAST_PASSED: usize = 4;

impl<'a> Opener<'a> {
    /// The types of an older release, if an overlay for it is confirmed.
    pub(super) fn old(&self) -> Option<Vm<'a>> {
        let (version, _) = self.plain_version().or_else(|| self.version_text().map(|v| (v, crate::model::VersionSource::Image)))?;
        let major = |v: &str| v.split('.').next().map(str::to_string);
        let (os, arch) = (self.dump.facts.os, self.dump.facts.arch);
        for overlay in overlay::old(os, arch).filter(|o| o.section.runtime.as_deref().and_then(major) == major(&version)) {
            let mut descriptor = self.assemble(Some(overlay), None, &[], None);
            let Some(found) = self.well_known(&descriptor) else { continue };
            for (name, at) in found {
                descriptor.set_pointer(name, at, 0);
            }
            let checks = checks::run(&descriptor, self.memory, &self.options.limits);
            if !checks.iter().any(Check::failed) && checks.iter().filter(|c| c.passed()).count() >= LEAST_PASSED {
                let release = overlay.section.runtime.as_deref().unwrap_or(&version);
                self.notes.add(Missing::Layouts, None, format!("of .NET Core {release} only types and objects are read"));
                return Some(Vm {
                    descriptor,
                    source: LayoutSource::Overlay,
                    overlay: Some(overlay),
                    table: None,
                    checks,
                    refused: Vec::new(),
                });
            }
        }
        None
    }

    /// The variables that point to the method tables of free space, Object and String.
    fn well_known(&self, d: &Descriptor) -> Option<[(&'static str, Addr); 3]> {
        let wanted = Wanted::bind(self.memory, d)?;
        let word = self.memory.ptr_bytes();
        let (mut free, mut object, mut string) = (None, None, None);
        for range in &self.site.image.as_ref()?.writable {
            for (start, bytes) in self.memory.stretches(*range).take_while(|(_, bytes)| self.memory.afford_bytes(len64(bytes.len()))) {
                let first = Addr(start.0.checked_next_multiple_of(word)?);
                for at in (0..len64(bytes.len()).checked_div(word)?).map(|i| first.element(i, word)) {
                    let Some(table) = self.memory.ptr(at).ok().filter(|t| !t.is_null() && t.is_aligned(word)) else { continue };
                    match wanted.kind(table) {
                        Some(Kind::Free) => free = free.or(Some(at)),
                        Some(Kind::Object) => object = object.or(Some(at)),
                        Some(Kind::String) => string = string.or(Some(at)),
                        None => {}
                    }
                    if let (Some(free), Some(object), Some(string)) = (free, object, string) {
                        return Some([("FreeObjectMethodTable", free), ("ObjectMethodTable", object), ("StringMethodTable", string)]);
                    }
                }
            }
        }
        None
    }
}

enum Kind {
    Free,
    Object,
    String,
}

/// The layouts by which the well-known method tables are recognized.
struct Wanted<'m> {
    memory: &'m Memory,
    table: Bound<MethodTable>,
    class: Bound<EEClass>,
}

impl<'m> Wanted<'m> {
    fn bind(memory: &'m Memory, d: &Descriptor) -> Option<Wanted<'m>> {
        Some(Wanted {
            memory,
            table: bind!(d, MethodTable { MTFlags, BaseSize, ParentMethodTable, EEClassOrCanonMT }).ok()?,
            class: bind!(d, EEClass { MethodTable }).ok()?,
        })
    }

    fn kind(&self, table: Addr) -> Option<Kind> {
        let (memory, word) = (self.memory, self.memory.ptr_bytes());
        let flags = self.table.get(memory, table, MethodTable::MTFlags)?;
        let component = component_size(flags).unwrap_or(0);
        let base = u64::from(self.table.get(memory, table, MethodTable::BaseSize)?);
        let class = self.table.get(memory, table, MethodTable::EEClassOrCanonMT)?;
        let parent = self.table.get(memory, table, MethodTable::ParentMethodTable)?;
        let leads_back = || self.class.get(memory, class, EEClass::MethodTable) == Some(table);
        let object = word.checked_mul(3)?;
        // The base size of a string includes the header word, the method table pointer, the length and the terminating NUL.
        let string = word.checked_mul(2)?.checked_add(6)?;
        match (component, base) {
            (1, base) if base == object && class.is_null() && parent.is_null() => Some(Kind::Free),
            (0, base) if base == object && parent.is_null() && leads_back() => Some(Kind::Object),
            (2, base) if base == string && !parent.is_null() && leads_back() => Some(Kind::String),
            _ => None,
        }
    }
}
