//! Labels of the roots of chains, in changed copies of a dump.

use std::collections::BTreeMap;

use crate::async_chains::{Changed, list};
use crate::common::{ask, number};
use serde_json::Value;

/// Returns kinds and labels of roots, by object.
fn roots(dump: &Changed) -> BTreeMap<u64, (String, String)> {
    let (_, answer) = ask(&dump.path(), &["async"]);
    let text = |v: &Value| v.as_str().unwrap().to_string();
    let root = |c: &Value| (number(&c["root"]["object"]), (text(&c["root"]["kind"]), text(&c["root"]["label"])));
    list(&answer["data"]["chains"]).iter().map(root).collect()
}

/// Returns the object that a field refers to.
fn target(dump: &Changed, object: u64, field: &str) -> u64 {
    let (_, answer) = ask(&dump.path(), &["object", &format!("{object:#x}")]);
    number(&list(&answer["data"]["fields"]).iter().find(|f| f["name"] == field).unwrap()["object"])
}

#[test]
fn a_delay_whose_timer_is_no_longer_set_has_expired() {
    let mut dump = Changed::of("net10-wks-asyncmix-heap");
    let delays: Vec<u64> = roots(&dump).into_iter().filter(|(_, (_, l))| l.starts_with("Task.Delay of")).map(|(at, _)| at).collect();
    let timer = target(&dump, delays[1], "_timer");
    dump.refer(delays[0], "_timer", 0);
    dump.set(timer, "_dueTime", &u32::MAX.to_le_bytes());
    // The program's `TimeProvider` may supply an object of another type.
    dump.refer(delays[2], "_timer", delays[2]);
    let found = roots(&dump);
    let of: Vec<&str> = delays.iter().take(3).map(|at| found[at].1.as_str()).collect();
    assert_eq!(of, ["Task.Delay that never ends", "Task.Delay that has expired", "Task.Delay"]);
}

#[test]
fn a_method_whose_continuation_an_object_holds_is_not_abandoned() {
    let mut dump = Changed::of("net10-wks-asyncmix-heap");
    let (_, answer) = ask(&dump.path(), &["async"]);
    let chains = list(&answer["data"]["chains"]);
    let source = chains.iter().find(|c| c["root"]["type"] == "StateLab.CustomAwaitable").map(|c| number(&c["root"]["object"])).unwrap();
    let delays = chains.iter().filter(|c| c["root"]["label"].as_str().unwrap().starts_with("Task.Delay of"));
    let mut methods = Vec::new();
    for chain in delays {
        let (delay, method) = (number(&chain["root"]["object"]), number(&chain["frames"][0]["object"]));
        dump.refer(delay, "m_continuationObject", 0);
        dump.refer(method, "StateMachine.<>u__1.m_task", 0);
        methods.push(method);
    }
    let found = roots(&dump);
    // Stale words on stacks may refer to the others.
    let method = methods.into_iter().find(|at| found[at].0 == "abandoned").unwrap();
    assert_eq!(found[&method].1, "nothing can complete it");
    let held = target(&dump, source, "Held");
    dump.refer(method, "m_action", held);
    assert_eq!(roots(&dump)[&method], ("unknown".into(), "its continuation is held by StateLab.CustomAwaitable".into()));
}
