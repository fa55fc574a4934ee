//! Overlays: descriptors for runtimes that have no descriptor, or whose descriptor is not in the dump.
//!
//! An overlay is a descriptor in the runtime's compact JSON plus an `"overlay"` section that identifies its target (see `docs/overlays.md`). Bundled
//! overlays are in `data/`; `--overlay FILE` adds more. The name of an overlay does not prove that the overlay matches; self-checks against the dump
//! decide (`contract::checks`).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::json::{self, JsonError, RawDescriptor};
use crate::base::{Arch, Os, PtrSize};

/// A parsed overlay.
#[derive(Clone, Debug)]
pub struct Overlay {
    /// The `"overlay"` section.
    pub section: Section,
    /// Types, globals and contracts.
    pub raw: RawDescriptor,
    /// Whether the overlay is user-supplied (`--overlay`) and therefore tried first.
    pub given: bool,
}

/// The `"overlay"` section: the target of an overlay, and how to find the runtime's variables.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Section {
    /// Name, shown in answers that use it.
    pub name: String,
    /// Major and minor version of the runtime: `8.0`.
    pub runtime: Option<String>,
    /// `linux`, `windows`, `macos`; absent for any.
    pub os: Option<String>,
    /// `x64`, `arm64` …; absent for any.
    pub arch: Option<String>,
    /// Pointer size in bytes, for overlays that depend on nothing else.
    pub pointer_bytes: Option<u64>,
    /// Minor version of `GcDacVars` in which a field was added, by name of the field.
    #[serde(default)]
    pub since_minor: BTreeMap<String, u64>,
    /// Origin of the overlay's data.
    #[serde(default)]
    pub source: String,
    /// Size of the descriptor that this overlay copies. The size identifies the descriptor if the dump has only its header.
    pub descriptor: Option<Repeats>,
    /// The order of `g_dacTable`.
    pub dac_table: Option<DacTableOrder>,
    /// The order of the tables in `DotNetRuntimeDebugHeader`.
    pub debug_header: Option<DebugHeaderOrder>,
    /// File name of the module that publishes the descriptor, if several modules publish descriptors.
    pub module: Option<String>,
    /// Build IDs of runtimes known to match, with their versions.
    #[serde(default)]
    pub build_ids: BTreeMap<String, String>,
}

/// Size of the descriptor that an overlay replicates.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct Repeats {
    /// Size of the JSON in bytes.
    pub json_bytes: u64,
    /// Number of pointer data slots.
    pub slots: u64,
}

/// Order of `g_dacTable`, an exported array of the addresses of all variables that the DAC reads.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct DacTableOrder {
    /// Numbers of entries for which this order is known.
    #[serde(default)]
    pub entries: Vec<u64>,
    /// Index by name of the global.
    pub index: BTreeMap<String, u64>,
}

/// Order of the two tables in a NativeAOT program's debug header, for dumps that do not contain the names in these tables.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct DebugHeaderOrder {
    /// Major version of the header.
    #[serde(default)]
    pub major: u16,
    /// `Type.field`, or `Type.SIZEOF`.
    pub entries: Vec<String>,
    /// Names of the globals.
    pub globals: Vec<String>,
}

/// Reason why an overlay cannot be parsed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OverlayError {
    /// Not a descriptor.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The `"overlay"` section is missing or malformed.
    #[error("missing or malformed \"overlay\" section: {0}")]
    Section(String),
}

impl Overlay {
    /// Parses an overlay.
    ///
    /// # Errors
    /// [`OverlayError`].
    pub fn parse(text: &[u8], given: bool) -> Result<Overlay, OverlayError> {
        #[derive(Deserialize)]
        struct WithSection {
            overlay: Section,
        }
        let raw = json::parse(text)?;
        // An overlay is written by hand, so an unusable item in it is an error, not a newer format.
        let wrong = raw.unusable.iter().map(|(item, why)| format!("{item}: {why}")).chain(raw.irregular.iter().cloned()).next();
        if let Some(wrong) = wrong {
            return Err(JsonError::Malformed(wrong).into());
        }
        let section: WithSection = serde_json::from_slice(text).map_err(|e| OverlayError::Section(e.to_string()))?;
        Ok(Overlay { section: section.overlay, raw, given })
    }

    /// Whether the overlay is for this operating system and architecture.
    pub fn fits(&self, os: Os, arch: Arch) -> bool {
        let matches = |wanted: &Option<String>, have: &str| wanted.as_deref().is_none_or(|w| w == have);
        matches(&self.section.os, os.name()) && matches(&self.section.arch, arch.name())
    }

