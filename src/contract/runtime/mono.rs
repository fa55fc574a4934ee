//! Opens Mono, which publishes no layouts: an overlay supplies them, and the variable `mono_defaults` is found by its contents.
//!
//! Source: `docs/internals/mono.md`.

use super::{Description, Opener, RuntimeError};
use crate::base::{Addr, PAGE, len64};
use crate::contract::checks::{Check, Outcome};
use crate::contract::descriptor::{Descriptor, Origin};
use crate::contract::overlay::{self, Overlay};
use crate::data::{Bound, MonoClass, MonoDefaults, MonoType, Structure, bind};
use crate::memory::{Memory, hex};
use crate::model::{LayoutSource, OriginKind, VersionSource};
use std::sync::Arc;

/// Element types of the well-known classes to which `mono_defaults` points.
const OBJECT: u8 = 0x1c;
const STRING: u8 = 0x0e;
const CLASS: u8 = 0x12;

impl Opener<'_> {
    /// Opens Mono with the first overlay by which `mono_defaults` and the classes it points to are recognized.
    pub(super) fn mono(&self) -> Result<Description, RuntimeError> {
        let (os, arch) = (self.dump.facts.os, self.dump.facts.arch);
        let given =
            self.options.overlays.iter().filter(|o| o.fits(os, arch) && o.raw.types.iter().any(|(name, _)| name == MonoClass::NAME));
        let mut failures = Vec::new();
        for overlay in given.chain(overlay::mono(os, arch).map(|o| -> &Overlay { o })) {
            let mut d = Descriptor::default();
            let kind = OriginKind::Overlay;
            let name = format!("overlay {}", overlay.section.name);
            let origin = d.add_origin(Origin { kind, name, address: None, version: overlay.raw.version });
            d.merge(&overlay.raw, origin, |_| None);
            match self.defaults(&d) {
                Some(found) => return Ok(self.description(d, origin, overlay, found)),
                None => failures.push(format!("overlay {}: the well-known classes were not found", overlay.section.name)),
            }
        }
        if failures.is_empty() {
            failures.push(format!("gcdump has no overlay of Mono for {} {}", os.name(), arch.name()));
        }
        Err(RuntimeError::Mono { path: self.path(), why: failures.join("; ") })
    }

    fn description(&self, mut d: Descriptor, origin: usize, overlay: &Overlay, found: Defaults) -> Description {
        for (name, at) in &found.pointers {
            d.set_pointer(name, *at, origin);
        }
        let build_id = self.site.image.as_ref().and_then(|i| i.build_id.as_deref()).map(hex);
        let known = build_id.and_then(|id| overlay.section.build_ids.get(&id).cloned()).map(|v| (v, VersionSource::BuildId));
        let version = known.or_else(|| overlay.section.runtime.clone().map(|v| (v, VersionSource::Overlay)));
        let (version, version_source) = version.map_or((None, None), |(v, s)| (Some(v), Some(s)));
        let facts = format!("mono_defaults at {}: the classes of Object, String and Exception are whole", found.at);
        Description {
            site: self.site.clone(),
            descriptor: Arc::new(d),
            vm: LayoutSource::Overlay,
            gc: LayoutSource::None,
            overlay: Some(overlay.section.name.clone()),
            gc_dac_vars: None,
            gc_image: self.site.image.clone(),
            version,
            version_source,
            checks: vec![Check { name: "mono-defaults", outcome: Outcome::Passed(facts) }],
            refused: Vec::new(),
            descriptor_version: None,
            crash_report: None,
        }
    }

    /// Finds `mono_defaults` in the writable memory of the image.
    fn defaults(&self, d: &Descriptor) -> Option<Defaults> {
        let memory = self.memory;
        let wanted = Wanted::bind(memory, d)?;
        let word = memory.ptr_bytes();
        for range in &self.site.image.as_ref()?.writable {
            // A range may end within a page, so the captured words of a partial page are searched as well.
            for (start, bytes) in memory.stretches(*range).take_while(|(_, bytes)| memory.afford_bytes(len64(bytes.len()))) {
                let words = len64(bytes.len()).checked_div(word)?;
                let first = start.0.checked_next_multiple_of(word)?;
                for at in (0..words).map(|i| Addr(first).element(i, word)) {
                    if at.is_aligned(PAGE) && !memory.afford_steps(1) {
                        return None;
                    }
                    if let Some(found) = wanted.at(at) {
                        return Some(found);
                    }
                }
            }
        }
        None
    }
}

/// Address of `mono_defaults`, and the addresses of its fields for well-known classes.
struct Defaults {
    at: Addr,
    pointers: Vec<(&'static str, Addr)>,
}

/// The layouts by which `mono_defaults` is recognized.
struct Wanted<'m> {
    memory: &'m Memory,
    defaults: Bound<MonoDefaults>,
    class: Bound<MonoClass>,
    ty: Bound<MonoType>,
    header: u64,
}

impl<'m> Wanted<'m> {
    fn bind(memory: &'m Memory, d: &Descriptor) -> Option<Wanted<'m>> {
        Some(Wanted {
            memory,
            defaults: bind!(d, MonoDefaults { object_class, string_class, enum_class, exception_class, nullable_class }).ok()?,
            class: bind!(d, MonoClass { byval_arg, this_arg, parent, instance_size }).ok()?,
            ty: bind!(d, MonoType { data, Type }).ok()?,
            header: crate::data::MonoObject::size(d).ok()?,
        })
    }

    /// The class to which the word at `place` points, if this class has the element type `element`.
    fn class(&self, place: Addr, element: u8) -> Option<Addr> {
        let class = self.memory.ptr(place).ok().filter(|c| !c.is_null() && c.is_aligned(self.memory.ptr_bytes()))?;
        let of = |ty: Addr| Some((self.ty.get(self.memory, ty, MonoType::Type)?, self.ty.get(self.memory, ty, MonoType::data)?));
        let own = of(self.class.place(class, MonoClass::byval_arg)?)?;
        let by_reference = of(self.class.place(class, MonoClass::this_arg)?)?;
        (own == (element, class) && by_reference == own).then_some(class)
    }

    /// `mono_defaults`, if the variable at `at` points to the well-known classes.
    fn at(&self, at: Addr) -> Option<Defaults> {
        let place = |field| self.defaults.place(at, field);
        let object_at = place(MonoDefaults::object_class)?;
        let object = self.class(object_at, OBJECT)?;
        let string_at = place(MonoDefaults::string_class)?;
        self.class(string_at, STRING)?;
        let enum_at = place(MonoDefaults::enum_class)?;
        self.class(enum_at, CLASS)?;
        let exception_at = place(MonoDefaults::exception_class)?;
        let exception = self.class(exception_at, CLASS)?;
        let has_header = u64::from(self.class.get(self.memory, object, MonoClass::instance_size)?) == self.header;
        let is_root = self.class.get(self.memory, object, MonoClass::parent)?.is_null();
        let is_derived = self.class.get(self.memory, exception, MonoClass::parent)? == object;
        let mut pointers = vec![
            ("ObjectMethodTable", object_at),
            ("StringMethodTable", string_at),
            ("ExceptionMethodTable", exception_at),
            ("EnumClass", enum_at),
        ];
        pointers.extend(place(MonoDefaults::nullable_class).map(|at| ("NullableClass", at)));
        (has_header && is_root && is_derived).then_some(Defaults { at, pointers })
    }
}
