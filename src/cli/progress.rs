//! Progress bar on stderr.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::base::Progress;

/// Delay before the bar appears.
const PATIENCE: Duration = Duration::from_secs(1);
/// Template for operations of known size.
const KNOWN: &str = "{msg} [{bar:30}] {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left";
/// Template for operations of unknown size.
const UNKNOWN: &str = "{msg} {spinner} {bytes}, {bytes_per_sec}, {elapsed}";

/// A progress bar that appears only for long operations.
#[derive(Debug)]
pub(super) struct Bar {
    patience: Duration,
    state: Mutex<Option<State>>,
}

impl Default for Bar {
    fn default() -> Bar {
        Bar { patience: PATIENCE, state: Mutex::default() }
    }
}

#[derive(Debug)]
struct State {
    started: Instant,
    /// The bar. It is hidden at first, but measures the rate from the beginning.
    bar: ProgressBar,
    shown: bool,
}

impl State {
    /// Draws the bar from now on.
    fn show(&mut self) {
        let template = if self.bar.length().is_some() { KNOWN } else { UNKNOWN };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("=> "));
        }
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.shown = true;
    }
}

impl Bar {
    fn state(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress for Bar {
    fn start(&self, what: &str, total: Option<u64>) {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden()).with_message(what.to_string());
        *self.state() = Some(State { started: Instant::now(), bar, shown: false });
    }

    fn advance(&self, done: u64) {
        let mut guard = self.state();
        let Some(state) = guard.as_mut() else { return };
        if !state.shown && state.started.elapsed() >= self.patience {
            state.show();
        }
        state.bar.set_position(done);
    }

    fn finish(&self) {
        let state = self.state().take();
        if let Some(state) = state.filter(|s| s.shown) {
            state.bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_operations_have_a_bar() {
        for (patience, shown) in [(PATIENCE, false), (Duration::ZERO, true)] {
            let bar = Bar { patience, ..Bar::default() };
            bar.start("walking", Some(100));
            bar.advance(50);
            assert_eq!(bar.state().as_ref().map(|s| (s.shown, s.bar.position())), Some((shown, 50)));
            bar.finish();
            assert!(bar.state().is_none());
        }
    }

    #[test]
    fn rate_and_remaining_time_are_shown() {
        assert!(ProgressStyle::with_template(KNOWN).is_ok() && ProgressStyle::with_template(UNKNOWN).is_ok());
        let bar = Bar::default();
        bar.start("walking", Some(1 << 40));
        for done in 1..=4u64 {
            std::thread::sleep(Duration::from_millis(20));
            bar.advance(done << 20);
        }
        // The bar is hidden but already measures the rate.
        let state = bar.state();
        let state = state.as_ref().unwrap();
        assert!(!state.shown && state.bar.per_sec() > 0.0 && state.bar.eta() > Duration::ZERO);
    }
}
