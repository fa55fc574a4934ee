//! Code and what describes it: the memory of the process, with pages of module files where the dump lacks them.

use std::borrow::Cow;
use std::sync::Arc;

use crate::base::{Addr, len64};
use crate::memory::{Memory, ReadError};

/// Reads code, unwind info and GC info.
#[derive(Clone, Debug)]
pub(crate) struct CodeBytes {
    memory: Arc<Memory>,
}

impl CodeBytes {
    /// The memory of the process alone.
    pub(crate) fn new(memory: &Arc<Memory>) -> CodeBytes {
        CodeBytes { memory: Arc::clone(memory) }
    }

    /// The memory of the process.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// The `len` bytes at `address`.
    ///
    /// # Errors
    /// Fails if neither the dump nor a file has them all.
    pub(crate) fn bytes(&self, address: Addr, len: u64) -> Result<Cow<'_, [u8]>, ReadError> {
        self.memory.bytes(address, len)
    }

    /// Between 1 and `most` of the bytes at `address`: those that can be had in one piece.
    ///
    /// # Errors
    /// Fails if neither the dump nor a file has the byte at `address`.
    pub(crate) fn some(&self, address: Addr, most: u64) -> Result<Cow<'_, [u8]>, ReadError> {
        if let Some(slice) = self.memory.slice(address, most) {
            return Ok(Cow::Borrowed(slice));
        }
        let captured = self.memory.contiguous(address).map_or(0, |piece| len64(piece.len()));
        self.bytes(address, captured.min(most).max(1))
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