    /// Index of a variable in `g_dacTable`.
    pub fn dac_index(&self, name: &str) -> Option<u64> {
        self.section.dac_table.as_ref()?.index.get(name).copied()
    }
}

/// An overlay that is embedded in the program and parsed on first use.
struct Bundled {
    text: &'static str,
    parsed: OnceLock<Option<Overlay>>,
}

impl Bundled {
    const fn new(text: &'static str) -> Bundled {
        Bundled { text, parsed: OnceLock::new() }
    }

    /// The parsed overlay. Never `None`, because a test parses all overlays.
    fn get(&self) -> Option<&Overlay> {
        self.parsed.get_or_init(|| Overlay::parse(self.text.as_bytes(), false).ok()).as_ref()
    }

    /// Whether the overlay is for this operating system and architecture. The text is searched, so that overlays for other targets need not be
    /// parsed.
    fn is_for(&self, os: Os, arch: Arch) -> bool {
        let has = |key: &str, value: &str| self.text.contains(&format!("\"{key}\": \"{value}\""));
        has("os", os.name()) && has("arch", arch.name())
    }
}

macro_rules! bundled {
    ($($name:literal),* $(,)?) => { [$(Bundled::new(include_str!(concat!("data/", $name, ".json")))),*] };
}

static RUNTIMES: [Bundled; 10] = bundled![
    "net10.0-linux-x64",
    "net10.0-linux-arm64",
    "net10.0-osx-arm64",
    "net10.0-win-x64",
    "net10.0-win-arm64",
    "net9.0-linux-x64",
    "net9.0-linux-arm64",
    "net9.0-win-x64",
    "net8.0-linux-x64",
    "net8.0-win-x64",
];

/// Copies of the descriptors of .NET 11, for the runtime and for the GC in each library. Kernel cores need them: such cores have the header and the
/// pointer data, but not the JSON, because kernels leave out file contents.
static TEXTS: [Bundled; 20] = bundled![
    "net11.0-linux-x64",
    "net11.0-linux-x64-coreclr-wks",
    "net11.0-linux-x64-coreclr-svr",
    "net11.0-linux-x64-clrgc-wks",
    "net11.0-linux-x64-clrgc-svr",
    "net11.0-linux-x64-clrgcexp-wks",
    "net11.0-linux-x64-clrgcexp-svr",
    "net11.0-linux-musl-x64",
    "net11.0-linux-arm64",
    "net11.0-linux-arm64-coreclr-wks",
    "net11.0-linux-arm64-coreclr-svr",
    "net11.0-linux-arm64-clrgc-svr",
    "net11.0-linux-arm64-clrgcexp-svr",
    "net11.0-win-x64",
    "net11.0-win-x64-coreclr-wks",
    "net11.0-win-x64-coreclr-svr",
    "net11.0-win-x64-clrgc-wks",
    "net11.0-win-x64-clrgc-svr",
    "net11.0-win-x64-clrgcexp-wks",
    "net11.0-win-x64-clrgcexp-svr",
];

/// Layouts of Mono, which publishes none.
static MONO: [Bundled; 1] = bundled!["mono6.8-linux-x64"];

/// Releases of which only types and objects are described.
static OLD: [Bundled; 1] = bundled!["net3.1-linux-x64"];

static GC_64: Bundled = Bundled::new(include_str!("data/gc-64.json"));
static GC_32: Bundled = Bundled::new(include_str!("data/gc-32.json"));
static VM_64: Bundled = Bundled::new(include_str!("data/vm-64.json"));
static AOT_64: [Bundled; 4] = bundled!["aot-net11-64", "aot-net10-64", "aot-64", "aot-net8-64"];
static AOT_32: [Bundled; 1] = bundled!["aot-32"];
static AOT_LIBRARY_64: [Bundled; 4] = bundled!["aot-library-net11-64", "aot-library-net10-64", "aot-library-64", "aot-library-net8-64"];
static GC_RECORDS_64: Bundled = Bundled::new(include_str!("data/gc-records-64.json"));

/// The bundled runtime overlays for this operating system and architecture, newest first.
pub fn bundled(os: Os, arch: Arch) -> impl Iterator<Item = &'static Overlay> {
    RUNTIMES.iter().filter(move |b| b.is_for(os, arch)).filter_map(Bundled::get).filter(move |o| o.fits(os, arch))
}

/// The bundled copies of descriptors for this operating system and architecture.
pub fn texts(os: Os, arch: Arch) -> impl Iterator<Item = &'static Overlay> {
    TEXTS.iter().filter(move |b| b.is_for(os, arch)).filter_map(Bundled::get)
}

