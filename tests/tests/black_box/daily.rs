//! Tests of what people do all day with the command: find jobs, see why they failed, run them again, stop them.

use std::collections::BTreeSet;

use fairlead_tests::{Person, Store, eventually, on_both_stores, on_terminal};
use serde_json::Value;

on_both_stores!(
    jobs_are_found_by_parameters_and_fields,
    failed_jobs_run_again_as_one_submit,
    many_jobs_are_stopped_only_if_somebody_agrees,
    a_wait_attaches_again_and_says_why_jobs_failed,
    tables_fit_their_terminal,
    waiting_jobs_are_held_released_and_edited,
    the_use_of_the_lab_is_summed_up,
    several_hosts_are_drained_and_waited_for,
);

async fn parameters(lab: &Person, ids: &[String]) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for id in ids {
        let job = lab.http.job(id).await;
        found.insert((job["nr_threads"].to_string(), job["mode"].to_string()));
    }
    found
}

fn pairs(list: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    let pair = |(nr, mode): &(&str, &str)| ((*nr).to_owned(), format!("\"{mode}\""));
    list.iter().map(pair).collect()
}

async fn jobs_are_found_by_parameters_and_fields(store: Store) {
    let lab = Person::new(store).await;
    let _agent = lab.agent();
    let (submit, _) = lab.submit().await;
    lab.run(&["wait", "--submit-id", &submit]).expect_code(1);
    let all_ended = async || lab.ids(&["jobs", "--stage", "!finish"]).is_empty();
    eventually("the ends are listed", async || {
        all_ended().await.then_some(())
    })
    .await;
    for (words, meant) in [
        (vec!["nr_threads=2"], &[("2", "read"), ("2", "write")][..]),
        (vec!["nr_threads=2", "mode=read"], &[("2", "read")]),
        (
            vec!["mode=read", "mode=write", "nr_threads=1"],
            &[("1", "read"), ("1", "write")],
        ),
        (
            vec!["--where", "nr_threads>1"],
            &[("2", "read"), ("2", "write")],
        ),
        (
            vec!["--where", "nr_threads<2", "--where", "mode!=read"],
            &[("1", "write")],
        ),
        (vec!["--failed", "mode=write"], &[("2", "write")]),
        (
            vec!["--health", "!success"],
            &[("2", "read"), ("2", "write")],
        ),
        (
            vec!["--host", "server-1", "--health", "success"],
            &[("1", "read"), ("1", "write")],
        ),
        (vec!["--suite", "other"], &[]),
        (vec!["nr_threads=3"], &[]),
    ] {
        let mut all = vec!["jobs", "--submit-id", &submit];
        all.extend(&words);
        let found = lab.ids(&all);
        assert_eq!(parameters(&lab, &found).await, pairs(meant), "{words:?}");
        assert_eq!(found.len(), meant.len(), "{words:?}");
    }
    let ran = lab.run(&["jobs", "--group-by", "nr_threads", "--json"]);
    let groups: Value = serde_json::from_str(ran.expect_code(0)).expect("JSON");
    let failed = |value: &str| {
        let groups = groups.as_array().expect("groups");
        let group = groups.iter().find(|group| group["value"] == value);
        group.expect("the group")["failed"].as_u64()
    };
    assert_eq!((failed("1"), failed("2")), (Some(0), Some(2)), "{groups}");
    let refused = lab.run(&["jobs", "--json", "--health", "helthy"]);
    let error: Value = serde_json::from_str(&refused.err).expect("an object");
    assert_eq!(
        (&error["code"], &error["exit_code"]),
        (&"bad_query".into(), &3.into()),
        "{error}"
    );
    let refused = lab.run(&["jobs", "--where", "nr_threads"]);
    refused.expect_code(2);
}

