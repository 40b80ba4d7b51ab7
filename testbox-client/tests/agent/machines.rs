//! Tests of jobs in virtual machines, through a real QEMU and an image that the program itself builds.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};

use fairlead_api::{Grant, StopOrder};
use fairlead_reaper::Reaper;
use fairlead_testbox::{AgentConfig, ExecutorChoice};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    fake::{Fake, State, poll},
    store::input,
    testbox::{DC, Testbox, config, folder, job, job_folders, results},
};

/// Folder of images. Building one takes a download and some seconds.
static IMAGES: LazyLock<PathBuf> = LazyLock::new(|| {
    let images = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vm-images");
    if !images.join("busybox/kernel").exists() {
        let status = Command::new(env!("CARGO_BIN_EXE_fairlead-testbox"))
            .args(["image", "build", "busybox", "--vm-images"])
            .arg(&images)
            .status();
        assert!(status.unwrap().success(), "the messages above tell why");
    }
    images
});

fn start(fake: &Fake, folder: &TempDir) -> Testbox {
    Testbox::start(AgentConfig {
        executor: ExecutorChoice::Qemu,
        vm_images: Some(IMAGES.clone()),
        memory_mb: 4000,
        cpus: Some(8),
        ..config(fake, folder, DC)
    })
}

fn script(id: &str, text: &str) -> Grant {
    let spec = json!({"suite": "s", "testbox": "vm", "script": text, "word": "it's"});
    Grant {
        tbox_type: "vm".to_owned(),
        memory_mb: 208,
        guest_memory_mb: Some(128),
        timeout_s: 600,
        ..job(id, spec)
    }
}

fn says<'s>(id: &'s str, word: &'s str) -> impl Fn(&State) -> Option<()> + 's {
    move |state| state.log(id).contains(word).then_some(())
}

/// Returns the pids of all QEMUs that run in the folder of a job.
fn machines(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| {
            let cwd = std::fs::read_link(entry.path().join("cwd"));
            let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            name.starts_with("qemu") && cwd.is_ok_and(|cwd| cwd.starts_with(&folder))
        })
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Returns the files of jobs that are disks, or were made for them.
fn disks(folder: &TempDir, ids: &[&str]) -> Vec<PathBuf> {
    let guests = ids
        .iter()
        .map(|id| folder.path().join(format!("{id}-1/guest")));
    guests.filter(|guest| guest.exists()).collect()
}

#[tokio::test]
async fn six_run_side_by_side_and_each_end_is_told_apart() {
    let (fake, folder) = (Fake::start(), folder());
    let text = r#"
        echo "word=$word root=$RESULT_ROOT net=$(ls /sys/class/net)"
        echo mine > $RESULT_ROOT/file; mkdir $RESULT_ROOT/deep; echo two > $RESULT_ROOT/deep/two
        exit 3"#;
    for id in ["1", "2", "3"] {
        fake.grant(script(id, text));
    }
    fake.grant(script(
        "4",
        "echo job is up; echo c > /proc/sysrq-trigger; sleep 1000",
    ));
    fake.grant(script(
        "5",
        "trap 'echo asked; exit 9' TERM; echo job is up; sleep 1000 & wait",
    ));
    fake.grant(script("6", "echo job is up; poweroff -f; sleep 1000"));
    let testbox = start(&fake, &folder);
    fake.until("it runs", says("5", "job is up")).await;
    fake.with(|state| {
        state.stops.push(StopOrder {
            job_id: "5".to_owned(),
            attempt: 1,
            health: "terminate".to_owned(),
            reason: "somebody said so".to_owned(),
            grace_s: 60,
        });
    });
    for id in ["1", "2", "3"] {
        let end = fake.end(id).await;
        let log = fake.with(|state| state.log(id));
        assert_eq!(end["job_health"], "fail", "{end:?} {log}");
        assert_eq!(end["exit_code"], "3");
        // The memory of its guest, and what QEMU needs besides.
        assert!(
            (64..512).contains(&end["peak_memory_mb"].parse().unwrap()),
            "{end:?}"
        );
        assert!(end["cpu_ms"].parse::<u32>().unwrap() > 0);
        assert!(
            log.contains("word=it's root=/fairlead/result net=lo"),
            "{log}"
        );
        let file = |name: &str| fake.with(|state| state.files[&format!("s/{id}/{name}")].clone());
        assert_eq!(
            (file("file"), file("deep/two")),
            (b"mine\n".into(), b"two\n".into())
        );
    }
    let end = fake.end("4").await;
    assert_eq!(end["job_health"], "panic", "{end:?}");
    assert!(
        end["crash_signature"].contains("sysrq triggered crash"),
        "{end:?}"
    );
    let end = fake.end("5").await;
    assert_eq!(
        (end["job_health"].as_str(), end["exit_code"].as_str()),
        ("terminate", "9")
    );
    assert!(fake.with(|state| state.log("5")).contains("asked"));
    let end = fake.end("6").await;
    assert_eq!(end["job_health"], "fail", "{end:?}");
    assert!(end["reason"].contains("ended before the job"), "{end:?}");
    testbox.stopped().await.unwrap();
    assert_eq!(job_folders(&folder), [""; 0]);
    assert_eq!(machines(folder.path()), [""; 0]);
    assert_eq!(
        disks(&folder, &["1", "2", "3", "4", "5", "6"]),
        Vec::<PathBuf>::new()
    );
}

