//! `--pager`: sends output that does not fit the screen to a pager.

use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a pager is running.
static RUNS: AtomicBool = AtomicBool::new(false);

/// Whether a pager is running. The pager handles interrupts, and the process must outlive the pager.
pub fn paging() -> bool {
    RUNS.load(Ordering::Relaxed)
}

/// Returns the system shell set up to run `command`.
#[cfg(unix)]
pub(super) fn system_shell(command: &str) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command);
    shell
}

#[cfg(windows)]
pub(super) fn system_shell(command: &str) -> Command {
    use std::os::windows::process::CommandExt;
    let mut shell = Command::new("cmd");
    // `raw_arg` passes the quotes as typed.
    shell.arg("/C").raw_arg(command);
    shell
}

/// The default pager of the system. Windows comes without `less`.
const PAGER: &str = if cfg!(windows) { "more" } else { "less" };

/// Returns the pager's command line: `asked` if it is not empty, else `GCDUMP_PAGER`, `PAGER`, [`PAGER`].
pub(super) fn command(asked: &str) -> String {
    let set = |name: &str| std::env::var(name).ok().filter(|text| !text.trim().is_empty());
    let named = Some(asked.to_string()).filter(|text| !text.trim().is_empty());
    named.or_else(|| set("GCDUMP_PAGER")).or_else(|| set("PAGER")).unwrap_or_else(|| PAGER.into())
}

/// Writes the output to `screen` if all of it fits, and to the pager otherwise.
pub(super) struct Paged<'s> {
    screen: &'s mut dyn Write,
    command: String,
    /// Lines and columns of the screen.
    size: (usize, usize),
    /// Output held back while it may still fit.
    held: Vec<u8>,
    running: Option<(Child, ChildStdin)>,
}

impl<'s> Paged<'s> {
    pub(super) fn new(screen: &'s mut dyn Write, command: String, size: (usize, usize)) -> Paged<'s> {
        Paged { screen, command, size, held: Vec::new(), running: None }
    }

    /// Whether the held output takes more lines than the screen has besides the prompt.
    fn overflows(&self) -> bool {
        let (height, width) = (self.size.0, self.size.1.max(1));
        // Bytes are counted, because there are at least as many bytes as columns. A long line takes one line per screen width.
        let lines = self.held.split(|b| *b == b'\n').map(|line| line.len().div_ceil(width).max(1));
        lines.fold(0usize, usize::saturating_add) > height
    }

    fn start(&mut self) -> io::Result<()> {
        let mut shell = system_shell(&self.command);
        shell.stdin(Stdio::piped());
        // Options of `less`: show colors, and exit at once if the output fits the screen.
        if std::env::var_os("LESS").is_none() {
            shell.env("LESS", "FRX");
        }
        let mut child = shell.spawn().map_err(|e| io::Error::new(e.kind(), format!("cannot run the pager {:?}: {e}", self.command)))?;
        RUNS.store(true, Ordering::Relaxed);
        let mut input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let written = input.write_all(&std::mem::take(&mut self.held));
        self.running = Some((child, input));
        written
    }

    /// Writes the held output to the screen, or waits until the pager ends.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let Some((mut child, input)) = self.running.take() else {
            self.screen.write_all(&self.held)?;
            return self.screen.flush();
        };
        drop(input);
        let left = child.wait();
        RUNS.store(false, Ordering::Relaxed);
        left.map(drop)
    }
}

impl Write for Paged<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some((_, input)) = &mut self.running {
            return input.write(bytes);
        }
        self.held.extend_from_slice(bytes);
        if self.overflows() {
            self.start()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.running.as_mut().map_or(Ok(()), |(_, input)| input.flush())
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn paged(text: &str, height: usize) -> (String, String) {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("paged");
        let mut screen = Vec::new();
        let mut paged = Paged::new(&mut screen, format!("cat > '{}'", to.display()), (height, 10));
        paged.write_all(text.as_bytes()).unwrap();
        paged.flush().unwrap();
        paged.finish().unwrap();
        (String::from_utf8(screen).unwrap(), std::fs::read_to_string(to).unwrap_or_default())
    }

    #[test]
    fn output_that_fits_is_not_paged() {
        assert_eq!(paged("a\nb\n", 4), ("a\nb\n".into(), String::new()));
        assert_eq!(paged("a\nb\nc\nd\n", 4), (String::new(), "a\nb\nc\nd\n".into()));
        let long = "one line of forty columns, four of the screen's";
        assert_eq!(paged(long, 3), (String::new(), long.into()));
        assert!(!paging());
    }

    #[test]
    fn a_pager_that_is_left_early_breaks_the_pipe() {
        let mut screen = Vec::new();
        let mut paged = Paged::new(&mut screen, "exec true".into(), (2, 10));
        let line = [b'x'; 4096];
        let failed = (0..1000).find_map(|_| paged.write_all(&line).err());
        assert_eq!(failed.map(|e| e.kind()), Some(io::ErrorKind::BrokenPipe));
        paged.finish().unwrap();
    }
}
