//! Runs tool calls like commands and limits the size of their answers.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::OnceLock;

use anyhow::Result;
use clap::parser::ValueSource;
use serde_json::{Map, Value, json};

use super::super::args::Config;
use super::super::exit::{Exit, UsageError};
use super::super::failure::{fail, in_one_line};
use super::super::job::{self, Ended};
use super::super::limits::{out_of_memory, out_of_time};
use super::super::parsed::Cli;
use super::super::streams::Streams;
use super::arguments::{Line, MOST_BYTES};
use super::dumps::Dumps;
use super::fit::fit;
use super::list;
use super::next::{Call, calls, without_stacks};
use super::rpc::beginning;
use super::tools::{Does, Tool};
use crate::base::Cancel;
use crate::base::missed::tried;
use crate::memory::Memory;
use crate::session::Dump;

/// Maximum size of a command's output in bytes. If the output is larger, the command runs again with fewer rows.
const LARGEST: usize = 4_000_000;
/// Maximum number of remarks of a command to repeat, and maximum characters of each.
const REMARKS: usize = 5;
const REMARK: usize = 300;
/// Maximum characters of a refusal.
const REFUSAL: usize = 10_000;
/// Maximum bytes of the note about what was left out of a document.
const BESIDE: usize = 400;

/// The state for running tools, one at a time.
pub(super) struct Worker {
    pub(super) config: Config,
    pub(super) dumps: Dumps,
}

/// Outcome of a command.
enum Ran {
    /// The command printed a document.
    Document {
        text: String,
        exit: Exit,
        remarks: String,
        next: Option<&'static str>,
    },
    /// The command printed only a reason.
    Refused(String),
    /// The document exceeds [`LARGEST`].
    TooLarge,
    Cancelled,
}

/// The result of a call.
pub(super) struct Answer {
    /// The shortened document, or the reason for a refusal.
    text: String,
    /// The complete document.
    document: Option<Value>,
    /// Notes about the document, and suggested follow-up calls.
    notes: Vec<String>,
}

impl Answer {
    /// Creates a refusal with its reason.
    pub(super) fn refused(why: &str) -> Answer {
        Answer { text: beginning(why, REFUSAL).into_owned(), document: None, notes: Vec::new() }
    }

    /// Creates the answer about the arguments of a tool.
    pub(super) fn help(tool: &'static Tool) -> Answer {
        let document = list::help(tool);
        Answer { text: document.to_string(), document: Some(document), notes: Vec::new() }
    }

    /// Returns the result in MCP format.
    pub(super) fn result(self) -> Value {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let mut content = vec![text(&self.text)];
        if !self.notes.is_empty() {
            content.push(text(&self.notes.join("\n")));
        }
        json!({ "content": content, "isError": self.document.is_none() })
    }

    /// Returns the document, or the reason for a refusal.
    pub(super) fn document(&self) -> Result<&Value, &str> {
        self.document.as_ref().ok_or(&self.text)
    }

    /// Returns the text of the answer.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl Worker {
    /// Answers a call with the arguments `asked`, translated to `line`; returns `None` if `cancel` stopped it.
    pub(super) fn call(&mut self, tool: &'static Tool, asked: &Map<String, Value>, line: Line, cancel: &Cancel) -> Option<Answer> {
        let (mut line, mut shortened, mut folded) = (line, false, None);
        let mut whole = line.clone();
        let (text, exit, remarks, next) = loop {
            match self.run(tool, &line, cancel) {
                Ran::Document { text, exit, remarks, next } => break (text, exit, remarks, next),
                Ran::Refused(why) => return Some(Answer::refused(&within(&line.repeated_in(why), line.bytes))),
                Ran::Cancelled => return None,
                Ran::TooLarge => match line.shortened() {
                    Some(less) => (line, shortened) = (less, true),
                    // No number of rows makes one large row smaller.
                    None if let Some(less) = whole.folded() => {
                        (line, shortened, folded) = (less.clone(), false, tool.on.map(|(flag, _)| flag));
                        whole = less;
                    }
                    None => {
                        let why = format!("{}: the answer has more than {LARGEST} bytes: {}", tool.name, instead(tool));
                        return Some(Answer::refused(&why));
                    }
                },
            }
        };
        // Streamed lists have a line for each row. The line breaks can be removed, because strings in JSON never contain an unescaped line break.
        let text = text.replace('\n', "");
        let document: Value = match serde_json::from_str(&text) {
            Ok(document) => document,
            Err(e) => return Some(Answer::refused(&format!("{}: {e}", tool.name))),
        };
        let mut notes = Vec::new();
        if let Some(rows) = line.most_rows().filter(|_| shortened) {
            notes.push(format!("Shortened to {rows} rows: with more, the answer would have more than {LARGEST} bytes."));
        }
        if let Some(flag) = folded {
            notes.push(format!("Answered with {flag}: without it, the answer would have more than {LARGEST} bytes."));
        }
        notes.extend(line.ignored.iter().map(|option| format!("{option} was ignored: the user gives it to the server when it starts.")));
        notes.extend(about(tool, &document, &line));
        if exit == Exit::Negative {
            notes.push("The answer is negative: nothing matches, or a check failed.".into());
        }
        notes.extend(line.repeated_in(remarks).lines().take(REMARKS).map(|remark| beginning(remark, REMARK).into_owned()));
        if text.contains(Memory::HIDDEN) {
            notes.push(format!(
                "Texts of the process are shown as {}: a server that is started with --contents shows them.",
                Memory::HIDDEN
            ));
        }
        let next = calls(tool, asked, &document, next);
        let next = if next.iter().any(Call::needs_stacks) && !self.walks_stacks(&line) { without_stacks(tool, asked, next) } else { next };
        let mut next: Vec<String> = next.iter().map(Call::as_sent).collect();
        shorten_notes(&mut notes, &mut next, line.bytes / 5 * 2);
        let of_cuts = BESIDE.min(line.bytes / 5);
        let beside = notes.iter().chain(&next).map(|note| note.len().saturating_add(1)).fold(of_cuts, usize::saturating_add);
        let fitted = fit(&document, text, line.bytes.saturating_sub(beside));
        if let Some(left_out) = fitted.lacks {
            notes.insert(0, note_of_cuts(&left_out, line.bytes, instead(tool), of_cuts));
        }
        notes.extend(next);
        Some(Answer { text: fitted.text, document: Some(document), notes })
    }

