//! The attacks, at full size or smaller.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::make::*;
use super::{objects, programs, series, snapshots, stacks, tables, threads, types};
use crate::support::containers::ELF_PATH;
use crate::support::image::Image;

/// An attack.
pub struct Attack {
    pub name: &'static str,
    /// The command line; `DUMP` and `DIR` are the file and its folder, `OUT` is another file.
    pub args: &'static [&'static str],
    /// Makes the dump, with one `part`th of the full size.
    pub make: fn(&Path, u64) -> Vec<u8>,
    /// How the attack ends.
    pub end: End,
}

/// How an attack ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With a complete answer: nothing is lost.
    Whole,
    /// With a note about a limit on opening, in the answer or in the message that the runtime cannot be read.
    Bounded,
    /// With a refusal that has these words.
    Refused(&'static str),
    /// With a partial answer, or the message that the runtime cannot be read.
    Damaged,
}

const INFO: &[&str] = &["info", "DUMP", "--no-local-files", "--json"];
const TRIM: &[&str] = &["trim", "DUMP", "OUT", "--no-local-files", "--json", "--force"];
const WITH_FILES: &[&str] = &["info", "DUMP", "--no-local-files", "--json", "--modules", "DIR"];
const STATICS: &[&str] = &["statics", "--all", "DUMP", "--no-local-files", "--json"];
const EMPTY: &[&str] = &["inspect", "--only", "empty-collections", "DUMP", "--no-local-files", "--json"];
const EVENTS: &[&str] = &["inspect", "--only", "event-leaks", "DUMP", "--no-local-files", "--json"];
const HANDLES: &[&str] = &["handles", "--top", "3", "DUMP", "--no-local-files", "--json"];
const LOCKS: &[&str] = &["locks", "DUMP", "--no-local-files", "--json"];
const SOURCES: &[&str] = &["inspect", "--only", "registrations", "DUMP", "--no-local-files", "--json"];
const TEXTS: &[&str] =
    &["objects", "--type", "System.Text.StringBuilder", "--fields", "m_ChunkPrevious", "DUMP", "--no-local-files", "--json"];
const OBJECT: &[&str] = &["object", "0x7ee134400028", "DUMP", "--no-local-files", "--json", "--modules", "DIR"];
const RETAINED: &[&str] = &["retained", "DUMP", "--json"];
const STAT: &[&str] = &["stat", "DUMP", "--no-local-files", "--json"];
const OF_HEAP: &[&str] = &["retained", "DUMP", "--no-local-files", "--json"];
const STACKS: &[&str] = &["stacks", "--roots", "--arguments", "DUMP", "--no-local-files", "--json"];
const ROOTS: &[&str] = &["roots", "DUMP", "--no-local-files", "--json", "--top", "3"];
const THREAD_STATICS: &[&str] = &["statics", "--thread-statics", "DUMP", "--no-local-files", "--json", "--top", "3"];
const MANAGED: &[&str] = &["threads", "DUMP", "--no-local-files", "--json"];
const BRIDGE: &[&str] = &["bridge", "--bridged", "Lab.Peer", "--all", "DUMP", "--no-local-files", "--json"];
const THREADS: &[&str] = &["stat", "DUMP", "--no-local-files", "--json", "--threads", "4000"];

