//! Finds the source lines of code addresses, for one answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Namer, Runtime};
use crate::base::hash::{Map, Set};
use crate::base::missed::tried;
use crate::base::reads;
use crate::base::{Addr, Collector, Count, Missing, Name, NoteKind, Remedy, len64};
use crate::clr::methods::MethodName;
use crate::clr::modules::Symbols;
use crate::stack::StackError;
use crate::stack::code::Code;
use crate::stack::debug_info::{Bounds, DebugInfo};

/// Number of reads that the source lines of one answer may take. A method takes some hundred reads. The limit is needed because lists in a forged
/// dump or PDB may be arbitrarily long.
const READS: u64 = 1 << 22;
/// Bytes of sequence points that are counted as one read.
const POINTS_OF_A_READ: u64 = 8;
/// Entries of debug info, or local variables of a PDB, that are counted as one read.
const ENTRIES_OF_A_READ: u64 = 8;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceLine {
    /// Path of the file at compile time.
    pub(crate) file: Name,
    /// The line, from 1.
    pub(crate) line: u32,
}

/// The names and types of a method's locals at an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedLocals {
    /// Row of the locals' signature in StandAloneSig; 0 if the method has no locals, `None` if the PDB does not record the row.
    pub(crate) signature: Option<u32>,
    /// The slots that have a name anywhere in the method, each with its name at the instruction; `None` if the instruction is outside of the
    /// name's scopes.
    pub(crate) names: BTreeMap<u32, Option<String>>,
}

/// Finds source lines: the code's debug info maps an address to an IL offset, and the module's portable PDB maps the IL offset to a line. Each
/// module, method and address is looked up once.
#[derive(Debug)]
pub(crate) struct SourceLines<'r> {
    runtime: &'r Runtime,
    namer: &'r Namer,
    /// `None` if the runtime does not describe its debug info.
    debug_info: Option<DebugInfo>,
    known: Mutex<LineCache>,
}

#[derive(Debug)]
struct LineCache {
    /// Reads left.
    reads: u64,
    lines: Map<Addr, Option<SourceLine>>,
    offsets: Map<Addr, Option<u64>>,
    bounds: Map<Addr, Option<Arc<Bounds>>>,
    files: Map<(Addr, u32), Option<Name>>,
    modules: BTreeMap<Addr, Arc<Symbols>>,
    /// The addresses whose IL offset, for a line or for locals, could not be looked up, and the reason for the first one.
    lost: Set<Addr>,
    why: Option<StackError>,
    /// Number of addresses whose offset in the code cannot be determined, and the reason for the first one.
    unplaced: u64,
    why_unplaced: Option<StackError>,
}

impl Default for LineCache {
    fn default() -> LineCache {
        LineCache {
            reads: READS,
            lines: Map::default(),
            offsets: Map::default(),
            bounds: Map::default(),
            files: Map::default(),
            modules: BTreeMap::new(),
            lost: Set::default(),
            why: None,
            unplaced: 0,
            why_unplaced: None,
        }
    }
}

