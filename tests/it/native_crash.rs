//! Crashes in native code, and suspensions that wait for a thread.

use std::path::{Path, PathBuf};

use crate::common::{ask, needs_shared, run};
use crate::harness::Tested;
use serde_json::Value;

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"))
}

fn fault(path: &Path, command: &str) -> Value {
    let (_, answer) = ask(path, &[command]);
    answer["data"]["fault"].clone()
}

/// In `dumps/corpus/programs/vendor.c`, `run` calls `inner`, which calls itself and then `vendor_write`.
#[test]
fn a_native_thread_that_crashed_has_its_frames() {
    let dump = corpus("net10-wks-vendor-heap");
    let found = fault(&dump, "stacks");
    assert_eq!((&found["signal"], &found["code"]), (&"SIGSEGV".into(), &"SEGV_MAPERR".into()), "{found}");
    assert_eq!((&found["address"], &found["at_fault"], &found["hardware"]), (&"0xdead0000".into(), &true.into(), &true.into()), "{found}");
    assert_eq!((&found["managed_id"], &found["pinvoke"], &found["managed_sp"]), (&Value::Null, &Value::Null, &Value::Null), "{found}");
    let frames = found["frames"].as_array().unwrap();
    let modules: Vec<&str> = frames.iter().map(|f| f["module"].as_str().unwrap()).collect();
    assert_eq!(modules, [["libvendor2.so"; 6].as_slice(), &["libc.so.6"; 2]].concat(), "{found}");
    assert_eq!((&frames[0]["export"], &frames[0]["export_offset"]), (&"vendor_write".into(), &0.into()), "{found}");
    assert_eq!(found["end"], "the outermost frame", "{found}");
    assert_eq!([fault(&dump, "info"), fault(&dump, "threads")], [found.clone(), found]);
    let path = dump.to_str().unwrap();
    let place = "SIGSEGV (SEGV_MAPERR) at address 0xdead0000, in libvendor2.so+0x1139 (nearest export vendor_write)";
    for command in ["info", "threads", "stacks", "analyze"] {
        let out = run(&[command, path]).out;
        assert!(out.contains(place), "{command}: {out}");
    }
    assert!(run(&["stacks", path]).out.starts_with("Native thread (OS "));
    assert!(run(&["analyze", path]).out.contains(" on the native thread "));
    // The fault is that of another thread.
    assert_eq!(ask(&dump, &["stacks", "--thread", "1"]).1["data"]["fault"], Value::Null);
}

/// These programs were ended by a managed exception or by themselves.
#[test]
fn unhandled_exceptions_are_not_native_crashes() {
    for name in ["net10-wks-crash-heap", "net8-wks-crash-mini", "win-net10-wks-crash-full", "net10-wks-failfast-heap"] {
        let found = fault(&corpus(name), "stacks");
        assert_eq!(
            (&found["native"], &found["hardware"], &found["address"]),
            (&false.into(), &false.into(), &Value::Null),
            "{name}: {found}"
        );
        let out = run(&["stacks", corpus(name).to_str().unwrap()]).out;
        assert!(!out.contains("NATIVE"), "{name}: {out}");
    }
    assert_eq!(fault(&corpus("net10-wks-stacks-heap"), "stacks"), Value::Null);
}

#[test]
fn a_fault_below_a_p_invoke_has_its_module_and_managed_frames() -> Tested {
    let dump = needs_shared()?.join("../cases/segv10.dmp.zst");
    let found = fault(&dump, "stacks");
    assert_eq!((&found["address"], &found["managed_id"], &found["at_fault"]), (&"0x10".into(), &1.into(), &true.into()), "{found}");
    assert_eq!((&found["frames"][0]["module"], &found["frames"][0]["offset"]), (&"libc.so.6".into(), &0x16_7ad8.into()), "{found}");
    let (_, stacks) = ask(&dump, &["stacks"]);
    let frames = stacks["data"]["threads"][0]["frames"].as_array().unwrap();
    let main = frames.iter().find(|f| f["kind"] == "managed").unwrap();
    assert_eq!(main["sp"], found["managed_sp"], "{found}");
    Ok(())
}

/// The copy does not have the thread's stack, so the instruction that raised the signal cannot be determined from the running handler.
#[test]
fn the_handler_of_a_signal_is_not_shown_as_its_origin() -> Tested {
    let dump = needs_shared()?.join("../cases/vendor10.dmp.zst");
    let found = fault(&dump, "stacks");
    assert_eq!((&found["address"], &found["at_fault"]), (&"0xdead0000".into(), &false.into()), "{found}");
    let out = run(&["analyze", dump.to_str().unwrap()]).out;
    assert!(out.contains("SIGSEGV (SEGV_MAPERR) at address 0xdead0000 on the native thread 16413"), "{out}");
    let out = run(&["stacks", dump.to_str().unwrap()]).out;
    assert!(out.contains("the registers at the fault are not in the dump"), "{out}");
    Ok(())
}

#[test]
fn a_suspension_names_the_threads_that_it_waits_for() -> Tested {
    let dump = needs_shared()?.join("../cases/suspend10.dmp.zst");
    for command in ["info", "threads"] {
        let (_, answer) = ask(&dump, &[command]);
        let suspension = &answer["data"]["suspension"];
        let waits_for = suspension["waits_for"].as_array().unwrap();
        assert_eq!((waits_for.len(), &waits_for[0]["managed_id"], &waits_for[0]["name"]), (1, &4.into(), &"nogc".into()), "{suspension}");
        assert_eq!(suspension["by"], 1, "{suspension}");
    }
    for command in ["info", "threads", "analyze"] {
        let out = run(&[command, dump.to_str().unwrap()]).out;
        assert!(out.contains("under way: it waits for thread 4 \"nogc\""), "{command}: {out}");
    }
    assert_eq!(ask(&corpus("net10-wks-stacks-heap"), &["threads"]).1["data"]["suspension"], Value::Null);
    Ok(())
}

#[test]
fn a_deadlock_of_a_static_constructor_is_named() -> Tested {
    let dump = needs_shared()?.join("../cases/cctorjoin10.dmp.zst");
    let out = run(&["analyze", dump.to_str().unwrap()]).out;
    assert!(out.contains("Deadlock of the static constructor Pub.Boot..cctor, 5 threads: threads 4 and 5 wait for each other"), "{out}");
    Ok(())
}
