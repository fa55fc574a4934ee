//! Opens the runtimes of a process. Layouts come from the runtime's descriptor, from an overlay or from synthesis; `Description` records the source.

mod agreement;
mod copies;
mod error;
mod lost;
mod mono;
mod old;
mod version;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::checks::{self, Check};
use super::dac_table::{self, DacTable, GcDacVars, VarsLayout};
use super::descriptor::{Descriptor, GlobalValue, Origin};
use super::evidence;
use super::gc_image;
use super::header::{self, Copies, DescriptorPart, Header, HeaderError};
use super::json::{DescriptorItem, RawGlobal, RawValue};
use super::left_out::{self, LeftOut};
use super::locate::{self, Seen, Site, UnreadProgram};
use super::native_aot::{self, DebugHeader, DebugHeaderError};
use super::overlay::{self, Overlay};
use super::synthesis;
use crate::base::missed::{Missed, watched};
use crate::base::{Addr, Collector, Limits, Missing, NoteKind, NoteReason, len64};
use crate::dump::DumpFile;
use crate::memory::{FileSearch, Image, Memory, hex, is_by_createdump};
use crate::model::{CrashReport, LayoutSource, OriginKind, RuntimeKind, VersionSource};
use agreement::{disagreement, shift};
pub use error::RuntimeError;

/// Options for opening runtimes.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Overlays given by the user, tried before the bundled overlays.
    pub overlays: Vec<Overlay>,
    /// Where to look for module files.
    pub search: FileSearch,
    /// Resource limits.
    pub limits: Arc<Limits>,
}

/// A runtime found in the process, and the descriptor that contract readers bind to.
#[derive(Clone, Debug)]
pub struct Description {
    /// Where the runtime was found.
    pub site: Site,
    /// The merged descriptor.
    pub descriptor: Arc<Descriptor>,
    /// Source of the VM layouts.
    pub vm: LayoutSource,
    /// Source of the GC layouts.
    pub gc: LayoutSource,
    /// Name of the overlay in use.
    pub overlay: Option<String>,
    /// The GC variables, if the GC layouts were synthesized.
    pub gc_dac_vars: Option<GcDacVars>,
    /// The image that contains the GC: the image of the runtime or of a standalone GC (`libclrgc`).
    pub gc_image: Option<Image>,
    /// Version, such as `10.0.12`, or only `10.0`.
    pub version: Option<String>,
    /// Source of the version.
    pub version_source: Option<VersionSource>,
    /// Self-checks of the descriptor.
    pub checks: Vec<Check>,
    /// Messages about user-supplied overlays that do not match the process.
    pub refused: Vec<String>,
    /// `version` of the descriptor's JSON.
    pub descriptor_version: Option<u64>,
    /// The crash report of a NativeAOT program.
    pub crash_report: Option<CrashReport>,
}

impl Description {
    /// The kind of the runtime.
    pub(crate) fn kind(&self) -> RuntimeKind {
        match &self.descriptor {
            d if d.is_native_aot() => RuntimeKind::NativeAot,
            d if d.is_mono() => RuntimeKind::Mono,
            _ => RuntimeKind::CoreClr,
        }
    }
}

