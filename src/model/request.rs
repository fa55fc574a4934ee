use serde::Serialize;

use super::AsyncRoot;
use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// The side of an HTTP request that the process is on.
    pub enum RequestDirection {
        /// The process serves the request, with ASP.NET Core.
        Incoming = "incoming",
        /// The process sent the request, or is about to, with `HttpClient`.
        Outgoing = "outgoing",
    }
}

named_enum! {
    /// Progress of an HTTP request: `processing`, `responding` and `upgraded` for incoming ones, the others for outgoing ones.
    pub enum RequestState {
        /// A connection handles the request.
        Sent = "sent",
        /// The request waits for a connection.
        Queued = "queued",
        /// The request was passed to a handler, and an asynchronous method that has not completed refers to it.
        Waiting = "waiting",
        /// The application processes the request and has not sent the response headers.
        Processing = "processing",
        /// The response headers are sent, or about to be, and the application has not completed.
        Responding = "responding",
        /// The connection, or the HTTP/2 stream, now carries another protocol: usually a WebSocket, SignalR's included.
        Upgraded = "upgraded",
    }
}

/// `requests`: HTTP requests in flight (incoming ones of ASP.NET Core and outgoing ones of `HttpClient`), connection pools, and sockets.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RequestsReport {
    /// The requests in flight: incoming ones, oldest first, then outgoing ones.
    pub requests: Vec<RequestModel>,
    /// With `--top`: number of requests that are not listed, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_listed: Option<u64>,
    /// Number of requests on the heap that have a response, were never sent, or are not being processed. For incoming requests, `HttpContext`s that
    /// have completed and wait to be reused or collected.
    pub others: u64,
    /// The connection pools of `SocketsHttpHandler`; like `sockets`, empty if only incoming requests were selected.
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
    /// Protocol: `HTTP/1.1`, `HTTP/2` and so on. `null` for outgoing requests, like all fields up to `endpoint`.
    pub protocol: Option<String>,
    /// Start time in UTC, ISO 8601: `Activity.StartTimeUtc`. `null` if ASP.NET Core created no activity for the request, as without logging,
    /// diagnostics and tracing.
    pub start_utc: Option<String>,
    /// Minimum age: milliseconds from the start to Kestrel's last heartbeat before the dump (there is one per second).
    pub age_ms: Option<u64>,
    /// The server's identifier of the connection, as in its log.
    pub connection_id: Option<String>,
    /// Remote endpoint of the connection: `127.0.0.1:40852`.
    pub remote: Option<String>,
    /// The route that serves the request, as ASP.NET Core displays it: `HTTP: GET /orders/{id}`.
    pub endpoint: Option<String>,
    /// The connection that handles the request; for an incoming request, the `ConnectionContext` of its transport.
    pub connection: Option<Addr>,
    /// Pool of the connection.
    pub pool: Option<Addr>,
    /// The uncompleted asynchronous method that refers to the request; for an incoming request, the innermost one that serves it.
    pub waiter: Option<Addr>,
    /// Root of the chain, as in `async`: the semaphore, promise, timer or socket that the request waits for. `null` for outgoing requests, and for
    /// incoming ones that are not served by a suspended method.
    pub waits_for: Option<AsyncRoot>,
    /// Managed id of the thread that runs the application for an incoming request, if no await is pending: its stack has the request's objects.
    /// `null` otherwise.
    pub thread: Option<u32>,
    /// Asynchronous methods and tasks that continue one after the other once there is a response, innermost first, as in `async`. If several wait for
    /// one, the first is followed. For an incoming request, the methods that serve it, from the one that waits for `waits_for` up to the server's; if
    /// there are several chains, the longest.
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
    /// The method, or what a task runs, as the compiler named it.
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
    /// Number of connections on the heap, without those that are garbage if the graph of the heap was used.
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
    /// Local endpoint; `null` until the program asked for it.
    pub local: Option<String>,
    /// Remote endpoint.
    pub remote: Option<String>,
    /// Whether the socket listens for connections.
    pub listening: Option<bool>,
    /// Whether the socket is connected.
    pub connected: Option<bool>,
    /// Whether the socket was disposed.
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
