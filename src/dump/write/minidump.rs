//! Lays out trimmed minidumps: header, stream directory, streams.

use super::super::DumpFile;
use super::super::fields::Fields;
use super::super::losses::Original;
use super::super::minidump_reading::{Reading, stream};
use super::{Layout, Out, RedactRegisters, WriteError, blank_but, has_no_text, place, redact_words};
use crate::base::hash::Map;
use crate::base::{AddrRange, Arch, Endian, Limits};

/// Size in bytes of the largest processor context that is copied. A context with vector registers takes a few kilobytes.
const MAX_CONTEXT: u64 = 64 << 10;
/// Size in bytes of `MINIDUMP_SYSTEM_INFO`.
const SYSTEM_BYTES: u64 = 56;
/// Size in bytes of the part of MiscInfo that is copied: process ID and times, but not the time zone and build names.
const MISC_BYTES: u64 = 24;

/// A copy in progress.
struct Copy<'a, 'r> {
    from: Reading<'a>,
    out: Out,
    /// Decides which register values stay. `None` if the copy is not redacted.
    redact: Option<RedactRegisters<'r>>,
    arch: Arch,
    /// The offset of each string in the copy. The key is the offset in the original, and whether the string is secret.
    strings: Map<(u64, bool), u32>,
    /// The offset of each part in the copy: a debug record or a processor context. The key is the use, and the offset and length in the
    /// original. The use decides how the part is redacted.
    parts: Map<(&'static str, u32, u32), u32>,
    /// Number of bytes of parts that may still be copied, at first the size of the original. Without this limit, the copy of a hostile dump could
    /// be many times as large as the dump, because parts may overlap.
    left: u64,
    /// Number of bytes of strings that may still be copied, limited for the same reason as `left`.
    strings_left: u64,
    /// For each thread, the offset in the copy of the size and file offset of its stack (`DataSize`, `Rva`), which are patched once the ranges are
    /// placed, and the address and size of its stack.
    stacks: Vec<(u64, u64, u32)>,
}

pub(super) fn lay_out(dump: &DumpFile, ranges: &[AddrRange], redact: Option<RedactRegisters<'_>>) -> Result<Layout, WriteError> {
    const HEADER: u64 = 32;
    const ENTRY: u64 = 12;
    let limits = Limits::default();
    let endian = if dump.bytes.starts_with(b"PMDM") { Endian::Big } else { Endian::Little };
    let from = Reading::begin(Fields::new(&dump.bytes, endian), &dump.facts.path, &limits)?;
    let header = from.file.clamped(0, HEADER);
    let mut copy = Copy {
        left: from.file.len(),
        strings_left: from.file.len(),
        from,
        out: Out::new(endian),
        redact,
        arch: dump.facts.arch,
        strings: Map::default(),
        parts: Map::default(),
        stacks: Vec::new(),
    };
    copy.out.raw(header);

    type Writer<'a, 'r> = fn(&mut Copy<'a, 'r>) -> Result<Option<(u64, u64)>, WriteError>;
    let writers: [(u32, Writer<'_, '_>); 7] = [
        (stream::SYSTEM, Copy::system),
        (stream::MISC, Copy::misc),
        (stream::MODULES, Copy::modules),
        (stream::THREADS, Copy::threads),
        (stream::THREAD_NAMES, Copy::thread_names),
        (stream::EXCEPTION, Copy::exception),
        (stream::MEMORY_INFO, Copy::memory_info),
    ];
    // Room for ten directory entries: these streams, the trim marker, the losses and the memory list.
    let room = ENTRY.saturating_mul(10);
    copy.out.bytes.resize(usize::try_from(HEADER.saturating_add(room)).unwrap_or(0), 0);
    let mut directory = Out::new(endian);
    let mut count = 0u32;
    let mut add = |kind: u32, (at, len): (u64, u64)| -> Result<(), WriteError> {
        directory.u32(kind);
        directory.u32(u32::try_from(len).map_err(|_| WriteError::TooLarge("its streams"))?);
        directory.u32(u32::try_from(at).map_err(|_| WriteError::TooLarge("its streams"))?);
        count = count.saturating_add(1);
        Ok(())
    };
    for (kind, write) in writers {
        copy.out.align(8);
        if let Some(place) = write(&mut copy)? {
            add(kind, place)?;
        }
    }
    copy.out.align(8);
    let before = dump.facts.trimmed.is_some_and(|t| t.redacted);
    add(stream::TRIM, (copy.out.at(), 4))?;
    copy.out.u32(u32::from(redact.is_some() || before));
    if let Some(original) = Original::of(&dump.facts) {
        copy.out.align(8);
        let at = copy.out.at();
        copy.out.losses(&original);
        add(stream::ORIGINAL, (at, copy.out.at().saturating_sub(at)))?;
    }

    copy.out.align(8);
    let list = copy.out.at();
    let list_len = u64::try_from(ranges.len()).unwrap_or(u64::MAX).saturating_mul(16).saturating_add(16);
    add(stream::MEMORY64, (list, list_len))?;
    let (placed, file_bytes) = place(ranges, list.saturating_add(list_len));
    copy.out.u64(u64::try_from(ranges.len()).unwrap_or(u64::MAX));
    copy.out.u64(list.saturating_add(list_len));
    for range in &placed {
        copy.out.u64(range.start.0);
        copy.out.u64(range.len);
    }
    for (at, stack, size) in &copy.stacks {
        // If the copy does not have the whole stack, or its offset is 4 GiB or more, which does not fit, the record has no contents: a reader
        // would take other bytes of the file for the stack. Readers of this copy use the memory list.
        let last = placed.partition_point(|r| r.start.0 <= *stack).checked_sub(1).and_then(|i| placed.get(i));
        let whole = last.filter(|r| stack.saturating_sub(r.start.0).saturating_add(u64::from(*size)) <= r.len);
        let offset = whole.and_then(|r| u32::try_from(r.offset.saturating_add(stack.saturating_sub(r.start.0))).ok());
        copy.out.patch32(*at, offset.map_or(0, |_| *size));
        copy.out.patch32(at.saturating_add(4), offset.unwrap_or(0));
    }
    copy.out.patch(HEADER, &directory.bytes);
    copy.out.patch32(8, count);
    copy.out.patch32(12, u32::try_from(HEADER).unwrap_or(0));
    // Minidumps do not use the checksum.
    copy.out.patch32(16, 0);
    Ok(Layout { head: copy.out.bytes, ranges: placed, file_bytes })
}

impl Copy<'_, '_> {
    /// Copies at most the first `max` bytes of a stream verbatim. Returns offset and length in the copy.
    fn plain(&mut self, kind: u32, max: u64) -> Option<(u64, u64)> {
        let stream = self.from.stream(kind, "stream")?;
        let at = self.out.at();
        self.out.raw(stream.clamped(0, max));
        Some((at, self.out.at().saturating_sub(at)))
    }

