//! Tests of the rules at their thresholds, on made-up answers.

mod queues;

use super::answers::{Answers, Cached, Received};
use super::damage::title;
use super::places::{Places, ThreadPlace};
use super::triage::late_timers;
use super::{AnalyzeQuery, Thresholds, find};
use crate::analysis::{
    ConnectionPool, DeadlockModel, ExceptionModel, FinalizerThread, FinalizersReport, FragmentationReport, FragmentationTotals, FrameModel,
    FreeSpaceModel, HandleStat, HandleUseStat, HandlesReport, HandlesRows, HeapReport, HeapTotals, InspectReport, InspectionId,
    InspectionModel, InspectionRow, LockKind, LockModel, LockOwner, LocksReport, MemoryKind, MemoryKindModel, MemoryListing, MemoryReport,
    MemoryTotals, PinnedTypeModel, PoolKind, PoolReport, PoolWorker, Problem, ProblemId, ProblemSeverity, RequestDirection, RequestModel,
    RequestState, RequestsReport, TimerKind, TimerModel, TimersReport, WaitEdge, WaitEdgeKind, WaitEvidence, WaitKind, WaitModel,
    WaiterModel,
};
use crate::base::{Addr, Collector};
use crate::model::{CoverageModel, FeatureSource, Generation, HandleKind, HandleUse};

