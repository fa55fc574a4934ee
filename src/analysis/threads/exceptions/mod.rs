//! Reads the exceptions that threads refer to, with their inner exceptions, and all other exceptions on the heap.

mod message;
mod report;

pub use report::*;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::analysis::objects::where_is::containing;
use crate::analysis::sort::{self, Key};
use crate::analysis::walk::objects_of;
use crate::base::hash::Map;
use crate::base::{Addr, Answer, Budget, Collector, Count, Limits, Missing, Name, NoteKind, len64};
use crate::clr::exceptions::{Exception, Exceptions, StackFrame};
use crate::clr::methods::{MethodName, Methods};
use crate::clr::objects::Objects;
use crate::clr::threads::Thread;
use crate::model::{ExceptionSort, Order};
use crate::session::{Error, Heap, Namer, Runtime, SourceLines, TypePattern};
use message::Messages;

/// Reads the exceptions of one runtime and names their frames.
#[derive(Debug)]
pub struct ExceptionReader<'r> {
    namer: &'r Namer,
    objects: Option<Exceptions>,
    /// Why exceptions cannot be read.
    lacking: Option<String>,
    methods: Option<Methods>,
    headers: Option<Objects>,
    lines: SourceLines<'r>,
    messages: Messages,
    limits: &'r Limits,
    notes: &'r Collector,
    /// Memory for texts and frames in the answer. Many exceptions may share one message or stack trace.
    budget: Budget,
    /// Models of threads' exceptions, by address and whether the exception is in flight. Thousands of threads may have the same one.
    by_address: Mutex<Map<(Addr, bool), OfThread>>,
    methods_by_desc: Mutex<Map<Addr, Option<Arc<TraceMethod>>>>,
}

/// A thread's exception, and its bytes in an answer.
type OfThread = (Arc<ExceptionModel>, u64);

/// A method on stack traces.
#[derive(Debug)]
struct TraceMethod {
    of: MethodName,
    name: Name,
    display: Name,
    module: Option<Name>,
}

/// Maximum bytes of an answer for each byte of the dump. A frame takes 32 bytes in a dump, and is listed with the names of its method and
/// module.
const EXPANSION: u64 = 8;
/// Messages of inner exceptions are not appended to a message of this many bytes or more.
const MOST_OF_A_MESSAGE: usize = 1 << 14;
/// Bytes charged for an exception or a frame in an answer, besides its texts.
const PLAIN: u64 = 256;
/// Steps charged for a frame, and bytes of text charged as one step.
const STEPS_OF_A_FRAME: usize = 2;
const TEXT_OF_A_STEP: usize = 8;

impl<'r> ExceptionReader<'r> {
    /// Creates a reader for `runtime`; it reads nothing if the descriptor does not have the layouts.
    pub(crate) fn new(runtime: &'r Runtime, namer: &'r Namer, notes: &'r Collector) -> ExceptionReader<'r> {
        let memory = runtime.memory();
        runtime.scoped(notes, |d| {
            let bound = Exceptions::bind(memory, d);
            ExceptionReader {
                lacking: bound.as_ref().err().map(ToString::to_string),
                namer,
                objects: bound.ok(),
                methods: Methods::bind(memory, d, runtime.limits()).ok(),
                headers: Objects::bind(memory, d).ok(),
                lines: SourceLines::new(runtime, namer),
                messages: Messages::new(runtime),
                limits: runtime.limits(),
                notes,
                budget: Budget::of_types(memory.dump_bytes().saturating_mul(EXPANSION), runtime.limits().max_memory),
                by_address: Mutex::default(),
                methods_by_desc: Mutex::default(),
            }
        })
    }

    /// Whether the answer has memory for an exception with these texts. If not, this is noted.
    fn keeps<'t>(&self, texts: impl IntoIterator<Item = Option<&'t str>>) -> bool {
        self.keeps_bytes(texts.into_iter().flatten().fold(PLAIN, |n, t| n.saturating_add(len64(t.len()))))
    }

    fn keeps_bytes(&self, bytes: u64) -> bool {
        let kept = self.budget.memory(bytes);
        if !kept {
            self.budget.note("listing exceptions", self.notes);
        }
        kept
    }

