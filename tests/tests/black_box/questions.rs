//! Tests of the questions of docs/questions.md: a command and the API give the same answer.
//!
//! The pages show what the API says; `tests/dashboard` looks for the same facts there.

use fairlead_api::ENDPOINTS;
use fairlead_tests::{
    Http, Person, Store, Testbox, eventually, fairlead, jobs, on_both_stores, settings, until,
};
use serde_json::{Value, json};

on_both_stores!(
    a_waiting_job_says_what_is_before_it_and_what_would_help,
    one_constraint_is_not_enough,
    a_dry_run_says_what_a_job_may_expect,
    jobs_of_an_account_are_counted_where_they_are,
    a_failed_job_says_whether_its_host_is_at_fault,
    a_drained_host_says_when_it_is_empty,
    what_happened_at_night_is_a_list,
    other_answers_are_the_same_by_command_and_api,
    waits_by_priority_and_replicas_are_the_same_by_command_and_api,
);

/// Time for a sample, seconds: it covers a whole minute, and is stored afterwards.
const SAMPLE_S: u64 = 150;

/// Returns the JSON that a command prints.
pub(crate) fn said(lab: &Person, words: &[&str]) -> Value {
    let ran = lab.run(&[words, &["--json"]].concat());
    serde_json::from_str(ran.expect_code(0)).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

/// Returns the common answer of command and API, once both agree and `holds` is true. Searches lag behind.
pub(crate) async fn same(
    lab: &Person,
    words: &[&str],
    path: &str,
    holds: impl Fn(&Value) -> bool,
) -> Value {
    let what = format!("{words:?} and {path} say the same");
    eventually(&what, async || {
        let by_api = lab.http.get(&format!("/scheduler/v1/{path}")).await.json();
        let by_command = said(lab, words);
        (by_api == by_command && holds(&by_api)).then_some(by_api)
    })
    .await
}

/// Returns a host that asked once.
async fn host(http: &Http, name: &str, memory_mb: u32, tags: &[&str]) -> Testbox {
    let mut host = Testbox::dc(http, name, memory_mb);
    host.offer.tags = tags.iter().map(|&tag| tag.to_owned()).collect();
    assert!(host.ask(0).await.is_empty());
    host
}

async fn a_waiting_job_says_what_is_before_it_and_what_would_help(store: Store) {
    let lab = Person::new(store).await;
    let http = &lab.http;
    host(http, "plain", 16 << 10, &[]).await;
    host(http, "tagged", 4 << 10, &["gpu"]).await;
    let needy = json!({"tags": ["gpu"], "need_memory": "8g"});
    let needy = jobs::with(jobs::dc("alice"), &needy);
    let idle = jobs::with(needy.clone(), &json!({"queue": "idle"}));
    http.submit(&json!([needy, needy, idle])).await;
    let id = http.submit(&idle).await.remove(0);
    let words = ["explain", id.as_str()];
    let answer = same(&lab, &words, &format!("jobs/{id}/explain"), |said| {
        said["before"]["higher_jobs"] == 2
    })
    .await;
    let before = &answer["before"];
    assert_eq!(
        (&before["higher_queues"], &before["own_jobs"]),
        (&json!(1), &json!(1)),
        "{answer}"
    );
    let costs = answer["costs"].as_array().expect("costs");
    let of = |constraint: &str| {
        let cost = costs.iter().find(|cost| cost["constraint"] == constraint);
        cost.unwrap_or_else(|| panic!("{constraint}: {answer}"))
    };
    assert_eq!(of("tags: [gpu]")["more_able"], 1);
    assert_eq!(of("need_memory: 8192 MB")["more_able"], 1);
    assert!(
        answer["summary"]
            .as_str()
            .is_some_and(|it| it.contains("none of the 2")),
        "{answer}"
    );
    let text = lab.run(&words).out;
    for fact in [before, of("tags: [gpu]")] {
        let words = fact["words"].as_str().expect("words");
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// Tests a job that no single constraint blocks.
async fn one_constraint_is_not_enough(store: Store) {
    let lab = Person::new(store).await;
    host(&lab.http, "plain", 4 << 10, &[]).await;
    let needy = json!({"tags": ["gpu"], "need_memory": "8g"});
    let needy = jobs::with(jobs::dc("alice"), &needy);
    let id = lab.http.submit(&needy).await.remove(0);
    let path = format!("jobs/{id}/explain");
    let answer = same(&lab, &["explain", &id], &path, |said| {
        said["costs"].is_null()
    })
    .await;
    let says = "to give up one constraint alone would not help";
    assert!(answer["reasons"].to_string().contains(says), "{answer}");
    let text = lab.run(&["explain", &id]).out;
    assert!(text.contains(says), "{text}");
}

async fn a_dry_run_says_what_a_job_may_expect(store: Store) {
    let lab = Person::new(store).await;
    let http = &lab.http;
    host(http, "plain", 4 << 10, &[]).await;
    http.submit(&jobs::times(3, &jobs::dc("alice"))).await;
    let job = jobs::with(jobs::dc("alice"), &json!({"tags": ["gpu"]}));
    let file = lab.folder.path().join("job.yaml");
    std::fs::write(&file, job.to_string()).expect("a job file");
    let asked = ["submit", "--dry-run=lab", "job.yaml"];
    let outlook = eventually("the command and the API agree", async || {
        let path = "/scheduler/v1/jobs/submit?dry_run=true";
        let by_api = http.post(path, &job).await.json()[0]["outlook"].clone();
        let by_command = said(&lab, &asked)["jobs"][0]["outlook"].clone();
        (by_api == by_command && by_api["before"]["own_jobs"] == 3).then_some(by_api)
    })
    .await;
    assert_eq!(
        (
            &outlook["hosts_known"],
            &outlook["hosts_able"],
            &outlook["queue"]
        ),
        (&json!(1), &json!(0), &json!("alice")),
        "{outlook}"
    );
    assert_eq!(outlook["costs"][0]["constraint"], "tags: [gpu]");
    let text = lab.run(&asked);
    let text = text.expect_code(0);
    for words in [
        "0 of 1 known hosts could run it, 0 now",
        "3 jobs of its own account",
        "1 more host without `tags: [gpu]`",
        "in the last hour",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // Searches lag behind. A later job is found last.
    let later = http.submit(&jobs::dc("alice")).await.remove(0);
    let found = eventually("a later job is found", async || {
        let found = lab.ids(&["jobs"]);
        found.contains(&later).then_some(found)
    })
    .await;
    assert_eq!(found.len(), 4, "nothing was submitted by a dry run");
}

async fn jobs_of_an_account_are_counted_where_they_are(store: Store) {
    let lab = Person::new(store).await;
    let (submit, ids) = lab.submit().await;
    lab.http.submit(&jobs::times(2, &jobs::dc("alice"))).await;
    lab.http.submit(&jobs::dc("bob")).await;
    lab.run(&["cancel", &ids[0]]).expect_code(0);
    for (by, wanted) in [
        ("stage", vec![("submit", 5, 0), ("cancel", 1, 0)]),
        ("suite", vec![("matrix", 4, 0), ("black-box", 2, 0)]),
    ] {
        let words = ["jobs", "--mine", "--group-by", by];
        let what = format!("jobs are counted by {by}");
        let groups = eventually(&what, async || {
            let path = format!("/scheduler/v1/jobs?account=alice&group_by={by}");
            let list = lab.http.get(&path).await.json();
            let is_all = list["total"] == 6 && list["groups"][0]["jobs"] == wanted[0].1;
            (is_all && list["groups"] == said(&lab, &words)).then(|| list["groups"].clone())
        })
        .await;
        let row = |group: &Value| {
            let number = |name: &str| group[name].as_u64().unwrap_or(99);
            (group["value"].clone(), number("jobs"), number("failed"))
        };
        let rows: Vec<_> = groups.as_array().expect("groups").iter().map(row).collect();
        let wanted = wanted
            .iter()
            .map(|(value, jobs, failed)| (json!(value), *jobs, *failed));
        assert_eq!(rows, wanted.collect::<Vec<_>>());
        let text = lab.run(&words).out;
        assert!(text.contains(&format!("{by}=")), "{text}");
    }
    // The newest submit comes first, though it has fewer jobs.
    let by = "account=alice&group_by=submit_id";
    let submits = lab.http.get(&format!("/scheduler/v1/jobs?{by}")).await;
    let submits = submits.json()["groups"].clone();
    let said = said(&lab, &["jobs", "--mine", "--group-by", "submit_id"]);
    assert_eq!(said, submits);
    let facts = |at: usize, name: &str| submits[at][name].clone();
    assert_eq!(
        (facts(0, "jobs"), facts(1, "jobs"), facts(1, "stopped")),
        (json!(2), json!(4), json!(1)),
        "{submits}"
    );
    assert_eq!(
        (facts(1, "value"), facts(1, "suite")),
        (json!(submit), json!("matrix"))
    );
    assert_eq!(
        facts(1, "since_ms"),
        lab.http.job(&ids[0]).await["submit_ms"]
    );
    let refused = lab.http.get("/scheduler/v1/jobs?group_by=weather").await;
    assert_eq!(refused.refused(400).code.as_str(), "bad_query");
}

/// Runs a job on a host, and ends it with this health.
async fn ran(http: &Http, host: &mut Testbox, suite: &str, health: &str) -> String {
    let job = jobs::with(jobs::dc("alice"), &json!({"suite": suite, "retry": 0}));
    let id = http.submit(&job).await.remove(0);
    let grants = host.ask(30).await;
    let [grant] = grants.as_slice() else {
        panic!("no grant: {grants:?}");
    };
    assert_eq!(grant.job_id, id);
    host.report(grant, "job_stage=running").await;
    let end = format!("job_stage=finish&job_health={health}&job_data_readiness=complete");
    host.report(grant, &end).await;
    host.drop_job(&id);
    id
}

async fn a_failed_job_says_whether_its_host_is_at_fault(store: Store) {
    let lab = Person::new(store).await;
    let mut bad = Testbox::dc(&lab.http, "bad", 4 << 10);
    let mut good = Testbox::dc(&lab.http, "good", 4 << 10);
    let id = ran(&lab.http, &mut bad, "io", "fail").await;
    ran(&lab.http, &mut bad, "net", "fail").await;
    ran(&lab.http, &mut good, "io", "success").await;
    let words = ["explain", id.as_str()];
    let answer = same(&lab, &words, &format!("jobs/{id}/explain"), |said| {
        let compared = &said["compared"];
        compared["suite_elsewhere"]["passed"] == 1 && compared["others_here"]["failed"] == 1
    })
    .await;
    let says = answer["compared"]["words"].as_str().expect("words");
    assert!(says.ends_with("look at the host"), "{says}");
    let text = lab.run(&words).out;
    assert!(text.contains(says), "{text}");
}

async fn a_drained_host_says_when_it_is_empty(store: Store) {
    let lab = Person::new(store).await;
    let mut host = Testbox::dc(&lab.http, "box", 4 << 10);
    let job = jobs::with(jobs::dc("alice"), &json!({"timeout": "10m"}));
    let id = lab.http.submit(&job).await.remove(0);
    let grants = host.ask(30).await;
    host.report(&grants[0], "job_stage=running").await;
    lab.run(&["hosts", "drain", "box", "--reason", "new disks"])
        .expect_code(0);
    let words = ["hosts", "box"];
    let view = same(&lab, &words, "hosts/box", |said| {
        said["empties"].is_object()
    })
    .await;
    let empties = &view["empties"];
    assert_eq!(
        (&view["state"], &empties["jobs"][0]["job_id"]),
        (&json!("draining"), &json!(id))
    );
    let since_ms = empties["jobs"][0]["since_ms"].as_u64().expect("since");
    let latest_ms = empties["latest_ms"].as_u64().expect("a limit");
    // The limit is ten minutes, two more, and half an hour to collect.
    let left_ms = latest_ms.saturating_sub(since_ms);
    assert!((2_520_000..2_600_000).contains(&left_ms), "{empties}");
    let says = empties["words"].as_str().expect("words");
    let text = lab.run(&words).out;
    assert!(text.contains(says), "{text}");
    host.finish_running(&grants[0]).await;
    let empty = same(&lab, &words, "hosts/box", |said| said["state"] == "drained").await;
    assert!(empty["empties"].is_null(), "{empty}");
}

async fn what_happened_at_night_is_a_list(store: Store) {
    let mut lab = Person::new(store).await;
    host(&lab.http, "box", 4 << 10, &[]).await;
    lab.run(&["hosts", "cordon", "box", "--reason", "smoke"])
        .expect_code(0);
    lab.http.submit(&jobs::dc("alice")).await;
    assert!(lab.scheduler.stop().await.success());
    lab.scheduler.restart().await;
    let words = ["audit", "--incidents"];
    let events = eventually("all of it is listed", async || {
        let path = "/scheduler/v1/audit?incidents=true";
        let mut by_api = lab.http.get(path).await.json()["events"].clone();
        by_api.as_array_mut().expect("events").reverse();
        let by_command = said(&lab, &words);
        let kinds: Vec<Value> = by_command
            .as_array()
            .expect("events")
            .iter()
            .map(|event| event["what"].clone())
            .collect();
        let wanted = [
            "replica.start",
            "host.cordon",
            "replica.stop",
            "replica.start",
        ];
        (by_api == by_command && kinds == wanted).then_some(by_command)
    })
    .await;
    let version = &events[0]["detail"]["version"];
    assert!(
        version.as_str().is_some_and(|it| !it.is_empty()),
        "{events}"
    );
    let text = lab.run(&words).out;
    assert!(
        text.contains("replica.stop") && text.contains("smoke"),
        "{text}"
    );
    let path = "/scheduler/v1/audit?incidents=true&what=host.*";
    assert_eq!(
        lab.http.get(path).await.refused(400).code.as_str(),
        "bad_query"
    );
}

/// Only compares answers that other tests check in detail.
async fn other_answers_are_the_same_by_command_and_api(store: Store) {
    let lab = Person::new(store).await;
    host(&lab.http, "box", 1 << 10, &[]).await;
    let (submit, ids) = lab.submit().await;
    let id = ids[0].as_str();
    lab.run(&["hosts", "reserve", "box", "--for", "bob", "--until", "+2h"])
        .expect_code(0);
    lab.run(&["edit", id, "--set", "queue=idle"]).expect_code(0);
    let any = |_: &Value| true;
    let explain = format!("jobs/{id}/explain");
    same(&lab, &["explain", id], &explain, |said| {
        said["job_stage"] == "submit"
    })
    .await;
    let job = format!("jobs/{id}");
    same(&lab, &["job", id], &job, |said| said["queue"] == "idle").await;
    let box_1 = same(&lab, &["hosts", "box"], "hosts/box", any).await;
    assert_eq!(box_1["reserved"]["accounts"], json!(["bob"]));
    let queues = same(&lab, &["queues", "list"], "queues", any).await;
    assert!(queues.as_array().is_some_and(|queues| !queues.is_empty()));
    let found = format!("jobs?submit_id={submit}&kv=nr_threads%3D2&order=oldest");
    let words = ["jobs", "--submit-id", &submit, "nr_threads=2", "--oldest"];
    let found = same(&lab, &words, &found, |said| said["total"] == 2).await;
    assert_eq!(found["jobs"].as_array().map(Vec::len), Some(2));
    let acts = format!("audit?subject={id}");
    let acts = eventually("the edit is listed", async || {
        let by_api = lab.http.get(&format!("/scheduler/v1/{acts}")).await.json();
        let by_command = said(&lab, &["audit", "--subject", id]);
        let is_same = by_api["events"] == by_command && by_command[0].is_object();
        is_same.then_some(by_command)
    })
    .await;
    assert_eq!(acts[0]["subject"], id);
}

async fn waits_by_priority_and_replicas_are_the_same_by_command_and_api(store: Store) {
    let lab = Person::new(store).await;
    let mut host = Testbox::dc(&lab.http, "box", 4 << 10);
    lab.http.submit(&jobs::dc("alice")).await;
    let grants = host.take_all().await;
    host.finish_running(&grants[0]).await;
    // Both look at different times.
    let used = until("both tell the same waits", SAMPLE_S, async || {
        let path = "/scheduler/v1/usage?by=class";
        let by_api = lab.http.get(path).await.json()["rows"].clone();
        let by_command = said(&lab, &["usage", "--by", "class"])["rows"].clone();
        let is_same = by_api == by_command && by_api[0]["dispatched"] == 1;
        is_same.then_some(by_api)
    })
    .await;
    assert!(used[0]["wait_p95_s"].is_number(), "{used}");
    let replicas = eventually("both tell how the replicas are", async || {
        let by_api = lab.http.get("/scheduler/v1/overview").await.json();
        let by_command = said(&lab, &["lab"])["replicas"].clone();
        (by_api["tables"]["replicas"] == by_command).then_some(by_command)
    })
    .await;
    let replicas = replicas.as_object().expect("replicas");
    assert_eq!(replicas.len(), 1, "{replicas:?}");
    let text = lab.run(&["lab"]).out;
    for (name, replica) in replicas {
        let version = replica["version"].as_str().expect("a version");
        assert!(replica["store_requests"].is_u64(), "{replica}");
        for words in [
            format!("{name} {version}: keeps up"),
            "at the store".to_owned(),
        ] {
            assert!(text.contains(&words), "{words}: {text}");
        }
    }
}

/// Checks that the table of docs/questions.md names existing commands, requests and pages.
#[test]
fn the_table_of_questions_is_true() {
    let project = settings::project();
    let read = |path: &str| {
        let text = std::fs::read_to_string(project.join(path));
        text.unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let (table, pages) = (
        read("docs/questions.md"),
        read("src/dashboard/assets/app.js"),
    );
    let rows = table
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains("`fairlead "));
    let mut problems = Vec::new();
    let mut questions = 0;
    for row in rows {
        questions += 1;
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, question, command, request, page, _] = cells.as_slice() else {
            panic!("not four cells: {row}");
        };
        let words: Vec<&str> = command.trim_matches('`').split(' ').skip(1).collect();
        let name = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase());
        let path: Vec<&str> = words.iter().take_while(name).copied().collect();
        let help = fairlead(&project, &[], &[path.as_slice(), &["--help"]].concat());
        let flags = words.iter().filter(|word| word.starts_with("--"));
        let mut flags = flags.map(|flag| flag.split('=').next().unwrap_or_default());
        if help.code != 0 || !flags.all(|flag| help.out.contains(flag)) {
            problems.push(format!("{question}: no command {command}"));
        }
        let asked = request.split('`').nth(1).unwrap_or_default();
        let is_there = ENDPOINTS.iter().any(|endpoint| {
            let path = endpoint.path.trim_start_matches("/scheduler/v1/");
            let ways = endpoint.methods.iter();
            ways.map(|method| format!("{method} {path}"))
                .any(|way| way == asked)
        });
        if !is_there {
            problems.push(format!("{question}: no request {asked}"));
        }
        let page = page.trim_matches('`').trim_start_matches("/ui/");
        let place = page.split('/').next().unwrap_or_default();
        if !place.is_empty() && !pages.contains(&format!("\n  {place}: [")) {
            problems.push(format!("{question}: no page {page}"));
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    assert_eq!(questions, 25, "each question has a row");
}
