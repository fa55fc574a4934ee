//! Tables and pages fold frames and objects of the framework; `--framework` and formats for programs show all of them.

use serde_json::Value;

use crate::common::{self, ask, run};
use crate::harness::Tested;

fn text(name: &str, words: &[&str]) -> String {
    let dump = common::unpacked().join(format!("{name}.dmp"));
    let ran = run(&[words, &[dump.to_str().unwrap()]].concat());
    ran.out
}

/// The number of frames that are folded in the text.
fn folded(text: &str) -> u64 {
    let number = |line: &str| line.split_once("… ")?.1.split_once(" frames of ")?.0.parse::<u64>().ok();
    text.lines().filter_map(number).sum()
}

#[test]
fn stacks_fold_frames_of_the_framework() -> Tested {
    common::needs_shared()?;
    for name in ["net10-wks-starve-heap", "net8-wks-pool-heap", "net11-wks-deadlock-heap"] {
        let (short, all) = (text(name, &["stacks"]), text(name, &["stacks", "--framework"]));
        let dump = common::unpacked().join(format!("{name}.dmp"));
        let (_, answer) = ask(&dump, &["stacks"]);
        let threads = answer["data"]["threads"].as_array().unwrap();
        // Both answers have the same lines except for folded frames.
        let lines = |text: &str| text.lines().count() as u64;
        let folds = short.lines().filter(|line| line.contains("… ")).count() as u64;
        assert_eq!(lines(&short) - folds + folded(&short), lines(&all), "{name}");
        assert!(folded(&short) > 0 && !all.contains("… "), "{name}");
        for thread in threads {
            let frames = thread["frames"].as_array().unwrap();
            let shown = |f: &Value| f["display"].as_str().is_some_and(|method| short.contains(method));
            // The innermost method and all methods of the program are shown.
            let innermost = frames.iter().find(|f| f["kind"] == "managed");
            let own = frames.iter().filter(|f| f["module"].as_str().is_some_and(|m| !m.starts_with("System.")));
            assert!(innermost.into_iter().chain(own).all(shown), "{name}: {thread}");
        }
        // `--method` shows a method of the framework that is folded otherwise, and `--roots` folds nothing.
        let hidden = |f: &&Value| f["display"].as_str().is_some_and(|method| f["kind"] == "managed" && !short.contains(method));
        let hidden = threads.iter().flat_map(|t| t["frames"].as_array().unwrap()).find(hidden).unwrap()["display"].as_str().unwrap();
        let method = hidden.split('(').next().unwrap();
        assert!(text(name, &["stacks", "--method", method]).contains(hidden), "{name} {hidden}");
        assert_eq!(folded(&text(name, &["stacks", "--roots"])), 0, "{name}");
        // Formats for programs and commands of SOS fold nothing.
        for words in [&["stacks", "--format", "csv"][..], &["stacks", "--format", "folded"], &["clrstack"], &["stacks", "--json"]] {
            assert!(!text(name, words).contains("… "), "{name} {words:?}");
        }
        let (short, all) = (text(name, &["stacks", "--merge"]), text(name, &["stacks", "--merge", "--framework"]));
        let folds = short.lines().filter(|line| line.contains("… ")).count() as u64;
        assert_eq!(lines(&short) - folds + folded(&short), lines(&all), "{name}");
    }
    Ok(())
}

#[test]
fn chains_and_paths_fold_methods_and_objects_of_the_framework() -> Tested {
    for dump in &common::web_dumps()? {
        let path = dump.path.to_str().unwrap();
        let of = |words: &[&str]| run(&[words, &[path]].concat()).out;
        let (short, all) = (of(&["async"]), of(&["async", "--framework"]));
        let lines = |text: &str| text.lines().count() as u64;
        let folds = short.lines().filter(|line| line.contains("… ")).count() as u64;
        assert_eq!(lines(&short) - folds + folded(&short), lines(&all), "{}", dump.name);
        let own = |text: &str| text.lines().filter(|line| line.contains(" Web.")).count();
        assert_eq!((own(&short), folded(&all)), (own(&all), 0), "{}", dump.name);
        assert!(folded(&short) > 4 && short.contains("Microsoft.AspNetCore"), "{short}");
        assert_eq!(of(&["dumpasync", "-stacks"]), all, "{}", dump.name);
        let merged = of(&["async", "--all"]);
        assert!(folded(&merged) > 0 && folded(&of(&["async", "--all", "--framework"])) == 0, "{}", dump.name);
    }
    common::needs_shared()?;
    let tree = text("net10-wks-colls-heap", &["path", "--type", "System.String"]);
    assert!(tree.contains(" levels of System"), "{tree}");
    assert!(!text("net10-wks-colls-heap", &["path", "--framework", "--type", "System.String"]).contains("… "), "{tree}");
    Ok(())
}
