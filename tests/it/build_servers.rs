//! Formats for build servers, the scripts in `integrations`, and the plugin of kubectl with a substitute for kubectl.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gcdump::cli::Exit;
use serde_json::Value;

use crate::common::{own_unpacked, run};
use crate::harness::{Tested, ignored};

fn corpus(name: &str) -> String {
    format!("dumps/corpus/{name}.dmp.zst")
}

/// Commands that make checks, with findings of every severity.
fn commands() -> Vec<Vec<String>> {
    let (before, after) = (corpus("net10-wks-leak-heap.before"), corpus("net10-wks-leak-heap.after"));
    let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
    vec![
        words(&format!("analyze {}", corpus("net10-wks-deadlock-heap"))),
        words(&format!("analyze --no-graph {}", corpus("net10-wks-crash-heap"))),
        words(&format!("analyze {} --min-bytes 1K --min-waste 1", corpus("net10-wks-inspect-heap"))),
        words(&format!("inspect {}", corpus("net10-wks-inspect-heap"))),
        words(&format!("verify {after}")),
        words(&format!("diff --fail-on bytes>1 --fail-on threads>1000 {before} {after}")),
    ]
}

fn ask(command: &[String], format: &str) -> String {
    let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
    args.extend(["--no-local-files", "--format", format]);
    run(&args).out
}

/// Counts the checks of the JSON answer that failed or are noted, and those that failed.
fn expected(answer: &Value) -> (usize, usize) {
    let data = &answer["data"];
    let list = |key: &str| data[key].as_array().cloned().unwrap_or_default();
    match answer["command"].as_str().unwrap() {
        "analyze" => {
            let all = list("findings");
            let failed = all.iter().filter(|f| f["severity"] != "info").count();
            (all.len(), failed)
        }
        "inspect" => {
            let n = list("inspections").iter().filter(|i| i["found"].as_u64() > Some(0)).count();
            (n, n)
        }
        "verify" => (list("findings").len(), list("findings").len()),
        _ => {
            let n = list("rules").iter().filter(|r| r["failed"] == true).count();
            (n, n)
        }
    }
}

#[test]
fn every_format_has_the_findings_of_the_json() {
    let (mut all, mut notes) = (0, 0);
    for command in commands() {
        let json = ask(&command, "json");
        let (found, failed) = expected(&serde_json::from_str(&json).unwrap());
        (all, notes) = (all + found, notes + found - failed);
        let github = ask(&command, "github");
        assert_eq!(github.lines().count(), found, "{command:?}: {github}");
        assert!(github.lines().all(|l| ["::error ", "::warning ", "::notice "].iter().any(|s| l.starts_with(s))), "{github}");
        let gitlab: Vec<Value> = serde_json::from_str(&ask(&command, "gitlab")).unwrap();
        assert_eq!(gitlab.len(), found, "{command:?}");
        let mut fingerprints: Vec<&str> = gitlab.iter().map(|i| i["fingerprint"].as_str().unwrap()).collect();
        fingerprints.sort_unstable();
        fingerprints.dedup();
        assert_eq!(fingerprints.len(), found, "fingerprints are unique: {command:?}");
        let sarif: Value = serde_json::from_str(&ask(&command, "sarif")).unwrap();
        let results = sarif["runs"][0]["results"].as_array().unwrap();
        assert_eq!(results.len(), found, "{command:?}");
        let rules = sarif["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
        assert!(results.iter().all(|r| rules.iter().any(|rule| rule["id"] == r["ruleId"])), "{command:?}");
        let junit = ask(&command, "junit");
        let document = roxmltree::Document::parse(&junit).unwrap();
        let suite = document.descendants().find(|n| n.has_tag_name("testsuite")).unwrap();
        let cases = suite.children().filter(|n| n.has_tag_name("testcase")).count();
        let failures = suite.descendants().filter(|n| n.has_tag_name("failure")).count();
        assert_eq!((failures, suite.attribute("failures").unwrap()), (failed, failed.to_string().as_str()), "{command:?}");
        assert_eq!(suite.attribute("tests").unwrap(), cases.to_string(), "{command:?}");
        assert!(cases >= found, "{command:?}");
    }
    assert!(all > 20 && notes > 0, "{all} findings, {notes} notes");
}

#[test]
fn a_dump_without_its_objects_passes_no_check() {
    let (whole, mini) = (corpus("net10-wks-leak-heap.before"), corpus("net10-wks-basics-mini"));
    let ask = |args: &[&str]| run(&[args, &["--no-local-files", "--format", "junit"]].concat()).out;
    let inspected = ask(&["inspect", &mini]);
    let compared = ask(&["diff", "--fail-on", "bytes>10%", "--fail-on", "objects>+1", "--fail-on", "type:Lab.*:bytes>1M", &whole, &mini]);
    for junit in [&inspected, &compared] {
        let document = roxmltree::Document::parse(junit).unwrap();
        let cases: Vec<_> = document.descendants().filter(|n| n.has_tag_name("testcase")).collect();
        assert!(cases.len() >= 3 && cases.iter().all(|case| case.has_children()), "{junit}");
    }
    assert!(
        compared.contains("net10-wks-basics-mini.dmp") && !compared.contains("leak-heap.before"),
        "the last dump is checked: {compared}"
    );
}

#[test]
fn other_commands_refuse_them() {
    for format in ["github", "gitlab", "junit", "sarif"] {
        for command in ["stat", "objects", "diff"] {
            let after = corpus("net10-wks-leak-heap.after");
            let mut args = vec![command, "--no-local-files", "--format", format, &after];
            if command == "diff" {
                args.push(&after);
            }
            let ran = run(&args);
            assert_eq!((ran.exit, ran.out.as_str()), (Exit::Usage, ""), "{args:?}");
            assert!(ran.err.contains("makes no checks: this format is for analyze"), "{}", ran.err);
        }
    }
}

#[test]
fn markdown_has_the_rows_of_tables() {
    let dump = corpus("net10-wks-leak-heap.after");
    let rows = |format: &str| run(&["stat", "--no-local-files", "--format", format, &dump]).out;
    let csv = rows("csv");
    let markdown = rows("markdown");
    let table: Vec<&str> = markdown.lines().filter(|l| l.starts_with("| ")).collect();
    // Titles, rules and totals are rows, too.
    assert!(table.len() > csv.lines().count(), "{} {}", table.len(), csv.lines().count());
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    assert!(table.iter().all(|l| columns(l) == columns(table[0])), "{markdown}");
    assert!(markdown.contains("System.Collections.Generic.List&lt;"), "no raw HTML");
}

/// A folder with `gcdump` of this build, for the PATH of scripts.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_gcdump"), folder.path().join("bin/gcdump")).unwrap();
        Place { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a bash script in the folder, with these variables.
    fn bash(&self, script: &str, variables: &[(&str, &str)]) -> Output {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        command.args(["-eo", "pipefail", "-c", script]).current_dir(self.folder.path()).env_clear().env("PATH", path);
        command.env("HOME", self.folder.path()).env("GCDUMP_MODULES", "off").envs(variables.iter().copied());
        command.output().unwrap()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }
}

fn integrations() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("integrations")
}

