//! `requests`: HTTP requests in flight, and sockets.
//!
//! Source: `docs/internals/pool.md#http`.

mod incoming;
mod reader;
mod report;
mod sockets;

pub use report::*;

use self::incoming::Contexts;
use self::reader::Reader;
use crate::analysis::holders::liveness::garbage_among;
use crate::analysis::threads::task_names::Names;
use crate::analysis::walk::objects_of;
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Answer, Collector, Count, Missing, Name, len64};
use crate::bcl::Library;
use crate::bcl::tasks::{AsyncType, MachineAt, Tasks, Waiter, flags};
use crate::clr::library::{Classifier, FieldAt, NoSuchField, fields_of, library_types, noted};
use crate::session::{Error, Heap};

library_types! {
    /// Types of HTTP clients and sockets.
    enum NetType {
        in "System.Net.Http" {
            Request = "System.Net.Http.HttpRequestMessage",
            Response = "System.Net.Http.HttpResponseMessage",
            Connection = "System.Net.Http.HttpConnection",
            Pool = "System.Net.Http.HttpConnectionPool",
        }
        in "System.Net.Sockets" {
            Socket = "System.Net.Sockets.Socket",
        }
    }
}

fields_of! {
    struct RequestFields {
        method: req "_method",
        uri: req "_requestUri",
        sent: opt "_sendStatus|_flags",
    }
}

fields_of! {
    struct ConnectionFields {
        request: req "_currentRequest",
        pool: req "_pool",
    }
}

fields_of! {
    struct PoolFields {
        authority: opt "_originAuthority",
        queue: opt "_http11RequestQueue",
    }
}

/// Maximum number of requests read from the queue of one connection pool.
const MOST: u64 = 1 << 20;
/// The flag of a request that has been sent.
const SENT: u32 = 1;
/// Maximum number of methods listed that wait for a request.
const MAX_FRAMES: usize = 64;
/// Maximum number of boxes tried as the start of the chain of a request.
const MAX_BOXES: usize = 64;

/// The arguments of [`requests`].
#[derive(Clone, Copy, Debug)]
pub struct RequestsQuery {
    /// Only requests of this direction. If it is incoming, pools and sockets are omitted.
    pub direction: Option<RequestDirection>,
    /// Whether to build the heap graph to find garbage: garbage connections, pools and outgoing requests are omitted, and garbage sockets are marked.
    pub graph: bool,
}

impl Default for RequestsQuery {
    /// All requests. Garbage connections are omitted.
    fn default() -> RequestsQuery {
        RequestsQuery { direction: None, graph: true }
    }
}

