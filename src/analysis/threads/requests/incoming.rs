//! Requests that an ASP.NET Core server is processing.
//!
//! Source: `docs/internals/pool.md#incoming-requests`.

use super::reader::Reader;
use crate::analysis::threads::async_chains::{Inner, inner_chains};
use crate::analysis::threads::stack_words::holders;
use crate::analysis::{AsyncRootKind, RequestDirection, RequestModel, RequestState};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Collector, Missing, be, plural};
use crate::bcl::Library;
use crate::bcl::net::EndPoints;
use crate::clr::fields::{Definition, Types};
use crate::clr::library::{FieldAt, NoSuchField, fields_of, noted};
use crate::clr::values::{TICKS_PER_MILLISECOND, utc, utc_ticks};

fields_of! {
    /// Fields of `DefaultHttpContext`.
    struct ContextFields {
        // The library sets this field for debugging: it is true only during a request.
        active: req "_active",
        features: req "_features",
    }
}

fields_of! {
    /// Fields of the object in which a server keeps the state of a request: Kestrel's `HttpProtocol`, or `IISHttpContext`.
    struct ServerFields {
        method_text: opt "_methodText",
        method: req "<Method>k__BackingField",
        path_base: opt "<PathBase>k__BackingField",
        path: req "<Path>k__BackingField",
        query: opt "<QueryString>k__BackingField",
        version: opt "_httpVersion",
        status: opt "_requestProcessingStatus",
        upgraded: opt "<IsUpgraded>k__BackingField",
        connected: opt "<IsExtendedConnectAccepted>k__BackingField",
        connection_id: opt "<ConnectionIdFeature>k__BackingField",
        address: opt "<RemoteIpAddress>k__BackingField",
        port: opt "<RemotePort>k__BackingField",
        endpoint: opt "_endpoint",
        activity: opt "_currentIHttpActivityFeature",
        context: opt "_context",
    }
}

/// Identifies `DefaultHttpContext`.
pub(super) enum Contexts {
    /// By its name in this module. The name is read only of types that have objects on the heap, because the dump may not have the names of other
    /// types.
    Module(Addr),
    /// By its definition.
    Definition(Definition),
    /// The process does not have the type.
    Absent,
}

impl Contexts {
    const MODULE: &str = "Microsoft.AspNetCore.Http";
    const NAME: &str = "Microsoft.AspNetCore.Http.DefaultHttpContext";

    pub(super) fn bind(types: &Types) -> Contexts {
        let found = match types.names().native_aot() {
            Some(_) => types.definition_named(Contexts::MODULE, Contexts::NAME).map(Contexts::Definition),
            None => types.module_named(Contexts::MODULE).map(Contexts::Module),
        };
        found.unwrap_or(Contexts::Absent)
    }

    /// Whether `method_table` belongs to `DefaultHttpContext`.
    pub(super) fn is(&self, types: &Types, method_table: Addr) -> bool {
        match self {
            Contexts::Module(module) => {
                types.definition(method_table).is_some_and(|d| d.module == *module)
                    && types.names().name(method_table).name.as_str() == Contexts::NAME
            }
            Contexts::Definition(definition) => types.definition(method_table) == Some(*definition),
            Contexts::Absent => false,
        }
    }
}

/// `RequestProcessingStatus.HeadersCommitted`.
const HEADERS_COMMITTED: u32 = 4;
/// Kestrel's `HttpMethod`, in the order of its values.
const METHODS: [&str; 9] = ["GET", "PUT", "DELETE", "POST", "HEAD", "TRACE", "PATCH", "CONNECT", "OPTIONS"];
/// Kestrel's `HttpVersion`, in the order of its values.
const VERSIONS: [&str; 4] = ["HTTP/1.0", "HTTP/1.1", "HTTP/2", "HTTP/3"];

/// Reads fields of the other objects of a request. Each field is bound once per type.
struct Others<'o> {
    library: &'o Library,
    known: Map<(Addr, &'static str), Option<FieldAt>>,
    /// Times of the last heartbeats of servers, in ticks, by `ServiceContext`.
    heartbeats: Map<Addr, Option<u64>>,
    notes: &'o Collector,
}

impl Others<'_> {
    /// Returns the field with one of `names` of the object at `object`.
    fn field(&mut self, object: Addr, names: &'static str) -> Option<FieldAt> {
        let mt = self.library.method_table(object)?;
        let bind = || noted(self.library.types().field_at(mt, names), "incoming requests", self.notes);
        *self.known.entry((mt, names)).or_insert_with(bind)
    }

    fn reference(&mut self, object: Addr, names: &'static str) -> Option<Addr> {
        let field = self.field(object, names)?;
        self.library.reference(object, field)
    }

    fn string(&mut self, object: Addr, names: &'static str) -> Option<String> {
        let field = self.field(object, names)?;
        self.library.string(object, field)
    }

    /// Returns the time of a Kestrel server's last heartbeat in ticks of `DateTime`, from the connection context at `context`. The server sends this
    /// time as the date of responses.
    fn heartbeat(&mut self, context: Addr) -> Option<u64> {
        let service = self.reference(context, "<ServiceContext>k__BackingField")?;
        if let Some(known) = self.heartbeats.get(&service) {
            return *known;
        }
        let manager = self.reference(service, "<DateHeaderValueManager>k__BackingField");
        let values = manager.and_then(|manager| self.reference(manager, "_dateValues"));
        let time = values.and_then(|values| self.string(values, "String")).and_then(|text| http_date(&text));
        *self.heartbeats.entry(service).or_insert(time)
    }
}