async fn failed_jobs_run_again_as_one_submit(store: Store) {
    let lab = Person::new(store).await;
    let _agent = lab.agent();
    let (submit, ids) = lab.submit().await;
    lab.run(&["wait", &submit]).expect_code(1);
    let failed = async || lab.ids(&["jobs", "--failed"]).len() == 2;
    eventually("the failures are listed", async || {
        failed().await.then_some(())
    })
    .await;
    // A script without other output runs the command that it names.
    let again = lab.run(&[
        "rerun",
        "--submit-id",
        &submit,
        "--failed",
        "--yes",
        "--json",
    ]);
    let again: Value = serde_json::from_str(again.expect_code(0)).expect("JSON");
    let jobs = again["jobs"].as_array().expect("jobs");
    assert_eq!(jobs.len(), 2, "{again}");
    for job in jobs {
        assert_eq!(job["submit_id"], again["submit_id"], "{job}");
        let (id, of) = (job["job_id"].as_str(), job["rerun_of"].as_str());
        let (id, of) = (id.expect("an id"), of.expect("the old one"));
        assert!(ids.iter().any(|old| old == of), "{job}");
        let (new, old) = (lab.http.job(id).await, lab.http.job(of).await);
        assert_eq!((&new["mode"], &new["rerun_of"]), (&old["mode"], &of.into()));
        let of = format!("rerun_of={of}");
        let found = async || lab.ids(&["jobs", &of]) == [id];
        eventually("it is found by the old one", async || {
            found().await.then_some(())
        })
        .await;
    }
    // They pass with a new value, and following reports it.
    let ran = lab.run(&["rerun", "-m", "-s", "nr_threads=1", &ids[2], &ids[3]]);
    assert!(ran.expect_code(0).contains("2 succeeded"), "{}", ran.out);
    // Jobs that did not fail are not run again.
    let ran = lab.run(&["rerun", "--failed", &ids[0], &ids[3]]);
    ran.expect_code(3);
    assert!(
        ran.err.contains(&format!("job {}", ids[0])) && ran.err.contains("succeeded"),
        "{}",
        ran.err
    );
    assert_eq!(ran.out.lines().count(), 1, "{}", ran.out);
    let ran = lab.run(&["rerun"]);
    ran.expect_code(2);
    assert!(ran.err.contains("no job is named"), "{}", ran.err);
}

async fn many_jobs_are_stopped_only_if_somebody_agrees(store: Store) {
    let lab = Person::new(store).await;
    let (submit, ids) = lab.submit().await;
    let by_submit = ["cancel", "--submit-id", &submit];
    let refused = lab.run(&by_submit);
    refused.expect_code(2);
    assert!(
        refused.err.contains("4 jobs match") && refused.err.contains("--yes"),
        "{}",
        refused.err
    );
    let shown = lab.run(&["cancel", "--submit-id", &submit, "mode=read", "--dry-run"]);
    assert!(shown.expect_code(0).contains(&ids[0]), "{}", shown.out);
    let denied = lab.on_terminal(&by_submit, 80, "n\r");
    denied.expect_code(2);
    assert!(
        denied.out.contains("cancel 4 jobs? [y/N]"),
        "{}",
        denied.out
    );
    for id in &ids {
        assert_eq!(lab.http.field(id, "job_stage").await, "submit");
    }
    let agreed = lab.on_terminal(&["cancel", "--submit-id", &submit, "mode=read"], 80, "y\r");
    agreed.expect_code(0);
    let cancelled = async || lab.ids(&["jobs", "--stage", "cancel"]).len() == 2;
    eventually("the jobs are cancelled", async || {
        cancelled().await.then_some(())
    })
    .await;
    lab.run(&["cancel", "--mine", "-y"]).expect_code(0);
    for id in &ids {
        assert_eq!(lab.http.field(id, "job_stage").await, "cancel");
    }
    let none = lab.run(&["terminate", "--submit-id", &submit, "--yes"]);
    none.expect_code(0);
    assert!(none.err.contains("0 jobs match"), "{}", none.err);
    let both = lab.run(&["cancel", "--mine", &ids[0]]);
    assert!(both.err.contains("ids") && both.code == 2, "{}", both.err);
}

async fn a_wait_attaches_again_and_says_why_jobs_failed(store: Store) {
    let lab = Person::new(store).await;
    let (submit, ids) = lab.submit().await;
    let late = lab.run(&["wait", &submit, "--timeout", "1s"]);
    assert!(late.expect_code(7).contains("4 not ended"), "{}", late.out);
    assert!(
        late.err.contains(&format!("fairlead wait {}", ids[0])),
        "{}",
        late.err
    );
    let _agent = lab.agent();
    let ended = lab.run(&["wait", "--submit-id", &submit]);
    let text = ended.expect_code(1);
    for part in [
        "2 failed, 2 succeeded",
        "nr_threads=2 mode=read",
        "fail (1) on server-1",
        "  | threads 2 mode write",
        &format!("again: fairlead rerun {}", ids[3]),
        &format!("run the failed jobs again: fairlead rerun --submit-id {submit} --failed"),
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("threads 1"), "{text}");
    lab.run(&["wait", &ids[0], &ids[1]]).expect_code(0);
    let logs = lab.run(&["log", "--tail", "1", &ids[0], &ids[3]]);
    let meant = format!(
        "==> job {} <==\nthreads 1 mode read\n==> job {} <==\nthreads 2 mode write\n",
        ids[0], ids[3]
    );
    assert_eq!(logs.expect_code(0), meant);
    // Ids are taken literally, without the filter.
    let logs = lab.run(&["log", "--failed", &ids[3]]);
    assert_eq!(logs.expect_code(0), "threads 2 mode write\n");
    let followed = lab.run(&["log", "-f", &ids[3]]);
    assert_eq!(followed.expect_code(0), "threads 2 mode write\n");
}

