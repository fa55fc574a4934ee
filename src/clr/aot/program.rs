//! A NativeAOT program: its tables, and its symbols and debug information, which are read at first use.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use super::{Blobs, Debugging, Method, StaticKind, has_pointers};
use crate::base::hash::Map;
use crate::base::missed::{Kept, tried};
use crate::base::{Addr, Collector, Limits, Missing, Name, NoteKind, Os, Remedy};
use crate::clr::generated::{self, SharedNames};
use crate::clr::refusal::Refusal;
use crate::contract::{Descriptor, Site};
use crate::dump::Module;
use crate::memory::{FileSearch, Image, Memory};

/// The tables, symbols and debug information of a NativeAOT program. Threads share one `Program`.
#[derive(Debug)]
pub(crate) struct Program {
    blobs: Option<Blobs>,
    /// The header of the tables, if it is missing from a dump of a kind that contains it.
    lost_header: Option<Addr>,
    memory: Arc<Memory>,
    module: Option<(Module, Image)>,
    search: Option<FileSearch>,
    os: Os,
    limits: Limits,
    /// The release of .NET that the program was built with.
    release: Option<String>,
    debugging: OnceLock<Kept<Debugging>>,
    by_symbol: OnceLock<Map<String, Addr>>,
    shared_names: OnceLock<Kept<SharedNames>>,
}

impl Program {
    pub(in crate::clr) fn new(
        memory: &Arc<Memory>,
        descriptor: &Descriptor,
        site: &Site,
        os: Os,
        search: Option<FileSearch>,
        limits: &Limits,
    ) -> Program {
        let image = site.image.as_ref();
        let find = |image| Blobs::find(memory, None, image, has_pointers(descriptor), limits);
        // [`Program::note`] reports missing tables.
        let blobs = image.and_then(|image| tried(|| find(image)));
        Program {
            lost_header: image.filter(|_| blobs.is_none()).and_then(|image| Blobs::lost_header(memory, image)),
            blobs,
            memory: Arc::clone(memory),
            module: site.module.clone().zip(image.cloned()),
            search,
            os,
            limits: limits.clone(),
            release: descriptor.native_aot_release().map(Into::into),
            debugging: OnceLock::new(),
            by_symbol: OnceLock::new(),
            shared_names: OnceLock::new(),
        }
    }

    /// The compiler-generated tables in the image. `None` if they are not in the dump.
    pub(crate) fn blobs(&self) -> Option<&Blobs> {
        self.blobs.as_ref()
    }

    /// The .NET release that the program was built with, such as `10.0`. The release selects the bundled layouts.
    pub(crate) fn release(&self) -> Option<&str> {
        self.release.as_deref()
    }

    /// Symbols and debug information of the program. The first call finds and reads the files.
    pub(crate) fn debugging(&self) -> &Debugging {
        let read = || {
            let (module, image) = self.module.as_ref()?;
            let search = self.search.as_ref()?;
            Some(tried(|| Debugging::find(&self.memory, module, image, search, self.os, &self.limits)))
        };
        self.debugging.get_or_init(|| Kept::of(|| read().unwrap_or_default())).get()
    }

    /// Whether a static field at `place` has its current value. False if the page came from the program's file, which has the initial
    /// value.
    pub(crate) fn is_current(&self, place: Addr) -> bool {
        let in_image = self.module.as_ref().is_some_and(|(_, image)| image.range.contains(place));
        !in_image || self.memory.is_from_dump(place)
    }

    /// The method table of the type with this mangled name; for a structure, the method table of the boxed form.
    pub(crate) fn type_of(&self, mangled: &str) -> Option<Addr> {
        let by_symbol = self.by_symbol.get_or_init(|| {
            let symbols = self.debugging().symbols.iter();
            let types = symbols.flat_map(|s| s.types().take_while(|(symbol, _)| s.afford(symbol.name)));
            types.map(|(symbol, table)| (symbol.name.to_string(), table)).collect()
        });
        by_symbol.get(mangled).copied()
    }

    /// Names and values of the enum whose boxed form has the method table at `method_table`.
    pub(in crate::clr) fn literals_of(&self, method_table: Addr) -> Option<&[(String, i64)]> {
        let debugging = self.debugging();
        debugging.types.as_ref()?.literals_of(debugging.symbols.as_ref()?.type_at(method_table)?.name)
    }

    /// Method table of the type that declares the static fields in the block to which `slot` points.
    pub(crate) fn statics_owner(&self, slot: Addr) -> Option<Addr> {
        let symbols = self.debugging().symbols.as_ref()?;
        self.type_of(symbols.statics_at(slot, StaticKind::Gc)?)
    }

    /// Whether tables with names are missing from the dump or incomplete.
    pub(in crate::clr) fn lacks_names(&self) -> bool {
        self.blobs.as_ref().is_none_or(|blobs| !blobs.incomplete().is_empty())
    }

    /// The name of the method that contains `code`: `Lab.Program.Main`, or the mangled name if only a symbol identifies the method.
    pub(crate) fn method_at(&self, code: Addr) -> Option<Name> {
        let named = self.blobs.as_ref().and_then(|blobs| blobs.method_at(code));
        let symbol = || self.debugging().symbols.as_ref()?.function_at(code).map(|(name, _)| Name::from(name));
        named.map(|method| self.named(&method)).or_else(symbol)
    }

    /// The name of `method`, with the source form for people. Local functions with equal names cannot be distinguished.
    fn named(&self, method: &Method) -> Name {
        let raw = format!("{}.{}", method.owner, method.name);
        let source = generated::method(&raw, || method.name != "MoveNext" || self.shares_name(&method.owner));
        Name::shown_as(raw, source.map(|source| source.with("")))
    }

    /// Whether other state machines have the same source name as `machine`.
    pub(in crate::clr) fn shares_name(&self, machine: &str) -> bool {
        let names = || self.blobs.iter().flat_map(Blobs::definitions).map(|(_, definition)| definition.name.as_str());
        self.shared_names.get_or_init(|| Kept::of(|| SharedNames::of(names()))).get().has(machine)
    }

    /// Candidate files that do not belong to the program, with the reason.
    fn refused(&self) -> &[(PathBuf, Refusal)] {
        self.debugging.get().map_or(&[], |d| &d.get().refused)
    }

    /// Adds notes about data that cannot be read.
    pub(crate) fn note(&self, notes: &Collector) {
        let path = self.module.as_ref().map_or("the program", |(module, _)| module.path.as_str());
        match &self.blobs {
            Some(blobs) => blobs.note(path, notes),
            None if self.lost_header.is_some() => notes.add(
                Missing::Metadata.supplied_by(Remedy::ModuleFile),
                self.lost_header,
                format!("types have no names: the list of the tables of {path} is not in the dump"),
            ),
            None => notes.add(NoteKind::NoMetadata, None, format!("types have no names: {path} has no tables for reflection in the dump")),
        }
        for (path, why) in self.refused() {
            let reason = NoteKind::ModuleMismatch.supplied_by(why.remedy);
            notes.add(reason, None, format!("{} is not used for debug information: {why}", path.display()));
        }
        let debugging = self.debugging.get().map(Kept::get);
        if debugging.and_then(|d| d.types.as_ref()).is_some_and(|types| !types.is_whole()) {
            notes.add(NoteKind::LimitHit, None, "not all debug information of the program was read");
        }
        if debugging.and_then(|d| d.symbols.as_ref()).is_some_and(|symbols| !symbols.is_whole()) {
            notes.add(NoteKind::LimitHit, None, "not all symbols of the program were read");
        }
    }
}
