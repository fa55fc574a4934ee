use crate::base::{Name, is_of_framework};
use crate::model::{ConnectionPool, PeerModel, RequestDirection, RequestModel, RequestsReport, SocketModel};
use crate::output::Paging;
use crate::output::report::{Report, Sections};
use crate::output::table::{Columns, Table, columns};
use crate::output::{count, plural};

fn yes(b: Option<bool>) -> Option<&'static str> {
    b.map(|b| if b { "true" } else { "false" })
}

/// All columns, for CSV.
fn all_columns<'r>() -> Columns<'r, RequestModel> {
    columns::<RequestModel>()
        .text("direction", 9, |r| r.direction.name())
        .address("object", |r| r.object)
        .text("state", 10, |r| r.state.name())
        .text_or_none("method", 8, |r| r.method.as_deref())
        .text_or_none("uri", 80, |r| r.uri.as_deref())
        .text_or_none("protocol", 8, |r| r.protocol.as_deref())
        .text_or_none("start_utc", 24, |r| r.start_utc.as_deref())
        .count("age_ms", |r| r.age_ms)
        .text_or_none("connection_id", 13, |r| r.connection_id.as_deref())
        .text_or_none("remote", 30, |r| r.remote.as_deref())
        .text_or_none("endpoint", 60, |r| r.endpoint.as_deref())
        .address("connection", |r| r.connection)
        .address("pool", |r| r.pool)
        .address("waiter", |r| r.waiter)
        .made("waits_for", 80, waits_for)
        .count("thread", |r| r.thread.map(u64::from))
        .made("chain", 120, |r| chain(r, true))
}

fn incoming_columns<'r>(framework: bool) -> Columns<'r, &'r RequestModel> {
    columns::<&RequestModel>()
        .address("object", |r| r.object)
        .keep(8)
        .text("state", 10, |r| r.state.name())
        .whole()
        .keep(7)
        .made("age", 8, |r| r.age_ms.map(age))
        .keep(8)
        .text_or_none("method", 8, |r| r.method.as_deref())
        .whole()
        .keep(7)
        .text_or_none("path", 60, |r| r.uri.as_deref())
        .path()
        .keep(9)
        .text_or_none("protocol", 8, |r| r.protocol.as_deref())
        .keep(4)
        .text_or_none("connection", 13, |r| r.connection_id.as_deref())
        .keep(3)
        .text_or_none("remote", 30, |r| r.remote.as_deref())
        .made("waits_for", 40, |r| waits_for(r))
        .keep(8)
        .made("chain", 120, move |r| chain(r, framework))
        .lines(3)
        .keep(6)
}

fn outgoing_columns<'r>(framework: bool) -> Columns<'r, &'r RequestModel> {
    columns::<&RequestModel>()
        .address("object", |r| r.object)
        .keep(8)
        .text("state", 8, |r| r.state.name())
        .whole()
        .keep(9)
        .text_or_none("method", 8, |r| r.method.as_deref())
        .whole()
        .keep(7)
        .text_or_none("uri", 80, |r| r.uri.as_deref())
        .path()
        .keep(9)
        .address("connection", |r| r.connection)
        .keep(3)
        .address("pool", |r| r.pool)
        .keep(2)
        .made("chain", 120, move |r| chain(r, framework))
        .lines(3)
        .keep(8)
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
    columns::<ConnectionPool>()
        .address("object", |p| p.object)
        .count("connections", |p| p.connections)
        .count("busy", |p| p.busy)
        .count("queued", |p| p.queued)
        .text_or_none("server", 60, |p| p.server.as_deref())
}

fn socket_columns<'r>() -> Columns<'r, SocketModel> {
    columns::<SocketModel>()
        .address("object", |s| s.object)
        .made("handle", 8, |s| s.handle.map(|n| n.to_string()))
        .text_or_none("local", 30, |s| s.local.as_deref())
        .text_or_none("remote", 30, |s| s.remote.as_deref())
        .text_or_none("listening", 9, |s| yes(s.listening))
        .text_or_none("connected", 9, |s| yes(s.connected))
        .text_or_none("disposed", 8, |s| yes(s.disposed))
        .text_or_none("garbage", 7, |s| yes(s.garbage))
}

fn peer_columns<'r>() -> Columns<'r, PeerModel> {
    columns::<PeerModel>()
        .count("count", |p| p.count)
        .text("state", 11, |p| p.state.name())
        .whole()
        .text_or_none("peer", 40, |p| p.peer.as_deref())
        .text_or_none("local", 40, |p| p.local.as_deref())
        .address("example", |p| p.example)
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
        to.titled("Incoming requests", is_served, Table::new(incoming, incoming_columns(self.framework)).shown(is_served));
        // Without incoming requests, the table needs no title.
        let outgoing = Table::new(outgoing, outgoing_columns(self.framework)).shown(is_sent);
        if is_served {
            to.titled("Outgoing requests", is_sent, outgoing)
        } else {
            to.table(outgoing)
        }
        to.not_listed(self.not_listed, "requests");
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
        to.line(format!("{} in flight, {} others on the heap", plural(all, "request"), count(self.others)));
    }
}