/// Opens every runtime in the process.
///
/// # Errors
/// [`RuntimeError`] if no runtime can be read.
pub fn open_runtimes(dump: &DumpFile, memory: &mut Memory, options: &Options, notes: &Collector) -> Result<Vec<Description>, RuntimeError> {
    let (sites, seen) = locate::find(dump, memory, &options.search, &options.limits, notes);
    let mut runtimes = Vec::new();
    let mut failures = Vec::new();
    for site in sites {
        let opener = Opener { dump, memory, options, notes, site: &site };
        match opener.open() {
            Ok(runtime) => runtimes.push(runtime),
            Err(e) => failures.push(e),
        }
    }
    let left_out = LeftOut::of(dump, memory);
    let program = seen.unread.as_ref().map(without_exports);
    failures.extend(unread(seen, left_out));
    if runtimes.is_empty() {
        let why = failures.into_iter().next().unwrap_or_else(|| nothing(dump, memory, program));
        let is_there = matches!(why, RuntimeError::Headless { .. } | RuntimeError::Unsupported { .. });
        return Err(match left_out::only_stacks(dump).filter(|_| is_there) {
            Some(bytes) => RuntimeError::OnlyStacks { bytes, threads: len64(dump.threads.len()) },
            None => why,
        });
    }
    if runtimes.iter().all(|r| r.gc == LayoutSource::None)
        && let Some(bytes) = left_out::only_stacks(dump)
    {
        // The runtimes were read from module files; the dump itself has only stacks.
        return Err(RuntimeError::OnlyStacks { bytes, threads: len64(dump.threads.len()) });
    }
    if let Some(sentence) = left_out.sentence() {
        // If only the headers are missing, nothing is lost, because the checks have confirmed the layouts. If shared memory is missing, the method
        // tables are missing too, and no object can be identified.
        let reason = if left_out.shared { NoteReason::from(Missing::Layouts) } else { NoteKind::OverlayUsed.into() };
        notes.add(reason, None, sentence);
    }
    for why in failures.iter().take(MAX_UNREAD) {
        notes.add(NoteKind::OtherRuntimes, None, format!("the process has another runtime, which is not read: {why}"));
    }
    Ok(runtimes)
}

/// Maximum number of unreadable runtimes that are named in notes.
const MAX_UNREAD: usize = 8;

fn nothing(dump: &DumpFile, memory: &Memory, program: Option<String>) -> RuntimeError {
    match (left_out::host(dump), program) {
        (Some(host), _) => RuntimeError::NotLoaded { host: host.into() },
        (None, Some(program)) if is_by_createdump(dump, memory) => RuntimeError::Unread { program },
        (None, program) => RuntimeError::NoRuntime { modules: dump.modules.len(), program },
    }
}

/// The reason why the exports of `program` are unknown, and the file that the user can supply.
fn without_exports(program: &UnreadProgram) -> String {
    let id = program.build_id.as_deref().map(|id| format!(" (build id {})", hex(id))).unwrap_or_default();
    let refused: String = program.refused.iter().map(|why| format!("; {why}")).collect();
    format!("the dump does not have the part of {}{id} that leads to the runtime{refused}", program.path)
}

/// The errors of runtimes that were seen but cannot be read.
fn unread(seen: Seen, left_out: LeftOut) -> impl Iterator<Item = RuntimeError> {
    let native_aot = seen.native_aot.into_iter().map(|(m, why)| RuntimeError::NativeAot {
        path: m.path,
        in_file: why == DebugHeaderError::Nameless,
        why: why.to_string(),
    });
    let headless = seen.headless.into_iter().map(move |m| RuntimeError::Headless { path: m.path, left_out: left_out.sentence() });
    let foreign = seen.foreign.into_iter().map(|(m, what)| RuntimeError::Foreign { what, path: m.path });
    native_aot.chain(headless).chain(foreign)
}

/// Whether a part of the descriptor advertises the GC contract.
fn has_gc_contract(part: &DescriptorPart) -> bool {
    part.raw.contracts.iter().any(|contract| contract.0 == "GC")
}

struct Opener<'a> {
    dump: &'a DumpFile,
    memory: &'a Memory,
    options: &'a Options,
    notes: &'a Collector,
    site: &'a Site,
}

/// The VM part of a descriptor, from any source.
struct Vm<'a> {
    descriptor: Descriptor,
    source: LayoutSource,
    overlay: Option<&'a Overlay>,
    table: Option<DacTable>,
    checks: Vec<Check>,
    refused: Vec<String>,
}