/// Returns the HTTP requests in flight, each with its connection and pool, and the sockets.
///
/// # Errors
/// [`Error::Contract`] if the runtime does not describe types and fields.
pub fn requests(heap: &Heap, query: &RequestsQuery) -> Result<Answer<RequestsReport>, Error> {
    let direction = query.direction;
    let (runtime, namer, notes) = (heap.runtime(), heap.namer(), heap.begin());
    let tasks = Tasks::bind(Library::bind(runtime, &namer, &notes)?, &notes);
    let library = tasks.library();
    let types = Classifier::<NetType>::bind(library.types());
    let served = Contexts::bind(library.types());
    let found = notes.take(objects_of(heap, |mt| {
        let is_async = is_method(&tasks, mt) || tasks.kinds(mt).is(AsyncType::RuntimeAsyncTask);
        is_async || !types.of(mt).is_empty() || served.is(library.types(), mt)
    }));
    let of = |kind: NetType| -> Vec<(Addr, Addr)> { found.iter().copied().filter(|(_, mt)| types.of(*mt).is(kind)).collect() };
    let names = Names::new(&tasks, runtime, &namer, &notes);
    let suspended = suspended(&tasks, &names, &found, &notes);
    let mut reader = Reader { heap, library, tasks: &tasks, names, suspended, notes: &notes };
    let boxes: Vec<(Addr, Addr)> = found.iter().copied().filter(|(_, mt)| is_method(&tasks, *mt)).collect();
    let mut report = RequestsReport::default();
    let mut all = 0;
    if direction != Some(RequestDirection::Outgoing) {
        let contexts: Vec<(Addr, Addr)> = found.iter().copied().filter(|(_, mt)| served.is(library.types(), *mt)).collect();
        all.grow(len64(contexts.len()));
        let incoming = reader.incoming(&contexts, &boxes);
        report.requests.extend(noted(incoming, "incoming requests", &notes).unwrap_or_default());
    }
    if direction != Some(RequestDirection::Incoming) {
        let (pools, connections, sockets) = (of(NetType::Pool), of(NetType::Connection), of(NetType::Socket));
        let answered = noted(reader.answered(&of(NetType::Response)), "responses of HTTP", &notes).unwrap_or_default();
        let messages = of(NetType::Request);
        all.grow(len64(messages.len()));
        let mut waiters = noted(reader.waiting(&messages, &answered, &boxes), "requests of HTTP", &notes).unwrap_or_default();
        let waiting = waiters.iter().flat_map(|(request, own)| own.iter().chain([request])).copied();
        let open = [&pools, &connections, &sockets].into_iter().flatten().map(|(object, _)| *object);
        let open: Vec<Addr> = open.chain(waiting).collect();
        // Without the graph, it is unknown which are garbage, so all are listed.
        let garbage = if query.graph && !open.is_empty() {
            let among = garbage_among(heap, &open)
                .map_err(|e| notes.add(Missing::Answer, None, format!("sockets and requests that are garbage cannot be left out: {e}")));
            among.ok().map(|answer| notes.take(answer))
        } else {
            None
        };
        let is_live = |object: &Addr| garbage.as_ref().is_none_or(|garbage| !garbage.contains(object));
        let live = |found: Vec<(Addr, Addr)>| -> Vec<(Addr, Addr)> { found.into_iter().filter(|(object, _)| is_live(object)).collect() };
        // Nothing resumes a method that is garbage.
        waiters.values_mut().for_each(|own| own.retain(is_live));
        let busy = noted(reader.connections(&live(connections)), "HTTP connections", &notes).unwrap_or_default();
        let (pools, queued) = noted(reader.pools(&live(pools), &busy), "HTTP connection pools", &notes).unwrap_or_default();
        let outgoing = reader.requests(&messages, &busy, &queued, &waiters);
        report.requests.extend(noted(outgoing, "HTTP requests", &notes).unwrap_or_default());
        report.pools = pools;
        report.sockets = sockets::sockets(library, &sockets, &notes);
        for socket in &mut report.sockets {
            socket.garbage = garbage.as_ref().map(|garbage| garbage.contains(&socket.object));
        }
        report.peers = sockets::peers(&report.sockets);
    }
    report.others = all.saturating_sub(len64(report.requests.len()));
    reader.names.note(&notes);
    tasks.note(&notes);
    namer.note(&notes);
    Ok(notes.finish(report))
}

/// Returns the requests in flight; `graph` as in [`RequestsQuery`]. Reads no objects if the process has loaded neither ASP.NET Core nor
/// `System.Net.Http`.
///
/// # Errors
/// See [`requests`].
pub(in crate::analysis) fn requests_of(heap: &Heap, graph: bool) -> Result<Answer<RequestsReport>, Error> {
    let types = heap.runtime().types()?;
    let serves = !matches!(Contexts::bind(types), Contexts::Absent);
    match (serves, types.module_named("System.Net.Http").is_some()) {
        (false, false) => Ok(Answer::whole(RequestsReport::default())),
        (true, false) => requests(heap, &RequestsQuery { direction: Some(RequestDirection::Incoming), graph }),
        (false, true) => requests(heap, &RequestsQuery { direction: Some(RequestDirection::Outgoing), graph }),
        (true, true) => requests(heap, &RequestsQuery { direction: None, graph }),
    }
}