/// The bundled layouts of Mono for this operating system and architecture, newest first.
pub fn mono(os: Os, arch: Arch) -> impl Iterator<Item = &'static Overlay> {
    MONO.iter().filter(move |b| b.is_for(os, arch)).filter_map(Bundled::get)
}

/// The bundled layouts of types and objects of releases before .NET 8 for this operating system and architecture.
pub fn old(os: Os, arch: Arch) -> impl Iterator<Item = &'static Overlay> {
    OLD.iter().filter(move |b| b.is_for(os, arch)).filter_map(Bundled::get)
}

/// The layouts of GC structures, unchanged from .NET 8 to 10.
pub fn gc_layouts(ptr: PtrSize) -> Option<&'static Overlay> {
    match ptr {
        PtrSize::Eight => GC_64.get(),
        PtrSize::Four => GC_32.get(),
    }
}

/// VM layouts missing from the descriptors of .NET 9 and 10, unchanged since .NET 8. `None` for 32-bit targets, for which they were not
/// measured.
pub fn vm_layouts(ptr: PtrSize) -> Option<&'static Overlay> {
    VM_64.get().filter(|_| ptr == PtrSize::Eight)
}

/// Layouts of the GC's records of its collections, which no release publishes. The records are found by their contents (`gc::collections`).
/// `None` for 32-bit targets, for which they were not measured.
pub fn gc_records(ptr: PtrSize) -> Option<&'static Overlay> {
    GC_RECORDS_64.get().filter(|_| ptr == PtrSize::Eight)
}

/// Layouts that the debug header or the descriptor of a NativeAOT program omits, newest release first. The 32-bit layouts apply to any release.
pub fn native_aot(ptr: PtrSize) -> impl Iterator<Item = &'static Overlay> {
    let all: &[Bundled] = match ptr {
        PtrSize::Eight => &AOT_64,
        PtrSize::Four => &AOT_32,
    };
    all.iter().filter_map(Bundled::get)
}

/// Fields of .NET's own types in NativeAOT programs. The overlay of .NET 9 has all known fields. The other overlays have only the differences from a
/// neighbor (.NET 8 and 10 from 9, 11 from 10). The fields are guesses until a method table confirms them. Empty for 32-bit targets.
pub fn aot_library(ptr: PtrSize) -> impl Iterator<Item = &'static Overlay> {
    AOT_LIBRARY_64.iter().filter(move |_| ptr == PtrSize::Eight).filter_map(Bundled::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bundled_overlay_parses_and_names_its_target() {
        let of_programs = AOT_64.iter().chain(&AOT_32).chain(&AOT_LIBRARY_64);
        for bundled in
            RUNTIMES.iter().chain(&TEXTS).chain(&MONO).chain(&OLD).chain([&GC_64, &GC_32, &VM_64, &GC_RECORDS_64]).chain(of_programs)
        {
            Overlay::parse(bundled.text.as_bytes(), false).unwrap();
        }
        for bundled in &RUNTIMES {
            let o = bundled.get().unwrap();
            assert!(o.section.runtime.is_some() && o.section.os.is_some() && o.section.arch.is_some(), "{}", o.section.name);
            assert!(!o.section.source.is_empty() && !o.raw.types.is_empty());
        }
        for bundled in &TEXTS {
            let o = bundled.get().unwrap();
            assert!(o.section.module.is_some() && o.section.descriptor.is_some(), "{}", o.section.name);
            let is_root = !o.raw.sub_descriptors.is_empty();
            assert_eq!(is_root, !o.raw.contracts.iter().any(|c| c.0 == "GC"), "{}", o.section.name);
        }
        for ptr in [PtrSize::Four, PtrSize::Eight] {
            let o = gc_layouts(ptr).unwrap();
            assert_eq!(o.section.pointer_bytes, Some(ptr.bytes()));
            assert_eq!(o.raw.contracts, [("GC".to_string(), "c1".to_string())]);
        }
        assert!(gc_records(PtrSize::Eight).is_some() && gc_records(PtrSize::Four).is_none());
        assert!(vm_layouts(PtrSize::Eight).is_some() && vm_layouts(PtrSize::Four).is_none());
    }

    #[test]
    fn only_overlays_for_the_target_are_listed() {
        let names = |os, arch| bundled(os, arch).map(|o| o.section.name.as_str()).collect::<Vec<_>>();
        assert_eq!(names(Os::Linux, Arch::X64), ["net10.0-linux-x64", "net9.0-linux-x64", "net8.0-linux-x64"]);
        assert_eq!(names(Os::Windows, Arch::Arm64), ["net10.0-win-arm64"]);
        assert!(names(Os::Linux, Arch::S390x).is_empty());
    }
}
