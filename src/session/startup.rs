//! The arguments and the environment that a process was started with.
//!
//! Linux stores both on the main thread's stack (`create_elf_tables`, fs/binfmt_elf.c). From lower to higher addresses, the stack contains the
//! number of arguments; a pointer to each argument, and a null; a pointer to each environment variable, and a null; the auxiliary vector; the
//! strings; the path of the program. The core has a copy of the auxiliary vector, which contains the address of the path. With this address, the
//! vector on the stack is found. The other parts are found from the vector, backwards. The environment does not include changes that the program
//! made, because the C library moves the environment when the program changes it.
//!
//! Windows stores both in the process parameters (`RTL_USER_PROCESS_PARAMETERS`, `dt ntdll!_PEB`), to which every TEB leads. The process parameters
//! include changes that the program made.

use crate::base::{Addr, AddrRange, PtrSize, len64};
use crate::dump::{Container, DumpFile};
use crate::memory::Memory;
use crate::model::StartupSource;

/// Key of the program's path in the auxiliary vector: `AT_EXECFN`.
const PATH: u64 = 31;
/// Exclusive upper bound of the keys in an auxiliary vector.
const GREATEST_KEY: u64 = 1 << 10;
/// Maximum size in bytes of the strings and pointers together. The limit of the kernel is three quarters of `_STK_LIM`, which is 8 MiB (fs/exec.c).
const MOST: u64 = 6 << 20;

/// The arguments and the environment of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Startup {
    /// Where the data was found.
    pub(crate) source: StartupSource,
    /// Arguments, starting with the program name; `None` on Windows, where programs split the command line themselves, and if a part is not in the dump.
    pub(crate) arguments: Option<Vec<String>>,
    /// The command line; `None` except on Windows, and if a part is not in the dump.
    pub(crate) line: Option<String>,
    /// Environment variables: name and value.
    pub(crate) environment: Vec<(String, String)>,
    /// The first argument or variable that is not in the dump.
    pub(crate) lost: Option<Addr>,
}

impl Startup {
    /// The startup data of the process in `dump`; `None` if the dump does not have it, or if it is inconsistent.
    pub(crate) fn of(dump: &DumpFile, memory: &Memory) -> Option<Startup> {
        // A redacted copy has the pointers, but zeros instead of the strings.
        if dump.facts.trimmed.is_some_and(|trimmed| trimmed.redacted) {
            return None;
        }
        if dump.facts.container == Container::Minidump { windows(dump, memory) } else { Startup::on_stack(dump, memory) }
    }

    fn on_stack(dump: &DumpFile, memory: &Memory) -> Option<Startup> {
        let path = dump.auxv.iter().find(|(key, _)| *key == PATH).map(|(_, value)| Addr(*value))?;
        let word = memory.ptr_bytes();
        let below = AddrRange::new(path.minus(MOST).unwrap_or(Addr::NULL).align_down(word), path.align_down(word));
        let is_pair = |at: Addr| at.minus(word).and_then(|key| memory.word(key).ok()) == Some(PATH);
        // The match nearest to the path is taken. Stack frames, which may contain copies of the vector, are at lower addresses.
        let found = memory.set_words(below).filter(|(at, value)| *value == path.0 && is_pair(*at)).last();
        let mut at = found.and_then(|(at, _)| at.minus(word))?;
        let two = word.saturating_mul(2);
        // Keys are small numbers, unlike pointers. The word before the first key is the null that ends the environment pointers.
        while let Some(before) = at.minus(two).filter(|before| memory.word(*before).is_ok_and(|key| (1..GREATEST_KEY).contains(&key))) {
            at = before;
        }
        let (variables, at) = pointers(memory, at.minus(word)?, path)?;
        let (arguments, at) = pointers(memory, at, path)?;
        (memory.word(at).ok()? == len64(arguments.len())).then_some(())?;
        let first = arguments.iter().chain(&variables).min().copied()?;
        memory.keep_private(AddrRange::new(first, path));
        let mut lost = None;
        let mut text = |at: Addr| {
            let text = memory.text(at, path.since(at).unwrap_or(0)).ok();
            lost = lost.or(text.is_none().then_some(at));
            text
        };
        let arguments: Option<Vec<String>> = arguments.into_iter().map(&mut text).collect();
        let variables: Vec<String> = variables.into_iter().filter_map(text).collect();
        let environment = variables.iter().filter_map(|text| variable(text)).collect();
        Some(Startup { source: StartupSource::InitialStack, arguments, line: None, environment, lost }).filter(Startup::has_any)
    }
}

impl Startup {
    /// Whether any part is in the dump.
    fn has_any(&self) -> bool {
        self.lost.is_none() || self.arguments.is_some() || self.line.is_some() || !self.environment.is_empty()
    }

    /// Whether the numeric setting `name` of the runtime is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        setting(&self.environment, name).is_some_and(|n| n != 0)
    }
}

/// The value of a numeric setting of the runtime: of the variable `DOTNET_` or else `COMPlus_`, followed by `name`, in hexadecimal with or without a
/// prefix (`CLRConfig` in clrconfig.cpp). `None` if it is not set, or not to a number.
fn setting(environment: &[(String, String)], name: &str) -> Option<u64> {
    number(given(environment, name)?, 16)
}

