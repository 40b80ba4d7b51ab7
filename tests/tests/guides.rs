//! The examples of the guides, run as they stand. Blocks marked `yaml NAME` become files. Lines after `$ ` in `console` blocks
//! become one shell session against a lab of one machine. Their other lines are output that the session must print.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::{collections::BTreeSet, env, fs, path::Path, process::Command};

use fairlead_tests::{Agent, Scheduler, Store, settings};
use tempfile::TempDir;

/// Fenced blocks: what is said behind the fence, and the lines.
fn blocks(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if let Some(info) = line.strip_prefix("```") {
            inside = !inside;
            if inside {
                found.push((info, Vec::new()));
            }
        } else if inside && let Some((_, lines)) = found.last_mut() {
            lines.push(line);
        }
    }
    assert!(!inside, "a fence is not closed");
    found
}

/// A line without what differs from run to run: words with a digit (ids, times, names of hosts), and spacing.
fn comparable(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        if word.contains(|c: char| c.is_ascii_digit()) {
            "#"
        } else {
            word
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Lines of shown output that the session did not print.
fn missing<'a>(text: &'a str, printed: &str) -> Vec<&'a str> {
    let printed: BTreeSet<_> = printed.lines().map(comparable).collect();
    blocks(text)
        .into_iter()
        .filter(|(info, _)| *info == "console")
        .flat_map(|(_, lines)| lines)
        .filter(|line| !line.starts_with("$ ") && !line.is_empty())
        .filter(|line| !printed.contains(&comparable(line)))
        .collect()
}

/// Writes the files of the guide, and returns its commands as one script.
fn prepare(text: &str, folder: &Path) -> String {
    let mut script = vec!["set -eux"];
    let blocks = blocks(text);
    for (info, lines) in &blocks {
        if let Some(name) = info.strip_prefix("yaml ") {
            let path = folder.join(name);
            let parent = path.parent().expect("a file lies in a folder");
            fs::create_dir_all(parent).expect("its folder");
            fs::write(path, format!("{}\n", lines.join("\n"))).expect("a file of the guide");
        } else if *info == "console" {
            script.extend(lines.iter().filter_map(|line| line.strip_prefix("$ ")));
        }
    }
    assert!(script.len() > 1, "the guide has no examples");
    script.join("\n")
}

async fn the_examples_work(guide: &str) {
    let folder = TempDir::with_prefix("fairlead-guide-").expect("a temporary folder");
    let text = fs::read_to_string(settings::project().join(guide)).expect("the guide");
    let script = prepare(&text, folder.path());
    let scheduler = Scheduler::start(Store::Embedded).await;
    let _agent = Agent::start(
        &scheduler.url(),
        "server-1",
        &["--kind", "dc", "--memory", "4g"],
    );
    let binaries = settings::binary("fairlead");
    let binaries = binaries.parent().expect("the binaries' folder");
    let mut path = vec![binaries.to_owned()];
    path.extend(settings::search_path());
    let mut session = Command::new("/bin/sh");
    session
        .arg("-c")
        .arg(&script)
        .current_dir(folder.path())
        .env("PATH", env::join_paths(path).expect("a search path"))
        .env("HOME", folder.path())
        .env("XDG_CONFIG_HOME", folder.path().join("config"))
        .env("FAIRLEAD_SERVER", scheduler.url())
        .env("FAIRLEAD_ACCOUNT", "alice");
    let output = session.output().expect("a shell");
    let printed = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.status.success(),
        "{guide}: {}\n{printed}",
        output.status
    );
    let missing = missing(&text, &printed);
    assert!(
        missing.is_empty(),
        "{guide} shows {missing:#?}, not printed:\n{printed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_quick_start_works() {
    the_examples_work("docs/quick-start.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_guide_works() {
    the_examples_work("docs/user-guide.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_guide_works() {
    the_examples_work("docs/operator-guide.md").await;
}
