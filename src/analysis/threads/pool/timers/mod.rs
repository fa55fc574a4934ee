//! Timers, registered waits, and cancellation callbacks.

mod report;

pub use report::*;

use super::PoolType;
use super::describe::Describer;
use crate::analysis::sort::{self, Key};
use crate::analysis::threads::task_names::Names;
use crate::analysis::walk::objects_of;
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Answer, Collector, Count, Missing, Name, NoteKind, len64};
use crate::bcl::Library;
use crate::bcl::tasks::Tasks;
use crate::clr::library::{Classifier, FieldAt, NoSuchField, fields_of, noted};
use crate::clr::values::{TICKS_PER_MILLISECOND, utc, utc_ticks};
use crate::model::{Order, TimerSort};
use crate::session::{Error, Heap};

/// Maximum number of nodes in a list.
const MOST: usize = 1 << 24;
/// Maximum number of timer queues.
const MAX_QUEUES: u64 = 1 << 12;
/// `Timeout.UnsignedInfinite`.
const FOREVER: u32 = u32::MAX;
/// A timer is late if its due time passed at least this many milliseconds ago. Smaller delays are normal: clocks tick coarsely, and machines are
/// busy.
const LATE_MS: u64 = 100;
/// Maximum number of methods listed for a cancellation source.
const MAX_CALLBACKS: usize = 20;
/// Steps of the budget charged for a row, including the text of a delegate.
const STEPS_OF_A_ROW: u64 = 8;
/// Steps of the budget charged for a cancellation callback.
const STEPS_OF_A_CALLBACK: u64 = 4;

fields_of! {
    struct QueueFields {
        short: req "_shortTimers",
        long: req "_longTimers",
        // These fields exist only if the library has a timer thread (`TimerQueue.Portable.cs`).
        pending: opt "_isTimerScheduled",
        scheduled: opt "_isScheduled",
        turn: opt "_scheduledDueTimeMs",
    }
}

fields_of! {
    struct TimerFields {
        next: req "_next",
        start: req "_startTicks",
        due: req "_dueTime",
        period: req "_period",
        callback: req "_timerCallback",
        state: req "_state",
        canceled: opt "_canceled",
        running: opt "_callbacksRunning",
    }
}

fields_of! {
    /// `ValueTuple` of a tick and a `DateTime`.
    struct ClockFields {
        tick: req "Item1",
        time: req "Item2",
    }
}

fields_of! {
    struct NodeFields {
        thread: req "<Thread>k__BackingField|Thread",
        next: req "<Next>k__BackingField|Next",
    }
}

fields_of! {
    struct WaitThreadFields {
        waits: req "_registeredWaits",
        count: req "_numUserWaits",
    }
}

fields_of! {
    struct WaitFields {
        handle: req "_waitHandle",
        helper: req "_callbackHelper",
        timeout: req "_signedMillisecondsTimeout",
        repeating: req "_repeating",
    }
}

fields_of! {
    struct CallbackFields {
        next: req "Next",
        callback: req "Callback",
        state: opt "CallbackState",
    }
}

