//! Minidumps: header, stream directory, system info, threads, exception. Either byte order; Windows writes little endian.
//!
//! The `minidump` crate decodes system info, processor contexts and exceptions. The directory and the lists are read here, because the crate
//! drops overlapping ranges and discards a whole list for one bad entry (measured: a truncated dump then has no memory at all). It also copies a
//! string for each module from anywhere in the file, so a hostile file could make the crate allocate terabytes.

use std::path::Path;
use std::sync::Arc;

use super::elf_notes::signal_name;
use super::fields::Fields;
use super::losses::{Original, bounded};
use super::minidump_info::{Strings, modules, process, thread_names};
use super::minidump_memory::{Regions, memory_lists, memory_regions};
use super::minidump_reading::{Reading, stream};
use super::registers::{ARM, ARM64, named};
use super::{Bytes, Container, Crash, DumpError, DumpFacts, DumpFile, Module, OsThread, Trimmed};
use crate::base::{Addr, AddrRange, Arch, Endian, Limits, Os, PtrSize, Shape};
use minidump::{Endian as FileEndian, MinidumpContext, MinidumpException, MinidumpRawContext, MinidumpStream, MinidumpSystemInfo};

/// Reads a minidump.
pub(super) fn read(bytes: Arc<Bytes>, path: &Path, limits: &Limits) -> Result<DumpFile, DumpError> {
    let endian = if bytes.starts_with(b"PMDM") { Endian::Big } else { Endian::Little };
    let file = Fields::new(&bytes, endian);
    let mut reading = Reading::begin(file, path, limits)?;

    let system = system(&mut reading);
    let arch = system.as_ref().map_or(Arch::Unknown, |s| arch(s.raw.processor_architecture));
    let os = system.as_ref().map_or(Os::Unknown, |s| os(s.raw.platform_id));
    let shape = shape(arch, endian);
    if let Some(system) = system.as_ref().filter(|_| arch == Arch::Unknown) {
        let what = format!("the system info names the processor architecture {:#x}, which is unknown", system.raw.processor_architecture);
        reading.oddities.push(what);
        reading.lose(stream::SYSTEM);
    }
    reading.max_address = shape.map_or(u64::MAX, |s| s.ptr.max_address());

    let memory = memory_lists(&mut reading);
    let Regions { committed: regions, reserved, mapped_bytes } = memory_regions(&mut reading);
    let mut strings = Strings::new(limits, file);
    let modules = modules(&mut reading, &mut strings);
    let names = thread_names(&mut reading, &mut strings);
    let mut threads = threads(&mut reading, system.as_ref());
    for thread in &mut threads {
        thread.name = names.get(&thread.id).cloned();
    }
    let crash = exception(&mut reading, (os, &modules), system.as_ref());
    let is_listed = |id: &u32| threads.is_empty() || threads.iter().any(|thread| thread.id == *id);
    if let Some(id) = crash.as_ref().and_then(|crash| crash.thread).filter(|id| !is_listed(id)) {
        reading.oddities.push(format!("the exception is on thread {id}, which is not in the thread list"));
        reading.lose(stream::EXCEPTION);
    }
    let (pid, started) = process(&mut reading);
    let flags = reading.stream(stream::TRIM, "trim marker").and_then(|s| s.u32(0));
    let trimmed = flags.map(|f| Trimmed { redacted: f & 1 != 0, truncated_bytes: 0 });
    let original = reading.stream(stream::ORIGINAL, "list of losses").and_then(Original::read);

    let mut facts = DumpFacts {
        is_standard_input: false,
        path: path.to_owned(),
        container: Container::Minidump,
        compression: None,
        os,
        arch,
        shape,
        pid,
        // Minidumps record no command line. The executable is the first module.
        process_name: modules.first().map(|m| m.file_name().to_owned()).filter(|n| !n.is_empty()),
        command_line: None,
        time: file.u32(20).filter(|t| *t != 0).map(u64::from),
        started,
        file_bytes: file.len(),
        captured_bytes: memory.ranges.iter().fold(0u64, |sum, r| sum.saturating_add(r.len)),
        mapped_bytes,
        truncated_bytes: memory.truncated,
        undescribed_bytes: 0,
        damage: None,
        minidump_flags: file.u64(24),
        header_of_createdump: false,
        uncaptured_mappings: 0,
        trimmed,
        oddities: bounded(reading.oddities),
        lost: reading.lost,
    };
    if let Some(original) = original {
        original.add_to(&mut facts);
    }
    Ok(DumpFile {
        facts,
        ranges: memory.ranges,
        regions,
        reserved,
        modules,
        files: Vec::new(),
        threads,
        crash,
        auxv: Vec::new(),
        snapshot: None,
        bytes,
    })
}

