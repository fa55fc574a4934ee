//! Dumps without the runtime's read-only pages, export tables or descriptor: answers are exact, or report what is missing.

use std::path::Path;

use crate::common::{bytes_of, joined, known_dumps, lab, run, shared};
use crate::harness::Tested;
use gcdump::Dump;
use gcdump::analysis::{VerifyQuery, verify};
use gcdump::internals::base::{Addr, AddrRange};
use gcdump::internals::contract::RuntimeError;
use gcdump::internals::dump::{self, Bytes, DumpFile, OpenOptions};
use gcdump::internals::gc::HandleFilter;
use gcdump::internals::memory::Image;
use gcdump::model::LayoutSource;

fn open(path: &Path) -> DumpFile {
    dump::open(path, &OpenOptions::default()).unwrap()
}

/// Removes the ranges `lost` from the captured memory.
pub fn without(dump: &mut DumpFile, lost: &[AddrRange]) {
    lost.iter().for_each(|hole| dump.remove(*hole));
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
    let (dumps, missing) = known_dumps(|r| names.iter().any(|n| r["name"] == *n))?;
    for known in &dumps {
        let whole = Dump::of(open(&known.path), &gcdump::OpenOptions::default());
        let expected = answers(&whole);
        assert!(expected.0.len() > 4 && expected.1.len() > 10);
        let mut dump = open(&known.path);
        without(&mut dump, &read_only_parts(&whole, true));
        let process = Dump::of(dump, &gcdump::OpenOptions::default());
        let runtime = process.runtime().unwrap_or_else(|e| panic!("{}: {e}", known.name));
        // No export directory, g_dacTable or JSON: GcDacVars is found by content.
        assert_eq!(runtime.description().gc, LayoutSource::Synthesized, "{}", known.name);
        assert_eq!(answers(&process), expected, "{}", known.name);
    }
    println!("absent pages: {} dumps checked, {} skipped", dumps.len(), missing.len());
    Ok(())
}

#[test]
fn a_linux_heap_dump_needs_no_export_tables() -> Tested {
    let names =
        ["net10-wks-basics-heap", "net9-svr-handles-heap", "net8-wks-handles-heap", "net8-segsvr-basics-heap", "net10-seg-basics-heap"];
    let (dumps, missing) = known_dumps(|r| names.iter().any(|n| r["name"] == *n))?;
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
            (LayoutSource::Overlay, LayoutSource::Synthesized),
            "{}",
            known.name
        );
        assert_eq!(runtime.description().overlay, whole.runtime().unwrap().description().overlay, "{}", known.name);
        assert_eq!(answers(&process), expected, "{}", known.name);
    }
    println!("without exports: {} dumps checked, {} skipped", dumps.len(), missing.len());
    Ok(())
}