    /// Whether the answer may use this many more steps to read exceptions. If not, this is noted. Steps are limited because many threads may have the
    /// same exception, and aggregates may contain each other.
    fn affords(&self, steps: usize) -> bool {
        let afforded = self.budget.steps(len64(steps));
        if !afforded {
            self.budget.note("listing exceptions", self.notes);
        }
        afforded
    }

    /// Notes why exceptions cannot be read, for answers that are only about exceptions.
    fn note_lacking(&self) {
        if let Some(why) = &self.lacking {
            self.notes.add(Missing::Exceptions, None, format!("exceptions cannot be read: {why}"));
        }
    }

    /// Notes why source lines are missing.
    pub(crate) fn note_lines(&self) {
        self.lines.note(self.notes);
    }

    fn read(&self, address: Addr) -> Option<Exception> {
        self.read_with_message(address, 0)
    }

    /// Reads the exception at `address`, with the message that `Exception.Message` returns. Some types extend the stored message.
    fn read_with_message(&self, address: Addr, depth: usize) -> Option<Exception> {
        /// Most nested aggregates whose messages are combined.
        const MAX_AGGREGATES: usize = 4;
        self.affords(1).then_some(())?;
        let mut read = self.objects.as_ref()?.read(self.namer.names()?, self.namer.fields(), address)?;
        let texts = [&read.message, &read.stack_text, &read.remote_text].into_iter().flatten();
        let of_texts = texts.fold(0usize, |sum, text| sum.saturating_add(text.len() / TEXT_OF_A_STEP));
        // This exception is kept even if the steps are used up.
        let of_frames = read.stack.len().saturating_mul(STEPS_OF_A_FRAME);
        self.affords(of_frames.saturating_add(read.inners.len()).saturating_add(of_texts));
        if read.stack_cut {
            self.notes.add(Missing::Exceptions, address, format!("the stack trace of the exception {address} cannot be read to its end"));
        }
        let Some(message) = &mut read.message else { return Some(read) };
        // `AggregateException.Message` appends the messages of inner exceptions.
        for inner in &read.inners {
            if depth >= MAX_AGGREGATES || message.len() >= MOST_OF_A_MESSAGE {
                break;
            }
            if let Some(inner) = self.read_with_message(*inner, depth.saturating_add(1)).and_then(|e| e.message) {
                message.push_str(&format!(" ({inner})"));
            }
        }
        self.messages.complete(self.namer, (address, read.method_table), message);
        Some(read)
    }

    /// The message of the exception at `address`, if the answer may keep it.
    pub(in crate::analysis) fn message(&self, address: Addr) -> Option<String> {
        let message = self.read(address)?.message;
        if self.keeps([message.as_deref()]) { message } else { None }
    }

    /// Returns the exception at `address` that a thread refers to. If the object at `address` is not an exception, this is noted.
    pub(crate) fn of_thread(&self, address: Addr, current: bool) -> Arc<ExceptionModel> {
        let mut known = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((model, bytes)) = known.get(&(address, current)) {
            let bare = || Arc::new(ExceptionModel { current, ..self.bare(address) });
            return if self.keeps_bytes(*bytes) { Arc::clone(model) } else { bare() };
        }
        let model = Arc::new(self.checked(address, current));
        known.insert((address, current), (Arc::clone(&model), listed_bytes(&model)));
        model
    }

    /// Reads the exception of a thread, with its inner exceptions. Parts that are missing from the dump are absent.
    fn checked(&self, address: Addr, current: bool) -> ExceptionModel {
        let model = ExceptionModel { current, ..self.model_of(address, &mut HashSet::new(), 0) };
        if let (Some(objects), Some(names), Some(mt)) = (&self.objects, self.namer.names(), model.method_table)
            && !objects.is_exception(names, mt)
            && !objects.are_undecided()
        {
            self.notes.add(
                NoteKind::Invalid,
                address,
                format!("a thread names the object at {address} as its exception, but that object is not an exception"),
            );
        }
        model
    }

