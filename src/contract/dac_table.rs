//! `g_dacTable` and `GcDacVars`: entry points into runtimes without a GC contract (.NET 8, 9, 10).
//!
//! `g_dacTable` is an exported array; entry *i* holds the address of the *i*-th variable that the DAC reads (`dacvars.h`). One of these variables
//! points to `GcDacVars` (`gcinterface.dac.h`), which lists everything the GC publishes. Source: `docs/internals/descriptors.md#g_dactable`.

use super::overlay::Overlay;
use crate::base::hash::Set;
use crate::base::{Addr, AddrRange, ranges};
use crate::memory::{Image, Memory, ReadError};

/// Maximum number of entries if the size of the table is unknown. The longest table seen has 170.
const MAX_ENTRIES: u64 = 512;

/// `g_dacTable` of one runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DacTable {
    /// Address of the table.
    pub address: Addr,
    /// Number of entries, if the symbol has a size (ELF).
    pub entries: Option<u64>,
    /// How the table was found.
    pub found_by: &'static str,
}

impl DacTable {
    /// Address of variable `index`; `None` if the entry is absent or null.
    pub fn entry(&self, memory: &Memory, index: u64) -> Option<Addr> {
        self.read(memory, index).ok().flatten()
    }

    /// Address of variable `index`; `None` if the table has no such entry or the entry is null.
    ///
    /// # Errors
    /// [`ReadError`] if the entry is not in the dump.
    pub fn read(&self, memory: &Memory, index: u64) -> Result<Option<Addr>, ReadError> {
        if self.entries.is_some_and(|n| index >= n) || !memory.afford_steps(1) {
            return Ok(None);
        }
        memory.ptr(self.address.element(index, memory.ptr_bytes())).map(|a| Some(a).filter(|a| !a.is_null()))
    }

    /// Number of entries: from the size of the symbol, or else up to the first entry that points outside the image. Windows symbols do not have a
    /// size. Tables of .NET 8, 9 and 10 have 169, 170 and 138 entries (measured).
    pub fn count(&self, memory: &Memory, image: &Image) -> u64 {
        self.entries.unwrap_or_else(|| {
            let inside = |i: &u64| self.entry(memory, *i).is_some_and(|a| image.range.contains(a));
            (0..MAX_ENTRIES).take_while(inside).count().try_into().unwrap_or(MAX_ENTRIES)
        })
    }
}

/// Offsets of the fields by which `GcDacVars` is recognized.
#[derive(Clone, Copy, Debug)]
pub struct VarsLayout {
    generation_size: u64,
    generation_count: u64,
    max_generation: u64,
}

impl VarsLayout {
    /// Takes the offsets from the GC overlay.
    pub fn of(gc: &Overlay) -> Option<VarsLayout> {
        let fields = &gc.raw.types.iter().find(|t| t.0 == "GcDacVars")?.1.fields;
        let offset = |name: &str| fields.iter().find(|f| f.0 == name).map(|f| f.1);
        Some(VarsLayout {
            generation_size: offset("GenerationSize")?,
            generation_count: offset("TotalGenerationCount")?,
            max_generation: offset("MaxGeneration")?,
        })
    }

    /// Whether a `GcDacVars` structure is at `address`. The match was unique in 133 of 133 dumps of .NET 8 to 10.
    pub fn matches(&self, memory: &Memory, address: Addr) -> bool {
        self.try_match(memory, address).is_some()
    }

    fn try_match(&self, memory: &Memory, address: Addr) -> Option<()> {
        let head = memory.bytes(address, memory.ptr_bytes()).ok()?;
        starts_like_vars(&head).then_some(())?;
        let size = memory.word(address.plus(self.generation_size)).ok()?;
        let count = memory.word(address.plus(self.generation_count)).ok()?;
        let max = memory.u32(memory.ptr(address.plus(self.max_generation)).ok()?).ok()?;
        ((64..=1024).contains(&size) && count == 5 && max == 2).then_some(())
    }
}

