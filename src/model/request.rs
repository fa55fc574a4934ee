use serde::Serialize;

use super::AsyncRoot;
use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// The side of an HTTP request that the process is on.
    pub enum RequestDirection {
        /// The process serves it, with ASP.NET Core.
        Incoming = "incoming",
        /// The process sent it, or is about to, with `HttpClient`.
        Outgoing = "outgoing",
    }
}

named_enum! {
    /// How far an HTTP request has come: of incoming ones `processing`, `responding` and `upgraded`, of outgoing ones the others.
    pub enum RequestState {
        /// A connection works on it.
        Sent = "sent",
        /// It waits for a connection.
        Queued = "queued",
        /// It was given to a handler, and an asynchronous method that has not ended refers to it.
        Waiting = "waiting",
        /// The application works on it and has not sent headers of the response.
        Processing = "processing",
        /// The headers of the response are sent, or about to be, and the application has not ended.
        Responding = "responding",
        /// The connection, or the stream of HTTP/2, carries another protocol now: a WebSocket as a rule, SignalR's included.
        Upgraded = "upgraded",
    }
}

/// `requests`: HTTP requests in flight, incoming ones of ASP.NET Core and outgoing ones of `HttpClient`, connection pools, and sockets.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RequestsReport {
    /// The requests in flight: incoming ones, oldest first, then outgoing ones.
    pub requests: Vec<RequestModel>,
    /// With `--top`: number of requests that are not listed, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_listed: Option<u64>,
    /// Requests on the heap that have a response, were never sent, or that nothing works on. Of incoming ones, `HttpContext`s that have
    /// ended and wait to be used again, or to be collected.
    pub others: u64,
    /// The connection pools of `SocketsHttpHandler`; none where only incoming requests are asked for, as `sockets`.
    pub pools: Vec<ConnectionPool>,
    /// The sockets.
    pub sockets: Vec<SocketModel>,
    /// The sockets by other end and state, garbage left out: most first.
    pub peers: Vec<PeerModel>,
    /// Whether screens show the methods of the framework among those that serve a request (`--framework`).
    #[serde(skip)]
    pub framework: bool,
}

/// An HTTP request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RequestModel {
    /// Whether the process serves it or sent it.
    pub direction: RequestDirection,
    /// The `HttpRequestMessage`; of an incoming request, the `HttpContext`.
    pub object: Addr,
    /// How far it has come.
    pub state: RequestState,
    /// `GET`, `POST` and the like.
    pub method: Option<String>,
    /// The URI as the program gave it; of an incoming request, path and query.
    pub uri: Option<String>,
    /// `HTTP/1.1`, `HTTP/2` and the like. `null` for outgoing requests, as all fields up to `endpoint`.
    pub protocol: Option<String>,
    /// The time when it began in UTC, ISO 8601: `Activity.StartTimeUtc`. `null` if ASP.NET Core made no activity for it, as without
    /// logging, diagnostics and tracing.
    pub start_utc: Option<String>,
    /// Milliseconds from then to Kestrel's last heartbeat before the dump (there is one each second), by which the request is at least so old.
    pub age_ms: Option<u64>,
    /// The server's identifier of the connection, as in its log.
    pub connection_id: Option<String>,
    /// The other end of the connection: `127.0.0.1:40852`.
    pub remote: Option<String>,
    /// The route that serves it, as ASP.NET Core displays it: `HTTP: GET /orders/{id}`.
    pub endpoint: Option<String>,
    /// The connection that works on it; of an incoming request, the `ConnectionContext` of its transport.
    pub connection: Option<Addr>,
    /// The connection's pool.
    pub pool: Option<Addr>,
    /// The asynchronous method that refers to it and has not ended; of an incoming request, the innermost one that serves it.
    pub waiter: Option<Addr>,
    /// The root of the chain, as in `async`: the semaphore, promise, timer, socket that the request waits for. `null` for outgoing requests,
    /// and for incoming ones that no suspended method serves.
    pub waits_for: Option<AsyncRoot>,
    /// Managed id of the thread that runs the application for an incoming request, where no await is pending: its stack has the request's
    /// objects. `null` otherwise.
    pub thread: Option<u32>,
    /// Asynchronous methods and tasks that go on one after the other once it has a response, innermost first, as in `async`. Where
    /// several wait for one, the first is followed. Of an incoming request, the methods that serve it, from what waits for `waits_for` up to
    /// the server's; of several ways the longest.
    pub frames: Vec<RequestFrame>,
}

impl RequestModel {
    /// A request of which nothing else is known.
    pub(crate) const fn new(direction: RequestDirection, object: Addr, state: RequestState) -> RequestModel {
        RequestModel {
            direction,
            object,
            state,
            method: None,
            uri: None,
            protocol: None,
            start_utc: None,
            age_ms: None,
            connection_id: None,
            remote: None,
            endpoint: None,
            connection: None,
            pool: None,
            waiter: None,
            waits_for: None,
            thread: None,
            frames: Vec::new(),
        }
    }
}

/// A method or task of the chain of a request.
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
    /// Connections on the heap; those that are garbage are left out if the graph of the heap was asked.
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
    /// Whether nothing keeps the object alive: the connection is open until it is finalized, but nothing uses it. `null` if it was not looked at.
    pub garbage: Option<bool>,
}

named_enum! {
    /// States of sockets.
    pub enum SocketState {
        /// The socket waits for connections.
        Listening = "listening",
        /// Connected, by a peer: its own end is one at which a socket of the process listens, or that several connections share.
        Accepted = "accepted",
        /// Connected, by the process or in a way that is not known.
        Connected = "connected",
        /// Neither connected nor disposed of: not yet, or no more.
        Unconnected = "unconnected",
        /// Disposed of.
        Closed = "closed",
    }
}

/// Sockets with one other end, in one state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PeerModel {
    /// Their state.
    pub state: SocketState,
    /// The other end: address and port, of accepted connections only the address, since each has another port. `null` without one, and if it
    /// is not known.
    pub peer: Option<String>,
    /// This end, of those that listen or were accepted.
    pub local: Option<String>,
    /// Number of sockets.
    pub count: u64,
    /// One of them.
    pub example: Addr,
}
