//! The terminal while a line is edited.

pub(super) use mode::{Kept, restore};

/// Saves the mode of the terminal before a line is edited, so that it can be restored if the process ends meanwhile.
#[cfg(unix)]
mod mode {
    use std::io::{self, Write};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};

    static MODE: Mutex<Option<Termios>> = Mutex::new(None);

    fn mode() -> MutexGuard<'static, Option<Termios>> {
        MODE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// While this exists, a line is being edited.
    pub(in crate::cli::shell) struct Kept(());

    impl Kept {
        pub(in crate::cli::shell) fn new() -> Kept {
            *mode() = tcgetattr(io::stdin()).ok();
            Kept(())
        }
    }

    impl Drop for Kept {
        fn drop(&mut self) {
            *mode() = None;
        }
    }

    /// Restores the terminal if a line is being edited.
    pub(in crate::cli::shell) fn restore() {
        let Some(mode) = mode().take() else { return };
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &mode);
        // Disables bracketed paste, which the editor enables.
        let _ = io::stderr().write_all(b"\x1b[?2004l\r\n");
    }
}

/// On this system, nothing is saved or restored.
#[cfg(not(unix))]
mod mode {
    pub(in crate::cli::shell) struct Kept(());

    impl Kept {
        pub(in crate::cli::shell) fn new() -> Kept {
            Kept(())
        }
    }

    pub(in crate::cli::shell) fn restore() {}
}