    fn run(&mut self, tool: &Tool, line: &Line, cancel: &Cancel) -> Ran {
        let next = OnceLock::new();
        let (mut out, mut err) = (Capped(Vec::new()), Vec::new());
        let config = self.config.clone();
        let ended = {
            let mut streams = Streams { next: Some(&next), ..Streams::piped(&mut out, &mut err) };
            job::run(cancel, &config, &mut streams, |streams| self.command(tool, line, streams))
        };
        let exit = match ended {
            Ok(Ended::Done(exit)) => exit,
            Ok(Ended::Interrupted) => return Ran::Cancelled,
            Ok(Ended::TimedOut) => out_of_time(&config, &mut err),
            Ok(Ended::TooMuch) => {
                // The dumps are closed, because the results cached in them may occupy most of the memory.
                self.dumps.close();
                out_of_memory(&config, &mut err)
            }
            Err(e) if e.kind() == io::ErrorKind::FileTooLarge => return Ran::TooLarge,
            Err(e) => return Ran::Refused(e.to_string()),
        };
        let remarks = String::from_utf8_lossy(&err).trim_end().to_string();
        // A command that was stopped may have printed part of its answer. Output is used only with the exit code of a complete document.
        match String::from_utf8(out.0) {
            Ok(text) if matches!(exit, Exit::Ok | Exit::Negative | Exit::Partial | Exit::NoRuntime) && !text.is_empty() => {
                Ran::Document { text, exit, remarks, next: next.get().copied() }
            }
            _ if remarks.is_empty() => Ran::Refused(format!("{} failed: standard error of the server says more", tool.name)),
            _ => Ran::Refused(remarks),
        }
    }

    /// Whether stacks of the process can be walked. NativeAOT programs, for example, do not describe their frames.
    fn walks_stacks(&mut self, line: &Line) -> bool {
        let Some(found) = line.dumps.last().and_then(|given| self.dumps.find(given.as_deref()).ok()) else { return true };
        let Ok(dump) = self.dumps.open(&found) else { return true };
        let runtime = dump.runtime_at(line.runtime().unwrap_or(self.config.runtime));
        tried(|| runtime.is_ok_and(|runtime| runtime.stack_walker().is_ok()))
    }

    /// Runs the command of a tool within its time and memory limits.
    fn command(&mut self, tool: &Tool, line: &Line, mut streams: Streams<'_>) -> Exit {
        let name = match tool.does {
            Does::Command(name) | Does::Compares(name) => name,
            Does::More | Does::Help => return fail(&UsageError(format!("{}: command is missing", tool.name)).into(), &mut streams),
            Does::List => {
                let listed = serde_json::to_writer(&mut *streams.out, &self.dumps.list());
                return match listed.map_err(io::Error::from).and_then(|()| streams.out.flush()) {
                    Ok(()) => Exit::Ok,
                    Err(e) => fail(&e.into(), &mut streams),
                };
            }
        };
        match self.opened(tool, name, line) {
            Ok((cli, dumps)) => cli.run_on(&dumps, streams),
            Err(e) => fail(&e, &mut streams),
        }
    }

