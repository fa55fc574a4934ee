//! Downloads module files into gcdump's cache: `gcdump modules --fetch`, the only part of gcdump that opens a connection.
//!
//! A request contains nothing from a dump except the name and identity of a file (symbol servers) or the version of the runtime (NuGet). A file
//! enters the cache only after its identity is verified, under a name of hexadecimal digits.

mod http;
mod package;
mod store;

use std::collections::BTreeSet;
use std::io::{Seek, SeekFrom, Write};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use crate::analysis::{FetchModel, FetchOutcome, ModuleKind, ModuleModel, ModulesReport};
use crate::base::{Shape, file_name};
use crate::clr::modules::{mvid_of, pdb_id_of};
use crate::dump::{Bytes, DumpFacts};
use crate::memory::{FileId, framework, framework_packages, hex, is_version, plain_name, rids, target};
use crate::session::OpenOptions;
use http::{Client, Trouble};
use package::{Package, Packages};
pub(super) use store::Store;

/// Microsoft's public symbol server, which is asked only for Microsoft's own files.
const MICROSOFT: &str = "https://msdl.microsoft.com/download/symbols";
/// The public NuGet feed: the base URL of its packages.
const NUGET: &str = "https://api.nuget.org/v3-flatcontainer";
/// Maximum size of one file in bytes: a single-file program that contains the framework has 200 MB.
const MAX_FILE: u64 = 512 << 20;
/// Maximum number of sources of a kind.
const MAX_SOURCES: usize = 16;

/// Sources of downloads, and limits.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    /// Symbol servers given by the user.
    pub(super) symbols: Vec<String>,
    /// NuGet feeds given by the user.
    pub(super) nuget: Vec<String>,
    /// debuginfod servers.
    pub(super) debuginfod: Vec<String>,
    /// Maximum number of bytes of all files together.
    pub(super) most: u64,
    /// Time limit for each file.
    pub(super) each: Duration,
    /// Whether the portable PDBs of the listed modules are downloaded too.
    pub(super) pdbs: bool,
    /// Whether the files of all modules are downloaded, rather than only the files that analyses need.
    pub(super) all: bool,
}

/// Returns the URLs in an environment variable, separated by spaces, as in `DEBUGINFOD_URLS`.
pub(super) fn addresses(variable: &str) -> Vec<String> {
    let value = std::env::var(variable).unwrap_or_default();
    value.split_whitespace().filter(|url| url.contains("://")).take(MAX_SOURCES).map(ToString::to_string).collect()
}

/// A file to download.
#[derive(Clone, Debug)]
struct Wanted {
    name: String,
    id: Option<FileId>,
    /// Module version id, if the dump has it.
    mvid: Option<String>,
    /// Whether the file belongs to the framework.
    is_framework: bool,
    /// Version of the framework that the file may belong to.
    version: Option<String>,
    /// The only runtime package that may contain the file; `None` if every package may.
    package: Option<&'static str>,
}

impl Wanted {
    fn model(&self, outcome: FetchOutcome, reasons: Vec<String>) -> FetchModel {
        FetchModel { name: self.name.clone(), identity: self.id.as_ref().map(FileId::text), outcome, source: None, bytes: None, reasons }
    }
}

/// Downloads the requested files.
pub(super) struct Fetcher<'f> {
    sources: &'f Sources,
    client: Client<'f>,
    store: &'f Store,
    packages: Packages,
    facts: &'f DumpFacts,
    shape: Shape,
    /// Files that were already tried.
    tried: BTreeSet<String>,
}

