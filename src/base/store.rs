//! Storage for large arrays: memory, or mapped temporary files if a memory limit requires them.
//!
//! The disk may fill up at any time, but most code that builds the heap graph does not return errors. So code that runs out of room unwinds
//! like [cancelled work](super::cancel), up to the call of [`caught`] that requested the answer.
//!
//! No crate is used, because a [`Buffer`] must be able to be either a vector or a mapped temporary file. Each algorithm of `src/graph` is then
//! written only once.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::Arc;

use bytemuck::Pod;

use super::array::Array;
use super::cancel;
use super::in_units;

/// Arrays of at most this size in bytes always stay in memory. The limit is 1 in unit tests, whose arrays are small.
const SMALL: usize = if cfg!(test) { 1 } else { 8 << 10 };

/// The error if a temporary file that replaces memory cannot be created or extended.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the graph exceeds the memory limit, and {} in {}", file_of(*bytes), folder.display())]
pub struct NoRoom {
    /// The folder of the temporary file.
    pub folder: PathBuf,
    /// Requested size of the file in bytes; 0 if the file could not be created.
    pub bytes: u64,
    /// The error of the operating system.
    pub source: Arc<io::Error>,
}

fn file_of(bytes: u64) -> String {
    match bytes {
        0 => "a temporary file cannot be created".into(),
        bytes => format!("there is no room for a temporary file of {}", in_units(bytes)),
    }
}

impl NoRoom {
    /// Unwinds the work of this thread up to [`caught`].
    fn raise(self) -> ! {
        cancel::raise(self)
    }
}

/// Runs `work` and returns its value, unless it unwinds with [`NoRoom`].
///
/// # Errors
/// [`NoRoom`].
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, NoRoom> {
    cancel::caught(work)
}

/// A temporary file mapped at a page-aligned address.
pub trait Region: fmt::Debug + Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];

    /// The bytes, mutably.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// Grows the file to `bytes` bytes; new bytes are zero. The space must be allocated, so that later writes to the file cannot fail.
    ///
    /// # Errors
    /// [`NoRoom`]; the previous contents may be lost.
    fn grow(&mut self, bytes: usize) -> Result<(), NoRoom>;
}

/// Makes temporary files.
pub trait Files: fmt::Debug + Send + Sync {
    /// An empty file, which is deleted when the region is dropped.
    ///
    /// # Errors
    /// [`NoRoom`].
    fn region(&self) -> Result<Box<dyn Region>, NoRoom>;
}

/// The place where large arrays are stored: memory by default.
#[derive(Clone, Debug, Default)]
pub struct Store(Option<Arc<dyn Files>>);

impl Store {
    /// A store in temporary files.
    pub fn in_files(files: Arc<dyn Files>) -> Store {
        Store(Some(files))
    }

    /// Whether arrays are stored in files.
    pub fn is_in_files(&self) -> bool {
        self.0.is_some()
    }
}

enum At<T> {
    Memory(Vec<T>),
    /// A file, and the number of items at its start that are in use.
    File(Box<dyn Region>, usize),
}

/// An array of numbers that can be modified. If the [`Store`] uses files, a buffer that becomes large moves from memory to a file.
pub struct Buffer<T> {
    at: At<T>,
    store: Store,
}

impl<T: Pod> Buffer<T> {
    /// An empty buffer.
    pub fn new(store: &Store) -> Buffer<T> {
        Buffer { at: At::Memory(Vec::new()), store: store.clone() }
    }

    /// An empty buffer with room for `items`.
    pub fn with_capacity(store: &Store, items: usize) -> Buffer<T> {
        let mut buffer = Buffer::new(store);
        buffer.reserve_exact(items);
        buffer
    }

    /// `len` zeros.
    pub fn zeroed(store: &Store, len: usize) -> Buffer<T> {
        if !store.is_in_files() || Buffer::<T>::bytes(len) <= SMALL {
            return Buffer { at: At::Memory(vec![T::zeroed(); len]), store: store.clone() };
        }
        let mut buffer = Buffer::new(store);
        buffer.move_to_file(len);
        if let At::File(_, items) = &mut buffer.at {
            *items = len;
        }
        buffer
    }