fn file_endian(endian: Endian) -> FileEndian {
    match endian {
        Endian::Little => FileEndian::Little,
        Endian::Big => FileEndian::Big,
    }
}

fn system(reading: &mut Reading<'_>) -> Option<MinidumpSystemInfo> {
    let Some(stream) = reading.stream(stream::SYSTEM, "system info") else {
        reading.oddities.push("there is no system info, so the architecture is unknown".to_owned());
        reading.lost.system = true;
        return None;
    };
    // The crate gets the stream without the rest of the file. Otherwise, the crate would read the name of the service pack elsewhere in the
    // file, which is not needed, and trust the length of the name.
    let system = MinidumpSystemInfo::read(stream.bytes, &[], file_endian(stream.endian), None);
    if let Err(e) = &system {
        reading.oddities.push(format!("the system info is unreadable: {e}"));
        reading.lost.system = true;
    }
    system.ok()
}

fn arch(processor: u16) -> Arch {
    match processor {
        // 10: a 32-bit process on 64-bit Windows (`PROCESSOR_ARCHITECTURE_IA32_ON_WIN64`).
        0 | 10 => Arch::X86,
        3 => Arch::Ppc,
        5 => Arch::Arm,
        9 => Arch::X64,
        12 | 0x8003 => Arch::Arm64,
        0x8002 => Arch::Ppc64,
        _ => Arch::Unknown,
    }
}

/// Windows platforms are 0 to 3; Breakpad assigned the others.
fn os(platform: u32) -> Os {
    match platform {
        0..=3 => Os::Windows,
        0x8101 | 0x8102 => Os::Macos,
        0x8201 | 0x8203 => Os::Linux,
        _ => Os::Unknown,
    }
}

fn shape(arch: Arch, endian: Endian) -> Option<Shape> {
    let ptr = match arch {
        Arch::X64 | Arch::Arm64 | Arch::Ppc64 => PtrSize::Eight,
        Arch::X86 | Arch::Arm | Arch::Ppc => PtrSize::Four,
        _ => return None,
    };
    Some(Shape { ptr, endian })
}

fn threads(reading: &mut Reading<'_>, system: Option<&MinidumpSystemInfo>) -> Vec<OsThread> {
    const ENTRY: u64 = 48;
    let Some(list) = reading.stream(stream::THREADS, "thread list") else {
        reading.lose(stream::THREADS);
        return Vec::new();
    };
    let (start, count) = reading.list(list, ENTRY, (stream::THREADS, "thread list"));
    let cap = u64::try_from(reading.limits.threads).unwrap_or(u64::MAX);
    if count > cap {
        reading.oddities.push(format!("only the first {cap} threads are listed"));
        reading.lose(stream::THREADS);
    }
    let mut threads = Vec::new();
    let mut no_context = 0u64;
    for index in 0..count.min(cap) {
        let at = start.saturating_add(index.saturating_mul(ENTRY));
        let half = |n: u64| list.u32(at.saturating_add(n));
        let (Some(id), Some(teb), Some(stack), Some(stack_len), Some(context_len), Some(context_at)) =
            (half(0), list.u64(at.saturating_add(16)), list.u64(at.saturating_add(24)), half(32), half(40), half(44))
        else {
            break;
        };
        let stack = reading.addr(stack);
        let mut thread = OsThread {
            stack: (stack_len > 0).then(|| AddrRange::of(stack, u64::from(stack_len))),
            teb: Some(reading.addr(teb)).filter(|teb| !teb.is_null()),
            ..blank(id)
        };
        let raw = reading.file.slice(u64::from(context_at), u64::from(context_len));
        let order = file_endian(list.endian);
        let context = system.zip(raw).and_then(|(s, raw)| MinidumpContext::read(raw, order, s, None).ok());
        match context {
            Some(context) => registers(&context, &mut thread),
            None => no_context = no_context.saturating_add(1),
        }
        threads.push(thread);
    }
    if no_context > 0 {
        reading.oddities.push(match no_context {
            1 => "the registers of a thread are unreadable".into(),
            n => format!("the registers of {n} threads are unreadable"),
        });
    }
    threads
}

