//! Writes the first inputs of every target into `corpus/`: synthetic dumps of each kind of machine, and metadata, descriptors and GCDescs from the
//! real dumps on the command line.

use std::fs;
use std::path::Path;

use gcdump::internals::base::{Addr, AddrRange, Shape as Machine};
use gcdump::internals::dump::{OpenOptions, open};
use gcdump::internals::memory::Memory;
use gcdump_fuzz::support::{Shape, Spec};

/// Most seeds of one kind from one dump.
const MOST: usize = 40;

fn put(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder).expect("corpus/ can be written");
    fs::write(folder.join(name), bytes).expect("corpus/ can be written");
}

/// Writes unwind information in each form, as input of `gcdump_fuzz::unwind`.
fn unwinding() {
    let put = |name: &str, flags: u8, word: u32, parts: &[&[u8]]| {
        // The instruction pointer is a few bytes into the function; the stack is after everything.
        let head = [&[flags, 8, 0, 0, 1][..], &word.to_le_bytes()].concat();
        let mut bytes = parts.concat();
        bytes.resize(0x200, 0x10);
        put("unwind", name, &[head, bytes].concat());
    };
    // push rbp; sub rsp, 32; lea rbp, [rsp + 16]; mov [rsp + 8], rbx
    put("x64", 0, 0, &[&[1, 14, 6, 0x15, 14, 0x34, 1, 0, 10, 3, 5, 0x32, 1, 0x50]]);
    put("x64-epilogue", 1, 0x20, &[&[0x90; 8], &[0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3], &[0; 18], &[1, 5, 2, 0, 5, 0x32, 1, 0x50]]);
    // The examples of Microsoft's documentation.
    put("arm64-packed", 2, 0x4161_01ed, &[]);
    let record = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    put("arm64-mirror", 2, 0, &[&record(&[0x1040_003d, 0x0100_0038, 0xe422_91e1, 0xe422_91e1])]);
    put("arm64-homes", 2, 0, &[&record(&[0x1840_0012, 0x0100_000f, 0xe3e3_e3e3, 0xe405_00d6, 0xe405_00d6])]);
    // A table of one function, which begins at the start of the table; its CIE; its FDE, of push rbp; mov rbp, rsp.
    let entry = |content: &[u8]| [&(content.len() as u32).to_le_bytes(), content].concat();
    let cie = entry(&[0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1]);
    let fde_at = 20 + cie.len() as u32;
    let begin = 0u32.wrapping_sub(fde_at + 8);
    let fields = record(&[fde_at + 4 - 20, begin, 0x40]);
    let fde = entry(&[&fields[..], &[0, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6]].concat());
    put("eh_frame", 0, 0, &[&record(&[0x3b03_1b01, 0, 1, 0, fde_at]), &cie, &fde]);
}

/// Writes a CIE and an FDE of each form, as input of `gcdump_fuzz::eh_frame`, and a whole table.
fn native_unwinding() {
    let put = |name: &str, flags: u8, [common, own]: [&[u8]; 2]| {
        let lens = [common.len() as u8, own.len() as u8];
        // The instruction pointer is a few bytes into the function; the stack has addresses in it.
        let stack = (0u64..32).flat_map(|i| (0x10_0008 + i).to_le_bytes()).collect::<Vec<u8>>();
        put("eh_frame", name, &[&[flags, 8, 0, 0x60, 0][..], &lens, common, own, &stack].concat());
    };
    // Version 1, "zR", addresses relative to their field; the CFA is rsp + 8.
    let plain: &[u8] = &[1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1];
    let signal: &[u8] = &[1, b'z', b'R', b'S', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1];
    let personal: &[u8] = &[1, b'z', b'P', b'L', b'R', 0, 1, 0x78, 16, 7, 0x1b, 0, 0, 0, 0, 0x1b, 0x1b, 0x0c, 7, 8, 0x90, 1];
    for (name, common) in [("plain", plain), ("signal", signal), ("personal", personal)] {
        let begin = (0u32.wrapping_sub(20 + 8 + common.len() as u32 + 8)).to_le_bytes();
        let own = |instructions: &[u8]| [&begin[..], &[0x40, 0, 0, 0], &[0], instructions].concat();
        let put = |form: &str, instructions: &[u8]| put(&format!("{name}-{form}"), 0, [common, &own(instructions)]);
        put("frame", &[0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x42, 0x83, 3]);
        put("remembered", &[0x41, 0x0e, 16, 0x0a, 0x41, 0x0c, 7, 8, 0xc6, 0x0b, 2, 1, 3, 1, 0, 4, 1, 0, 0, 0]);
        put("rules", &[7, 3, 8, 6, 9, 12, 3, 0x14, 13, 2, 0x05, 14, 2, 0x11, 15, 0x7e, 0x15, 3, 1, 0x12, 7, 1, 0x13, 1, 0x2e, 8]);
        put("expressions", &[0x0f, 3, 0x77, 8, 6, 0x10, 6, 2, 0x77, 0, 0x16, 3, 2, 0x77, 8]);
    }
    put("table", 2, [&[1, 0x1b, 3, 0x3b, 0, 0, 0, 0, 2, 0, 0, 0], &[0; 64]]);
}

/// Writes changes of the words of stacks, as input of `gcdump_fuzz::stacks`.
fn walks() {
    for pick in 0..16 * gcdump_fuzz::BASES.len() as u8 {
        put("stacks", &format!("whole-{pick}"), &[pick]);
    }
    for kind in 0..8 {
        for pick in 0..6 {
            let changes: Vec<u8> = (0u8..8).flat_map(|i| [kind, 17 * i, 31 * i + pick, i, 23 * i, pick, 8 * i, 0]).collect();
            put("stacks", &format!("changed-{kind}-{pick}"), &[&[pick], changes.as_slice()].concat());
        }
    }
}

