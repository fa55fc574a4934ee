use serde::Serialize;

use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// How far an HTTP request has come.
    pub enum RequestState {
        /// A connection works on it.
        Sent = "sent",
        /// It waits for a connection.
        Queued = "queued",
        /// It was given to a handler, and an asynchronous method that has not ended refers to it.
        Waiting = "waiting",
    }
}

/// `requests`: HTTP requests of `HttpClient` in flight, connection pools, and sockets.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RequestsReport {
    /// The requests in flight.
    pub requests: Vec<RequestModel>,
    /// Requests on the heap that have a response, were never sent, or that nothing works on.
    pub others: u64,
    /// The connection pools of `SocketsHttpHandler`.
    pub pools: Vec<ConnectionPool>,
    /// The sockets.
    pub sockets: Vec<SocketModel>,
}

/// An HTTP request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RequestModel {
    /// The `HttpRequestMessage`.
    pub object: Addr,
    /// How far it has come.
    pub state: RequestState,
    /// `GET`, `POST` and the like.
    pub method: Option<String>,
    /// The URI as the program gave it.
    pub uri: Option<String>,
    /// The connection that works on it.
    pub connection: Option<Addr>,
    /// The connection's pool.
    pub pool: Option<Addr>,
    /// The asynchronous method that refers to it and has not ended.
    pub waiter: Option<Addr>,
    /// Asynchronous methods and tasks that go on one after the other once it has a response, innermost first, as in `async`. Where
    /// several wait for one, the first is followed.
    pub frames: Vec<RequestFrame>,
}

/// What waits for a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RequestFrame {
    /// The box of the method, or the task.
    pub object: Addr,
    /// The method; of a task, what it runs. As the compiler named it.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
}

/// A connection pool: one for each server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ConnectionPool {
    /// The `HttpConnectionPool`.
    pub object: Addr,
    /// The server: `example.com:443`.
    pub server: Option<String>,
    /// Connections on the heap.
    pub connections: u64,
    /// Of these, those that work on a request.
    pub busy: u64,
    /// Requests that wait for a connection.
    pub queued: u64,
}

impl ConnectionPool {
    /// Whether requests wait because every connection is busy.
    pub fn is_full(&self) -> bool {
        self.queued > 0 && self.busy >= self.connections
    }
}

/// A socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SocketModel {
    /// The `Socket`.
    pub object: Addr,
    /// Its handle: on Linux and macOS the file descriptor.
    pub handle: Option<i64>,
    /// This end; `null` until the program asked for it.
    pub local: Option<String>,
    /// The other end.
    pub remote: Option<String>,
    /// Whether it waits for connections.
    pub listening: Option<bool>,
    /// Whether it is connected.
    pub connected: Option<bool>,
    /// Whether it was disposed.
    pub disposed: Option<bool>,
}