/// A thread with nothing but its ID.
fn blank(id: u32) -> OsThread {
    OsThread {
        id,
        instruction_pointer: None,
        stack_pointer: None,
        registers: Vec::new(),
        thread_base: None,
        signal: 0,
        name: None,
        stack: None,
        teb: None,
    }
}

fn registers(context: &MinidumpContext, thread: &mut OsThread) {
    let (ip, sp, general) = match &context.raw {
        MinidumpRawContext::Amd64(c) => {
            let all = [
                ("rax", c.rax),
                ("rcx", c.rcx),
                ("rdx", c.rdx),
                ("rbx", c.rbx),
                ("rsp", c.rsp),
                ("rbp", c.rbp),
                ("rsi", c.rsi),
                ("rdi", c.rdi),
                ("r8", c.r8),
                ("r9", c.r9),
                ("r10", c.r10),
                ("r11", c.r11),
                ("r12", c.r12),
                ("r13", c.r13),
                ("r14", c.r14),
                ("r15", c.r15),
            ];
            (c.rip, c.rsp, named(all.into_iter()))
        }
        MinidumpRawContext::X86(c) => {
            let all = [
                ("edi", c.edi),
                ("esi", c.esi),
                ("ebx", c.ebx),
                ("edx", c.edx),
                ("ecx", c.ecx),
                ("eax", c.eax),
                ("ebp", c.ebp),
                ("esp", c.esp),
            ];
            (c.eip.into(), c.esp.into(), named(all.into_iter().map(|(n, v)| (n, v.into()))))
        }
        MinidumpRawContext::Arm64(c) => (c.pc, c.sp, named(ARM64.into_iter().zip(c.iregs.into_iter().chain([c.sp])))),
        MinidumpRawContext::OldArm64(c) => {
            // A packed struct: copy the fields before borrowing them.
            let (all, sp, pc) = (c.iregs, c.sp, c.pc);
            (pc, sp, named(ARM64.into_iter().zip(all.into_iter().chain([sp]))))
        }
        MinidumpRawContext::Arm(c) => {
            let [all @ .., pc] = c.iregs;
            let [.., sp, _] = all;
            (pc.into(), sp.into(), named(ARM.into_iter().zip(all.into_iter().map(u64::from))))
        }
        _ => return,
    };
    thread.instruction_pointer = Some(Addr(ip));
    thread.stack_pointer = Some(Addr(sp));
    thread.registers = general;
}

