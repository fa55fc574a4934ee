//! SOS spellings (`eeheap -gc`, `gchandles -type Pinned -stat`) and the shorthand `gcdump crash.dmp`.

use std::ffi::OsString;
use std::path::Path;

/// Rewrites SOS command lines for clap; leaves all others unchanged.
pub(super) fn translate(mut args: Vec<OsString>) -> Vec<OsString> {
    let Some(command) = args.get(1).and_then(|a| a.to_str()).map(ToString::to_string) else { return args };
    match command.as_str() {
        // gcdump supports only the -gc part of eeheap.
        "eeheap" => args.retain(|a| a != "-gc"),
        "gchandles" => {
            for a in &mut args {
                match a.to_str() {
                    Some("-type") => *a = "--type".into(),
                    Some("-stat") => *a = "--stat".into(),
                    _ => {}
                }
            }
        }
        "dumpheap" => return dumpheap(args),
        "gcroot" => return gcroot(args),
        "objsize" | "finalizequeue" | "dumpmt" | "gcwhere" | "listnearobj" | "lno" => {
            // No counterparts: what these switches add is always printed.
            let known = ["-nostacks", "-all", "-MD", "-md", "-detail"];
            args.retain(|a| a.to_str().is_none_or(|a| !known.contains(&a)));
        }
        "dumpobj" | "do" => {
            args.iter_mut().filter(|a| *a == "-nofields").for_each(|a| *a = "--no-fields".into());
        }
        "clrstack" | "eestack" | "dumpstackobjects" | "dso" | "parallelstacks" | "pstacks" => return stacks(args, &command),
        "dumpasync" => return dumpasync(args),
        "verifyobj" => {
            if let Some(name) = args.get_mut(1) {
                *name = "verify".into();
            }
            args.insert(2, "--object".into());
        }
        // A dump alone: `info`.
        path if !path.starts_with('-') && (path.contains(['.', '/', '\\'])) && Path::new(path).exists() => args.insert(1, "info".into()),
        _ => {}
    }
    args
}

/// `gcroot -nostacks` is `path --stacks none`, `gcroot -all` is `path --all-roots`.
fn gcroot(args: Vec<OsString>) -> Vec<OsString> {
    let word = |a: OsString| match a.to_str() {
        Some("-nostacks") => vec!["--stacks".into(), "none".into()],
        Some("-all") => vec!["--all-roots".into()],
        _ => vec![a],
    };
    args.into_iter().flat_map(word).collect()
}

/// The commands of SOS that show stacks. Every thread is shown, so that `-all` adds nothing.
fn stacks(mut args: Vec<OsString>, command: &str) -> Vec<OsString> {
    let held = ["-gc", "-l", "-locals", "-a"];
    let is = |a: &OsString, list: &[&str]| a.to_str().is_some_and(|a| list.contains(&a));
    let roots = matches!(command, "dumpstackobjects" | "dso") || args.iter().any(|a| is(a, &held));
    args.retain(|a| !is(a, &held) && !is(a, &["-all", "--all", "-short", "-EE", "-ee"]));
    if let Some(name) = args.get_mut(1) {
        *name = "stacks".into();
    }
    if roots {
        args.insert(2, "--roots".into());
    }
    if matches!(command, "parallelstacks" | "pstacks") {
        args.insert(2, "--merge".into());
    }
    args
}

/// `dumpasync -type Lab` is `async --type '*Lab*'`; fields and states are always shown, or in `object`.
fn dumpasync(args: Vec<OsString>) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::with_capacity(args.len());
    // What comes next: a part of a type's name, or a method table, hexadecimal without 0x.
    let (mut part, mut table) = (false, false);
    for a in args {
        let (of_name, of_table) = (std::mem::take(&mut part), std::mem::take(&mut table));
        match a.to_str() {
            Some("-type") => {
                out.push("--type".into());
                part = true;
            }
            Some("-mt") => {
                out.push("--type".into());
                table = true;
            }
            Some("-addr") => out.push("--object".into()),
            Some("-tasks") => out.push("--tasks".into()),
            Some("-completed") => out.push("--completed".into()),
            Some("-coalesce") => out.push("--merge".into()),
            Some("-fields" | "-stats" | "-roots") => {}
            Some(text) if of_name && !text.contains('*') => out.push(format!("*{text}*").into()),
            Some(text) if of_table && !text.starts_with("0x") => out.push(format!("0x{text}").into()),
            _ => out.push(a),
        }
    }
    out
}

