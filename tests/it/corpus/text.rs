//! Finds text in a dump about the machine that made it: paths, environment, mounts, control groups, hosts.
//!
//! Scans all printable text in UTF-8 and UTF-16. Text contained in libraries is allowed, with reasons; everything else of
//! these kinds is reported.

use std::collections::BTreeSet;

/// Minimum length of text to examine.
const SHORTEST: usize = 5;
/// Maximum context shown.
const SHOWN: usize = 100;

/// Allowed prefixes of absolute Unix paths.
const UNIX_PATHS: &[&str] = &[
    // The dumped program; its replacement folder in the corpus.
    "/app/",
    // The C library and others, at their standard Debian paths.
    "/usr/lib/x86_64-linux-gnu/",
    "/lib/x86_64-linux-gnu/",
    "/lib64/ld-linux-x86-64.so.2",
    "/usr/lib/aarch64-linux-gnu/",
    "/lib/ld-linux-aarch64.so.1",
    // Constants of CoreLib and of the runtime.
    "/etc/localtime",
    "/usr/share/zoneinfo/",
    "/memfd:doublemapper",
    // Files that a process reads about itself; their contents are found by `WORDS`.
    "/proc/self/",
    // Microsoft's build folders: paths of symbol files.
    "/_/src/runtime/artifacts/obj/",
    "/_/artifacts/obj/",
    "/__w/1/s/",
    // The folder of the lab's programs.
    "/src/obj/",
    // The requests of the `http` scenario, to its own server.
    "/path/",
    "/post/",
];

/// Exact paths that are constants in libraries; paths below them are not allowed.
const WHOLE_PATHS: &[&str] = &[
    "/app",
    "/proc",
    "/proc/",
    "/proc/self",
    "/dev/null",
    // Search paths of the dynamic linker.
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    // Search paths of System.Console for terminfo.
    "/etc/terminfo",
    "/lib/terminfo",
    "/usr/share/terminfo",
    "/usr/share/misc/terminfo",
    "/usr/local/share/terminfo",
];

/// Allowed prefixes of Windows paths.
const WINDOWS_PATHS: &[&str] = &[
    // The dumped program.
    "Z:\\app\\",
    "C:\\app\\",
    // System libraries, including Wine's.
    "C:\\windows\\system32\\",
    // Microsoft's build folders: paths of symbol files.
    "D:\\a\\_work\\1\\s\\",
];

/// First folders of paths to find. Two letters between slashes are not a path.
const UNIX_ROOTS: &[&str] = &[
    "app",
    "bin",
    "boot",
    "data",
    "dev",
    "etc",
    "home",
    "host",
    "init",
    "lib",
    "lib64",
    "media",
    "mnt",
    "nix",
    "opt",
    "proc",
    "repo",
    "root",
    "run",
    "sbin",
    "src",
    "srv",
    "sys",
    "tmp",
    "usr",
    "users",
    "Users",
    "var",
    "work",
    "workspace",
    "workspaces",
    "memfd:",
    "_",
    "__w",
];

/// Environment variables about the user or machine. `DOTNET_*` describe how the dump was made and are kept.
const VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "LANGUAGE",
    "USER",
    "LOGNAME",
    "PWD",
    "OLDPWD",
    "SHELL",
    "SHLVL",
    "TERM",
    "TMPDIR",
    "TEMP",
    "TMP",
    "HOSTNAME",
    "DISPLAY",
    "MAIL",
    "EDITOR",
    "VIRTUAL_ENV",
    "COMPUTERNAME",
    "USERNAME",
    "USERDOMAIN",
    "USERPROFILE",
    "LOGONSERVER",
    "APPDATA",
    "LOCALAPPDATA",
    "HOMEPATH",
    "HOMEDRIVE",
    "SESSIONNAME",
    "CLIENTNAME",
    "ALLUSERSPROFILE",
    "SystemRoot",
    "NUMBER_OF_PROCESSORS",
];
const VARIABLE_PREFIXES: &[&str] = &["LC_", "XDG_", "SSH_", "WINE", "PROCESSOR_", "KUBERNETES_", "GITHUB_", "CI_", "AWS_", "AZURE_"];

/// Words in mount tables, control groups, containers and host names.
const WORDS: &[&str] = &[
    "relatime",
    "noatime",
    "nosuid",
    "lowerdir=",
    "upperdir=",
    " tmpfs ",
    " overlay ",
    " ext4 ",
    " 9p ",
    " - cgroup",
    "0::/",
    ":cpu,cpuacct:",
    ".slice",
    ".scope",
    "docker-",
    "/docker/",
    "kubepods",
    "containerd",
    "runsc",
    "fckernel",
    "microvm",
    "nodename",
    "search localdomain",
    "nameserver ",
];

/// Distinct text about the machine in `dump`.
pub fn of_the_machine(dump: &[u8]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut look = |text: &[u8]| {
        if seen.insert(text.to_vec())
            && let Ok(text) = std::str::from_utf8(text)
        {
            look_at(text, &mut found);
        }
    };
    runs(dump, 1, |run| look(run));
    let mut narrow = Vec::new();
    for start in 0..2 {
        runs(dump.get(start..).unwrap_or_default(), 2, |run| {
            narrow.clear();
            narrow.extend(run.chunks_exact(2).map(|unit| unit[0]));
            look(&narrow);
        });
    }
    found
}

fn printable(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte)
}