/// The exception for which the dump was written. A dump on request has no exception stream, or an empty one. A debugger writes its last event, which
/// is not why the process ended.
fn exception(reading: &mut Reading<'_>, (os, modules): (Os, &[Module]), system: Option<&MinidumpSystemInfo>) -> Option<Crash> {
    /// Code that Breakpad writes into Linux dumps on request.
    const DUMP_REQUESTED: u32 = 0xffff_ffff;
    let record = reading.stream(stream::EXCEPTION, "exception")?;
    let exception = match MinidumpException::read(record.bytes, &[], file_endian(record.endian), None) {
        Ok(exception) => exception,
        Err(e) => {
            reading.oddities.push(format!("the exception is unreadable: {e}"));
            // An empty stream is that of a dump on request.
            if record.len() > 0 {
                reading.lose(stream::EXCEPTION);
            }
            return None;
        }
    };
    let record = &exception.raw.exception_record;
    let code = record.exception_code;
    if code == 0 || (os == Os::Linux && code == DUMP_REQUESTED) {
        return None;
    }
    let raised_at = reading.addr(record.exception_address);
    if os == Os::Windows && is_by_debugger(code, raised_at, modules) {
        reading.oddities.push("a debugger wrote the dump at a breakpoint or step, which is not taken as a crash".to_owned());
        return None;
    }
    let count = usize::try_from(record.number_parameters).unwrap_or(usize::MAX);
    let information = record.exception_information;
    let parameters: Vec<u64> = information.into_iter().take(count).map(|p| p & reading.max_address).collect();
    // For an access violation and an in-page error, the second parameter is the address accessed.
    let accessed = if matches!(code, 0xc000_0005 | 0xc000_0006) { parameters.get(1).copied() } else { None };
    let name = match os {
        Os::Linux => signal_name(code),
        _ => match code_name(code) {
            Some(name) => format!("{code:#010x} ({name})"),
            None => format!("{code:#010x}"),
        },
    };
    Some(Crash {
        thread: Some(exception.thread_id),
        code,
        name,
        address: Some(accessed.map_or(raised_at, |at| reading.addr(at))),
        signal_code: None,
        state: system.and_then(|system| exception.context(system, None)).map(|context| {
            let mut state = blank(exception.thread_id);
            registers(&context, &mut state);
            Box::new(state)
        }),
        parameters,
    })
}

/// Whether a debugger caused the exception: a step, or a breakpoint in `ntdll`, where a debugger stops the process when it attaches or starts it
/// (`DbgBreakPoint`, `LdrpDoDebuggerBreak`). Breakpoints in other modules may be in the program.
fn is_by_debugger(code: u32, raised_at: Addr, modules: &[Module]) -> bool {
    const BREAKPOINTS: [u32; 2] = [0x8000_0003, 0x4000_001f];
    const STEPS: [u32; 2] = [0x8000_0004, 0x4000_001e];
    let holds = |module: &&Module| module.range().contains(raised_at);
    let name = || modules.iter().find(holds).map(|module| module.file_name().to_ascii_lowercase());
    let in_ntdll = || name().is_some_and(|name| ["ntdll.dll", "wntdll.dll"].contains(&name.as_str()));
    STEPS.contains(&code) || BREAKPOINTS.contains(&code) && in_ntdll()
}

fn code_name(code: u32) -> Option<&'static str> {
    Some(match code {
        0xe043_4352 => "CLR exception",
        0xe043_4f4d => "legacy CLR exception",
        0xe06d_7363 => "C++ exception",
        0x8013_1506 => "CLR internal error",
        0x8013_1623 => "Environment.FailFast",
        0x8000_0003 => "breakpoint",
        0x8000_0004 => "single step",
        0x4000_0015 => "fatal application exit",
        0xc000_0005 => "access violation",
        0xc000_0006 => "in-page error",
        0xc000_0008 => "invalid handle",
        0xc000_0017 => "out of memory",
        0xc000_001d => "illegal instruction",
        0xc000_0025 => "noncontinuable exception",
        0xc000_008c => "array bounds exceeded",
        0xc000_0094 => "integer division by zero",
        0xc000_0095 => "integer overflow",
        0xc000_0096 => "privileged instruction",
        0xc000_00fd => "stack overflow",
        0xc000_013a => "Ctrl+C",
        0xc000_0374 => "heap corruption",
        0xc000_0409 => "fail fast or stack buffer overrun",
        0xc000_0420 => "assertion failure",
        0xc000_0602 => "fail fast exception",
        _ => return None,
    })
}

#[cfg(test)]
#[path = "minidump_tests.rs"]
pub(super) mod tests;