    fn system(&mut self) -> Result<Option<(u64, u64)>, WriteError> {
        const SERVICE_PACK: u64 = 24;
        let Some(stream) = self.from.stream(stream::SYSTEM, "system info") else { return Ok(None) };
        let place = self.plain(stream::SYSTEM, SYSTEM_BYTES);
        let name = stream.u32(SERVICE_PACK).map_or(Ok(0), |at| self.string(u64::from(at), true))?;
        if let Some((at, _)) = place {
            self.out.patch32(at.saturating_add(SERVICE_PACK), name);
        }
        Ok(place)
    }

    fn misc(&mut self) -> Result<Option<(u64, u64)>, WriteError> {
        let place = self.plain(stream::MISC, MISC_BYTES);
        // The stream starts with its own size.
        if let Some((at, len)) = place.filter(|(_, len)| *len >= 4) {
            self.out.patch32(at, u32::try_from(len).unwrap_or(0));
        }
        Ok(place)
    }

    fn memory_info(&mut self) -> Result<Option<(u64, u64)>, WriteError> {
        // The stream starts with the sizes of its header and of its entries, and their number.
        let Some(stream) = self.from.stream(stream::MEMORY_INFO, "memory info") else { return Ok(None) };
        let (header, entry) = (u64::from(stream.u32(0).unwrap_or(0)), u64::from(stream.u32(4).unwrap_or(0)));
        let bytes = stream.u64(8).unwrap_or(0).saturating_mul(entry).saturating_add(header);
        Ok(self.plain(stream::MEMORY_INFO, bytes))
    }

    /// Copies the records, of `entry` bytes each, of a list that starts with a 32-bit count.
    fn list(&mut self, kind: u32, entry: u64, name: &str) -> Result<Option<List>, WriteError> {
        let Some(stream) = self.from.stream(kind, name) else { return Ok(None) };
        let (start, count) = self.from.list(stream, entry, (kind, name));
        let at = self.out.at();
        self.out.u32(u32::try_from(count).map_err(|_| WriteError::TooLarge("its lists"))?);
        let mut records = Vec::new();
        for i in 0..count {
            let from = stream.clamped(start.saturating_add(i.saturating_mul(entry)), entry);
            records.push((self.out.at(), from.to_vec()));
            self.out.raw(from);
        }
        Ok(Some(List { place: (at, self.out.at().saturating_sub(at)), records }))
    }

