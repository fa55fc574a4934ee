//! ReadyToRun code: the image's function table, and the runtime's map from entry points to methods.

use super::super::{CodeBytes, StackError, end_of, gc_info_after};
use super::jitted::Functions;
use super::piece::{Code, CodeOrigin};
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Arch};
use crate::contract::{ContractError, Descriptor};
use crate::data::{Bound, Bucket, HashMap, ImageDataDirectory as Directory, Module, ReadyToRunInfo as Info, Structure, bind};
use crate::memory::ReadError;

/// `READYTORUN_SIGNATURE` (readytorun.h).
const SIGNATURE: u32 = 0x0052_5452;
/// Maximum number of sections in a header.
const MAX_SECTIONS: u32 = 256;
/// Size of a section's entry in the header in bytes.
const SECTION_BYTES: u64 = 12;
/// Maximum number of function table entries that are searched backwards for a method's body, which precedes its funclets.
const MAX_FUNCLETS: u64 = 1 << 10;
/// Number of functions at which the runtime's search changes from bisection to linear.
const LINEAR: u64 = 10;

/// Reads images with ReadyToRun code.
#[derive(Debug)]
pub(super) struct ReadyToRun {
    module: Bound<Module>,
    info: Bound<Info>,
    directory: Option<Bound<Directory>>,
    functions: Functions,
    map: Bound<HashMap>,
    bucket: Bound<Bucket>,
    bucket_size: u64,
    slots: u64,
    value_mask: u64,
    arch: Arch,
}

impl ReadyToRun {
    pub(super) fn bind(d: &Descriptor) -> Result<ReadyToRun, ContractError> {
        let functions = Functions::bind(d)?;
        let arch = if functions.has_ends() { Arch::X64 } else { Arch::Arm64 };
        Ok(ReadyToRun {
            module: bind!(d, Module { ReadyToRunInfo })?,
            info: bind!(d, Info {
                ReadyToRunHeader, CompositeInfo, RuntimeFunctions, NumRuntimeFunctions, NumHotColdMap?, DelayLoadMethodCallThunks?,
                EntryPointToMethodDescMap
            })?,
            directory: bind!(d, Directory { VirtualAddress, Size }).ok(),
            functions,
            map: bind!(d, HashMap { Buckets })?,
            bucket: bind!(d, Bucket { Keys, Values })?,
            bucket_size: Bucket::size(d)?,
            slots: d.number("HashMapSlotsPerBucket")?,
            value_mask: d.number("HashMapValueMask")?,
            arch,
        })
    }

    /// The `ReadyToRunInfo` of the image with the functions of `module`, and the image's header; `None` if all functions are JIT-compiled.
    fn info(&self, bytes: &CodeBytes, module: Addr) -> Result<Option<(Addr, Addr)>, ReadError> {
        let own = self.module.read(bytes, module, Module::ReadyToRunInfo)?;
        if own.is_null() {
            return Ok(None);
        }
        // The functions of a component of a composite image are in the composite image.
        let composite = self.info.read(bytes, own, Info::CompositeInfo)?;
        let info = if composite.is_null() { own } else { composite };
        Ok(Some((info, self.info.read(bytes, info, Info::ReadyToRunHeader)?)))
    }

    /// The address of the ReadyToRun header of the image with the functions of `module`. The header is within that image.
    pub(super) fn header(&self, bytes: &CodeBytes, module: Addr) -> Option<Addr> {
        Some(self.info(bytes, module).ok()??.1)
    }

    /// The code at `ip` in the image at `base` that belongs to `module`. The runtime enters only images with ReadyToRun code in its map of code
    /// (`ReadyToRunInfo`, readytoruninfo.cpp), so the module must have that information.
    pub(super) fn find(&self, bytes: &CodeBytes, base: Addr, module: Addr, ip: Addr) -> Result<Option<Code>, StackError> {
        let Some((info, header)) = self.info(bytes, module)? else {
            return Err(StackError::invalid(module, "the module of an image with managed code has no ReadyToRun information"));
        };
        if bytes.u32(header)? != SIGNATURE {
            return Err(StackError::invalid(header, "an invalid ReadyToRun header"));
        }
        if self.is_thunk(bytes, info, base, ip) {
            return Ok(None);
        }
        if tried(|| self.info.get(bytes, info, Info::NumHotColdMap)).is_some_and(|n| n > 0) {
            return Err(StackError::Unsupported { at: header, what: "an image with code split into hot and cold parts" });
        }
        let table = self.info.read(bytes, info, Info::RuntimeFunctions)?;
        let count = u64::from(self.info.read(bytes, info, Info::NumRuntimeFunctions)?);
        let Some(rva) = ip.since(base).and_then(|n| u32::try_from(n).ok()) else { return Ok(None) };
        let Some(index) = self.search(bytes, table, count, rva)? else { return Ok(None) };
        let entry = self.functions.entry(bytes, table, index)?;
        let at = |rva: u32| base.plus(u64::from(rva));
        let end = match entry.end {
            Some(end) => at(end),
            None if let Some(end) = tried(|| end_of(bytes, base, &entry).ok()) => end,
            // If the unwind information is not in the dump, the piece extends to the next function, and may include padding before that function.
            None if index.saturating_add(1) < count => at(self.functions.begin(bytes, table, index.saturating_add(1))?),
            None => ip.plus(1),
        };
        let range = AddrRange::new(at(entry.begin), end);
        if !range.contains(ip) {
            return Ok(None);
        }
        let entry_points = EntryPoints::open(self, bytes, self.info.at(info, Info::EntryPointToMethodDescMap)?)?;
        for main in (index.saturating_sub(MAX_FUNCLETS)..=index).rev() {
            let body = self.functions.entry(bytes, table, main)?;
            let Some(method_desc) = entry_points.find(bytes, at(body.begin))? else { continue };
            return Ok(Some(Code {
                method_desc,
                start: at(body.begin),
                range,
                origin: CodeOrigin::ReadyToRun { header, index: main },
                base,
                entry,
                funclet: main != index,
                gc_info: gc_info_after(bytes, base, &body, self.arch).map_err(StackError::from),
                gc_version: gc_version(bytes.u16(header.plus(4))?, bytes.u16(header.plus(6))?),
                code_length: range.end.since(at(body.begin)).unwrap_or(0),
            }));
        }
        Err(StackError::invalid(ip, "code of an image that does not belong to a known method"))
    }

