//! The report of `requests`.

use serde::Serialize;

use crate::analysis::AsyncRoot;
use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// The role of the process in an HTTP request.
    pub enum RequestDirection {
        /// The process serves the request, with ASP.NET Core.
        Incoming = "incoming",
        /// The process sends the request, with `HttpClient`.
        Outgoing = "outgoing",
    }
}

named_enum! {
    /// Progress of an HTTP request. Incoming ones are `processing`, `responding` or `upgraded`, outgoing ones `sent`, `queued` or
    /// `waiting`.
    pub enum RequestState {
        /// A connection handles the request.
        Sent = "sent",
        /// The request waits for a connection.
        Queued = "queued",
        /// The request was passed to a handler, and an uncompleted asynchronous method refers to it.
        Waiting = "waiting",
        /// The application processes the request and has not sent the response headers.
        Processing = "processing",
        /// The response headers have been sent or are about to be, and the application still processes the request.
        Responding = "responding",
        /// The connection or HTTP/2 stream carries another protocol: usually a WebSocket, for example one of SignalR.
        Upgraded = "upgraded",
    }
}

/// `requests`: HTTP requests in flight (incoming ones of ASP.NET Core and outgoing ones of `HttpClient`), connection pools, and sockets.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RequestsReport {
    /// The requests in flight: incoming ones, oldest first, then outgoing ones.
    pub requests: Vec<RequestModel>,
    /// Number of requests that are not listed, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_listed: Option<u64>,
    /// Number of requests on the heap that are not in flight: outgoing ones that were answered or never sent, and `HttpContext`s that have
    /// completed.
    pub others: u64,
    /// The connection pools of `SocketsHttpHandler`; empty if only incoming requests were selected.
    pub pools: Vec<ConnectionPool>,
    /// The sockets; empty if only incoming requests were selected.
    pub sockets: Vec<SocketModel>,
    /// The sockets by remote endpoint and state, largest groups first. Sockets that are garbage are not included.
    pub peers: Vec<PeerModel>,
}

/// An HTTP request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RequestModel {
    /// Direction: whether the process serves the request or sent it.
    pub direction: RequestDirection,
    /// The `HttpRequestMessage`; for an incoming request, the `HttpContext`.
    pub object: Addr,
    /// Progress of the request.
    pub state: RequestState,
    /// HTTP method: `GET`, `POST` and so on.
    pub method: Option<String>,
    /// URI as the program gave it; for an incoming request, path and query.
    pub uri: Option<String>,
    /// Protocol: `HTTP/1.1`, `HTTP/2` and so on; `null` for outgoing requests.
    pub protocol: Option<String>,
    /// Start time in UTC, ISO 8601 (`Activity.StartTimeUtc`). `null` for outgoing requests, and if ASP.NET Core created no activity because
    /// logging, diagnostics and tracing are off.
    pub start_utc: Option<String>,
    /// Minimum age: milliseconds from the start to Kestrel's last heartbeat before the dump. There is a heartbeat each second.
    pub age_ms: Option<u64>,
    /// The server's identifier of the connection, as in the server's log; `null` for outgoing requests.
    pub connection_id: Option<String>,
    /// Remote endpoint of the connection: `127.0.0.1:40852`; `null` for outgoing requests.
    pub remote: Option<String>,
    /// The route that serves the request, as ASP.NET Core displays it: `HTTP: GET /orders/{id}`; `null` for outgoing requests.
    pub endpoint: Option<String>,
    /// The connection that handles the request; for an incoming request, the `ConnectionContext` of its transport.
    pub connection: Option<Addr>,
    /// Pool of the connection.
    pub pool: Option<Addr>,
    /// An uncompleted asynchronous method that refers to the request; for an incoming request, the innermost method that serves it.
    pub waiter: Option<Addr>,
    /// Root of the chain, as in `async`: the semaphore, promise, timer or socket that the request waits for. `null` for outgoing requests,
    /// and if no suspended method serves the request.
    pub waits_for: Option<AsyncRoot>,
    /// Managed id of the thread that serves an incoming request. It is known only if no await is pending, since the request's objects are
    /// then on the thread's stack.
    pub thread: Option<u32>,
    /// Asynchronous methods and tasks that serve an incoming request or wait for the response to an outgoing one, innermost first, as in
    /// `async`. Of several chains, the first one is listed, or for an incoming request the longest.
    pub frames: Vec<RequestFrame>,
}

impl RequestModel {
    /// Returns a request with all other values unknown.
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

/// A method or task in the chain of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RequestFrame {
    /// The box of the method, or the task.
    pub object: Addr,
    /// The method, or the method that a task runs, as the compiler named it.
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
    /// Number of connections on the heap. Garbage is excluded if the graph of the heap was used.
    pub connections: u64,
    /// Number of these connections that handle a request.
    pub busy: u64,
    /// Number of requests that wait for a connection.
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
    /// Handle of the socket: on Linux and macOS the file descriptor.
    pub handle: Option<i64>,
    /// Local endpoint; `null` if the program has not asked for it.
    pub local: Option<String>,
    /// Remote endpoint.
    pub remote: Option<String>,
    /// Whether the socket listens for connections.
    pub listening: Option<bool>,
    /// Whether the socket is connected.
    pub connected: Option<bool>,
    /// Whether the socket was disposed.
    pub disposed: Option<bool>,
    /// Whether the object is garbage: its connection stays open until the object is finalized. `null` if reachability was not determined.
    pub garbage: Option<bool>,
}

named_enum! {
    /// States of sockets.
    pub enum SocketState {
        /// The socket waits for connections.
        Listening = "listening",
        /// Connected by a peer. Another socket of the process listens at the local port, or several connections share the port.
        Accepted = "accepted",
        /// Connected by the process, or it is not known by which end.
        Connected = "connected",
        /// Neither connected nor disposed: the connection is not yet made, or has ended.
        Unconnected = "unconnected",
        /// Disposed.
        Closed = "closed",
    }
}

/// Sockets with the same remote endpoint and the same state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PeerModel {
    /// State of the sockets.
    pub state: SocketState,
    /// Remote address and port; for accepted connections only the address, since each has a different port. `null` if the sockets do not
    /// have one or it is unknown.
    pub peer: Option<String>,
    /// Local endpoint of listening sockets and accepted connections; `null` for others.
    pub local: Option<String>,
    /// Number of sockets.
    pub count: u64,
    /// One of the sockets.
    pub example: Addr,
}