    /// An exception whose fields are not read, with only its type.
    fn bare(&self, address: Addr) -> ExceptionModel {
        let method_table = self.headers.as_ref().and_then(|o| o.method_table(address));
        ExceptionModel {
            address,
            type_name: method_table.and_then(|mt| self.namer.name(mt)),
            method_table,
            current: false,
            message: None,
            hresult: None,
            stack: Vec::new(),
            inner: None,
            inners: Vec::new(),
            stack_text: None,
            remote_stack_text: None,
        }
    }

    fn model_of(&self, address: Addr, seen: &mut HashSet<Addr>, depth: usize) -> ExceptionModel {
        /// Maximum nesting, within the limits of common JSON readers.
        const MAX_DEPTH: usize = 48;
        let first = seen.insert(address);
        let mut out = self.bare(address);
        // A repeated or too deeply nested exception is listed without its inner exceptions.
        if !first || depth > MAX_DEPTH || seen.len() > self.limits.inner_exceptions {
            if first || depth > MAX_DEPTH {
                self.notes.add(NoteKind::LimitHit, address, "an exception has too many inner exceptions; the rest are left out");
            }
            return out;
        }
        let Some(read) = self.read(address) else { return out };
        if !self.keeps([read.message.as_deref(), read.stack_text.as_deref(), read.remote_text.as_deref()]) {
            return out;
        }
        out.message = read.message;
        out.hresult = read.hresult;
        out.stack = self.frames(&read.stack);
        out.stack_text = read.stack_text;
        out.remote_stack_text = read.remote_text;
        let below = depth.saturating_add(1);
        out.inner = read.inner.map(|a| Box::new(self.model_of(a, seen, below)));
        for inner in read.inners.iter().filter(|a| Some(**a) != read.inner) {
            if seen.len() > self.limits.inner_exceptions {
                self.notes.add(NoteKind::LimitHit, address, "an exception has too many inner exceptions; the rest are left out");
                break;
            }
            out.inners.push(self.model_of(*inner, seen, below));
        }
        out
    }

    fn frames(&self, stack: &[StackFrame]) -> Vec<FrameModel> {
        let compiled = self.namer.names().and_then(|names| names.native_aot());
        let frame = |f: &StackFrame| {
            // A frame has the return address, which may be past the end of the method.
            if let Some(program) = compiled {
                let method = f.ip.minus(1).and_then(|code| program.method_at(code));
                return FrameModel { display: method.as_ref().map(Name::display), method, ..FrameModel::bare(f.ip, f.last_of_foreign) };
            }
            let method = self.method(f.method);
            let line = method.as_ref().and_then(|m| self.lines.at(&m.of, f.ip));
            FrameModel {
                ip: f.ip,
                sp: f.sp,
                method: method.as_ref().map(|m| m.name.clone()),
                display: method.as_ref().map(|m| m.display.clone()),
                method_desc: Some(f.method),
                module: method.as_ref().and_then(|m| m.module.clone()),
                offset: self.lines.offset(f.method, f.ip),
                line: line.as_ref().map(|l| l.line),
                file: line.map(|l| l.file),
                last_of_foreign: f.last_of_foreign,
            }
        };
        let mut frames: Vec<FrameModel> = stack.iter().map(frame).take_while(|f| self.keeps_bytes(frame_bytes(f))).collect();
        frames.shrink_to_fit();
        frames
    }

    /// Returns the method at `desc`. Its name is cached, because recursion repeats methods and many traces have the same ones.
    fn method(&self, desc: Addr) -> Option<Arc<TraceMethod>> {
        let mut known = self.methods_by_desc.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(method) = known.get(&desc) {
            return method.clone();
        }
        let of = self.methods.as_ref().zip(self.namer.names()).and_then(|(methods, types)| methods.name(types, desc));
        let method = of.map(|of| {
            let (name, module) = (of.to_name(), of.module.as_deref().map(Name::from));
            Arc::new(TraceMethod { display: name.display(), name, module, of })
        });
        // The memory for the name is charged with each frame.
        known.insert(desc, method.clone());
        method
    }

    /// Whether objects with this method table are exceptions. Cached by type, so cheap per object.
    pub(crate) fn is_exception(&self, method_table: Addr) -> bool {
        self.objects.as_ref().zip(self.namer.names()).is_some_and(|(o, types)| o.is_exception(types, method_table))
    }