/// The findings of a rule on the answers that `fill` sets.
fn found(id: ProblemId, fill: impl Fn(&Answers<'_>)) -> Vec<Problem> {
    let (found, complete) = found_of_copy(id, fill);
    assert!(complete);
    found
}

/// Like [`found`], and returns whether the answer is complete. It is not if the rule needs native memory, which the dump does not have.
fn found_of_copy(id: ProblemId, fill: impl Fn(&Answers<'_>)) -> (Vec<Problem>, bool) {
    let dump = crate::open("dumps/net10-wks-basics-heap.dmp.zst").unwrap();
    // The graph is left out, since it belongs to the dump and not to the made-up answers.
    let query = AnalyzeQuery { graph: false, ..AnalyzeQuery::default() };
    let (runtime, notes) = (dump.runtime().unwrap(), Collector::new());
    let answers = Answers::new(&runtime, &[], &query, &notes);
    fill(&answers);
    let found = find(id, &answers, answers.thresholds()).unwrap();
    drop(answers);
    (found, notes.into_notes().complete())
}

fn set<T>(cell: &Cached<T>, answer: T) {
    assert!(cell.set(Ok(Received { data: answer, loss: None })).is_ok());
}

/// An exception of a type, with a stack trace of frames with these instruction pointers: `Lab.At1` for 1.
pub(super) fn exception(address: u64, type_name: &str, frames: &[u64]) -> ExceptionModel {
    let frame = |ip: &u64| FrameModel { method: Some(format!("Lab.At{ip}").as_str().into()), ..FrameModel::bare(Addr(*ip), false) };
    ExceptionModel {
        address: Addr(address),
        type_name: Some(type_name.into()),
        method_table: None,
        current: false,
        message: None,
        hresult: None,
        stack: frames.iter().map(frame).collect(),
        inner: None,
        inners: Vec::new(),
        stack_text: None,
        remote_stack_text: None,
    }
}

/// The severity and count of the only finding, if there is one.
fn only(found: &[Problem]) -> Option<(ProblemSeverity, Option<u64>)> {
    assert!(found.len() < 2, "{found:?}");
    found.first().map(|f| (f.severity, f.count))
}

fn lock(owner: Option<LockOwner>, waiters: &[u32]) -> LockModel {
    LockModel {
        object: Addr(0x1000),
        type_name: Some("Lab.Gate".into()),
        kind: LockKind::Monitor,
        owner,
        recursion: None,
        readers: Vec::new(),
        reader_count: None,
        ended_readers: None,
        waiters: waiters.iter().map(|id| WaiterModel { managed_id: Some(*id), evidence: WaitEvidence::Exact }).collect(),
        waiting: None,
        count: None,
        capacity: None,
        name: None,
        sync_block: None,
    }
}

fn wait(id: u32, kind: WaitKind) -> WaitModel {
    WaitModel {
        managed_id: Some(id),
        os_id: None,
        name: None,
        kind,
        object: Some(Addr(0x1000)),
        type_name: None,
        others: Vec::new(),
        evidence: WaitEvidence::Exact,
        timeout_ms: None,
        method: Some("Lab.Program.Go()".into()),
        display: None,
        method_desc: None,
        file: None,
        line: None,
    }
}

fn locks(locks: Vec<LockModel>, waits: Vec<WaitModel>) -> LocksReport {
    LocksReport { locks, not_listed: None, waits, deadlocks: Vec::new(), chains: Vec::new() }
}

fn owner(id: u32, orphaned: impl Into<Option<bool>>) -> Option<LockOwner> {
    Some(LockOwner { managed_id: Some(id), os_id: None, orphaned: orphaned.into() })
}

#[test]
fn orphaned_locks_are_critical_if_threads_wait() {
    let orphaned =
        |waiters: &[u32]| only(&found(ProblemId::OrphanedLock, |a| set(&a.locks, locks(vec![lock(owner(9, true), waiters)], vec![]))));
    assert_eq!(orphaned(&[]), Some((ProblemSeverity::Warning, Some(0))));
    assert_eq!(orphaned(&[2]), Some((ProblemSeverity::Critical, Some(1))));
    assert_eq!(only(&found(ProblemId::OrphanedLock, |a| set(&a.locks, locks(vec![lock(owner(9, false), &[2])], vec![])))), None);
    // The owner was not found, but may be alive.
    assert_eq!(only(&found(ProblemId::OrphanedLock, |a| set(&a.locks, locks(vec![lock(owner(9, None), &[2])], vec![])))), None);
    assert_eq!(only(&found(ProblemId::LockQueue, |a| set(&a.locks, locks(vec![lock(owner(9, true), &[2, 3, 4])], vec![])))), None);
    // Of two readers, one has ended.
    let read = |ended| LockModel {
        kind: LockKind::ReaderWriter,
        readers: owner(5, false).into_iter().collect(),
        reader_count: Some(2),
        ended_readers: ended,
        ..lock(None, &[2, 3, 4])
    };
    let of = |id, ended| found(id, |a| set(&a.locks, locks(vec![read(ended)], vec![])));
    assert_eq!(
        of(ProblemId::OrphanedLock, Some(1))[0].title,
        "the rwlock 0x1000 (Lab.Gate) is held for reading by 1 thread, which has ended; 3 threads wait for it"
    );
    assert!(of(ProblemId::OrphanedLock, Some(0)).is_empty() && of(ProblemId::OrphanedLock, None).is_empty());
    assert_eq!((of(ProblemId::LockQueue, Some(1)).len(), of(ProblemId::LockQueue, None).len()), (0, 1));
}

#[test]
fn a_lock_that_finished_work_has_left_is_orphaned() {
    let place = |is_idle| Places {
        threads: vec![ThreadPlace { managed_id: Some(9), name: None, innermost: None, own: None, place: None, in_method: false, is_idle }],
        crashed: None,
    };
    let of = |id, is_idle, waiters: &[u32]| {
        found(id, |a| {
            set(&a.locks, locks(vec![lock(owner(9, false), waiters)], vec![]));
            set(&a.places, place(is_idle));
        })
    };
    let left = of(ProblemId::OrphanedLock, true, &[2, 3, 4]);
    assert_eq!(only(&left), Some((ProblemSeverity::Critical, Some(3))));
    assert!(left[0].title.contains("held by thread 9, an idle thread of the pool: the work that took it has ended;"), "{}", left[0].title);
    assert!(of(ProblemId::OrphanedLock, true, &[]).is_empty() && of(ProblemId::OrphanedLock, false, &[2]).is_empty());
    let queues = [true, false].map(|is_idle| of(ProblemId::LockQueue, is_idle, &[2, 3, 4]).len());
    assert_eq!(queues, [0, 1]);
}

#[test]
fn a_finalizer_is_stuck_or_slow() {
    let stuck_of = |ready: u64, is_counted: bool, blocked: bool| {
        let thread = Some(FinalizerThread { managed_id: Some(2), os_id: None, address: Addr(0x20) });
        let waits = if blocked { vec![wait(2, WaitKind::Monitor)] } else { vec![wait(3, WaitKind::Monitor)] };
        let found = found(ProblemId::StuckFinalizer, |a| {
            let (heaps, types) = (Vec::new(), Vec::new());
            let report = FinalizersReport {
                registered: 0,
                ready,
                critical: 0,
                heaps,
                thread: thread.clone(),
                types,
                shown: None,
                objects: None,
                objects_shown: None,
                is_counted,
            };
            set(&a.finalizers, report);
            set(&a.locks, locks(Vec::new(), waits.clone()));
        });
        only(&found)
    };
    let stuck = |ready, blocked| stuck_of(ready, true, blocked);
    assert_eq!(stuck_of(0, false, true), Some((ProblemSeverity::Critical, None)));
    assert_eq!((stuck(0, false), stuck(9_999, false)), (None, None));
    assert_eq!(stuck(10_000, false), Some((ProblemSeverity::Warning, Some(10_000))));
    assert_eq!(stuck(0, true), Some((ProblemSeverity::Warning, Some(0))));
    assert_eq!(stuck(1, true), Some((ProblemSeverity::Critical, Some(1))));
}

#[test]
fn a_pool_of_blocked_threads_is_critical() {
    let pool = |starved: bool, blocked: &[bool]| {
        let worker = |blocked: &bool| PoolWorker {
            managed_id: Some(5),
            os_id: None,
            blocked_by: blocked.then(|| "monitor".into()),
            wait: blocked.then_some(WaitKind::Monitor),
            object: None,
            type_name: None,
            method: None,
            display: None,
        };
        let found = found(ProblemId::PoolStarvation, |a| {
            let report = PoolReport {
                kind: PoolKind::Portable,
                min: None,
                max: Some(2),
                working: None,
                existing: None,
                goal: None,
                blocked: None,
                cpu_percent: None,
                pending: 7,
                starved,
                queues: Vec::new(),
                groups: Vec::new(),
                workers: blocked.iter().map(worker).collect(),
            };
            set(&a.pool, report);
        });
        only(&found)
    };
    assert_eq!(pool(false, &[true, true]), None);
    assert_eq!(pool(true, &[true, false]), Some((ProblemSeverity::Warning, Some(7))));
    assert_eq!(pool(true, &[true, true]), Some((ProblemSeverity::Critical, Some(7))));
}

/// A request in progress. `thread` serves it if it is incoming.
fn request(uri: &str, thread: Option<u32>, direction: RequestDirection) -> RequestModel {
    let (method, uri) = (Some("GET".into()), Some(uri.into()));
    RequestModel { method, uri, thread, ..RequestModel::new(direction, Addr(0x5000), RequestState::Processing) }
}

#[test]
fn stuck_threads_are_reported_with_their_requests() {
    let http = |ids: &[u32]| {
        let incoming = |id: &u32| request(&format!("/transfer/{id}"), Some(*id), RequestDirection::Incoming);
        let pool = |n| ConnectionPool { object: Addr(0x6000 + n), server: Some("bank:443".into()), connections: 2, busy: 0, queued: 0 };
        RequestsReport {
            not_listed: None,
            requests: ids.iter().map(incoming).collect(),
            others: 0,
            pools: (0..20u64).map(pool).collect(),
            sockets: Vec::new(),
            ..RequestsReport::default()
        }
    };
    let edge = |from, to| WaitEdge {
        from,
        to,
        object: Addr(0x1000),
        kind: WaitEdgeKind::Holds,
        type_name: Some("Lab.Gate".into()),
        context: None,
        context_type: None,
    };
    let deadlock =
        DeadlockModel { threads: vec![4, 5], edges: vec![edge(4, 5), edge(5, 4)], possible: false, victims: vec![6], stacks: Vec::new() };
    let title = |served: &[u32]| {
        let found = found(ProblemId::Deadlock, |a| {
            set(&a.locks, LocksReport { deadlocks: vec![deadlock.clone()], ..locks(Vec::new(), Vec::new()) });
            set(&a.http, http(served));
        });
        found[0].title.clone()
    };
    let whole =
        "Threads 4 and 5 wait for each other: 4 for Lab.Gate 0x1000 of 5, 5 for Lab.Gate 0x1000 of 4; 1 other thread waits for them";
    assert_eq!(title(&[6]), whole);
    assert_eq!(title(&[4]), format!("{whole}; 1 of them serves a request: GET /transfer/4"));
    assert_eq!(title(&[4, 5, 6]), format!("{whole}; 2 of them serve requests: GET /transfer/4 and GET /transfer/5"));

    let own = WaitEdge { kind: WaitEdgeKind::Context, context: Some(Addr(0x2000)), context_type: Some("Lab.Ui".into()), ..edge(4, 4) };
    let own = DeadlockModel { threads: vec![4], edges: vec![own], victims: Vec::new(), ..deadlock.clone() };
    let title = |possible: bool| {
        let own = DeadlockModel { possible, ..own.clone() };
        let report = LocksReport { deadlocks: vec![own], ..locks(Vec::new(), Vec::new()) };
        found(ProblemId::Deadlock, |a| set(&a.locks, report.clone())).remove(0).title
    };
    assert_eq!(title(false), "Thread 4 waits for itself: 4 for Lab.Gate 0x1000, which waits to run on the Lab.Ui of 4");
    assert!(title(true).starts_with("Thread 4 may wait for itself: 4 for "));

    let pools = found(ProblemId::ConnectionPools, |a| set(&a.http, http(&[])));
    assert_eq!(only(&pools), Some((ProblemSeverity::Warning, Some(20))));
    assert_eq!(
        pools[0].title,
        "20 connection pools for bank:443, with 40 connections: each HttpClient handler makes its own pool; share one handler or HttpClient"
    );
}

#[test]
fn waits_for_tasks_are_reported_from_the_threshold_on() {
    let blocked = |n: u32, kind: WaitKind| {
        let found = found(ProblemId::SyncOverAsync, |a| {
            set(&a.locks, locks(Vec::new(), (0..n).map(|id| wait(100 + id, kind)).collect()));
        });
        only(&found)
    };
    assert_eq!(blocked(9, WaitKind::Task), None);
    assert_eq!(blocked(10, WaitKind::Task), Some((ProblemSeverity::Warning, Some(10))));
    assert_eq!(blocked(10, WaitKind::Sleep), None);
}

fn free(free: u64, allocated: u64, before_pins: u64, skipped: u64) -> FragmentationReport {
    let share = crate::base::share(free, allocated).unwrap();
    FragmentationReport {
        generations: vec![FreeSpaceModel {
            generation: Generation::Gen2,
            heap: None,
            segment: None,
            allocated_bytes: allocated,
            free_count: Some(1),
            free_bytes: Some(free),
            share: Some(share),
            unused_committed_bytes: 0,
            context_bytes: Some(0),
        }],
        segments: None,
        sizes: Vec::new(),
        largest: Vec::new(),
        pinned: vec![PinnedTypeModel {
            type_name: "System.Byte[]".into(),
            method_table: Addr(0x30),
            count: 3,
            bytes: 300,
            free_bytes_before: before_pins,
        }],
        totals: FragmentationTotals {
            allocated_bytes: Some(allocated),
            free_bytes: Some(free),
            share: Some(share),
            pinned_objects: Some(3),
            ..Default::default()
        },
        coverage: CoverageModel { skipped_bytes: skipped, ..Default::default() },
    }
}

#[test]
fn free_space_is_measured_absolutely_and_relatively() {
    const MIB: u64 = 1 << 20;
    let fragmentation = |report: fn() -> FragmentationReport| found(ProblemId::Fragmentation, |a| set(&a.fragmentation, report()));
    assert_eq!(fragmentation(|| free(MIB - 1, MIB, 0, 0)), []);
    assert_eq!(fragmentation(|| free(24 * MIB, 100 * MIB, 0, 0)), []);
    let pinned = fragmentation(|| free(25 * MIB, 100 * MIB, 10 * MIB, 0));
    assert!(pinned[0].title.contains("40.0 % of it before 3 pinned System.Byte[]"), "{}", pinned[0].title);
    let other = fragmentation(|| free(25 * MIB, 100 * MIB, MIB, 0));
    assert!(other[0].title.contains("little of it before pinned objects") && other[0].type_name.is_none(), "{}", other[0].title);
    assert_eq!(title(1, ""), "The heap is corrupt: 1 byte of it is neither objects nor free space");
    assert_eq!(title(0, "; 2 errors, the first: …"), "The heap is corrupt; 2 errors, the first: …");
    let damage = |skipped| found(ProblemId::Damage, |a| set(&a.fragmentation, free(0, MIB, 0, skipped))).first().and_then(|f| f.bytes);
    assert_eq!((damage(0), damage(8)), (None, Some(8)));
}

#[test]
fn handles_and_timers_are_reported_from_the_threshold_on() {
    let handles = |total: u64, own: u64| {
        let report = || HandlesReport {
            total,
            counts: vec![HandleStat { kind: HandleKind::Strong, count: total }],
            uses: vec![HandleUseStat { used_for: HandleUse::SyncBlockLock, count: own }],
            supported: Vec::new(),
            supported_by: FeatureSource::Descriptor,
            tables: 1,
            rows: HandlesRows::Counts,
            shown: None,
        };
        only(&found(ProblemId::Handles, |a| set(&a.handles, report())))
    };
    assert_eq!((handles(9_999, 0), handles(10_000, 0)), (None, Some((ProblemSeverity::Warning, Some(10_000)))));
    assert_eq!((handles(60_009, 60_000), handles(70_000, 60_000)), (None, Some((ProblemSeverity::Warning, Some(10_000)))));
    let timer = |object: u64| TimerModel {
        object: Addr(object),
        due_ms: Some(1),
        due_utc: None,
        due_in_ms: None,
        set_ms: None,
        period_ms: None,
        kind: TimerKind::Timer,
        callback: Some("Lab.Poll.Tick".into()),
        display: None,
        state: None,
        state_type: None,
        canceled: None,
        running: None,
        late: false,
    };
    let timers = |active: u64| {
        found(ProblemId::Timers, |a| {
            let (waits, cancellations) = (Vec::new(), Vec::new());
            set(
                &a.timers,
                TimersReport {
                    late: 0,
                    held_up: 0,
                    active,
                    latest_tick_ms: None,
                    latest_utc: None,
                    clock: None,
                    timers: (0..active).map(timer).collect(),
                    not_listed: None,
                    waits,
                    cancellations,
                },
            );
        })
    };
    assert_eq!(timers(999), []);
    assert_eq!(timers(1_000)[0].title, "1,000 timers are active, 1,000 of them for Lab.Poll.Tick");
}

#[test]
fn the_line_about_late_timers_has_the_longest_delay() {
    let timer = |delay: i64| TimerModel {
        object: Addr(0x1000),
        due_ms: Some(1),
        due_utc: None,
        due_in_ms: Some(-delay),
        set_ms: None,
        period_ms: None,
        kind: TimerKind::Timer,
        callback: None,
        display: None,
        state: None,
        state_type: None,
        canceled: None,
        running: None,
        late: true,
    };
    let line = |delays: &[i64]| {
        let report = TimersReport {
            late: 0,
            held_up: 0,
            active: 0,
            latest_tick_ms: None,
            latest_utc: None,
            clock: None,
            timers: delays.iter().copied().map(timer).collect(),
            not_listed: None,
            waits: Vec::new(),
            cancellations: Vec::new(),
        };
        let dump = crate::open("dumps/net10-wks-basics-heap.dmp.zst").unwrap();
        let (runtime, query, notes) = (dump.runtime().unwrap(), AnalyzeQuery::default(), Collector::new());
        let answers = Answers::new(&runtime, &[], &query, &notes);
        set(&answers.timers, report);
        late_timers(&answers).map(|(text, _)| text)
    };
    assert_eq!(line(&[999]), None);
    assert_eq!(line(&[1_500]).as_deref(), Some("1 timer is late by 1 s"));
    assert_eq!(line(&[1_500, 95_000, 30_000, 10]).as_deref(), Some("3 timers are late by up to 95 s"));
}

#[test]
fn verbs_agree_with_their_counts() {
    let waste = |count: u64| {
        let found = found(ProblemId::ZeroArrays, |a| {
            set(&a.inspect, inspected(InspectionId::ZeroArrays, Some(1 << 20), row(count, None)));
            let totals = HeapTotals { allocated: 1 << 21, ..HeapTotals::default() };
            let (heaps, allocation_contexts) = (Vec::new(), Vec::new());
            set(&a.generations, HeapReport { heaps, totals, collections: None, map: None, allocation_contexts, carved: None });
        });
        found[0].title.split(':').next().unwrap().to_string()
    };
    assert_eq!([waste(1), waste(2)], ["1 array contains only zeros", "2 arrays contain only zeros"]);
}

fn inspected(id: InspectionId, wasted: Option<u64>, row: InspectionRow) -> InspectReport {
    InspectReport {
        inspections: vec![InspectionModel {
            id,
            rule: "",
            found: row.count,
            wasted_bytes: wasted,
            total: 1,
            rows: vec![row],
            partial: None,
        }],
    }
}

fn row(count: u64, held_here: Option<u64>) -> InspectionRow {
    InspectionRow {
        object: None,
        type_name: Some("System.String".into()),
        count,
        bytes: 1,
        detail: Some("a\nb".into()),
        held_here,
        held: Vec::new(),
    }
}

#[test]
fn a_loss_of_one_inspection_is_not_one_of_the_others() {
    let dump = crate::open("dumps/net10-wks-basics-heap.dmp.zst").unwrap();
    let (query, runtime, notes) = (AnalyzeQuery { graph: false, ..AnalyzeQuery::default() }, dump.runtime().unwrap(), Collector::new());
    let answers = Answers::new(&runtime, &[], &query, &notes);
    let mut report = inspected(InspectionId::EventLeaks, None, row(500, None));
    report.inspections[0].partial = Some("3 delegates were left out".into());
    report.inspections.extend(inspected(InspectionId::Registrations, None, row(500, None)).inspections);
    set(&answers.inspect, report);
    assert!(answers.inspection(InspectionId::Registrations).is_ok());
    assert_eq!(answers.take_loss(), None);
    assert!(answers.inspection(InspectionId::EventLeaks).is_ok());
    assert_eq!(answers.take_loss().as_deref(), Some("3 delegates were left out"));
}

#[test]
fn waste_is_reported_from_a_share_of_the_heap_on() {
    let waste = |wasted: u64, allocated: u64| {
        found(ProblemId::EqualStrings, |a| {
            set(&a.inspect, inspected(InspectionId::EqualStrings, Some(wasted), row(5, None)));
            let totals = HeapTotals { allocated, ..HeapTotals::default() };
            set(
                &a.generations,
                HeapReport { heaps: Vec::new(), totals, collections: None, map: None, allocation_contexts: Vec::new(), carved: None },
            );
        })
    };
    assert_eq!(waste((1 << 20) - 1, 1 << 21), []);
    assert_eq!(waste(1 << 20, 11 << 20), []);
    let found = waste(1 << 20, 1 << 21);
    assert_eq!(
        found[0].title,
        "5 strings are copies of others: 1.0 MiB (50.0 % of the heap); worst: 5 × System.String \"a b\" with 1 byte"
    );
}

#[test]
fn only_targets_that_nothing_else_holds_leak() {
    let events = |held| found(ProblemId::EventLeaks, |a| set(&a.inspect, inspected(InspectionId::EventLeaks, None, row(500, held))));
    assert_eq!(events(Some(99)), []);
    assert_eq!(only(&events(Some(100))), Some((ProblemSeverity::Warning, Some(100))));
    let sources = |n| found(ProblemId::Registrations, |a| set(&a.inspect, inspected(InspectionId::Registrations, None, row(n, None))));
    assert_eq!(sources(Thresholds::default().timers - 1), []);
    assert_eq!(sources(Thresholds::default().timers).len(), 1);
}

fn memory(kinds: &[(MemoryKind, u64)]) -> MemoryReport {
    let kind = |(kind, bytes): &(MemoryKind, u64)| MemoryKindModel {
        kind: *kind,
        generation: None,
        loader_heap: None,
        ranges: 3,
        bytes: *bytes,
        accessible_bytes: *bytes,
        captured_bytes: 0,
        zero_bytes: None,
        share: 0.0,
        unlisted_bytes: 0,
    };
    MemoryReport {
        listing: MemoryListing::All,
        runtime_error: None,
        kinds: kinds.iter().map(kind).collect(),
        unexplained: Vec::new(),
        malloc: None,
        ranges: None,
        totals: MemoryTotals::default(),
    }
}

#[test]
fn free_regions_and_native_memory_must_be_large_and_the_majority() {
    const MB: u64 = 1 << 20;
    let of =
        |id: ProblemId, kinds: &[(MemoryKind, u64)]| found_of_copy(id, |a| set(&a.memory, memory(kinds))).0.first().and_then(|f| f.bytes);
    let free = |free: u64, used: u64| of(ProblemId::FreeRegions, &[(MemoryKind::GcFree, free), (MemoryKind::GcHeap, used)]);
    assert_eq!(free(32 * MB - 1, 0), None);
    assert_eq!(free(32 * MB, 8 * MB), Some(32 * MB));
    assert_eq!(free(32 * MB, 11 * MB), None);
    let native = |anonymous: u64, used: u64| {
        let kinds = [(MemoryKind::Anonymous, anonymous), (MemoryKind::GcHeap, used), (MemoryKind::Stack, 900 * MB)];
        of(ProblemId::NativeMemory, &kinds)
    };
    assert_eq!(native(64 * MB - 1, 0), None);
    assert_eq!(native(64 * MB, 64 * MB), Some(64 * MB));
    assert_eq!(native(64 * MB, 65 * MB), None);
}