impl Reader<'_> {
    /// Returns the requests of the `HttpContext`s in use, oldest first.
    pub(super) fn incoming(&mut self, contexts: &[(Addr, Addr)], boxes: &[(Addr, Addr)]) -> Result<Vec<RequestModel>, NoSuchField> {
        let (library, notes) = (self.library, self.notes);
        let types = library.types();
        let mut bound: Map<Addr, (FieldAt, FieldAt)> = Map::default();
        // The `HttpContext`s in use, each with the object in which the server keeps its state.
        let mut open: Vec<(Addr, Option<Addr>)> = Vec::new();
        let mut unread = (0u64, None);
        for (object, mt) in contexts {
            let (active, features) = match bound.get(mt) {
                Some(known) => *known,
                None => {
                    let fields = ContextFields::bind(types, *mt)?;
                    let inner = fields.features.method_table.unwrap_or_default();
                    let features = fields.features.then(types.field_at(inner, "<Collection>k__BackingField")?, types);
                    *bound.entry(*mt).or_insert((fields.active, features))
                }
            };
            match library.u8(*object, active) {
                Some(0) => {}
                Some(_) => open.push((*object, library.reference(*object, features))),
                None => {
                    unread.0 += 1;
                    unread.1 = unread.1.or(Some(*object));
                }
            }
        }
        if unread.0 > 0 {
            let text = format!("incoming requests: whether {} {} in use cannot be read", plural(unread.0, "HttpContext"), be(unread.0));
            notes.add(Missing::Async, unread.1, text);
        }
        if open.is_empty() {
            return Ok(Vec::new());
        }
        let servers: Set<Addr> = open.iter().filter_map(|(_, server)| *server).collect();
        let mut chains = self.serving(&servers, boxes);
        let idle = servers.iter().copied().filter(|server| chains.get(server).is_none_or(|c| !c.root.kind.is_awaited())).collect();
        let threads = self.threads_with(&idle);
        let mut others = Others { library, known: Map::default(), heartbeats: Map::default(), notes };
        let ends = EndPoints::bind(library);
        let mut fields: Map<Addr, Option<ServerFields>> = Map::default();
        let mut out = Vec::with_capacity(open.len());
        for (object, server) in open {
            let mt = server.and_then(|server| library.method_table(server));
            let known = mt.and_then(|mt| {
                *fields.entry(mt).or_insert_with(|| noted(ServerFields::bind(types, mt), "incoming requests: method and path", notes))
            });
            let mut request = RequestModel::new(RequestDirection::Incoming, object, RequestState::Processing);
            if let Some((server, fields)) = server.zip(known) {
                fill(&mut request, library, server, &fields, &mut others, &ends);
            }
            let on_stack = server.and_then(|server| threads.get(&server)).and_then(|ids| ids.first().copied());
            match server.and_then(|server| chains.remove(&server)) {
                Some(Inner { root, frames, thread }) => {
                    request.thread = if root.kind.is_awaited() { None } else { thread.or(on_stack) };
                    request.waits_for = Some(root);
                    request.waiter = frames.first().copied();
                    request.frames = frames.into_iter().map(|frame| self.frame(frame)).collect();
                }
                None => request.thread = on_stack,
            }
            out.push(request);
        }
        out.sort_by(|a, b| (a.start_utc.is_none(), &a.start_utc, a.object).cmp(&(b.start_utc.is_none(), &b.start_utc, b.object)));
        Ok(out)
    }

    /// Maps the server object of each request to the innermost chain of async methods that processes the request.
    fn serving(&mut self, servers: &Set<Addr>, boxes: &[(Addr, Addr)]) -> Map<Addr, Inner> {
        let mut ends = Map::default();
        for (server, own) in self.waiters(servers, boxes) {
            ends.extend(own.into_iter().map(|method| (method, server)));
        }
        if ends.is_empty() {
            return Map::default();
        }
        inner_chains(self.heap, self.tasks, &mut self.names, &ends, self.notes)
    }

    /// Maps each of `objects` to the managed ids of the threads that have it on their stacks.
    fn threads_with(&self, objects: &Set<Addr>) -> Map<Addr, Vec<u32>> {
        if objects.is_empty() {
            return Map::default();
        }
        let runtime = self.heap.runtime();
        let stacks = runtime.stacks_in_use(runtime.threads_if_any(self.notes), self.notes);
        holders(runtime.memory(), stacks.into_iter().filter_map(|(_, t, range)| Some((t.id?, range?))), objects)
    }
}

