//! Time and memory limits of a command.

use std::fs::File;
use std::io::Write;
use std::sync::LazyLock;

use super::args::Config;
use super::exit::Exit;
use crate::base::in_units;

/// Reports on `err` that `--timeout` expired.
pub fn out_of_time(config: &Config, err: &mut dyn Write) -> Exit {
    let after = config.timeout.unwrap_or_default();
    let _ = writeln!(err, "gcdump: timed out after {after:?}; --timeout TIME allows more");
    Exit::Timeout
}

/// Memory in bytes excluded from `--max-memory`: stacks, buffers, and tables of the program itself.
const OWN_MEMORY: u64 = 16 << 20;

/// Whether the process exceeds `--max-memory`. Always false except on Linux: on other systems, only the estimates of the commands limit memory.
pub fn takes_too_much(config: &Config) -> bool {
    takes_more_than(config.max_memory)
}

/// Whether the process uses more than this many bytes.
pub(super) fn takes_more_than(allowed: Option<u64>) -> bool {
    let Some(allowed) = allowed else { return false };
    // Only anonymous pages count. The system can reclaim pages of mapped files (the dump, graphs in temporary files) at any time.
    let status = own_status().unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib: Option<u64> = line.and_then(|l| l.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.is_some_and(|kib| kib.saturating_mul(1024) > allowed.saturating_add(OWN_MEMORY))
}

/// Returns the kernel's status of this process. The file stays open, because it could not be opened once the process reaches its limit of file
/// descriptors.
#[cfg(unix)]
fn own_status() -> Option<String> {
    use std::os::unix::fs::FileExt;
    const LONGEST: usize = 8 << 10;
    static STATUS: LazyLock<Option<File>> = LazyLock::new(|| File::open("/proc/self/status").ok());
    let mut text = vec![0; LONGEST];
    let read = STATUS.as_ref()?.read_at(&mut text, 0).ok()?;
    text.truncate(read);
    String::from_utf8(text).ok()
}

#[cfg(not(unix))]
fn own_status() -> Option<String> {
    None
}

/// Reports on `err` that `--max-memory` is exceeded.
pub fn out_of_memory(config: &Config, err: &mut dyn Write) -> Exit {
    let allowed = config.max_memory.unwrap_or_default();
    let _ = writeln!(err, "gcdump: more than {} of memory is needed; --max-memory BYTES allows more", in_units(allowed));
    Exit::Usage
}
