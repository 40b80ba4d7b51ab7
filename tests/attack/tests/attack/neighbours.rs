//! A job on a host beside another one: it must not reach the other's secrets, nor the agent's token.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use fairlead_tests::{Agent, Http, Scheduler, Store, eventually, jobs};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Secret that the victim's owner gave it.
const SECRET: &str = "hush-of-the-victim";
/// Token of the agent.
const TOKEN: &str = "token-of-the-agent-0123456789";

/// Script that looks everywhere that a job can look, and prints its findings. The brackets keep it from finding itself.
const SPY: &str = r#"
here=$(pwd -P)
for file in "${here%/*}"/*/* /proc/[0-9]*/cwd/job.json /run/lock/* /run/shm/* /var/lock/* /dev/shm/*; do
  case "$file" in "$here"/*) continue ;; esac
  grep -q -s 'hush-of-the-[v]ictim' "$file" && echo "STOLE the secret from $file"
done
for process in /proc/[0-9]*; do
  for file in environ cmdline; do
    tr '\0' '\n' <"$process/$file" 2>/dev/null | grep -q 'token-of-the-[a]gent' && echo "STOLE the token from $file"
  done
done
grep -q -s 'token-of-the-[a]gent' "$TOKEN_FILE" && echo "STOLE the token from its file"
for process in /proc/[0-9]*; do
  grep -q -s 'fairlead-testbox' "$process/comm" 2>/dev/null && kill -0 "${process#/proc/}" 2>/dev/null &&
    echo "STOLE the right to kill the agent"
done
echo "looked as $(id -u) with groups $(id -G)"
"#;

async fn ended(http: &Http, id: &str) -> Value {
    eventually("the job has ended", async || {
        let job = http.job(id).await;
        (job["job_stage"] == "finish" && job["job_data_readiness"] != "uploading").then_some(job)
    })
    .await
}

async fn log(http: &Http, id: &str) -> String {
    http.get(&format!("/scheduler/v1/jobs/{id}/log")).await.text
}

/// Returns the victim's folder in the agent's work folder.
fn folder_of(work_dir: &Path, id: &str) -> std::path::PathBuf {
    work_dir.join(format!("{id}-1"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_gets_neither_another_one_s_secrets_nor_the_agent_s_token() {
    let folder = TempDir::with_prefix("fairlead-neighbours-").expect("a temporary folder");
    let (work_dir, token_file) = (folder.path().join("work"), folder.path().join("token"));
    fs::write(&token_file, TOKEN).expect("a token file");
    // Only its owner, the agent, may read the file.
    fs::set_permissions(&token_file, fs::Permissions::from_mode(0o600)).expect("a mode");
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let words = [
        "--kind", "vm,dc", "--memory", "4g", "--keep", "--token", TOKEN,
    ];
    let work = work_dir.to_string_lossy();
    let agent = Agent::start(
        &scheduler.url(),
        "host-1",
        &[&words[..], &["--work-dir", &work, "--job-user", "auto"]].concat(),
    );
    // No other process sleeps for this time.
    let long = format!("4711.{}", std::process::id());
    let script = format!(
        "for dir in /run/lock /run/shm /dev/shm; do cp job.json $dir/$JOB_ID && chmod 644 $dir/$JOB_ID; done
setsid env -i sleep {long} & grep -q hush job.json && echo has it\nexec sleep 600"
    );
    let victim = json!({"secrets": {"password": SECRET}, "script": script});
    let victim = http
        .submit(&jobs::with(jobs::dc("alice"), &victim))
        .await
        .remove(0);
    eventually("the victim runs", async || {
        log(&http, &victim).await.contains("has it").then_some(())
    })
    .await;
    let spy = json!({"script": SPY, "TOKEN_FILE": token_file.to_string_lossy()});
    let spy = http
        .submit(&jobs::with(jobs::dc("mallory"), &spy))
        .await
        .remove(0);
    let job = ended(&http, &spy).await;
    let said = log(&http, &spy).await;
    assert_eq!(
        job["job_health"],
        "success",
        "{job} {said}\n{}",
        agent.log()
    );
    assert!(
        said.contains("looked as ") && !said.contains("STOLE"),
        "{said}"
    );
    assert_eq!(http.job(&victim).await["job_stage"], "running");
    let path = format!("/scheduler/v1/jobs/{victim}/terminate");
    let stopped = http.post(&path, &json!({"grace_s": 0})).await;
    assert_eq!(stopped.status, 200, "{stopped:?}");
    ended(&http, &victim).await;
    nothing_runs(&format!("sleep\0{long}\0")).await;
    let kept = folder_of(&work_dir, &victim);
    for file in ["job.json", "job.yaml"] {
        let text = fs::read_to_string(kept.join(file)).expect("a kept folder has its job");
        assert!(!text.contains(SECRET), "{file} keeps a secret: {text}");
    }
}

/// Checks that no process has this command line.
async fn nothing_runs(command_line: &str) {
    eventually(
        "what left its group and its environment is killed",
        async || {
            let mut processes = fs::read_dir("/proc").into_iter().flatten().flatten();
            let found = processes.any(|process| {
                let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
                line == command_line.as_bytes()
            });
            (!found).then_some(())
        },
    )
    .await;
}
