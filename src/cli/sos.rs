//! The habits of SOS users: `eeheap -gc`, `gchandles -type Pinned -stat`; and of everybody: `gcdump crash.dmp`.

use std::ffi::OsString;
use std::path::Path;

/// Rewrites what SOS users type to what clap expects. Everything else stays as it is.
pub(super) fn translate(mut args: Vec<OsString>) -> Vec<OsString> {
    let Some(command) = args.get(1).and_then(|a| a.to_str()).map(ToString::to_string) else { return args };
    match command.as_str() {
        // -gc names the part of eeheap that gcdump has.
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
        // A dump alone: say what it is.
        path if !path.starts_with('-') && (path.contains(['.', '/', '\\'])) && Path::new(path).exists() => args.insert(1, "info".into()),
        _ => {}
    }
    args
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
        assert_eq!(t(&["gcdump"]), ["gcdump"]);
    }
}
