//! Reads code, unwind info and GC info from the memory of the process, or from module files if the dump does not have them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::base::missed::{missed, tried};
use crate::base::reads;
use crate::base::{Addr, Collector, NoteKind, PAGE, Shape, len64};
use crate::clr::loader::Loader;
use crate::clr::modules::{ImageFile, Modules};
use crate::data::Source;
use crate::memory::{Memory, ReadError};

/// Maximum number of reads for finding the code at one address.
const OF_ONE: u64 = 1 << 20;
/// Maximum number of pages remembered as absent from the dump. The images of a large process have a few thousand pages of code.
const ABSENT: usize = 1 << 16;
/// Maximum number of reads for finding all code of an answer. Another read is allowed for every two bytes of the dump.
const OF_ALL: u64 = 1 << 23;

/// The read budget for the code look-ups of one answer. Without it, a forged dump in which each address leads to a list of maximum length would
/// take very long.
#[derive(Debug)]
pub(crate) struct LookUps {
    left: AtomicU64,
    cut: AtomicBool,
}

impl LookUps {
    /// The budget of one answer.
    pub(crate) fn new(memory: &Memory) -> LookUps {
        LookUps { left: AtomicU64::new(OF_ALL.saturating_add(memory.dump_bytes() / 2)), cut: AtomicBool::new(false) }
    }

    /// Runs `f`, which finds the code at one address, within the budget.
    pub(crate) fn one<T>(&self, f: impl FnOnce() -> T) -> T {
        let given = self.left.load(Ordering::Relaxed).min(OF_ONE);
        let mut left = given;
        let value = reads::taking(&mut left, f);
        if left == 0 {
            self.cut.store(true, Ordering::Relaxed);
        }
        let took = given.saturating_sub(left);
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(took)));
        value
    }

    /// Whether a look-up ended because the budget was used up.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Adds a note if look-ups ended because the budget was used up.
    pub(crate) fn note(&self, notes: &Collector) {
        if self.is_cut() {
            let why = "looking up code ended at its limit of reads: the code lists in the dump are longer than in a genuine dump";
            notes.add(NoteKind::LimitHit, None, why);
        }
    }
}

/// Reads code, unwind info and GC info.
#[derive(Clone, Debug)]
pub(crate) struct CodeBytes {
    memory: Arc<Memory>,
    files: Option<Arc<Files>>,
    /// Pages that were requested but are absent from the dump. A module file may have them.
    absent: Arc<Mutex<BTreeSet<Addr>>>,
}

/// The files of the modules, opened when a byte is first found to be missing from the dump.
#[derive(Debug)]
struct Files {
    modules: Modules,
    loader: Loader,
    /// The open files, sorted by address.
    open: OnceLock<Vec<ImageFile>>,
}

impl Files {
    fn at(&self, address: Addr) -> Option<&ImageFile> {
        let open = self.open.get_or_init(|| {
            let mut open: Vec<ImageFile> = tried(|| self.loader.modules().into_iter().filter_map(|m| self.modules.image_file(m)).collect());
            open.sort_by_key(|f| f.range.start);
            open
        });
        let last = open.partition_point(|f| f.range.start <= address).checked_sub(1)?;
        open.get(last).filter(|f| f.range.contains(address))
    }
}

impl CodeBytes {
    /// Reads only the memory of the process.
    pub(crate) fn new(memory: &Arc<Memory>) -> CodeBytes {
        CodeBytes { memory: Arc::clone(memory), files: None, absent: Arc::default() }
    }

    /// Reads the memory of the process, and the files of the modules that `loader` lists.
    pub(crate) fn with_files(memory: &Arc<Memory>, modules: Modules, loader: Loader) -> CodeBytes {
        let files = Files { modules, loader, open: OnceLock::new() };
        CodeBytes { memory: Arc::clone(memory), files: Some(Arc::new(files)), absent: Arc::default() }
    }

    /// The pages that were requested so far but are absent from the dump, by address. A module file may have them.
    pub(crate) fn absent_pages(&self) -> Vec<Addr> {
        self.absent.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// Remembers the page of `address` as absent from the dump.
    fn add_absent(&self, address: Addr) {
        let mut absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        if absent.len() < ABSENT {
            absent.insert(address.align_down(PAGE));
        }
    }

    /// The memory of the process.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Takes `reads` reads from the budget for work that is not a read, before the work is done.
    ///
    /// # Errors
    /// [`ReadError`] at `address` if fewer reads are left.
    pub(crate) fn afford(address: Addr, reads: u64) -> Result<(), ReadError> {
        reads::take(reads);
        if reads::exhausted() { Err(ReadError { address, len: 0 }) } else { Ok(()) }
    }

    /// The `len` bytes at `address`.
    ///
    /// # Errors
    /// Fails if a byte is in neither the dump nor a module file, or if no reads are [left](reads::bounded).
    pub(crate) fn bytes(&self, address: Addr, len: u64) -> Result<Cow<'_, [u8]>, ReadError> {
        if !reads::take_one() {
            return Err(ReadError { address, len });
        }
        tried(|| self.memory.bytes(address, len)).or_else(|e| match self.files.as_ref().and_then(|f| self.pieced(f, address, len)) {
            Some(bytes) => Ok(Cow::Owned(bytes)),
            None => {
                self.add_absent(e.address);
                missed(e.address, e.len);
                Err(e)
            }
        })
    }

