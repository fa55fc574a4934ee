//! Sockets and their endpoints.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use crate::analysis::{PeerModel, SocketModel, SocketState};
use crate::base::{Addr, Collector, Count};
use crate::bcl::Library;
use crate::bcl::net::EndPoints;
use crate::clr::library::{fields_of, noted};

fields_of! {
    struct SocketFields {
        handle: req "_handle",
        local: req "_localEndPoint",
        remote: req "_remoteEndPoint",
        bound: req "_rightEndPoint",
        listening: req "_isListening",
        connected: req "_isConnected",
        // An `int` in .NET 8 and a `bool` later. The first byte is enough for both.
        disposed: req "_disposed",
    }
}

/// Describes the sockets in `found`.
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
        // For a client, `_rightEndPoint` is the remote end, and may be the only field that has it. For a listener and the sockets it accepts,
        // `_rightEndPoint` is the requested local end.
        let other = || if connected == Some(true) && listening == Some(false) { end(fields.bound) } else { None };
        SocketModel {
            object,
            handle: handle.map(u64::cast_signed),
            local: end(fields.local),
            remote: end(fields.remote).or_else(other),
            listening,
            connected,
            disposed: flag(fields.disposed),
            garbage: None,
        }
    };
    found.iter().map(|(object, _)| socket(*object)).collect()
}

/// Parses an endpoint. An IPv4 address mapped to IPv6 becomes an IPv4 address.
fn end(text: Option<&str>) -> Option<SocketAddr> {
    let end: SocketAddr = text?.parse().ok()?;
    Some(SocketAddr::new(end.ip().to_canonical(), end.port()))
}

/// The key of sockets that are counted together: state, remote end, local end.
type Peer = (SocketState, Option<String>, Option<String>);

/// Counts the sockets that are not garbage, by state and remote end. The largest groups come first.
pub(super) fn peers(sockets: &[SocketModel]) -> Vec<PeerModel> {
    let live = || sockets.iter().filter(|s| s.garbage != Some(true));
    // Local ports of services: ports of listening sockets, and ports with several connections, since each connection of a client has a different
    // local port.
    let mut ports: BTreeSet<u16> = BTreeSet::new();
    let mut connected: BTreeSet<u16> = BTreeSet::new();
    for socket in live() {
        if let Some(local) = end(socket.local.as_deref())
            && (socket.listening == Some(true) || socket.connected == Some(true) && !connected.insert(local.port()))
        {
            ports.insert(local.port());
        }
    }
    let mut counts: BTreeMap<Peer, (u64, Addr)> = BTreeMap::new();
    for socket in live() {
        let (local, remote) = (end(socket.local.as_deref()), end(socket.remote.as_deref()));
        let state = match (socket.disposed, socket.listening, socket.connected) {
            (Some(true), ..) => SocketState::Closed,
            (_, Some(true), _) => SocketState::Listening,
            (.., Some(true)) if local.is_some_and(|local| ports.contains(&local.port())) => SocketState::Accepted,
            (.., Some(true)) => SocketState::Connected,
            _ => SocketState::Unconnected,
        };
        let peer = match state {
            SocketState::Accepted => remote.map(|remote| remote.ip().to_string()),
            SocketState::Listening => None,
            _ => remote.map(|remote| remote.to_string()).or_else(|| socket.remote.clone()),
        };
        let own = matches!(state, SocketState::Accepted | SocketState::Listening);
        let local = local.filter(|_| own).map(|local| local.to_string());
        let (count, _) = counts.entry((state, peer, local)).or_insert((0, socket.object));
        count.bump();
    }
    let peer = |((state, peer, local), (count, example))| PeerModel { state, peer, local, count, example };
    let mut out: Vec<PeerModel> = counts.into_iter().map(peer).collect();
    out.sort_by_key(|p| Reverse(p.count));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_by_the_other_end() {
        let socket = |local: &str, remote: &str, listening: bool, disposed: bool, garbage: bool| SocketModel {
            object: Addr(8),
            handle: None,
            local: (!local.is_empty()).then(|| local.into()),
            remote: (!remote.is_empty()).then(|| remote.into()),
            listening: Some(listening),
            connected: Some(!remote.is_empty() && !disposed),
            disposed: Some(disposed),
            garbage: Some(garbage),
        };
        let sockets = [
            socket("[::]:80", "", true, false, false),
            socket("[::ffff:10.0.0.1]:80", "[::ffff:10.0.0.7]:4001", false, false, false),
            socket("[::ffff:10.0.0.1]:80", "10.0.0.7:4002", false, false, false),
            socket("10.0.0.1:80", "10.0.0.8:4002", false, false, false),
            socket("10.0.0.1:5001", "10.0.0.9:443", false, false, false),
            socket("", "10.0.0.9:443", false, false, false),
            socket("", "10.0.0.9:443", false, false, true),
            socket("", "10.0.0.9:443", false, true, false),
            socket("", "", false, false, false),
        ];
        let row = |p: &PeerModel| {
            let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
            format!("{} {} {} {}", p.count, p.state, text(&p.peer), text(&p.local))
        };
        let rows: Vec<String> = peers(&sockets).iter().map(row).collect();
        let expected = [
            "2 accepted 10.0.0.7 10.0.0.1:80",
            "2 connected 10.0.0.9:443 -",
            "1 listening - [::]:80",
            "1 accepted 10.0.0.8 10.0.0.1:80",
            "1 unconnected - -",
            "1 closed 10.0.0.9:443 -",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_shared_end_is_one_of_a_server() {
        let socket = |port: u16| SocketModel {
            object: Addr(8),
            handle: None,
            local: Some("10.0.0.1:80".into()),
            remote: Some(format!("10.0.0.2:{port}")),
            listening: Some(false),
            connected: Some(true),
            disposed: Some(false),
            garbage: None,
        };
        let found = peers(&[socket(1), socket(2)]);
        assert_eq!((found.len(), found[0].state, found[0].count), (1, SocketState::Accepted, 2));
        assert_eq!(peers(&[socket(1)])[0].state, SocketState::Connected);
    }
}