impl<'a> Opener<'a> {
    fn open(&self) -> Result<Description, RuntimeError> {
        if self.site.mono {
            return self.mono();
        }
        let limits = &self.options.limits;
        let (parts, header) = self.own_descriptor();
        let has_gc = parts.iter().any(has_gc_contract);
        let gc_layouts = overlay::gc_layouts(self.memory.shape().ptr);
        let layout = gc_layouts.and_then(VarsLayout::of);
        // `GcDacVars` is needed only by runtimes without a GC contract. Do not search for it otherwise: a search by content reads all of `.data`.
        let (mut vm, vars) = match self.site.debug_header.as_ref() {
            Some(debug_header) => self.native_aot(debug_header, layout)?,
            None => {
                let vars = layout.filter(|_| !has_gc).and_then(|l| self.vars(&l));
                (self.vm(&parts, header, has_gc, vars)?, vars)
            }
        };
        let gc_of = |part: &DescriptorPart| if part.copy.is_some() { LayoutSource::OverlayJson } else { LayoutSource::Descriptor };
        let mut gc = parts.iter().find(|p| has_gc_contract(p)).map_or(LayoutSource::None, gc_of);
        if let (false, Some(layouts), Some(vars)) = (has_gc, gc_layouts, vars) {
            let card_table = vm.descriptor.pointer("CardTable").ok();
            match synthesis::synthesize(&mut vm.descriptor, self.memory, layouts, vars, card_table, limits) {
                Ok(()) => gc = LayoutSource::Synthesized,
                Err(e) => self.notes.add(Missing::Layouts, e.address, format!("GcDacVars cannot be read: {e}")),
            }
        }
        // No note is added for a dump that is not cut off, because its writer may omit the GC's structures by design. The answers report the source
        // of the layouts.
        if gc == LayoutSource::None && self.memory.is_cut() {
            self.notes.add(Missing::Layouts, None, "the GC's structures were not found in the remaining part of the dump");
        }
        if gc == LayoutSource::None && self.is_unstarted(&vm) {
            return Err(self.not_started(&vm));
        }
        if gc == LayoutSource::None && vm.source == LayoutSource::None {
            return Err(self.unsupported("neither a descriptor nor GcDacVars found".into()));
        }
        if matches!(vm.source, LayoutSource::Overlay | LayoutSource::OverlayJson)
            && let Some(o) = vm.overlay.filter(|o| o.given)
        {
            self.notes.add(
                NoteKind::OverlayUsed,
                None,
                format!("the layouts of the runtime's structures come from the given overlay {}", o.section.name),
            );
        }
        vm.descriptor.forget_initial(|at| self.memory.is_initial(at));
        let gc_image = gc_image::find(self.dump, self.memory, self.site.image.as_ref(), &mut vm.descriptor, self.notes);
        let crash_report = native_aot::report(self.memory, &vm.descriptor, self.site.image.as_ref());
        let (version, version_source) = self.version(&vm, crash_report.as_ref()).map_or((None, None), |(v, s)| (Some(v), Some(s)));
        let mut site = self.site.clone();
        site.dac_table = vm.table.or(site.dac_table);
        let version_of_json = parts.first().map(|p| p.raw.version);
        self.newer_reader(&vm.descriptor, version_of_json);
        Ok(Description {
            site,
            descriptor: Arc::new(vm.descriptor),
            vm: vm.source,
            gc,
            overlay: vm.overlay.map(|o| o.section.name.clone()),
            gc_dac_vars: vars.filter(|_| gc == LayoutSource::Synthesized),
            gc_image,
            version,
            version_source,
            checks: vm.checks,
            refused: vm.refused,
            descriptor_version: version_of_json,
            crash_report,
        })
    }