fn has_bash() -> bool {
    cfg!(unix) && Command::new("bash").arg("--version").output().is_ok()
}

fn copy(name: &str, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join(corpus(name)), to).unwrap();
}

fn shown(output: &Output) -> String {
    format!("{:?}\n{}\n{}", output.status, String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Returns the shell scripts of the keys `key` in a YAML file: a block after `|`, or the items of a list.
fn scripts(file: &str, key: &str) -> Vec<String> {
    let text = fs::read_to_string(integrations().join(file)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let depth = |line: &str| line.len() - line.trim_start().len();
    let mut all = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        if !line.trim_start().starts_with(&format!("{key}:")) {
            continue;
        }
        let block = lines[n + 1..].iter().take_while(|l| l.trim().is_empty() || depth(l) > depth(line));
        let script = |l: &&str| l.trim_start().trim_start_matches("- ").trim_matches('\'').to_string();
        all.push(block.map(script).collect::<Vec<_>>().join("\n"));
    }
    assert!(!all.is_empty(), "{file} has no {key}");
    all
}

/// Makes a folder with an archive of this build, laid out like a release.
fn release(place: &Place) -> String {
    let script = r#"
        version=9.9.9 name="gcdump-9.9.9-$(uname -m)-unknown-linux-musl"
        mkdir -p "downloads/$name" && cp -L bin/gcdump "downloads/$name/gcdump"
        cd downloads && tar -czf "$name.tar.gz" "$name" && rm -r "$name" && sha256sum "$name.tar.gz" >SHA256SUMS
    "#;
    let made = place.bash(script, &[]);
    assert!(made.status.success(), "{}", shown(&made));
    place.path("downloads").to_str().unwrap().into()
}

#[test]
fn the_github_action_installs_takes_dumps_and_fails_for_what_it_finds() -> Tested {
    if !has_bash() || !cfg!(target_os = "linux") {
        return ignored("the scripts are run on Linux");
    }
    let place = Place::new();
    let downloads = release(&place);
    fs::remove_file(place.path("bin/gcdump")).unwrap();
    let steps = scripts("github/action.yml", "run");
    let action = integrations().join("github");
    let at = |name: &str| place.path(name).to_str().unwrap().to_string();
    let (path, env, summary) = (at("path"), at("env"), at("summary"));
    let common = [
        ("GITHUB_ACTION_PATH", action.to_str().unwrap()),
        ("GITHUB_ACTIONS", "true"),
        ("RUNNER_TEMP", place.folder.path().to_str().unwrap()),
        ("GITHUB_PATH", &path),
        ("GITHUB_ENV", &env),
        ("GITHUB_STEP_SUMMARY", &summary),
        ("GCDUMP_VERSION", "9.9.9"),
        ("GCDUMP_DOWNLOADS", &downloads),
        ("DUMPS", "dumps"),
        ("RESULTS", "results"),
        ("GCDUMP_FAIL_ON", "critical"),
        ("GCDUMP_RULES", "bytes > +20%"),
    ];
    let prepared = place.bash(&steps[0], &common);
    assert!(prepared.status.success(), "{}", shown(&prepared));
    assert_eq!(place.text("path").trim(), at("gcdump"));
    let variables = place.text("env");
    let folder = place.path("dumps").canonicalize().unwrap();
    assert!(variables.contains("DOTNET_DbgEnableMiniDump=1\n"), "{variables}");
    assert!(variables.contains(&format!("DOTNET_DbgMiniDumpName={}/%e.%p.%t.dmp\n", folder.display())), "{variables}");
    let check = format!("export PATH=\"$(cat path):$PATH\"\n{}", steps[1]);

    // Without a dump, nothing fails.
    let none = place.bash(&check, &common);
    assert!(none.status.success() && shown(&none).contains("no dump in dumps"), "{}", shown(&none));

    copy("net10-wks-leak-heap.after", &place.path("dumps/after.dmp.zst"));
    let sound = place.bash(&check, &common);
    assert!(sound.status.success(), "{}", shown(&sound));
    assert!(place.text("results/after.dmp.zst.xml").contains("failures=\"0\""));
    assert!(place.text("results/after.dmp.zst.html").contains("</html>"));

    copy("net10-wks-leak-heap.before", &place.path("before.dmp.zst"));
    let grown = place.bash(&check, &[&common[..], &[("GCDUMP_BASELINE", "before.dmp.zst")]].concat());
    assert_eq!(grown.status.code(), Some(1), "{}", shown(&grown));
    assert!(place.text("results/after.dmp.zst.diff.xml").contains("<failure"), "{}", shown(&grown));
    assert!(place.text("summary").contains("1 of 1 rules failed"));

    copy("net10-wks-deadlock-heap", &place.path("dumps/after.dmp.zst"));
    let stuck = place.bash(&check, &common);
    assert_eq!(stuck.status.code(), Some(1), "{}", shown(&stuck));
    assert!(String::from_utf8_lossy(&stuck.stdout).starts_with("::error title=gcdump analyze%3A deadlock::Threads"), "{}", shown(&stuck));
    let tolerated = place.bash(&check, &[&common[..], &[("GCDUMP_FAIL_ON", "crash suspects")]].concat());
    assert!(tolerated.status.success(), "{}", shown(&tolerated));

    // A misspelled word would never fail a build.
    for (variable, word) in [("GCDUMP_FAIL_ON", "crash crtical"), ("GCDUMP_RULES", "bytes > 1x"), ("GCDUMP_FORMAT", "gitlap")] {
        let refused = place.bash(&check, &[&common[..], &[(variable, word)]].concat());
        assert_eq!(refused.status.code(), Some(2), "{variable}: {}", shown(&refused));
    }

    fs::write(place.path("dumps/broken.dmp"), "no dump").unwrap();
    let broken = place.bash(&check, &[&common[..], &[("GCDUMP_FAIL_ON", "crash")]].concat());
    assert_eq!(broken.status.code(), Some(1), "{}", shown(&broken));
    let summary = fs::read_to_string(place.path("results/summary").with_extension("md")).unwrap();
    assert!(summary.contains("gcdump cannot read this dump."));

    // An archive with another checksum is not installed.
    fs::write(place.path("downloads/SHA256SUMS"), place.text("downloads/SHA256SUMS").replace(|c: char| c.is_ascii_digit(), "0")).unwrap();
    let refused = place.bash(&steps[0], &common);
    assert!(!refused.status.success() && shown(&refused).contains("does not have the checksum"), "{}", shown(&refused));
    Ok(())
}

#[test]
fn the_gitlab_template_reports_the_same() -> Tested {
    if !has_bash() || !cfg!(target_os = "linux") {
        return ignored("the scripts are run on Linux");
    }
    let place = Place::new();
    let downloads = release(&place);
    copy("net10-wks-deadlock-heap", &place.path("dumps/app.dmp.zst"));
    let scripts = |key: &str| scripts("gitlab/gcdump.yml", key).remove(0);
    let template = integrations();
    let variables = [
        ("GCDUMP_SCRIPTS", template.to_str().unwrap()),
        ("CI_PROJECT_DIR", place.folder.path().to_str().unwrap()),
        ("GCDUMP_VERSION", "9.9.9"),
        ("GCDUMP_DOWNLOADS", &downloads),
        ("GCDUMP_FORMAT", "gitlab"),
        ("GCDUMP_DUMPS", "dumps"),
        ("GCDUMP_RESULTS", "gcdump-results"),
    ];
    let before = place.bash(&(scripts("before_script") + "\necho \"$DOTNET_DbgMiniDumpType\""), &variables);
    assert!(before.status.success() && String::from_utf8_lossy(&before.stdout).ends_with("2\n"), "{}", shown(&before));
    let after = place.bash(&scripts("after_script"), &variables);
    assert_eq!(after.status.code(), Some(1), "{}", shown(&after));
    let issues: Vec<Value> = serde_json::from_str(&place.text("gcdump-results/app.dmp.zst.codequality.json")).unwrap();
    assert_eq!(issues[0]["severity"], "critical");
    Ok(())
}

#[test]
fn the_plugin_of_kubectl_composes_its_calls() -> Tested {
    if !has_bash() {
        return ignored("there is no bash");
    }
    let place = Place::new();
    // The substitute records its arguments, and runs here what kubectl would run in the container.
    let stand_in = "#!/usr/bin/env bash\nprintf '%q ' \"$@\" >>calls; echo >>calls\nwhile [ $# -gt 0 ] && [ \"$1\" != -- ]; do shift; done; shift\n[ \"$1\" != /gcdump ] || exit 0\nexec \"$@\"\n";
    fs::write(place.path("bin/kubectl"), stand_in).unwrap();
    #[cfg(unix)]
    fs::set_permissions(place.path("bin/kubectl"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let plugin = integrations().join("kubectl/kubectl-gcdump");
    let call = |args: &str| {
        let _ = fs::remove_file(place.path("calls"));
        let ran = place.bash(&format!("'{}' {args}", plugin.display()), &[]);
        let calls = fs::read_to_string(place.path("calls")).unwrap_or_default();
        (ran, calls)
    };
    copy("net10-wks-leak-heap.before", &place.path("pod/app.dmp.zst"));
    fs::copy(own_unpacked(), place.path("pod/app 1.dmp")).unwrap();
    let (ran, calls) = call("-n shop -c app copy web-1 'pod/app 1.dmp'");
    assert!(ran.status.success() && calls.starts_with("exec -n shop web-1 -c app -- sh -c "), "{} {calls}", shown(&ran));
    // The copied file is read unchanged.
    let read = place.bash("gcdump stat --no-local-files 'app 1.dmp.gz'", &[]);
    assert!(read.status.success() && String::from_utf8_lossy(&read.stdout).contains("System.String"), "{}", shown(&read));
    let (ran, _) = call("copy web-1 pod/app.dmp.zst");
    let (there, here) = (fs::read(place.path("pod/app.dmp.zst")).unwrap(), fs::read(place.path("app.dmp.zst")).unwrap());
    assert!(ran.status.success() && there == here, "what is compressed is copied as it is: {}", shown(&ran));
    let (ran, _) = call("copy web-1 pod/none.dmp");
    assert!(!ran.status.success() && !place.path("none.dmp.gz").exists() && !place.path("none.dmp.gz.part").exists(), "{}", shown(&ran));
    let (ran, calls) = call("list web-1 pod");
    assert!(
        String::from_utf8_lossy(&ran.stdout).contains("app 1.dmp") && calls.starts_with("exec web-1 -- sh -c "),
        "{} {calls}",
        shown(&ran)
    );
    let (ran, calls) = call("-c app ask web-1 /tmp/app.dmp retained --suspects");
    let wanted = "debug web-1 --profile=general --target=app --image=ghcr.io/OWNER/gcdump:0.3.0 --attach --quiet -- /gcdump retained --suspects /proc/1/root/tmp/app.dmp ";
    assert!(ran.status.success() && calls.trim_end() == wanted.trim_end(), "{} {calls}", shown(&ran));
    let (ran, calls) = call("ask web-1 /tmp/app.dmp info");
    assert!(ran.status.code() == Some(2) && calls.is_empty(), "a container is needed: {}", shown(&ran));
    let (ran, calls) = call("-c app take web-1");
    assert!(calls.starts_with("exec web-1 -c app -- sh -c ") && calls.contains("/tmp/gcdump.dmp"), "{} {calls}", shown(&ran));
    Ok(())
}
