//! Notes of an ELF core: threads, file mappings, the auxiliary vector, and the signal that ended the process.

use super::fields::Fields;
use super::losses::Original;
use super::registers::{self, named};
use super::{Crash, FileMapping, LostLists, MappedRegion, OsThread, Register};
use crate::base::{Addr, AddrRange, Arch, Limits, PtrSize, Shape, file_name};

pub(super) const NT_PRSTATUS: u32 = 1;
pub(super) const NT_PRPSINFO: u32 = 3;
pub(super) const NT_AUXV: u32 = 6;
pub(super) const NT_SIGINFO: u32 = 0x5349_4749;
pub(super) const NT_FILE: u32 = 0x4649_4c45;

/// The contents of the notes.
#[derive(Debug, Default)]
pub(super) struct CoreNotes {
    /// Threads, in note order. createdump and the kernel write the crashing thread first.
    pub(super) threads: Vec<OsThread>,
    /// NT_FILE entries.
    pub(super) files: Vec<FileMapping>,
    /// NT_AUXV without the terminator.
    pub(super) auxv: Vec<(u64, u64)>,
    /// Process ID (NT_PRPSINFO).
    pub(super) pid: Option<u32>,
    /// Program name (NT_PRPSINFO).
    pub(super) process_name: Option<String>,
    /// Command line (NT_PRPSINFO), which the kernel truncates to 80 bytes.
    pub(super) command_line: Option<String>,
    /// The note that `gcdump trim` adds.
    pub(super) trimmed: Option<TrimNote>,
    /// The note that `gcdump trim` adds if the original is incomplete.
    pub(super) original: Option<Original>,
    /// Irregularities, one sentence each.
    pub(super) oddities: Vec<String>,
    /// Lists that are missing or incomplete.
    pub(super) lost: LostLists,
    /// Whether notes may be missing after those that were read.
    pub(super) cut: bool,
    /// NT_SIGINFO entries.
    signals: Vec<SignalInfo>,
}

/// Owner of the notes that `gcdump trim` adds.
pub(super) const TRIM_OWNER: &[u8] = b"gcdump\0";
/// Type of the note that `gcdump trim` adds.
pub(super) const NT_TRIM: u32 = 1;
/// Type of the note that `gcdump trim` adds if the original is incomplete ([`Original`]).
pub(super) const NT_ORIGINAL: u32 = 2;
/// Size in bytes of a mapping in the note that `gcdump trim` adds: start, end, permissions as in `p_flags`.
const TRIM_REGION: u64 = 24;

/// Facts about the original of a trimmed core: flags (1: redacted), the number of mappings without captured bytes, then the mappings. All
/// fields are 64-bit, in the byte order of the file.
#[derive(Debug)]
pub(super) struct TrimNote {
    pub(super) redacted: bool,
    pub(super) uncaptured: u64,
    pub(super) regions: Vec<MappedRegion>,
}

impl TrimNote {
    fn read(desc: Fields<'_>) -> Option<TrimNote> {
        let count = desc.len().checked_sub(16)?.checked_div(TRIM_REGION)?;
        let region = |i: u64| {
            let at = i.checked_mul(TRIM_REGION)?.checked_add(16)?;
            let flags = desc.u64(at.checked_add(16)?)?;
            let range = AddrRange::new(Addr(desc.u64(at)?), Addr(desc.u64(at.checked_add(8)?)?));
            Some(MappedRegion {
                range,
                read: flags & 4 != 0,
                write: flags & 2 != 0,
                execute: flags & 1 != 0,
                backing: None,
                allocation: None,
            })
        };
        let regions = (0..count).map_while(region).collect();
        Some(TrimNote { redacted: desc.u64(0)? & 1 != 0, uncaptured: desc.u64(8)?, regions })
    }
}

/// A decoded NT_SIGINFO note.
#[derive(Clone, Copy, Debug)]
struct SignalInfo {
    /// ID of the thread whose NT_PRSTATUS precedes the note.
    thread: Option<u32>,
    signal: u32,
    /// `si_code`.
    code: i32,
    /// The fault address, for hardware faults only.
    address: Option<Addr>,
}