    fn modules(&mut self) -> Result<Option<(u64, u64)>, WriteError> {
        const ENTRY: u64 = 108;
        let Some(list) = self.list(stream::MODULES, ENTRY, "module list")? else { return Ok(None) };
        for (at, record) in &list.records {
            let record = Fields::new(record, self.out.endian);
            let name = record.u32(20).map_or(Ok(0), |n| self.string(u64::from(n), false))?;
            self.out.patch32(at.saturating_add(20), name);
            if self.redact.is_some() {
                // Zeroes the two reserved fields.
                self.out.patch(at.saturating_add(92), &[0; 16]);
            }
            let (len, from) = (record.u32(76).unwrap_or(0), record.u32(80).unwrap_or(0));
            let bytes = self.from.file.slice(u64::from(from), u64::from(len)).filter(|b| b.len() <= 4096).unwrap_or_default();
            let place = self.once((from, len), 4, bytes.len(), "the debug records of its modules", |copy| {
                let mut bytes = bytes.to_vec();
                if copy.redact.is_some() {
                    end_path(&mut bytes);
                }
                bytes
            })?;
            self.out.patch32(at.saturating_add(76), u32::try_from(bytes.len()).unwrap_or(0));
            self.out.patch32(at.saturating_add(80), place);
            // The legacy debug record is dropped.
            self.out.patch(at.saturating_add(84), &[0; 8]);
        }
        Ok(Some(list.place))
    }

    fn threads(&mut self) -> Result<Option<(u64, u64)>, WriteError> {
        const ENTRY: u64 = 48;
        let Some(list) = self.list(stream::THREADS, ENTRY, "thread list")? else { return Ok(None) };
        for (at, record) in &list.records {
            let record = Fields::new(record, self.out.endian);
            if let (Some(stack), Some(size)) = (record.u64(24), record.u32(32)) {
                self.stacks.push((at.saturating_add(32), self.from.addr(stack).0, size));
            }
            self.context(at.saturating_add(40), record.u32(40), record.u32(44))?;
        }
        Ok(Some(list.place))
    }

    /// Copies a processor context and writes its size and offset at `at`.
    fn context(&mut self, at: u64, len: Option<u32>, from: Option<u32>) -> Result<(), WriteError> {
        let bytes = from.zip(len).and_then(|(from, len)| self.from.file.slice(u64::from(from), u64::from(len)));
        let bytes = bytes.filter(|b| u64::try_from(b.len()).is_ok_and(|n| n <= MAX_CONTEXT)).unwrap_or_default();
        let part = (from.unwrap_or(0), len.unwrap_or(0));
        let place = self.once(part, 16, bytes.len(), "the registers of its threads", |copy| {
            let mut bytes = bytes.to_vec();
            if let Some(address) = copy.redact {
                redact_context(&mut bytes, copy.arch, copy.out.endian, address);
            }
            bytes
        })?;
        self.out.patch32(at, u32::try_from(bytes.len()).unwrap_or(0));
        self.out.patch32(at.saturating_add(4), place);
        Ok(())
    }

    /// Copies a part of the original, given by offset and length, only once even if several records refer to the part. `bytes` returns the
    /// contents for the copy, which have `len` bytes. Returns the offset in the copy.
    fn once(
        &mut self,
        (from, declared): (u32, u32),
        align: usize,
        len: usize,
        what: &'static str,
        bytes: impl FnOnce(&Self) -> Vec<u8>,
    ) -> Result<u32, WriteError> {
        if let Some(place) = self.parts.get(&(what, from, declared)) {
            return Ok(*place);
        }
        self.left = self.left.checked_sub(u64::try_from(len).unwrap_or(u64::MAX)).ok_or(WriteError::Overlapping(what))?;
        self.out.align(align);
        let place = self.out.at32()?;
        let bytes = bytes(self);
        self.out.raw(&bytes);
        self.parts.insert((what, from, declared), place);
        Ok(place)
    }

    fn thread_names(&mut self) -> Result<Option<(u64, u64)>, WriteError> {
        const ENTRY: u64 = 12;
        let Some(list) = self.list(stream::THREAD_NAMES, ENTRY, "thread name list")? else { return Ok(None) };
        for (at, record) in &list.records {
            let name = Fields::new(record, self.out.endian).u64(4).map_or(Ok(0), |n| self.string(n, true))?;
            let place = if self.out.endian == Endian::Little { u64::from(name).to_le_bytes() } else { u64::from(name).to_be_bytes() };
            self.out.patch(at.saturating_add(4), &place);
        }
        Ok(Some(list.place))
    }

    fn exception(&mut self) -> Result<Option<(u64, u64)>, WriteError> {
        const BYTES: u64 = 168;
        const CONTEXT: u64 = 160;
        let Some(stream) = self.from.stream(stream::EXCEPTION, "exception") else { return Ok(None) };
        let place = self.plain(stream::EXCEPTION, BYTES);
        if let Some((at, BYTES)) = place {
            self.redact_exception(at);
            self.context(at.saturating_add(CONTEXT), stream.u32(CONTEXT), stream.u32(CONTEXT.saturating_add(4)))?;
        }
        Ok(place)
    }