#[tokio::test]
async fn a_host_says_which_images_it_has() {
    let (fake, folder) = (Fake::start(), folder());
    let testbox = start(&fake, &folder);
    let asked = fake
        .until("it asks", |state| state.asked.first().cloned())
        .await;
    assert_eq!(asked.kinds, ["vm", "dc"]);
    assert!(
        asked.tags.contains(&"vm-image-busybox".to_owned()),
        "{:?}",
        asked.tags
    );
    let qemu = asked
        .executors
        .iter()
        .find(|one| one.name == "qemu")
        .unwrap();
    assert_eq!(qemu.problem, "");
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn a_killed_agent_leaves_no_machine_and_no_disk() {
    let (fake, folder) = (Fake::start(), folder());
    let spawn = || {
        let reaper = Reaper::of_process();
        // An agent hides its environment.
        tokio::process::Command::new(env!("CARGO_BIN_EXE_fairlead-testbox"))
            .arg0(format!("fairlead-testbox {}", reaper.mark()))
            .envs([reaper.variable()])
            .args(["--server", &fake.url(), "--host", "box", "--kind", "vm"])
            .args(["--memory", "1g", "--vm-images"])
            .arg(IMAGES.as_path())
            .arg("--work-dir")
            .arg(folder.path())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    };
    fake.grant(script("7", "echo job is up; sleep 1000"));
    let mut child = spawn();
    fake.until("it runs", says("7", "job is up")).await;
    child.kill().await.unwrap();
    assert_eq!(machines(folder.path()).len(), 1);
    let mut child = spawn();
    let gone =
        || (machines(folder.path()).is_empty() && disks(&folder, &["7"]).is_empty()).then_some(());
    poll("nothing is left", gone).await;
    assert_eq!(fake.end("7").await["job_health"], "abort_provider");
    assert!(fake.with(|state| state.log("7")).contains("job is up"));
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
    assert!(!results(&folder, "7").join("../guest").exists());
}

#[tokio::test]
async fn inputs_go_into_a_machine_and_outputs_come_out_of_it() {
    let (fake, folder) = (Fake::start(), folder());
    let id = fake
        .store()
        .put(&[
            ("lib/a", b"right bytes"),
            ("run*", b"#!/bin/sh\necho it runs\n"),
        ])
        .await;
    let text = "cat $FAIRLEAD_INPUTS/lib/a; echo \" $FAIRLEAD_OUTPUTS\"; inputs/run
        mkdir outputs/deep; echo built > $FAIRLEAD_OUTPUTS/deep/tool; chmod 755 outputs/deep/tool; echo r > result/r";
    let testbox = start(&fake, &folder);
    fake.grant(Grant {
        inputs: vec![input(id, "")],
        outputs: vec!["deep".to_owned()],
        ..script("7", text)
    });
    let end = fake.end("7").await;
    let log = fake.with(|state| state.log("7"));
    assert_eq!(end["job_health"], "success", "{end:?} {log}");
    assert!(
        log.contains("right bytes /fairlead/outputs") && log.contains("it runs"),
        "{log}"
    );
    let files = fake.store().files(&end["outputs"]).await;
    assert_eq!(files, [("deep/tool".to_owned(), "built\n".to_owned())]);
    // They are no results.
    let names = fake.with(|state| state.files.keys().cloned().collect::<Vec<_>>());
    assert_eq!(names, ["s/7/output", "s/7/r"]);
    testbox.stopped().await.unwrap();
}
