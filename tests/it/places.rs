//! `where` identifies addresses that other commands print, on the dumps of the repository, and on full ones if available.

use std::ops::ControlFlow;
use std::path::Path;

use crate::common::{cases, known_dumps, sample, walker};
use crate::exact_roots::all_roots;
use gcdump::analysis::{HandlesQuery, HandlesRows, handles, statics, where_is};
use gcdump::analysis::{PlaceKind, WhereReport};
use gcdump::internals::base::Silent;
use gcdump::internals::contract::GlobalValue;
use gcdump::internals::memory::{Image, ImageFormat};
use gcdump::internals::session::StaticsQuery;
use gcdump::model::{HandleKind, RegionListModel, RootKind, Storage};
use gcdump::{Addr, Heap};

const DUMPS: [&str; 6] = [
    "net8-wks-basics-heap",
    "net9-wks-roots-heap",
    "net10-svr-handles-heap",
    "net10-seg-basics-heap",
    "net11shape-wks-threads-heap",
    "win-net10-wks-basics-full",
];

fn heap_of(name: &'static str) -> (&'static str, Heap) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"));
    (name, gcdump::open(file).unwrap().runtime().unwrap().heap().unwrap())
}

fn heaps() -> impl Iterator<Item = (&'static str, Heap)> {
    DUMPS.into_iter().map(heap_of)
}

fn at(heap: &Heap, address: Addr) -> WhereReport {
    where_is(heap, address).data
}

#[test]
fn handles_and_queue_entries() {
    let (mut seen, mut queued) = (0, 0);
    for (name, heap) in heaps() {
        let HandlesRows::Handles { handles: list, .. } = handles(heap.runtime(), &HandlesQuery::default()).unwrap().data.rows else {
            panic!("{name}")
        };
        for kind in HandleKind::ALL {
            for h in list.iter().filter(|h| h.kind == kind).take(3) {
                let found = at(&heap, h.address);
                assert_eq!((found.kind, found.handle_type, found.target), (PlaceKind::Handle, Some(kind), Some(h.object)), "{name} {h:?}");
                assert_eq!(found.target_type.as_deref(), h.object_type.as_deref(), "{name} {h:?}");
                seen += 1;
            }
        }
        let all = all_roots(&heap);
        for root in all.iter().filter(|r| r.kind == RootKind::FinalizerReady).take(2) {
            let found = at(&heap, root.address.unwrap());
            assert_eq!((found.kind, found.target), (PlaceKind::FinalizationQueue, Some(root.object)), "{name} {root:?}");
            queued += 1;
        }
    }
    println!("{seen} handles, {queued} entries of finalization queues");
    assert!(seen > 50);
}

#[test]
fn static_fields() {
    let (mut references, mut primitives, mut of_threads) = (0, 0, 0);
    for (name, heap) in sample(DUMPS, 3).into_iter().map(heap_of) {
        let all = all_roots(&heap);
        for root in all.iter().filter(|r| r.kind == RootKind::Static).step_by(9).take(5) {
            let found = at(&heap, root.address.unwrap());
            let one_name = all.iter().filter(|r| r.kind == RootKind::Static && r.address == root.address).count() == 1;
            assert_eq!((found.kind, found.target), (PlaceKind::Static, Some(root.object)), "{name} {root:?}");
            assert!(!one_name || found.name.as_ref() == Some(&root.label), "{name} {root:?} {found:?}");
            // The address is also a part of the array or box.
            assert!(found.object.is_some() && found.segment.is_some(), "{name} {found:?}");
            references += 1;
        }
        let of_thread = all.iter().filter(|r| r.kind == RootKind::ThreadStatic && !r.label.starts_with("thread statics"));
        for root in of_thread.take(2) {
            let found = at(&heap, root.address.unwrap());
            assert_eq!(
                (found.kind, found.target, found.managed_id),
                (PlaceKind::Static, Some(root.object), root.thread),
                "{name} {root:?}"
            );
            of_threads += 1;
        }
        let list = statics(heap.runtime(), &StaticsQuery::default()).unwrap().data.statics;
        let plain = list.iter().filter(|s| s.storage == Storage::Static && s.field.object.is_none() && s.field.fields.is_empty());
        for s in plain.filter(|s| s.field.address.is_some_and(|a| heap.generation_of(a).is_none())).step_by(9).take(4) {
            let found = at(&heap, s.field.address.unwrap());
            assert_eq!(found.kind, PlaceKind::Static, "{name} {s:?} {found:?}");
            assert!(found.name.unwrap().ends_with(&format!(".{}", s.field.name)), "{name} {s:?}");
            primitives += 1;
        }
    }
    let least = cases(1, 3);
    assert!(references >= 7 * least && primitives >= 3 * least && of_threads >= least, "{references}, {primitives}, {of_threads}");
}