    /// The pointer at `address` in an image's writable data, from the dump or, if the dump does not have it, from the module file. The process must
    /// not change this pointer, because the file has only its initial value.
    ///
    /// # Errors
    /// Fails if neither the dump nor the module file has the pointer.
    pub(crate) fn initial_pointer(&self, address: Addr) -> Result<Addr, ReadError> {
        let size = self.memory.ptr_bytes();
        tried(|| self.memory.ptr(address))
            .inspect_err(|e| self.add_absent(e.address))
            .or_else(|e| self.files.as_ref().and_then(|files| files.at(address)?.initial_pointer(address, size)).ok_or(e))
    }

    /// The 32-bit integer at `address`, in a table of an image that the process does not write, from the dump or the module file. The section of the table may
    /// be writable.
    ///
    /// # Errors
    /// Fails if neither the dump nor the module file has it.
    pub(crate) fn table_u32(&self, address: Addr) -> Result<u32, ReadError> {
        tried(|| self.u32(address)).or_else(|e| {
            let of_file = self.files.as_ref().and_then(|files| files.at(address)?.initial_u32(address));
            of_file.ok_or(e).inspect_err(|e| missed(e.address, e.len))
        })
    }

    /// Reads bytes page by page, each page from the dump or, if missing there, from a module file.
    fn pieced(&self, files: &Files, address: Addr, len: u64) -> Option<Vec<u8>> {
        let end = Addr(address.0.checked_add(len)?);
        files.at(address).or_else(|| files.at(end))?;
        let (mut out, mut at) = (Vec::new(), address);
        while at < end {
            let next = at.align_down(PAGE).plus(PAGE).min(end);
            let mut page = vec![0; usize::try_from(next.since(at)?).ok()?];
            if tried(|| self.memory.read(at, &mut page)).is_err() {
                self.add_absent(at);
                files.at(at)?.read(at, &mut page).then_some(())?;
            }
            out.append(&mut page);
            at = next;
        }
        Some(out)
    }

    /// Between 1 and `most` bytes at `address`: as many as can be read in one piece.
    ///
    /// # Errors
    /// Fails if neither the dump nor a file has the byte at `address`.
    pub(crate) fn some(&self, address: Addr, most: u64) -> Result<Cow<'_, [u8]>, ReadError> {
        if let Some(slice) = self.memory.slice(address, most) {
            return Ok(Cow::Borrowed(slice));
        }
        // Up to the end of the captured bytes or, if the byte is not captured, to the end of the page in the file.
        let page = address.align_down(PAGE).plus(PAGE).since(address).unwrap_or(1);
        let captured = self.memory.contiguous(address).map_or(page, |piece| len64(piece.len()));
        self.bytes(address, captured.min(most).max(1)).or_else(|_| self.bytes(address, 1))
    }

    fn array<const N: usize>(&self, address: Addr) -> Result<[u8; N], ReadError> {
        let mut out = [0; N];
        let len = u64::try_from(N).unwrap_or(u64::MAX);
        let bytes = self.bytes(address, len)?;
        out.iter_mut().zip(bytes.iter()).for_each(|(to, from)| *to = *from);
        Ok(out)
    }

    /// The byte at `address`.
    ///
    /// # Errors
    /// Fails if neither the dump nor a file has it.
    pub(crate) fn u8(&self, address: Addr) -> Result<u8, ReadError> {
        self.array::<1>(address).map(|[b]| b)
    }

    /// The 16-bit integer at `address`.
    ///
    /// # Errors
    /// Fails if neither the dump nor a file has it.
    pub(crate) fn u16(&self, address: Addr) -> Result<u16, ReadError> {
        self.array(address).map(u16::from_le_bytes)
    }

    /// The 32-bit integer at `address`.
    ///
    /// # Errors
    /// Fails if neither the dump nor a file has it.
    pub(crate) fn u32(&self, address: Addr) -> Result<u32, ReadError> {
        self.array(address).map(u32::from_le_bytes)
    }

    /// The 64-bit integer at `address`.
    ///
    /// # Errors
    /// Fails if neither the dump nor a file has it.
    pub(crate) fn u64(&self, address: Addr) -> Result<u64, ReadError> {
        self.array(address).map(u64::from_le_bytes)
    }
}

impl Source for CodeBytes {
    fn uint<const N: usize>(&self, at: Addr) -> Result<u64, ReadError> {
        self.array::<N>(at).map(|bytes| Shape::LE64.number(&bytes))
    }

    fn word(&self, at: Addr) -> Result<u64, ReadError> {
        self.u64(at)
    }
}