/// An undecoded note.
pub(super) struct RawNote<'a> {
    owner: &'a [u8],
    pub(super) kind: u32,
    /// The description, cut at the end of the file.
    pub(super) desc: &'a [u8],
    /// Declared size of the description in bytes.
    desc_len: u64,
    /// Whether the owner is "CORE". Of other notes, only those of `gcdump trim` are decoded.
    pub(super) core: bool,
}

/// Alignment in bytes of the notes and descriptions in a segment. The alignment is 4, also in 64-bit cores, or 8 if `segment`, the segment's
/// `p_align`, is 8 (gABI, "Note Section"; GNU binutils, `ELF_NOTE_DESC_OFFSET`). Some writers align the segment to 8 but the notes to 4, so 8 is
/// used only if at least as many notes are readable as with 4.
pub(super) fn note_alignment(data: &Fields<'_>, segment: u64) -> u64 {
    // The owner name of each note ends with a NUL, which is usually missing if the alignment is wrong.
    let readable = |align: u64| raw_notes(data, align).take_while(|n| n.owner.last() == Some(&0) && n.desc_len <= data.len()).count();
    if segment == 8 && readable(8) >= readable(4) { 8 } else { 4 }
}

/// Iterates over the notes of one segment, which are aligned to `align` bytes.
pub(super) fn raw_notes<'a>(data: &Fields<'a>, align: u64) -> impl Iterator<Item = RawNote<'a>> {
    let data = *data;
    let mut at = 0u64;
    std::iter::from_fn(move || {
        let (name_len, desc_len) = (u64::from(data.u32(at)?), u64::from(data.u32(at.saturating_add(4))?));
        let kind = data.u32(at.saturating_add(8))?;
        let name_at = at.saturating_add(12);
        let desc_at = name_at.saturating_add(name_len).next_multiple_of(align);
        at = desc_at.saturating_add(desc_len).next_multiple_of(align);
        let core = data.slice(name_at, 4) == Some(b"CORE");
        Some(RawNote { owner: data.clamped(name_at, name_len), kind, desc: data.clamped(desc_at, desc_len), desc_len, core })
    })
}

/// Decodes the notes of one segment into `out`. Values of earlier notes take precedence.
pub(super) fn read_notes(data: Fields<'_>, align: u64, (shape, arch): (Shape, Arch), limits: &Limits, out: &mut CoreNotes) {
    for note in raw_notes(&data, align) {
        let desc = Fields::new(note.desc, data.endian);
        if note.kind == NT_TRIM && note.owner == TRIM_OWNER && out.trimmed.is_none() {
            out.trimmed = TrimNote::read(desc);
        }
        if note.kind == NT_ORIGINAL && note.owner == TRIM_OWNER && out.original.is_none() {
            out.original = Original::read(desc);
        }
        let kind = note.kind;
        // What follows a truncated note is lost, whatever it is.
        if desc.len() < note.desc_len {
            out.oddities.push(format!("note {kind:#x} is truncated"));
            out.cut = true;
            out.lost.modules |= kind == NT_FILE;
            out.lost.process |= matches!(kind, NT_PRPSINFO | NT_AUXV);
        }
        if !note.core {
            continue;
        }
        match kind {
            NT_PRSTATUS if out.threads.len() < limits.threads => {
                let thread = thread(desc, shape, arch);
                out.lost.threads |= thread.is_none();
                out.threads.extend(thread);
            }
            NT_PRPSINFO => process(desc, shape, limits, out),
            NT_AUXV => auxv(desc, shape, out),
            NT_SIGINFO => signal_info(desc, shape, limits, out),
            NT_FILE => files(desc, shape, limits, out),
            _ => {}
        }
    }
}

/// Offset of the 16-bit signal number in `struct elf_prstatus`.
pub(super) const SIGNAL_OF_THREAD: u64 = 12;
/// Size in bytes of the name in `struct elf_prpsinfo`.
pub(super) const NAME_BYTES: u64 = 16;
/// Type of the last entry of the auxiliary vector (`elf.h`).
pub(super) const AT_NULL: u64 = 0;
/// Types of the auxiliary vector entries that a redacted copy keeps: AT_PHDR, AT_BASE, AT_ENTRY, AT_EXECFN and AT_SYSINFO_EHDR. AT_RANDOM, which
/// gcdump also reads, is not kept.
pub(super) const AUXV_READ: [u64; 5] = [3, 7, 9, 31, 33];

