//! The examples of the guides, run as they stand. Blocks marked `yaml NAME` or `sh NAME` become files. Lines after `$ ` in `console` blocks
//! become one shell session against a lab of one machine. Their other lines are output that the session must print.

use std::{
    collections::BTreeSet,
    env, fs,
    path::Path,
    process::{Command, Output},
};

use fairlead_tests::{Agent, Receiver, Scheduler, Store, eventually, settings};
use tempfile::TempDir;

/// Returns the fenced blocks: the text behind the fence, and the lines.
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

/// Returns a line without the parts that differ between runs: words with a digit (ids, times, names of hosts), and
/// spacing.
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

/// Returns the lines of shown output that the session did not print.
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

/// Writes the files of the guide.
fn write_files(text: &str, folder: &Path) {
    for (info, lines) in blocks(text) {
        let name = info.strip_prefix("yaml ").or(info.strip_prefix("sh "));
        let Some(name) = name else { continue };
        let path = folder.join(name);
        let parent = path.parent().expect("a file lies in a folder");
        fs::create_dir_all(parent).expect("its folder");
        fs::write(path, format!("{}\n", lines.join("\n"))).expect("a file of the guide");
    }
}

/// Returns the commands of the guide as one script.
fn commands(text: &str) -> String {
    let mut script = vec!["set -eux"];
    for (info, lines) in blocks(text) {
        if info == "console" {
            script.extend(lines.iter().filter_map(|line| line.strip_prefix("$ ")));
        }
    }
    assert!(script.len() > 1, "the guide has no examples");
    script.join("\n")
}

/// Returns a shell of a user of this lab.
fn shell(scheduler: &Scheduler, folder: &Path) -> Command {
    let binaries = settings::binary("fairlead");
    let binaries = binaries.parent().expect("the binaries' folder");
    let mut path = vec![binaries.to_owned()];
    path.extend(settings::search_path());
    let mut shell = Command::new("/bin/sh");
    shell
        .current_dir(folder)
        .env("PATH", env::join_paths(path).expect("a search path"))
        .env("HOME", folder)
        .env("XDG_CONFIG_HOME", folder.join("config"))
        .env("FAIRLEAD_SERVER", scheduler.url())
        .env("FAIRLEAD_ACCOUNT", "alice");
    shell
}

fn printed_by(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

async fn the_examples_work(guide: &str) {
    let folder = TempDir::with_prefix("fairlead-guide-").expect("a temporary folder");
    let text = fs::read_to_string(settings::project().join(guide)).expect("the guide");
    write_files(&text, folder.path());
    let scheduler = Scheduler::start(Store::Embedded).await;
    let _agent = Agent::start(
        &scheduler.url(),
        "server-1",
        &["--kind", "dc", "--memory", "4g"],
    );
    let mut session = shell(&scheduler, folder.path());
    let output = session.arg("-c").arg(commands(&text)).output();
    let output = output.expect("a shell");
    let printed = printed_by(&output);
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
async fn the_guide_of_inputs_works() {
    the_examples_work("docs/inputs-guide.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_walk_through_the_interface_works() {
    the_examples_work("docs/api.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_for_those_on_call_works() {
    the_examples_work("docs/on-call.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_on_installation_works() {
    the_examples_work("docs/install.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_guide_works() {
    the_examples_work("docs/operator-guide.md").await;
}

/// A CI in front of a lab.
struct Ci {
    scheduler: Scheduler,
    folder: TempDir,
    _agent: Agent,
}

impl Ci {
    async fn start() -> Self {
        let folder = TempDir::with_prefix("fairlead-ci-").expect("a temporary folder");
        let guide = settings::project().join("docs/ci-guide.md");
        write_files(
            &fs::read_to_string(guide).expect("the guide"),
            folder.path(),
        );
        let allowed = ["--webhooks-to", "127.0.0.1:*"];
        let scheduler = Scheduler::start_with(Store::Embedded, &allowed).await;
        let offer = ["--kind", "dc", "--memory", "4g"];
        let agent = Agent::start(&scheduler.url(), "server-1", &offer);
        Self {
            scheduler,
            folder,
            _agent: agent,
        }
    }

    /// Runs a step. Returns its exit code and output.
    fn step(&self, command: &str, more: &[(&str, &str)]) -> (Option<i32>, String) {
        let mut shell = shell(&self.scheduler, self.folder.path());
        shell.envs(more.iter().copied());
        let output = shell.arg("-c").arg(command).output().expect("a shell");
        (output.status.code(), printed_by(&output))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_is_red_or_green_in_time() {
    let ci = Ci::start().await;
    let (code, printed) = ci.step("sh lab.sh suite.yaml", &[]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("3 shards: 0 run, 3 ended, 0 failed"),
        "{printed}"
    );
    let (code, printed) = ci.step(
        "sh lab.sh suite.yaml bad=green; code=$?; find lab-results -name results.json; exit $code",
        &[],
    );
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("2 passed, 1 failed"), "{printed}");
    assert!(
        printed
            .lines()
            .any(|line| line.contains("failed") && line.contains("green")),
        "{printed}"
    );
    assert_eq!(printed.matches("results.json").count(), 6, "{printed}");
    // No machine has so much memory, but the step still ends in time.
    let (code, printed) = ci.step(
        "sh lab.sh suite.yaml need_memory=900g",
        &[("LAB_TIMEOUT", "1s")],
    );
    assert_eq!(code, Some(7), "{printed}");
    assert!(printed.contains("1 not ended"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_matrix_posts_its_shards_one_by_one() {
    let ci = Ci::start().await;
    // One leg can be followed by itself, even if it was posted before.
    for _ in 0..2 {
        let (status, printed) = ci.step("sh leg.sh run-0 x86 -m", &[]);
        assert_eq!(status, Some(0), "{printed}");
    }
    for (run, bad, code) in [("run-1", "none", 0), ("run-2", "arm", 1)] {
        for leg in ["x86", "arm", "x86"] {
            let (status, printed) = ci.step(&format!("sh leg.sh {run} {leg} bad={bad}"), &[]);
            assert_eq!(status, Some(0), "{printed}");
        }
        let (status, printed) = ci.step(&format!("sh last.sh {run}"), &[]);
        assert_eq!(status, Some(code), "{printed}");
        let line = format!("2 shards: 0 run, 2 ended, {code} failed");
        assert!(printed.contains(&line), "{printed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_task_is_called_back() {
    let ci = Ci::start().await;
    let hub = Receiver::start(&[]).await;
    for (n, (script, result)) in [("true", "succeeded"), ("false", "failed")]
        .into_iter()
        .enumerate()
    {
        let task = format!("task-{n}");
        let settings = [
            ("HUB", hub.url.clone()),
            ("PLAN_JOB", "job".to_owned()),
            ("PLAN_TASK", task.clone()),
            ("HUB_TOKEN", "secret".to_owned()),
        ];
        let settings: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (*k, v.as_str())).collect();
        let (code, printed) = ci.step(&format!("sh azure.sh {script}"), &settings);
        assert_eq!(code, Some(0), "{printed}");
        let told = eventually("the hub is called", async || {
            hub.sent()
                .into_iter()
                .map(|sent| sent.json())
                .find(|body| body["taskId"] == task.as_str())
        })
        .await;
        assert_eq!(
            (&told["name"], &told["result"]),
            (&"TaskCompleted".into(), &result.into())
        );
    }
}
