//! Ctrl-C: stops the running command of a shell.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::terminal;
use crate::base::Cancel;

/// A further Ctrl-C within this time is ignored, because people press it twice. A later Ctrl-C ends the process.
const AGAIN: Duration = Duration::from_secs(1);

/// The running command of an interactive shell.
static RUNNING: Mutex<Shell> = Mutex::new(Shell { open: false, job: None });

struct Shell {
    /// Whether an interactive shell is open.
    open: bool,
    job: Option<(Cancel, Option<Instant>)>,
}

fn running() -> MutexGuard<'static, Shell> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops the running command of a shell. `interrupted` is true for Ctrl-C and false for other signals. Returns false if the signal should end the
/// process: there is no shell, another signal arrives while no command is running, or the command is still running [`AGAIN`] after the first signal.
///
/// While a line is edited, the editor handles Ctrl-C, so an interrupt that arrives here is late: the command has already ended, because the interrupt
/// also ended the program to which the command printed. This was observed on a busy machine.
pub(in crate::cli) fn interrupt(interrupted: bool) -> bool {
    let mut shell = running();
    let open = shell.open;
    let Some((cancel, asked)) = &mut shell.job else {
        if !interrupted {
            terminal::restore();
        }
        return open && interrupted;
    };
    cancel.cancel();
    asked.get_or_insert_with(Instant::now).elapsed() < AGAIN
}

/// While this value exists, [`interrupt`] stops commands instead of the process.
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

/// While this value exists, [`interrupt`] stops its command.
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
        assert!(!interrupt(false), "another signal ends the process");
        let cancel = Cancel::default();
        let runs = Interruptible::new(&cancel);
        assert!(!cancel.is_cancelled());
        assert_eq!((interrupt(true), interrupt(true)), (true, true));
        assert!(cancel.is_cancelled());
        drop((runs, open));
        assert!(!interrupt(true));
    }
}
