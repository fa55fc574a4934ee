//! The HTTP client: HTTPS, and plain HTTP only to this machine.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use ureq::http::{Response, Uri, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};

use crate::base::{Progress, cancel, in_units};

/// Maximum number of redirects followed.
const REDIRECTS: u32 = 5;
/// Maximum number of requests for a file: each after the first continues where the connection was cut.
const TRIES: u32 = 4;
/// Timeout for connecting and for the start of a response.
const CONNECT: Duration = Duration::from_secs(15);
/// Number of bytes read at a time.
const PIECE: usize = 64 << 10;
/// Maximum size in bytes of a text from a server: the index of a feed.
const MAX_TEXT: u64 = 1 << 20;

/// Reasons why a file was not downloaded.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The server does not have the file.
    Absent,
    /// The response of the server is not accepted.
    Refused(String),
    /// The server could not be reached, or the connection was cut.
    Failed(String),
    /// The file cannot be written.
    Disk(io::Error),
}

/// Sends requests to servers.
pub(super) struct Client<'p> {
    /// Agent for other machines. Uses the proxy that the environment defines.
    public: Agent,
    /// Agent for this machine. Uses no proxy.
    own: Agent,
    each: Duration,
    most: u64,
    /// Number of bytes that may still be downloaded.
    left: Cell<u64>,
    progress: Option<&'p dyn Progress>,
    /// Servers that could not be reached.
    down: RefCell<BTreeSet<String>>,
}

/// A response, and its URL after redirects.
struct Answer {
    response: Response<Body>,
    url: String,
}

impl<'p> Client<'p> {
    /// Creates a client. `each`: the time limit for one file. `most`: maximum number of bytes of all files together.
    pub(super) fn new(each: Duration, most: u64, progress: Option<&'p dyn Progress>) -> Client<'p> {
        let agent = |proxied: bool| {
            let config = Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects(0)
                .max_redirects_will_error(false)
                .user_agent(concat!("gcdump/", env!("CARGO_PKG_VERSION")))
                .accept_encoding("identity")
                .timeout_connect(Some(CONNECT))
                .timeout_recv_response(Some(each.min(CONNECT.saturating_mul(4))))
                .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build());
            if proxied { config.build().into() } else { config.proxy(None).build().into() }
        };
        Client { public: agent(true), own: agent(false), each, most, left: Cell::new(most), progress, down: RefCell::default() }
    }

    /// Whether the server of `url` could not be reached before.
    pub(super) fn is_down(&self, url: &str) -> bool {
        self.down.borrow().contains(&server(url))
    }

    /// Downloads `url` into the empty file `to`. At most `most` bytes are accepted. Returns the size of the file.
    pub(super) fn get(&self, url: &str, most: u64, to: &mut &File, what: &str) -> Result<u64, Trouble> {
        let deadline = Instant::now().checked_add(self.each);
        if let Some(progress) = self.progress {
            progress.start(&format!("downloading {what}"), None);
        }
        let done = self.tried(url, most, to, deadline);
        if let Some(progress) = self.progress {
            progress.finish();
        }
        done
    }

    /// Downloads the text at `url`.
    pub(super) fn text(&self, url: &str) -> Result<String, Trouble> {
        let deadline = Instant::now().checked_add(self.each);
        let answer = self.ask(url, 0, None, deadline)?;
        let mut text = String::new();
        let mut body = answer.response.into_body().into_with_config().limit(MAX_TEXT).reader();
        body.read_to_string(&mut text).map_err(|e| Trouble::Failed(e.to_string()))?;
        Ok(text)
    }

    fn tried(&self, url: &str, most: u64, to: &mut &File, deadline: Option<Instant>) -> Result<u64, Trouble> {
        let (mut done, mut tag, mut tries) = (0u64, None, 0u32);
        loop {
            let answer = self.ask(url, done, tag.as_deref(), deadline)?;
            let headers = answer.response.headers();
            let text = |name: header::HeaderName| headers.get(name).and_then(|v| v.to_str().ok()).map(ToString::to_string);
            if let Some(packed) = text(header::CONTENT_ENCODING).filter(|e| !e.eq_ignore_ascii_case("identity")) {
                return Err(Trouble::Refused(format!("it is compressed ({packed}), which was not requested")));
            }
            if answer.response.status().as_u16() == 206 {
                let range = text(header::CONTENT_RANGE).unwrap_or_default();
                if !range.starts_with(&format!("bytes {done}-")) {
                    return Err(Trouble::Refused(format!("it continues at the wrong offset ({range:?}, not {done})")));
                }
            } else {
                // The response has the whole file from its beginning, so the download starts anew.
                done = 0;
                to.set_len(0).and_then(|()| to.seek(SeekFrom::Start(0))).map_err(Trouble::Disk)?;
            }
            tag = text(header::ETAG).filter(|tag| tag.starts_with('"'));
            let length = answer.response.body().content_length();
            if length.is_some_and(|len| len.saturating_add(done) > most) {
                return Err(too_large(most));
            }
            let begun = done;
            let ended = self.copy(answer.response.into_body(), most, to, &mut done, deadline)?;
            tries = tries.saturating_add(1);
            match ended {
                None => return Ok(done),
                Some(why) if tries >= TRIES || done == begun => {
                    let cut = format!("cut off after {}: {why}", in_units(done));
                    return Err(Trouble::Failed(if tries > 1 { format!("{cut}, on attempt {tries}") } else { cut }));
                }
                Some(_) => {}
            }
        }
    }