#[test]
fn structures_of_the_gc() {
    let (mut free_regions, mut marks, mut server, mut free) = (0, 0, 0, 0);
    for (name, heap) in heaps() {
        let gc = heap.gc();
        for s in heap.segment_models() {
            let found = at(&heap, s.address);
            assert_eq!((found.kind, found.offset), (PlaceKind::Segment, Some(0)), "{name} {} {found:?}", s.address);
            assert!(found.text.contains(s.generation.name()), "{}", found.text);
        }
        let regions = gc.regions().data;
        let of_lists = regions.iter().filter(|r| !matches!(r.list, RegionListModel::Bookkeeping | RegionListModel::HandleTable));
        for r in of_lists.take(3) {
            assert_eq!(at(&heap, r.address).kind, PlaceKind::Segment, "{name} {r:?}");
            assert_eq!(at(&heap, r.range.start).kind, PlaceKind::Gc, "{name} {r:?}");
            free_regions += 1;
        }
        for id in &gc.facts().heaps {
            if let Some(address) = id.address {
                assert_eq!(at(&heap, address).kind, PlaceKind::GcHeap, "{name} {id:?}");
                server += 1;
            }
            let detail = gc.detail(*id).data;
            let word = heap.memory().ptr_bytes();
            let tables = [(detail.card_table, PlaceKind::CardTable, 32), (detail.mark_array, PlaceKind::MarkArray, 2)];
            for (table, kind, pointers) in tables {
                let Some(table) = table.filter(|t| !t.is_null()) else { continue };
                for s in heap
                    .segment_models()
                    .iter()
                    .filter(|s| s.start < gc.facts().highest.unwrap() && s.start >= gc.facts().lowest.unwrap())
                    .take(2)
                {
                    let found = at(&heap, table.element(s.start.0 / (32 * pointers * word), 4));
                    assert_eq!(found.kind, kind, "{name} {found:?}");
                    let covers = found.covers.unwrap();
                    assert!(covers.contains(s.start) && covers.len() == 32 * pointers * word, "{name} {found:?}");
                    marks += u64::from(kind == PlaceKind::MarkArray);
                }
                // The pointer that `heap --detail` prints is biased: it may be outside of the table, and inside of another one.
                let found = at(&heap, table);
                assert!(found.covers.is_some() || found.kind == kind, "{name} {table} {found:?}");
            }
        }
        let mut first = None;
        walker(heap.runtime()).visit(
            &Silent,
            |_, _| true,
            |o| {
                first = o.ty.is_free.then_some(o.address);
                if o.ty.is_free { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        if let Some(address) = first {
            assert_eq!(at(&heap, address).kind, PlaceKind::Free, "{name} {address}");
            free += 1;
        }
    }
    assert!(free_regions > 0 && marks > 3 && server > 1 && free > 2, "{free_regions} {marks} {server} {free}");
}

#[test]
fn structures_of_the_runtime() {
    let (mut classes, mut modules) = (0, 0);
    for (name, heap) in heaps() {
        for thread in heap.runtime().thread_list().unwrap().iter() {
            let found = at(&heap, thread.address);
            assert_eq!((found.kind, found.managed_id, found.offset), (PlaceKind::Thread, thread.id, Some(0)), "{name} {found:?}");
        }
        let types = heap.stat().unwrap().data.types;
        for mt in types.iter().take(12).map(|t| t.method_table) {
            let found = at(&heap, mt);
            assert_eq!(found.kind, PlaceKind::MethodTable, "{name} {mt} {found:?}");
            if let Some(class) = found.class {
                let class = at(&heap, class);
                // The EEClasses of types that the runtime's globals name are not always in the dump.
                assert!(class.kind == PlaceKind::Class || !class.captured, "{name} {class:?}");
                classes += u64::from(class.captured);
            }
            if let Some(module) = found.module {
                let module = at(&heap, module);
                assert_eq!(module.kind, PlaceKind::RuntimeModule, "{name} {module:?}");
                assert!(module.name.is_some());
                modules += 1;
            }
        }
    }
    assert!(classes > 30 && modules > 30, "{classes} {modules}");
}

#[test]
fn globals_of_the_runtime_have_names_and_sections() {
    let mut named = 0;
    for (name, heap) in heaps() {
        let base = heap.runtime().description().base().unwrap();
        let image = Image::at(heap.memory(), base).unwrap();
        let globals = &heap.runtime().descriptor().globals;
        let of_image = globals.iter().filter_map(|(global, info)| match info.value {
            GlobalValue::Pointer(address) if image.range.contains(address) => Some((global, address)),
            _ => None,
        });
        for (global, address) in of_image.step_by(5).take(6) {
            let found = at(&heap, address);
            assert_eq!(found.kind, PlaceKind::Module, "{name} {global} {found:?}");
            assert!(found.text.contains("the runtime's global "), "{name} {global} {}", found.text);
            // The dumps of the repository do not have the names of PE sections, which no command read when they were made.
            assert!(found.section.is_some() || image.format == ImageFormat::Pe, "{name} {global} {found:?}");
            named += 1;
        }
    }
    assert!(named > 20, "{named}");
}

#[test]
fn exports_are_found_from_addresses_after_them() {
    let wanted =
        ["net8-wks-basics-heap", "net10-wks-basics-full", "net10-wks-basics-heap", "win-net10-wks-basics-full", "win-net8-wks-basics-full"];
    let (dumps, _) = known_dumps(|row| row["name"].as_str().is_some_and(|n| wanted.contains(&n))).unwrap_or_default();
    for dump in &dumps {
        let heap = gcdump::open(&dump.path).unwrap().runtime().unwrap().heap().unwrap();
        let image = Image::at(heap.memory(), heap.runtime().description().base().unwrap()).unwrap();
        for name in ["g_dacTable", "DotNetRuntimeContractDescriptor"] {
            let Some(export) = image.export(heap.memory(), name) else { continue };
            for offset in [0, 4] {
                let found = at(&heap, export.address.plus(offset));
                assert_eq!((found.symbol.as_deref(), found.symbol_offset), (Some(name), Some(offset)), "{} {found:?}", dump.name);
                assert!(found.section.is_some(), "{} {found:?}", dump.name);
            }
        }
    }
    println!("{} dumps", dumps.len());
}

#[test]
fn the_header_of_an_object_is_not_inside_the_object_before() {
    let (_, heap) = heap_of("net10-seg-basics-heap");
    let mut pairs = Vec::new();
    let mut last: Option<(Addr, u64)> = None;
    let _ = walker(heap.runtime()).visit(
        &Silent,
        |_, _| true,
        |object| {
            if let Some((before, size)) = last.replace((object.address, object.size)).filter(|(at, size)| at.plus(*size) == object.address)
            {
                pairs.push((before, size, object.address));
            }
            if pairs.len() < 20 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
    );
    assert!(!pairs.is_empty());
    for (before, size, address) in pairs {
        let report = at(&heap, Addr(address.0 - 8));
        // To the GC, a reference just past the elements of an array belongs to the array.
        assert_eq!((report.object.map(|o| o.address), report.offset), (Some(before), Some(size - 8)));
        assert!(report.text.starts_with("in the header that follows "), "{}", report.text);
        assert!(at(&heap, Addr(address.0 - 16)).text.contains("bytes into ") || size == 16);
    }
}