/// Whether an object of the type at `mt` has the variables of an async method: a box, or a continuation of runtime async.
fn is_method(tasks: &Tasks, mt: Addr) -> bool {
    let plan = tasks.plan(mt);
    plan.kinds.is(AsyncType::Box) || plan.kinds.is(AsyncType::PoolingBox) || plan.suspends
}

/// Maps each continuation of a suspended runtime async method to its unfinished task. `found` must have all tasks of the heap.
fn suspended(tasks: &Tasks, names: &Names<'_>, found: &[(Addr, Addr)], notes: &Collector) -> Map<Addr, Addr> {
    let mut out = Map::default();
    for (task, _) in found.iter().copied().filter(|(_, mt)| tasks.kinds(*mt).is(AsyncType::RuntimeAsyncTask)) {
        if tasks.flags(task).is_some_and(|bits| bits & flags::COMPLETED == 0) {
            out.extend(names.methods_of(task, notes).into_iter().map(|frame| (frame, task)));
        }
    }
    out
}

/// A connection with its pool and its current request.
struct Connection {
    object: Addr,
    pool: Option<Addr>,
    request: Option<Addr>,
}

impl Reader<'_> {
    fn connections(&self, found: &[(Addr, Addr)]) -> Result<Vec<Connection>, NoSuchField> {
        let Some((_, mt)) = found.first() else { return Ok(Vec::new()) };
        let fields = ConnectionFields::bind(self.library.types(), *mt)?;
        let connection = |(object, _): &(Addr, Addr)| Connection {
            object: *object,
            pool: self.library.reference(*object, fields.pool),
            request: self.library.reference(*object, fields.request),
        };
        Ok(found.iter().map(connection).collect())
    }

    /// Returns the pools, and a map from each queued request to its pool.
    fn pools(&self, found: &[(Addr, Addr)], connections: &[Connection]) -> Result<(Vec<ConnectionPool>, Map<Addr, Addr>), NoSuchField> {
        let (mut out, mut queued) = (Vec::new(), Map::default());
        let Some((_, mt)) = found.first() else { return Ok((out, queued)) };
        let fields = PoolFields::bind(self.library.types(), *mt)?;
        let working: Set<Addr> = connections.iter().filter_map(|c| c.request).collect();
        // By pool: the number of its connections, and the number in use.
        let mut own: Map<Addr, (u64, u64)> = Map::default();
        for connection in connections {
            if let Some(pool) = connection.pool {
                let (all, busy) = own.entry(pool).or_default();
                all.bump();
                busy.grow(u64::from(connection.request.is_some()));
            }
        }
        for (object, _) in found {
            let mut waiting = match fields.queue {
                Some(queue) => self.queued(*object, queue)?,
                None => Vec::new(),
            };
            // A request that got a connection stays in the queue until it reaches the head.
            waiting.retain(|request| !working.contains(request));
            let (connections, busy) = own.get(object).copied().unwrap_or_default();
            out.push(ConnectionPool {
                object: *object,
                server: fields.authority.and_then(|f| self.library.reference(*object, f)).and_then(|a| self.authority(a)),
                connections,
                busy,
                queued: len64(waiting.len()),
            });
            queued.extend(waiting.into_iter().map(|request| (request, *object)));
        }
        Ok((out, queued))
    }

    /// Returns the requests in a pool's `RequestQueue`, which is a ring buffer of items.
    fn queued(&self, pool: Addr, queue: FieldAt) -> Result<Vec<Addr>, NoSuchField> {
        let (library, types) = (self.library, self.library.types());
        let Some(mt) = queue.method_table else { return Ok(Vec::new()) };
        let field = |name| types.field_at(mt, name).map(|inner| queue.then(inner, types));
        let (array, head, size) = (field("_array")?, field("_head")?, field("_size")?);
        let (Some(head), Some(size)) = (library.u32(pool, head), library.u32(pool, size)) else { return Ok(Vec::new()) };
        let Some(shape) = library.reference(pool, array).and_then(|a| library.array(a)) else { return Ok(Vec::new()) };
        let item = types.field_at(shape.element, "Request")?;
        // Field offsets of a structure count from its box, which starts one word before the fields.
        let within = item.offset.saturating_sub(types.pointer_bytes());
        let place = |i: u64| {
            let index = u64::from(head).checked_add(i)?.checked_rem(shape.length)?;
            library.reference_at(shape.data.element(index, shape.element_bytes).plus(within))
        };
        let length = u64::from(size).min(shape.length).min(MOST);
        // In a forged dump, many pools may share a long list, so its entries are charged to the budget.
        if !library.afford(length) {
            return Ok(Vec::new());
        }
        Ok((0..length).filter_map(place).collect())
    }

    /// Returns `host:port` of an `HttpAuthority`.
    fn authority(&self, object: Addr) -> Option<String> {
        let types = self.library.types();
        let mt = self.library.method_table(object)?;
        let field = |names| noted(types.field_at(mt, names), "connection pool servers", self.notes);
        let host = self.library.string(object, field("<IdnHost>k__BackingField|IdnHost|_idnHost")?)?;
        let port = self.library.i32(object, field("<Port>k__BackingField|Port|_port")?)?;
        Some(format!("{host}:{port}"))
    }

    /// Returns the requests that have a response.
    fn answered(&self, found: &[(Addr, Addr)]) -> Result<Set<Addr>, NoSuchField> {
        let Some((_, mt)) = found.first() else { return Ok(Set::default()) };
        let request = self.library.types().field_at(*mt, "_requestMessage")?;
        Ok(found.iter().filter_map(|(object, _)| self.library.reference(*object, request)).collect())
    }

    /// Maps each request that was sent and is not in `answered` to the methods that wait for it.
    fn waiting(&self, found: &[(Addr, Addr)], answered: &Set<Addr>, boxes: &[(Addr, Addr)]) -> Result<Map<Addr, Vec<Addr>>, NoSuchField> {
        let Some((_, mt)) = found.first() else { return Ok(Map::default()) };
        let fields = RequestFields::bind(self.library.types(), *mt)?;
        let sent = |object: Addr| fields.sent.is_none_or(|f| self.library.u32(object, f).is_none_or(|bits| bits & SENT != 0));
        let open: Set<Addr> = found.iter().map(|(object, _)| *object).filter(|o| !answered.contains(o) && sent(*o)).collect();
        Ok(self.waiters(&open, boxes))
    }

    fn requests(
        &mut self,
        found: &[(Addr, Addr)],
        connections: &[Connection],
        queued: &Map<Addr, Addr>,
        waiters: &Map<Addr, Vec<Addr>>,
    ) -> Result<Vec<RequestModel>, NoSuchField> {
        let Some((_, mt)) = found.first() else { return Ok(Vec::new()) };
        let fields = RequestFields::bind(self.library.types(), *mt)?;
        let working: Map<Addr, &Connection> = connections.iter().filter_map(|c| Some((c.request?, c))).collect();
        let mut out = Vec::new();
        let mut names: Map<Addr, Option<FieldAt>> = Map::default();
        for (object, _) in found {
            let own = waiters.get(object).map_or(&[][..], Vec::as_slice);
            let (connection, queue, waiter) = (working.get(object), queued.get(object), own.first());
            let state = match (connection, queue, waiter) {
                (Some(_), _, _) => RequestState::Sent,
                (None, Some(_), _) => RequestState::Queued,
                (None, None, Some(_)) => RequestState::Waiting,
                (None, None, None) => continue,
            };
            let mut text = |field: FieldAt, names_of: &'static str| {
                let part = self.library.reference(*object, field)?;
                let mt = self.library.method_table(part)?;
                let bind = || noted(self.library.types().field_at(mt, names_of), "HTTP requests", self.notes);
                let name = (*names.entry(mt).or_insert_with(bind))?;
                self.library.string(part, name)
            };
            out.push(RequestModel {
                method: text(fields.method, "_method"),
                uri: text(fields.uri, "_string"),
                connection: connection.map(|c| c.object),
                pool: connection.and_then(|c| c.pool).or(queue.copied()),
                waiter: waiter.copied(),
                frames: self.frames(own),
                ..RequestModel::new(RequestDirection::Outgoing, *object, state)
            });
        }
        Ok(out)
    }

    /// Returns the longest chain of methods in which each awaits the one before it. The chain starts at one of `boxes`.
    fn frames(&mut self, boxes: &[Addr]) -> Vec<RequestFrame> {
        let mut longest: Vec<Addr> = Vec::new();
        for start in boxes.iter().take(MAX_BOXES) {
            let (mut way, mut seen) = (Vec::new(), Set::default());
            let mut at = Some(*start);
            while let Some(node) = at.filter(|n| way.len() < MAX_FRAMES && seen.insert(*n) && self.tasks.afford(1)) {
                way.push(node);
                at = self.next(node);
            }
            if way.len() > longest.len() {
                longest = way;
            }
        }
        longest.into_iter().map(|object| self.frame(object)).collect()
    }

    fn frame(&mut self, object: Addr) -> RequestFrame {
        let method = match self.library.method_table(object) {
            Some(_) if self.suspended.contains_key(&object) => self.names.suspended(object).name(),
            Some(mt) => self.names.method(object, mt).or_else(|| self.names.work(object)),
            None => None,
        };
        RequestFrame { object, display: method.as_ref().map(Name::display), method }
    }

    /// Returns the method or task that awaits the one at `node`.
    fn next(&self, node: Addr) -> Option<Addr> {
        let caller = |frame| self.tasks.caller(frame).filter(|caller| self.suspended.contains_key(caller));
        // The outermost method of a runtime async task has no caller; the next node is the waiter of the task.
        let ends = match self.suspended.get(&node) {
            Some(task) => match caller(node) {
                Some(caller) => return Some(caller),
                None => *task,
            },
            None => node,
        };
        let mut waiters = Vec::new();
        self.tasks.waiters(ends, &mut waiters);
        let waiting = waiters.into_iter().find_map(|w| if let Waiter::Node(next) = w { Some(next) } else { None })?;
        // A runtime async task is represented by its innermost method.
        Some(self.tasks.chain(waiting, self.notes).frames.first().copied().unwrap_or(waiting))
    }

    /// Maps each object in `wanted` to the boxes and continuations of unfinished async methods that refer to it, in heap order.
    fn waiters(&self, wanted: &Set<Addr>, boxes: &[(Addr, Addr)]) -> Map<Addr, Vec<Addr>> {
        let mut out: Map<Addr, Vec<Addr>> = Map::default();
        if wanted.is_empty() {
            return out;
        }
        for (object, mt) in boxes {
            let plan = self.tasks.plan(*mt);
            let ended = match plan.suspends {
                true => !self.suspended.contains_key(object),
                false => self.tasks.flags(*object).is_some_and(|f| f & flags::COMPLETED != 0),
            };
            if ended {
                continue;
            }
            // The state machine is in the box, or is a separate object.
            let machine = match &plan.machine {
                Some(MachineAt::Behind(field)) => self.library.reference(*object, *field),
                Some(MachineAt::Inside(_)) => Some(*object),
                None => plan.suspends.then_some(*object),
            };
            let Some(machine) = machine.and_then(|m| self.heap.object(m).ok()) else { continue };
            machine.targets(|target| {
                if wanted.contains(&target) {
                    let own = out.entry(target).or_default();
                    if own.last() != Some(object) {
                        own.push(*object);
                    }
                }
            });
        }
        out
    }
}