async fn tables_fit_their_terminal(store: Store) {
    let lab = Person::new(store).await;
    let (_, ids) = lab.submit().await;
    let words = ["jobs", "--suite", "matrix"];
    for (columns, width) in [(80, 80), (200, 200), (0, 80), (30, 30)] {
        let ran = lab.on_terminal(&words, columns, "");
        let text = ran.expect_code(0);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(lines.len(), 5, "{columns}: {text}");
        assert!(
            lines.iter().all(|line| line.chars().count() <= width),
            "{columns}: {text}"
        );
        for id in &ids {
            assert!(
                lines.iter().any(|line| line.starts_with(id.as_str())),
                "{columns}: {text}"
            );
        }
        assert_eq!(
            lines[0].contains("testbox"),
            columns == 200,
            "{columns}: {text}"
        );
    }
    // Colours are shown only on terminals, and only if the user wants them.
    let _agent = lab.agent();
    lab.run(&["wait", "--suite", "matrix"]).expect_code(1);
    let coloured = lab.on_terminal(&words, 200, "");
    assert!(coloured.out.contains("\u{1b}[31m"), "{}", coloured.out);
    let url = lab.scheduler.url();
    let plain = [("FAIRLEAD_SERVER", url.as_str()), ("NO_COLOR", "1")];
    let plain = on_terminal(lab.folder.path(), &plain, &words, 200, "");
    assert!(!plain.out.contains('\u{1b}'), "{}", plain.out);
    let piped = lab.run(&words);
    assert!(
        !piped.out.contains('\u{1b}') && piped.out.contains("testbox"),
        "{}",
        piped.out
    );
}

async fn waiting_jobs_are_held_released_and_edited(store: Store) {
    let lab = Person::new(store).await;
    let (submit, ids) = lab.submit().await;
    lab.run(&["hold", &ids[0]]).expect_code(0);
    lab.run(&["hold", "--submit-id", &submit, "mode=write", "--yes"])
        .expect_code(0);
    let why = lab.run(&["explain", &ids[0]]);
    assert!(
        why.out.contains(&format!("fairlead release {}", ids[0])),
        "{}",
        why.out
    );
    // New values are shown beside the submitted ones, and apply.
    let words = [
        "-s",
        "need_memory=32M",
        "-s",
        "priority=7",
        "-s",
        "timeout=5m",
        "-s",
        "tags=[fast]",
    ];
    let edited = lab.run(&[&["edit", &ids[0]], &words[..]].concat());
    assert!(edited.expect_code(0).contains("edited"), "{}", edited.out);
    assert!(
        edited.err.contains("warning") && edited.err.contains("no host is known"),
        "{}",
        edited.err
    );
    let job = lab.http.job(&ids[0]).await;
    assert_eq!(
        (&job["memory_mb"], &job["priority"], &job["timeout_seconds"]),
        (&32.into(), &7.into(), &300.into()),
        "{job}"
    );
    assert!(job["held_by"].is_string(), "{job}");
    assert_eq!(job["edits"]["need_memory"]["submitted"], "16M", "{job}");
    assert_eq!(job["edits"]["need_memory"]["now"], "32M", "{job}");
    lab.run(&["edit", &ids[0], "-s", "tags=[]"]).expect_code(0);
    let refused = lab.run(&["edit", &ids[0], "-s", "script=true"]);
    refused.expect_code(3);
    assert!(
        refused.err.contains("'script'") && refused.err.contains("need_memory"),
        "{}",
        refused.err
    );
    let refused = lab.run(&["edit", &ids[0], "-s", "need_memory=lots"]);
    refused.expect_code(3);
    // Only the job that is not held runs.
    let _agent = lab.agent();
    lab.run(&["wait", &ids[2]]).expect_code(1);
    for id in [&ids[0], &ids[1], &ids[3]] {
        assert_eq!(lab.http.field(id, "job_stage").await, "submit");
    }
    let refused = lab.run(&["hold", &ids[2]]);
    refused.expect_code(3);
    assert!(refused.err.contains("only waiting jobs"), "{}", refused.err);
    lab.run(&["release", "--mine", "--yes"]).expect_code(0);
    lab.run(&["wait", "--submit-id", &submit]).expect_code(1);
    let job = lab.http.job(&ids[0]).await;
    assert_eq!(
        (&job["job_health"], &job["memory_mb"]),
        (&"success".into(), &32.into()),
        "{job}"
    );
    assert!(job["held_by"].is_null(), "{job}");
}

