use crate::base::Name;
use crate::model::{ConnectionPool, RequestModel, RequestsReport, SocketModel};
use crate::output::plural;
use crate::output::report::{Report, Sections};
use crate::output::table::{Columns, Readers, Table, columns};

fn yes(b: Option<bool>) -> Option<&'static str> {
    b.map(|b| if b { "true" } else { "false" })
}

fn request_columns<'r>() -> Columns<'r, RequestModel> {
    columns::<RequestModel>()
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
        .address("waiter", |r| r.waiter)
        .only(Readers::Machines)
        .made("chain", 120, chain)
        .lines(3)
        .keep(8)
}

/// The methods of the program that wait for a request: those of .NET's own library tell little.
fn chain(request: &RequestModel) -> Option<String> {
    let methods = request.frames.iter().filter_map(|f| f.method.as_ref());
    let own: Vec<&str> = methods.map(Name::shown).filter(|m| !m.starts_with("System.")).collect();
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
}

impl Report for RequestsReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.table(Table::records("request", &self.requests, request_columns()).csv(true).shown(!self.requests.is_empty()));
        let pools = Table::records("connection-pool", &self.pools, pool_columns()).shown(!self.pools.is_empty());
        to.titled("Connection pools", !self.pools.is_empty(), pools);
        let sockets = Table::records("socket", &self.sockets, socket_columns()).shown(!self.sockets.is_empty());
        to.titled("Sockets", !self.sockets.is_empty(), sockets);
        to.gap_if(!(self.requests.is_empty() && self.pools.is_empty() && self.sockets.is_empty()));
        for pool in self.pools.iter().filter(|p| p.is_full()) {
            let server = pool.server.as_deref().unwrap_or("?");
            to.alarm(format!("All connections to {server} are busy; {} wait", plural(pool.queued, "request")));
        }
        to.line(format!("{} in flight, {} others", plural(crate::base::len64(self.requests.len()), "request"), self.others));
    }
}
