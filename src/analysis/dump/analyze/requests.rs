//! Incoming HTTP requests that are not answered.
//!
//! Rule: at least `requests` requests that the application is processing are stuck. A request is stuck if it has not been answered for [`LONG_MS`],
//! or if at least `waits` requests wait for the same `TaskCompletionSource`, semaphore or custom awaitable. Responses that have begun and connections
//! with another protocol are left out, because streams and WebSockets may last for any time.
//!
//! Source: the incoming requests that `requests` lists.

use std::collections::BTreeMap;

use super::answers::{Answers, Skip};
use super::async_waits::{awaited, held_by, is_shared, with_article};
use super::line::{counted, listed};
use crate::analysis::threads::async_chains::is_library;
use crate::analysis::{Problem, ProblemId, ProblemSeverity, RequestModel, RequestState, WaitKind};
use crate::base::hash::Map;
use crate::base::{Addr, Count, Name, be, len64, thousands, verb};

/// Milliseconds after which people give up on a request.
const LONG_MS: u64 = 10_000;

/// Returns the stuck requests, or an empty list if there are fewer than the threshold.
pub(super) fn unanswered<'a>(answers: &'a Answers<'_>) -> Result<Vec<&'a RequestModel>, Skip> {
    let open = || answers.http().map(|http| http.requests.iter().filter(|request| request.state == RequestState::Processing));
    let mut crowds: Map<Addr, u64> = Map::default();
    open()?.filter_map(crowded).for_each(|at| crowds.entry(at).or_default().bump());
    let in_crowd =
        |request: &RequestModel| crowded(request).and_then(|at| crowds.get(&at)).is_some_and(|n| *n >= answers.thresholds().waits);
    let is_old = |request: &RequestModel| request.age_ms.is_some_and(|ms| ms >= LONG_MS);
    let stuck: Vec<&RequestModel> = open()?.filter(|request| is_old(request) || in_crowd(request)).collect();
    Ok(if len64(stuck.len()) >= answers.thresholds().requests { stuck } else { Vec::new() })
}

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let stuck = unanswered(answers)?;
    let count = len64(stuck.len());
    let Some(oldest) = stuck.iter().max_by_key(|request| request.age_ms) else { return Ok(Vec::new()) };
    let example = line(oldest);
    let age = match oldest.age_ms.map(|ms| seconds(ms / 1000)) {
        Some(age) if example.is_empty() => format!(", the oldest for {age}"),
        Some(age) => format!(", the oldest, {example}, for {age}"),
        None if example.is_empty() => String::new(),
        None => format!(", such as {example}"),
    };
    // By kind of wait and waiting method: the number of requests, and an awaited object.
    let mut causes: BTreeMap<Cause, (u64, Option<Addr>)> = BTreeMap::new();
    for request in &stuck {
        let awaits = request.waits_for.as_ref().and_then(|root| Some((awaited(root.kind)?, root.object)));
        let blocked = || answers.locks().ok()?.waits.iter().find(|w| w.managed_id.is_some() && w.managed_id == request.thread);
        let (cause, object) = match (awaits, blocked()) {
            (Some((what, object)), _) => ((Some(Wait::Async(what)), method(request).cloned()), object),
            (None, Some(wait)) => ((Some(Wait::Blocked(wait.kind)), answers.own_method(wait)), None),
            (None, None) => ((None, method(request).cloned()), None),
        };
        let (requests, first) = causes.entry(cause).or_default();
        requests.bump();
        *first = first.or(object);
    }
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(_, (requests, _))| std::cmp::Reverse(*requests));
    let mut waits = String::new();
    for ((wait, name), (requests, object)) in causes.iter().take(CAUSES) {
        let Some(wait) = wait else { continue };
        let what = match wait {
            Wait::Blocked(kind) => format!("a blocked thread ({kind})"),
            Wait::Async(what) => match object.and_then(|at| held_by(answers, at)) {
                Some(place) => format!("the {what} in {place}"),
                None => with_article(what),
            },
        };
        let of = if *requests == count { "all".into() } else { thousands(*requests) };
        let within = name.as_ref().map(|name| format!(" in {}", name.shown())).unwrap_or_default();
        waits.push_str(&match waits.is_empty() {
            true => format!("; {of} {}{within} for {what}", verb(*requests, "wait")),
            false => format!(", {of}{within} for {what}"),
        });
    }
    let title = format!("{} {} not answered{age}{waits}", counted(count, "incoming HTTP request"), be(count));
    let cause = causes.into_iter().next().map(|(cause, _)| cause);
    let method = cause.and_then(|(_, name)| name);
    let command = ["requests", "--incoming"];
    let problem = answers.finding(ProblemId::Requests, ProblemSeverity::Warning, title, &command);
    Ok(vec![Problem { count: Some(count), object: Some(oldest.object), method, ..problem }])
}

/// The kind of wait of a request, and the method that waits.
type Cause = (Option<Wait>, Option<Name>);

/// Most waits that the title names.
const CAUSES: usize = 2;

/// The kind of wait of a request.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    /// The innermost method awaits an object of this kind.
    Async(&'static str),
    /// The request's thread is blocked in a wait of this kind.
    Blocked(WaitKind),
}

/// Returns a clause about the incoming requests that threads serve: `; 2 of them serve requests: GET /transfer/in and GET /transfer/out`.
pub(super) fn served(answers: &Answers<'_>, threads: &[u32]) -> String {
    /// Most requests that are named.
    const MOST: usize = 3;
    let all = answers.http().map(|http| http.requests.as_slice()).unwrap_or_default();
    let of_them = all.iter().filter(|request| request.thread.is_some_and(|id| threads.contains(&id)));
    let mut lines: Vec<String> = of_them.map(line).filter(|line| !line.is_empty()).collect();
    lines.sort_unstable();
    let count = lines.len();
    lines.dedup();
    let more = if lines.len() > MOST { ", …" } else { "" };
    lines.truncate(MOST);
    match count {
        0 => String::new(),
        n => format!(
            "; {} of them {}: {}{more}",
            thousands(len64(n)),
            if n == 1 { "serves a request" } else { "serve requests" },
            listed(lines)
        ),
    }
}

/// Returns method and URI of a request: `GET /pay/0`.
fn line(request: &RequestModel) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{} {}", text(&request.method), text(&request.uri)).trim().into()
}

/// The object that a request waits for, if other requests may wait for it as well.
fn crowded(request: &RequestModel) -> Option<Addr> {
    let root = request.waits_for.as_ref()?;
    root.object.filter(|_| is_shared(root.kind))
}

/// Returns the innermost method of the program that serves a request, or else the innermost method of a library.
fn method(request: &RequestModel) -> Option<&Name> {
    let names = || request.frames.iter().filter_map(|frame| frame.display.as_ref().or(frame.method.as_ref()));
    names().find(|name| !is_library(name.shown())).or_else(|| names().next())
}

/// Formats a duration: `42 s`, `3 min 5 s`, `2 h 10 min`.
fn seconds(n: u64) -> String {
    match n {
        0..60 => format!("{n} s"),
        60..3600 => format!("{} min {} s", n / 60, n % 60),
        _ => format!("{} h {} min", n / 3600, n / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        assert_eq!([42, 185, 7805].map(seconds), ["42 s", "3 min 5 s", "2 h 10 min"]);
    }
}