impl AsyncRootKind {
    /// Whether the root of a chain shows that its method is suspended in an await, not running on a thread.
    fn is_awaited(self) -> bool {
        !matches!(self, AsyncRootKind::Running | AsyncRootKind::Thread)
    }
}

/// Fills in `request` from the object at `server`, in which the server keeps its state.
fn fill(request: &mut RequestModel, library: &Library, server: Addr, fields: &ServerFields, others: &mut Others<'_>, ends: &EndPoints<'_>) {
    let text = |field: Option<FieldAt>| library.string(server, field?);
    let number = |field: Option<FieldAt>| field.and_then(|f| library.u8(server, f));
    let named = |names: &[&str], n: Option<u8>| names.get(usize::from(n?)).map(ToString::to_string);
    request.method = match fields.method_text {
        // Kestrel creates the text on first use, so it may be missing.
        Some(_) => text(fields.method_text).or_else(|| named(&METHODS, number(Some(fields.method)))),
        None => text(Some(fields.method)),
    };
    let path = text(Some(fields.path));
    request.uri = path.map(|path| text(fields.path_base).unwrap_or_default() + &path + &text(fields.query).unwrap_or_default());
    request.protocol = named(&VERSIONS, number(fields.version));
    let is_set = |field| number(field).is_some_and(|n| n != 0);
    let status = fields.status.and_then(|f| library.u32(server, f));
    request.state = match status {
        _ if is_set(fields.upgraded) || is_set(fields.connected) => RequestState::Upgraded,
        Some(HEADERS_COMMITTED..) => RequestState::Responding,
        _ => RequestState::Processing,
    };
    request.connection_id = text(fields.connection_id);
    let address = fields.address.and_then(|f| library.reference(server, f)).and_then(|address| ends.text(address));
    let port = fields.port.and_then(|f| library.i32(server, f));
    request.remote = address.map(|address| match port {
        Some(port) if address.contains(':') => format!("[{address}]:{port}"),
        Some(port) => format!("{address}:{port}"),
        None => address,
    });
    let endpoint = fields.endpoint.and_then(|f| library.reference(server, f));
    request.endpoint = endpoint.and_then(|endpoint| others.string(endpoint, "<DisplayName>k__BackingField"));
    let context = fields.context.and_then(|f| library.reference(server, f));
    request.connection = context.and_then(|context| others.reference(context, "<ConnectionContext>k__BackingField"));
    let feature = fields.activity.and_then(|f| library.reference(server, f));
    let activity = feature.and_then(|feature| others.reference(feature, "<Activity>k__BackingField"));
    let start = activity.and_then(|activity| {
        let field = others.field(activity, "<StartTimeUtc>k__BackingField")?;
        utc_ticks(library.u64(activity, field)?).filter(|ticks| *ticks > 0)
    });
    request.start_utc = start.and_then(utc);
    let now = context.filter(|_| start.is_some()).and_then(|context| others.heartbeat(context));
    request.age_ms = start.zip(now).and_then(|(start, now)| now.saturating_sub(start).checked_div(TICKS_PER_MILLISECOND));
}

/// Converts a date in the format of HTTP to ticks of `DateTime`: `Sat, 28 Nov 2026 05:02:42 GMT`.
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split_once(", ")?.1.strip_suffix(" GMT")?.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let name = words.next()?;
    let month = u64::try_from(MONTHS.iter().position(|m| *m == name)?).ok()?;
    let year: u64 = words.next()?.parse().ok().filter(|year| (1..=9999).contains(year))?;
    let clock = words.next()?.split(':').try_fold(0u64, |sum, part| sum.checked_mul(60)?.checked_add(part.parse().ok()?))?;
    // Years start in March, so that the leap day is the last day of a year (Howard Hinnant's days_from_civil).
    let (year, month) = if month >= 2 { (year, month - 2) } else { (year - 1, month + 10) };
    let leap = year / 4 + year / 400 - year / 100;
    // Days from March 1 of year 0 to January 1 of year 1.
    let days = (year * 365 + leap + (153 * month + 2) / 5 + day).checked_sub(1 + 306)?;
    days.checked_mul(86_400)?.checked_add(clock)?.checked_mul(1_000 * TICKS_PER_MILLISECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http_are_ticks() {
        let shown = |text| http_date(text).and_then(utc);
        assert_eq!(shown("Sat, 28 Nov 2026 05:02:42 GMT").as_deref(), Some("2026-11-28T05:02:42Z"));
        assert_eq!(shown("Thu, 29 Feb 2024 23:59:59 GMT").as_deref(), Some("2024-02-29T23:59:59Z"));
        assert_eq!(shown("Mon, 01 Jan 2001 00:00:00 GMT").as_deref(), Some("2001-01-01T00:00:00Z"));
        assert_eq!(shown("Mon, 01 Jan 0001 00:00:00 GMT").as_deref(), Some("0001-01-01T00:00:00Z"));
        for text in ["", "Sat, 28 Nov 2026 05:02:42", "Sat, 28 Foo 2026 05:02:42 GMT", "Sat, 28 Nov 99999999999 05:02:42 GMT"] {
            assert_eq!(shown(text), None, "{text}");
        }
    }
}
