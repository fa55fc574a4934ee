//! Minidumps: modules, thread names, process ID.

use super::Module;
use super::fields::Fields;
use super::minidump_reading::{Reading, stream};
use crate::base::hash::Map;
use crate::base::{Endian, Limits, utf16};

/// Maximum total size in bytes of a minidump's strings. A process with a thousand modules has about 100 KB. Without this limit, many entries of
/// a hostile file could refer to one long string, which would be copied for each entry.
const MAX_STRINGS: u64 = 64 << 20;

/// Reads strings within a budget.
pub(super) struct Strings {
    /// Maximum size of one string in bytes.
    each: u64,
    /// Remaining size of all strings in bytes.
    left: u64,
}

impl Strings {
    /// An unused budget.
    pub(super) fn new(limits: &Limits, file: Fields<'_>) -> Strings {
        Strings { each: limits.string_bytes, left: MAX_STRINGS.min(file.len()) }
    }

    /// The length-prefixed UTF-16 string at `offset` of the file, up to a NUL. The string is cut at the limits and at the end of the file.
    /// Unpaired surrogates are escaped: see [`utf16`].
    fn read(&mut self, file: Fields<'_>, offset: u64) -> Option<String> {
        let declared = u64::from(file.u32(offset)?);
        let bytes = file.clamped(offset.saturating_add(4), declared.min(self.each).min(self.left));
        self.left = self.left.saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let units = bytes.chunks_exact(2).filter_map(|b| <[u8; 2]>::try_from(b).ok()).map(|b| match file.endian {
            Endian::Little => u16::from_le_bytes(b),
            Endian::Big => u16::from_be_bytes(b),
        });
        Some(utf16(units.take_while(|unit| *unit != 0)))
    }
}

/// Reads the module list. A module whose name is unreadable has an empty path.
pub(super) fn modules(reading: &mut Reading<'_>, strings: &mut Strings) -> Vec<Module> {
    const ENTRY: u64 = 108;
    let Some(list) = reading.stream(stream::MODULES, "module list") else {
        reading.lose(stream::MODULES);
        return Vec::new();
    };
    let (start, count) = reading.list(list, ENTRY, (stream::MODULES, "module list"));
    let cap = u64::try_from(reading.limits.modules).unwrap_or(u64::MAX);
    if count > cap {
        reading.oddities.push(format!("only the first {cap} modules are listed"));
        reading.lose(stream::MODULES);
    }
    let mut modules = Vec::new();
    let mut unnamed = 0u64;
    for index in 0..count.min(cap) {
        let at = start.saturating_add(index.saturating_mul(ENTRY));
        let half = |n: u64| list.u32(at.saturating_add(n));
        let (Some(base), Some(size), Some(timestamp), Some(name_at)) = (list.u64(at), half(8), half(16), half(20)) else {
            break;
        };
        let path = strings.read(reading.file, u64::from(name_at)).filter(|p| !p.is_empty());
        unnamed = unnamed.saturating_add(u64::from(path.is_none()));
        modules.push(Module {
            path: path.unwrap_or_default(),
            base: reading.addr(base),
            size: u64::from(size),
            timestamp: Some(timestamp),
            version: version(half(24), half(32), half(36)),
            build_id: half(76).zip(half(80)).and_then(|(len, at)| build_id(reading.file, len, at)),
        });
    }
    if unnamed > 0 {
        reading.oddities.push(match unnamed {
            1 => "a module has no readable name".into(),
            n => format!("{n} modules have no readable name"),
        });
    }
    modules
}

/// Decodes the file version from three fields of `VS_FIXEDFILEINFO`: the signature, and the two halves of the version.
fn version(signature: Option<u32>, high: Option<u32>, low: Option<u32>) -> Option<[u16; 4]> {
    if signature != Some(0xfeef_04bd) {
        return None;
    }
    let [a, b, c, d] = high?.to_be_bytes();
    let [e, f, g, h] = low?.to_be_bytes();
    Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]), u16::from_be_bytes([e, f]), u16::from_be_bytes([g, h])])
}

/// The build ID from a CodeView record. A record with the signature `RSDS` contains the GUID and age of the PDB (20 bytes, verbatim). A record
/// with the signature `BpEL` contains a GNU build ID (ELF).
fn build_id(file: Fields<'_>, len: u32, at: u32) -> Option<Vec<u8>> {
    const MAX_BUILD_ID: u64 = 64;
    let record = Fields::new(file.slice(u64::from(at), u64::from(len))?, file.endian);
    let id = match record.u32(0)? {
        0x5344_5352 => record.slice(4, 20)?,
        0x4270_454c => record.clamped(4, MAX_BUILD_ID),
        _ => return None,
    };
    Some(id.to_vec())
}

/// Thread names by thread ID.
pub(super) fn thread_names(reading: &mut Reading<'_>, strings: &mut Strings) -> Map<u32, String> {
    const ENTRY: u64 = 12;
    let mut names = Map::default();
    let Some(list) = reading.stream(stream::THREAD_NAMES, "thread name list") else { return names };
    let (start, count) = reading.list(list, ENTRY, (stream::THREAD_NAMES, "thread name list"));
    let cap = u64::try_from(reading.limits.threads).unwrap_or(u64::MAX);
    for index in 0..count.min(cap) {
        let at = start.saturating_add(index.saturating_mul(ENTRY));
        let (Some(id), Some(name_at)) = (list.u32(at), list.u64(at.saturating_add(4))) else { break };
        if let Some(name) = strings.read(reading.file, name_at).filter(|n| !n.is_empty()) {
            names.insert(id, name);
        }
    }
    names
}

/// The process ID and the start time in seconds since 1970, if the flags of the MiscInfo stream declare them valid.
pub(super) fn process(reading: &mut Reading<'_>) -> (Option<u32>, Option<u64>) {
    const HAS_PROCESS_ID: u32 = 1;
    const HAS_PROCESS_TIMES: u32 = 2;
    /// Size in bytes of the first version of the structure, which every later version begins with.
    const SMALLEST: u64 = 24;
    let Some(misc) = reading.stream(stream::MISC, "misc info") else { return (None, None) };
    // The structure begins with its size.
    let own = misc.u32(0).map(u64::from).filter(|own| (SMALLEST..=misc.len()).contains(own));
    if own.is_none() && misc.len() > 0 {
        reading.oddities.push("the misc info is unreadable".to_owned());
        reading.lose(stream::MISC);
        return (None, None);
    }
    let declared = |flag: u32, offset: u64| misc.u32(offset).filter(|_| misc.u32(4).is_some_and(|flags| flags & flag != 0));
    (declared(HAS_PROCESS_ID, 8), declared(HAS_PROCESS_TIMES, 12).filter(|t| *t != 0).map(u64::from))
}
