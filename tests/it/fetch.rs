//! `gcdump modules --fetch`: a symbol server, a debuginfod server and a NuGet feed on the loopback interface, laid out by the public
//! conventions, and servers that send wrong data.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::common::{needs_lab, needs_shared, own_unpacked, unpacked};
use crate::harness::{Tested, ignored};
use crate::module_files::written;
use crate::module_places::run_with;

/// Answers a request: its path, the byte at which it starts, and the connection.
type Answers = dyn Fn(&str, Option<usize>, &mut TcpStream) + Send + Sync;

/// A server in this process.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(answers: impl Fn(&str, Option<usize>, &mut TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (asked, answers): (Arc<Mutex<Vec<String>>>, Arc<Answers>) = (Arc::default(), Arc::new(answers));
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (answers, seen) = (Arc::clone(&answers), Arc::clone(&seen));
                std::thread::spawn(move || {
                    let mut connection = connection.unwrap();
                    let mut lines = BufReader::new(connection.try_clone().unwrap());
                    let mut line = String::new();
                    lines.read_line(&mut line).unwrap_or(0);
                    let path = line.split(' ').nth(1).unwrap_or_default().to_string();
                    let mut from = None;
                    loop {
                        let mut header = String::new();
                        if lines.read_line(&mut header).unwrap_or(0) == 0 || header == "\r\n" {
                            break;
                        }
                        if let Some(range) = header.to_ascii_lowercase().strip_prefix("range: bytes=") {
                            from = range.trim().trim_end_matches('-').parse().ok();
                        }
                    }
                    if !path.is_empty() {
                        seen.lock().unwrap().push(path.clone());
                        answers(&path, from, &mut connection);
                    }
                });
            }
        });
        Server { url, asked }
    }

    /// Serves files by path.
    fn of_files(files: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static) -> Server {
        Server::new(move |path, from, to| match files(path) {
            Some(bytes) => send(to, &bytes, from),
            None => status(to, "404 Not Found", ""),
        })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn status(to: &mut TcpStream, status: &str, headers: &str) {
    let _ = write!(to, "HTTP/1.1 {status}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n");
}

fn send(to: &mut TcpStream, bytes: &[u8], from: Option<usize>) {
    let (line, range) = match from {
        Some(from) => ("206 Partial Content", format!("Content-Range: bytes {from}-{}/{}\r\n", bytes.len() - 1, bytes.len())),
        None => ("200 OK", String::new()),
    };
    let part = &bytes[from.unwrap_or(0)..];
    let _ = write!(to, "HTTP/1.1 {line}\r\n{range}Content-Length: {}\r\nConnection: close\r\n\r\n", part.len());
    let _ = to.write_all(part);
}

/// An empty home folder, and the runtime's file that the dump of the repository needs, with its build ID.
struct Home {
    folder: tempfile::TempDir,
    file: Vec<u8>,
    id: String,
}

impl Home {
    fn new() -> Home {
        let folder = tempfile::tempdir().unwrap();
        let files = tempfile::tempdir().unwrap();
        written(&own_unpacked(), files.path());
        let file = fs::read(files.path().join("libcoreclr.so")).unwrap();
        let (_, answer, _) = run_with(&[("GCDUMP_MODULES", Path::new("off"))], &["info", "--json", own_unpacked().to_str().unwrap()]);
        Home { folder, file, id: answer["runtime"]["build_id"].as_str().unwrap().into() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Every file in it.
    fn files(&self) -> Vec<PathBuf> {
        let mut out = Vec::new();
        let mut folders = vec![self.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                match entry.path() {
                    path if path.is_dir() => folders.push(path),
                    path => out.push(path),
                }
            }
        }
        out
    }

    fn run(&self, more: &[(&str, &Path)], args: &[&str]) -> (i32, Value, String) {
        run_with(&[&[("HOME", self.path())], more].concat(), args)
    }

    fn fetch(&self, more: &[(&str, &Path)], args: &[&str]) -> (i32, Value) {
        let dump = own_unpacked();
        let (exit, answer, err) = self.run(more, &[&["modules", "--fetch", "--all", "--json", dump.to_str().unwrap()], args].concat());
        assert!(answer.is_object(), "{exit}: {err}");
        (exit, answer)
    }
}

/// Returns the row of the runtime's file.
fn runtime_row(answer: &Value) -> Value {
    let rows = answer["data"]["fetched"].as_array().unwrap_or_else(|| panic!("{answer}"));
    rows.iter().find(|r| r["name"] == "libcoreclr.so").unwrap_or_else(|| panic!("{rows:?}")).clone()
}

#[test]
fn a_symbol_server_supplies_a_file_to_an_empty_cache() {
    let home = Home::new();
    let key = format!("/symbols/libcoreclr.so/elf-buildid-{}/libcoreclr.so", home.id);
    let (file, wanted) = (home.file.clone(), key.clone());
    let server = Server::of_files(move |path| (path == wanted).then(|| file.clone()));
    let (_, answer) = home.fetch(&[], &["--name", "libcoreclr.so", "--symbol-server", &format!("{}/symbols/", server.url)]);
    let row = runtime_row(&answer);
    assert_eq!(row["outcome"], "fetched", "{row}");
    assert_eq!(server.asked(), [key]);
    let module = &answer["data"]["modules"][0];
    assert_eq!((module["found"].as_str(), module["kind"].as_str()), (Some("gcdump-cache"), Some("runtime")));
    // The cache has only that file, with private permissions, and other commands find it.
    let files = home.files();
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(files[0].ends_with(format!("gcdump/modules/elf-{}", home.id)));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&files[0]), mode(files[0].parent().unwrap())), (0o600, 0o700));
    }
    let (_, info, _) = home.run(&[], &["info", "--json", own_unpacked().to_str().unwrap()]);
    assert_eq!(info["data"]["module_files"][0]["file"].as_str(), files[0].to_str());
    // Nothing is left to fetch.
    let (exit, answer) = home.fetch(&[], &["--name", "libcoreclr.so", "--symbol-server", &server.url]);
    assert_eq!((exit, answer["data"]["fetched"].as_array().map(Vec::len), server.asked().len()), (0, Some(0), 1));
}