async fn the_use_of_the_lab_is_summed_up(store: Store) {
    let lab = Person::new(store).await;
    let _agent = lab.agent();
    let (submit, _) = lab.submit().await;
    lab.run(&["wait", "--submit-id", &submit]).expect_code(1);
    let report = |by: &str| -> Value {
        let ran = lab.run(&["usage", "--since", "1h", "--by", by, "--json"]);
        serde_json::from_str(ran.expect_code(0)).expect("JSON")
    };
    // A sample covers a whole minute.
    eventually("the minute is over", async || {
        let row = &report("account")["rows"][0];
        (row["ended"] == 4).then_some(())
    })
    .await;
    for (by, name) in [
        ("account", "alice"),
        ("queue", "alice"),
        ("host", "server-1"),
        ("suite", "matrix"),
    ] {
        let report = report(by);
        let row = &report["rows"][0];
        assert_eq!(
            (
                &row["name"],
                &row["ended"],
                &row["failed"],
                &row["share_permille"]
            ),
            (&name.into(), &4.into(), &2.into(), &1000.into()),
            "{report}"
        );
        // A job whose agent hung up is handed out again.
        assert!(row["dispatched"].as_u64() >= Some(4), "{report}");
        assert!(row["wait_p95_s"].is_u64(), "{report}");
    }
    let table = lab.run(&["usage", "--by", "queue"]);
    assert!(table.expect_code(0).contains("100.0 %"), "{}", table.out);
    let queues = lab.http.get("/scheduler/v1/queues").await.json();
    let queues = queues.as_array().expect("queues");
    let alices = queues.iter().find(|queue| queue["name"] == "alice");
    assert_eq!(alices.expect("her queue")["got_1h_permille"], 1000);
}

async fn several_hosts_are_drained_and_waited_for(store: Store) {
    let lab = Person::new(store).await;
    let _agent = lab.agent();
    let registered = serde_json::json!({"arch": "x86_64", "memory": "4g"});
    lab.http
        .post("/scheduler/v1/hosts/old-1", &registered)
        .await;
    let held = "suite: held\ntestbox: dc\nneed_memory: 16M\nscript: sleep 600\n";
    std::fs::write(lab.folder.path().join("held.yaml"), held).expect("a job file");
    let ran = lab.run(&["submit", "--parsable", "held.yaml"]);
    let id = ran.expect_code(0).trim().to_owned();
    eventually("the job runs", async || {
        (lab.http.field(&id, "job_stage").await == "running").then_some(())
    })
    .await;
    let words = ["hosts", "drain", "server-1", "old-1", "nobody", "--wait"];
    let late = lab.run(&[&words[..], &["--timeout", "1s"]].concat());
    late.expect_code(7);
    assert!(
        late.err.contains("host nobody") && late.err.contains("server-1 still have jobs"),
        "{}",
        late.err
    );
    lab.run(&["terminate", &id]).expect_code(0);
    let ran = lab.run(&words);
    // One of the three is unknown.
    let text = ran.expect_code(3);
    assert_eq!(text.matches("drained").count(), 2, "{text}");
    let forgotten = lab.run(&["hosts", "forget", "old-1"]);
    assert!(
        forgotten
            .expect_code(0)
            .contains("old-1: forgotten; it stays closed"),
        "{}",
        forgotten.out
    );
    lab.run(&["hosts", "uncordon", "old-1"]).expect_code(0);
    lab.run(&["hosts", "old-1"]).expect_code(3);
    let deleted = lab.run(&["account", "delete", "nobody"]);
    deleted.expect_code(3);
}
