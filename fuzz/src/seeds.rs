//! Writes the first inputs of every target into `corpus/`: synthetic dumps of each kind of machine, and what the real dumps
//! on the command line hold of metadata, descriptions and headers.
#![allow(dead_code)]

#[path = "../../tests/it/support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;

use gcdump::internals::base::{Addr, AddrRange, Shape as Machine};
use gcdump::internals::dump::{OpenOptions, open};
use gcdump::internals::memory::Memory;
use support::{Shape, Spec};

/// Seeds of one kind from one dump.
const MOST: usize = 40;

fn put(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder).expect("corpus/ can be written");
    fs::write(folder.join(name), bytes).expect("corpus/ can be written");
}

fn main() {
    for (i, shape) in Shape::ALL.iter().enumerate() {
        for (server, regions) in [(None, true), (Some(2), false)] {
            let target = Spec { server, regions, ..Spec::standard(*shape) }.build();
            let name = format!("{i}-{}", u8::from(regions));
            let (core, mini) = (target.to_elf_core(), target.to_minidump());
            for command in 0..21u8 {
                put("program", &format!("{name}-{command}-core"), &[&[command], core.as_slice()].concat());
                put("program", &format!("{name}-{command}-mini"), &[&[command + 84], mini.as_slice()].concat());
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
                // Small counts before what may be a method table.
                if descs < MOST && at % 8 == 0 && at >= 64 && matches!(bytes[at..at + 8], [1..4, 0, 0, 0, 0, 0, 0, 0]) {
                    put("gcdesc", &format!("{:x}", address.0 + at as u64), &[&[64, 0, 0, 0], &bytes[at - 60..at + 8]].concat());
                    descs += 1;
                }
            }
        }
    }
}
