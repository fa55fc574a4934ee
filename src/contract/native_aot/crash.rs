//! The crash report that a NativeAOT program leaves in its memory.
//!
//! Source: `CrashInfo.cs`, `g_CrashInfoBuffer`; measured on .NET 9.0.20 and 11.0.0. The report is JSON, written before the program terminates itself.
//! In .NET 11 no global points to the report, so the program's writable memory is searched.

use serde::Deserialize;

use crate::base::{Addr, AddrRange, len64};
use crate::contract::descriptor::Descriptor;
use crate::memory::{Image, Memory, utf8};
use crate::model::{CrashException, CrashFrame, CrashReport};

/// Size of the buffer (`CrashInfoBufferSize`, 8 KiB in .NET 9).
const MAX_BYTES: u64 = 64 << 10;
/// The first bytes of a report.
const START: &[u8] = b"{\"version\":\"";
/// Maximum number of inner exceptions followed.
const MAX_DEPTH: usize = 32;

/// Fields whose values are names and numbers (`CrashInfo.cs`).
const KEPT: [&[u8]; 13] = [
    b"version",
    b"runtime_base",
    b"runtime_type",
    b"runtime_version",
    b"reason",
    b"thread",
    b"address",
    b"hr",
    b"type",
    b"ip",
    b"module",
    b"offset",
    b"name",
];

#[derive(Deserialize)]
struct Raw {
    runtime_base: Option<String>,
    runtime_version: Option<String>,
    reason: Option<String>,
    thread: Option<String>,
    message: Option<String>,
    exception: Option<RawException>,
}

#[derive(Deserialize)]
struct RawException {
    address: Option<String>,
    hr: Option<String>,
    message: Option<String>,
    #[serde(rename = "type")]
    type_name: Option<String>,
    #[serde(default)]
    stack: Vec<RawFrame>,
    #[serde(default)]
    inner: Vec<RawException>,
}

#[derive(Deserialize)]
struct RawFrame {
    ip: Option<String>,
    name: Option<String>,
}

/// The crash report, if the program wrote one.
pub(in crate::contract) fn report(memory: &Memory, descriptor: &Descriptor, image: Option<&Image>) -> Option<CrashReport> {
    let mut raw = match descriptor.pointer("CrashInfoBuffer") {
        Ok(at) => read(memory, at)?,
        Err(_) => search(memory, image.filter(|_| descriptor.is_native_aot())?)?,
    };
    if memory.hides_contents() {
        raw.message = raw.message.map(|_| Memory::HIDDEN.into());
        raw.exception.iter_mut().for_each(hide_messages);
    }
    Some(CrashReport {
        runtime_version: raw.runtime_version,
        reason: raw.reason.as_deref().and_then(reason).map(Into::into),
        thread: raw.thread.as_deref().and_then(number),
        message: raw.message,
        exception: raw.exception.map(|e| exception(e, 0)),
    })
}

/// Overwrites the texts in a report, except names and numbers. Overwrites everything if the report cannot be parsed.
pub(crate) fn redacted(mut text: Vec<u8>) -> Vec<u8> {
    if parsed(text.clone()).is_some() {
        overwrite(&mut text);
    } else {
        text.fill(b'x');
    }
    text
}

/// Overwrites the strings of a JSON text that are not the value of a field in [`KEPT`].
fn overwrite(text: &mut [u8]) {
    let (mut at, mut key) = (0, Vec::new());
    while let Some(start) = memchr::memchr(b'"', text.get(at..).unwrap_or_default()).map(|n| at.saturating_add(n).saturating_add(1)) {
        let (mut end, mut escaped) = (start, false);
        while let Some(byte) = text.get(end).filter(|byte| escaped || **byte != b'"') {
            escaped = !escaped && *byte == b'\\';
            end = end.saturating_add(1);
        }
        at = end.saturating_add(1);
        let mut after = text.get(at..).unwrap_or_default().iter().skip_while(|byte| byte.is_ascii_whitespace());
        let Some(string) = text.get(start..end) else { return };
        if after.next() == Some(&b':') {
            key = string.to_vec();
        } else if !KEPT.contains(&key.as_slice()) {
            text.get_mut(start..end).unwrap_or_default().fill(b'x');
        }
    }
}