    /// Zeroes the record of the exception stream at `at`, except for the exception code, addresses, and words that cannot be text.
    fn redact_exception(&mut self, at: u64) {
        const RECORD: (u64, u64) = (8, 160);
        const PARAMETERS: u64 = 40;
        let Some(address) = self.redact else { return };
        let from = usize::try_from(at.saturating_add(RECORD.0)).unwrap_or(usize::MAX);
        let to = usize::try_from(at.saturating_add(RECORD.1)).unwrap_or(usize::MAX);
        let endian = self.out.endian;
        self.out.patch(at.saturating_add(4), &[0; 4]);
        let Some(record) = self.out.bytes.get_mut(from..to) else { return };
        let fields = Fields::new(record, endian);
        let (code, count) = (fields.u32(0).unwrap_or(0), fields.u32(24).unwrap_or(0));
        let first = fields.u64(PARAMETERS.saturating_sub(RECORD.0)).unwrap_or(0);
        // The first parameter of a CLR exception is the HRESULT of a failure. It is kept.
        let is_result = code == CLR_EXCEPTION && matches!(first >> 31, 1 | 0x1_ffff_ffff);
        let parameters = u64::from(count).saturating_mul(8);
        blank_but(record, &[(0, 28), (PARAMETERS.saturating_sub(RECORD.0), parameters)]);
        let head = if is_result { 40 } else { 32 };
        for (words, from, to) in [(8, 8, 24), (8, head, 152)] {
            if let Some(words_of) = record.get_mut(from..to) {
                redact_words(words_of, words, endian, &|word| address(word) || has_no_text(word));
            }
        }
    }

    /// Copies the string at `from` of the original, only once even if it is shared. In a redacted copy, a `secret` string, which comes from the
    /// program, consists of `x`. Returns the offset in the copy.
    fn string(&mut self, from: u64, secret: bool) -> Result<u32, WriteError> {
        if let Some(at) = self.strings.get(&(from, secret)) {
            return Ok(*at);
        }
        let declared = self.from.file.u32(from).unwrap_or(0);
        // The reader of minidumps cuts strings at the same length.
        let most = u64::from(declared).min(self.from.limits.string_bytes).min(self.strings_left);
        let bytes = self.from.file.clamped(from.saturating_add(4), most & !1);
        self.strings_left = self.strings_left.saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.out.align(4);
        let at = self.out.at32()?;
        self.out.u32(u32::try_from(bytes.len()).unwrap_or(0));
        for unit in bytes.as_chunks::<2>().0 {
            if secret && self.redact.is_some() {
                self.out.u16(u16::from(b'x'));
            } else {
                self.out.raw(unit);
            }
        }
        self.out.u16(0);
        self.strings.insert((from, secret), at);
        Ok(at)
    }
}

/// Exception code that the runtime raises for a managed exception.
const CLR_EXCEPTION: u32 = 0xe043_4352;

/// Zeroes the bytes after the path in a CodeView record, which consists of the signature `RSDS`, GUID, age and the path of the PDB.
fn end_path(record: &mut [u8]) {
    const PATH: usize = 24;
    if record.starts_with(b"RSDS") {
        let path = record.get_mut(PATH..).unwrap_or_default();
        let len = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
        path.get_mut(len..).unwrap_or_default().fill(0);
    }
}

/// Zeroes a processor context, except for `ContextFlags`, which says what the context contains, and addresses in general-purpose registers.
/// Vector registers are zeroed, because they may contain parts of strings and readers do not use them.
fn redact_context(bytes: &mut [u8], arch: Arch, endian: Endian, address: RedactRegisters<'_>) {
    let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    // Size of a register in bytes, and the offsets of flags and general-purpose registers (`CONTEXT` of `winnt.h`).
    let (word, flags, registers) = match arch {
        Arch::X64 => (8, 0x30..0x34, 0x78..0x100),
        Arch::X86 => (4, 0..4, 0x9c..0xc8),
        Arch::Arm => (4, 0..4, 4..0x44),
        Arch::Arm64 => (8, 0..8, 8..0x110),
        Arch::Ppc => (4, 0..4, 4..len),
        _ => (8, 0..8, 8..len),
    };
    let size = |range: &std::ops::Range<u64>| range.end.saturating_sub(range.start);
    blank_but(bytes, &[(flags.start, size(&flags)), (registers.start, size(&registers))]);
    let part = |at: u64| usize::try_from(at.min(len)).unwrap_or(0);
    if let Some(registers) = bytes.get_mut(part(registers.start)..part(registers.end)) {
        redact_words(registers, word, endian, address);
    }
}

/// A copied list.
struct List {
    /// Offset and length in the copy.
    place: (u64, u64),
    /// New offset and original contents of each record.
    records: Vec<(u64, Vec<u8>)>,
}