    /// Returns the exceptions that threads refer to, and their inner exceptions. They are captured even in dumps without the heap.
    fn held(&self, threads: &[Thread]) -> Vec<Addr> {
        let own = |t: &Thread| t.exception.into_iter().chain(t.nested.iter().copied()).chain(t.last_thrown).collect::<Vec<_>>();
        let mut found: Vec<Addr> = threads.iter().flat_map(own).collect();
        let mut seen: HashSet<Addr> = HashSet::new();
        found.retain(|a| seen.insert(*a));
        let most = found.len().saturating_add(self.limits.inner_exceptions);
        let mut next = 0usize;
        while let Some(address) = found.get(next).copied() {
            next.bump();
            let behind = self.read(address).map(|e| e.inner.into_iter().chain(e.inners).collect::<Vec<_>>()).unwrap_or_default();
            let room = most.saturating_sub(found.len());
            found.extend(behind.into_iter().filter(|a| seen.insert(*a)).take(room));
        }
        found
    }

    /// The error for an address without an exception. `at` is the start of the object that `query` asks for.
    fn no_exception(&self, at: Addr, query: &ExceptionsQuery) -> Error {
        let Some(mt) = self.headers.as_ref().and_then(|o| o.method_table(at)).filter(|mt| self.namer.name(*mt).is_some()) else {
            return Error::NoObject(query.object.unwrap_or(at));
        };
        let type_name = self.namer.name_or_address(mt).to_string();
        match self.is_exception(mt) {
            true => Error::Nothing(format!("{at} is an object of type {type_name}, which is not one of the requested types")),
            false => Error::NotAnException(at, type_name),
        }
    }

    /// Reports the exceptions among `objects` (address and method table), in order, then the exceptions that only threads hold. `stat` omits the
    /// list.
    fn report(
        &self,
        objects: impl Iterator<Item = (Addr, Addr)>,
        threads: &[Thread],
        stat: bool,
        wanted: impl Fn(Addr, Addr) -> bool,
    ) -> ExceptionsReport {
        let roles = roles(threads);
        let mut preallocated = 0u64;
        let mut groups: Map<(Option<Name>, Option<Name>), ExceptionGroup> = Map::default();
        let mut list = Vec::new();
        let mut total = 0u64;
        let mut seen = HashSet::new();
        let held = self.held(threads);
        let of_heap = objects.filter(|(_, mt)| self.is_exception(*mt)).map(|(address, _)| address);
        for address in of_heap.chain(held) {
            if !seen.insert(address) {
                continue;
            }
            let Some(read) = self.read(address) else { continue };
            let method_table = read.method_table;
            if !wanted(address, method_table) {
                continue;
            }
            let type_name = self.namer.name(method_table);
            if !self.keeps([read.message.as_deref(), type_name.as_deref(), read.remote_text.as_deref().filter(|_| !stat)]) {
                break;
            }
            total.bump();
            let thrower = self.frames(read.stack.get(..1).unwrap_or_default()).pop();
            let method = thrower.as_ref().and_then(|frame| frame.method.clone());
            let group = groups.entry((type_name.clone(), method.clone())).or_insert_with(|| ExceptionGroup {
                type_name: type_name.clone(),
                method,
                display: thrower.and_then(|frame| frame.display),
                message: read.message.clone(),
                count: 0,
                thrown: 0,
                example: address,
            });
            group.count.bump();
            group.thrown.grow(u64::from(read.was_thrown()));
            let role =
                roles.get(&address).copied().or_else(|| is_preallocated(&read, type_name.as_deref()).then_some((None, PREALLOCATED)));
            preallocated.grow(u64::from(role.is_some_and(|r| r.1 == PREALLOCATED)));
            if stat {
                continue;
            }
            list.push(HeapExceptionModel {
                address,
                type_name,
                method_table,
                message: read.message,
                hresult: read.hresult,
                inner: read.inner,
                inners: read.inners.into_iter().filter(|a| Some(*a) != read.inner).collect(),
                stack: self.frames(&read.stack),
                remote_stack_text: read.remote_text,
                thread: role.and_then(|r| r.0),
                thread_role: role.map(|r| r.1.to_string()),
                inner_exceptions: None,
            });
        }
        // A single exception, or one in flight, contains its inner exceptions. In a list, inner exceptions also have separate rows.
        for e in list.iter_mut().filter(|e| total == 1 || e.thread_role.as_deref() == Some(IN_FLIGHT)) {
            let mut seen = HashSet::from([e.address]);
            e.inner_exceptions = Some(e.inner.iter().chain(&e.inners).map(|at| self.model_of(*at, &mut seen, 1)).collect());
        }
        let mut groups: Vec<ExceptionGroup> = groups.into_values().collect();
        groups.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| (&a.type_name, &a.method).cmp(&(&b.type_name, &b.method))));
        let total = self.objects.is_some().then_some(total);
        let rows = if stat { ExceptionsRows::Groups } else { ExceptionsRows::Exceptions { exceptions: list } };
        ExceptionsReport { total, preallocated, groups, rows, not_listed: None }
    }
}

