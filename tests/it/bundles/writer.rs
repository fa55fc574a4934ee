//! Writes single-file programs according to the runtime's design document of the single-file bundler.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// The mark after the offset of the header: the SHA-256 of ".net core bundle".
const MARK: [u8; 32] = [
    0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32, 0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae,
    0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
];

/// A file of a program.
pub struct File<'f> {
    pub path: &'f str,
    pub contents: &'f [u8],
    pub compressed: bool,
}

/// A single-file program, and where its parts are.
pub struct Program {
    pub bytes: Vec<u8>,
    /// Offset of the header, and of the number with that offset.
    pub header: usize,
    pub header_at: usize,
    /// Offsets of the records of the files.
    pub records: Vec<usize>,
    /// Offsets of the files.
    pub files: Vec<usize>,
}

impl Program {
    /// Overwrites a 64-bit number.
    pub fn put(&mut self, at: usize, n: i64) {
        self.bytes[at..at + 8].copy_from_slice(&n.to_le_bytes());
    }
}

/// Writes `files` after `host`, with a header of version `major`.
pub fn program(host: &[u8], major: u32, files: &[File<'_>]) -> Program {
    let mut out = host.to_vec();
    let header_at = out.len();
    out.extend([0; 8]);
    out.extend(MARK);
    let mut places = Vec::new();
    for file in files {
        // Images are mapped from the bundle.
        out.resize(out.len().next_multiple_of(4096), 0);
        let at = out.len();
        if file.compressed {
            let mut encoder = DeflateEncoder::new(&mut out, Compression::fast());
            encoder.write_all(file.contents).unwrap();
            encoder.finish().unwrap();
        } else {
            out.extend(file.contents);
        }
        places.push((at, out.len() - at));
    }
    let header = out.len();
    out.extend(major.to_le_bytes());
    out.extend(0u32.to_le_bytes());
    out.extend(u32::try_from(files.len()).unwrap().to_le_bytes());
    text(&mut out, "AbCdEfGhIjKl");
    out.extend([0; 5 * 8]);
    let mut records = Vec::new();
    for (file, (at, len)) in files.iter().zip(&places) {
        records.push(out.len());
        let packed = if file.compressed { *len } else { 0 };
        [*at, file.contents.len()].iter().for_each(|n| out.extend(i64::try_from(*n).unwrap().to_le_bytes()));
        if major >= 6 {
            out.extend(i64::try_from(packed).unwrap().to_le_bytes());
        }
        out.push(1);
        text(&mut out, file.path);
    }
    let mut program = Program { bytes: out, header, header_at, records, files: places.iter().map(|p| p.0).collect() };
    program.put(header_at, i64::try_from(header).unwrap());
    program
}

fn text(out: &mut Vec<u8>, text: &str) {
    let len = text.len();
    match u8::try_from(len).ok().filter(|len| *len < 0x80) {
        Some(len) => out.push(len),
        None => out.extend([u8::try_from(len & 0x7f).unwrap() | 0x80, u8::try_from(len >> 7).unwrap()]),
    }
    out.extend(text.as_bytes());
}
