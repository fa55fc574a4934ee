//! Numbers that lie near each other: the stretch that was read last is kept, so that most reads search nothing.

use super::Memory;
use crate::base::Addr;

/// A place of [`Memory`] that is read again and again.
#[derive(Clone, Debug)]
pub struct Window<'a> {
    memory: &'a Memory,
    start: u64,
    bytes: &'a [u8],
}

impl<'a> Window<'a> {
    /// A window that has seen nothing yet.
    pub fn new(memory: &'a Memory) -> Window<'a> {
        Window { memory, start: 0, bytes: &[] }
    }

    /// The 32-bit number at `address`; `None` where it is not in the dump.
    #[inline]
    pub fn u32(&mut self, address: Addr) -> Option<u32> {
        match self.chunk(address) {
            Some(bytes) => {
                self.memory.record(address, 4);
                u32::try_from(self.memory.shape().number(bytes)).ok()
            }
            None => self.elsewhere(address),
        }
    }

    #[inline]
    fn chunk(&self, address: Addr) -> Option<&'a [u8; 4]> {
        let offset = usize::try_from(address.0.checked_sub(self.start)?).ok()?;
        self.bytes.get(offset..)?.first_chunk()
    }

    #[cold]
    fn elsewhere(&mut self, address: Addr) -> Option<u32> {
        if let Some(bytes) = self.memory.contiguous(address) {
            (self.start, self.bytes) = (address.0, bytes);
        }
        // A number may lie across two stretches.
        self.memory.u32(address).ok()
    }
}