/// Bytes of a frame in an answer.
fn frame_bytes(frame: &FrameModel) -> u64 {
    [&frame.method, &frame.module, &frame.file].into_iter().flatten().fold(PLAIN, |sum, text| sum.saturating_add(len64(text.len())))
}

/// Bytes of an exception in an answer, with its inner exceptions.
fn listed_bytes(exception: &ExceptionModel) -> u64 {
    let texts = [&exception.message, &exception.stack_text, &exception.remote_stack_text].into_iter().flatten();
    let own = texts.fold(PLAIN, |sum, text| sum.saturating_add(len64(text.len())));
    let frames = exception.stack.iter().map(frame_bytes).fold(own, u64::saturating_add);
    exception.inner.iter().map(|e| &**e).chain(&exception.inners).map(listed_bytes).fold(frames, u64::saturating_add)
}

/// Arguments of `exceptions`.
#[derive(Clone, Debug, Default)]
pub struct ExceptionsQuery {
    /// Whether to return only counts by type and throwing method.
    pub stat: bool,
    /// Only exceptions of these types; empty for all.
    pub types: Vec<TypePattern>,
    /// Only the exception at or around this address.
    pub object: Option<Addr>,
    /// Order of the list, or of the counts. `None` for exceptions in heap order, and the largest counts first.
    pub sort: Option<Order<ExceptionSort>>,
}

/// Lists the exceptions on the heap, then exceptions that only threads hold.
///
/// # Errors
/// [`Error::Query`] for a column that is not in the list, [`Error::NoObject`] or [`Error::Nothing`] if no exception is at the address.
pub fn exceptions(heap: &Heap, query: &ExceptionsQuery) -> Result<Answer<ExceptionsReport>, Error> {
    use ExceptionSort::{Address, Count, Message, Method, Thread, Thrown, Type};
    let (has, what): (&[ExceptionSort], &str) = if query.stat {
        (&[Type, Method, Message, Count, Thrown], "counts of exceptions")
    } else {
        (&[Address, Type, Message, Thread], "exceptions")
    };
    sort::check(query.sort.as_ref(), has, what)?;
    let (runtime, namer, notes) = (heap.runtime(), heap.namer(), heap.begin());
    let reader = ExceptionReader::new(runtime, &namer, &notes);
    reader.note_lacking();
    let objects = notes.take(objects_of(heap, |mt| reader.is_exception(mt)));
    if reader.objects.as_ref().is_some_and(Exceptions::are_undecided) {
        notes.add(Missing::Metadata, None, "types without names may be exceptions; their objects are not listed");
    }
    let types = heap.filter(&query.types, &namer, &notes);
    let object = query.object.map(|at| containing(heap, &namer, at, &notes).map_or(at, |found| found.address));
    let wanted = |address: Addr, mt: Addr| {
        object.is_none_or(|at| at == address) && (types.is_empty() || types.matches(mt, || namer.name_or_address(mt)))
    };
    runtime.note_in_flight(&notes);
    // Without the thread list, relations to threads are unknown, and exceptions that only threads hold are missing.
    let mut report = reader.report(objects.into_iter(), runtime.threads_if_any(&notes), query.stat, wanted);
    if let (Some(at), None | Some(0)) = (object, report.total) {
        return Err(reader.no_exception(at, query).given(&notes.notes()));
    }
    if let Some(by) = query.sort {
        sorted(&mut report, by);
    }
    reader.note_lines();
    namer.note(&notes);
    Ok(notes.finish(report))
}