    /// The last function that begins at or before `rva`. The search takes the same steps as the runtime's (`NativeUnwindInfoLookupTable` in
    /// codeman.cpp), because createdump writes only the pages that the runtime's search touches.
    fn search(&self, bytes: &CodeBytes, table: Addr, count: u64, rva: u32) -> Result<Option<u64>, StackError> {
        let Some(last) = count.checked_sub(1) else { return Ok(None) };
        let (mut low, mut high) = (0, last);
        while high.saturating_sub(low) > LINEAR {
            let middle = low.saturating_add(high.saturating_sub(low) / 2);
            if rva < self.functions.begin(bytes, table, middle)? { high = middle.saturating_sub(1) } else { low = middle }
        }
        for i in low..=high {
            if i == last || rva < self.functions.begin(bytes, table, i.saturating_add(1))? {
                return Ok((self.functions.begin(bytes, table, i)? <= rva).then_some(i));
            }
        }
        Ok(None)
    }

    /// Whether `ip` is in a thunk that resolves the target of a call when the call is first made. Thunks are not managed code.
    fn is_thunk(&self, bytes: &CodeBytes, info: Addr, base: Addr, ip: Addr) -> bool {
        // If the range of the thunks is not in the dump, the function table decides, because thunks are not in the function table.
        let within = || {
            let fields = self.directory.as_ref()?;
            let directory = self.info.get(bytes, info, Info::DelayLoadMethodCallThunks).filter(|d| !d.is_null())?;
            let rva = fields.get(bytes, directory, Directory::VirtualAddress)?;
            let size = fields.get(bytes, directory, Directory::Size)?;
            let start = base.plus(u64::from(rva));
            Some(AddrRange::of(start, u64::from(size)).contains(ip))
        };
        tried(within).unwrap_or(false)
    }
}

/// RVA and size of a section of the image with the ReadyToRun header at `header`; `None` if the image has no section of this kind.
pub(in crate::stack) fn section(bytes: &CodeBytes, header: Addr, kind: u32) -> Result<Option<(u32, u32)>, ReadError> {
    let count = bytes.u32(header.plus(12))?.min(MAX_SECTIONS);
    for i in 0..u64::from(count) {
        let entry = header.plus(16).element(i, SECTION_BYTES);
        if bytes.u32(entry)? == kind {
            return Ok(Some((bytes.u32(entry.plus(4))?, bytes.u32(entry.plus(8))?)));
        }
    }
    Ok(None)
}

/// Version of the GC info in an image with the format version `major.minor` (`GCInfoToken::ReadyToRunVersionToGcInfoVersion`).
fn gc_version(major: u16, minor: u16) -> u32 {
    match (major, minor) {
        (11.., _) => 4,
        (9, 2..) | (10, _) => 3,
        _ => 2,
    }
}

/// A `PtrHashMap` from entry points to MethodDescs (hash.cpp).
#[derive(Debug)]
struct EntryPoints<'r> {
    reader: &'r ReadyToRun,
    buckets: Addr,
    count: u32,
}

