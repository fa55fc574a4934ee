//! The server loop: one thread reads requests and another runs tools, so that a running call can be cancelled.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::super::exit::UsageError;
use super::super::streams::Streams;
use super::answer::{Answer, Worker};
use super::arguments::{Arguments, Line as Asked, put};
use super::rpc::{self, Failure, LONGEST, Line, Message, NO_JSON, NO_METHOD, NO_PARAMS, NO_REQUEST, NO_RESOURCE, NO_VERSION, cut};
use super::tools::{self, Does, Tool};
use super::{list, more, prompts, resources};
use crate::base::Cancel;
use crate::base::threads::start_apart;

/// Protocol versions with a handshake, oldest first. In the features that this server uses, the versions differ only in batches.
const HANDSHAKE: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The version with batches.
const BATCHES: &str = "2025-03-26";
/// The version without a handshake: each request names its version.
const STATELESS: &str = "2026-07-28";
/// The field of a request that names its protocol version.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The field of a result that names the server.
const SERVER: &str = "io.modelcontextprotocol/serverInfo";
/// Milliseconds for which a client may cache the list of tools, which never changes.
const KEPT: u64 = 3_600_000;
/// Maximum number of waiting and running calls.
const CALLS: usize = 32;
/// Interval of progress reports on long calls.
const PROGRESS: Duration = Duration::from_secs(2);
/// Maximum number of messages that were read but not yet handled.
const READ: usize = 16;
/// Maximum number of requests in a batch.
const BATCH: usize = 32;
/// Maximum total size of the answers to a batch in bytes. All answers are kept in memory until the last answer of the batch.
const BATCH_BYTES: usize = 1_000_000;

/// An event for the server loop.
enum Event {
    Line(Line),
    /// The end of the input.
    End,
    /// A call has ended. The answer is `None` if the call was cancelled.
    Done(String, Option<Answer>),
}

/// A call for the worker.
struct Call {
    key: String,
    tool: &'static Tool,
    /// The arguments by name.
    asked: Map<String, Value>,
    line: Asked,
    cancel: Cancel,
}

/// The form in which the answer of a tool is sent.
#[derive(Clone, Debug)]
enum Form {
    /// The result of the tool.
    Tool,
    /// The list of resources.
    Resources,
    /// The contents of the resource with this URI.
    Contents(String),
}

impl Form {
    /// Returns the result of a request.
    fn result(&self, answer: Answer, from: From) -> Result<Value, Failure> {
        let (name, value) = match (self, answer.document()) {
            (Form::Tool, _) => return Ok(answer.result()),
            (Form::Resources, Ok(list)) => ("resources", resources::all(list)),
            (Form::Contents(uri), Ok(_)) => ("contents", resources::contents(uri, answer.text())),
            (_, Err(why)) => return Err(Failure::new(NO_RESOURCE, why)),
        };
        // Clients must not cache the result (0 ms), because dumps may appear and be replaced at any time.
        Ok(listed(name, value, from, 0))
    }
}

/// A call that is waiting or running.
struct Running {
    id: Value,
    from: From,
    form: Form,
    cancel: Cancel,
    /// Whether the client cancelled the call. Time and memory limits also cancel calls, but such calls get an answer.
    given_up: bool,
    started: Instant,
    /// The client's token for progress reports.
    token: Option<Value>,
}

/// The answers to a batch so far.
#[derive(Default)]
struct Batch {
    /// The serialized answers, separated by commas.
    text: String,
}

impl Batch {
    /// Adds the answer to the request with this id, or an error if the answer does not fit.
    fn add(&mut self, id: &Value, response: &Value) {
        let mut answer = response.to_string();
        if self.text.len().saturating_add(answer.len()) > BATCH_BYTES {
            let why = format!("the answers to this batch have more than {BATCH_BYTES} bytes: send this request by itself");
            answer = rpc::response(id, Err(Failure::new(NO_REQUEST, why))).to_string();
        }
        if !self.text.is_empty() {
            self.text.push(',');
        }
        self.text.push_str(&answer);
    }
}

/// The origin of a request.
#[derive(Clone, Copy)]
struct From {
    /// Number of the batch that contains the request.
    batch: Option<u64>,
    /// Whether the request named its protocol version.
    stateless: bool,
}

