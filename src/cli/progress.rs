//! Progress bar on stderr.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::base::Progress;

/// Delay before the bar appears.
const PATIENCE: Duration = Duration::from_millis(300);

/// A progress bar that appears only for long operations.
#[derive(Debug, Default)]
pub(super) struct Bar {
    state: Mutex<Option<State>>,
}

#[derive(Debug)]
struct State {
    started: Instant,
    what: String,
    total: Option<u64>,
    bar: Option<ProgressBar>,
}

impl Progress for Bar {
    fn start(&self, what: &str, total: Option<u64>) {
        let state = State { started: Instant::now(), what: what.into(), total, bar: None };
        *self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(state);
    }

    fn advance(&self, done: u64) {
        let mut guard = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(state) = guard.as_mut() else { return };
        if state.bar.is_none() && state.started.elapsed() < PATIENCE {
            return;
        }
        let bar = state.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(state.total, ProgressDrawTarget::stderr());
            let template = match state.total {
                Some(_) => "{msg} [{bar:30}] {bytes}/{total_bytes} {eta}",
                None => "{msg} {spinner} {bytes}",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_message(state.what.clone());
            bar
        });
        bar.set_position(done);
    }

    fn finish(&self) {
        let state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(bar) = state.and_then(|s| s.bar) {
            bar.finish_and_clear();
        }
    }
}