/// Returns the timers, registered waits, and cancellation callbacks. Timers are ordered by due time, unless `sort` is given.
///
/// # Errors
/// [`Error::Contract`] if the runtime does not describe types and fields.
pub fn timers(heap: &Heap, sort: Option<Order<TimerSort>>) -> Result<Answer<TimersReport>, Error> {
    let (runtime, namer, notes) = (heap.runtime(), heap.namer(), heap.begin());
    let tasks = Tasks::bind(Library::bind(runtime, &namer, &notes)?, &notes);
    let library = tasks.library();
    let types = Classifier::<PoolType>::bind(library.types());
    let describer = Describer::new(&tasks, Names::new(&tasks, runtime, &namer, &notes));
    if !types.defines(PoolType::Timer) {
        notes.add(Missing::Async, None, "timers: the definition of System.Threading.TimerQueueTimer is not in the dump");
    }
    let mut reader = Reader { library, types: &types, describer, notes: &notes };
    let found = notes.take(objects_of(heap, |mt| {
        let kinds = types.of(mt);
        kinds.is(PoolType::Timer) || kinds.is(PoolType::Cancellation)
    }));
    let kinds = &types;
    let of = |kind| found.iter().copied().filter(move |(_, mt)| kinds.of(*mt).is(kind));
    let timers = reader.timers(of(PoolType::Timer).map(|(timer, _)| timer));
    let (clock, latest) = (reader.clock(), reader.latest(&timers));
    let mut report = TimersReport {
        active: len64(timers.iter().filter(|t| t.model.due_ms.is_some()).count()),
        late: 0,
        held_up: len64(timers.iter().filter(|t| t.turn.is_some() && t.model.due_ms.is_some()).count()),
        latest_tick_ms: latest,
        latest_utc: clock.and_then(|clock| clock.utc(latest?)),
        clock: clock.and_then(|clock| Some(TimerClock { tick_ms: clock.tick, utc: clock.utc(clock.tick)? })),
        timers: Vec::new(),
        not_listed: None,
        waits: reader.waits(),
        cancellations: reader.cancellations(of(PoolType::Cancellation)),
    };
    let until = |found: Found| {
        let t = found.model;
        let is_late = |due: u64| {
            let started = report.latest_tick_ms.is_some_and(|latest| due.saturating_add(LATE_MS) <= latest);
            started || found.turn.is_some_and(|turn| due <= turn)
        };
        let late = t.due_ms.is_some_and(is_late);
        let due_in_ms = t.due_ms.zip(report.latest_tick_ms).and_then(|(due, now)| i64::try_from(i128::from(due) - i128::from(now)).ok());
        TimerModel { due_in_ms, late, due_utc: clock.and_then(|clock| clock.utc(t.due_ms?)), ..t }
    };
    let mut timers: Vec<TimerModel> = timers.into_iter().map(until).collect();
    report.late = len64(timers.iter().filter(|t| t.late).count());
    timers.sort_by_key(|t| (t.due_ms.is_none(), t.due_ms, t.object));
    let (by, direction) = (sort.map(|order| order.by), sort.and_then(|order| order.direction));
    sort::sort(&mut timers, direction, |t| match by? {
        TimerSort::Due => Key::least(t.due_ms),
        TimerSort::Period => Key::most(t.period_ms),
        TimerSort::Kind => Key::text(t.kind.name()),
        TimerSort::Method => Key::text(t.callback.as_deref()),
        TimerSort::StateType => Key::text(t.state_type.as_deref()),
        TimerSort::Object => Key::at(t.object),
    });
    sort::sort(&mut report.waits, direction, |w| match by? {
        TimerSort::Due => Key::least(w.timeout_ms),
        TimerSort::Method => Key::text(w.callback.as_deref()),
        TimerSort::Object => Key::at(w.object),
        TimerSort::Period | TimerSort::Kind | TimerSort::StateType => None,
    });
    sort::sort(&mut report.cancellations, direction, |c| match by? {
        TimerSort::Method => Key::text(c.callbacks.first().map(|m| m.callback.as_str())),
        TimerSort::StateType => Key::text(c.type_name.as_deref()),
        TimerSort::Object => Key::at(c.object),
        TimerSort::Due | TimerSort::Period | TimerSort::Kind => None,
    });
    reader.describer.names.note(&notes);
    tasks.note(&notes);
    namer.note(&notes);
    Ok(notes.finish(TimersReport { timers, ..report }))
}

/// A timer, and the tick for which its queue was scheduled. `turn` is `None` unless the queue still waits for a pool thread.
struct Found {
    model: TimerModel,
    turn: Option<u64>,
}

/// A tick of `Environment.TickCount64`, and the same time in ticks of `DateTime`.
#[derive(Clone, Copy)]
struct Clock {
    tick: u64,
    time: u64,
}

impl Clock {
    /// Converts a tick to UTC.
    fn utc(self, tick: u64) -> Option<String> {
        let since = i128::from(tick) - i128::from(self.tick);
        let time = i128::from(self.time) + since * i128::from(TICKS_PER_MILLISECOND);
        u64::try_from(time).ok().and_then(utc)
    }
}