const fn attack(name: &'static str, args: &'static [&'static str], end: End, make: fn(&Path, u64) -> Vec<u8>) -> Attack {
    Attack { name, args, make, end }
}

pub const ALL: &[Attack] = &[
    attack("3-shared-notes", TRIM, End::Whole, shared_notes),
    attack("4-shared-contexts", TRIM, End::Whole, shared_contexts),
    attack("4-shifted-contexts", TRIM, End::Refused("registers of its threads overlap"), shifted_contexts),
    attack("5-overlapping-names", TRIM, End::Whole, overlapping_names),
    attack("5-overlapping-records", TRIM, End::Refused("debug records of its modules overlap"), overlapping_records),
    attack("5-repeated-memory", TRIM, End::Refused("ranges of memory overlap"), repeated_memory),
    attack("6-relro", WITH_FILES, End::Whole, relro),
    attack("6-wide-relro", WITH_FILES, End::Bounded, wide_relro),
    attack("6-relocations", WITH_FILES, End::Bounded, relocations),
    attack("7-sections", WITH_FILES, End::Bounded, sections),
    attack("8-window", INFO, End::Refused("zstd --long"), window),
    attack("9-listed-again", INFO, End::Whole, listed_again),
    attack("9-mapped-again", INFO, End::Damaged, mapped_again),
    attack("10-fields", INFO, End::Bounded, |_, n| names("{\"types\":{\"T\":{", "8", "}},", n)),
    attack("10-same-fields", INFO, End::Bounded, |_, n| same_names(n)),
    attack("10-types", INFO, End::Bounded, |_, n| names("{\"types\":{", "{}", "},", n)),
    attack("10-globals", INFO, End::Bounded, |_, n| names("{\"globals\":{", "8", "},", n)),
    attack("10-unusable", INFO, End::Bounded, |_, n| names("{\"globals\":{", "{}", "},", n)),
    attack("11-headers", INFO, End::Bounded, headers),
    attack("12-broken-child", INFO, End::Damaged, |_, n| children(n, false)),
    attack("12-broken-children", INFO, End::Bounded, |_, n| children(n, true)),
    attack("13-writable-segments", INFO, End::Bounded, writable_segments),
    attack("14-images", INFO, End::Bounded, |_, n| images(n, 0x10_0000)),
    attack("14-wide-images", INFO, End::Damaged, |_, n| images(n, 1 << 45)),
    attack("15-chains", INFO, End::Bounded, |_, n| chains(n, "lib.so")),
    attack("15-chains-of-runtimes", INFO, End::Damaged, |_, n| chains(n, "libcoreclr.so")),
    attack("15-chains-trimmed", TRIM, End::Bounded, |_, n| chains(n, "lib.so")),
    attack("16-holders", INFO, End::Damaged, holders),
    attack("18-paths", STATICS, End::Bounded, types::paths),
    attack("18-tables", STATICS, End::Bounded, types::tables),
    attack("18-names", STATICS, End::Bounded, types::names),
    attack("18-indices", STATICS, End::Bounded, types::indices),
    attack("18-arguments", STATICS, End::Bounded, types::arguments),
    attack("18-flood", STAT, End::Damaged, types::flood),
    attack("18-fields", TRIM, End::Whole, types::fields_of_types),
    attack("19-references", RETAINED, End::Damaged, snapshots::references),
    attack("19-groups", RETAINED, End::Damaged, snapshots::groups),
    attack("19-again", RETAINED, End::Whole, snapshots::again),
    attack("19-classes", RETAINED, End::Whole, snapshots::classes),
    attack("20-builders", EMPTY, End::Whole, objects::builders),
    attack("20-texts", TEXTS, End::Whole, objects::builders),
    attack("20-delegates", EVENTS, End::Whole, objects::delegates),
    attack("20-delegates-trimmed", TRIM, End::Whole, objects::delegates),
    attack("20-sources", SOURCES, End::Bounded, objects::sources),
    attack("20-callbacks", &["timers", "DUMP", "--no-local-files", "--json"], End::Bounded, objects::sources),
    attack("21-series", STAT, End::Damaged, series::of_types),
    attack("21-elements", OF_HEAP, End::Bounded, series::of_elements),
    attack("21-objects", OF_HEAP, End::Damaged, series::of_objects),
    attack("21-arrays", OF_HEAP, End::Damaged, series::of_arrays),
    attack("21-long-array", OF_HEAP, End::Damaged, series::of_a_long_array),
    attack("21-no-objects", STAT, End::Damaged, series::of_no_objects),
    attack("21-index", &["stat", "DUMP", "--json"], End::Damaged, series::of_index),
    attack("21-names-of-another", OBJECT, End::Whole, programs::names_of_another),
    attack("21-names-of-sections", OBJECT, End::Whole, programs::names_of_sections),
    attack("21-packed", OBJECT, End::Bounded, programs::packed),
    attack("21-symbols", OBJECT, End::Bounded, programs::symbols),
    attack("21-overlapping-symbols", OBJECT, End::Bounded, programs::overlapping_symbols),
    attack("21-names-of-types", OBJECT, End::Bounded, programs::names_of_types),
    attack("21-attributes", OBJECT, End::Bounded, programs::attributes),
    attack("21-abbreviations", OBJECT, End::Bounded, programs::abbreviations),
    attack("21-units", OBJECT, End::Whole, programs::units),
    attack("21-one-unit", OBJECT, End::Whole, programs::one_unit),
    attack("21-cut-units", OBJECT, End::Bounded, programs::cut_units),
    attack("21-handles", HANDLES, End::Bounded, tables::handles),
    attack("21-roots", &["roots", "DUMP", "--no-local-files", "--json", "--top", "3"], End::Bounded, tables::handles),
    attack("21-names", HANDLES, End::Damaged, tables::names),
    attack("21-queue", &["finalizers", "DUMP", "--no-local-files", "--json"], End::Bounded, tables::queue),
    attack("21-sync-blocks", LOCKS, End::Bounded, tables::sync_blocks),
    attack("21-waiters", LOCKS, End::Bounded, tables::waiters),
    attack("21-parts", EVENTS, End::Whole, tables::parts),
    attack("21-parts-trimmed", TRIM, End::Whole, tables::parts),
    attack("21-callbacks", &["timers", "DUMP", "--no-local-files", "--json"], End::Bounded, tables::callbacks),
    attack("21-pools", &["requests", "DUMP", "--no-graph", "--no-local-files", "--json"], End::Bounded, tables::pools),
    attack("49-slots", STACKS, End::Bounded, stacks::slots),
    attack("49-slots-of-roots", ROOTS, End::Bounded, stacks::slots),
    attack("49-few-slots", STACKS, End::Bounded, stacks::few_slots),
    attack("49-few-slots-of-graph", OF_HEAP, End::Damaged, stacks::few_slots),
    attack("49-methods", STACKS, End::Bounded, stacks::methods),
    attack("49-methods-of-info", INFO, End::Damaged, stacks::methods),
    attack("49-one-stack", STACKS, End::Bounded, stacks::one_stack),
    attack("49-shifted-stacks", STACKS, End::Damaged, stacks::shifted_stacks),
    attack("49-within", STACKS, End::Bounded, stacks::within),
    attack("49-chain", STACKS, End::Damaged, stacks::chain),
    attack("49-fragments", STACKS, End::Damaged, stacks::fragments),
    attack("49-fragments-of-locks", LOCKS, End::Damaged, stacks::fragments),
    attack("49-protected", ROOTS, End::Bounded, stacks::protected),
    attack("49-unwound", STACKS, End::Bounded, stacks::unwound),
    attack("49-shared-statics", ROOTS, End::Bounded, stacks::shared_statics),
    attack("49-statics", ROOTS, End::Damaged, stacks::statics),
    attack("49-statics-around", &["where", "0x123456789abc", "DUMP", "--no-local-files", "--json"], End::Damaged, stacks::statics),
    attack("49-statics-listed", THREAD_STATICS, End::Damaged, stacks::statics),
    attack("49-in-flight", MANAGED, End::Bounded, threads::in_flight),
    attack("49-in-flight-of-info", INFO, End::Damaged, threads::in_flight),
    attack("49-in-flight-of-stacks", STACKS, End::Damaged, threads::in_flight),
    attack("49-names", STACKS, End::Damaged, threads::names),
    attack("49-bridged", BRIDGE, End::Bounded, objects::bridged),
    attack("17-threads", THREADS, End::Whole, |_, _| target().to_elf_core()),
];

fn shared_notes(_: &Path, part: u64) -> Vec<u8> {
    let mut core = Core::of(target().to_elf_core());
    let desc: Vec<u8> = (0..4000u64).flat_map(|i| fields(&[(40 + i, 8), (i, 8)])).collect();
    let auxv = note(6, &desc);
    let at = core.append(&auxv);
    (0..60_000 / part).for_each(|_| core.notes(at, auxv.len() as u64));
    core.finish()
}

fn with_contexts(count: u64, at: impl Fn(u64) -> u64) -> Vec<u8> {
    let mut mini = Mini { bytes: target().to_minidump() };
    let mut context = vec![0u8; 0x18000];
    // ContextFlags every 16 bytes: AMD64, all registers.
    for at in (0..context.len()).step_by(4) {
        context[at..at + 4].copy_from_slice(&0x10_000bu32.to_le_bytes());
    }
    let from = mini.append(&context);
    let mut list = fields(&[(count, 4)]);
    for i in 0..count {
        list.extend(fields(&[(9000 + i, 4), (0, 12), (0, 8), (0, 8), (0, 4), (0, 4), (0xfff0, 4), (from + at(i), 4)]));
    }
    mini.replace(3, &list);
    mini.bytes
}

fn shared_contexts(_: &Path, part: u64) -> Vec<u8> {
    with_contexts(30_000 / part, |_| 0)
}

fn shifted_contexts(_: &Path, part: u64) -> Vec<u8> {
    with_contexts(30_000 / part, |i| i % 0x8000)
}

fn module_record(base: u64, size: u64, stamp: u64, name: u64, debug: (u64, u64)) -> Vec<u8> {
    let mut out = fields(&[(base, 8), (size, 4), (0, 4), (stamp, 4), (name, 4)]);
    out.resize(76, 0);
    out.extend(fields(&[(debug.0, 4), (debug.1, 4)]));
    out.resize(108, 0);
    out
}

fn with_modules(mini: &mut Mini, count: u64, record: impl Fn(u64) -> Vec<u8>) {
    let own = mini.stream(4);
    let mut list = fields(&[(2 + count, 4)]);
    list.extend(&own[4..]);
    (0..count).for_each(|i| list.extend(record(i)));
    mini.replace(4, &list);
}

fn overlapping_names(_: &Path, part: u64) -> Vec<u8> {
    let mut mini = Mini { bytes: target().to_minidump() };
    // A name of 24 KB begins at every fourth byte.
    let names = mini.append(&0x6000_u32.to_le_bytes().repeat(0x9000));
    with_modules(&mut mini, 30_000 / part, |i| module_record(0x10_0000 + i * 0x1000, 0x1000, 1, names + 4 * i, (0, 0)));
    mini.bytes
}

fn overlapping_records(_: &Path, part: u64) -> Vec<u8> {
    let mut mini = Mini { bytes: target().to_minidump() };
    let records = mini.append(&[b'R'; 0x2000]);
    let name = mini.append(&[2, 0, 0, 0, b'a', 0, 0, 0]);
    with_modules(&mut mini, 100_000 / part, |i| module_record(0x10_0000 + i * 0x1000, 0x1000, 1, name, (4096, records + i % 4096)));
    mini.bytes
}

/// Makes a sparse file of `len` bytes that begins with `head`.
fn sparse(path: &Path, head: &[u8], len: u64) {
    let mut file = File::create(path).unwrap();
    file.write_all(head).unwrap();
    file.set_len(len).unwrap();
    file.write_all_at(&[1], len - 1).unwrap();
}

const PT_GNU_RELRO: u64 = 0x6474_e552;
/// Offset of the synthetic runtime's image in its file.
const LOW: u64 = 0x3000;

fn relro(dir: &Path, part: u64) -> Vec<u8> {
    const LEN: u64 = 25 << 20;
    let mut headers = vec![(1, 4, 0, 0, LEN)];
    headers.extend((0..240 / part).map(|i| (PT_GNU_RELRO, 4, 0x1000 * i, 0x1000 * i, LEN - 0x1000 * i)));
    sparse(&dir.join("libcoreclr.so"), &elf_image(&headers, 0, 0x6000), LEN);
    target().to_elf_core()
}

fn wide_relro(dir: &Path, _: u64) -> Vec<u8> {
    // One range, which is missing completely and is mostly a hole in the file.
    const LEN: u64 = 4 << 30;
    sparse(&dir.join("libcoreclr.so"), &elf_image(&[(1, 6, 0, 0, LEN), (PT_GNU_RELRO, 4, LOW, LOW, LEN - LOW)], 0, 0x6000), LEN);
    target().to_elf_core()
}

fn relocations(dir: &Path, part: u64) -> Vec<u8> {
    // Packed relocations: each word is a bitmap of 63 relocations.
    let words = 1_000_000 / part;
    let len = 0x6000 + 8 * words;
    let headers = [(1, 6, 0, 0, len), (PT_GNU_RELRO, 4, LOW, LOW, len - LOW)];
    let mut file = with_dynamic(elf_image(&headers, 0, 0x6000), &[(36, 0x6000), (35, 8 * words)]);
    file.resize(len as usize, 0xff);
    std::fs::write(dir.join("libcoreclr.so"), file).unwrap();
    target().to_elf_core()
}

/// Returns `core` with `count` runtimes, each with the headers at `head` and the same data.
fn runtimes(mut core: Core, count: u64, head: u64, (data, len): (u64, u64)) -> Vec<u8> {
    let at = |i: u64| 0x10_0000_0000 + i * 0x20_0000;
    for i in 0..count {
        core.map(at(i), head, 0x6000, 4);
        core.map(at(i) + 0x6000, data, len, RW);
    }
    core.files((0..count).map(|i| (at(i), at(i) + 0x6000 + len, format!("/{i}/libcoreclr.so"))));
    core.finish()
}

fn repeated_memory(_: &Path, part: u64) -> Vec<u8> {
    // The images of sixteen runtimes, whose writable segments are scanned.
    let mut core = Core::of(mapped_again(Path::new(""), 300));
    const LEN: u64 = 1 << 20;
    let at = core.append(&vec![0; LEN as usize]);
    let headers = [(1, 4, 0, 0, 0x6000), (1, RW, 0x6000, 0x6000, LEN)];
    let head = core.append(&elf_image(&headers, 0, 0x6000));
    runtimes(core, 1000 / part, head, (at, LEN))
}

fn sections(dir: &Path, part: u64) -> Vec<u8> {
    let (size, len) = ((1 << 30) / part, (10 << 20) / part);
    let mut file = pe_image(size, 96, len);
    file.resize(0x4000, 0);
    sparse(&dir.join("coreclr.dll"), &file, 0x4000 + len);
    let mut mini = Mini { bytes: target().to_minidump() };
    let own = mini.stream(4);
    // Three more at other bases, which occur nowhere else in the dump.
    let name = u64::from(u32::from_le_bytes(own[4 + 108 + 20..][..4].try_into().unwrap()));
    with_modules(&mut mini, 3, |i| module_record(0x6000_0000_0000 + i * (4 << 30), size, Image::TIMESTAMP.into(), name, (0, 0)));
    mini.bytes
}

fn window(_: &Path, part: u64) -> Vec<u8> {
    zstd_of_zeros(&target().to_elf_core(), (2 << 30) / part)
}

fn listed_again(_: &Path, part: u64) -> Vec<u8> {
    let target = target();
    let base = target.ranges()[0].0;
    let mut mini = Mini { bytes: target.to_minidump() };
    let own = mini.stream(4);
    let name = u64::from(u32::from_le_bytes(own[4 + 108 + 20..][..4].try_into().unwrap()));
    with_modules(&mut mini, 3000 / part, |_| module_record(base, 0xa000, Image::TIMESTAMP.into(), name, (0, 0)));
    mini.bytes
}

fn mapped_again(_: &Path, part: u64) -> Vec<u8> {
    let target = target();
    let base = target.ranges()[0].0;
    let bytes = target.to_elf_core();
    let mut core = Core::of(bytes.clone());
    let place = |at: u64, len: u64| {
        let dump = gcdump::internals::dump::open_bytes(
            gcdump::internals::dump::Bytes::Owned(bytes.clone()),
            "x".as_ref(),
            &gcdump::internals::dump::OpenOptions::default(),
        );
        let range = dump.unwrap().ranges.into_iter().find(|r| r.start.0 <= at && at < r.start.0 + r.len).unwrap();
        (range.offset + at - range.start.0, len)
    };
    let (head, data) = (place(base, 0x1000), place(base + 0x9000, 0x1000));
    let at = |i: u64| 0x6000_0000_0000 + i * 0x10_0000;
    for i in 0..3000 / part {
        core.map(at(i), head.0, head.1, 4);
        core.map(at(i) + 0x9000, data.0, data.1, RW);
    }
    core.files((0..3000 / part).map(|i| (at(i), at(i) + 0xa000, ELF_PATH.into())));
    core.finish()
}

/// Makes a process without modules, which consists of a descriptor with this JSON.
fn process(json: &[u8]) -> Vec<u8> {
    const AT: u64 = 0x1000_0000;
    let mut core = Core::empty();
    let bytes = descriptor(AT, json, &[0]);
    let at = core.append(&bytes);
    core.map(AT, at, bytes.len() as u64, RW);
    core.finish()
}

fn names(before: &str, value: &str, after: &str, part: u64) -> Vec<u8> {
    let list: Vec<String> = (0..300_000 / part).map(|i| format!("\"{i:x}\":{value}")).collect();
    process(format!("{before}{}{after}\"contracts\":{{\"Thread\":1}}}}", list.join(",")).as_bytes())
}

fn same_names(part: u64) -> Vec<u8> {
    let list: Vec<&str> = (0..300_000 / part).map(|_| "\"a\":8,\"a\":8").collect();
    process(format!("{{\"types\":{{\"T\":{{{}}}}},\"contracts\":{{\"Thread\":1}}}}", list.join(",")).as_bytes())
}

fn headers(_: &Path, part: u64) -> Vec<u8> {
    const AT: u64 = 0x1000_0000;
    let list: Vec<String> = (0..20_000).map(|i| format!("\"{i:x}\":8")).collect();
    let json = format!("{{\"globals\":{{{}}}}}", list.join(","));
    let count = 50_000 / part;
    let mut bytes = header(AT + 40 * count, json.len() as u64, AT, 1).repeat(count as usize);
    bytes.extend(json.bytes());
    let mut core = Core::empty();
    let at = core.append(&bytes);
    core.map(AT, at, bytes.len() as u64, RW);
    core.finish()
}

fn children(part: u64, many: bool) -> Vec<u8> {
    const AT: u64 = 0x1000_0000;
    // The largest JSON that is read, with an error at its end.
    let broken = format!("{{\"globals\":{{\"a\":[{}", "1,".repeat(500_000));
    let count = 10_000 / part;
    let child_at = AT + 40 + 8 * count + 64 * count + 0x10_0000;
    let child = |i: u64| if many { child_at + 40 * i } else { child_at };
    let json_at = child_at + 40 * count;
    let subs: Vec<String> = (0..count).map(|i| format!("\"{i:x}\":[{i}]")).collect();
    let json = format!("{{\"subDescriptors\":{{{}}},\"contracts\":{{\"Thread\":1}}}}", subs.join(","));
    // Slot → variable → child.
    let variables_at = AT + 40 + 8 * count;
    let text_at = variables_at + 8 * count;
    let mut bytes = header(text_at, json.len() as u64, AT + 40, count);
    (0..count).for_each(|i| bytes.extend(fields(&[(variables_at + 8 * i, 8)])));
    (0..count).for_each(|i| bytes.extend(fields(&[(child(i), 8)])));
    bytes.extend(json.bytes());
    bytes.resize((child_at - AT) as usize, 0);
    // After the root, so that the scan finds it first.
    (0..count).for_each(|_| bytes.extend(header(json_at, broken.len() as u64, AT, 1)));
    bytes.extend(broken.bytes());
    let mut core = Core::empty();
    let at = core.append(&bytes);
    core.map(AT, at, bytes.len() as u64, RW);
    core.finish()
}

fn writable_segments(_: &Path, part: u64) -> Vec<u8> {
    const LEN: u64 = 16 << 20;
    let mut core = Core::empty();
    let at = core.append(&vec![0; LEN as usize]);
    (0..40_000 / part).for_each(|i| core.map(0x1000_0000 + i * LEN, at, LEN, RW));
    core.finish()
}

fn images(part: u64, len: u64) -> Vec<u8> {
    const DATA: u64 = 0x10_0000;
    let mut core = Core::empty();
    let mut headers = vec![(1, 4, 0, 0, 0x6000)];
    headers.extend((0..240).map(|_| (1, RW, 0x6000, 0, len)));
    let head = core.append(&elf_image(&headers, 0, 0x6000));
    let data = core.append(&vec![0; DATA as usize]);
    runtimes(core, 2000 / part, head, (data, DATA))
}

fn chains(part: u64, name: &str) -> Vec<u8> {
    let mut core = Core::empty();
    let mut image = elf_image(&[(1, 4, 0, 0, 0x1000)], 0x1000, 0x1000);
    image.extend(endless_hash(100_001));
    let head = core.append(&image);
    let at = |i: u64| 0x10_0000_0000 + i * 0x20_0000;
    (0..100_000 / part).for_each(|i| core.map(at(i), head, image.len() as u64, 4));
    core.files((0..100_000 / part).map(|i| (at(i), at(i) + 0x1000, format!("/{i}/{name}"))));
    core.finish()
}

fn holders(_: &Path, part: u64) -> Vec<u8> {
    const BASE: u64 = 0x10_0000_0000;
    const DATA: u64 = BASE + 0x1000;
    let words = 1_000_000 / part;
    let mut core = Core::empty();
    let mut bytes = elf_image(&[(1, 4, 0, 0, 0x1000), (1, RW, 0x1000, 0x1000, 0x1000 + 8 * words)], 0, 0x1000);
    // GcDacVars: version 2.0, the size of a generation, five of them, and the address of the number 2.
    bytes.extend(fields(&[(2, 8), (256, 8), (5, 8)]));
    bytes.resize(0x1000 + 56, 0);
    bytes.extend(fields(&[(DATA + 0x800, 8)]));
    bytes.resize(0x1800, 0);
    bytes.extend(fields(&[(2, 8)]));
    bytes.resize(0x2000, 0);
    (0..words).for_each(|_| bytes.extend(fields(&[(DATA, 8)])));
    let at = core.append(&bytes);
    core.map(BASE, at, 0x1000, 4);
    core.map(DATA, at + 0x1000, bytes.len() as u64 - 0x1000, RW);
    core.files([(BASE, BASE + bytes.len() as u64, "/usr/libcoreclr.so".to_string())].into_iter());
    core.finish()
}
