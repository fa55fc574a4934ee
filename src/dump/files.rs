//! Opens files for reading. A dump, and each file that belongs to one, must be a regular file: opening a FIFO blocks until something writes
//! to it, and opening a device may have side effects.

use std::fs::{self, File, FileType};
use std::io;
use std::path::Path;

/// Opens the regular file at `path`. Does not block, even if a FIFO replaces the file after the check of its type.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if `path` is not a regular file, or an error of the system.
pub(crate) fn regular(path: &Path) -> io::Result<File> {
    checked(fs::metadata(path)?.file_type())?;
    let file = open(path)?;
    checked(file.metadata()?.file_type())?;
    Ok(file)
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    // With NONBLOCK, opening a FIFO does not block. With NOCTTY, a terminal does not become the controlling terminal of gcdump. Neither flag
    // affects regular files.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

fn checked(kind: FileType) -> io::Result<()> {
    match kind.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {}, not a regular file", name(kind)))),
    }
}

fn name(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "a pipe";
        } else if kind.is_socket() {
            return "a socket";
        }
    }
    if kind.is_dir() { "a folder" } else { "a device" }
}

/// Whether two paths name the same file. Neither file is opened.
///
/// # Errors
/// Errors of the system, for example if a path does not exist.
#[cfg(all(unix, feature = "cli"))]
pub(crate) fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let place = |path: &Path| fs::metadata(path).map(|m| (m.dev(), m.ino()));
    Ok(place(one)? == place(other)?)
}

#[cfg(all(not(unix), feature = "cli"))]
pub(crate) fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    same_file::is_same_file(one, other)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    /// A path that is not a regular file is refused without blocking, and the error names the kind of file.
    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "contents").unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        let _listens = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for (name, kind) in [("pipe", "a pipe"), ("socket", "a socket"), ("", "a folder")] {
            let refused = regular(&at(name)).unwrap_err();
            assert_eq!(refused.to_string(), format!("it is {kind}, not a regular file"));
        }
        assert!(regular(Path::new("/dev/zero")).unwrap_err().to_string().contains("a device"));
        assert_eq!(io::read_to_string(regular(&at("file")).unwrap()).unwrap(), "contents");
        // Simulates a FIFO that replaces the file between the check and the opening.
        assert!(checked(open(&at("pipe")).unwrap().metadata().unwrap().file_type()).is_err());
        assert!(is_same(&at("file"), &at("../").join(folder.path().file_name().unwrap()).join("file")).unwrap());
        assert!(!is_same(&at("file"), &at("pipe")).unwrap());
    }
}
