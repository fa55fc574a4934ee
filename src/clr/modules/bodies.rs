//! Headers of IL method bodies, which have the signature of the locals (ECMA-335 II.25.4).

use std::sync::Arc;

use super::{MAX_IMAGE, Modules, Reader};
use crate::base::missed::watched;
use crate::base::{Addr, Token, TokenTable, len64};
use crate::clr::metadata::Source;
use crate::clr::pe::Headers;

/// Values of the two lowest bits of a header. A method with a tiny header has no locals. A fat header has a token for the locals.
const TINY: u8 = 2;
const FAT: u8 = 3;
/// Offset of the token in a fat header.
const LOCALS: u64 = 8;

/// Flag of a module that can be edited at run time (`IS_EDIT_AND_CONTINUE`, ceeload.h).
const EDITABLE: u32 = 8;

impl Modules {
    /// The row in StandAloneSig with the types of a method's locals; 0 if the method has no locals. The IL body is at `rva` in the module at
    /// `address`, in the dump or in the module's file.
    pub(crate) fn local_signature(&self, address: Addr, rva: u32) -> Option<u32> {
        self.reader.local_signature(address, rva)
    }

    /// Whether hot reload may have replaced IL of the module at `address`.
    pub(crate) fn is_editable(&self, address: Addr) -> bool {
        let reader = &self.reader;
        let flags = reader.module.as_ref().and_then(|fields| fields.get(&reader.memory, address, crate::data::Module::Flags));
        flags.is_none_or(|flags| flags & EDITABLE != 0)
    }
}

impl Reader {
    fn local_signature(&self, address: Addr, rva: u32) -> Option<u32> {
        let image = self.image_of(address)?;
        let (found, missed) = watched(|| {
            let source = Source::Memory { memory: Arc::clone(&self.memory), base: image.base, len: MAX_IMAGE };
            let headers = Headers::read(&source)?;
            let flat = headers.is_flat(&source);
            local_signature(&source, u64::from(if flat { headers.file_offset(rva)? } else { rva }))
        });
        let in_file = || {
            let bytes = self.usable_file(address, image)?.open().ok()?;
            let source = Source::File { len: len64(bytes.len()), bytes, offset: 0 };
            local_signature(&source, u64::from(Headers::read(&source)?.file_offset(rva)?))
        };
        let found = found.or_else(in_file);
        if found.is_none() {
            missed.tell();
        }
        found
    }
}

fn local_signature(source: &Source, at: u64) -> Option<u32> {
    match source.u8(at)? & 3 {
        TINY => Some(0),
        FAT => {
            let token = Token::from_bits(source.u32(at.checked_add(LOCALS)?)?);
            (token == Token::NIL || token.table() == Some(TokenTable::StandAloneSig)).then_some(token.rid())
        }
        _ => None,
    }
}