#[test]
fn debuginfod_and_packages_supply_files() {
    let home = Home::new();
    let (file, id) = (home.file.clone(), home.id.clone());
    let server = Server::of_files(move |path| (path == format!("/buildid/{id}/executable")).then(|| file.clone()));
    let down = "http://127.0.0.1:1";
    let (_, answer) = home.fetch(&[("DEBUGINFOD_URLS", Path::new(&server.url))], &["--name", "libcoreclr.so", "--symbol-server", down]);
    assert_eq!(runtime_row(&answer)["outcome"], "fetched", "{answer}");
    for by_index in [false, true] {
        let home = Home::new();
        let mut packed = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        packed.start_file("runtimes/linux-x64/native/libcoreclr.so", stored).unwrap();
        packed.write_all(&home.file).unwrap();
        let packed = packed.finish().unwrap().into_inner();
        let base = Arc::new(Mutex::new(String::new()));
        let (at, id) = (Arc::clone(&base), "microsoft.netcore.app.runtime.linux-x64");
        let server = Server::of_files(move |path| match path {
            "/v3/index.json" => {
                let base = at.lock().unwrap();
                Some(format!(r#"{{"resources":[{{"@id":"{base}/flat/","@type":"PackageBaseAddress/3.0.0"}}]}}"#).into_bytes())
            }
            path if path == format!("/flat/{id}/10.0.12/{id}.10.0.12.nupkg") => Some(packed.clone()),
            _ => None,
        });
        *base.lock().unwrap() = server.url.clone();
        let feed = format!("{}{}", server.url, if by_index { "/v3/index.json" } else { "/flat" });
        let (_, answer) = home.fetch(&[], &["--name", "libcoreclr.so", "--nuget", &feed]);
        assert_eq!(runtime_row(&answer)["outcome"], "fetched", "{answer}");
        assert_eq!(home.files().len(), 1, "the package is not kept");
    }
}

fn package(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn a_cut_download_continues_where_it_was_cut() {
    let home = Home::new();
    let file = home.file.clone();
    let starts = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&starts);
    let server = Server::new(move |_, from, to| {
        seen.lock().unwrap().push(from);
        match from {
            None => {
                let _ = write!(to, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"1\"\r\nConnection: close\r\n\r\n", file.len());
                let _ = to.write_all(&file[..file.len() / 3]);
            }
            from => send(to, &file, from),
        }
    });
    let (_, answer) = home.fetch(&[], &["--name", "libcoreclr.so", "--symbol-server", &server.url]);
    assert_eq!(runtime_row(&answer)["outcome"], "fetched", "{answer}");
    assert_eq!(*starts.lock().unwrap(), [None, Some(home.file.len() / 3)]);
    assert_eq!(fs::read(&home.files()[0]).unwrap(), home.file);
}

#[test]
fn invalid_responses_are_refused_and_leave_nothing() {
    let file = Home::new().file;
    let mut other = file.clone();
    let id: Vec<u8> = (0..20).map(|i| u8::from_str_radix(&Home::new().id[2 * i..2 * i + 2], 16).unwrap()).collect();
    let at = other.windows(20).position(|w| w == id).unwrap();
    other[at] ^= 1;
    let cut = file[..file.len() / 2].to_vec();
    let whole = file.clone();
    type Case = (&'static str, Box<Answers>, &'static str);
    let body = |bytes: Vec<u8>| -> Box<Answers> { Box::new(move |_, from, to| send(to, &bytes, from)) };
    let line = |line: &'static str, headers: &'static str| -> Box<Answers> { Box::new(move |_, _, to| status(to, line, headers)) };
    let cases: Vec<Case> = vec![
        ("another file", body(other), "its build id is"),
        ("a page of a portal", body(b"<html>Sign in</html>".to_vec()), "not a readable ELF image"),
        ("nothing", body(Vec::new()), "not a readable ELF image"),
        ("half of it, as if whole", body(cut), "cut off"),
        ("an error", line("503 Service Unavailable", ""), "status 503"),
        ("a redirect to another machine without encryption", line("302 Found", "Location: http://192.0.2.1/a\r\n"), "not encrypted"),
        ("a redirect to a file", line("302 Found", "Location: file:///etc/passwd\r\n"), "is not an address"),
        ("a redirect without end", line("302 Found", "Location: /again\r\n"), "redirects more than 5 times"),
        ("a redirect to nowhere", line("302 Found", ""), "it redirects to"),
        (
            "a compressed body",
            Box::new(|_, _, to| {
                let _ = write!(to, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\nConnection: close\r\n\r\nabcd");
            }),
            "compressed (gzip)",
        ),
        (
            "more than was allowed, by its header",
            Box::new(|_, _, to| {
                let _ = write!(to, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\nConnection: close\r\n\r\n");
            }),
            "more than 512.0 MiB",
        ),
        (
            "a body without end",
            Box::new(|_, _, to| {
                let _ = write!(to, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
                while to.write_all(&[0; 65536]).is_ok() {}
            }),
            "--max-download",
        ),
        (
            "a body that never ends slowly",
            Box::new(|_, _, to| {
                let _ = write!(to, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nConnection: close\r\n\r\n");
                while to.write_all(b"x").is_ok() {
                    std::thread::sleep(Duration::from_millis(50));
                }
            }),
            "took more than",
        ),
        ("no answer", Box::new(|_, _, _| std::thread::sleep(Duration::from_secs(20))), "failed"),
        (
            "another part than was asked for",
            Box::new(move |_, from, to| match from {
                None => {
                    let _ = write!(to, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", whole.len());
                    let _ = to.write_all(&whole[..4096]);
                }
                Some(_) => {
                    let _ = write!(to, "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 7-9/10\r\nContent-Length: 3\r\n\r\nabc");
                }
            }),
            "continues at the wrong offset",
        ),
        (
            "less than its header says, each time",
            Box::new(|_, from, to| match from {
                None => {
                    let _ = write!(to, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\nabc");
                }
                Some(from) => {
                    let _ = write!(
                        to,
                        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {from}-99/100\r\nContent-Length: {}\r\n\r\n",
                        100 - from
                    );
                }
            }),
            "cut off after 3 bytes",
        ),
        ("not HTTP", Box::new(|_, _, to| drop(to.write_all(b"SSH-2.0-OpenSSH\r\n"))), "failed"),
    ];
    for (name, answers, why) in cases {
        let home = Home::new();
        let server = Server::new(answers);
        let options = ["--name", "libcoreclr.so", "--symbol-server", &server.url, "--max-download", "64M", "--fetch-timeout", "2s"];
        let (exit, answer) = home.fetch(&[], &options);
        let row = runtime_row(&answer);
        let reasons = row["reasons"].to_string();
        assert!(["refused", "failed"].contains(&row["outcome"].as_str().unwrap()), "{name}: {row}");
        assert!(reasons.contains(why) && reasons.contains(&server.url), "{name}: {reasons}");
        assert_eq!(exit, 5, "{name}");
        assert_eq!(home.files(), Vec::<PathBuf>::new(), "{name}");
    }
}

#[test]
fn packages_that_no_tool_makes_are_refused() {
    let path = "runtimes/linux-x64/native/libcoreclr.so";
    let zeros = vec![0; 8 << 20];
    let good = Home::new().file;
    let mut lying = package(&[(path, &good)]);
    // The contents do not match their checksum any more.
    let middle = lying.len() / 2;
    lying[middle] ^= 0xff;
    let evil = package(&[("../../../../tmp/evil", b"evil"), (path, &good)]);
    for (name, bytes, why) in [
        ("names that lead out", evil, "leads out of the package"),
        ("a bomb", package(&[(path, &zeros)]), "no assembly compresses that well"),
        ("another file", package(&[(path, b"\x7fELF")]), "not a readable ELF image"),
        ("a corrupt one", lying, "refused"),
        ("no package", b"PK\x03\x04 nothing".to_vec(), "not a package"),
    ] {
        let home = Home::new();
        let server = Server::of_files(move |path| path.ends_with(".nupkg").then(|| bytes.clone()));
        let (exit, answer) = home.fetch(&[], &["--name", "libcoreclr.so", "--nuget", &server.url]);
        let row = runtime_row(&answer);
        assert_eq!((row["outcome"].as_str(), exit), (Some("refused"), 5), "{name}: {row}");
        assert!(row["reasons"].to_string().contains(why), "{name}: {row}");
        assert_eq!(home.files(), Vec::<PathBuf>::new(), "{name}");
    }
}

#[test]
fn nothing_is_downloaded_without_a_request() {
    let home = Home::new();
    let server = Server::of_files(|_| None);
    let dump = own_unpacked();
    let environment = [("GCDUMP_SYMBOL_SERVER", Path::new(&server.url)), ("DEBUGINFOD_URLS", Path::new(&server.url))];
    for command in ["modules", "info", "stacks", "analyze"] {
        home.run(&environment, &[command, "--json", dump.to_str().unwrap()]);
    }
    assert_eq!(server.asked(), Vec::<String>::new());
    for args in [&["--no-local-files"][..], &["--symbol-server", "http://192.0.2.1/"]] {
        let (exit, answer, err) =
            home.run(&[], &[&["modules", "--fetch", "--all", "--json", "--name", "libcoreclr.so", dump.to_str().unwrap()], args].concat());
        assert!(exit == 2 && err.contains("--no-local-files") || exit == 5 && runtime_row(&answer)["outcome"] == "refused", "{exit} {err}");
    }
    let (exit, _) = home.fetch(&environment, &["--name", "libcoreclr.so"]);
    assert_eq!(exit, 5);
    assert!(server.asked().len() >= 2, "{:?}", server.asked());
}

#[cfg(target_os = "linux")]
#[test]
fn a_heap_dump_becomes_precise() -> Tested {
    let (lab, _) = (needs_lab()?, needs_shared()?);
    let dump = unpacked().join("net10-wks-stacks-heap.dmp");
    if !dump.is_file() {
        return ignored("net10-wks-stacks-heap.dmp is not unpacked");
    }
    let home = Home::new();
    // Keys in the published form, from the files' own headers.
    let folder = lab.join("net10");
    let server = Server::of_files(move |path| {
        let [name, key, _] = path.trim_start_matches('/').split('/').collect::<Vec<_>>().try_into().ok()?;
        let file = fs::read_dir(&folder).ok()?.flatten().find(|f| f.file_name().to_string_lossy().eq_ignore_ascii_case(name))?;
        let mut bytes = Vec::new();
        fs::File::open(file.path()).ok()?.read_to_end(&mut bytes).ok()?;
        let own = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let pe = own(0x3c)? as usize;
        (bytes.starts_with(b"MZ") && key == format!("{:08x}{:x}", own(pe + 8)?, own(pe + 80)?)).then_some(bytes)
    });
    let text = dump.to_str().unwrap();
    let asked: [&[&str]; 2] = [&["stacks", "--roots"], &["roots"]];
    for command in asked {
        assert_eq!(home.run(&[], &[command, &["--json", text]].concat()).0, 5, "{command:?}");
    }
    let (exit, answer, err) = home.run(&[], &["modules", "--fetch", "--json", "--symbol-server", &server.url, text]);
    assert_eq!(exit, 0, "{err} {}", answer["data"]["fetched"]);
    assert_eq!(answer["data"]["needed_not_found"], 0);
    for command in asked {
        let (exit, answer, _) = home.run(&[], &[command, &["--json", text]].concat());
        assert_eq!(exit, 0, "{command:?}: {}", answer["warnings"]);
    }
    Ok(())
}