    /// Whether the runtime is loaded but not started: it has no threads, or all known entries of `g_dacTable` are null.
    fn is_unstarted(&self, vm: &Vm<'_>) -> bool {
        let order = vm.overlay.and_then(|o| o.section.dac_table.as_ref());
        let is_empty = |order: &overlay::DacTableOrder, table: DacTable| {
            let mut indices = order.index.values();
            indices.len() > 0 && indices.all(|index| table.read(self.memory, *index) == Ok(None))
        };
        checks::has_no_threads(&vm.descriptor, self.memory) || order.zip(vm.table).is_some_and(|(order, table)| is_empty(order, table))
    }

    /// Whether the JSON of the descriptor at `address` is not in the dump.
    fn lacks_text(&self, address: Addr) -> bool {
        let text = Header::read(self.memory, address, &self.options.limits).map(|header| header.parse(self.memory));
        matches!(text, Ok(Err(HeaderError::JsonAbsent(_))))
    }

    fn not_started(&self, vm: &Vm<'_>) -> RuntimeError {
        RuntimeError::NotStarted { path: self.path(), version: self.version(vm, None).map(|(version, _)| version) }
    }

    /// Path of the module, for messages.
    fn path(&self) -> String {
        self.site.module.as_ref().map_or_else(|| "the process".to_string(), |m| m.path.clone())
    }

    /// The parts of the runtime's own descriptor if its JSON can be read, otherwise only its header.
    fn own_descriptor(&self) -> (Vec<DescriptorPart>, Option<Header>) {
        let Some(address) = self.site.descriptor else { return (Vec::new(), None) };
        let limits = &self.options.limits;
        let copies = Copies {
            bundled: &|header| self.copy_of(header),
            file: &|at| self.module_around(at).map(|module| module.file_name().to_string()),
        };
        match header::read_tree(self.memory, address, limits, copies, self.notes) {
            Ok(parts) => {
                let header = parts.first().map(|p| p.header);
                (parts, header)
            }
            Err(error) => {
                // The JSON is normally absent from dumps of .NET 9 and 10. A note is added only if the dump has a part of the page.
                match &error {
                    HeaderError::JsonAbsent(e) | HeaderError::Read(e) => {
                        if self.memory.is_torn(e.address) {
                            self.notes.add(Missing::Layouts, e.address, error.to_string());
                        }
                    }
                    _ => self.notes.add(NoteKind::Descriptor, address, error.to_string()),
                }
                (Vec::new(), Header::read(self.memory, address, limits).ok())
            }
        }
    }

    /// Opens a NativeAOT program, whose debug header replaces the descriptor.
    fn native_aot(&self, header: &DebugHeader, layout: Option<VarsLayout>) -> Result<(Vm<'a>, Option<GcDacVars>), RuntimeError> {
        let mut descriptor = Descriptor::default();
        let (vars, overlay) = native_aot::describe(&mut descriptor, self.memory, header);
        let vars = vars.filter(|v| layout.is_some_and(|l| l.matches(self.memory, v.address)));
        if vars.is_none() {
            let why = "the variables of its GC are not in the dump".into();
            return Err(RuntimeError::NativeAot { path: self.path(), why, in_file: true });
        }
        let checks = checks::run(&descriptor, self.memory, &self.options.limits);
        let vm = Vm { descriptor, source: LayoutSource::DebugHeader, overlay, table: None, checks, refused: Vec::new() };
        Ok((vm, vars))
    }

    fn vars(&self, layout: &VarsLayout) -> Option<GcDacVars> {
        let image = self.site.image.as_ref()?;
        let overlays = self.overlays();
        let by_table = self.site.dac_table.and_then(|table| {
            let index = overlays.iter().find(|o| self.fits_table(o, &table)).and_then(|o| o.dac_index("GcDacVars"));
            dac_table::vars_by_table(self.memory, layout, &table, image, index)
        });
        by_table.or_else(|| dac_table::vars_by_content(self.memory, layout, image))
    }

