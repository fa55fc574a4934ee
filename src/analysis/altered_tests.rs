//! Dumps without some items of other dumps, or with other names or numbers for them: answers stay the same, or are partial.

use std::path::Path;

use crate::analysis::{ModuleKind, ModulesQuery, StacksQuery, modules, stacks};
use crate::base::{Addr, AddrRange, NoteKind};
use crate::dump::{self, DumpFile};
use crate::session::{Dump, OpenOptions};

fn opened(name: &str) -> DumpFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"));
    dump::open(&path, &dump::OpenOptions::default()).unwrap()
}

fn dump_of(file: DumpFile) -> Dump {
    Dump::of(file, &OpenOptions::default())
}

/// A dump that is written from outside a container has the thread ids of the host.
#[test]
fn threads_with_ids_of_another_namespace_have_their_stacks() {
    const OTHER: u32 = 20_000;
    for name in ["net8-wks-deadlock-heap", "net10-wks-deadlock-heap", "net11-wks-deadlock-heap", "net10-wks-wait-kernel"] {
        let file = opened(name);
        let mut renumbered = file.clone();
        renumbered.threads.iter_mut().for_each(|t| t.id += OTHER);
        renumbered.facts.pid = file.facts.pid.map(|pid| pid + OTHER);
        if let Some(crash) = &mut renumbered.crash {
            crash.thread = crash.thread.map(|id| id + OTHER);
        }
        let [own, other] = [file, renumbered].map(|file| stacks(&dump_of(file).runtime().unwrap(), &StacksQuery::default()).unwrap());
        let [ids, complete] = [own.notes.iter(), other.notes.iter()].map(|mut notes| notes.any(|n| n.kind == NoteKind::ThreadIds));
        assert_eq!((ids, complete, own.complete()), (false, true, other.complete()), "{name}");
        let own = own.data.rows.threads();
        assert!(own.iter().any(|t| !t.frames.is_empty()), "{name}");
        for (own, other) in own.iter().zip(other.data.rows.threads()) {
            assert_eq!((own.managed_id, own.os_id.map(|id| id + u64::from(OTHER))), (other.managed_id, other.os_id), "{name}");
            assert_eq!((own.crashed, format!("{:?}", own.frames)), (other.crashed, format!("{:?}", other.frames)), "{name}");
        }
    }
}

/// If one thread has its id, the others do not get those of unrelated threads.
#[test]
fn a_thread_that_the_dump_does_not_have_gets_no_other_id() {
    let mut file = opened("net10-wks-deadlock-heap");
    let ids = |file: &DumpFile| -> Vec<Option<u64>> {
        let answer = stacks(&dump_of(file.clone()).runtime().unwrap(), &StacksQuery::default()).unwrap();
        answer.data.rows.threads().iter().map(|t| t.os_id).collect()
    };
    let before = ids(&file);
    file.threads.retain(|t| Some(u64::from(t.id)) != before[0]);
    assert_eq!(ids(&file), before);
}

/// Without its structures, a module is not taken for a dynamic one.
#[test]
fn modules_without_their_structures_are_not_dynamic() {
    let file = opened("net10-wks-inspect-heap");
    let kinds = |file: &DumpFile| {
        let answer = modules(&dump_of(file.clone()), &ModulesQuery::default()).unwrap();
        let kinds: Vec<(Option<Addr>, ModuleKind)> = answer.modules.iter().map(|m| (m.module, m.kind)).collect();
        (kinds, answer.complete())
    };
    let (before, complete) = kinds(&file);
    assert!(complete);
    let listed: Vec<Addr> = before.iter().filter(|(_, kind)| *kind == ModuleKind::Assembly).filter_map(|(at, _)| *at).collect();
    for module in listed.iter().take(4) {
        let mut file = file.clone();
        file.remove(AddrRange::new(*module, module.plus(0x300)));
        let (after, complete) = kinds(&file);
        assert!(!complete, "{module}");
        let dynamic = |list: &[(Option<Addr>, ModuleKind)]| list.iter().filter(|(_, kind)| *kind == ModuleKind::Dynamic).count();
        assert_eq!(dynamic(&after), dynamic(&before), "{module}");
    }
}

/// The folder of a program may have the version of the program as its name.
#[test]
fn the_version_of_a_program_is_not_that_of_the_runtime() {
    let mut file = opened("net10-wks-deadlock-heap");
    let version = |file: &DumpFile| dump_of(file.clone()).runtime().unwrap().description().version.clone();
    let before = version(&file);
    assert!(before.as_ref().is_some_and(|v| v.starts_with("10.0.")), "{before:?}");
    for module in &mut file.modules {
        module.path = format!("/app/3.2.1/{}", module.file_name());
    }
    assert_eq!(version(&file).as_deref().map(|v| v.split('.').next()), Some(Some("10")), "{before:?}");
}