/// Whether the first word has major version 2, a small minor version, and otherwise zeros.
fn starts_like_vars(head: &[u8]) -> bool {
    matches!(head, [2, minor, rest @ ..] if *minor <= 32 && rest.iter().all(|b| *b == 0))
}

/// Location of the GC's variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GcDacVars {
    /// Address of the structure.
    pub address: Addr,
    /// How the structure was found.
    pub found_by: &'static str,
}

/// Finds `GcDacVars` through the table: at the index given by an overlay, otherwise at any index.
pub fn vars_by_table(memory: &Memory, layout: &VarsLayout, table: &DacTable, image: &Image, index: Option<u64>) -> Option<GcDacVars> {
    let at = |i: u64| {
        let vars = memory.ptr(table.entry(memory, i)?).ok()?;
        layout.matches(memory, vars).then_some(vars)
    };
    if let Some(address) = index.and_then(at) {
        return Some(GcDacVars { address, found_by: "its index in g_dacTable" });
    }
    // An entry whose target is not in the dump does not match; this is not an error. In createdump dumps, 63 of 158 entries are such.
    let count = table.count(memory, image).min(MAX_ENTRIES);
    (0..count).find_map(at).map(|address| GcDacVars { address, found_by: "a search through g_dacTable" })
}

/// Finds `GcDacVars` by its content in the writable memory of the runtime's image.
pub fn vars_by_content(memory: &Memory, layout: &VarsLayout, image: &Image) -> Option<GcDacVars> {
    let word = memory.ptr_bytes();
    words(memory, image)
        .filter(|(_, bytes)| starts_like_vars(bytes))
        .map(|(a, _)| a)
        .take_while(|_| memory.afford_steps(1))
        .find(|a| a.is_aligned(word) && layout.matches(memory, *a))
        .map(|address| GcDacVars { address, found_by: "its content in the runtime's data" })
}

/// Finds `g_dacTable` from the variable that points to `GcDacVars`: the address of that variable is entry `index` of the table. The search needs no
/// export table, so it works for kernel cores without module files. `known` lists entries whose variables are in the runtime's own descriptor. These
/// entries confirm the table: a global offset table contains the same addresses, but in another order.
pub fn table_by_content(memory: &Memory, image: &Image, vars: Addr, index: u64, known: &[(u64, Addr)]) -> Option<DacTable> {
    let number = |bytes: &[u8]| memory.shape().number(bytes);
    // Many words may point to the structure. A single scan finds all table entries that point to any of these words.
    let variables: Set<u64> = words(memory, image).filter(|(_, bytes)| number(bytes) == vars.0).map(|(a, _)| a.0).collect();
    if variables.is_empty() {
        return None;
    }
    words(memory, image).filter(|(_, bytes)| variables.contains(&number(bytes))).find_map(|(entry, _)| {
        let address = entry.minus(index.checked_mul(memory.ptr_bytes())?)?;
        let table = DacTable { address, entries: None, found_by: "its content in the runtime's data" };
        // A later build may have inserted entries, so that some of the known variables have moved. At least half of them must agree.
        let agreeing = known.iter().filter(|(i, variable)| table.entry(memory, *i) == Some(*variable)).count();
        if agreeing.saturating_mul(2) < known.len() {
            return None;
        }
        // Most earlier entries must be addresses in the image. A word that matches by chance has other neighbors.
        let near = |i: u64| table.entry(memory, i).is_some_and(|a| image.range.contains(a));
        (0..index).filter(|i| near(*i)).count().ge(&usize::try_from(index / 2).ok()?).then_some(table)
    })
}

/// Each aligned word of the image's captured writable memory, within the budget for opening a dump.
fn words<'m>(memory: &'m Memory, image: &Image) -> impl Iterator<Item = (Addr, &'m [u8])> {
    let word = memory.ptr_bytes();
    let mut list: Vec<AddrRange> = image.writable.clone();
    if list.is_empty() {
        list.push(image.range);
    }
    let list = ranges::union(list, 0).into_iter().map(move |r| AddrRange::new(r.start.align_down(word), r.end));
    list.take_while(|r| memory.afford_bytes(memory.captured(*r))).flat_map(move |range| memory.words(range))
}
