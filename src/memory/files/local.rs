//! Places on this machine that may contain module files although no option names them: `$GCDUMP_MODULES`, installations of .NET, NuGet
//! packages, caches of symbol servers, and gcdump's own cache.
//!
//! These places are not searched: the path of each candidate is computed. A name from a dump becomes a part of a path only if it is
//! [plain](plain_name), and a framework folder is listed only for subfolders whose names are versions.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::identity::{FileId, plain_name};
use crate::base::{Arch, Os, file_name};
use crate::model::FilePlace;

/// The shared frameworks, each with the NuGet package (runtime pack) that contains the same files. The platform suffix of the package is left out.
const FRAMEWORKS: [(&str, &str); 3] = [
    ("Microsoft.NETCore.App", "microsoft.netcore.app.runtime"),
    ("Microsoft.AspNetCore.App", "microsoft.aspnetcore.app.runtime"),
    ("Microsoft.WindowsDesktop.App", "microsoft.windowsdesktop.app.runtime"),
];
/// Maximum number of entries of a framework or package folder that are examined.
const MAX_VERSIONS: usize = 64;
/// Maximum number of places of one kind.
const MAX_PLACES: usize = 64;

/// Places on this machine that may contain module files.
#[derive(Debug, Default)]
pub struct LocalFiles {
    /// Folders that contain module files by name, and module files themselves (`$GCDUMP_MODULES`).
    modules: Vec<PathBuf>,
    /// Installations of .NET: folders that contain `shared`.
    dotnet: Vec<PathBuf>,
    /// Folders of NuGet packages.
    packages: Vec<PathBuf>,
    /// Caches with the layout of a symbol server.
    symbols: Vec<PathBuf>,
    /// gcdump's own cache of files.
    own: Option<PathBuf>,
    /// The versions of each framework in each of `dotnet` and `packages`, listed on first use.
    versions: OnceLock<Vec<Version>>,
}

/// An installed version of a shared framework or of a runtime pack.
#[derive(Debug)]
struct Version {
    place: FilePlace,
    /// The folder of the version. The folder of an installation contains the files. In a package, the files are in `runtimes` below this folder.
    folder: PathBuf,
    version: String,
    /// Runtime identifier of a package, such as `linux-x64`; `None` in an installation.
    rid: Option<String>,
}

impl LocalFiles {
    /// The places that the environment names, and the usual ones. `variable` returns environment variables; `own` is gcdump's own cache.
    ///
    /// `GCDUMP_MODULES=off` disables all places.
    pub fn of_environment(variable: impl Fn(&str) -> Option<OsString>, own: Option<PathBuf>) -> LocalFiles {
        let list = |name: &str| variable(name).map(|list| std::env::split_paths(&list).filter(|p| is_local(p)).take(MAX_PLACES).collect());
        let modules: Vec<PathBuf> = list("GCDUMP_MODULES").unwrap_or_default();
        if variable("GCDUMP_MODULES").is_some_and(|given| given == "off") {
            return LocalFiles::default();
        }
        let folder = |name: &str| variable(name).map(PathBuf::from).filter(|p| is_local(p));
        let home = folder("HOME").or_else(|| folder("USERPROFILE"));
        let in_home = |path: &str| home.as_ref().map(|home| home.join(path));
        let usual: &[&str] = match () {
            () if cfg!(windows) => &[],
            () if cfg!(target_os = "macos") => &["/usr/local/share/dotnet", "/usr/local/share/dotnet/x64"],
            () => &["/usr/share/dotnet", "/usr/lib/dotnet", "/usr/lib64/dotnet", "/usr/local/share/dotnet"],
        };
        let roots = ["DOTNET_ROOT", "DOTNET_ROOT_X64", "DOTNET_ROOT_ARM64", "DOTNET_ROOT_X86", "DOTNET_ROOT(x86)"].map(folder);
        let programs = ["ProgramFiles", "ProgramW6432", "ProgramFiles(x86)"].map(|name| folder(name).map(|p| p.join("dotnet")));
        let dotnet = roots.into_iter().flatten().chain(usual.iter().map(PathBuf::from)).chain(programs.into_iter().flatten());
        let temporary = [folder("TEMP"), folder("TMP")].into_iter().flatten().map(|p| p.join("SymbolCache"));
        LocalFiles {
            modules,
            dotnet: distinct(dotnet.chain(in_home(".dotnet"))),
            packages: distinct(folder("NUGET_PACKAGES").into_iter().chain(in_home(".nuget/packages"))),
            symbols: distinct(in_home(".dotnet/symbolcache").into_iter().chain(temporary)),
            own: own.filter(|p| is_local(p)),
            versions: OnceLock::new(),
        }
    }