/// Calls `found` with every run of printable ASCII in `bytes`, in units of `width` bytes.
fn runs(bytes: &[u8], width: usize, mut found: impl FnMut(&[u8])) {
    let text = |unit: &[u8]| printable(unit[0]) && unit[1..].iter().all(|b| *b == 0);
    let mut start = 0;
    let mut length = 0;
    for (i, unit) in bytes.chunks_exact(width).enumerate() {
        if text(unit) {
            if length == 0 {
                start = i;
            }
            length += 1;
        } else {
            if length >= SHORTEST {
                found(&bytes[start * width..(start + length) * width]);
            }
            length = 0;
        }
    }
    if length >= SHORTEST {
        found(&bytes[start * width..(start + length) * width]);
    }
}

fn look_at(text: &str, found: &mut BTreeSet<String>) {
    let mut report = |what: &str, at: usize| {
        let from = at.saturating_sub(16);
        found.insert(format!("{what}: {:?}", &text[from..text.len().min(from + SHOWN)]));
    };
    let bytes = text.as_bytes();
    let word = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    for (i, byte) in bytes.iter().enumerate() {
        let before = i.checked_sub(1).map(|b| bytes[b]);
        let rest = &text[i..];
        match byte {
            b'/' if before.is_none_or(|b| !word(b) && b != b'/') => {
                let root = UNIX_ROOTS.iter().any(|r| rest[1..].strip_prefix(r).is_some_and(|t| t.is_empty() || !word(t.as_bytes()[0])));
                if root && !WHOLE_PATHS.contains(&rest) && !UNIX_PATHS.iter().any(|p| rest.starts_with(p)) {
                    report("a path", i);
                }
            }
            b':' if rest[1..].starts_with(['\\', '/']) && before.is_some_and(|b| b.is_ascii_alphabetic()) => {
                let drive = i - 1;
                let alone = drive.checked_sub(1).is_none_or(|b| !word(bytes[b]));
                let known = WINDOWS_PATHS.iter().any(|p| text[drive..].get(..p.len()).is_some_and(|t| t.eq_ignore_ascii_case(p)));
                let long = rest.len() > 4 && rest[2..].starts_with(|c: char| c.is_ascii_alphanumeric());
                if alone && long && !known {
                    report("a path", drive);
                }
            }
            b'\\' if ["\\Users\\", "\\users\\"].iter().any(|u| rest.strip_prefix(u).is_some_and(|who| !who.starts_with("user"))) => {
                report("a home folder", i);
            }
            b'=' => {
                let start = bytes[..i].iter().rposition(|b| !b.is_ascii_alphanumeric() && *b != b'_').map_or(0, |p| p + 1);
                let name = &text[start..i];
                // `charset=utf-8` and the like are not environment variables; the last unit of an earlier text may precede.
                if VARIABLES.contains(&name) || VARIABLE_PREFIXES.iter().any(|p| name.strip_prefix(p).is_some_and(|n| !n.is_empty())) {
                    report("environment", start);
                }
            }
            _ => {}
        }
    }
    for word in WORDS {
        if let Some(at) = text.find(word) {
            report("mounts, groups, hosts", at);
        }
    }
    addresses(text, &mut report);
}

/// Network addresses, except loopback.
fn addresses(text: &str, report: &mut impl FnMut(&str, usize)) {
    for private in ["10.", "172.", "192.168."] {
        for (at, _) in text.match_indices(private) {
            let token = text[at..].split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
            let parts: Vec<&str> = token.split('.').collect();
            let alone = at.checked_sub(1).is_none_or(|b| !text.as_bytes()[b].is_ascii_alphanumeric() && text.as_bytes()[b] != b'.');
            let address = parts.len() == 4 && parts.iter().all(|p| p.parse::<u8>().is_ok());
            // Versions look the same: 10.0.12.0.
            let version = token.starts_with("10.0.");
            if alone && address && !version {
                report("an address", at);
            }
        }
    }
}

#[test]
fn texts_are_found_and_literals_are_not() {
    let wide = |s: &str| s.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    for text in [
        "HOME=/root",
        "PATH=/usr/bin:/bin",
        "/srv/dumps/dev/x.json",
        "/usr/bin",
        "C:\\Users\\anna\\x",
        "Z:\\tmp",
        "/home/anna/.nuget",
        "WINEPREFIX=q",
        "/dev/vda / ext4 rw,relatime 0 0",
        "0::/system.slice/x.service",
        "192.168.1.7",
        "COMPUTERNAME=VM",
        "LC_ALL=C",
    ] {
        let mut narrow = b"\x01\x02".to_vec();
        narrow.extend(text.as_bytes());
        narrow.push(0);
        assert!(!of_the_machine(&narrow).is_empty(), "{text}");
        // Also at odd offsets.
        for fill in [&b"\x01\x02"[..], b"\x01\x02\x03"] {
            assert!(!of_the_machine(&[fill, &wide(text), &[0, 0]].concat()).is_empty(), "{text} in UTF-16");
        }
    }
    for text in [
        "/app/net10/libcoreclr.so",
        "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "charset=utf-8",
        "DOTNET_gcServer=1",
        "System.Private.CoreLib.dll",
        "C:\\windows\\system32\\ntdll.dll",
        "10.0.1226.42308",
        "127.0.0.1",
        "__StaticArrayInitTypeSize=24",
        "http://127.0.0.1:34841/path/0?q=1",
    ] {
        assert_eq!(of_the_machine(text.as_bytes()), BTreeSet::new());
        assert_eq!(of_the_machine(&wide(text)), BTreeSet::new());
    }
}
