//! Finds the debug header by its export, its cookie, or the shape of its tables.

use super::header::{COOKIE, DebugHeader, DebugHeaderError, MAX_ENTRIES, MAX_GLOBALS, Tables};
use crate::base::{Addr, AddrRange, PAGE, len64};
use crate::contract::overlay::{self, Overlay};
use crate::dump::Module;
use crate::memory::{Image, Memory};

/// Exported symbol of the debug header, in NativeAOT programs of .NET 8 to 10.
const EXPORT: &str = "DotNetRuntimeDebugHeader";
/// Minimum number of entries in a table of types: .NET 8 to 10 have about ninety.
const MIN_ENTRIES: usize = 40;
/// Minimum number of entries in a table of globals: .NET 9 has six.
const MIN_GLOBALS: u64 = 4;
/// Upper limit of offsets and sizes in the table.
const MAX_VALUE: u64 = 0x1_0000;

/// The header that `image` exports, if any.
pub fn by_export(memory: &Memory, image: &Image) -> Option<Result<DebugHeader, DebugHeaderError>> {
    let export = image.export(memory, EXPORT)?;
    let read = DebugHeader::read(memory, export.address, "its export", &releases(memory));
    // If the page of the header is not in the dump, the pages of its tables may be: heap dumps have only the tables.
    Some(read.or_else(|e| by_content(memory, image).unwrap_or(Err(e))))
}

/// A candidate module, its image and its header.
type Found<'m> = (&'m Module, Image, Result<DebugHeader, DebugHeaderError>);

/// The NativeAOT programs and libraries among `modules`, at most `most`, found by the content of their images. Each of them has its own runtime.
pub fn all_by_content<'m>(memory: &Memory, modules: &'m [Module], image: impl Fn(&Module) -> Option<Image>, most: usize) -> Vec<Found<'m>> {
    let found = modules.iter().filter_map(|module| {
        let image = image(module)?;
        let header = by_content(memory, &image)?;
        Some((module, image, header))
    });
    found.take(most).collect()
}

/// The header, or otherwise its tables, in the captured writable memory of `image`.
pub fn by_content(memory: &Memory, image: &Image) -> Option<Result<DebugHeader, DebugHeaderError>> {
    let mut failure = None;
    for (start, bytes) in writable(memory, image) {
        for offset in memchr::memmem::find_iter(bytes, &COOKIE) {
            let address = start.plus(len64(offset));
            if !address.is_aligned(memory.ptr_bytes()) || !memory.afford_steps(1) {
                continue;
            }
            match DebugHeader::read(memory, address, "its cookie in the module's data", &releases(memory)) {
                Ok(header) => return Some(Ok(header)),
                Err(e) => failure = failure.or(Some(e)),
            }
        }
    }
    let tables = tables_by_shape(memory, image)?;
    let read = DebugHeader::of_tables(memory, tables, None, "the shape of its tables in the module's data", &releases(memory));
    match (read, failure) {
        (Err(_), Some(failure)) => Some(Err(failure)),
        (read, _) => Some(read),
    }
}

fn releases(memory: &Memory) -> Vec<&'static Overlay> {
    overlay::native_aot(memory.shape().ptr).filter(|o| o.section.debug_header.is_some()).collect()
}

/// The captured writable memory of an image, within the budget for opening a dump.
fn writable<'m>(memory: &'m Memory, image: &'m Image) -> impl Iterator<Item = (Addr, &'m [u8])> {
    let afford = |r: &&AddrRange| memory.afford_bytes(memory.captured(**r));
    image.writable.iter().take_while(afford).flat_map(|range| memory.stretches(*range))
}

/// Finds the tables by their shape if the header that points to them is not in the dump. The table of types is a run of rows that ends with a null
/// name. Each row has two pointers into the image and a small number. The table of globals has pairs: a pointer into the image, and an address.
fn tables_by_shape(memory: &Memory, image: &Image) -> Option<Tables> {
    let word = memory.ptr_bytes();
    let row = 2 * word + 8;
    let inside = |a: Addr| image.range.contains(a);
    let is_row = |at: Addr| -> Option<bool> {
        let (name, field) = (memory.ptr(at).ok()?, memory.ptr(at.plus(word)).ok()?);
        let (value, zero) = (memory.u32(at.plus(2 * word)).ok()?, memory.u32(at.plus(2 * word + 4)).ok()?);
        Some(inside(name) && inside(field) && u64::from(value) < MAX_VALUE && zero == 0 && name != field)
    };
    for (start, bytes) in writable(memory, image) {
        let end = start.plus(len64(bytes.len()));
        let mut at = Addr(start.0.next_multiple_of(word));
        while at.plus(row) <= end {
            if is_row(at) != Some(true) {
                at = at.plus(word);
                continue;
            }
            let n = (0..MAX_ENTRIES).take_while(|i| memory.afford_steps(1) && is_row(at.plus(i * row)) == Some(true)).count();
            let types_end = at.plus(len64(n) * row);
            if n >= MIN_ENTRIES && memory.ptr(types_end).is_ok_and(Addr::is_null) {
                let globals = globals_near(memory, image, at, types_end)?;
                return Some(Tables { types: at, globals });
            }
            // If a run of rows is too short, all its suffixes are too short as well, so skip the whole run.
            at = types_end.max(at.plus(word));
        }
    }
    None
}

/// Finds the table of globals within a page before or after the table of types, which extends from `types` to `end`. In .NET 9 the table of globals
/// is in the next page.
fn globals_near(memory: &Memory, image: &Image, types: Addr, end: Addr) -> Option<Addr> {
    let word = memory.ptr_bytes();
    let pair = 2 * word;
    let inside = |at: Addr| memory.ptr(at).is_ok_and(|a| image.range.contains(a));
    let places = 0..=PAGE / word;
    let after = places.clone().map(|i| end.plus(i * word));
    let before = places.filter_map(|i| types.minus(i * word));
    after.chain(before).find(|at| {
        let pairs = len64((0..MAX_GLOBALS).take_while(|i| inside(at.plus(i * pair))).count());
        // One of the globals must be the base address of the module.
        let names_base = || (0..pairs).any(|i| memory.ptr(at.plus(i * pair + word)) == Ok(image.base));
        (MIN_GLOBALS..MAX_GLOBALS).contains(&pairs) && memory.ptr(at.plus(pairs * pair)).is_ok_and(Addr::is_null) && names_base()
    })
}