/// Offset of the 32-bit thread ID in `struct elf_prstatus`.
pub(super) fn thread_id_at(shape: Shape) -> u64 {
    match shape.ptr {
        PtrSize::Four => 24,
        PtrSize::Eight => 32,
    }
}

/// Offset of the fault address in `siginfo_t`.
pub(super) fn address_of_signal(shape: Shape) -> u64 {
    match shape.ptr {
        PtrSize::Four => 12,
        PtrSize::Eight => 16,
    }
}

/// Offset of the general-purpose registers in `struct elf_prstatus`.
pub(super) fn registers_at(shape: Shape) -> u64 {
    match shape.ptr {
        PtrSize::Four => 72,
        PtrSize::Eight => 112,
    }
}

/// Offsets of the process ID and the name in a `struct elf_prpsinfo` of `len` bytes. The command line follows the 16-byte name.
pub(super) fn process_at(shape: Shape, len: u64) -> (u64, u64) {
    match (shape.ptr, len) {
        (PtrSize::Eight, _) => (24, 40),
        // User IDs are 16-bit on x86 and arm, 32-bit elsewhere.
        (PtrSize::Four, 128..) => (16, 32),
        (PtrSize::Four, _) => (12, 28),
    }
}

/// Decodes `struct elf_prstatus`: signal, IDs, times, then the general-purpose registers.
fn thread(desc: Fields<'_>, shape: Shape, arch: Arch) -> Option<OsThread> {
    let registers_at = registers_at(shape);
    let word = shape.ptr.bytes();
    let register = |index: u64| desc.word(registers_at + index * word, shape.ptr);
    // Indices of the instruction pointer and the stack pointer in the kernel's `user_regs_struct`, and the names of the first registers in this
    // structure. The order of registers on other architectures is unverified, so their registers are left out.
    let (ip, sp, names): (u64, u64, &[&'static str]) = match arch {
        Arch::X64 => (16, 19, &registers::ELF_X64),
        Arch::Arm64 => (32, 31, &registers::ARM64),
        Arch::X86 => (12, 15, &registers::ELF_X86),
        Arch::Arm => (15, 13, &registers::ARM),
        _ => (0, 0, &[]),
    };
    let known = !names.is_empty();
    let general = names.iter().zip(0u64..).filter_map(|(name, i)| Some((*name, register(i)?)));
    let mut general = named(general);
    // On x64 and x86, the stack pointer is not among the first registers.
    if matches!(arch, Arch::X64 | Arch::X86) {
        let name = if arch == Arch::X64 { "rsp" } else { "esp" };
        general.extend(register(sp).map(|value| Register { name, value }));
    }
    Some(OsThread {
        id: desc.u32(thread_id_at(shape))?,
        instruction_pointer: register(ip).filter(|_| known).map(Addr),
        stack_pointer: register(sp).filter(|_| known).map(Addr),
        registers: general,
        thread_base: (arch == Arch::X64).then(|| register(21)).flatten().filter(|b| *b != 0).map(Addr),
        signal: u32::from(desc.u16(SIGNAL_OF_THREAD)?),
        name: None,
        stack: None,
        teb: None,
    })
}

/// Decodes `struct elf_prpsinfo`: process ID, 16 bytes of name, 80 bytes of command line.
fn process(desc: Fields<'_>, shape: Shape, limits: &Limits, out: &mut CoreNotes) {
    let (pid_at, name_at) = process_at(shape, desc.len());
    let text = |at: u64, len: u64| {
        let bytes = desc.clamped(at, len);
        string(bytes.split(|b| *b == 0).next().unwrap_or(&[]), limits)
    };
    out.pid = out.pid.or_else(|| desc.u32(pid_at).filter(|pid| *pid != 0));
    let some = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    // createdump does not write a command line.
    let line = some(text(name_at + NAME_BYTES, 80));
    // The kernel truncates the name to 15 characters; the first word of the command line may contain the whole name.
    let program = line.as_deref().and_then(|line| line.split_whitespace().next()).map(file_name);
    let name = match (some(text(name_at, NAME_BYTES)), program) {
        (Some(name), Some(program)) if program.starts_with(&name) => Some(program.to_owned()),
        (Some(name), _) => Some(name),
        (None, program) => program.map(str::to_owned),
    };
    out.process_name = out.process_name.take().or(name);
    out.command_line = out.command_line.take().or(line);
}

fn auxv(desc: Fields<'_>, shape: Shape, out: &mut CoreNotes) {
    let word = shape.ptr.bytes();
    let mut at = 0u64;
    while let (Some(key), Some(value)) = (desc.word(at, shape.ptr), desc.word(at.saturating_add(word), shape.ptr)) {
        if key == 0 {
            break;
        }
        out.auxv.push((key, value));
        at = at.saturating_add(word.saturating_mul(2));
    }
}

/// Decodes `siginfo_t`: signal, errno, code, then fields that depend on the signal and code.
fn signal_info(desc: Fields<'_>, shape: Shape, limits: &Limits, out: &mut CoreNotes) {
    const SI_KERNEL: u32 = 0x80;
    let (Some(signal), Some(code)) = (desc.u32(0), desc.u32(8)) else { return };
    // Only hardware faults (SIGILL, SIGBUS, SIGFPE, SIGSEGV) have an address. Signals sent by a program have a code of 0 or less, and
    // SI_KERNEL has no address.
    let fault = matches!(signal, 4 | 7 | 8 | 11) && code != 0 && code != SI_KERNEL && code < 0x8000_0000;
    let address = desc.word(address_of_signal(shape), shape.ptr).filter(|_| fault).map(Addr);
    if out.signals.len() < limits.threads {
        out.signals.push(SignalInfo { thread: out.threads.last().map(|t| t.id), signal, code: code.cast_signed(), address });
    }
}

fn files(desc: Fields<'_>, shape: Shape, limits: &Limits, out: &mut CoreNotes) {
    let word = shape.ptr.bytes();
    let entry = word.saturating_mul(3);
    let (Some(declared), Some(page)) = (desc.word(0, shape.ptr), desc.word(word, shape.ptr)) else { return };
    // The kernel and createdump write offsets in units of the page size; gdb writes a page size of 1 and offsets in bytes.
    let page = page.max(1);
    let table = word.saturating_mul(2);
    let count = declared.min(desc.len().saturating_sub(table).checked_div(entry).unwrap_or(0));
    if count < declared {
        out.oddities.push(format!("the list of mapped files is truncated: {count} of {declared} entries are complete"));
        out.lost.modules = true;
    }
    let names_at = table.saturating_add(declared.saturating_mul(entry));
    let names = desc.clamped(names_at, desc.len());
    let mut names = names.split(|b| *b == 0);
    let mut unnamed = 0u64;
    for index in 0..count {
        let at = table.saturating_add(index.saturating_mul(entry));
        let field = |n: u64| desc.word(at.saturating_add(word.saturating_mul(n)), shape.ptr);
        let (Some(start), Some(end), Some(offset)) = (field(0), field(1), field(2)) else { break };
        let name = names.next().unwrap_or(&[]);
        if name.is_empty() {
            unnamed = unnamed.saturating_add(1);
            continue;
        }
        let path = string(name, limits);
        let path = path.strip_suffix(" (deleted)").map(str::to_owned).unwrap_or(path);
        let range = AddrRange::new(Addr(start), Addr(end));
        out.files.push(FileMapping { range, file_offset: offset.saturating_mul(page), path });
    }
    if unnamed > 0 {
        out.oddities.push(match unnamed {
            1 => "a mapped file has no name".into(),
            n => format!("{n} mapped files have no name"),
        });
    }
}

/// Decodes at most [`Limits::string_bytes`] of a text. Linux paths are arbitrary bytes; invalid UTF-8 becomes U+FFFD.
fn string(bytes: &[u8], limits: &Limits) -> String {
    let cap = usize::try_from(limits.string_bytes).unwrap_or(usize::MAX);
    String::from_utf8_lossy(bytes.get(..cap).unwrap_or(bytes)).into_owned()
}

impl CoreNotes {
    /// Whether the core has an NT_SIGINFO note.
    pub(super) fn has_signal_info(&self) -> bool {
        !self.signals.is_empty()
    }

    /// The signal that ended the process, if any.
    ///
    /// Measured: createdump records `pr_cursig` and NT_SIGINFO only if a signal started createdump. In a dump on request, `pr_cursig` is 0 and
    /// NT_SIGINFO is absent or has signal 0. The kernel records the signal in every thread and writes the receiving thread first. gcore leaves
    /// `pr_cursig` 0 and writes an NT_SIGINFO per thread with the SIGSTOP that gdb sent, which is not a crash.
    pub(super) fn crash(&self) -> Option<Crash> {
        let first = self.threads.iter().find(|t| ends_process(t.signal));
        let (thread, signal) = match first {
            Some(thread) => (Some(thread.id), thread.signal),
            None => {
                let info = self.signals.iter().find(|s| ends_process(s.signal))?;
                (info.thread.or(self.threads.first().map(|t| t.id)), info.signal)
            }
        };
        let same = |s: &&SignalInfo| s.signal == signal;
        let info = self
            .signals
            .iter()
            .find(|s| same(s) && s.thread == thread)
            .or_else(|| self.signals.iter().find(|s| same(s) && s.thread.is_none()));
        Some(Crash {
            thread,
            code: signal,
            name: signal_name(signal),
            address: info.and_then(|i| i.address),
            signal_code: info.map(|i| i.code),
            state: None,
            parameters: Vec::new(),
        })
    }
}

/// Whether the default action of the signal ends the process, rather than stops or continues it or ignores the signal.
fn ends_process(signal: u32) -> bool {
    !matches!(signal, 0 | 17..=23 | 28)
}

impl Crash {
    /// Name of `si_code`, the cause of the signal (`siginfo.h` of Linux); `None` if the dump does not record a code, or if its name is unknown.
    pub(crate) fn signal_code_name(&self) -> Option<&'static str> {
        let code = self.signal_code?;
        let names: &[&'static str] = match self.code {
            4 => &["ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP", "ILL_PRVOPC", "ILL_PRVREG", "ILL_COPROC", "ILL_BADSTK"],
            5 => &["TRAP_BRKPT", "TRAP_TRACE", "TRAP_BRANCH", "TRAP_HWBKPT"],
            7 => &["BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR", "BUS_MCEERR_AR", "BUS_MCEERR_AO"],
            8 => &["FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV", "FPE_FLTOVF", "FPE_FLTUND", "FPE_FLTRES", "FPE_FLTINV", "FPE_FLTSUB"],
            11 => &["SEGV_MAPERR", "SEGV_ACCERR", "SEGV_BNDERR", "SEGV_PKUERR"],
            _ => &[],
        };
        match code {
            0 => Some("SI_USER"),
            0x80 => Some("SI_KERNEL"),
            -1 => Some("SI_QUEUE"),
            -6 => Some("SI_TKILL"),
            _ => names.get(usize::try_from(code).ok()?.checked_sub(1)?).copied(),
        }
    }

    /// Whether an instruction faulted, rather than a program sent the signal or threw the exception. A core without `si_code` does not say who
    /// sent the signal; signals of faults are then taken as faults, because programs hardly ever send these.
    pub(crate) fn is_fault(&self) -> bool {
        let is_of_fault = matches!(self.code, 4 | 5 | 7 | 8 | 11);
        match self.signal_code {
            Some(code) => is_of_fault && code > 0,
            // Windows: an `NTSTATUS` with severity "error" from the system. Bit 29 is set in codes that programs define.
            None => is_of_fault || self.code >> 28 == 0xc,
        }
    }
}

/// Name of a Linux signal. The numbers are the same on all architectures that .NET supports.
pub(super) fn signal_name(signal: u32) -> String {
    const NAMES: [&str; 32] = [
        "",
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    let known = usize::try_from(signal).ok().and_then(|n| NAMES.get(n)).filter(|n| !n.is_empty());
    known.map(|n| (*n).to_owned()).unwrap_or_else(|| format!("signal {signal}"))
}