impl<'f> Fetcher<'f> {
    /// Creates a fetcher for files of the process that `facts` describe.
    pub(super) fn new(sources: &'f Sources, store: &'f Store, facts: &'f DumpFacts, shape: Shape, options: &'f OpenOptions) -> Fetcher<'f> {
        let client = Client::new(sources.each, sources.most, options.progress.as_deref());
        Fetcher { sources, client, store, packages: Packages::default(), facts, shape, tried: BTreeSet::new() }
    }

    /// Downloads the files that `report` lists as needed and not found, except files already tried. Returns the result for each file.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub(super) fn fetch(&mut self, report: &ModulesReport, runtime: Option<&str>) -> Result<Vec<FetchModel>> {
        let core = report.modules.iter().find(|m| m.name.as_deref().is_some_and(is_runtime)).and_then(|m| m.path.as_deref());
        let folder = core.map(folder_of);
        let images = report
            .modules
            .iter()
            .filter(|m| (m.needed || self.sources.all && m.kind != ModuleKind::Dynamic) && m.file.is_none())
            .map(|m| wanted(m, folder, runtime));
        let pdbs = report.modules.iter().filter(|_| self.sources.pdbs).filter_map(|m| wanted_pdb(m, folder, runtime));
        let list: Vec<Wanted> = images.chain(pdbs).collect();
        let mut out = Vec::new();
        for file in list {
            let key = file.id.as_ref().map_or_else(|| format!("name {}", file.name), FileId::cache_name);
            if self.tried.insert(key) && !file.id.as_ref().is_some_and(|id| self.store.has(id)) {
                out.push(self.one(&file)?);
            }
        }
        Ok(out)
    }

    fn one(&mut self, file: &Wanted) -> Result<FetchModel> {
        let Some(id) = &file.id else {
            let why = "the identity of its file is not in the dump, so that no file can be verified";
            return Ok(file.model(FetchOutcome::NotAsked, vec![why.into()]));
        };
        let Some(name) = plain_name(&file.name) else {
            return Ok(file.model(FetchOutcome::NotAsked, vec!["its name cannot be the name of a file".into()]));
        };
        let mut found = Outcome::default();
        for url in self.urls(file, id, name) {
            if self.client.is_down(&url) {
                continue;
            }
            let draft = self.store.draft(id)?;
            let mut to = draft.file();
            let checked = self.client.get(&url, MAX_FILE, &mut to, name).and_then(|_| check(&draft, file, id, self.shape));
            match checked {
                Ok(bytes) => {
                    self.store.keep(draft, bytes)?;
                    return Ok(FetchModel { source: Some(url), bytes: Some(bytes), ..file.model(FetchOutcome::Fetched, Vec::new()) });
                }
                Err(why) => found.add(&url, why)?,
            }
        }
        for package in self.packages_of(file) {
            match self.try_package(&package, file, id, name, &mut found)? {
                Some(model) => return Ok(model),
                None => continue,
            }
        }
        Ok(found.model(file))
    }

    /// Returns the URLs where a file may be, in the order in which sources are asked.
    fn urls(&self, file: &Wanted, id: &FileId, name: &str) -> Vec<String> {
        let joined = |base: &str, key: &[String; 3]| format!("{}/{}", base.trim_end_matches('/'), key.join("/"));
        let keys = id.symbol_keys(name);
        let mut out: Vec<String> = self.sources.symbols.iter().flat_map(|base| keys.iter().map(|key| joined(base, key))).collect();
        if self.asks_public() && file.is_framework {
            // One key suffices: the keys differ only in case, which Microsoft's server ignores.
            out.extend(keys.first().map(|key| joined(MICROSOFT, key)));
        }
        if let FileId::BuildId(id) = id {
            let debuginfod = self.sources.debuginfod.iter();
            out.extend(debuginfod.map(|base| format!("{}/buildid/{}/executable", base.trim_end_matches('/'), hex(id))));
        }
        out
    }

    /// Whether public sources are asked: only if the user gave no sources.
    fn asks_public(&self) -> bool {
        self.sources.symbols.is_empty() && self.sources.nuget.is_empty()
    }

    /// Returns the packages that may contain a file of the framework.
    fn packages_of(&self, file: &Wanted) -> Vec<Package> {
        let Some(version) = file.version.as_deref().filter(|v| file.is_framework && is_version(v)) else { return Vec::new() };
        let feeds = if self.asks_public() { vec![NUGET.to_string()] } else { self.sources.nuget.clone() };
        let names: Vec<&str> = framework_packages().filter(|name| file.package.is_none_or(|own| own == *name)).collect();
        let rids = rids(self.facts.os, self.facts.arch);
        let of_feed = |feed: &String| {
            let ids = names.iter().flat_map(|name| rids.iter().map(move |rid| (*name, *rid)));
            ids.map(|(name, rid)| Package { feed: feed.clone(), id: format!("{name}.{rid}"), rid, version: version.to_ascii_lowercase() })
                .collect::<Vec<_>>()
        };
        feeds.iter().flat_map(of_feed).collect()
    }

    fn try_package(
        &mut self,
        package: &Package,
        file: &Wanted,
        id: &FileId,
        name: &str,
        found: &mut Outcome,
    ) -> Result<Option<FetchModel>> {
        let (store, shape) = (self.store, self.shape);
        let opened = self.packages.open(package, &self.client, store)?;
        let (url, archive) = match opened {
            (url, Ok(archive)) => (url, archive),
            (url, Err(why)) => {
                found.add(&url, why)?;
                return Ok(None);
            }
        };
        let Some(target) = target(&package.version) else { return Ok(None) };
        let inside = [format!("runtimes/{}/lib/{target}/{name}", package.rid), format!("runtimes/{}/native/{name}", package.rid)];
        let mut refused = false;
        for path in inside {
            let draft = store.draft(id)?;
            let mut to = draft.file();
            let copied = package::copy(archive, &path, MAX_FILE, &mut to);
            let checked = match copied {
                Ok(None) => continue,
                Ok(Some(_)) => check(&draft, file, id, shape),
                Err(why) => Err(why),
            };
            match checked {
                Ok(bytes) => {
                    store.keep(draft, bytes)?;
                    let source = Some(format!("{url}#{path}"));
                    return Ok(Some(FetchModel { source, bytes: Some(bytes), ..file.model(FetchOutcome::Fetched, Vec::new()) }));
                }
                Err(why) => {
                    refused = true;
                    found.add(&format!("{url}#{path}"), why)?;
                }
            }
        }
        if !refused {
            found.add(&url, Trouble::Absent)?;
        }
        Ok(None)
    }
}