    /// A buffer of the items that the iterator yields.
    pub fn collected(store: &Store, items: impl Iterator<Item = T>) -> Buffer<T> {
        let mut buffer = Buffer::with_capacity(store, items.size_hint().0);
        buffer.extend(items);
        buffer
    }

    /// The store that the buffer uses.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Appends an item.
    #[inline(always)]
    pub fn push(&mut self, item: T) {
        match &mut self.at {
            At::Memory(items) if items.len() < items.capacity() => items.push(item),
            _ => self.push_elsewhere(item),
        }
    }

    #[cold]
    #[inline(never)]
    fn push_elsewhere(&mut self, item: T) {
        self.reserve(1);
        match &mut self.at {
            At::Memory(items) => items.push(item),
            At::File(region, len) => {
                write_at(region.as_mut(), *len, &[item]);
                *len = len.saturating_add(1);
            }
        }
    }

    /// Appends all items of `more`.
    pub fn extend_from_slice(&mut self, more: &[T]) {
        self.reserve(more.len());
        match &mut self.at {
            At::Memory(items) => items.extend_from_slice(more),
            At::File(region, len) => {
                write_at(region.as_mut(), *len, more);
                *len = len.saturating_add(more.len());
            }
        }
    }

    /// Drops all items after the first `len`.
    pub fn truncate(&mut self, len: usize) {
        match &mut self.at {
            At::Memory(items) => items.truncate(len),
            At::File(_, items) => *items = len.min(*items),
        }
    }

    /// Reserves room for exactly `more` items.
    pub fn reserve_exact(&mut self, more: usize) {
        self.make_room(more, 0);
    }

    fn reserve(&mut self, more: usize) {
        self.make_room(more, self.len() / 2);
    }

    /// Reserves room for `more` items. If the buffer has to move or a file has to grow, reserves room for `beyond` further items, because each
    /// move costs time.
    fn make_room(&mut self, more: usize, beyond: usize) {
        let needed = self.len().saturating_add(more);
        let room = needed.saturating_add(beyond);
        match &mut self.at {
            At::Memory(items) if items.capacity() >= needed => {}
            At::Memory(_) if self.store.is_in_files() && Buffer::<T>::bytes(needed) > SMALL => self.move_to_file(room),
            At::Memory(items) if beyond > 0 => items.reserve(more),
            At::Memory(items) => items.reserve_exact(more),
            At::File(region, _) => {
                if region.bytes().len() < Buffer::<T>::bytes(needed) {
                    region.grow(Buffer::<T>::bytes(room)).unwrap_or_else(|full| full.raise());
                }
            }
        }
    }

    fn move_to_file(&mut self, room: usize) {
        let (At::Memory(items), Some(files)) = (&self.at, &self.store.0) else { return };
        let mut region = files.region().unwrap_or_else(|full| full.raise());
        region.grow(Buffer::<T>::bytes(room)).unwrap_or_else(|full| full.raise());
        write_at(region.as_mut(), 0, items);
        self.at = At::File(region, items.len());
    }

    const fn bytes(items: usize) -> usize {
        items.saturating_mul(size_of::<T>())
    }
}

/// Writes items at an index. The region must have room for them.
fn write_at<T: Pod>(region: &mut dyn Region, index: usize, items: &[T]) {
    let bytes: &[u8] = bytemuck::cast_slice(items);
    let from = index.saturating_mul(size_of::<T>());
    if let Some(to) = region.bytes_mut().get_mut(from..from.saturating_add(bytes.len())) {
        to.copy_from_slice(bytes);
    }
}

impl<T: Pod + Send + Sync> Buffer<T> {
    /// Converts the buffer to a read-only array without copying the items.
    pub(crate) fn freeze(self) -> Array<T> {
        match self.at {
            At::Memory(items) => items.into(),
            At::File(region, len) => Array::of_bytes(Arc::new(Frozen(region)), 0..Buffer::<T>::bytes(len)).unwrap_or_default(),
        }
    }
}