    /// Files, as opposed to folders, that `$GCDUMP_MODULES` names. They may be single-file programs.
    pub(super) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.modules.iter().filter(|path| path.is_file())
    }

    /// Paths that may be the file of the module recorded as `path`, whose identity is `id` if known. Paths in `$GCDUMP_MODULES` come first, then
    /// paths in installations, packages and caches. The files need not exist.
    pub(super) fn candidates(&self, path: &str, id: Option<&FileId>, (os, arch): (Os, Arch)) -> Vec<(FilePlace, PathBuf)> {
        let Some(name) = plain_name(file_name(path)) else { return self.by_identity(None, id) };
        let mut out: Vec<(FilePlace, PathBuf)> = Vec::new();
        for given in &self.modules {
            let is_it = given.file_name().is_some_and(|own| own.eq_ignore_ascii_case(name)) && given.is_file();
            out.push((FilePlace::Variable, if is_it { given.clone() } else { given.join(name) }));
        }
        // The other places contain many files with the same name, so a candidate there is useful only if its identity can be checked.
        if id.is_some() {
            out.extend(self.in_frameworks(path, name, (os, arch)));
            out.extend(self.by_identity(Some(name), id));
        }
        out
    }

    /// Paths of the file with the identity `id`: in caches of symbol servers, if its `name` is known, and in gcdump's own cache.
    pub(super) fn by_identity(&self, name: Option<&str>, id: Option<&FileId>) -> Vec<(FilePlace, PathBuf)> {
        let Some(id) = id else { return Vec::new() };
        let keys = name.and_then(plain_name).map_or_else(Vec::new, |name| id.symbol_keys(name));
        let cached = self.symbols.iter().flat_map(|root| keys.iter().map(move |key| root.join(key.iter().collect::<PathBuf>())));
        let own = self.own.iter().map(|own| (FilePlace::Own, own.join(id.cache_name())));
        cached.map(|path| (FilePlace::Symbols, path)).chain(own).collect()
    }

    /// Paths of the file called `name` in installations and packages. If the recorded `path` names the framework's version, other versions are
    /// left out.
    fn in_frameworks(&self, path: &str, name: &str, (os, arch): (Os, Arch)) -> Vec<(FilePlace, PathBuf)> {
        let rids = rids(os, arch);
        let recorded = framework(path);
        let mut out = Vec::new();
        for version in self.versions.get_or_init(|| self.list_versions()) {
            if recorded.is_some_and(|(_, recorded)| recorded != version.version) {
                continue;
            }
            match &version.rid {
                None => out.push((version.place, version.folder.join(name))),
                Some(rid) if rids.contains(&rid.as_str()) => {
                    let Some(target) = target(&version.version) else { continue };
                    let inside = version.folder.join("runtimes").join(rid);
                    out.push((version.place, inside.join("lib").join(target).join(name)));
                    out.push((version.place, inside.join("native").join(name)));
                }
                Some(_) => {}
            }
        }
        out
    }

    /// The installed versions of frameworks and of runtime packs.
    fn list_versions(&self) -> Vec<Version> {
        let mut out = Vec::new();
        for root in &self.dotnet {
            for (framework, _) in FRAMEWORKS {
                let of = |folder, version| Version { place: FilePlace::Installed, folder, version, rid: None };
                out.extend(versions(&root.join("shared").join(framework)).into_iter().map(|(folder, version)| of(folder, version)));
            }
        }
        for root in &self.packages {
            for ((_, package), rid) in FRAMEWORKS.into_iter().flat_map(|f| ALL_RIDS.iter().map(move |rid| (f, *rid))) {
                let of = |folder, version| Version { place: FilePlace::Package, folder, version, rid: Some(rid.into()) };
                let packages = versions(&root.join(format!("{package}.{rid}")));
                out.extend(packages.into_iter().map(|(folder, version)| of(folder, version)));
            }
        }
        out
    }
}

/// Whether a path from the environment is absolute and not a network path. A relative path would depend on the current folder, and opening a
/// network path would contact a server.
fn is_local(path: &Path) -> bool {
    let text = path.as_os_str().as_encoded_bytes();
    path.is_absolute() && !text.starts_with(b"//") && !text.starts_with(br"\\")
}

fn distinct(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = Vec::new();
    for path in paths.take(MAX_PLACES) {
        if !out.contains(&path) {
            out.push(path);
        }
    }
    out
}

/// The entries of `folder` whose names are versions, in descending order of the text, so 9.0.0 comes before 10.0.0.
fn versions(folder: &Path) -> Vec<(PathBuf, String)> {
    let names = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.take(MAX_VERSIONS).filter(|name| is_version(name)).collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    names.into_iter().map(|name| (folder.join(&name), name)).collect()
}