/// The text of the setting `name` of the runtime. An empty variable does not count as set (`EnvGetString` in clrconfig.cpp).
pub(super) fn given<'e>(environment: &'e [(String, String)], name: &str) -> Option<&'e str> {
    let variable = |prefix: &str| {
        let is = |given: &str| given.strip_prefix(prefix).is_some_and(|rest| rest.eq_ignore_ascii_case(name));
        environment.iter().find(|(given, value)| is(given) && !value.is_empty()).map(|(_, value)| value.as_str())
    };
    variable("DOTNET_").or_else(|| variable("COMPlus_"))
}

/// The number at the start of `text`, as `strtoull` reads it: text after the digits is ignored. `None` without digits, and for numbers that do not fit.
pub(super) fn number(text: &str, base: u32) -> Option<u64> {
    let text = text.trim_start();
    let hexadecimal = (base == 16).then(|| text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))).flatten();
    let digits = hexadecimal.unwrap_or(text);
    let end = digits.find(|c: char| !c.is_digit(base)).unwrap_or(digits.len());
    u64::from_str_radix(digits.get(..end)?, base).ok()
}

/// Splits a variable into name and value. On Windows, names may begin with `=`.
fn variable(text: &str) -> Option<(String, String)> {
    let at = text.char_indices().skip(1).find(|(_, c)| *c == '=')?.0;
    let (name, value) = text.split_at(at);
    Some((name.to_owned(), value.strip_prefix('=')?.to_owned()))
}

/// Maximum size in bytes of a Windows environment.
const MOST_OF_WINDOWS: u64 = 1 << 20;

fn windows(dump: &DumpFile, memory: &Memory) -> Option<Startup> {
    // The TEB points to the PEB, which points to the parameters. They contain the command line, a UNICODE_STRING, and a pointer to the environment.
    let (peb, parameters, line, pointer, environment) = match memory.shape().ptr {
        PtrSize::Eight => (0x60, 0x20, 0x70, 8, 0x80),
        PtrSize::Four => (0x30, 0x10, 0x40, 4, 0x48),
    };
    let teb = dump.threads.iter().find_map(|t| t.teb)?;
    let at = memory.ptr(memory.ptr(teb.plus(peb)).ok()?.plus(parameters)).ok()?;
    let length = u64::from(memory.u16(at.plus(line)).ok()?);
    let text_at = memory.ptr(at.plus(line).plus(pointer)).ok()?;
    memory.keep_private(AddrRange::of(text_at, length));
    let text = memory.utf16(text_at, length, length).ok();
    let mut lost = text.is_none().then_some(text_at);
    let (mut next, mut left, mut variables) = (memory.ptr(at.plus(environment)).ok()?, MOST_OF_WINDOWS, Vec::new());
    while left > 0 {
        let stretch = memory.stretches(AddrRange::of(next, left)).next().filter(|(at, _)| *at == next);
        let words = || stretch.iter().flat_map(|(_, bytes)| bytes.as_chunks::<2>().0).map(|c| u16::from_le_bytes(*c));
        let units: Vec<u16> = words().take_while(|unit| *unit != 0).collect();
        // The captured memory ends within the variable, or before the empty one that ends the list.
        if words().nth(units.len()).is_none() {
            lost = lost.or(Some(next.element(len64(units.len()), 2)));
            break;
        }
        if units.is_empty() {
            break;
        }
        let bytes = len64(units.len()).saturating_add(1).saturating_mul(2);
        memory.keep_private(AddrRange::of(next, bytes));
        variables.extend(variable(&String::from_utf16_lossy(&units)));
        (next, left) = (next.plus(bytes), left.saturating_sub(bytes));
    }
    memory.touch(AddrRange::of(next, 2));
    Some(Startup { source: StartupSource::ProcessParameters, arguments: None, line: text, environment: variables, lost })
        .filter(Startup::has_any)
}

/// The pointers before the null at `end`, in order, and the address of the word before the first of them. Going down from `end`, the pointers end
/// at the first word that does not point between `end` and `path`. `None` if the word at `end` is not null.
fn pointers(memory: &Memory, end: Addr, path: Addr) -> Option<(Vec<Addr>, Addr)> {
    let word = memory.ptr_bytes();
    (memory.word(end).ok()? == 0).then_some(())?;
    let (mut out, mut at) = (Vec::new(), end.minus(word)?);
    let lowest = path.minus(MOST).unwrap_or(Addr::NULL);
    while let Some(pointer) = memory.ptr(at).ok().filter(|p| end < *p && *p <= path) {
        out.push(pointer);
        at = at.minus(word).filter(|at| *at >= lowest)?;
    }
    out.reverse();
    Some((out, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_runtime_are_hexadecimal() {
        let is_on = |variables: &[(&str, &str)]| {
            let environment = variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            Startup { source: StartupSource::InitialStack, arguments: None, line: None, environment, lost: None }.is_on("gcConservative")
        };
        for on in [&[("DOTNET_gcConservative", "1")][..], &[("COMPlus_GCConservative", "0xA")], &[("DOTNET_gcConservative", "a ")]] {
            assert!(is_on(on), "{on:?}");
        }
        let both = [("COMPlus_gcConservative", "1"), ("DOTNET_gcConservative", "0")];
        for off in [&[][..], &[("DOTNET_gcConservative", "0")], &[("DOTNET_gcConservative", "yes")], &[("gcConservative", "1")], &both] {
            assert!(!is_on(off), "{off:?}");
        }
    }
}
