//! Dumps without the runtime's read-only pages, export tables or descriptor: answers are exact, or report what is missing.

use std::path::Path;

use crate::common::known_dumps;
use crate::harness::Tested;
use gcdump::Dump;
use gcdump::internals::base::AddrRange;
use gcdump::internals::contract::RuntimeError;
use gcdump::internals::dump::{self, DumpFile, OpenOptions};
use gcdump::internals::gc::HandleFilter;
use gcdump::internals::memory::Image;
use gcdump::model::LayoutSource;

fn open(path: &Path) -> DumpFile {
    dump::open(path, &OpenOptions::default()).unwrap()
}

/// Removes `gone` from the captured memory.
pub fn without(dump: &mut DumpFile, gone: &[AddrRange]) {
    gone.iter().for_each(|hole| dump.remove(*hole));
}

/// The read-only parts of the runtime's image; `headers` excludes the first page.
fn read_only_parts(process: &Dump, headers: bool) -> Vec<AddrRange> {
    let image = process.runtime().unwrap().description().site.image.clone().unwrap();
    let mut at = image.base.plus(if headers { 4096 } else { 0 });
    let mut out = Vec::new();
    let mut writable = image.writable.clone();
    writable.sort();
    for w in writable {
        out.push(AddrRange::new(at, w.start.align_down(4096)));
        at = w.end;
    }
    out.push(AddrRange::new(at, image.range.end));
    out
}

/// Segments and handles as comparable text.
fn answers(process: &Dump) -> (Vec<String>, Vec<String>) {
    let runtime = process.runtime().unwrap();
    let gc = runtime.gc().unwrap();
    let segments = gc.segments().iter().map(|s| format!("{} {} {} {}", s.address, s.generation, s.start, s.allocated)).collect();
    let mut handles = Vec::new();
    let _ = gc.walk_handles(&HandleFilter::default(), |h| handles.push(format!("{} {} {} {:?}", h.address, h.kind, h.object, h.secondary)));
    (segments, handles)
}

#[test]
fn the_gc_is_read_without_the_runtimes_read_only_pages() -> Tested {
    let names = ["win-net10-wks-basics-full", "win-net9-wks-basics-full", "win-net8-wks-basics-full", "win-net10-svr-basics-full"];
    let (dumps, lacking) = known_dumps(|r| names.iter().any(|n| r["name"] == *n))?;
    for known in &dumps {
        let whole = Dump::of(open(&known.path), &gcdump::OpenOptions::default());
        let expected = answers(&whole);
        assert!(expected.0.len() > 4 && expected.1.len() > 10);
        let mut dump = open(&known.path);
        without(&mut dump, &read_only_parts(&whole, true));
        let process = Dump::of(dump, &gcdump::OpenOptions::default());
        let runtime = process.runtime().unwrap_or_else(|e| panic!("{}: {e}", known.name));
        // No export directory, g_dacTable or JSON: GcDacVars is found by content.
        assert_eq!(runtime.description().gc, LayoutSource::Synthesised, "{}", known.name);
        assert_eq!(answers(&process), expected, "{}", known.name);
    }
    println!("absent pages: {} dumps checked, {} skipped", dumps.len(), lacking.len());
    Ok(())
}

#[test]
fn a_linux_heap_dump_needs_no_export_tables() -> Tested {
    let names =
        ["net10-wks-basics-heap", "net9-svr-handles-heap", "net8-wks-handles-heap", "net8-segsvr-basics-heap", "net10-seg-basics-heap"];
    let (dumps, lacking) = known_dumps(|r| names.iter().any(|n| r["name"] == *n))?;
    for known in &dumps {
        let whole = Dump::of(open(&known.path), &gcdump::OpenOptions::default());
        let expected = answers(&whole);
        let mut dump = open(&known.path);
        without(&mut dump, &read_only_parts(&whole, true));
        let process = Dump::of(dump, &gcdump::OpenOptions::default());
        let runtime = process.runtime().unwrap_or_else(|e| panic!("{}: {e}", known.name));
        // As in a kernel core: GcDacVars by content, and g_dacTable from it. The self-checks validate the overlay.
        assert_eq!(
            (runtime.description().vm, runtime.description().gc),
            (LayoutSource::Overlay, LayoutSource::Synthesised),
            "{}",
            known.name
        );
        assert_eq!(runtime.description().overlay, whole.runtime().unwrap().description().overlay, "{}", known.name);
        assert_eq!(answers(&process), expected, "{}", known.name);
    }
    println!("without exports: {} dumps checked, {} skipped", dumps.len(), lacking.len());
    Ok(())
}