/// Checks that the written file is the wanted file. Returns its size.
fn check(draft: &super::write::Draft, file: &Wanted, id: &FileId, shape: Shape) -> Result<u64, Trouble> {
    let disk = |e: std::io::Error| Trouble::Disk(e);
    let mut written = draft.file();
    written.flush().and_then(|()| written.seek(SeekFrom::Start(0))).map_err(disk)?;
    let bytes = Arc::new(Bytes::map_path(draft.path()).map_err(disk)?);
    id.check(&bytes, shape).map_err(Trouble::Refused)?;
    if let FileId::Pdb(wanted) = id {
        match pdb_id_of(&bytes) {
            Some(found) if found == *wanted => {}
            Some(found) => return Err(Trouble::Refused(format!("its id is {}, not {}", hex(&found), hex(wanted)))),
            None => return Err(Trouble::Refused("it is not a portable PDB".into())),
        }
    }
    if let (FileId::Stamp { .. }, Some(wanted)) = (id, &file.mvid) {
        match mvid_of(&bytes).map(|found| crate::analysis::guid(&found)) {
            Some(found) if found == *wanted => {}
            Some(found) => return Err(Trouble::Refused(format!("its module version id is {found}, not {wanted}"))),
            None => return Err(Trouble::Refused("it is not a managed assembly".into())),
        }
    }
    Ok(crate::base::len64(bytes.len()))
}

/// The responses of the sources for one file.
#[derive(Default)]
struct Outcome {
    refused: bool,
    failed: bool,
    asked: bool,
    reasons: Vec<String>,
}

/// Maximum number of reasons kept for a file.
const MAX_REASONS: usize = 32;

impl Outcome {
    /// Adds the reason why a source did not supply the file.
    ///
    /// # Errors
    /// Errors of this machine's disk.
    fn add(&mut self, url: &str, why: Trouble) -> Result<()> {
        self.asked = true;
        let reason = match why {
            Trouble::Absent => format!("{url} does not have it"),
            Trouble::Refused(why) => {
                self.refused = true;
                format!("{url} is refused: {why}")
            }
            Trouble::Failed(why) => {
                self.failed = true;
                format!("{url} failed: {why}")
            }
            Trouble::Disk(e) => return Err(anyhow::Error::new(e).context("writing gcdump's cache of modules")),
        };
        if self.reasons.len() < MAX_REASONS && !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
        Ok(())
    }

    fn model(self, file: &Wanted) -> FetchModel {
        let outcome = match () {
            () if !self.asked => FetchOutcome::NotAsked,
            () if self.refused => FetchOutcome::Refused,
            () if self.failed => FetchOutcome::Failed,
            () => FetchOutcome::NotFound,
        };
        let mut reasons = self.reasons;
        if !self.asked {
            let why = "public sources are asked for files of the framework only; --symbol-server URL names another source";
            reasons.push(if file.is_framework { "no given source has files of this kind".into() } else { why.into() });
        }
        file.model(outcome, reasons)
    }
}

