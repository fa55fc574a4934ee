//! The standalone GC of a process: a library that the runtime loads instead of the built-in GC.
//!
//! The runtime keeps the base address of the library (`g_gc_module_base`, gcheaputilities.cpp), in front of it the version that the library stated
//! (`g_gc_version_info`, a `VersionInfo` of gcinterface.h: three numbers and a name), and in front of that how far it has loaded it
//! (`g_gc_load_status`). None of them has a name in a dump.

use super::Runtime;
use crate::base::Addr;
use crate::base::hash::Map;
use crate::base::missed::tried;
use crate::dump::Module;
use crate::memory::{Image, hex};
use crate::model::StandaloneGc;

/// `GC_LOAD_STATUS_LOAD_COMPLETE`.
const LOAD_COMPLETE: u32 = 7;
/// Numbers of a version at most.
const MOST_MAJOR: u32 = 64;
const MOST_MINOR: u32 = 1 << 16;
/// Bytes of a name that are read.
const LONGEST: u64 = 64;
/// Bytes of the three numbers.
const NUMBERS: u64 = 12;

impl Runtime {
    /// The standalone GC; `None` if the runtime uses its own, or its variables are not in the dump.
    pub(crate) fn standalone_gc(&self) -> Option<StandaloneGc> {
        let image = self.description().site.image.as_ref()?;
        if self.descriptor().is_native_aot() || self.descriptor().is_mono() {
            return None;
        }
        let modules: Map<Addr, &Module> =
            self.file().modules.iter().filter(|m| !image.range.contains(m.base)).map(|m| (m.base, m)).collect();
        tried(|| {
            let words = image.writable.iter().flat_map(|range| self.memory().set_words(*range));
            words.filter_map(|(at, value)| Some((at, *modules.get(&Addr(value))?))).find_map(|(at, module)| self.stated(at, module))
        })
    }

    /// The GC in `module` if its version is in front of `at`, where the base address of the module is.
    fn stated(&self, at: Addr, module: &Module) -> Option<StandaloneGc> {
        let memory = self.memory();
        let word = memory.ptr_bytes();
        let numbers = NUMBERS.checked_next_multiple_of(word)?;
        let start = at.minus(numbers.checked_add(word)?)?;
        let [major, minor, build] = [0, 4, 8].map(|offset| memory.u32(start.plus(offset)).ok());
        let (major, minor, build) = (major?, minor?, build?);
        let padding = memory.bytes(start.plus(NUMBERS), numbers.checked_sub(NUMBERS)?).ok()?;
        let image = Image::at(memory, module.base);
        let range = image.as_ref().map_or_else(|| module.range(), |i| i.range);
        let name = memory.ptr(start.plus(numbers)).ok()?;
        (memory.ptr(at).ok()? == module.base).then_some(())?;
        let loaded = memory.u32(start.minus(word)?).ok()? == LOAD_COMPLETE;
        let plausible = loaded && (1..=MOST_MAJOR).contains(&major) && minor <= MOST_MINOR && padding.iter().all(|byte| *byte == 0);
        if !plausible || !(name.is_null() || range.contains(name)) {
            return None;
        }
        let build_id = module.build_id.clone().or_else(|| image?.build_id);
        let interface_version = if build == 0 { format!("{major}.{minor}") } else { format!("{major}.{minor}.{build}") };
        Some(StandaloneGc {
            file: module.file_name().to_string(),
            path: module.path.clone(),
            version: module.version.map(|v| v.map(|n| n.to_string()).join(".")),
            build_id: build_id.filter(|id| !id.is_empty()).map(|id| hex(&id)),
            interface_version,
            name: memory.text(name, LONGEST).ok().filter(|text| !name.is_null() && !text.is_empty()),
        })
    }
}
