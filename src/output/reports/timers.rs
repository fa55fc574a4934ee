//! The answer of `timers`: timers, registered waits, and callbacks of cancellation.

use crate::analysis::{CancellationModel, RegisteredWait, TimerModel, TimersReport};
use crate::output::Paging;
use crate::output::columns::{Columns, Readers, columns};
use crate::output::plural;
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

fn timer_columns<'r>() -> Columns<'r, TimerModel> {
    columns![
        TimerModel,
        address(object).keep(8),
        id(due_ms).keep(2),
        text(due_utc, 24).whole().keep(3),
        text("due_in_ms", 12, |t| t.due_in_ms.map(|n| n.to_string())).keep(7),
        id(set_ms).only(Readers::Machines),
        id(period_ms).keep(6),
        word(kind, 12),
        names(callback, 80).only(Readers::Machines),
        names("method" = callback, 80).only(Readers::People),
        address(state).keep(3),
        names(state_type, 50).keep(6),
        word(canceled, 8).only(Readers::Machines),
        id(running).only(Readers::Machines),
        text("late", 5, |t| t.late.then_some("late")).only(Readers::People).keep(7),
        word(late, 5).only(Readers::Machines)
    ]
}

fn wait_columns<'r>() -> Columns<'r, RegisteredWait> {
    columns![RegisteredWait, address(object), address(handle), id(timeout_ms), word(repeating, 9), names("method" = callback, 80)]
}

fn cancellation_columns<'r>() -> Columns<'r, CancellationModel> {
    columns![
        CancellationModel,
        address(object),
        count("callbacks" = count),
        text("most", 70, |c| c.callbacks.first().map(|m| format!("{} × {}", m.count, m.callback))).name_lines(2),
        names(type_name, 60)
    ]
}

impl Report for TimersReport {
    fn page(&mut self, to: &mut Paging) {
        self.not_listed = to.whole_list("timers", &mut self.timers, &timer_columns());
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.table(Table::records("timer", &self.timers, timer_columns()).csv(true).shown(!self.timers.is_empty()));
        to.not_listed(self.not_listed, "timer");
        to.titled(
            "Registered waits",
            !self.waits.is_empty(),
            Table::records("wait", &self.waits, wait_columns()).shown(!self.waits.is_empty()),
        );
        to.titled(
            "Cancellation callbacks",
            !self.cancellations.is_empty(),
            Table::records("cancellation", &self.cancellations, cancellation_columns()).shown(!self.cancellations.is_empty()),
        );
        to.gap_if(!(self.timers.is_empty() && self.waits.is_empty() && self.cancellations.is_empty()));
        let all = crate::base::len64(self.timers.len()).saturating_add(self.not_listed.unwrap_or(0));
        if self.late > 0 {
            to.alarm(format!("{} late: due, but not called yet", plural(self.late, "timer")));
        }
        if self.held_up > 0 {
            to.line(format!("{} held up: their queue waits for a thread of the thread pool (gcdump pool)", plural(self.held_up, "timer")));
        }
        to.line(format!(
            "{} active{}, {} not in a queue (never started, fired or disposed of)",
            plural(self.active, "timer"),
            to.within(),
            all.saturating_sub(self.active)
        ));
        if let (Some(latest), Some(_)) = (&self.latest_utc, &self.clock) {
            to.line(format!(
                "DUE IN counts from {latest}, when the last timer was started. Times are wrong if the clock was set after the first timer."
            ));
        }
    }
}
