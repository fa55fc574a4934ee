//! Lists of the container that are missing or cut off: answers made of them are partial, and other answers are the same.

use std::ops::Range;

use gcdump::cli::Exit;
use gcdump::internals::base::Endian;

use crate::changed::{Whole, ask, messages};
use crate::common;

/// Position of each stream in the directory of a minidump, and its offset in the file.
fn stream(bytes: &[u8], kind: u32) -> (usize, usize) {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (count, directory) = (word(8) as usize, word(12) as usize);
    let entry = (0..count).map(|i| directory + 12 * i).find(|at| word(*at) == kind).unwrap();
    (entry, word(entry + 8) as usize)
}

/// Positions of the headers of the notes of this type in the first segment of notes of a 64-bit core.
fn notes(bytes: &[u8], kind: u32) -> Vec<usize> {
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let (table, count) = (word(32), usize::from(u16::from_le_bytes(bytes[56..58].try_into().unwrap())));
    let segment = (0..count).map(|i| table + 56 * i).find(|at| half(*at) == 4).unwrap();
    let Range { mut start, end } = word(segment + 8)..word(segment + 8) + word(segment + 32);
    let mut out = Vec::new();
    while start < end {
        if half(start + 8) == kind {
            out.push(start);
        }
        start += 12 + (half(start) as usize).next_multiple_of(4) + (half(start + 4) as usize).next_multiple_of(4);
    }
    out
}

/// Checks that `partial` have partial answers with a warning that contains `message`, and `same` have the same answers as for `whole`.
fn check(whole: &Whole, what: &str, bytes: Vec<u8>, message: &str, partial: &[&str], same: &[&str]) {
    let changed = Whole::of(&whole.name, bytes);
    for command in partial {
        let (exit, answer, warnings) = ask(&changed.dump, command);
        let case = format!("{}: {what}: {command}: {exit:?}, {warnings}", whole.name);
        assert!(exit == Exit::Partial && answer["complete"] == false, "{case}");
        assert!(messages(&warnings).iter().any(|m| m.contains(message)), "{case}");
    }
    for command in same {
        let ((exit, answer, warnings), (before, expected, _)) = (ask(&changed.dump, command), ask(&whole.dump, command));
        assert!(exit == before && answer == expected, "{}: {what}: {command}: {exit:?}, {warnings}", whole.name);
    }
}

#[test]
fn lost_streams_of_a_minidump_are_reported() {
    const NAME: &str = "win-net10-wks-basics-full";
    const UNKNOWN: [u8; 4] = 0x7777u32.to_le_bytes();
    let Some(original) = common::bytes_of(NAME) else { return };
    let whole = Whole::of(NAME, original.clone());
    let patched = |at: usize, value: [u8; 4]| {
        let mut bytes = original.clone();
        bytes[at..at + 4].copy_from_slice(&value);
        bytes
    };
    let of_images = "list of images is missing or incomplete";
    let of_threads = "list of OS threads is missing or incomplete";
    let ((modules, list_of_modules), (threads, list_of_threads)) = (stream(&original, 4), stream(&original, 3));
    check(&whole, "no module list", patched(modules, UNKNOWN), of_images, &["modules", "memory", "info"], &[]);
    let half = |at: usize| (u32::from_le_bytes(original[at..at + 4].try_into().unwrap()) / 2).to_le_bytes();
    check(&whole, "half the modules", patched(list_of_modules, half(list_of_modules)), of_images, &["modules", "memory"], &[]);
    check(&whole, "half a module list", patched(modules + 4, half(modules + 4)), of_images, &["modules", "memory"], &[]);
    check(&whole, "no thread list", patched(threads, UNKNOWN), of_threads, &["threads", "memory", "info", "stacks"], &["stat"]);
    check(&whole, "half the threads", patched(list_of_threads, half(list_of_threads)), of_threads, &["threads", "memory"], &["stat"]);
    check(&whole, "half a thread list", patched(threads + 4, half(threads + 4)), of_threads, &["threads", "memory"], &["stat"]);
    let (system, _) = stream(&original, 7);
    let of_system = "description of the operating system";
    check(&whole, "no system info", patched(system, UNKNOWN), of_system, &["stat", "heap", "info"], &[]);
    let (misc, _) = stream(&original, 15);
    check(&whole, "misc info in the header", patched(misc + 8, [0; 4]), "description of the process", &["info"], &["stat", "modules"]);
}

#[test]
fn a_lost_exception_of_a_minidump_is_reported() {
    const NAME: &str = "win-net10-wks-crash-full";
    let Some(original) = common::bytes_of(NAME) else { return };
    let whole = Whole::of(NAME, original.clone());
    let patched = |at: usize, value: usize| {
        let mut bytes = original.clone();
        bytes[at..at + 4].copy_from_slice(&u32::try_from(value).unwrap().to_le_bytes());
        bytes
    };
    let ((entry, exception), (_, system)) = (stream(&original, 6), stream(&original, 7));
    let of_crash = "record of the exception";
    let commands = ["info", "threads", "stacks", "analyze"];
    check(&whole, "past the end of the file", patched(entry + 8, original.len() - 4), of_crash, &commands, &["stat"]);
    check(&whole, "a thread that the dump does not have", patched(exception, 0x0fff_ffff), of_crash, &commands, &["stat"]);
    check(&whole, "an unknown processor", patched(system, 0xfff), "the operating system and the processor", &["info", "modules"], &[]);
}

#[test]
fn lost_notes_of_a_core_are_reported() {
    const NAME: &str = "net10-wks-hangs-heap";
    let Some(original) = common::bytes_of(NAME) else { return };
    let whole = Whole::of(NAME, original.clone());
    assert_eq!(whole.dump.memory().shape().endian, Endian::Little);
    let patched = |at: usize, value: u32| {
        let mut bytes = original.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    let of_threads = "list of OS threads is missing or incomplete";
    let first = notes(&original, 1)[0];
    check(&whole, "endless note", patched(first + 4, 0xffff_fff0), of_threads, &["async", "threads", "stacks"], &["stat"]);
    let files = notes(&original, 0x4649_4c45)[0];
    check(&whole, "no NT_FILE", patched(files + 8, 0x7777), "list of images", &["modules", "info"], &["stat", "threads"]);
    for (what, kind) in [("no NT_PRPSINFO", 3), ("no NT_AUXV", 6)] {
        check(&whole, what, patched(notes(&original, kind)[0] + 8, 0x7777), "description of the process", &["info"], &["stat"]);
    }
}