    /// Returns the command line of a call, and its open dumps.
    fn opened(&mut self, tool: &Tool, name: &str, line: &Line) -> Result<(Cli, Vec<Dump>)> {
        let files = line.dumps.iter().map(|given| self.dumps.find(given.as_deref())).collect::<Result<Vec<_>, _>>()?;
        // Commands that compare dumps require the names of the dumps.
        let named = files.iter().filter(|_| matches!(tool.does, Does::Compares(_))).map(|found| found.path.clone().into_os_string());
        let words = line.words(name, &named.collect::<Vec<OsString>>());
        let mut cli = Cli::of(&words).map_err(|e| UsageError(in_one_line(&e)))?;
        let given = |id: &str| cli.matches.value_source(id) == Some(ValueSource::CommandLine);
        cli.config = cli.config.clone().over(&self.config, given);
        let dumps = files.iter().map(|found| self.dumps.open(found)).collect::<Result<_>>()?;
        Ok((cli, dumps))
    }
}

/// Shortens the notes beside a document and the suggested calls, with their line breaks, to `most` bytes: drops all calls but the first, then the last
/// notes but the first two, and then shortens notes.
fn shorten_notes(notes: &mut Vec<String>, next: &mut Vec<String>, most: usize) {
    let bytes = |notes: &[String], next: &[String]| {
        notes.iter().chain(next).map(|note| note.len().saturating_add(1)).fold(0, usize::saturating_add)
    };
    while next.len() > 1 && bytes(notes, next) > most {
        next.pop();
    }
    while notes.len() > 2 && bytes(notes, next) > most {
        notes.pop();
    }
    if bytes(notes, next) > most {
        let each = most.checked_div(notes.len().saturating_add(next.len())).unwrap_or(most).saturating_sub(1);
        notes.iter_mut().for_each(|note| *note = within(note, each).into_owned());
        // A call that does not fit is useless.
        next.retain(|call| call.len() <= each);
    }
}

/// Returns the note about what was left out of a document of at most `bytes` bytes. The note has at most `most` bytes.
fn note_of_cuts(left_out: &str, bytes: usize, instead: &str, most: usize) -> String {
    let more = format!("max_bytes (at most {MOST_BYTES}) shows more");
    let note = |left_out: &str, more: &str| format!("Left out, to keep the answer at {bytes} bytes: {left_out}. {more}");
    let whole = note(left_out, &format!("{more}, or {instead}."));
    if whole.len() < most {
        return whole;
    }
    let room = most.saturating_sub(note("", &format!("{more}.")).len().saturating_add(1));
    note(&within(left_out, room), &format!("{more}."))
}

/// Returns the beginning of `text` that has at most `most` bytes, with a mark if it is not the whole text.
fn within(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    let room = most.saturating_sub("…".len());
    let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", text.get(..end).unwrap_or_default()).into()
}

/// Returns notes about the completeness of a document and about further rows.
fn about(tool: &Tool, document: &Value, line: &Line) -> Vec<String> {
    let mut notes = Vec::new();
    let data = document.get("data").unwrap_or(document);
    if data.get("complete") == Some(&Value::Bool(false)) {
        notes.push(match tool.does {
            Does::List => "Not all folders were searched: dumps may be missing here.".into(),
            _ => {
                "This answer is partial (complete is false): warnings in it say what the dump does not have. What is missing is unknown, not zero. \
                  Where module files are missing, the user can start the server with --modules PATH."
                    .to_string()
            }
        });
    }
    if let Some(start) = data.get("next_start").and_then(Value::as_u64) {
        notes.push(format!("More rows follow: repeat the call with start = {start}."));
    } else if let (Some(rows), false) = (line.most_rows(), tool.rows.is_empty()) {
        let cut = lists(data).into_iter().filter(|(_, length)| *length >= rows).map(|(name, _)| name).collect::<Vec<_>>();
        let options = tool.rows.iter().map(|rows| format!("{} (at most {})", rows.option, rows.most)).collect::<Vec<_>>();
        if !cut.is_empty() {
            notes.push(format!(
                "There may be more {} than the {rows} listed: a larger {} lists more.",
                cut.join(", "),
                options.join(" or ")
            ));
        }
    }
    notes
}

/// Returns the lists of an answer with their lengths.
fn lists(data: &Value) -> Vec<(&str, u64)> {
    let length = |value: &Value| value.as_array().map(|list| u64::try_from(list.len()).unwrap_or(u64::MAX));
    let outer = fields(data);
    let inner = outer.iter().flat_map(|(_, value)| fields(value));
    // The list `coverage` is left out, because it has a fixed length.
    let is_rows = |name: &str| name != "coverage";
    outer.iter().copied().chain(inner).filter(|(name, _)| is_rows(name)).filter_map(|(name, value)| Some((name, length(value)?))).collect()
}

fn fields(value: &Value) -> Vec<(&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value)).collect()
}

/// Returns the advice for an answer that is too large.
fn instead(tool: &Tool) -> &'static str {
    if tool.instead.is_empty() { "ask for fewer rows with top, or select what you need: help lists the arguments" } else { tool.instead }
}

/// Collects output up to [`LARGEST`] bytes.
struct Capped(Vec<u8>);

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len().saturating_add(bytes.len()) > LARGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
