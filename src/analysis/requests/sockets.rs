//! Sockets with both ends.

use crate::base::{Addr, Collector};
use crate::bcl::Library;
use crate::bcl::net::EndPoints;
use crate::clr::library::{fields_of, noted};
use crate::model::SocketModel;

fields_of! {
    struct SocketFields {
        handle: req "_handle",
        local: req "_localEndPoint",
        remote: req "_remoteEndPoint",
        bound: req "_rightEndPoint",
        listening: req "_isListening",
        connected: req "_isConnected",
        // An `int` in .NET 8, a `bool` since: the first byte tells.
        disposed: req "_disposed",
    }
}

/// The sockets among `found`.
pub(super) fn sockets(library: &Library, found: &[(Addr, Addr)], notes: &Collector) -> Vec<SocketModel> {
    let Some((_, mt)) = found.first() else { return Vec::new() };
    let types = library.types();
    let Some(fields) = noted(SocketFields::bind(types, *mt), "sockets", notes) else { return Vec::new() };
    let ends = EndPoints::bind(library);
    let mut handle_field = None;
    let mut socket = |object: Addr| {
        let flag = |field| library.u8(object, field).map(|n| n != 0);
        let end = |field| library.reference(object, field).and_then(|end| ends.text(end));
        let handle = library.reference(object, fields.handle).and_then(|handle| {
            let field = match handle_field {
                Some(known) => known,
                None => *handle_field.insert(noted(types.field_at(library.method_table(handle)?, "handle"), "sockets", notes)?),
            };
            library.word(handle, field)
        });
        let (listening, connected) = (flag(fields.listening), flag(fields.connected));
        // A plain client has the other end only there; of a listener and what it accepted it is what was asked to bind.
        let other = || if connected == Some(true) && listening == Some(false) { end(fields.bound) } else { None };
        SocketModel {
            object,
            handle: handle.map(u64::cast_signed),
            local: end(fields.local),
            remote: end(fields.remote).or_else(other),
            listening,
            connected,
            disposed: flag(fields.disposed),
        }
    };
    found.iter().map(|(object, _)| socket(*object)).collect()
}