/// Whether `text` is a version of .NET: `10.0.12`, `11.0.0-preview.3.25171.5`.
pub(crate) fn is_version(text: &str) -> bool {
    let (number, rest) = text.split_once('-').map_or((text, None), |(number, rest)| (number, Some(rest)));
    let parts: Vec<&str> = number.split('.').collect();
    let digits = |part: &&str| !part.is_empty() && part.len() <= 9 && part.bytes().all(|b| b.is_ascii_digit());
    let word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    (2..=4).contains(&parts.len()) && parts.iter().all(digits) && text.len() <= 64 && rest.is_none_or(|rest| rest.split('.').all(word))
}

/// The framework and its version in a recorded path: `…/shared/Microsoft.NETCore.App/10.0.12/System.Runtime.dll`.
pub(crate) fn framework(path: &str) -> Option<(&'static str, &str)> {
    let mut parts = path.rsplit(['/', '\\']).skip(1);
    let (version, framework, shared) = (parts.next()?, parts.next()?, parts.next()?);
    let (framework, _) = FRAMEWORKS.into_iter().find(|(name, _)| *name == framework)?;
    (shared == "shared" && is_version(version)).then_some((framework, version))
}

/// The target framework of .NET `version`, such as `net10.0`. A package has its assemblies in a folder with this name.
pub(crate) fn target(version: &str) -> Option<String> {
    let mut parts = version.split('.');
    let (major, minor) = (parts.next()?, parts.next()?);
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    (digits(major) && digits(minor)).then(|| format!("net{major}.{minor}"))
}

/// The packages that contain the frameworks' files, without the platform suffix.
#[cfg_attr(not(feature = "fetch"), allow(dead_code))]
pub(crate) fn framework_packages() -> impl Iterator<Item = &'static str> {
    FRAMEWORKS.into_iter().map(|(_, package)| package)
}

/// Runtime identifiers of the runtime packs that are looked up.
const ALL_RIDS: &[&str] = &[
    "linux-x64",
    "linux-musl-x64",
    "linux-arm64",
    "linux-musl-arm64",
    "linux-arm",
    "linux-musl-arm",
    "win-x64",
    "win-arm64",
    "win-x86",
    "osx-x64",
    "osx-arm64",
];

/// Runtime identifiers that a process with this system and architecture may have been built for.
pub(crate) fn rids(os: Os, arch: Arch) -> Vec<&'static str> {
    let systems: &[&str] = match os {
        Os::Linux => &["linux", "linux-musl"],
        Os::Windows => &["win"],
        Os::Macos => &["osx"],
        Os::Unknown => &[],
    };
    let is_one =
        |rid: &&str| systems.iter().any(|system| rid.strip_prefix(system).is_some_and(|rest| rest.strip_prefix('-') == Some(arch.name())));
    ALL_RIDS.iter().copied().filter(is_one).collect()
}

/// Whether `path`, which a dump of a process on `os` records, may be opened on this machine. `windows` says whether this machine is Windows.
///
/// Only files on a local disk may be opened. A path to another machine (`\\server\share`, `/net/server`) is rejected, because the system would
/// send the user's credentials there. Devices and kernel files (`\\.\pipe`, `/dev`, `/proc`) are rejected too.
pub(crate) fn is_openable(path: &str, os: Os, windows: bool) -> bool {
    if path.contains('\0') || os == Os::Unknown {
        return false;
    }
    if (os == Os::Windows) != windows {
        return false;
    }
    if !windows {
        const OTHER: [&str; 8] = ["dev", "proc", "sys", "net", "afs", "misc", "run", "."];
        let mut parts = path.split('/');
        let first = (parts.next(), parts.next());
        return matches!(first, (Some(""), Some(first)) if !first.is_empty() && !OTHER.contains(&first))
            && !path.split('/').any(|part| part == "..");
    }
    let bytes = path.as_bytes();
    let drive = matches!(bytes, [letter, b':', b'\\', ..] if letter.is_ascii_alphabetic());
    let parts = path.get(3..).unwrap_or_default().split(['\\', '/']);
    drive
        && parts
            .into_iter()
            .all(|part| !part.is_empty() && part != ".." && !part.contains([':', '*', '?', '"', '<', '>', '|']) && !is_device(part))
}

