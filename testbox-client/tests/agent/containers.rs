//! Tests of jobs in containers, through a real podman and an image of nothing but busybox.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Stdio},
};

use fairlead_api::{Grant, StopOrder};
use fairlead_reaper::Reaper;
use fairlead_testbox::{AgentConfig, ExecutorChoice};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    fake::{Fake, poll},
    store::input,
    testbox::{DC, Testbox, config, folder, job, job_folders},
};

fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Imports an image of this name with busybox as all of its programs.
fn import(name: &str, programs: &[&str]) -> String {
    let root = tempfile::tempdir().unwrap();
    let bin = root.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let busybox = run(Command::new("/bin/sh").args(["-c", "command -v busybox"]));
    std::fs::copy(busybox.trim(), bin.join("busybox")).unwrap();
    for program in programs {
        std::os::unix::fs::symlink("busybox", bin.join(program)).unwrap();
    }
    let archive = root.path().join("root.tar");
    let tar = Command::new("tar")
        .arg("-C")
        .arg(root.path())
        .arg("-cf")
        .arg(&archive)
        .arg("bin")
        .status();
    assert!(tar.unwrap().success());
    run(Command::new("podman").arg("import").arg(&archive).arg(name));
    format!("localhost/{name}")
}

fn busybox() -> String {
    let programs = [
        "sh", "sleep", "cat", "head", "tail", "id", "ls", "env", "touch", "kill",
    ];
    import("fairlead-test-busybox", &programs)
}

fn containers(image: &str) -> AgentConfig {
    AgentConfig {
        executor: ExecutorChoice::Podman,
        default_image: Some(image.to_owned()),
        memory_mb: 4000,
        cpus: Some(8),
        ..crate::testing::config("", DC, "")
    }
}

fn start(fake: &Fake, folder: &TempDir, with: AgentConfig) -> Testbox {
    let here = config(fake, folder, DC);
    Testbox::start(AgentConfig {
        servers: here.servers,
        work_dir: here.work_dir,
        ..with
    })
}

/// Returns the containers of the agent with this work folder.
fn left(folder: &Path) -> String {
    let agent = std::fs::read_to_string(folder.join("instance")).unwrap();
    let filter = format!("label=fairlead.agent={}", agent.trim());
    let list = ["ps", "--all", "--quiet", "--filter", &filter];
    run(Command::new("podman").args(list))
}

fn script(id: &str, text: &str) -> Grant {
    let spec =
        json!({"suite": "s", "testbox": "dc", "script": text, "it's": "odd", "word": "it's"});
    Grant {
        memory_mb: 64,
        ..job(id, spec)
    }
}

type End = BTreeMap<String, String>;

fn said<'e>(end: &'e End, field: &str) -> &'e str {
    end.get(field).map_or("", String::as_str)
}

#[tokio::test]
async fn eight_run_side_by_side_and_the_one_that_wants_too_much_is_named_so() {
    let (fake, folder) = (Fake::start(), folder());
    let image = busybox();
    let text = r#"
        set -e
        echo "word=$word home=$HOME root=$RESULT_ROOT"
        ls /sys/class/net
        echo mine > file; cat file > $RESULT_ROOT/file; touch $TMPDIR/x
        ! touch /bin/x 2>/dev/null
        ! touch $RESULT_ROOT/output 2>/dev/null || ! echo x > $RESULT_ROOT/output
        echo done"#;
    for id in 1..=7 {
        fake.grant(script(&id.to_string(), text));
    }
    fake.grant(script("8", "head -c 300m /dev/zero | tail > /dev/null"));
    let testbox = start(&fake, &folder, containers(&image));
    for id in 1..=7 {
        let id = id.to_string();
        let end = fake.end(&id).await;
        let log = fake.with(|state| state.log(&id));
        assert_eq!(said(&end, "job_health"), "success", "{end:?} {log}");
        let home = "word=it's home=/fairlead root=/fairlead/result\nlo\ndone\n";
        assert_eq!(log, home);
        let file = fake.with(|state| state.files[&format!("s/{id}/file")].clone());
        assert_eq!(file, b"mine\n");
    }
    let end = fake.end("8").await;
    assert_eq!(said(&end, "job_health"), "oom", "{end:?}");
    let peak: u32 = said(&end, "peak_memory_mb").parse().unwrap();
    assert!((32..=64).contains(&peak), "{end:?}");
    // The engine's monitor notes it in its own folder, not where the agent was started.
    assert!(!Path::new("oom").exists());
    assert_ne!(said(&end, "cpu_ms"), "");
    testbox.stopped().await.unwrap();
    assert_eq!(job_folders(&folder), [""; 0]);
    assert_eq!(left(folder.path()), "");
}