/// Sorts the list, or the counts if the answer has no list.
fn sorted(report: &mut ExceptionsReport, Order { by, direction }: Order<ExceptionSort>) {
    match &mut report.rows {
        ExceptionsRows::Exceptions { exceptions } => sort::sort(exceptions, direction, |e| match by {
            ExceptionSort::Type => Key::text(e.type_name.as_deref()),
            ExceptionSort::Message => Key::text(e.message.as_deref()),
            ExceptionSort::Thread => Key::least(e.thread),
            _ => Key::at(e.address),
        }),
        ExceptionsRows::Groups => sort::sort(&mut report.groups, direction, |g| match by {
            ExceptionSort::Type => Key::text(g.type_name.as_deref()),
            ExceptionSort::Method => Key::text(g.method.as_deref()),
            ExceptionSort::Message => Key::text(g.message.as_deref()),
            ExceptionSort::Thrown => Key::most(g.thrown),
            _ => Key::most(g.count),
        }),
    }
}

/// Relation of an exception to the thread that handles it.
const IN_FLIGHT: &str = "in-flight";
/// Relation of an exception that the runtime has preallocated.
const PREALLOCATED: &str = "preallocated";

/// Whether the runtime created an exception at startup: it has one of these types (`CreatePreallocatedExceptions` in vm/appdomain.cpp), was never
/// thrown, and does not have the message that its constructor sets.
fn is_preallocated(read: &Exception, type_name: Option<&str>) -> bool {
    const TYPES: [&str; 3] = ["System.OutOfMemoryException", "System.StackOverflowException", "System.ExecutionEngineException"];
    read.is_bare() && type_name.is_some_and(|name| TYPES.contains(&name))
}

/// The thread of each exception, and the exception's relation to it.
fn roles(threads: &[Thread]) -> Map<Addr, (Option<u32>, &'static str)> {
    let mut out = Map::default();
    // In ascending order of importance: an exception in flight is also the last one thrown.
    for t in threads {
        out.extend(t.last_thrown.map(|a| (a, (t.id, "last-thrown"))));
    }
    for t in threads {
        out.extend(t.nested.iter().map(|a| (*a, (t.id, "nested"))));
        out.extend(t.exception.map(|a| (a, (t.id, IN_FLIGHT))));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_exceptions_are_not_none() {
        let dump = crate::open("dumps/mono68-lab-gcore.dmp.zst").unwrap();
        let heap = dump.runtime().unwrap().heap().unwrap();
        let answer = exceptions(&heap, &ExceptionsQuery::default()).unwrap();
        assert!(answer.total.is_none() && !answer.complete());
    }

    #[test]
    fn the_total_size_of_a_list_is_bounded() {
        let dump = crate::open("dumps/corpus/net10-wks-crash-heap.dmp.zst").unwrap();
        let runtime = dump.runtime().unwrap();
        let heap = runtime.heap().unwrap();
        let threads = runtime.threads_if_any(&Collector::new());
        let list = |left: u64| {
            let (namer, notes) = (heap.namer(), Collector::new());
            let mut reader = ExceptionReader::new(&runtime, &namer, &notes);
            reader.budget = Budget::of_types(0, Some(0));
            let all = (0..).find(|_| !reader.budget.memory(1 << 10)).map_or(0, |n: u64| n << 10);
            reader.budget = Budget::of_types(0, Some(0));
            assert!(reader.budget.memory(all - left));
            let objects = objects_of(&heap, |mt| reader.is_exception(mt)).data;
            let report = reader.report(objects.into_iter(), threads, false, |_, _| true);
            let ExceptionsRows::Exceptions { exceptions: listed } = report.rows else { panic!() };
            drop(reader);
            (listed.len(), notes.into_notes().complete())
        };
        let (all, complete) = list(1 << 20);
        assert!(all > 4 && complete, "{all}");
        let (some, complete) = list(1 << 10);
        assert!(some < all && !complete, "{some} of {all}");
    }
}