    /// Whether `overlay` gives the order of a `g_dacTable` with as many entries as `table`.
    fn fits_table(&self, overlay: &Overlay, table: &DacTable) -> bool {
        let count = || table.entries.or_else(|| self.site.image.as_ref().map(|i| table.count(self.memory, i)));
        overlay.section.dac_table.as_ref().is_some_and(|o| count().is_some_and(|n| o.entries.contains(&n)))
    }

    fn overlays(&self) -> Vec<&'a Overlay> {
        let (os, arch) = (self.dump.facts.os, self.dump.facts.arch);
        let given = self.options.overlays.iter().filter(|o| o.fits(os, arch));
        given.chain(overlay::bundled(os, arch).map(|o| -> &'a Overlay { o })).collect()
    }

    fn vm(&self, parts: &[DescriptorPart], header: Option<Header>, has_gc: bool, vars: Option<GcDacVars>) -> Result<Vm<'a>, RuntimeError> {
        if !parts.is_empty() {
            let vm = self.vm_of_own(parts, has_gc, vars);
            let Some(copy) = parts.iter().find_map(|p| p.copy) else { return Ok(vm) };
            // The copy may have been chosen only by its size and the name of its module, so the checks must confirm it.
            if let Some(failed) = vm.checks.iter().find(|c| c.rejects(&vm.checks, true)) {
                return Err(self.unsupported(format!("{}: {}", copy.section.name, describe(failed))));
            }
            self.note_wrong(copy, &vm.checks);
            let source = if parts.first().is_some_and(|p| p.copy.is_some()) { LayoutSource::OverlayJson } else { vm.source };
            return Ok(Vm { source, overlay: Some(copy), ..vm });
        }
        let mut failures = Vec::new();
        let mut refused = Vec::new();
        let mut disproved = BTreeSet::new();
        for overlay in self.options.overlays.iter().filter(|o| !o.fits(self.dump.facts.os, self.dump.facts.arch)) {
            self.refuse(overlay, "for another operating system or architecture", &mut refused);
        }
        let mut candidates = self.overlays();
        // The sizes in the descriptor header identify the JSON. The number of entries in `g_dacTable` identifies the order of its entries.
        let exact = |o: &Overlay| match (&header, &self.site.dac_table) {
            (Some(h), _) => o.section.descriptor.is_some_and(|r| (r.json_bytes, r.slots) == (h.json_bytes, h.slots)),
            (None, Some(t)) => self.fits_table(o, t),
            (None, None) => false,
        };
        candidates.sort_by_key(|o| (!o.given, !exact(o)));
        for overlay in candidates {
            let table = self.site.dac_table.or_else(|| self.table_by_content(overlay, vars, header));
            let slots = header.filter(|h| overlay.section.descriptor.is_some_and(|r| r.slots == h.slots));
            let descriptor = self.assemble(Some(overlay), slots, &[], table);
            let (checks, _) = self.checked(overlay, &descriptor);
            let (passed, is_exact) = (checks.iter().filter(|c| c.passed()).count(), exact(overlay));
            match checks.iter().find(|c| c.rejects(&checks, is_exact && !overlay.given)) {
                // Windows minidumps contain no data for the checks, so an exact match of the table or descriptor suffices.
                None if passed >= 2 || is_exact => {
                    self.note_wrong(overlay, &checks);
                    let source = if slots.is_some() { LayoutSource::OverlayJson } else { LayoutSource::Overlay };
                    let descriptor = self.with_inferred(descriptor);
                    return Ok(Vm { descriptor, source, overlay: Some(overlay), table, checks, refused });
                }
                None => failures.push(format!("{}: the dump contains nothing to check it against", overlay.section.name)),
                Some(_) if is_exact && vars.is_none() && checks::has_no_threads(&descriptor, self.memory) => {
                    let source = LayoutSource::Overlay;
                    return Ok(Vm { descriptor, source, overlay: Some(overlay), table, checks, refused });
                }
                Some(c) => {
                    if overlay.given {
                        self.refuse(overlay, &describe(c), &mut refused);
                    }
                    failures.push(format!("{}: {}", overlay.section.name, describe(c)));
                    disproved.extend(overlay.section.runtime.clone());
                }
            }
        }
        // The release may have no overlay for this platform, but a `GcDacVars` of the known form. This is not assumed for releases before .NET 8, or
        // if the checks have rejected the overlays of all supported releases.
        let older = self.plain_version().is_some_and(|(v, _)| is_old(&v));
        let none_of_them = SUPPORTED_BY_OVERLAY.iter().all(|r| disproved.contains(*r));
        if vars.is_some() && !older && !none_of_them {
            // Only the GC can be read, not threads and types.
            self.lacks_layouts("no overlay could be confirmed for this runtime: only data published by the GC can be read");
            return Ok(Vm {
                descriptor: Descriptor::default(),
                source: LayoutSource::None,
                overlay: None,
                table: None,
                checks: vec![],
                refused,
            });
        }
        if vars.is_none() {
            failures.insert(0, "GcDacVars not found".into());
        }
        if let Some(vm) = self.old().or_else(|| self.inferred()) {
            return Ok(vm);
        }
        failures.splice(0..0, self.plain_version().map(|(v, _)| format!("version {v}")));
        Err(self.unsupported(failures.join("; ")))
    }