#[test]
fn a_runtime_without_its_headers_is_read_by_its_variables() {
    for name in ["net10-wks-wait-kernel", "net10-wks-wait-gcore", "net8-wks-basics-heap", "net9-wks-basics-heap"] {
        let bytes = bytes_of(name).unwrap();
        let read = || dump::open_bytes(Bytes::Owned(bytes.clone()), name.as_ref(), &OpenOptions::default()).unwrap();
        let expected = answers(&Dump::of(read(), &gcdump::OpenOptions::default()));
        let mut dump = read();
        let module = dump.modules.iter().find(|m| m.file_name() == "libcoreclr.so").unwrap().clone();
        let libraries = dump.modules.iter().filter(|m| m.file_name().contains(".so")).map(|m| m.base);
        let headers: Vec<AddrRange> = libraries.map(|base| AddrRange::of(base, 4096)).collect();
        without(&mut dump, &headers);
        let process = Dump::of(dump.clone(), &gcdump::OpenOptions::default());
        assert_eq!(answers(&process), expected, "{name}");
        // A kernel leaves the headers out because of the filter; createdump always captures them.
        let kernel = !name.ends_with("-heap");
        let said = process.notes().iter().any(|n| n.message.contains("a coredump_filter without bit 4 (the headers of mapped files)"));
        assert_eq!(said, kernel, "{name}");
        // Method tables are in shared memory.
        let shared: Vec<AddrRange> = dump.files.iter().filter(|f| f.path.starts_with("/memfd:doublemapper")).map(|f| f.range).collect();
        let mut less = dump.clone();
        without(&mut less, &shared);
        let process = Dump::of(less, &gcdump::OpenOptions::default());
        let said = |text: &str| process.notes().iter().any(|n| n.message.contains(text));
        if kernel && process.runtime().is_ok() {
            assert!(said("and bit 1 (shared memory") && !process.notes().complete(), "{name}");
            let walked = verify(&process.runtime().unwrap(), &VerifyQuery::default()).unwrap();
            assert!(walked.findings.is_empty() && !walked.complete(), "{name}: nothing of the heap is corrupt");
        }
        // Variables are in the writable part.
        without(&mut dump, &[AddrRange::of(module.base, module.size + (1 << 20))]);
        let process = Dump::of(dump, &gcdump::OpenOptions::default());
        match process.runtime() {
            Err(e @ RuntimeError::Headless { .. }) => {
                let text = e.to_string();
                assert!(
                    text.contains("libcoreclr.so was loaded") && text.contains("take a heap dump") && !text.contains("--modules"),
                    "{text}"
                );
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn a_native_aot_program_without_its_headers_is_read_by_its_variables() {
    let bytes = bytes_of("aot9-wks-crash-kernel").unwrap();
    let mut dump = dump::open_bytes(Bytes::Owned(bytes), "x".as_ref(), &OpenOptions::default()).unwrap();
    let expected = answers(&Dump::of(dump.clone(), &gcdump::OpenOptions::default()));
    let headers: Vec<AddrRange> = dump.modules.iter().map(|m| AddrRange::of(m.base, 4096)).collect();
    without(&mut dump, &headers);
    assert_eq!(answers(&Dump::of(dump, &gcdump::OpenOptions::default())), expected);
}

/// Windows dumps of private memory have only those pages of images that were written to.
#[test]
fn a_windows_runtime_without_its_headers_is_read_by_its_variables() {
    for name in ["win-net10-wks-basics-full", "win-net10-wks-roots-full", "win-net9-wks-basics-full", "win-net8-wks-handles-full"] {
        let bytes = bytes_of(name).unwrap();
        let read = || dump::open_bytes(Bytes::Owned(bytes.clone()), name.as_ref(), &OpenOptions::default()).unwrap();
        let whole = Dump::of(read(), &gcdump::OpenOptions::default());
        let mut dump = read();
        without(&mut dump, &read_only_parts(&whole, false));
        let process = Dump::of(dump, &gcdump::OpenOptions::default());
        assert_eq!(answers(&process), answers(&whole), "{name}");
    }
}

/// A dump of stacks has no managed memory, even with module files.
#[test]
fn a_dump_of_stacks_says_so() {
    for name in ["net10-wks-stacks-mini", "win-net10-wks-roots-full", "net10-wks-wait-kernel"] {
        let bytes = bytes_of(name).unwrap();
        let mut dump = dump::open_bytes(Bytes::Owned(bytes), name.as_ref(), &OpenOptions::default()).unwrap();
        let stack = |t: &dump::OsThread| t.stack.or(t.stack_pointer.map(|sp| AddrRange::of(sp, 4096)));
        let stacks = joined(dump.threads.iter().filter_map(stack).collect());
        let mut at = Addr(0);
        for stack in &stacks {
            without(&mut dump, &[AddrRange::new(at, stack.start)]);
            at = stack.end;
        }
        without(&mut dump, &[AddrRange::new(at, Addr(u64::MAX))]);
        let text = Dump::of(dump, &gcdump::OpenOptions::default()).runtime().unwrap_err().to_string();
        assert!(text.starts_with("only stacks were captured (") && text.contains("take a heap dump"), "{name}: {text}");
        assert!(!text.contains("--modules"), "{name}: {text}");
    }
    if let Some(shared) = shared() {
        let path = shared.join("../cases/breakpad10.dmp.zst");
        let modules = lab().map(|lab| lab.join("net10").display().to_string());
        for more in std::iter::once(None).chain(modules.as_deref().map(Some)) {
            let mut args = vec!["stat", "--no-local-files", path.to_str().unwrap()];
            args.extend(more.iter().flat_map(|folder| ["--modules", folder]));
            let ran = run(&args);
            assert!(ran.err.contains("only stacks were captured (73,728 bytes, 8 threads)"), "{args:?}: {}", ran.err);
            assert!(!ran.err.contains("is not the libcoreclr.so"), "{}", ran.err);
        }
    }
}

/// The message about an unsupported release begins with its name.
#[test]
fn an_old_release_is_named_first() {
    for (version, name) in [("3.1.23", ".NET Core 3.1.23"), ("6.0.36", ".NET 6.0.36")] {
        let bytes = bytes_of("net8-wks-basics-heap").unwrap();
        let mut dump = dump::open_bytes(Bytes::Owned(bytes), "x".as_ref(), &OpenOptions::default()).unwrap();
        let module = dump.modules.iter_mut().find(|m| m.file_name() == "libcoreclr.so").unwrap();
        module.path = format!("/usr/share/dotnet/shared/Microsoft.NETCore.App/{version}/libcoreclr.so");
        let (path, base) = (module.path.clone(), module.base);
        // The image does not have the variables that overlays describe.
        let process = Dump::of(dump.clone(), &gcdump::OpenOptions::default());
        let vars = process.runtime().unwrap().description().gc_dac_vars.unwrap().address;
        without(&mut dump, &[AddrRange::new(base.plus(4096), vars.plus(1 << 20))]);
        let text = Dump::of(dump, &gcdump::OpenOptions::default()).runtime().unwrap_err().to_string();
        assert_eq!(text, format!("{name} is not supported (8 to 11 are): {path}"));
    }
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
    // The well-known method tables distinguish the releases: if they are overwritten, no overlay fits.
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
    let Err(RuntimeError::Unsupported { path, details, .. }) = process.runtime() else { panic!("{:?}", process.runtime()) };
    assert!(path.ends_with("libcoreclr.so") && details.contains("build id") && details.contains("157 entries"), "{details}");
    for release in ["net8.0", "net9.0", "net10.0"] {
        assert!(details.contains(release), "{details}");
    }
    // The version has the same effect.
    let mut dump = open(&known.path);
    for m in &mut dump.modules {
        m.path = m.path.replace("/app/net8/", "/usr/share/dotnet/shared/Microsoft.NETCore.App/7.0.20/");
    }
    dump.facts.arch = gcdump::internals::base::Arch::Arm64;
    let process = Dump::of(dump, &gcdump::OpenOptions::default());
    assert_eq!(process.runtime().err().map(|e| e.to_string().starts_with(".NET 7.0.20 is not supported (8 to 11 are): ")), Some(true));
    Ok(())
}