fn wanted(m: &ModuleModel, folder: Option<&str>, runtime: Option<&str>) -> Wanted {
    let stamp = || Some(FileId::Stamp { timestamp: m.timestamp?, size: u32::try_from(m.image_size?).ok()? });
    let build_id = m.build_id.as_deref().and_then(bytes_of).and_then(|id| FileId::of_build_id(&id));
    let name = m.path.as_deref().map(file_name).filter(|n| !n.is_empty()).or(m.name.as_deref()).unwrap_or_default();
    let recorded = m.path.as_deref().and_then(framework);
    let package =
        recorded.and_then(|(name, _)| framework_packages().find(|p| p.strip_suffix(".runtime") == Some(&name.to_ascii_lowercase())));
    Wanted {
        name: name.into(),
        id: build_id.or_else(stamp),
        mvid: m.mvid.clone(),
        is_framework: is_framework(m, folder),
        version: recorded.map(|(_, version)| version).or(runtime).map(Into::into),
        package: package.or_else(|| usual_package(name)),
    }
}

fn wanted_pdb(m: &ModuleModel, folder: Option<&str>, runtime: Option<&str>) -> Option<Wanted> {
    let id = bytes_of(m.pdb_id.as_deref()?)?.try_into().ok()?;
    // Runtime packages do not contain PDBs, so the version is omitted, and no package is tried.
    Some(Wanted { name: m.pdb.clone()?, id: Some(FileId::Pdb(id)), mvid: None, version: None, ..wanted(m, folder, runtime) })
}

/// Parses hexadecimal digits.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.as_bytes().chunks(2).map(pair).collect()
}

fn folder_of(path: &str) -> &str {
    path.strip_suffix(file_name(path)).unwrap_or(path)
}

/// Native libraries of the runtime.
const NATIVE: [&str; 13] = [
    "libcoreclr.so",
    "coreclr.dll",
    "libclrjit.so",
    "clrjit.dll",
    "libclrgc.so",
    "clrgc.dll",
    "libclrgcexp.so",
    "clrgcexp.dll",
    "libhostfxr.so",
    "hostfxr.dll",
    "libhostpolicy.so",
    "hostpolicy.dll",
    "libcoreclr.dylib",
];

fn is_runtime(name: &str) -> bool {
    ["libcoreclr.so", "coreclr.dll", "libcoreclr.dylib"].iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// Whether a module belongs to the framework: it has a framework name, and is in the directory of the runtime or of a shared framework. The name of
/// such a module reveals nothing about the program.
fn is_framework(m: &ModuleModel, folder: Option<&str>) -> bool {
    let Some(path) = m.path.as_deref() else { return false };
    let name = file_name(path);
    let lower = name.to_ascii_lowercase();
    let begins = ["system.", "libsystem.", "microsoft.csharp.", "microsoft.visualbasic.", "microsoft.win32.", "microsoft.aspnetcore."];
    let whole = ["mscorlib.dll", "netstandard.dll", "windowsbase.dll"];
    let named = NATIVE.contains(&lower.as_str()) || whole.contains(&lower.as_str()) || begins.iter().any(|b| lower.starts_with(b));
    let extensions = lower.starts_with("microsoft.extensions.") && framework(path).is_some();
    (named || extensions) && (framework(path).is_some() || folder == Some(folder_of(path)))
}

/// Guesses the package from the name of a file whose path does not contain the framework's name.
fn usual_package(name: &str) -> Option<&'static str> {
    let web = ["microsoft.aspnetcore.", "microsoft.extensions.", "microsoft.jsinterop"];
    let lower = name.to_ascii_lowercase();
    let own = if web.iter().any(|b| lower.starts_with(b)) { "microsoft.aspnetcore.app.runtime" } else { "microsoft.netcore.app.runtime" };
    framework_packages().find(|p| *p == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_are_parsed() {
        assert_eq!(bytes_of("00ff10"), Some(vec![0, 255, 16]));
        assert_eq!(bytes_of("0g"), None);
        assert_eq!(folder_of("/app/a.dll"), "/app/");
        assert_eq!(folder_of(r"C:\app\a.dll"), r"C:\app\");
    }
}