/// Writes seeds that are neither a dump nor a part of one.
fn beside() {
    put("symbols", "portable", include_bytes!("../../tests/it/lines/stacks.pdb"));
    for name in ["lab.dll", "lab.pdb"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/dumps/modules/net10").join(name);
        if let Ok(bytes) = fs::read(path) {
            put("symbols", name, &bytes);
        }
    }
    // Nibbles, whose highest bit means that another one follows: the sizes of bounds and variables, then both.
    put("debug_info", "nibbles", &[0, 4, 0, 0x88, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x11, 0x22, 0x33, 0x44]);
    put("debug_info", "packed", &[1, 4, 0, 0x29, 0x18, 0x03, 0x85, 0x21, 0x43, 0x65, 0x07, 0x10, 0x32, 0x54, 0x76, 0x98, 0x01, 0x23]);
    put("debug_info", "patchpoint", &[[2, 4, 0, 1].as_slice(), &[0; 8], &[1, 0, 0, 0], &[0; 8], &[0x22, 0x11, 0x33, 0x44]].concat());
    let packed = include_bytes!("../../tests/it/golden/basics.gcdump.zst");
    let trace = zstd::decode_all(&packed[..]).expect("it is packed");
    (0..8).for_each(|command| put("snapshot", &format!("basics-{command}"), &[&[command], trace.as_slice()].concat()));
    for command in 0..6 {
        put("index", &format!("whole-{command}"), &[command]);
        for change in 0..6 {
            put("index", &format!("changed-{command}-{change}"), &[command, 3 * change + command, change, 1, 0, 0xff, 0xff, 0xff, 0xff]);
        }
    }
    let messages = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{}}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
        r#"[{"jsonrpc":"2.0","id":3,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}]"#,
        r#"{"jsonrpc":"2.0","id":"4","method":"tools/call","params":{"name":"stat","arguments":{"dump":"dump","top":3}}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"objects","arguments":{"type":"*","where":"size > 1K"}}}"#,
        r#"{"jsonrpc":"2.0","id":6,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
    ];
    messages.iter().enumerate().for_each(|(n, message)| put("mcp", &n.to_string(), format!("{message}\n").as_bytes()));
    put("mcp", "all", messages.join("\n").as_bytes());
    for (n, line) in gcdump_fuzz::commands().iter().enumerate() {
        put("words", &format!("line-{n}"), format!("\0{}", line.replace(' ', "\0")).as_bytes());
    }
    let condition = "objects\0--where\0size >= 1.5K and not (type ~ \"Lab.*\" or field('_a._b') != null)\0x";
    put("words", "condition", format!("\0{condition}").as_bytes());
    put("words", "rules", b"\x01bytes>10% # a comment\ntype:Lab.Order<System.Int32>:retained>=+10MB\nhandles:pinned<=5\n");
    put("words", "overlay", &[b"\x02", &include_bytes!("../../src/contract/overlay/data/net10.0-linux-x64.json")[..]].concat());
}

fn main() {
    unwinding();
    native_unwinding();
    walks();
    beside();
    let packed = include_bytes!("../../tests/it/pdb/program.pdb.zst");
    put("pdb", "clang", &zstd::decode_all(&packed[..]).expect("it is packed"));
    let commands = u8::try_from(gcdump_fuzz::commands().len()).expect("a byte picks from them");
    for (i, shape) in Shape::ALL.iter().enumerate() {
        for (server, regions) in [(None, true), (Some(2), false)] {
            let target = Spec { server, regions, ..Spec::standard(*shape) }.build();
            let name = format!("{i}-{}", u8::from(regions));
            let (core, mini) = (target.to_elf_core(), target.to_minidump());
            // Each machine gets a share of the commands.
            for command in (u8::from(regions)..commands).step_by(2) {
                put("program", &format!("{name}-{command}-core"), &[&[command, command / 2], core.as_slice()].concat());
                put("program", &format!("{name}-{command}-mini"), &[&[command, command / 2 + 1], mini.as_slice()].concat());
            }
            put("elf", &name, &core);
            put("minidump", &name, &mini);
            // The JSON of both descriptors.
            let starts: Vec<usize> = core.windows(10).enumerate().filter(|(_, w)| w == b"{\"version\"").map(|(at, _)| at).collect();
            for (n, at) in starts.into_iter().enumerate() {
                let rest = &core[at..];
                let len = rest.iter().position(|b| *b == 0).unwrap_or(rest.len());
                put("descriptor", &format!("{name}-{n}"), &rest[..len]);
            }
        }
    }
    for path in std::env::args().skip(1) {
        let dump = open(Path::new(&path), &OpenOptions::default()).expect("a dump");
        let memory = Memory::new(&dump, Machine::LE64);
        let (mut blobs, mut descs) = (0, 0);
        for (address, bytes) in memory.stretches(AddrRange::new(Addr(0), Addr(u64::MAX))) {
            for at in (0..bytes.len().saturating_sub(64)).step_by(4) {
                if blobs < MOST && bytes[at..].starts_with(b"BSJB") {
                    let end = bytes.len().min(at + 64 * 1024);
                    put("metadata", &format!("{:x}", address.0 + at as u64), &bytes[at..end]);
                    blobs += 1;
                }
                // A small count of series in front of what may be a method table.
                if descs < MOST && at % 8 == 0 && at >= 64 && matches!(bytes[at..at + 8], [1..4, 0, 0, 0, 0, 0, 0, 0]) {
                    put("gcdesc", &format!("{:x}", address.0 + at as u64), &[&[64, 0, 0, 0], &bytes[at - 60..at + 8]].concat());
                    descs += 1;
                }
            }
        }
    }
}
