//! Which command Ctrl-C stops.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::terminal;
use crate::base::Cancel;

/// A second Ctrl-C within this time is the same one: people press it twice.
const AGAIN: Duration = Duration::from_secs(1);

/// The command that runs in a shell that somebody types in.
static RUNNING: Mutex<Shell> = Mutex::new(Shell { open: false, job: None });

struct Shell {
    /// Whether there is such a shell.
    open: bool,
    job: Option<(Cancel, Option<Instant>)>,
}

fn running() -> MutexGuard<'static, Shell> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops the command that runs in a shell. Returns false where the signal ends the process instead: without a shell; while a line is
/// edited, unless it is an interrupt; or if the command goes on long after it was asked to stop.
///
/// Ctrl-C is the editor's while a line is edited, so an interrupt that comes then is late: the command has ended meanwhile, as the
/// program that it printed to was interrupted as well. Seen on a busy machine.
pub(in crate::cli) fn interrupt(interrupted: bool) -> bool {
    let mut shell = running();
    let open = shell.open;
    let Some((cancel, asked)) = &mut shell.job else { return open && (interrupted || !terminal::restore()) };
    cancel.cancel();
    asked.get_or_insert_with(Instant::now).elapsed() < AGAIN
}

/// While it exists, [`interrupt`] stops commands and not the process.
pub(super) struct Open(());

impl Open {
    pub(super) fn new() -> Open {
        running().open = true;
        Open(())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        running().open = false;
    }
}

/// Makes a command the one that [`interrupt`] stops, while it exists.
pub(super) struct Interruptible(());

impl Interruptible {
    pub(super) fn new(cancel: &Cancel) -> Interruptible {
        let mut shell = running();
        if shell.open {
            shell.job = Some((cancel.clone(), None));
        }
        Interruptible(())
    }
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        running().job = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_stops_the_command_that_runs_in_a_shell() {
        assert!(!interrupt(true), "there is no shell");
        let open = Open::new();
        assert!(interrupt(true), "nothing runs, and the shell stays");
        let cancel = Cancel::default();
        let runs = Interruptible::new(&cancel);
        assert!(!cancel.is_cancelled());
        assert_eq!((interrupt(true), interrupt(true)), (true, true));
        assert!(cancel.is_cancelled());
        drop((runs, open));
        assert!(!interrupt(true));
    }
}