#[tokio::test]
async fn its_exit_code_is_its_own_and_a_signal_that_it_sends_itself_is_no_want_of_memory() {
    let (fake, folder) = (Fake::start(), folder());
    let image = busybox();
    let cases = [
        ("exit 3", "fail", "3"),
        ("exit 125", "fail", "125"),
        ("kill -9 $$", "fail", "137"),
        ("#!/nowhere/sh\n", "fail", "127"),
    ];
    for (n, (text, ..)) in cases.iter().enumerate() {
        fake.grant(script(&n.to_string(), text));
    }
    let testbox = start(&fake, &folder, containers(&image));
    for (n, (text, health, code)) in cases.iter().enumerate() {
        let end = fake.end(&n.to_string()).await;
        let found = (said(&end, "job_health"), said(&end, "exit_code"));
        let log = fake.with(|state| state.log(&n.to_string()));
        assert_eq!(found, (*health, *code), "{text}: {end:?} {log}");
    }
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn an_order_or_its_limit_stops_all_of_it() {
    let (fake, folder) = (Fake::start(), folder());
    let image = busybox();
    let text = "(sleep 1000; echo late) & echo up; sleep 1000; echo no";
    fake.grant(script("7", text));
    fake.grant(Grant {
        timeout_s: 1,
        ..script("8", text)
    });
    // It takes no notice of SIGTERM.
    fake.grant(Grant {
        timeout_s: 1,
        ..script("9", "trap '' TERM; echo up; while :; do sleep 1; done")
    });
    let testbox = start(&fake, &folder, containers(&image));
    fake.until("it runs", |state| {
        state.log("7").contains("up").then_some(())
    })
    .await;
    fake.with(|state| {
        state.stops.push(StopOrder {
            job_id: "7".to_owned(),
            attempt: 1,
            health: "terminate".to_owned(),
            reason: "somebody said so".to_owned(),
            grace_s: 10,
        });
    });
    let end = fake.end("7").await;
    let found = (said(&end, "job_health"), said(&end, "exit_code"));
    assert_eq!(found, ("terminate", "143"), "{end:?}");
    let end = fake.end("8").await;
    assert_eq!(said(&end, "job_health"), "soft_timeout", "{end:?}");
    let end = fake.end("9").await;
    assert_eq!(said(&end, "job_health"), "soft_timeout", "{end:?}");
    testbox.stopped().await.unwrap();
    assert_eq!(job_folders(&folder), [""; 0]);
    assert_eq!(left(folder.path()), "");
}

#[tokio::test]
async fn an_image_that_cannot_be_had_or_has_no_shell_is_named() {
    let (fake, folder) = (Fake::start(), folder());
    let image = busybox();
    let bare = import("fairlead-test-bare", &[]);
    let named = |id: &str, image: &str| {
        let mut grant = script(id, "exit 0");
        grant
            .job
            .insert("docker_image".to_owned(), Value::from(image));
        grant
    };
    fake.grant(named("7", "localhost/fairlead-test-nowhere:1"));
    fake.grant(named("8", &bare));
    let testbox = start(&fake, &folder, containers(&image));
    let end = fake.end("7").await;
    assert_eq!(said(&end, "job_health"), "abort_provider", "{end:?}");
    assert!(
        said(&end, "reason").contains("fairlead-test-nowhere"),
        "{end:?}"
    );
    let end = fake.end("8").await;
    assert_eq!(said(&end, "job_health"), "abort_invalid", "{end:?}");
    assert!(said(&end, "reason").contains("/bin/sh"), "{end:?}");
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn a_host_says_what_it_runs_jobs_in() {
    let (fake, folder) = (Fake::start(), folder());
    let testbox = start(&fake, &folder, containers(&busybox()));
    let asked = fake
        .until("it asks", |state| state.asked.first().cloned())
        .await;
    assert_eq!(asked.tags, ["executor-container", "agent-content"]);
    let podman = &asked.executors[0];
    assert_eq!(
        (podman.name.as_str(), podman.problem.as_str()),
        ("podman", "")
    );
    assert!(podman.version.starts_with(|c: char| c.is_ascii_digit()));
    let names: Vec<_> = asked
        .executors
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert!(names.contains(&"process"), "{names:?}");
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn a_killed_agent_leaves_no_container_for_long() {
    let (fake, folder) = (Fake::start(), folder());
    let image = busybox();
    let spawn = || {
        let reaper = Reaper::of_process();
        // An agent hides its environment.
        tokio::process::Command::new(env!("CARGO_BIN_EXE_fairlead-testbox"))
            .arg0(format!("fairlead-testbox {}", reaper.mark()))
            .envs([reaper.variable()])
            .args(["--server", &fake.url(), "--host", "box", "--kind", "dc"])
            .args([
                "--memory",
                "1g",
                "--executor",
                "auto",
                "--default-image",
                &image,
            ])
            .arg("--work-dir")
            .arg(folder.path())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    };
    fake.grant(script("7", "echo up; sleep 1000"));
    let mut child = spawn();
    fake.until("it runs", |state| {
        state.log("7").contains("up").then_some(())
    })
    .await;
    child.kill().await.unwrap();
    assert_ne!(left(folder.path()), "");
    let mut child = spawn();
    poll("no container is left", || {
        left(folder.path()).is_empty().then_some(())
    })
    .await;
    assert_eq!(said(&fake.end("7").await, "job_health"), "abort_provider");
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn images_that_were_not_used_lately_go_and_others_stay() {
    let (fake, folder) = (Fake::start(), folder());
    let [old, new, of_the_site] =
        ["old", "new", "site"].map(|word| import(&format!("fairlead-test-{word}"), &["sh"]));
    let engine = folder.path().join("engine");
    std::fs::create_dir_all(&engine).unwrap();
    let list = json!({&new: 2, &old: 1, "localhost/gone": 3});
    std::fs::write(engine.join("images.json"), list.to_string()).unwrap();
    let exists = |image: &str| {
        let mut ask = Command::new("podman");
        ask.args(["image", "exists", image])
            .status()
            .unwrap()
            .success()
    };
    // One image of busybox takes 2 MB.
    let with = AgentConfig {
        image_cache_mb: 3,
        ..containers(&of_the_site)
    };
    fake.grant(script("1", "echo here"));
    let testbox = start(&fake, &folder, with);
    let end = fake.end("1").await;
    assert_eq!(said(&end, "job_health"), "success", "{end:?}");
    testbox.stopped().await.unwrap();
    assert!(!exists(&old) && exists(&new) && exists(&of_the_site));
    let kept = std::fs::read_to_string(engine.join("images.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&kept).unwrap(),
        json!({&new: 2})
    );
    run(Command::new("podman").args(["image", "rm", &new, &of_the_site]));
}

#[tokio::test]
async fn inputs_are_read_only_in_a_container_and_outputs_come_back() {
    let (fake, folder) = (Fake::start(), folder());
    let image = busybox();
    let id = fake.store().put(&[("lib/a", b"right bytes")]).await;
    let text = r#"
        cat $FAIRLEAD_INPUTS/lib/a; echo " $FAIRLEAD_INPUTS $FAIRLEAD_OUTPUTS"
        ! touch inputs/b 2>/dev/null || echo writable
        ! echo x 2>/dev/null > inputs/lib/a || echo writable
        cat inputs/lib/a > outputs/copy"#;
    let testbox = start(&fake, &folder, containers(&image));
    fake.grant(Grant {
        inputs: vec![input(id, "")],
        outputs: vec!["copy".to_owned()],
        ..script("7", text)
    });
    let end = fake.end("7").await;
    let log = fake.with(|state| state.log("7"));
    assert_eq!(said(&end, "job_health"), "success", "{end:?} {log}");
    assert_eq!(log, "right bytes /fairlead/inputs /fairlead/outputs\n");
    let files = fake.store().files(said(&end, "outputs")).await;
    assert_eq!(files, [("copy".to_owned(), "right bytes".to_owned())]);
    testbox.stopped().await.unwrap();
}