fn read(memory: &Memory, at: Addr) -> Option<Raw> {
    (memory.u8(at) == Ok(b'{')).then_some(())?;
    let (text, _) = memory.until_nul(at, MAX_BYTES);
    memory.holds_report(AddrRange::of(at, len64(text.len())));
    parsed(text)
}

fn parsed(text: Vec<u8>) -> Option<Raw> {
    serde_json::from_str(&utf8(text)).ok()
}

/// The first report in the captured writable memory of `image`. Pages from the module file are excluded, because they are older than the process.
fn search(memory: &Memory, image: &Image) -> Option<Raw> {
    let afford = |r: &&AddrRange| memory.afford_bytes(memory.captured(**r));
    for range in image.writable.iter().take_while(afford) {
        for (start, bytes) in memory.stretches(*range) {
            for offset in memchr::memmem::find_iter(bytes, START) {
                let at = start.plus(len64(offset));
                memory.afford_bytes(MAX_BYTES).then_some(())?;
                let found = Some(at).filter(|at| memory.is_from_dump(*at)).and_then(|at| read(memory, at));
                if let Some(raw) = found.filter(|raw| raw.runtime_base.is_some()) {
                    return Some(raw);
                }
            }
        }
    }
    None
}

/// Removes the messages of an exception and its inner exceptions.
fn hide_messages(raw: &mut RawException) {
    let mut next: Vec<&mut RawException> = vec![raw];
    while let Some(e) = next.pop() {
        e.message = e.message.take().map(|_| Memory::HIDDEN.into());
        next.extend(&mut e.inner);
    }
}

/// The name of an `RhFailFastReason`.
fn reason(number: &str) -> Option<&'static str> {
    Some(match number {
        "1" => "unhandled exception",
        "2" => "fail fast",
        "3" => "internal error",
        _ => return None,
    })
}

fn number(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    u64::from_str_radix(digits, 16).ok()
}

fn exception(raw: RawException, depth: usize) -> CrashException {
    CrashException {
        address: raw.address.as_deref().and_then(number).map(Addr),
        type_name: raw.type_name,
        hresult: raw.hr.as_deref().and_then(number).and_then(|n| u32::try_from(n).ok()).map(u32::cast_signed),
        message: raw.message,
        stack: raw.stack.into_iter().map(|f| CrashFrame { ip: f.ip.as_deref().and_then(number).map(Addr), method: f.name }).collect(),
        inner: raw.inner.into_iter().filter(|_| depth < MAX_DEPTH).map(|e| exception(e, depth.saturating_add(1))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_and_numbers_of_a_report_are_kept() {
        let mut text =
            br#"{"version":"1.0","message":"a \"se\\cret\"","other" : "text","n":[1,{"name":"A.B()","message":"two"}]}"#.to_vec();
        overwrite(&mut text);
        let wanted = r#"{"version":"1.0","message":"xxxxxxxxxxxxxx","other" : "xxxx","n":[1,{"name":"A.B()","message":"xxx"}]}"#;
        assert_eq!(String::from_utf8(text).unwrap(), wanted);
        for cut in [r#"{"message":"is cu"#, r#"{"message":"\"#, "{\""] {
            let mut text = cut.as_bytes().to_vec();
            overwrite(&mut text);
            assert!(!text.windows(2).any(|w| w == b"is"), "{cut}");
        }
        assert_eq!(redacted(br#"{"version":"1","message":"it"}"#.to_vec()), br#"{"version":"1","message":"xx"}"#);
        assert_eq!(redacted(br#"{"version":"1","message":"it"#.to_vec()), [b'x'; 28], "a report that is cut off");
    }
}
