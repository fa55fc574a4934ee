//! The tier of JIT-ed code, in dumps of programs whose settings decide it.

use std::collections::BTreeMap;
use std::process::Command;

use super::{list, text};
use crate::common::{ask, known_dumps, needs_lab};
use crate::harness::Tested;
use serde_json::Value;

/// Counts the tiers of the JIT-ed frames of an answer, with `-` for none. Other code has no tier.
fn tiers(answer: &Value, of_module: Option<&str>) -> BTreeMap<String, usize> {
    let mut out = BTreeMap::new();
    for frame in list(&answer["data"]["threads"]).iter().flat_map(|t| list(&t["frames"])) {
        let tier = frame["tier"].as_str();
        if frame["code"] != "jit" {
            assert_eq!(tier, None, "{frame}");
        } else if of_module.is_none_or(|m| frame["module"] == m) {
            *out.entry(tier.unwrap_or("-").to_string()).or_insert(0) += 1;
        }
    }
    out
}

/// `stacksopt` and `spinopt` ran without tiered compilation, the others with it. Methods with the attribute are optimized in all of them.
#[test]
fn tiers_follow_the_settings_of_the_program() -> Tested {
    let (dumps, _) = known_dumps(|row| {
        row["kind"] == "heap" && row["scenario"].as_str().is_some_and(|s| s.starts_with("stacks") || s.starts_with("spin"))
    })?;
    for dump in &dumps {
        let (_, answer) = ask(&dump.path, &["stacks"]);
        let found = tiers(&answer, None);
        println!("{:<32} {found:?}", dump.name);
        assert!(!found.contains_key("-"), "{}: {found:?}", dump.name);
        if dump.name.contains("opt-") {
            assert_eq!(found.keys().collect::<Vec<_>>(), ["optimized"], "{}", dump.name);
        } else {
            assert!(found.contains_key("tier0"), "{}: {found:?}", dump.name);
        }
        // `where` and `type --methods` show the same tier for the code of a frame.
        let frames = list(&answer["data"]["threads"]).iter().flat_map(|t| list(&t["frames"]));
        let mut asked = BTreeMap::new();
        for frame in frames.filter(|f| f["code"] == "jit") {
            asked.entry(frame["tier"].to_string()).or_insert(frame);
        }
        for frame in asked.values() {
            let (_, place) = ask(&dump.path, &["where", text(frame, "ip")]);
            assert_eq!(place["data"]["code"]["tier"], frame["tier"], "{}: {frame}", dump.name);
            let words = format!("JIT-ed code, {}", text(frame, "tier"));
            assert!(text(&place["data"], "text").contains(&words), "{}: {}", dump.name, place["data"]["text"]);
        }
    }
    Ok(())
}

/// The lab's program makes a dump of itself under each of these settings.
#[test]
fn settings_of_the_runtime_determine_the_tiers_of_the_lab() -> Tested {
    let lab = needs_lab()?;
    let folder = tempfile::tempdir().unwrap();
    for runtime in ["net8", "net10"].map(|v| lab.join(v)).iter().filter(|r| r.join("lab").is_file()) {
        let settings: [(&str, &str, &str); 4] = [
            ("DOTNET_TieredCompilation", "1", "tier0"),
            ("DOTNET_TieredCompilation", "0", "optimized"),
            ("DOTNET_TC_QuickJit", "0", "optimized"),
            ("DOTNET_JITMinOpts", "1", "min-opts"),
        ];
        for (name, value, tier) in settings {
            let mut program = Command::new(runtime.join("lab"));
            program.args(["basics", "--type", "heap", "--label", "tiers", "--out"]).arg(folder.path());
            assert!(program.env_clear().envs([("PATH", "/usr/bin"), (name, value)]).output().unwrap().status.success());
            let (_, answer) = ask(&folder.path().join("tiers.dmp"), &["stacks"]);
            let found = tiers(&answer, Some("lab.dll"));
            println!("{:<6} {name}={value}: {found:?}", runtime.file_name().unwrap().display());
            assert_eq!(found.keys().collect::<Vec<_>>(), [tier], "{}: {name}={value}", runtime.display());
        }
    }
    Ok(())
}