#[test]
fn a_runtime_without_its_first_page_is_named() -> Tested {
    let (dumps, _) = known_dumps(|r| r["name"] == "net10-wks-basics-heap")?;
    let known = &dumps[0];
    let mut dump = open(&known.path);
    let module = dump.modules.iter().find(|m| m.file_name() == "libcoreclr.so").unwrap().clone();
    without(&mut dump, &[AddrRange::new(module.base, module.base.plus(4096))]);
    let process = Dump::of(dump, &gcdump::OpenOptions::default());
    match process.runtime() {
        Err(RuntimeError::Headless { path }) => assert!(path.ends_with("libcoreclr.so")),
        other => panic!("{other:?}"),
    }
    Ok(())
}

#[test]
fn the_extent_of_the_image_is_read_from_its_headers() -> Tested {
    let (dumps, _) = known_dumps(|r| r["name"] == "net10-wks-basics-heap")?;
    let known = &dumps[0];
    let process = Dump::of(open(&known.path), &gcdump::OpenOptions::default());
    let image = Image::at(process.memory(), process.runtime().unwrap().description().base().unwrap()).unwrap();
    // GcDacVars is in `.bss`, beyond what NT_FILE lists.
    let vars = process.runtime().unwrap().description().gc_dac_vars.unwrap().address;
    let module = process.runtime().unwrap().description().site.module.clone().unwrap();
    assert!(image.range.contains(vars) && vars > module.base.plus(module.size));
    Ok(())
}

/// A runtime that no overlay fits, or older than all of them, is refused with what was found.
#[test]
fn an_unsupported_runtime_is_refused_with_what_was_found() -> Tested {
    let (dumps, _) = known_dumps(|r| r["name"] == "net8-wks-basics-heap")?;
    let known = &dumps[0];
    let mut dump = open(&known.path);
    let whole = Dump::of(open(&known.path), &gcdump::OpenOptions::default());
    let runtime = whole.runtime().unwrap();
    // The well-known method tables distinguish the releases: if overwritten, no overlay fits.
    let table = runtime.description().site.dac_table.unwrap().address;
    let mut bytes = dump.bytes.to_vec();
    let range = dump.ranges.iter().find(|r| r.start <= table && table.0 < r.start.0 + r.len).unwrap();
    let at = usize::try_from(range.offset + (table.0 - range.start.0)).unwrap();
    let own = whole.memory().ptr(table.plus(16 * 8)).unwrap().0.to_le_bytes();
    for entry in 40..58 {
        bytes[at + entry * 8..at + entry * 8 + 8].copy_from_slice(&own);
    }
    dump.bytes = std::sync::Arc::new(gcdump::internals::dump::Bytes::Owned(bytes));
    let process = Dump::of(dump, &gcdump::OpenOptions::default());
    let Err(RuntimeError::Unsupported { path, details }) = process.runtime() else { panic!("{:?}", process.runtime()) };
    assert!(path.ends_with("libcoreclr.so") && details.contains("build id") && details.contains("157 entries"), "{details}");
    for release in ["net8.0", "net9.0", "net10.0"] {
        assert!(details.contains(release), "{details}");
    }
    // The same by version alone.
    let mut dump = open(&known.path);
    for m in &mut dump.modules {
        m.path = m.path.replace("/app/net8/", "/usr/share/dotnet/shared/Microsoft.NETCore.App/7.0.20/");
    }
    dump.facts.arch = gcdump::internals::base::Arch::Arm64;
    let process = Dump::of(dump, &gcdump::OpenOptions::default());
    let Err(RuntimeError::Unsupported { details, .. }) = process.runtime() else { panic!("{:?}", process.runtime()) };
    assert!(details.contains("7.0.20"), "{details}");
    Ok(())
}
