//! The program that the process runs, and its build.

use crate::base::file_name;
use crate::base::missed::tried;
use crate::session::{Namer, Runtime};

/// The program of a process.
pub(crate) struct App {
    /// Name of the program's assembly.
    pub(crate) name: String,
    /// Id of the build (MVID); `None` if it is not in the dump.
    pub(crate) build_id: Option<String>,
}

/// Finds the managed module with the name of the process, or with a name on its command line. `None` if no module has such a name: the process name
/// may be truncated, or may be the name of a host.
pub(crate) fn app(runtime: &Runtime, namer: &Namer) -> Option<App> {
    let types = namer.types().ok()?;
    let facts = &runtime.file().facts;
    // If a host runs the program, the command line has the program's name. A word that does not match a module is ignored.
    let words = facts.process_name.iter().chain(&facts.command_line).flat_map(|text| text.split_whitespace());
    let words: Vec<&str> = words.map(|word| stem(file_name(word))).collect();
    // Failed reads of modules are not reported here. An answer that uses such a module reports them.
    tried(|| {
        let modules: Vec<_> = types.loader().modules().into_iter().map(|m| types.names().module(m)).collect();
        let module = words.iter().find_map(|word| modules.iter().find(|m| m.simple_name() == Some(word)))?;
        let mvid = module.metadata.as_ref().and_then(|m| m.mvid());
        Some(App { name: module.simple_name()?.to_string(), build_id: mvid.map(guid) })
    })
}

/// The name without `.dll` or `.exe`.
fn stem(name: &str) -> &str {
    let ends = |e: &str| e.eq_ignore_ascii_case("dll") || e.eq_ignore_ascii_case("exe");
    name.rsplit_once('.').filter(|(_, e)| ends(e)).map_or(name, |(stem, _)| stem)
}

/// Formats a GUID, whose first three parts are little-endian.
fn guid(bytes: [u8; 16]) -> String {
    let [a, b, c, d, e, f, g, h, rest @ ..] = bytes;
    let (first, second, third) = (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f]), u16::from_le_bytes([g, h]));
    let n = u64::from_be_bytes(rest);
    format!("{first:08x}-{second:04x}-{third:04x}-{:04x}-{:012x}", n >> 48, n & 0xffff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guids_are_written_as_dotnet_does() {
        let bytes = [0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];
        assert_eq!(guid(bytes), "00112233-4455-6677-8899-aabbccddeeff");
        assert_eq!((stem("Lab.dll"), stem("Lab.Core"), stem("a.EXE")), ("Lab", "Lab.Core", "a"));
    }
}