/// Answers requests from `input` until it ends and all requests are answered.
///
/// # Errors
/// Errors of writing answers.
pub(super) fn serve(mut worker: Worker, contents: bool, input: impl BufRead + Send + 'static, streams: &mut Streams<'_>) -> Result<()> {
    let (send, events) = mpsc::sync_channel(READ);
    let (calls, waiting) = mpsc::channel::<Call>();
    let lines: SyncSender<Event> = send.clone();
    // The process does not wait for these threads: when it ends, the reading thread may be blocked, and the working thread may still compute.
    let reading = move || {
        let read = rpc::lines(input, |line| lines.send(Event::Line(line)).is_ok());
        if let Err(e) = read {
            // If standard error cannot be written, the error cannot be reported anywhere else.
            let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("gcdump mcp: reading requests: {e}\n"));
        }
        let _ = lines.send(Event::End);
    };
    let working = move || {
        for Call { key, tool, asked, line, cancel } in waiting {
            let answer = if cancel.is_cancelled() { None } else { worker.call(tool, &asked, line, &cancel) };
            if send.send(Event::Done(key, answer)).is_err() {
                break;
            }
        }
    };
    let started = start_apart("requests", reading).and_then(|()| start_apart("tools", working));
    started.map_err(|_| {
        UsageError("mcp takes two threads, and the system starts none: raise the limit of processes (ulimit -u, pids.max)".into())
    })?;
    Server { contents, version: None, calls, running: BTreeMap::new(), batches: BTreeMap::new(), numbered: 0, streams }.run(&events)
}

struct Server<'s, 'o> {
    contents: bool,
    /// Protocol version agreed on in the handshake.
    version: Option<&'static str>,
    calls: Sender<Call>,
    /// Calls by the text of their ids.
    running: BTreeMap<String, Running>,
    /// The answers to incomplete batches.
    batches: BTreeMap<u64, Batch>,
    /// Number of batches so far.
    numbered: u64,
    streams: &'s mut Streams<'o>,
}

