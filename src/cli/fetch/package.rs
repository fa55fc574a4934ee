//! NuGet packages with files of a runtime: downloaded once, and read in place. The paths in an archive never determine
//! where a file is written.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};

use anyhow::Result;
use zip::ZipArchive;
use zip::result::ZipError;

use super::http::{Client, Trouble, is_own};
use super::store::Store;
use crate::base::thousands;
use crate::cli::write::Draft;

/// Maximum size of a package in bytes. Packages of the runtime have 70 MB.
const MAX_PACKAGE: u64 = 1 << 30;
/// Maximum number of files in a package. Packages of the runtime have 400.
const MAX_FILES: usize = 20_000;
/// Maximum compression ratio of a file. Assemblies have two or three.
const MAX_RATIO: u64 = 64;
/// The resource in a feed's index that has the base URL of its packages.
const PACKAGES: &str = "PackageBaseAddress/3.0.0";

/// A package in a feed.
#[derive(Clone, Debug)]
pub(super) struct Package {
    pub(super) feed: String,
    pub(super) id: String,
    pub(super) rid: &'static str,
    pub(super) version: String,
}

/// A downloaded package.
pub(super) type Archive = ZipArchive<File>;
type Opened = Result<(Draft, Archive), String>;

/// Packages of one run, by URL. Each is downloaded once.
#[derive(Default)]
pub(super) struct Packages {
    /// Base URL of the packages of a feed, or the reason why its index is refused, by the URL of the feed.
    feeds: BTreeMap<String, Result<String, String>>,
    known: BTreeMap<String, Option<Opened>>,
}

impl Packages {
    /// Returns the package and its URL.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub(super) fn open(
        &mut self,
        package: &Package,
        client: &Client<'_>,
        store: &Store,
    ) -> Result<(String, Result<&mut Archive, Trouble>)> {
        let base = match self.base(&package.feed, client) {
            Ok(base) => base,
            Err(why) => return Ok((package.feed.clone(), Err(why))),
        };
        let (id, version) = (&package.id, &package.version);
        let url = format!("{}/{id}/{version}/{id}.{version}.nupkg", base.trim_end_matches('/'));
        if !self.known.contains_key(&url) {
            let opened = match client.is_down(&url) {
                true => Err(Trouble::Failed("the server cannot be reached".into())),
                false => download(&url, id, client, store)?,
            };
            let kept = match opened {
                Ok(archive) => Some(Ok(archive)),
                Err(Trouble::Absent) => None,
                Err(Trouble::Refused(why)) => Some(Err(why)),
                Err(other) => return Ok((url, Err(other))),
            };
            self.known.insert(url.clone(), kept);
        }
        let found = match self.known.get_mut(&url) {
            Some(Some(Ok((_, archive)))) => Ok(archive),
            Some(Some(Err(why))) => Err(Trouble::Refused(why.clone())),
            _ => Err(Trouble::Absent),
        };
        Ok((url, found))
    }

    /// Returns the base URL of the packages of a feed: the feed's own URL, or the URL in the feed's index.
    fn base(&mut self, feed: &str, client: &Client<'_>) -> Result<String, Trouble> {
        if !feed.ends_with("/index.json") {
            return Ok(feed.into());
        }
        if let Some(known) = self.feeds.get(feed) {
            return known.clone().map_err(Trouble::Refused);
        }
        let text = client.text(feed)?;
        // A login page or an error page is not kept as the answer of the feed.
        let index: serde_json::Value = serde_json::from_str(&text).map_err(|e| Trouble::Refused(format!("its index is not JSON: {e}")))?;
        let resources = index.get("resources").and_then(|r| r.as_array()).into_iter().flatten();
        let is_it = |r: &&serde_json::Value| r.get("@type").and_then(|t| t.as_str()) == Some(PACKAGES);
        let found = resources.into_iter().find(is_it).and_then(|r| Some(r.get("@id")?.as_str()?.to_string()));
        let found = match found {
            Some(url) => is_own(&url).map(|_| url),
            None => Err("its index names no base URL of packages".into()),
        };
        self.feeds.insert(feed.into(), found.clone());
        found.map_err(Trouble::Refused)
    }
}

/// Downloads and opens a package. The file is removed when it is no longer used.
fn download(url: &str, id: &str, client: &Client<'_>, store: &Store) -> Result<Result<(Draft, Archive), Trouble>> {
    let draft = store.scratch()?;
    let mut to = draft.file();
    if let Err(why) = client.get(url, MAX_PACKAGE, &mut to, id) {
        return Ok(Err(why));
    }
    let file = to.try_clone()?;
    let archive = match ZipArchive::new(file) {
        Ok(archive) => archive,
        Err(ZipError::Io(e)) if e.raw_os_error().is_some() => return Err(e.into()),
        Err(e) => return Ok(Err(Trouble::Refused(format!("it is not a package that can be read: {e}")))),
    };
    Ok(sound(&archive).map(|()| (draft, archive)))
}

/// Rejects a package that no tool would create.
fn sound(archive: &Archive) -> Result<(), Trouble> {
    if archive.len() > MAX_FILES {
        return Err(Trouble::Refused(format!("it has {} files, more than {MAX_FILES}", archive.len())));
    }
    let leads_out = |name: &[u8]| {
        let parts = || name.split(|b| *b == b'/' || *b == b'\\');
        name.starts_with(b"/") || name.starts_with(b"\\") || name.contains(&b':') || name.contains(&0) || parts().any(|p| p == b"..")
    };
    match archive.file_names_raw().find(|name| leads_out(name)) {
        Some(name) => {
            Err(Trouble::Refused(format!("the path of one of its files leads out of the package: {:?}", String::from_utf8_lossy(name))))
        }
        None => Ok(()),
    }
}

/// Copies the file at `path` in a package, at most `most` bytes. `None` if the package does not contain it.
pub(super) fn copy(archive: &mut Archive, path: &str, most: u64, to: &mut &File) -> Result<Option<u64>, Trouble> {
    let refused = |e: ZipError| Trouble::Refused(format!("{path} cannot be unpacked: {e}"));
    let mut entry = match archive.by_name(path) {
        Ok(entry) => entry,
        Err(ZipError::FileNotFound) => return Ok(None),
        Err(e) => return Err(refused(e)),
    };
    let (size, packed) = (entry.size(), entry.compressed_size());
    if size > most {
        return Err(Trouble::Refused(format!("{path} claims {} bytes, more than the limit of {}", thousands(size), thousands(most))));
    }
    if size / MAX_RATIO > packed {
        return Err(Trouble::Refused(format!(
            "{path} claims {} bytes, compressed to {}: no assembly compresses that well",
            thousands(size),
            thousands(packed)
        )));
    }
    let mut piece = vec![0; 64 << 10];
    let mut done = 0u64;
    loop {
        crate::base::cancel::check();
        let read = match entry.read(&mut piece) {
            Ok(0) if done == size => return Ok(Some(done)),
            Ok(0) => {
                return Err(Trouble::Refused(format!(
                    "{path} unpacks to {} bytes, but its header says {}",
                    thousands(done),
                    thousands(size)
                )));
            }
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(refused(ZipError::Io(e))),
        };
        done = done.saturating_add(crate::base::len64(read));
        if done > size {
            return Err(Trouble::Refused(format!("{path} unpacks to more than the {} bytes that its header says", thousands(size))));
        }
        to.write_all(piece.get(..read).unwrap_or_default()).map_err(Trouble::Disk)?;
    }
}
