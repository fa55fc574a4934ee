//! Real heaps with forged objects: each is small, and all refer to the same long list.

use std::io::Write;
use std::path::Path;

use gcdump::internals::dump::{Bytes, OpenOptions, open_bytes};
use serde_json::Value;

use super::make::{Core, RW, fields};
use crate::common;
use crate::corpus;

/// A core of the corpus, to whose large object heap objects are added.
pub struct Heap {
    bytes: Vec<u8>,
    file: tempfile::NamedTempFile,
    /// Captured memory: address, length, offset.
    ranges: Vec<(u64, u64, u64)>,
}

fn address(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

impl Heap {
    pub fn of(name: &str) -> Heap {
        let bytes = zstd::decode_all(std::fs::File::open(corpus::dump(name)).unwrap()).unwrap();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let dump = open_bytes(Bytes::Owned(bytes.clone()), file.path(), &OpenOptions::default()).unwrap();
        let ranges = dump.ranges.iter().map(|r| (r.start.0, r.len, r.offset)).collect();
        Heap { bytes, file, ranges }
    }

    fn ask(&self, command: &[&str]) -> Value {
        let (_, answer) = common::ask(self.file.path(), command);
        answer["data"].clone()
    }

    fn place(&self, at: u64) -> usize {
        let (start, _, offset) = self.ranges.iter().find(|(start, len, _)| (*start..start + len).contains(&at)).unwrap();
        (offset + at - start) as usize
    }

    pub fn word(&self, at: u64) -> u64 {
        u64::from_le_bytes(self.bytes[self.place(at)..][..8].try_into().unwrap())
    }

    /// Returns the first object of a type, and its method table.
    pub fn object(&self, ty: &str) -> (u64, u64) {
        let found = &self.ask(&["objects", "--type", ty])["objects"][0];
        (address(&found["address"]), address(&found["method_table"]))
    }

    /// Overwrites `len` bytes at an address.
    pub fn set(&mut self, at: u64, value: u64, len: usize) {
        let place = self.place(at);
        self.bytes[place..place + len].copy_from_slice(&value.to_le_bytes()[..len]);
    }

    /// The address of a global of the runtime.
    pub fn global(&self, name: &str) -> u64 {
        let contracts = self.ask(&["contracts"]);
        address(&contracts["globals"].as_array().unwrap().iter().find(|g| g["name"] == name).unwrap()["address"])
    }

    /// Makes a name in metadata longer, over the bytes that follow it.
    pub fn lengthen(&mut self, name: &str, by: usize) {
        let text = [b"\0", name.as_bytes(), b"\0"].concat();
        let at = self.bytes.windows(text.len()).position(|bytes| bytes == text).unwrap() + text.len() - 1;
        self.bytes[at..at + by].fill(b'A');
    }

    /// Returns the dump with the memory that `map` adds.
    pub fn mapped(self, map: impl FnOnce(&mut Core)) -> Vec<u8> {
        let mut core = Core::of(self.bytes);
        map(&mut core);
        core.finish()
    }

    /// Returns the dump with the objects that `make` returns, given their address.
    pub fn with(self, make: impl FnOnce(&Heap, u64) -> Vec<u8>) -> Vec<u8> {
        self.with_mapped(make, |_| ())
    }

    /// Does the same, and adds memory with `map`.
    pub fn with_mapped(mut self, make: impl FnOnce(&Heap, u64) -> Vec<u8>, map: impl FnOnce(&mut Core)) -> Vec<u8> {
        let segments = self.ask(&["segments"]);
        let loh = segments["segments"].as_array().unwrap().iter().find(|s| s["generation"] == "loh").unwrap();
        let (segment, end) = (address(&loh["address"]), address(&loh["allocated"]));
        let objects = make(&self, end);
        let new = end + objects.len() as u64;
        // heap_segment: allocated, committed, reserved, used.
        [(segment, new), (segment + 8, new + 0x1000), (segment + 24, new - 8)].iter().for_each(|(at, value)| self.set(*at, *value, 8));
        self.mapped(|core| {
            let at = core.append(&objects);
            core.map(end, at, objects.len() as u64, RW);
            map(core);
        })
    }
}

/// The chunks of a text, each of which is a `StringBuilder` that includes all earlier ones.
pub fn builders(_: &Path, part: u64) -> Vec<u8> {
    Heap::of("net10-wks-colls-heap").with(|heap, start| {
        let (first, table) = heap.object("System.Text.StringBuilder");
        let chars = heap.word(first + 8);
        let chunk = |i: u64| {
            let before = if i == 0 { 0 } else { start + 48 * (i - 1) };
            fields(&[(table, 8), (chars, 8), (before, 8), (0, 4), (0, 4), (u64::MAX >> 33, 4), (0, 12)])
        };
        (0..80_000 / part).flat_map(chunk).collect()
    })
}

/// Returns a delegate with several parts, and its list of them.
pub fn delegate_list(heap: &Heap) -> (u64, u64) {
    let event = address(&heap.ask(&["inspect", "--only", "event-leaks"])["inspections"][0]["rows"][0]["object"]);
    (event, heap.word(event + 40))
}

/// Delegates that share a list of parts.
pub fn delegates(_: &Path, part: u64) -> Vec<u8> {
    Heap::of("net10-wks-inspect-heap").with(|heap, list| {
        let (event, parts) = delegate_list(heap);
        let words: Vec<u64> = (0..5).map(|i| heap.word(event + 8 * i)).collect();
        let count = 60_000u64;
        let mut out = fields(&[(heap.word(parts), 8), (count, 8)]);
        (0..count).for_each(|_| out.extend(fields(&[(heap.word(parts + 16), 8)])));
        out.extend([0; 8]);
        for _ in 0..8000 / part {
            words.iter().chain(&[list, count, 0]).for_each(|word| out.extend(fields(&[(*word, 8)])));
        }
        out
    })
}

/// Cancellation sources that share a list of callbacks.
pub fn sources(_: &Path, part: u64) -> Vec<u8> {
    Heap::of("net10-wks-pool-heap").with(|heap, start| {
        let name = |nested: &str| format!("System.Threading.CancellationTokenSource{nested}");
        let ((_, source), (_, registrations)) = (heap.object(&name("")), heap.object(&name("+Registrations")));
        let (node, callback) = heap.object(&name("+CallbackNode"));
        let (nodes, list) = (20_000u64, start);
        let callbacks = list + 64;
        let mut out = fields(&[(registrations, 8), (0, 8), (callbacks, 8), (0, 40)]);
        for i in 0..nodes {
            let next = if i + 1 < nodes { callbacks + 80 * (i + 1) } else { 0 };
            out.extend(fields(&[(callback, 8), (list, 8), (0, 8), (next, 8), (heap.word(node + 32), 8), (0, 40)]));
        }
        (0..20_000 / part).for_each(|_| out.extend(fields(&[(source, 8), (0, 16), (list, 8), (0, 16)])));
        out
    })
}

/// Bridged objects, each of which refers to as many others through one array.
pub fn bridged(_: &Path, part: u64) -> Vec<u8> {
    Heap::of("net10-wks-bridge-heap").with(|heap, hub| {
        let (_, peer) = heap.object("Lab.Peer");
        let (_, array) = heap.object("System.Object[]");
        let count = 60_000 / part;
        let sources = hub + 24 + 8 * count;
        let targets = sources + 40 * count;
        let mut out = fields(&[(array, 8), (count, 8)]);
        (0..count).for_each(|i| out.extend(fields(&[(targets + 40 * i, 8)])));
        out.extend([0; 8]);
        (0..count).for_each(|_| out.extend(fields(&[(peer, 8), (0, 8), (hub, 8), (0, 16)])));
        (0..count).for_each(|_| out.extend(fields(&[(peer, 8), (0, 32)])));
        out
    })
}