    /// Builds the VM part from the runtime's own JSON. If the JSON does not describe the GC, an overlay that agrees with all offsets in the JSON adds
    /// the order of `g_dacTable` and the missing items. User-supplied overlays are always tried.
    fn vm_of_own(&self, parts: &[DescriptorPart], has_gc: bool, vars: Option<GcDacVars>) -> Vm<'a> {
        let mut refused = Vec::new();
        for overlay in self.overlays().into_iter().filter(|o| o.given || !has_gc) {
            if let Some(why) = disagreement(overlay, parts) {
                if overlay.given {
                    self.refuse(overlay, &format!("the runtime descriptor has {why}"), &mut refused);
                }
                continue;
            }
            let table = self.site.dac_table.or_else(|| self.table_by_content(overlay, vars, parts.first().map(|p| p.header)));
            let descriptor = self.assemble(Some(overlay), None, parts, table);
            let (checks, missed) = self.checked(overlay, &descriptor);
            match checks.iter().find(|c| c.failed()) {
                Some(failed) if overlay.given => self.refuse(overlay, &describe(failed), &mut refused),
                Some(failed) => {
                    // The overlay agrees with the JSON in every offset, so the check may have failed only because memory that it reads is missing.
                    if let Some((at, _)) = missed.find(|_, _| true) {
                        let what = format!("overlay {} could not be confirmed: {}", overlay.section.name, describe(failed));
                        self.notes.add(Missing::Layouts, at, what);
                    }
                }
                None => return Vm { descriptor, source: LayoutSource::Descriptor, overlay: Some(overlay), table, checks, refused },
            }
        }
        let descriptor = self.assemble(None, None, parts, self.site.dac_table);
        let checks = checks::run(&descriptor, self.memory, &self.options.limits);
        Vm { descriptor, source: LayoutSource::Descriptor, overlay: None, table: self.site.dac_table, checks, refused }
    }

    /// Checks the descriptor that results from `overlay`, and returns the failed reads as well. If a user-supplied overlay fails a check, the failed
    /// reads are not reported, because they result from wrong offsets.
    fn checked(&self, overlay: &Overlay, descriptor: &Descriptor) -> (Vec<Check>, Missed) {
        let (mut checks, missed) = watched(|| checks::run(descriptor, self.memory, &self.options.limits));
        if self.lacks_headers() {
            checks.extend(evidence::checks(descriptor, self.memory));
        }
        if !(overlay.given && checks.iter().any(Check::failed)) {
            missed.tell();
        }
        (checks, missed)
    }

    /// Whether nothing of the image of the runtime is in the dump.
    fn lacks_headers(&self) -> bool {
        self.site.image.is_none() && self.site.descriptor.is_none()
    }

    /// Reports a structure that is not as `overlay` expects. The reader of the threads reports a list that breaks off.
    fn note_wrong(&self, overlay: &Overlay, checks: &[Check]) {
        if let Some(wrong) = checks.iter().find(|c| matches!(c.outcome, checks::Outcome::Failed(_))) {
            let what = format!("overlay {} fits this runtime, but not all of its data: {}", overlay.section.name, describe(wrong));
            self.notes.add(Missing::Layouts, None, what);
        }
    }

    /// Reports a user-supplied overlay that does not match.
    fn refuse(&self, overlay: &Overlay, why: &str, refused: &mut Vec<String>) {
        let what = format!("overlay {} does not match this process and was not used: {why}", overlay.section.name);
        self.notes.add(NoteKind::Descriptor, None, what.clone());
        refused.push(what);
    }

    fn table_by_content(&self, overlay: &Overlay, vars: Option<GcDacVars>, header: Option<Header>) -> Option<DacTable> {
        let index = overlay.dac_index("GcDacVars")?;
        let repeats = |h: &Header| overlay.section.descriptor.is_some_and(|r| r.slots == h.slots);
        let known = header.filter(repeats).map_or_else(Vec::new, |header| {
            let slot = |(name, global): &(String, RawGlobal)| match global.value {
                RawValue::Slot(i) => Some((overlay.dac_index(name)?, header.slot(self.memory, i).filter(|a| !a.is_null())?)),
                RawValue::Literal { .. } => None,
            };
            overlay.raw.globals.iter().filter_map(slot).collect()
        });
        dac_table::table_by_content(self.memory, self.site.image.as_ref()?, vars?.address, index, &known)
    }

    /// Merges the overlay, `g_dacTable` and the runtime's own parts, in increasing precedence.
    fn assemble(&self, overlay: Option<&Overlay>, header: Option<Header>, parts: &[DescriptorPart], table: Option<DacTable>) -> Descriptor {
        let mut d = Descriptor::default();
        if let Some(o) = overlay {
            let origin = d.add_origin(Origin {
                kind: OriginKind::Overlay,
                name: format!("overlay {}", o.section.name),
                address: None,
                version: o.raw.version,
            });
            d.merge(&o.raw, origin, |i| header.and_then(|h| h.slot(self.memory, i)).filter(|a| !a.is_null()));
            if let Some(header) = header {
                d.lose_slots(&o.raw, |i| header.slot(self.memory, i));
            }
            if let (Some(order), None) = (&o.section.dac_table, table) {
                order.index.keys().for_each(|name| d.lose(DescriptorItem::Global(name.clone()), "g_dacTable was not found"));
            }
            if let (Some(order), Some(table)) = (&o.section.dac_table, table) {
                let origin = d.add_origin(Origin {
                    kind: OriginKind::Overlay,
                    name: format!("g_dacTable, in the order of overlay {}", o.section.name),
                    address: Some(table.address),
                    version: o.raw.version,
                });
                let shift = shift(parts, order, self.memory, table);
                for (name, index) in &order.index {
                    let known = d.globals.get(name).is_some_and(|g| matches!(g.value, GlobalValue::Pointer(_)));
                    let index = shift.and_then(|s| index.checked_add_signed(s));
                    match index.filter(|_| !known).map(|i| table.read(self.memory, i)) {
                        Some(Ok(Some(address))) => d.set_pointer(name, address, origin),
                        Some(Err(e)) => d.lose(DescriptorItem::Global(name.clone()), &format!("entry of g_dacTable: {e}")),
                        Some(Ok(None)) | None => {}
                    }
                }
            }
        }
        for part in parts {
            let origin = d.add_origin(Origin {
                kind: OriginKind::InMemory,
                name: match (&part.name, part.copy) {
                    (_, Some(copy)) => format!("copy of {}", copy.section.name),
                    (Some(name), None) => format!("{name} sub-descriptor"),
                    (None, None) => "descriptor".into(),
                },
                address: Some(part.header.address),
                version: part.raw.version,
            });
            if part.raw.baseline != "empty" {
                let what = format!("unknown baseline {:?}: its contents are unknown", part.raw.baseline);
                self.notes.add(NoteKind::Descriptor, part.header.address, what);
            }
            for what in &part.raw.irregular {
                self.notes.add(NoteKind::Descriptor, part.header.address, what.clone());
            }
            d.merge(&part.raw, origin, |i| part.header.slot(self.memory, i));
            d.lose_slots(&part.raw, |i| part.header.slot(self.memory, i));
        }
        native_aot::complete(&mut d, self.memory);
        // Adds layouts that the runtime's own descriptor omits. They have not changed since .NET 8.
        if let Some(common) = overlay::vm_layouts(self.memory.shape().ptr).filter(|_| !parts.is_empty()) {
            let mut raw = common.raw.clone();
            raw.types.retain(|(name, _)| !d.types.contains_key(name) && !d.unusable.contains_key(&DescriptorItem::Type(name.clone())));
            if !raw.types.is_empty() {
                let (kind, name) = (OriginKind::Overlay, format!("overlay {}", common.section.name));
                let origin = d.add_origin(Origin { kind, name, address: None, version: raw.version });
                d.merge(&raw, origin, |_| None);
            }
        }
        d
    }

    fn unsupported(&self, details: String) -> RuntimeError {
        let version = self.plain_version().map(|(v, _)| v).or_else(|| self.version_text());
        if let Some(version) = version.filter(|v| is_old(v)) {
            return RuntimeError::Old { path: self.path(), version };
        }
        let left_out = LeftOut::of(self.dump, self.memory).sentence();
        // The dump has a part of the image, but nothing in this part locates the runtime's data.
        let has_headers = self.site.image.as_ref().is_some_and(|i| Image::at(self.memory, i.base).is_some());
        if !has_headers && self.site.descriptor.is_none() {
            return RuntimeError::Headless { path: self.path(), left_out };
        }
        let mut facts = Vec::new();
        facts.extend(self.site.image.as_ref().and_then(|i| i.build_id.as_deref()).map(|id| format!("build id {}", hex(id))));
        let entries = self.site.dac_table.and_then(|t| t.entries);
        facts.extend(entries.map(|n| format!("g_dacTable with {n} entries")));
        facts.push(details);
        // The JSON may be missing because the kernel left it out. In this case, no bundled copy of the JSON matches either.
        let undescribed = self.site.descriptor.is_some_and(|at| self.lacks_text(at));
        RuntimeError::Unsupported { path: self.path(), undescribed, left_out, details: facts.join("; ") }
    }
}

fn describe(check: &Check) -> String {
    use checks::Outcome::{BrokenOff, Failed, Passed, Unknown};
    let (Passed(facts) | Failed(facts) | BrokenOff(facts) | Unknown(facts)) = &check.outcome;
    format!("{}: {facts}", check.name)
}

/// The oldest release whose GC matches the bundled layouts.
const OLDEST_MAJOR: u32 = 8;
/// Releases that need an overlay. Later releases have a full descriptor.
const SUPPORTED_BY_OVERLAY: [&str; 3] = ["8.0", "9.0", "10.0"];

/// Whether `version` is older than the oldest supported release.
fn is_old(version: &str) -> bool {
    let major: Option<u32> = version.split('.').next().and_then(|n| n.parse().ok());
    major.is_some_and(|n| n < OLDEST_MAJOR)
}

impl Description {
    /// Base address of the runtime's module, which identifies the runtime.
    pub fn base(&self) -> Option<Addr> {
        self.site.image.as_ref().map(|i| i.base)
    }
}