/// `dumpheap -stat` is `stat`; without `-stat` but with a filter, it is `objects`.
fn dumpheap(args: Vec<OsString>) -> Vec<OsString> {
    let given = |name: &str| args.iter().any(|a| a == name);
    let lists = !given("-stat") && ["-mt", "-type", "-min", "-max", "-live", "-dead"].iter().any(|n| given(n));
    let mut out: Vec<OsString> = Vec::with_capacity(args.len());
    let mut substring = false;
    for (i, a) in args.iter().enumerate() {
        let text = a.to_str().unwrap_or("");
        match text {
            _ if i == 1 => out.push(if lists { "objects" } else { "stat" }.into()),
            "-stat" => {}
            "-mt" => out.push("--type".into()),
            "-min" => out.push("--min-size".into()),
            "-max" => out.push("--max-size".into()),
            "-type" => {
                out.push("--type".into());
                substring = true;
            }
            // SOS matches substrings.
            _ if std::mem::take(&mut substring) && !text.contains('*') => out.push(format!("*{text}*").into()),
            // SOS method tables are hexadecimal without 0x.
            _ if out.last().is_some_and(|l| l == "--type") && !text.starts_with("0x") && !text.contains('*') => {
                out.push(format!("0x{text}").into());
            }
            _ => out.push(a.clone()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sos_spellings_are_understood() {
        let t = |list: &[&str]| -> Vec<String> {
            let args = list.iter().map(OsString::from).collect();
            translate(args).into_iter().map(|a| a.into_string().unwrap()).collect()
        };
        assert_eq!(t(&["gcdump", "eeheap", "-gc", "x.dmp"]), ["gcdump", "eeheap", "x.dmp"]);
        assert_eq!(t(&["gcdump", "gchandles", "-type", "Pinned", "-stat"]), ["gcdump", "gchandles", "--type", "Pinned", "--stat"]);
        assert_eq!(t(&["gcdump", "./Cargo.toml"]), ["gcdump", "info", "./Cargo.toml"]);
        assert_eq!(t(&["gcdump", "heap", "-gc"]), ["gcdump", "heap", "-gc"]);
        assert_eq!(t(&["gcdump", "verifyobj", "0x10", "x.dmp"]), ["gcdump", "verify", "--object", "0x10", "x.dmp"]);
        assert_eq!(t(&["gcdump", "dumpobj", "-nofields", "0x10", "x"]), ["gcdump", "dumpobj", "--no-fields", "0x10", "x"]);
        assert_eq!(t(&["gcdump", "gcroot", "-nostacks", "0x10", "x"]), ["gcdump", "gcroot", "--stacks", "none", "0x10", "x"]);
        assert_eq!(t(&["gcdump", "gcroot", "-all", "10", "x"]), ["gcdump", "gcroot", "--all-roots", "10", "x"]);
        assert_eq!(t(&["gcdump"]), ["gcdump"]);
        assert_eq!(t(&["gcdump", "dumpasync", "-type", "Lab", "-fields", "x"]), ["gcdump", "dumpasync", "--type", "*Lab*", "x"]);
        assert_eq!(
            t(&["gcdump", "dumpasync", "-mt", "7f31", "-coalesce", "x"]),
            ["gcdump", "dumpasync", "--type", "0x7f31", "--merge", "x"]
        );
        assert_eq!(t(&["gcdump", "dumpasync", "-addr", "7f31", "x"]), ["gcdump", "dumpasync", "--object", "7f31", "x"]);
        assert_eq!(t(&["gcdump", "dumpheap", "-stat", "x.dmp"]), ["gcdump", "stat", "x.dmp"]);
        assert_eq!(t(&["gcdump", "dumpheap", "x.dmp"]), ["gcdump", "stat", "x.dmp"]);
        assert_eq!(t(&["gcdump", "dumpheap", "-type", "String", "x.dmp"]), ["gcdump", "objects", "--type", "*String*", "x.dmp"]);
        assert_eq!(t(&["gcdump", "dumpheap", "-mt", "7f31", "x.dmp"]), ["gcdump", "objects", "--type", "0x7f31", "x.dmp"]);
        assert_eq!(t(&["gcdump", "dumpheap", "-stat", "-type", "Lab", "x"]), ["gcdump", "stat", "--type", "*Lab*", "x"]);
        assert_eq!(t(&["gcdump", "dumpheap", "--by", "heap", "x"]), ["gcdump", "stat", "--by", "heap", "x"]);
    }
}
