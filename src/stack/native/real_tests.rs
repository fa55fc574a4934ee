//! Tests on native stacks and tables of real dumps, from `GCDUMP_TEST_DUMPS` or `~/.cache/gcdump-dumps`. Dumps in the repository are trimmed
//! to the memory that commands read. Without dumps, a printed line says so.

use std::sync::Arc;

use super::{Native, pdata};
use crate::base::{Addr, Arch, Os, Shape};
use crate::dump::{DumpFile, Module, OpenOptions, OsThread, open, real_tests};
use crate::memory::{Image, Memory};
use crate::stack::{CodeBytes, RegisterNames, Registers, Saved, UnwindError, unwind};

/// A dump, and its memory without module files.
struct Process {
    name: String,
    dump: DumpFile,
    bytes: CodeBytes,
}

/// The dumps whose names `wanted` accepts.
fn processes(wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = Process> {
    let folder = real_tests::folder();
    let names = std::fs::read_dir(&folder).into_iter().flatten().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter(|n| {
            n.ends_with(".dmp")
                && !["arm64", "net10aot", "net11aot", "net8aot", "net10trim", "-busymore3-"].iter().any(|part| n.contains(part))
                && wanted(n)
        })
        .collect();
    names.sort();
    if names.is_empty() {
        println!("skipped: no dumps in {}", folder.display());
    }
    names.into_iter().map(move |name| {
        let dump = open(&folder.join(&name), &OpenOptions::default()).unwrap();
        let bytes = CodeBytes::new(&Arc::new(Memory::new(&dump, Shape::LE64)));
        Process { name, dump, bytes }
    })
}

impl Process {
    fn module_of(&self, address: Addr) -> Option<&Module> {
        self.dump.modules.iter().find(|m| m.base <= address && address < m.base.plus(m.size))
    }

    fn image(&self, module: &Module) -> Image {
        Image::at(self.bytes.memory(), module.base).unwrap_or_else(|| panic!("{}: {module:?}", self.name))
    }

    fn registers(&self, thread: &OsThread) -> Registers {
        let mut registers = Registers::new(Arch::X64).unwrap().on(self.dump.facts.os);
        for register in &thread.registers {
            let found = (0u8..).zip(RegisterNames::of(Arch::X64)).find(|(_, name)| **name == register.name);
            registers.set(found.unwrap().0, Saved { value: Some(register.value), place: None });
        }
        registers.ip = thread.instruction_pointer.unwrap();
        registers
    }
}

/// Unwinds the native frames of `thread` up to managed code, a signal frame of the C library, or the thread's start. Returns the registers there,
/// or `None` at the thread's start, and the number of frames of the runtime.
fn walk(p: &Process, thread: &OsThread) -> (Option<Registers>, usize) {
    let mut registers = p.registers(thread);
    let mut runtime = 0;
    for frame in 0..1000 {
        let Some(module) = p.module_of(registers.ip) else { return (Some(registers), runtime) };
        let caller = match Native::new(Some(p.image(module)), 0).step(&p.bytes, &registers, frame == 0) {
            Ok(caller) if caller.interrupted => {
                assert_eq!(module.file_name(), "libc.so.6", "{}: only signal frames of the C library", p.name);
                return (Some(registers), runtime);
            }
            Ok(caller) => caller.registers,
            Err(UnwindError::Invalid { what: "the outermost frame", .. }) => return (None, runtime),
            // The functions of ReadyToRun images on Linux are in separate tables.
            Err(UnwindError::Read(_)) if module.file_name().ends_with(".dll") => return (Some(registers), runtime),
            Err(error) => panic!("{}: thread {}, frame {frame}, {} in {}: {error}", p.name, thread.id, registers.ip, module.path),
        };
        runtime += usize::from(matches!(module.file_name(), "libcoreclr.so" | "coreclr.dll"));
        // The slot of a register is within the frame that was unwound, unless the register was restored before. On Windows, the home area of 32
        // bytes above the frame is part of it. On Linux, the rules of a leaf frame may name slots below the stack pointer, from which its
        // epilogue has already popped registers.
        let home = if p.dump.facts.os == Os::Windows { 32 } else { 0 };
        for number in 0..16 {
            let (old, new) = (registers.get(number), caller.get(number));
            let below = if frame == 0 { 128 } else { 0 };
            let within =
                |at: Addr| registers.sp().and_then(|sp| sp.minus(below)) <= Some(at) && Some(at) < caller.sp().map(|sp| sp.plus(home));
            assert!(
                new.place == old.place || new.place.is_none_or(within),
                "{}: {} {number} {old:?} {new:?} {:?} {:?}",
                p.name,
                registers.ip,
                registers.sp(),
                caller.sp()
            );
            assert!(new.place.is_none_or(|at| p.bytes.u64(at).ok() == new.value), "{}: {}", p.name, registers.ip);
        }
        registers = caller;
    }
    panic!("{}: endless stack of thread {}", p.name, thread.id);
}

#[test]
fn native_stacks_of_linux_lead_to_managed_code_or_the_thread_start() {
    // Only dumps of createdump are used, because dumps of gdb and of the kernel do not contain pages of images.
    let wanted = |n: &str| n.starts_with("net") && !n.contains("gcore") && !n.contains("kernel");
    for p in processes(wanted) {
        let (mut outermost, mut frames, mut astray) = (0, 0, 0);
        for thread in &p.dump.threads {
            let (end, runtime) = walk(&p, thread);
            frames += runtime;
            match end {
                None => outermost += 1,
                Some(at) => {
                    let region = p.dump.regions.iter().find(|r| r.range.contains(at.ip));
                    astray += usize::from(region.is_none_or(|r| !r.execute));
                }
            }
        }
        println!("{}: {outermost} of {} threads to the start, {frames} frames of the runtime", p.name, p.dump.threads.len());
        // Garbage collector, finalizer and tiered compilation have native threads.
        assert!(outermost >= 5 && frames > 20, "{}: {outermost} {frames}", p.name);
        // A hijacked thread returns to an assembly routine that no call instruction entered, so the return address is not where the unwind rules
        // expect it. Running threads may be at any instruction.
        let most = if p.name.contains("-busy") { 5 } else { 20 };
        assert!(astray * most <= p.dump.threads.len(), "{}: {astray} do not arrive at code", p.name);
    }
}

#[test]
fn native_stacks_of_windows_lead_to_their_top() {
    for p in processes(|n| n.starts_with("win-") && n.contains("-full")) {
        let (mut top, mut frames) = (0, 0);
        for thread in &p.dump.threads {
            let (Some(at), runtime) = walk(&p, thread) else { panic!("{}: PE tables do not mark the outermost frame", p.name) };
            frames += runtime;
            let left = thread.stack.and_then(|s| s.end.since(at.sp()?));
            top += usize::from(at.ip == Addr(0) && left.is_some_and(|n| n < 64));
        }
        println!("{}: {top} of {} threads to the top, {frames} frames of the runtime", p.name, p.dump.threads.len());
        // Other threads have managed frames above, or ran while their stacks were copied.
        assert!(top >= 2 && frames >= 6, "{}: {top} {frames}", p.name);
    }
}

/// Dumps that contain the runtime's tables, one of each version.
fn one_of_each(prefix: &'static str, suffix: &'static str) -> impl Fn(&str) -> bool {
    move |n| ["8", "9", "10"].iter().any(|version| n == format!("{prefix}{version}-wks-basics-{suffix}.dmp"))
}

#[test]
fn every_function_of_libcoreclr_begins_with_its_return_address() {
    for p in processes(one_of_each("net", "heap")) {
        let module = p.dump.modules.iter().find(|m| m.file_name() == "libcoreclr.so").unwrap();
        let image = p.image(module);
        let table = image.unwind_table(p.bytes.memory()).unwrap().unwrap().start;
        let native = Native::new(Some(image), 0);
        let mut registers = p.registers(&p.dump.threads[0]);
        let count = p.bytes.u32(table.plus(8)).unwrap();
        let mut returns = 0;
        for i in 0..u64::from(count) {
            let begin = p.bytes.u32(table.plus(12).element(i, 8)).unwrap();
            registers.ip = Addr(table.0.checked_add_signed(begin.cast_signed().into()).unwrap());
            let caller = native.step(&p.bytes, &registers, true).unwrap().registers;
            returns += u32::from(caller.sp() == registers.sp().map(|sp| sp.plus(8)));
        }
        println!("{}: {returns} of {count}", p.name);
        // A few functions are written in assembly, and entered with more words on the stack.
        assert!(count > 10_000 && count - returns < 10, "{}: {returns} of {count}", p.name);
    }
}

#[test]
fn every_function_of_coreclr_dll_begins_with_its_return_address() {
    for p in processes(one_of_each("win-net", "full")) {
        let module = p.dump.modules.iter().find(|m| m.file_name() == "coreclr.dll").unwrap();
        let image = p.image(module);
        let table = image.unwind_table(p.bytes.memory()).unwrap().unwrap();
        let mut registers = p.registers(&p.dump.threads[0]);
        let (mut returns, mut whole, mut version_2) = (0, 0, 0);
        for i in 0..table.len() / 12 {
            let entry = pdata::read(&p.bytes, table.start.element(i, 12)).unwrap();
            let info = image.base.plus(entry.unwind.into());
            let [head, _, codes, _] = p.bytes.u32(info).unwrap().to_le_bytes();
            if head & 7 == 2 {
                // Epilogue codes come in pairs, so that each pair can be read as an operation of two slots.
                let slots = (0..u64::from(codes)).map(|n| p.bytes.u8(info.plus(5 + n * 2)).unwrap() & 15);
                assert_eq!(slots.filter(|op| *op == 6).count() % 2, 0, "{}: {info}", p.name);
                version_2 += 1;
            }
            registers.ip = image.base.plus(entry.begin.into());
            let caller = unwind(&p.bytes, image.base, &entry, &registers, false);
            // Chained parts are entered with the complete frame.
            if head >> 3 & 4 == 0 {
                whole += 1;
                returns += usize::from(caller.is_ok_and(|c| c.sp() == registers.sp().map(|sp| sp.plus(8))));
            }
        }
        println!("{}: {returns} of {whole}, {version_2} of version 2", p.name);
        assert!(whole > 10_000 && whole - returns < 100 && version_2 > 0, "{}: {returns} of {whole}, {version_2}", p.name);
    }
}
