//! The version of a runtime, from its descriptor, its crash report, its module or its read-only data.

use super::Opener;
use super::Vm;
use crate::base::{AddrRange, Missing, NoteKind, Remedy, len64};
use crate::contract::descriptor::Descriptor;
use crate::contract::{locate, native_aot};
use crate::memory::{framework, hex};
use crate::model::{CrashReport, VersionSource};

impl Opener<'_> {
    pub(super) fn version(&self, vm: &Vm, crash: Option<&CrashReport>) -> Option<(String, VersionSource)> {
        if let Some(text) = self.product_version(&vm.descriptor) {
            return Some((text, VersionSource::Descriptor));
        }
        if let Some(version) = crash.and_then(|c| c.runtime_version.clone()) {
            return Some((version, VersionSource::CrashReport));
        }
        if vm.descriptor.is_native_aot() {
            return Some((native_aot::version(self.memory, self.site.image.as_ref()?)?, VersionSource::Image));
        }
        if let Some(plain) = self.plain_version() {
            return Some(plain);
        }
        let site = self.site;
        let build_id = site.image.as_ref().and_then(|i| i.build_id.as_deref()).map(hex);
        let known = build_id.and_then(|id| vm.overlay?.section.build_ids.get(&id).cloned());
        if let Some(version) = known {
            return Some((version, VersionSource::BuildId));
        }
        if let Some(version) = self.version_text() {
            return Some((version, VersionSource::Image));
        }
        vm.overlay.and_then(|o| o.section.runtime.clone()).map(|v| (v, VersionSource::Overlay))
    }

    /// The version according to the module list or the module path, without reading memory. Only the folder of an installed framework has the
    /// runtime's version as its name; other folders may have the version of the program.
    pub(super) fn plain_version(&self) -> Option<(String, VersionSource)> {
        let module = self.site.module.as_ref()?;
        if let Some([major, minor, build, _]) = module.version.filter(|_| locate::is_runtime_name(module)) {
            return Some((release(u32::from(major), u32::from(minor), u32::from(build)), VersionSource::ModuleList));
        }
        let (_, version) = framework(&module.path)?;
        Some((version.into(), VersionSource::Path))
    }

    /// Adds the note `what` about a runtime that no overlay describes. Only files of .NET 9 and later have a descriptor, which may supply the layouts.
    pub(super) fn lacks_layouts(&self, what: &str) {
        let version = self.plain_version().map(|(v, _)| v).or_else(|| self.version_text());
        let (remedy, more) = match version.is_some_and(|v| v.starts_with("8.")) {
            true => (Remedy::Overlay, "; the files of .NET 8 do not describe the rest"),
            false => (Remedy::RuntimeFiles, ""),
        };
        self.notes.add(Missing::Layouts.supplied_by(remedy), None, format!("{what}{more}"));
    }

    /// Adds notes if a newer gcdump may read more.
    pub(super) fn newer_reader(&self, d: &Descriptor, version: Option<u64>) {
        if let Some(v) = version.filter(|v| *v > 2) {
            let what = format!("descriptor format version {v} is unknown (known: 0 to 2); reading what is recognized");
            self.notes.add(NoteKind::Descriptor, None, what);
        }
        // Version 2 added the code manager of the interpreter, which is not supported.
        if let Ok(wanted) = d.number("RecommendedReaderVersion")
            && wanted > 2
        {
            let what = format!("the runtime recommends reader version {wanted}, this gcdump has 2; a newer gcdump may read more");
            self.notes.add(NoteKind::Descriptor, None, what);
        }
    }

    fn product_version(&self, d: &Descriptor) -> Option<String> {
        const NAME: &str = "RuntimeProductVersionString";
        if let Ok(text) = d.text(NAME) {
            return Some(text.into());
        }
        let text = self.memory.text(d.pointer(NAME).ok()?, 256).ok()?;
        (!text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() || b == b' ')).then_some(text)
    }

    /// The version in the text `@(#)Version 10.0.926.27113 @Commit: …`. The text is in the runtime's read-only data, which heap dumps do not have.
    pub(super) fn version_text(&self) -> Option<String> {
        const MARK: &[u8] = b"@(#)Version ";
        let image = self.site.image.as_ref()?;
        self.memory.stretches(image.range).take_while(|(_, bytes)| self.memory.afford_bytes(len64(bytes.len()))).find_map(
            |(start, bytes)| {
                let at = memchr::memmem::find(bytes, MARK)?;
                let rest = bytes.get(at..)?.get(MARK.len()..)?;
                let found = start.plus(u64::try_from(at).ok()?);
                self.memory.touch(AddrRange::of(found, 64));
                let text: String = rest.iter().take(32).take_while(|b| b.is_ascii_digit() || **b == b'.').map(|b| char::from(*b)).collect();
                let numbers: Vec<u32> = text.split('.').map_while(|n| n.parse().ok()).collect();
                match numbers.as_slice() {
                    [major, minor, build, ..] => Some(release(*major, *minor, *build)),
                    _ => None,
                }
            },
        )
    }
}

/// The release for a file version: 10.0.1226.42308 is 10.0.12. Up to .NET Core 3.1, file versions look like those of .NET Framework: 4.6 for releases
/// 1 and 2, 4.700 for release 3.
fn release(major: u32, minor: u32, build: u32) -> String {
    match (major, minor) {
        (4, 700) => "3".into(),
        (4, _) => "2".into(),
        _ => format!("{major}.{minor}.{}", build / 100),
    }
}