struct Reader<'r> {
    library: &'r Library,
    types: &'r Classifier<PoolType>,
    describer: Describer<'r>,
    notes: &'r Collector,
}

impl Reader<'_> {
    /// Returns the timers of all queues, then those of `others` that are in no queue.
    fn timers(&mut self, others: impl Iterator<Item = Addr>) -> Vec<Found> {
        let Some(table) = self.types.table(PoolType::Timer) else { return Vec::new() };
        let Some(fields) = noted(TimerFields::bind(self.library.types(), table), "timers", self.notes) else { return Vec::new() };
        let (mut out, mut seen) = (Vec::new(), Set::default());
        for (first, turn) in self.lists() {
            let mut at = Some(first);
            while let Some(timer) = at {
                if seen.len() >= MOST || !seen.insert(timer) {
                    self.notes.add(NoteKind::LimitHit, timer, "a list of timers has a cycle or exceeds its limit");
                    break;
                }
                if !self.library.method_table(timer).is_some_and(|mt| self.types.of(mt).is(PoolType::Timer)) {
                    self.notes.add(NoteKind::Invalid, timer, format!("a list of timers has an entry at {timer} that is not a timer"));
                    break;
                }
                out.push(Found { turn, model: self.timer(timer, &fields, true) });
                at = self.library.reference(timer, fields.next);
            }
        }
        let idle: Vec<Addr> = others.filter(|timer| !seen.contains(timer)).collect();
        self.note_unlinked(&idle, &fields);
        out.extend(idle.into_iter().map(|timer| Found { turn: None, model: self.timer(timer, &fields, false) }));
        out
    }

    /// Adds a note about timers that have a due time but are in no list, because a corrupt list has lost them. When the library removes a timer, it
    /// sets `_dueTime` to infinite and `_startTicks` to 0 (`TimerQueue.DeleteTimer`). Before the constructor has run, both are 0.
    fn note_unlinked(&self, idle: &[Addr], fields: &TimerFields) {
        let library = self.library;
        let due = |timer: &&Addr| {
            let (due, start) = (library.u32(**timer, fields.due), library.u64(**timer, fields.start));
            due.is_some_and(|due| due != FOREVER) && start.is_some_and(|start| start != 0)
        };
        let mut lost = idle.iter().filter(due);
        if let Some(first) = lost.next() {
            let count = lost.count().saturating_add(1);
            let what = format!("{count} timers, the first at {first}, are due but in no list of a queue: a list of timers is cut short");
            self.notes.add(NoteKind::Invalid, *first, what);
        }
    }

    /// Returns the first timer of each list. If the queue of the list still waits for a pool thread, also returns the tick for which the queue was
    /// scheduled.
    fn lists(&self) -> Vec<(Addr, Option<u64>)> {
        let library = self.library;
        let read = || -> Result<Vec<(Addr, Option<u64>)>, NoSuchField> {
            let Some(table) = self.types.table(PoolType::TimerQueue) else { return Ok(Vec::new()) };
            let Some(queues) = library.static_object(table, "<Instances>k__BackingField|s_instances")? else { return Ok(Vec::new()) };
            let fields = QueueFields::bind(library.types(), table)?;
            let queues = library.references(queues, MAX_QUEUES).into_iter().map(|(_, queue)| queue).filter(|q| !q.is_null());
            // The timer thread clears `_isScheduled` when it hands the queue to the pool. The pool thread that then runs the timers clears
            // `_isTimerScheduled`.
            let waits = |q: Addr| {
                let flag = |field: Option<FieldAt>| library.u8(q, field?).map(|n| n != 0);
                (flag(fields.pending)? && !flag(fields.scheduled)?).then_some(())?;
                library.u64(q, fields.turn?)
            };
            let lists = queues.flat_map(|q| [fields.short, fields.long].map(|list| Some((library.reference(q, list)?, waits(q)))));
            Ok(lists.flatten().collect())
        };
        noted(read(), "timers", self.notes).unwrap_or_default()
    }

    fn timer(&mut self, timer: Addr, fields: &TimerFields, queued: bool) -> TimerModel {
        let library = self.library;
        let state = library.reference(timer, fields.state);
        let table = state.and_then(|s| library.method_table(s));
        let kinds = table.map(|mt| self.types.of(mt));
        let is = |kind| kinds.is_some_and(|kinds| kinds.is(kind));
        let kind = match () {
            () if is(PoolType::Delay) => TimerKind::Delay,
            () if is(PoolType::Cancellation) => TimerKind::Cancellation,
            () if is(PoolType::Periodic) => TimerKind::Periodic,
            () => TimerKind::Timer,
        };
        let due = library.u32(timer, fields.due).filter(|due| *due != FOREVER);
        let due_ms = library.u64(timer, fields.start).zip(due).and_then(|(start, due)| start.checked_add(u64::from(due)));
        let period = library.u32(timer, fields.period).filter(|period| *period != FOREVER && *period != 0);
        let callback = library.reference(timer, fields.callback).and_then(|callback| self.describer.delegate(callback));
        TimerModel {
            object: timer,
            due_ms: due_ms.filter(|_| queued),
            due_utc: None,
            due_in_ms: None,
            set_ms: due.map(u64::from),
            period_ms: period.map(u64::from),
            kind,
            display: callback.as_ref().map(Name::display),
            callback,
            state,
            state_type: table.and_then(|mt| self.describer.type_name(mt)),
            canceled: fields.canceled.and_then(|f| library.u8(timer, f)).map(|n| n != 0),
            running: fields.running.and_then(|f| library.u32(timer, f)),
            late: false,
        }
    }

    /// Returns the pair of tick and time that the library keeps for debuggers.
    fn clock(&self) -> Option<Clock> {
        let (library, table) = (self.library, self.types.table(PoolType::TimerQueue)?);
        // Some versions of the library do not have this field.
        let at = library.static_at(table, "s_tickCountToTimeMap").ok()??;
        // Structures in static fields are boxed.
        let boxed = at.minus(library.types().pointer_bytes())?;
        let fields = ClockFields::bind(library.types(), library.method_table(boxed)?).ok()?;
        Some(Clock { tick: library.u64(boxed, fields.tick)?, time: utc_ticks(library.u64(boxed, fields.time)?)? })
    }

    /// Returns the latest tick at which a timer was started.
    fn latest(&self, timers: &[Found]) -> Option<u64> {
        let table = self.types.table(PoolType::Timer)?;
        let start = self.library.types().field_at(table, "_startTicks").ok()?;
        timers.iter().filter_map(|t| self.library.u64(t.model.object, start)).max().filter(|ticks| *ticks > 0)
    }

    fn waits(&mut self) -> Vec<RegisteredWait> {
        let read = self.read_waits();
        noted(read, "registered waits", self.notes).unwrap_or_default()
    }

    fn read_waits(&mut self) -> Result<Vec<RegisteredWait>, NoSuchField> {
        let library = self.library;
        let types = library.types();
        let mut out = Vec::new();
        let Some(table) = self.types.table(PoolType::Portable) else { return Ok(out) };
        let Some(pool) = library.static_object(table, "ThreadPoolInstance")? else { return Ok(out) };
        let mut at = library.reference(pool, types.field_at(table, "_waitThreadsHead")?);
        let mut seen = Set::default();
        while let Some(node) = at {
            if !seen.insert(node) {
                self.notes.add(NoteKind::LimitHit, node, "the list of waiting threads has a cycle");
                break;
            }
            let Some(mt) = library.method_table(node) else { break };
            let fields = NodeFields::bind(types, mt)?;
            at = library.reference(node, fields.next);
            let Some(thread) = library.reference(node, fields.thread) else { continue };
            let Some(mt) = library.method_table(thread) else { continue };
            let fields = WaitThreadFields::bind(types, mt)?;
            let count = library.u32(thread, fields.count).unwrap_or(0);
            let Some(array) = library.reference(thread, fields.waits) else { continue };
            let list = library.first_references(array, u64::from(count), u64::MAX);
            // Each registered wait becomes a row.
            if !library.afford(len64(list.len()).saturating_mul(STEPS_OF_A_ROW)) {
                break;
            }
            for (_, wait) in list {
                if let Some(mt) = library.method_table(wait) {
                    let fields = WaitFields::bind(types, mt)?;
                    out.push(self.wait(wait, &fields)?);
                }
            }
        }
        Ok(out)
    }

    fn wait(&mut self, wait: Addr, fields: &WaitFields) -> Result<RegisteredWait, NoSuchField> {
        let library = self.library;
        let helper = library.reference(wait, fields.helper);
        let callback = match helper.and_then(|h| Some((h, library.method_table(h)?))) {
            Some((helper, mt)) => {
                let field = library.types().field_at(mt, "_waitOrTimerCallback|_callback")?;
                library.reference(helper, field).and_then(|c| self.describer.delegate(c))
            }
            None => None,
        };
        Ok(RegisteredWait {
            object: wait,
            handle: library.reference(wait, fields.handle),
            timeout_ms: library.i32(wait, fields.timeout).and_then(|n| u64::try_from(n).ok()),
            repeating: library.u8(wait, fields.repeating).map(|n| n != 0),
            display: callback.as_ref().map(Name::display),
            callback,
        })
    }

    fn cancellations(&mut self, sources: impl Iterator<Item = (Addr, Addr)>) -> Vec<CancellationModel> {
        let library = self.library;
        let types = library.types();
        let mut out = Vec::new();
        let Some(table) = self.types.table(PoolType::Cancellation) else { return out };
        let Some(registrations) = noted(types.field_at(table, "_registrations"), "cancellation", self.notes) else { return out };
        let mut nodes: Option<CallbackFields> = None;
        let mut lists: Map<Addr, Result<crate::clr::library::FieldAt, NoSuchField>> = Map::default();
        for (source, mt) in sources {
            let Some(list) = library.reference(source, registrations) else { continue };
            let Some(list_type) = library.method_table(list) else { continue };
            let field = lists.entry(list_type).or_insert_with(|| types.field_at(list_type, "Callbacks")).clone();
            let Some(first) = noted(field, "cancellation", self.notes) else { return out };
            let mut at = library.reference(list, first);
            let (mut seen, mut methods) = (Set::default(), Map::<(Name, Name), u64>::default());
            while let Some(node) = at.filter(|_| library.afford(STEPS_OF_A_CALLBACK)) {
                if seen.len() >= MOST || !seen.insert(node) {
                    self.notes.add(NoteKind::LimitHit, node, "a list of cancellation callbacks has a cycle or exceeds its limit");
                    break;
                }
                let fields = match nodes {
                    Some(known) => known,
                    None => {
                        let Some(mt) = library.method_table(node) else { break };
                        let Some(bound) = noted(CallbackFields::bind(types, mt), "cancellation", self.notes) else { return out };
                        *nodes.insert(bound)
                    }
                };
                // `Register(Action)` stores a method of the library as the callback and the action as its state.
                let state = fields.state.and_then(|field| library.reference(node, field));
                let action = state.filter(|state| self.describer.names.is_delegate(*state));
                let method = action.or_else(|| library.reference(node, fields.callback)).and_then(|c| self.describer.delegate(c));
                let method = method.unwrap_or_else(|| "?".into());
                methods.entry((method.display(), method)).or_default().bump();
                at = library.reference(node, fields.next);
            }
            if !seen.is_empty() {
                let mut callbacks: Vec<CallbackCount> =
                    methods.into_iter().map(|((display, callback), count)| CallbackCount { display, callback, count }).collect();
                callbacks.sort_by(|a, b| (b.count, &a.display).cmp(&(a.count, &b.display)));
                callbacks.truncate(MAX_CALLBACKS);
                let (type_name, count) = (self.describer.type_name(mt), crate::base::len64(seen.len()));
                out.push(CancellationModel { object: source, type_name, count, callbacks });
            }
        }
        out.sort_by_key(|c| (std::cmp::Reverse(c.count), c.object));
        out
    }
}