impl Server<'_, '_> {
    fn run(&mut self, events: &Receiver<Event>) -> Result<()> {
        let mut ended = false;
        let mut reported = Instant::now();
        while !(ended && self.running.is_empty()) {
            // A client that sends requests all the time gets reports as well.
            if reported.elapsed() >= PROGRESS {
                reported = Instant::now();
                self.progress()?;
            }
            match events.recv_timeout(PROGRESS.saturating_sub(reported.elapsed())) {
                Ok(Event::Line(Line::Text(text))) => self.line(&text)?,
                Ok(Event::Line(Line::TooLong)) => {
                    let failure = Failure::new(NO_JSON, format!("a message has more than {LONGEST} bytes"));
                    self.write(&rpc::response(&Value::Null, Err(failure)))?;
                }
                Ok(Event::End) => ended = true,
                Ok(Event::Done(key, answer)) => self.done(&key, answer)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
        Ok(())
    }

    fn write(&mut self, message: &Value) -> Result<()> {
        self.write_line(message.to_string())
    }

    fn write_line(&mut self, mut line: String) -> Result<()> {
        line.push('\n');
        let written = self.streams.out.write_all(line.as_bytes()).and_then(|()| self.streams.out.flush());
        written.context("writing an answer")
    }

    fn line(&mut self, text: &[u8]) -> Result<()> {
        let refused = match serde_json::from_slice::<Value>(text) {
            Ok(Value::Array(batch)) if batch.len() > BATCH => Failure::new(
                NO_REQUEST,
                format!("a batch has at most {BATCH} requests, and this one has {}: send fewer at a time", batch.len()),
            ),
            Ok(Value::Array(batch)) if self.version == Some(BATCHES) && !batch.is_empty() => return self.batch(batch),
            Ok(Value::Array(_)) => {
                Failure::new(NO_REQUEST, format!("batches are supported in version {BATCHES} of the protocol only, and must not be empty"))
            }
            Ok(value) => return self.message(value, None),
            Err(e) => Failure::new(NO_JSON, e.to_string()),
        };
        self.write(&rpc::response(&Value::Null, Err(refused)))
    }

    fn batch(&mut self, messages: Vec<Value>) -> Result<()> {
        let number = self.numbered;
        self.numbered = number.saturating_add(1);
        self.batches.insert(number, Batch::default());
        messages.into_iter().try_for_each(|message| self.message(message, Some(number)))?;
        self.complete(number)
    }

    /// Writes the answers to a batch once the batch is complete.
    fn complete(&mut self, batch: u64) -> Result<()> {
        if self.running.values().any(|call| call.from.batch == Some(batch)) {
            return Ok(());
        }
        match self.batches.remove(&batch).filter(|batch| !batch.text.is_empty()) {
            Some(batch) => self.write_line(format!("[{}]", batch.text)),
            None => Ok(()),
        }
    }

    /// Answers a request.
    fn answer(&mut self, id: &Value, from: From, outcome: Result<Value, Failure>) -> Result<()> {
        let outcome = outcome.map(|result| if from.stateless { stateless(result) } else { result });
        let response = rpc::response(id, outcome);
        match from.batch.and_then(|number| self.batches.get_mut(&number)) {
            Some(batch) => {
                batch.add(id, &response);
                Ok(())
            }
            None => self.write(&response),
        }
    }

    fn message(&mut self, value: Value, batch: Option<u64>) -> Result<()> {
        match rpc::message(value) {
            Ok(Message::Request { id, method, params }) => self.request(&id, &method, params, batch),
            Ok(Message::Notification { method, params }) => {
                if method == "notifications/cancelled"
                    && let Some(call) = params.get("requestId").and_then(|id| self.running.get_mut(&id.to_string()))
                {
                    call.given_up = true;
                    call.cancel.cancel();
                }
                Ok(())
            }
            Ok(Message::Response) => Ok(()),
            Err((id, failure)) => self.answer(&id, From { batch, stateless: false }, Err(failure)),
        }
    }

    fn request(&mut self, id: &Value, method: &str, params: Map<String, Value>, batch: Option<u64>) -> Result<()> {
        let named = params.get("_meta").and_then(|meta| meta.get(VERSION));
        let from = From { batch, stateless: named.is_some() };
        if let Some(named) = named.filter(|named| *named != STATELESS) {
            let named = named.as_str().map_or_else(|| cut(&named.to_string()).into_owned(), |text| cut(text).into_owned());
            let message = format!("version {named} of the protocol needs a handshake first: call initialize");
            let data = Some(json!({ "supported": [STATELESS], "requested": named }));
            return self.answer(id, from, Err(Failure { code: NO_VERSION, message, data }));
        }
        let outcome = match method {
            "initialize" if batch.is_some() => Err(Failure::new(NO_REQUEST, "initialize must not be part of a batch")),
            "initialize" => self.initialize(&params),
            "server/discover" => Ok(self.discovered()),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(listed("tools", list::all(), from, KEPT)),
            "prompts/list" => Ok(listed("prompts", prompts::all(), from, KEPT)),
            "prompts/get" => prompts::get(&params),
            "resources/templates/list" => Ok(listed("resourceTemplates", json!([]), from, KEPT)),
            "tools/call" | "resources/list" | "resources/read" => {
                let begun = match method {
                    "tools/call" => self.call(id, from, params),
                    "resources/list" => self.begin(id, from, &params, "dumps", &Map::new(), Form::Resources),
                    _ => self.read(id, from, &params),
                };
                match begun {
                    Ok(None) => return Ok(()),
                    Ok(Some(result)) => Ok(result),
                    Err(failure) => Err(failure),
                }
            }
            _ => Err(Failure::new(NO_METHOD, format!("there is no method {}", cut(method)))),
        };
        self.answer(id, from, outcome)
    }

    fn initialize(&mut self, params: &Map<String, Value>) -> Result<Value, Failure> {
        let asked = params.get("protocolVersion").and_then(Value::as_str);
        let asked = asked.ok_or_else(|| Failure::new(NO_PARAMS, "initialize: protocolVersion must be a string"))?;
        // For an unknown version, the latest known version is offered. The client decides whether it accepts this version.
        let version = HANDSHAKE.into_iter().find(|v| *v == asked).or(HANDSHAKE.last().copied());
        self.version = version;
        Ok(json!({
            "protocolVersion": version,
            "capabilities": capabilities(),
            "serverInfo": server_info(),
            "instructions": list::instructions(self.contents),
        }))
    }

    fn discovered(&self) -> Value {
        json!({
            "supportedVersions": [STATELESS],
            "capabilities": capabilities(),
            "instructions": list::instructions(self.contents),
            "ttlMs": KEPT,
            "cacheScope": "private",
        })
    }

    /// Passes a call to the worker, or answers it directly.
    fn call(&mut self, id: &Value, from: From, mut params: Map<String, Value>) -> Result<Option<Value>, Failure> {
        let wrong = |why: &str| Failure::new(NO_PARAMS, format!("tools/call: {why}"));
        let arguments = match params.remove("arguments") {
            Some(Value::Object(arguments)) => arguments,
            None | Some(Value::Null) => Map::new(),
            Some(_) => return Err(wrong("arguments must be an object")),
        };
        let name = params.get("name").and_then(Value::as_str).ok_or_else(|| wrong("name must be a string"))?.to_string();
        self.begin(id, from, &params, &name, &arguments, Form::Tool)
    }

    /// Reads a resource: the summary of a dump.
    fn read(&mut self, id: &Value, from: From, params: &Map<String, Value>) -> Result<Option<Value>, Failure> {
        let uri = params.get("uri").and_then(Value::as_str);
        let uri = uri.ok_or_else(|| Failure::new(NO_PARAMS, "resources/read: uri must be a string"))?;
        let path = resources::path(uri).ok_or_else(|| Failure::new(NO_RESOURCE, format!("there is no resource {}", cut(uri))))?;
        let arguments = Map::from_iter([("dump".to_string(), path.into())]);
        self.begin(id, from, params, "info", &arguments, Form::Contents(uri.to_string()))
    }

    /// Passes a call of a tool to the worker, or answers it directly.
    fn begin(
        &mut self,
        id: &Value,
        from: From,
        params: &Map<String, Value>,
        name: &str,
        arguments: &Map<String, Value>,
        form: Form,
    ) -> Result<Option<Value>, Failure> {
        let key = id.to_string();
        if self.running.contains_key(&key) {
            return Err(Failure::new(NO_REQUEST, "a call with this id is not answered yet"));
        }
        let directly = |answer: Answer| form.result(answer, from).map(Some);
        let tool = tools::find(name).ok_or_else(|| Failure::new(NO_PARAMS, format!("tools/call: {}", tools::no_tool(name))))?;
        let is_help = tool.does == Does::Help;
        // Wrong arguments are reported in the result, because the assistant sees the result, but only the host sees protocol errors.
        let (tool, arguments, ignored) = match more::resolved(tool, arguments) {
            Ok(resolved) => resolved,
            Err(why) => return directly(Answer::refused(&why)),
        };
        if is_help {
            return directly(Answer::help(tool));
        }
        let of = Arguments::of(tool);
        let (asked, mut line) = match of.spelled(&arguments).and_then(|asked| of.line(&asked).map(|line| (asked, line))) {
            Ok(found) => found,
            Err(why) => return directly(Answer::refused(&why)),
        };
        line.ignored = ignored;
        if self.running.len() >= CALLS {
            return directly(Answer::refused(&format!("{CALLS} calls are waiting already")));
        }
        let token = params.get("_meta").and_then(|meta| meta.get("progressToken")).filter(|t| rpc::may_be_repeated(t)).cloned();
        let cancel = Cancel::default();
        let call = Call { key: key.clone(), tool, asked, line, cancel: cancel.clone() };
        self.calls.send(call).map_err(|_| Failure::new(NO_REQUEST, "the server ends"))?;
        self.running.insert(key, Running { id: id.clone(), from, form, cancel, given_up: false, started: Instant::now(), token });
        Ok(None)
    }

    fn done(&mut self, key: &str, answer: Option<Answer>) -> Result<()> {
        let Some(Running { id, from, form, given_up, .. }) = self.running.remove(key) else { return Ok(()) };
        // A client that cancelled a call expects no answer.
        if let Some(answer) = answer.filter(|_| !given_up) {
            self.answer(&id, from, form.result(answer, from))?;
        }
        from.batch.map_or(Ok(()), |batch| self.complete(batch))
    }

    /// Sends the time since the start of each call whose client requested progress reports. Some clients time out without such reports.
    fn progress(&mut self) -> Result<()> {
        let reports = self.running.values().filter_map(|call| {
            let seconds = call.started.elapsed().as_secs();
            let token = call.token.as_ref()?;
            Some(json!({ "progressToken": token, "progress": seconds, "message": format!("{seconds} s") }))
        });
        let reports: Vec<Value> = reports.map(|params| rpc::notification("notifications/progress", &params)).collect();
        reports.iter().try_for_each(|message| self.write(message))
    }
}

/// Returns the capabilities of the server.
fn capabilities() -> Value {
    json!({ "tools": {}, "prompts": {}, "resources": {} })
}

/// Returns a result with `list` in the field `name`, which a client may cache for `ttl` milliseconds.
fn listed(name: &str, list: Value, from: From, ttl: u64) -> Value {
    let mut listed = json!({ name: list });
    if from.stateless {
        put(&mut listed, "ttlMs", ttl.into());
        put(&mut listed, "cacheScope", "private".into());
    }
    listed
}

fn server_info() -> Value {
    json!({ "name": "gcdump", "title": "gcdump: crash dumps of .NET", "version": env!("CARGO_PKG_VERSION") })
}

/// Adds the fields that the version without a handshake requires.
fn stateless(mut result: Value) -> Value {
    if let Some(fields) = result.as_object_mut() {
        fields.insert("resultType".into(), "complete".into());
        fields.insert("_meta".into(), json!({ SERVER: server_info() }));
    }
    result
}
