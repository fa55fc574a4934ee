//! Reads with locality: keeps the last contiguous piece, so that most reads skip the lookup.

use super::Memory;
use crate::base::Addr;

/// A cursor over [`Memory`] for reads that are close to each other.
#[derive(Clone, Debug)]
pub struct Window<'a> {
    memory: &'a Memory,
    start: u64,
    bytes: &'a [u8],
}

impl<'a> Window<'a> {
    /// An empty window.
    pub(crate) fn new(memory: &'a Memory) -> Window<'a> {
        Window { memory, start: 0, bytes: &[] }
    }

    /// The 32-bit integer at `address`; `None` if it is absent.
    #[inline]
    pub(crate) fn u32(&mut self, address: Addr) -> Option<u32> {
        match self.chunk(address) {
            Some(bytes) => {
                self.memory.record(address, 4);
                u32::try_from(self.memory.shape().number(bytes)).ok()
            }
            None => self.miss(address),
        }
    }

    #[inline]
    fn chunk(&self, address: Addr) -> Option<&'a [u8; 4]> {
        let offset = usize::try_from(address.0.checked_sub(self.start)?).ok()?;
        self.bytes.get(offset..)?.first_chunk()
    }

    #[cold]
    fn miss(&mut self, address: Addr) -> Option<u32> {
        if let Some(bytes) = self.memory.contiguous(address) {
            (self.start, self.bytes) = (address.0, bytes);
        }
        // The integer may span two pieces.
        self.memory.u32(address).ok()
    }
}
