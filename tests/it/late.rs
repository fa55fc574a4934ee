//! Late timers, and sources that have completed. The tests of timers change a dump so that a queue of timers waits for a thread of the pool, or so that a timer was started later.

use gcdump::cli::Exit;
use serde_json::Value;

use crate::changed::{Whole, ask};
use crate::common::number;
use crate::harness::{Ignored, Tested};

/// Returns the address and the value of a field.
fn field(whole: &Whole, object: &str, name: &str) -> (u64, Value) {
    let (_, answer, _) = ask(&whole.dump, &format!("object {object}"));
    let fields = answer["fields"].as_array().unwrap();
    let field = fields.iter().find(|f| f["name"] == name).unwrap_or_else(|| panic!("{object} has no {name}: {answer}"));
    (number(&field["address"]), field.clone())
}

#[test]
fn timers_whose_queue_waits_for_a_thread_are_held_up() -> Tested {
    let missing = || Ignored("dumps of pools are not on this machine".into());
    for name in ["net8-wks-pool-heap", "net10-wks-pool-heap", "net11-wks-pool-heap"] {
        let whole = Whole::named(name).ok_or_else(missing)?;
        let (_, before, _) = ask(&whole.dump, "timers");
        assert_eq!((&before["late"], &before["held_up"]), (&0.into(), &0.into()), "{name}: {before}");
        let timers = before["timers"].as_array().unwrap();
        let first = timers[0]["object"].as_str().unwrap();
        let due = timers[0]["due_ms"].as_u64().unwrap();
        let queue = field(&whole, first, "_associatedTimerQueue").1["object"].as_str().unwrap().to_string();
        let at = |name: &str| field(&whole, &queue, name).0;
        // The timer thread sets these fields when it queues the work to the pool.
        let given = [(at("_isTimerScheduled"), 1, 1), (at("_isScheduled"), 0, 1), (at("_scheduledDueTimeMs"), due, 8)];
        let (exit, after, _) = ask(&whole.with(&given), "timers");
        let after_timers = after["timers"].as_array().unwrap();
        let is_late = |t: &&Value| t["late"] == true;
        let late: Vec<&str> = after_timers.iter().filter(is_late).filter_map(|t| t["object"].as_str()).collect();
        assert_eq!((exit, late), (Exit::Ok, vec![first]), "{name}");
        assert_eq!(after["late"], 1, "{name}");
        assert!(after["held_up"].as_u64().is_some_and(|n| n >= 1 && n <= after["active"].as_u64().unwrap()), "{name}: {after}");
        // The pools of these dumps are starved: the finding mentions the late timers.
        let (_, analyzed, _) = ask(&whole.with(&given), "analyze --only pool-starvation");
        let title = analyzed["findings"][0]["title"].as_str().unwrap();
        assert!(title.contains("held up"), "{name}: {title}");
        // A timer that was started three seconds after another one was due.
        let last = timers.iter().rfind(|t| !t["due_ms"].is_null()).unwrap()["object"].as_str().unwrap();
        let started = whole.with(&[(field(&whole, last, "_startTicks").0, due + 3000, 8)]);
        let (_, later, _) = ask(&started, "timers");
        let at_first = later["timers"].as_array().unwrap().iter().find(|t| t["object"] == first).unwrap().clone();
        assert_eq!((&at_first["late"], &at_first["due_in_ms"]), (&true.into(), &(-3000).into()), "{name}");
    }
    Ok(())
}

#[test]
fn programs_without_a_fault_have_no_late_timer() -> Tested {
    let missing = || Ignored("dumps of timers are not on this machine".into());
    for name in ["net10-wks-asyncmix-heap", "net10-wks-http-heap", "web10-hung", "web10-http2"] {
        let whole = Whole::named(name).ok_or_else(missing)?;
        let (_, answer, _) = ask(&whole.dump, "timers");
        assert_eq!((&answer["late"], &answer["held_up"]), (&0.into(), &0.into()), "{name}: {answer}");
    }
    Ok(())
}

#[test]
fn completed_operations_of_channels_are_awaited_by_no_method() -> Tested {
    let whole = Whole::named("web10-hung").ok_or_else(|| Ignored("web10-hung is not on this machine".into()))?;
    let (_, answer, _) = ask(&whole.dump, "async");
    let chains = answer["chains"].as_array().unwrap();
    let of = |text: &str| chains.iter().filter(|c| c["root"]["label"].as_str().unwrap().contains(text)).count();
    // A method has read 28 items, and awaits the next one. The operations of the 28 keep the method as their state.
    assert_eq!((of("WaitingReadAsyncOperation"), of("UnboundedChannel")), (0, 1));
    let (_, operations, _) =
        ask(&whole.dump, "objects --type System.Threading.Channels.WaitingReadAsyncOperation --fields _continuationState");
    assert!(operations["total"].as_u64() >= Some(28), "{operations}");
    Ok(())
}