    /// Copies a body to the end of a file. Returns the error if the connection was cut.
    fn copy(&self, body: Body, most: u64, to: &mut &File, done: &mut u64, deadline: Option<Instant>) -> Result<Option<String>, Trouble> {
        // Disables the limit of ureq: `most` is enforced below.
        let mut body = body.into_with_config().limit(u64::MAX).reader();
        let mut piece = vec![0; PIECE];
        loop {
            cancel::check();
            let read = match body.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(read) => read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) if is_late(deadline) => return Err(Trouble::Failed(format!("it took more than {:?}: {e}", self.each))),
                Err(e) => return Ok(Some(e.to_string())),
            };
            if is_late(deadline) {
                return Err(Trouble::Failed(format!("it took more than {:?}", self.each)));
            }
            let bytes = piece.get(..read).unwrap_or_default();
            *done = done.saturating_add(crate::base::len64(read));
            if *done > most {
                return Err(too_large(most));
            }
            let Some(left) = self.left.get().checked_sub(crate::base::len64(read)) else {
                return Err(Trouble::Refused(format!(
                    "all files together have more than {}; --max-download BYTES allows more",
                    in_units(self.most)
                )));
            };
            self.left.set(left);
            to.write_all(bytes).map_err(Trouble::Disk)?;
            if let Some(progress) = self.progress {
                progress.advance(*done);
            }
        }
    }

    /// Requests `url` from byte `from` on, and follows redirects.
    fn ask(&self, url: &str, from: u64, tag: Option<&str>, deadline: Option<Instant>) -> Result<Answer, Trouble> {
        let mut url = url.to_string();
        let mut was_own = None;
        for _ in 0..=REDIRECTS {
            let own = is_own(&url).map_err(Trouble::Refused)?;
            if was_own == Some(false) && own {
                return Err(Trouble::Refused(format!("it redirects to this machine ({url})")));
            }
            was_own = Some(own);
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Trouble::Failed(format!("it took more than {:?}", self.each)));
            }
            let mut request = if own { &self.own } else { &self.public }.get(&url);
            if from > 0 {
                request = request.header(header::RANGE, format!("bytes={from}-"));
                if let Some(tag) = tag {
                    request = request.header(header::IF_RANGE, tag);
                }
            }
            let asked = request.config().timeout_global(left).build().call();
            let response = asked.map_err(|e| {
                if from == 0 && !is_late(deadline) {
                    self.down.borrow_mut().insert(server(&url));
                }
                Trouble::Failed(e.to_string())
            })?;
            match response.status().as_u16() {
                200 | 206 => return Ok(Answer { response, url }),
                301 | 302 | 303 | 307 | 308 => {
                    let to = response.headers().get(header::LOCATION).and_then(|v| v.to_str().ok()).unwrap_or_default();
                    url = joined(&url, to).ok_or_else(|| Trouble::Refused(format!("it redirects to {to:?}")))?;
                }
                404 | 410 => return Err(Trouble::Absent),
                status => return Err(Trouble::Refused(format!("it answers with status {status}"))),
            }
        }
        Err(Trouble::Refused(format!("it redirects more than {REDIRECTS} times")))
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("url", &self.url).finish_non_exhaustive()
    }
}

fn too_large(most: u64) -> Trouble {
    Trouble::Refused(format!("it has more than {}", in_units(most)))
}

fn is_late(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

/// Returns scheme, name and port of the server in a URL.
fn server(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    format!("{scheme}://{}", rest.split('/').next().unwrap_or_default()).to_ascii_lowercase()
}

/// Whether a URL refers to this machine.
///
/// # Errors
/// The reason why the URL is refused: plain HTTP to another machine, a scheme other than http and https, or a user name in the URL.
pub(super) fn is_own(url: &str) -> Result<bool, String> {
    let uri: Uri = url.parse().map_err(|e| format!("{url} is not an address: {e}"))?;
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    if host.is_empty() || uri.authority().is_none_or(|a| a.as_str().contains('@')) {
        return Err(format!("{url} has no server name, or has a user name"));
    }
    let own = host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match uri.scheme_str() {
        Some("https") => Ok(own),
        Some("http") if own => Ok(true),
        Some("http") => Err(format!("{url} is not encrypted; plain HTTP is used on this machine only")),
        _ => Err(format!("{url} is neither an https nor an http address")),
    }
}

/// Returns the URL that a server at `base` redirects to.
fn joined(base: &str, to: &str) -> Option<String> {
    // A query may contain a URL.
    if to.split(['/', '?', '#']).next().is_some_and(|scheme| scheme.ends_with(':')) {
        return Some(to.into());
    }
    (to.starts_with('/') && !to.starts_with("//")).then(|| format!("{}{to}", server(base)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_allowed_to_this_machine_only() {
        for url in ["http://127.0.0.1:80/a", "http://localhost/", "http://[::1]:8/", "https://127.0.0.1/"] {
            assert_eq!(is_own(url), Ok(true), "{url}");
        }
        assert_eq!(is_own("https://example.org/a"), Ok(false));
        for url in [
            "http://example.org/",
            "http://127.0.0.1@example.org/",
            "https://user:word@example.org/",
            "ftp://127.0.0.1/",
            "file:///etc/passwd",
            "/a",
            "",
            "http://127.0.0.1.example.org/",
            "http://10.0.0.1/",
        ] {
            assert!(is_own(url).is_err(), "{url}");
        }
        assert_eq!(joined("https://a.b:1/c/d", "/e").as_deref(), Some("https://a.b:1/e"));
        assert_eq!(joined("https://a.b/c", "http://x/").as_deref(), Some("http://x/"));
        assert_eq!(joined("https://a.b/c", "/e?from=https://x/").as_deref(), Some("https://a.b/e?from=https://x/"));
        assert_eq!(joined("https://a.b/c", "//x/"), None);
        assert_eq!(joined("https://a.b/c", "d"), None);
    }
}