/// Whether a path component is the name of a Windows device, with any extension.
fn is_device(part: &str) -> bool {
    let stem: String = part.split('.').next().unwrap_or_default().trim_end().chars().filter(|c| c.is_ascii()).collect();
    !stem.is_empty() && stem.bytes().all(|b| b.is_ascii_alphanumeric()) && plain_name(&stem).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_servers_and_devices_are_not_opened() {
        for path in ["/app/lab.dll", "/usr/share/dotnet/shared/x.dll", "/networks/a", "/home/u/devices/a"] {
            assert!(is_openable(path, Os::Linux, false), "{path}");
            assert!(!is_openable(path, Os::Linux, true), "a Linux path on Windows: {path}");
        }
        for path in [
            "//server/share/a",
            "/net/server/a",
            "/dev/zero",
            "/proc/self/fd/0",
            "/sys/a",
            "/run/user/1/gvfs/a",
            "a",
            "",
            "/",
            "/a/../dev/zero",
            "/./dev/zero",
            "/a\0b",
        ] {
            assert!(!is_openable(path, Os::Linux, false), "{path}");
        }
        for path in [r"C:\app\lab.dll", r"d:\Program Files\dotnet\x.dll", r"C:\console\a.dll"] {
            assert!(is_openable(path, Os::Windows, true), "{path}");
            assert!(!is_openable(path, Os::Windows, false), "{path}");
        }
        for path in [
            r"\\server\share\a.dll",
            r"\\?\C:\a.dll",
            r"\\.\pipe\a",
            "//server/share/a",
            r"\??\C:\a",
            r"C:a.dll",
            r"C:\a\NUL",
            r"C:\com1.dll",
            r"C:\a:b",
            r"C:\..\a",
            r"C:\\server\a",
            r"C:\nul .dll",
            "/app/a",
            r"\\?\UNC\server\a",
        ] {
            assert!(!is_openable(path, Os::Windows, true), "{path}");
        }
    }

    #[test]
    fn versions_and_frameworks_are_recognized() {
        for version in ["8.0.11", "10.0.0-rc.1.25451.107", "11.0.0-preview.3.25171.5"] {
            assert!(is_version(version), "{version}");
        }
        for text in ["", "8", "8.0.", "..", "8..0", "8.0.1/..", "a.b", "8.0-", "8.0.1-a..b", "8.0.1 "] {
            assert!(!is_version(text), "{text}");
        }
        let path = "/usr/share/dotnet/shared/Microsoft.NETCore.App/8.0.11/System.Runtime.dll";
        assert_eq!(framework(path), Some(("Microsoft.NETCore.App", "8.0.11")));
        assert_eq!(framework(&path.replace('/', "\\")), Some(("Microsoft.NETCore.App", "8.0.11")));
        assert_eq!(framework("/shared/Evil.App/8.0.11/a.dll"), None);
        assert_eq!(target("10.0.12").as_deref(), Some("net10.0"));
        assert_eq!(rids(Os::Linux, Arch::X64), ["linux-x64", "linux-musl-x64"]);
        assert_eq!(rids(Os::Windows, Arch::Arm64), ["win-arm64"]);
    }

    #[test]
    fn the_environment_adds_places_and_disables_all() {
        let of = |pairs: &'static [(&str, &str)]| {
            LocalFiles::of_environment(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()), Some("/c".into()))
        };
        let found = of(&[("GCDUMP_MODULES", "/m:relative://server/x:/n"), ("HOME", "/h"), ("DOTNET_ROOT", "/d"), ("NUGET_PACKAGES", "/p")]);
        if cfg!(unix) {
            assert_eq!(found.modules, [Path::new("/m"), Path::new("/n")]);
            assert_eq!(found.dotnet.first().map(PathBuf::as_path), Some(Path::new("/d")));
            assert_eq!(found.dotnet.last().map(PathBuf::as_path), Some(Path::new("/h/.dotnet")));
            assert_eq!(found.packages, [Path::new("/p"), Path::new("/h/.nuget/packages")]);
            let id = FileId::Stamp { timestamp: 1, size: 2 };
            let keys = found.candidates("/app/A.dll", Some(&id), (Os::Linux, Arch::X64));
            let keys: Vec<(FilePlace, String)> = keys.into_iter().map(|(place, path)| (place, path.display().to_string())).collect();
            assert_eq!(keys[0], (FilePlace::Variable, "/m/A.dll".into()));
            assert!(keys.contains(&(FilePlace::Symbols, "/h/.dotnet/symbolcache/a.dll/000000012/a.dll".into())), "{keys:?}");
            assert_eq!(keys.last(), Some(&(FilePlace::Own, "/c/pe-0000000100000002".into())));
        }
        let off = of(&[("GCDUMP_MODULES", "off"), ("HOME", "/h")]);
        assert!(off.candidates("/app/A.dll", Some(&FileId::Stamp { timestamp: 1, size: 2 }), (Os::Linux, Arch::X64)).is_empty());
    }
}