impl<'r> EntryPoints<'r> {
    fn open(reader: &'r ReadyToRun, bytes: &CodeBytes, map: Addr) -> Result<EntryPoints<'r>, StackError> {
        let array = reader.map.read(bytes, map, HashMap::Buckets)?;
        // The first bucket holds the number of the buckets that follow it.
        let count = bytes.u32(array)?;
        if count < 2 {
            return Err(StackError::invalid(array, "the map of entry points has an invalid size"));
        }
        Ok(EntryPoints { reader, buckets: array.plus(reader.bucket_size), count })
    }

    /// The `MethodDesc` of the method that starts at `entry`.
    fn find(&self, bytes: &CodeBytes, entry: Addr) -> Result<Option<Addr>, StackError> {
        let low = |n: u64| u32::try_from(n & u64::from(u32::MAX)).unwrap_or(0);
        let mut seed = low(entry.0 >> 2);
        let Some(step) = low(entry.0 >> 5).wrapping_add(1).checked_rem(self.count.saturating_sub(1)).map(|n| n.saturating_add(1)) else {
            return Ok(None);
        };
        for _ in 0..self.count {
            let bucket = self.buckets.element(u64::from(seed.checked_rem(self.count).unwrap_or(0)), self.reader.bucket_size);
            let (keys, values) = (self.reader.bucket.at(bucket, Bucket::Keys)?, self.reader.bucket.at(bucket, Bucket::Values)?);
            let value = |slot: u64| bytes.u64(values.element(slot, 8));
            for slot in 0..self.reader.slots {
                if bytes.u64(keys.element(slot, 8))? == entry.0 {
                    // Values are stored shifted right by one, because the map uses the topmost bit itself.
                    return Ok(Some(Addr((value(slot)? & self.reader.value_mask) << 1)));
                }
            }
            // The topmost bit of the first value means that the search continues in another bucket.
            if value(0)? & !self.reader.value_mask == 0 {
                return Ok(None);
            }
            seed = seed.wrapping_add(step);
        }
        Ok(None)
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::{Os, Shape};
    use crate::contract::overlay;
    use crate::memory::tests::memory_of;

    /// A reader with the layouts of .NET 10.
    fn reader() -> ReadyToRun {
        let mut d = Descriptor::default();
        let mut overlays = overlay::bundled(Os::Linux, Arch::X64);
        d.merge(&overlays.next().unwrap().raw, 0, |_| None);
        ReadyToRun::bind(&d).unwrap()
    }

    const MAP: u64 = 0x1000;
    const ARRAY: u64 = 0x2000;

    /// A map of `count` buckets that holds `entries`, inserted as hash.cpp does.
    fn map(count: u32, entries: &[(u64, u64)]) -> CodeBytes {
        let mut buckets = vec![[[0u64; 4]; 2]; count as usize];
        for (key, value) in entries {
            let (mut seed, step) = ((key >> 2) as u32, 1 + (((key >> 5) as u32).wrapping_add(1)) % (count - 1));
            loop {
                let [keys, values] = &mut buckets[(seed % count) as usize];
                if let Some(free) = keys.iter().position(|k| *k == 0) {
                    keys[free] = *key;
                    values[free] |= value >> 1;
                    break;
                }
                values[0] |= 1 << 63;
                seed = seed.wrapping_add(step);
            }
        }
        let mut raw = vec![0u8; (ARRAY - MAP) as usize];
        raw[16..24].copy_from_slice(&ARRAY.to_le_bytes());
        let mut head = [0u8; 64];
        head[..4].copy_from_slice(&count.to_le_bytes());
        raw.extend(head);
        raw.extend(buckets.iter().flatten().flatten().flat_map(|n| n.to_le_bytes()));
        let len = raw.len() as u64;
        CodeBytes::new(&Arc::new(memory_of(raw, &[(MAP, len, 0)], Shape::LE64)))
    }

    #[test]
    fn entry_points_are_found_through_collisions() {
        // The keys are equal in the bits that select the first bucket.
        let entries: Vec<(u64, u64)> = (0..20).map(|i| (0x40_0000 + i * 4 * 7, 0x7000_0000 + i * 8)).collect();
        let (reader, bytes) = (reader(), map(7, &entries));
        let points = EntryPoints::open(&reader, &bytes, Addr(MAP)).unwrap();
        for (key, value) in &entries {
            assert_eq!(points.find(&bytes, Addr(*key)), Ok(Some(Addr(*value))));
        }
        assert_eq!(points.find(&bytes, Addr(0x40_0004)), Ok(None));
        // Every bucket is full and continues in another bucket, but the search ends nevertheless.
        let full: Vec<(u64, u64)> = (0..28).map(|i| (0x40_0000 + i * 4, 8)).collect();
        let bytes = map(7, &full);
        let points = EntryPoints::open(&reader, &bytes, Addr(MAP)).unwrap();
        assert!(matches!(points.find(&bytes, Addr(0x50_0000)), Ok(None)));
    }

    #[test]
    fn a_map_without_buckets_is_rejected() {
        let (reader, bytes) = (reader(), map(2, &[]));
        assert!(EntryPoints::open(&reader, &bytes, Addr(MAP)).is_ok());
        assert!(matches!(EntryPoints::open(&reader, &bytes, Addr(MAP + 8)), Err(StackError::Read(_) | StackError::Invalid { .. })));
    }

    #[test]
    fn the_image_version_determines_the_gc_info_version() {
        let known = [((9, 1), 2), ((9, 2), 3), ((10, 1), 3), ((11, 0), 4), ((16, 0), 4)];
        known.into_iter().for_each(|((major, minor), version)| assert_eq!(gc_version(major, minor), version));
    }
}