impl<'r> SourceLines<'r> {
    /// Creates a reader for an answer about `runtime`. `namer` supplies the modules of the runtime.
    pub(crate) fn new(runtime: &'r Runtime, namer: &'r Namer) -> SourceLines<'r> {
        let debug_info = DebugInfo::bind(&runtime.descriptor().scope()).ok();
        SourceLines { runtime, namer, debug_info, known: Mutex::default() }
    }

    /// The source line of the instruction at or around `address` in the code of `method`; `None` if it cannot be determined.
    pub(crate) fn at(&self, method: &MethodName, address: Addr) -> Option<SourceLine> {
        let (home, row) = (method.home?, method.token?.rid());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = known.lines.get(&address) {
            return line.clone();
        }
        let line = if known.reads == 0 { None } else { self.find(&mut known, home, row, address) };
        known.lines.insert(address, line.clone());
        line
    }

    /// The named locals of `method` at the instruction at or around `address`; `None` without a PDB.
    pub(crate) fn locals(&self, method: &MethodName, address: Addr) -> Option<NamedLocals> {
        let (home, row) = (method.home?, method.token?.rid());
        let modules = self.namer.names()?.modules();
        let mut guard = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = &mut *guard;
        let symbols = Arc::clone(known.modules.entry(home).or_insert_with(|| modules.symbols(home)));
        let pdb = symbols.pdb.as_ref()?;
        if known.reads == 0 {
            return Some(NamedLocals::default());
        }
        let all = pdb.locals(row);
        known.reads = known.reads.saturating_sub(len64(all.len()) / ENTRIES_OF_A_READ);
        let il = self.debug_info.as_ref().map_or(Ok(None), |d| self.il_offset(known, d, address)).unwrap_or_else(|e| {
            known.lost.insert(address);
            known.why.get_or_insert(e);
            None
        });
        let mut names: BTreeMap<u32, Option<String>> = BTreeMap::new();
        // Inner scopes follow the scopes that contain them, so that their names replace the outer names.
        for local in all {
            let name = names.entry(local.slot).or_default();
            if il.is_some_and(|il| (local.scope.0..local.scope.1).contains(&il)) {
                *name = local.name;
            }
        }
        Some(NamedLocals { signature: pdb.local_signature(row), names })
    }

    fn find(&self, known: &mut LineCache, home: Addr, row: u32, address: Addr) -> Option<SourceLine> {
        let debug_info = self.debug_info.as_ref()?;
        let modules = self.namer.names()?.modules();
        let symbols = Arc::clone(known.modules.entry(home).or_insert_with(|| modules.symbols(home)));
        let pdb = symbols.pdb.as_ref()?;
        let size = Some(pdb.lines_bytes(row)).filter(|n| *n > 0)?;
        known.reads = known.reads.saturating_sub(size / POINTS_OF_A_READ);
        let il = self.il_offset(known, debug_info, address).unwrap_or_else(|e| {
            known.lost.insert(address);
            known.why.get_or_insert(e);
            None
        })?;
        let (document, line) = pdb.line(row, il)?;
        let file = known.files.entry((home, document)).or_insert_with(|| pdb.document(document).map(Name::from));
        Some(SourceLine { file: file.clone()?, line })
    }

    fn il_offset(&self, known: &mut LineCache, debug_info: &DebugInfo, address: Addr) -> Result<Option<u32>, StackError> {
        let mut reads = known.reads;
        let il = tried(|| reads::taking(&mut reads, || self.look_up(known, debug_info, address)));
        known.reads = reads;
        il
    }

    fn look_up(&self, known: &mut LineCache, debug_info: &DebugInfo, address: Addr) -> Result<Option<u32>, StackError> {
        let Ok(walker) = self.runtime.stack_walker() else { return Ok(None) };
        let Some(code) = walker.code().find(address)? else { return Ok(None) };
        let bounds = match known.bounds.get(&code.start) {
            Some(bounds) => bounds.clone(),
            None => {
                let bounds = debug_info.bounds(walker.code().bytes(), &code)?.map(Arc::new);
                known.bounds.insert(code.start, bounds.clone());
                bounds
            }
        };
        let Some(bounds) = bounds else { return Ok(None) };
        reads::take(bounds.count() / ENTRIES_OF_A_READ);
        Ok(offset(&code, address).and_then(|offset| bounds.il_offset(offset)))
    }

    /// Offset in bytes of the instruction at `address` in the code of the method at `desc`; `None` if the code is not found, or belongs to
    /// another method.
    pub(crate) fn offset(&self, desc: Addr, address: Addr) -> Option<u64> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(offset) = known.offsets.get(&address) {
            return *offset;
        }
        let mut reads = known.reads;
        let find = || {
            let Ok(walker) = self.runtime.stack_walker() else { return Ok(None) };
            let code = walker.code().find(address)?;
            Ok(code.filter(|code| code.method_desc == desc).map(|code| code.offset(address)))
        };
        let offset = if reads == 0 { Ok(None) } else { tried(|| reads::taking(&mut reads, find)) };
        known.reads = reads;
        let offset = offset.unwrap_or_else(|e| {
            known.unplaced.bump();
            known.why_unplaced.get_or_insert(e);
            None
        });
        known.offsets.insert(address, offset);
        offset
    }

    /// Reads the data that determines the source line of the code at `address`, even without a PDB, so that a copy of the dump will contain this
    /// data.
    pub(crate) fn touch(&self, address: Addr) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // The caller that requests lines reports failed reads.
        let _ = self.debug_info.as_ref().map(|d| self.il_offset(&mut known, d, address));
    }

    /// Adds notes on PDBs that were found but not used, and on lines and offsets that cannot be determined.
    pub(crate) fn note(&self, notes: &Collector) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (home, symbols) in &known.modules {
            let module = self.namer.names().map(|n| n.module(*home));
            let name = module.as_ref().and_then(|m| m.name.as_deref()).unwrap_or("a module");
            if let Some((path, why)) = symbols.refused.first() {
                let reason = NoteKind::ModuleMismatch.supplied_by(why.remedy);
                notes.add(reason, None, format!("{} is not used for source lines of {name}: {why}", path.display()));
            }
            if let Some(at) = symbols.absent.filter(|_| symbols.pdb.is_none()) {
                let what = format!("the debug information within {name} is not in the dump");
                notes.add(Missing::DebugInfo.supplied_by(Remedy::ModuleFile), at, what);
            }
        }
        if known.reads == 0 {
            notes.add(NoteKind::LimitHit, None, "the search for source lines took too many reads; further source lines are left out");
        }
        if let Some(why) = &known.why_unplaced {
            let frames =
                if known.unplaced == 1 { "the offset of a frame".into() } else { format!("the offsets of {} frames", known.unplaced) };
            notes.add(Missing::DebugInfo, why.address(), format!("{frames} cannot be determined: {why}"));
        }
        if let Some(why) = known.why.as_ref().filter(|_| known.reads > 0) {
            let frames = if known.lost.len() == 1 { "a source line".into() } else { format!("{} source lines", known.lost.len()) };
            notes.add(Missing::DebugInfo, why.address(), format!("{frames} cannot be determined: {why}"));
        }
    }
}

/// Offset of `address` in the code of its method.
fn offset(code: &Code, address: Addr) -> Option<u32> {
    u32::try_from(code.offset(address)).ok()
}