struct Frozen(Box<dyn Region>);

impl Deref for Frozen {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl<T: Pod> Deref for Buffer<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        match &self.at {
            At::Memory(items) => items,
            At::File(region, len) => region.bytes().get(..Buffer::<T>::bytes(*len)).map_or(&[], bytemuck::cast_slice),
        }
    }
}

impl<T: Pod> DerefMut for Buffer<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.at {
            At::Memory(items) => items,
            At::File(region, len) => region.bytes_mut().get_mut(..Buffer::<T>::bytes(*len)).map_or(&mut [], bytemuck::cast_slice_mut),
        }
    }
}

impl<T: Pod> Extend<T> for Buffer<T> {
    fn extend<S: IntoIterator<Item = T>>(&mut self, items: S) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T: Pod> Default for Buffer<T> {
    fn default() -> Buffer<T> {
        Buffer::new(&Store::default())
    }
}

impl<T: Pod> From<Vec<T>> for Buffer<T> {
    fn from(items: Vec<T>) -> Buffer<T> {
        Buffer { at: At::Memory(items), store: Store::default() }
    }
}

impl<T: Pod> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} items)", self.len())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Test double: a file whose contents stay in memory.
    #[derive(Debug)]
    struct Words(Vec<u64>);

    impl Region for Words {
        fn bytes(&self) -> &[u8] {
            bytemuck::cast_slice(&self.0)
        }

        fn bytes_mut(&mut self) -> &mut [u8] {
            bytemuck::cast_slice_mut(&mut self.0)
        }

        fn grow(&mut self, bytes: usize) -> Result<(), NoRoom> {
            self.0.resize(bytes.div_ceil(8), 0);
            Ok(())
        }
    }

    /// Test double: makes files if there is room.
    #[derive(Debug)]
    struct Disk(bool);

    impl Files for Disk {
        fn region(&self) -> Result<Box<dyn Region>, NoRoom> {
            let full = || NoRoom { folder: "here".into(), bytes: 0, source: Arc::new(io::ErrorKind::StorageFull.into()) };
            if self.0 { Ok(Box::new(Words(Vec::new()))) } else { Err(full()) }
        }
    }

    /// Test double: file-backed arrays that stay in memory.
    pub(crate) fn stand_in() -> Store {
        Store::in_files(Arc::new(Disk(true)))
    }

    #[test]
    fn items_survive_the_move_to_a_file_and_its_growth() {
        let mut buffer = Buffer::<u16>::new(&stand_in());
        for n in 0..1000 {
            buffer.push(n);
            assert!(matches!(buffer.at, At::File(..)) && buffer.iter().copied().eq(0..=n));
        }
        buffer.extend_from_slice(&[5; 3]);
        buffer.reserve_exact(10_000);
        buffer.extend([6]);
        assert!(buffer.iter().copied().eq((0..1000).chain([5, 5, 5, 6])));
        buffer.truncate(2);
        buffer.push(9);
        assert_eq!(*buffer.freeze(), [0, 1, 9]);
        assert_eq!(*Buffer::<[u32; 3]>::zeroed(&stand_in(), 2), [[0; 3]; 2]);
        assert!(matches!(Buffer::collected(&Store::default(), 0..9u8).at, At::Memory(_)));
    }

    #[test]
    fn work_ends_when_there_is_no_room() {
        let store = Store::in_files(Arc::new(Disk(false)));
        let full = caught(|| Buffer::collected(&store, 0..9u32).len()).unwrap_err();
        assert!(full.to_string().contains("cannot be created in here"), "{full}");
        assert_eq!(caught(|| 7).ok(), Some(7));
    }

    #[test]
    #[should_panic(expected = "another reason")]
    fn panics_are_passed_on() {
        let _ = caught(|| panic!("another reason"));
    }
}
