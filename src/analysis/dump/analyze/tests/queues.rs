//! Tests of queues at locks.

use super::*;

#[test]
fn queues_have_an_owner_and_threads_that_enter() {
    let queue = |report: fn() -> LocksReport| only(&found(ProblemId::LockQueue, |a| set(&a.locks, report())));
    assert_eq!(queue(|| locks(vec![lock(owner(1, false), &[2, 3])], vec![])), None);
    assert_eq!(queue(|| locks(vec![lock(owner(1, false), &[2, 3, 4])], vec![])), Some((ProblemSeverity::Warning, Some(3))));
    assert_eq!(queue(|| locks(vec![lock(None, &[2, 3, 4])], vec![])), None);
    // Thread 3 sleeps until it is notified.
    assert_eq!(queue(|| locks(vec![lock(owner(1, false), &[2, 3, 4])], vec![wait(3, WaitKind::MonitorWait)])), None);
}

#[test]
fn a_queue_is_described_by_the_holder_that_does_not_wait_in_it() {
    let upgraded =
        || LockModel { kind: LockKind::ReaderWriter, readers: owner(4, false).into_iter().collect(), ..lock(owner(5, false), &[5, 6, 7]) };
    let waits = || vec![wait(4, WaitKind::Sleep), wait(5, WaitKind::Upgrade)];
    let found = found(ProblemId::LockQueue, |a| set(&a.locks, locks(vec![upgraded()], waits())));
    let title = &found[0].title;
    assert!(
        title.contains("held by thread 4, which is itself blocked: sleep") && title.ends_with("; thread 5 holds it too and waits"),
        "{title}"
    );
}

/// The only finding about a lock without an owner, for which `n` threads wait in `method`.
fn unowned(
    lock_of: impl Fn(LockModel) -> LockModel,
    n: u32,
    kind: WaitKind,
    method: Option<&str>,
) -> Option<(ProblemSeverity, Option<u64>)> {
    let ids: Vec<u32> = (0..n).map(|i| 100 + i).collect();
    let waits = || ids.iter().map(|id| WaitModel { method: method.map(Into::into), ..wait(*id, kind) }).collect();
    only(&found(ProblemId::LockQueue, |a| set(&a.locks, locks(vec![lock_of(lock(None, &ids))], waits()))))
}

#[test]
fn a_semaphore_has_a_queue_if_more_threads_wait_than_it_admits() {
    let semaphore = |count, capacity: Option<i64>| move |l| LockModel { kind: LockKind::Semaphore, count, capacity, ..l };
    let of = |count, capacity, n| unowned(semaphore(count, capacity), n, WaitKind::Semaphore, Some("Lab.Go()"));
    assert_eq!(of(Some(0), Some(1), 10), Some((ProblemSeverity::Warning, Some(10))));
    assert_eq!(of(Some(0), Some(3), 40), Some((ProblemSeverity::Warning, Some(40))));
    assert_eq!(of(Some(0), Some(1), 9), None);
    // Workers that wait for work: no limit, or one for as many items as there are workers.
    assert_eq!(of(Some(0), None, 40), None);
    assert_eq!(of(Some(0), Some(20), 20), None);
    // The threads are about to continue, or the count is not in the dump.
    assert_eq!(of(Some(1), Some(1), 20), None);
    assert_eq!(of(None, Some(1), 20), None);
}

#[test]
fn a_full_collection_has_a_queue_of_threads_that_add() {
    let collection = |count, capacity: Option<i64>| move |l| LockModel { kind: LockKind::BlockingCollection, count, capacity, ..l };
    let of = |count, capacity, method| unowned(collection(count, capacity), 12, WaitKind::BlockingCollection, method);
    let add = Some("System.Collections.Concurrent.BlockingCollection<System.__Canon>.TryAddWithNoTimeValidation(T, Int32)");
    assert_eq!(of(Some(50), Some(50), add), Some((ProblemSeverity::Warning, Some(12))));
    assert_eq!(of(Some(50), Some(50), None), Some((ProblemSeverity::Warning, Some(12))));
    // Consumers of a collection that is empty, and of one that is being filled.
    let take = Some("System.Collections.Concurrent.BlockingCollection<System.__Canon>.TryTakeWithNoTimeValidation(T ByRef, Int32)");
    assert_eq!((of(Some(0), Some(50), take), of(Some(50), Some(50), take), of(Some(0), None, take)), (None, None, None));
    assert_eq!((of(None, Some(50), add), of(Some(50), None, add)), (None, None));
}

#[test]
fn an_event_for_which_many_threads_wait_is_an_info() {
    let event = |l| LockModel { kind: LockKind::Event, ..l };
    let of = |n, method| unowned(event, n, WaitKind::Event, method);
    assert_eq!(of(10, Some("Lab.Go()")), Some((ProblemSeverity::Info, Some(10))));
    assert_eq!((of(9, Some("Lab.Go()")), of(10, Some("System.Lab.Go()")), of(10, None)), (None, None, None));
    // Threads that look every second whether they shall end.
    let polls = || (0..10).map(|id| WaitModel { timeout_ms: Some(1000), ..wait(id, WaitKind::Event) }).collect();
    let ids: Vec<u32> = (0..10).collect();
    assert_eq!(only(&found(ProblemId::LockQueue, |a| set(&a.locks, locks(vec![event(lock(None, &ids))], polls())))), None);
}

#[test]
fn a_mutex_with_an_unknown_owner_has_a_queue() {
    let handle = |name: &'static str| move |l| LockModel { kind: LockKind::WaitHandle, type_name: Some(name.into()), ..l };
    let of = |name, n, kind| unowned(handle(name), n, kind, Some("Lab.Go()"));
    assert_eq!(of("System.Threading.Mutex", 3, WaitKind::WaitHandle), Some((ProblemSeverity::Warning, Some(3))));
    assert_eq!(of("System.Threading.Mutex", 2, WaitKind::WaitHandle), None);
    // Threads that wait for one of several handles, and for an event.
    assert_eq!(of("System.Threading.Mutex", 30, WaitKind::WaitHandles), None);
    assert_eq!(of("System.Threading.AutoResetEvent", 30, WaitKind::WaitHandle), None);
}
