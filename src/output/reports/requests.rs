//! The answer of `requests`: incoming and outgoing requests, connection pools, and sockets.

use crate::analysis::{ConnectionPool, PeerModel, RequestDirection, RequestModel, RequestsReport, SocketModel};
use crate::base::{Name, is_of_framework};
use crate::output::Paging;
use crate::output::columns::{Columns, columns};
use crate::output::plural;
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

/// All columns, for CSV.
fn all_columns<'r>() -> Columns<'r, RequestModel> {
    columns![
        RequestModel,
        word(direction, 9),
        address(object),
        word(state, 10),
        text(method, 8),
        text(uri, 80),
        text(protocol, 8),
        text(start_utc, 24),
        count(age_ms),
        text(connection_id, 13),
        text(remote, 30),
        text(endpoint, 60),
        address(connection),
        address(pool),
        address(waiter),
        text("waits_for", 80, waits_for),
        count(thread),
        text("chain", 120, |r| chain(r, true))
    ]
}

fn incoming_columns<'r>(framework: bool) -> Columns<'r, &'r RequestModel> {
    columns![
        &RequestModel,
        address(object).keep(8),
        word(state, 10).keep(7),
        text("age", 8, |r| r.age_ms.map(age)).keep(8),
        text(method, 8).whole().keep(7),
        text("path" = uri, 60).path().keep(9),
        text(protocol, 8).keep(4),
        text("connection" = connection_id, 13).keep(3),
        text(remote, 30),
        text("waits_for", 40, |r| waits_for(r)).keep(9),
        text("chain", 120, move |r| chain(r, framework)).lines(3).least(24).keep(10)
    ]
}

fn outgoing_columns<'r>(framework: bool) -> Columns<'r, &'r RequestModel> {
    columns![
        &RequestModel,
        address(object).keep(8),
        word(state, 8).keep(9),
        text(method, 8).whole().keep(7),
        text(uri, 80).path().keep(9),
        address(connection).keep(3),
        address(pool).keep(2),
        text("chain", 120, move |r| chain(r, framework)).lines(3).keep(10)
    ]
}

/// Describes the root of a request's chain, or the thread that works on the request.
fn waits_for(request: &RequestModel) -> Option<String> {
    let root = request.waits_for.as_ref().map(|root| format!("{}: {}", root.kind, root.label.shown()));
    match request.thread {
        Some(id) => Some(format!("runs on thread {id}")),
        None => root,
    }
}

/// Formats an age for people: `3.5 s`, `12 min`.
fn age(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..120 => format!("{seconds}.{} s", ms % 1_000 / 100),
        120..7_200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3_600),
    }
}

/// Lists the methods of the program that wait for a request or serve it. Methods of the framework add little and are included only if
/// `framework`.
fn chain(request: &RequestModel, framework: bool) -> Option<String> {
    let methods = request.frames.iter().filter_map(|f| f.method.as_ref());
    let own: Vec<&str> = methods.map(Name::shown).filter(|m| framework || !is_of_framework(m)).collect();
    (!own.is_empty()).then(|| own.join(" ← "))
}

fn pool_columns<'r>() -> Columns<'r, ConnectionPool> {
    columns![ConnectionPool, address(object), count(connections), count(busy), count(queued), text(server, 60)]
}

fn socket_columns<'r>() -> Columns<'r, SocketModel> {
    columns![
        SocketModel,
        address(object),
        text("handle", 8, |s| s.handle.map(|n| n.to_string())),
        text(local, 30),
        text(remote, 30),
        word(listening, 9),
        word(connected, 9),
        word(disposed, 8),
        word(garbage, 7)
    ]
}

fn peer_columns<'r>() -> Columns<'r, PeerModel> {
    columns![PeerModel, count(count), word(state, 11), text(peer, 40), text(local, 40), address(example)]
}

impl Report for RequestsReport {
    fn page(&mut self, to: &mut Paging) {
        self.not_listed = to.whole_list("requests", &mut self.requests, &all_columns());
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.table(Table::records("request", &self.requests, all_columns()).csv(true).shown(false));
        let of = |direction| self.requests.iter().filter(move |r| r.direction == direction).collect::<Vec<_>>();
        let (incoming, outgoing) = (of(RequestDirection::Incoming), of(RequestDirection::Outgoing));
        let (is_served, is_sent) = (!incoming.is_empty(), !outgoing.is_empty());
        to.titled("Incoming requests", is_served, Table::new(incoming, incoming_columns(to.view.framework)).shown(is_served));
        // Without incoming requests, the table needs no title.
        let outgoing = Table::new(outgoing, outgoing_columns(to.view.framework)).shown(is_sent);
        if is_served {
            to.titled("Outgoing requests", is_sent, outgoing)
        } else {
            to.table(outgoing)
        }
        to.not_listed(self.not_listed, "request");
        let pools = Table::records("connection-pool", &self.pools, pool_columns()).shown(!self.pools.is_empty());
        to.titled("Connection pools", !self.pools.is_empty(), pools);
        let peers = Table::records("peer", &self.peers, peer_columns()).shown(!self.peers.is_empty());
        to.titled("Connections by peer", !self.peers.is_empty(), peers);
        let sockets = Table::records("socket", &self.sockets, socket_columns()).shown(!self.sockets.is_empty());
        to.titled("Sockets", !self.sockets.is_empty(), sockets);
        to.gap_if(!(self.requests.is_empty() && self.pools.is_empty() && self.sockets.is_empty()));
        for pool in self.pools.iter().filter(|p| p.is_full()) {
            let server = pool.server.as_deref().unwrap_or("?");
            to.alarm(format!("All connections to {server} are busy; {} queued", plural(pool.queued, "request")));
        }
        let all = crate::base::len64(self.requests.len()).saturating_add(self.not_listed.unwrap_or(0));
        to.line(format!("{} in flight, {} on the heap", plural(all, "request"), plural(self.others, "other")));
    }
}
