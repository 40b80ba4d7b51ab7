//! Tests of what machines are: facts and registrations that jobs can ask for.

use std::fs;

use fairlead_tests::{
    Scheduler, Store, Testbox, command::fairlead, eventually, jobs, on_both_stores,
};
use serde_json::{Value, json};

on_both_stores!(
    jobs_ask_for_facts_of_machines,
    a_device_that_no_host_has_is_refused,
    imported_machines_keep_what_is_registered,
    a_job_takes_a_further_alternative_after_a_wait,
    a_preferred_host_is_taken_first_and_not_waited_for,
);

fn facts(all: &[(&str, &[&str])]) -> std::collections::BTreeMap<String, Vec<String>> {
    let one = |(family, values): &(&str, &[&str])| {
        let values = values.iter().map(|&value| value.to_owned()).collect();
        ((*family).to_owned(), values)
    };
    all.iter().map(one).collect()
}

async fn jobs_ask_for_facts_of_machines(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let job = |fields: Value| jobs::with(jobs::dc("alice"), &fields);
    let ids = http
        .submit(&json!([
            job(json!({"tags": ["cpu:avx2"]})),
            job(json!({"not_tags": ["pci:8086:1521"]})),
            job(json!({"need_nodes": 2})),
            job(json!({"need_nodes": 3})),
        ]))
        .await;
    let mut old = Testbox::dc(&http, "old", 8 << 10);
    old.offer.facts = facts(&[
        ("cpu", &["sse2"]),
        ("pci", &["8086:1521"]),
        ("nodes", &["1"]),
    ]);
    assert!(old.ask(1).await.is_empty(), "it meets none of them");
    let mut new = Testbox::dc(&http, "new", 8 << 10);
    new.offer.facts = facts(&[("cpu", &["avx2", "sse2"]), ("nodes", &["2"])]);
    let mut ran = new.run_all(2).await;
    ran.sort_unstable();
    assert_eq!(ran, ids[..3]);
    let path = format!("/scheduler/v1/jobs/{}/explain", ids[3]);
    let explain = http.get(&path).await.text;
    assert!(explain.contains("nodes:3+"), "{explain}");
    let found = http
        .get("/scheduler/v1/hosts?tags=cpu:sse2,nodes:2%2B")
        .await;
    let found = found.json();
    let hosts = found.as_array().or(found["hosts"].as_array());
    let hosts = hosts.expect("a list");
    let names = hosts.iter();
    let names: Vec<_> = names.map(|host| host["hostname"].clone()).collect();
    assert_eq!(names, ["new"]);
    assert_eq!(hosts[0]["facts"]["cpu"], json!(["avx2", "sse2"]));
    // Facts that would give misleading tags are refused.
    new.offer.facts = facts(&[("a:b", &["c"])]);
    new.next_request(0);
    let refusal = new.send().await.refused(400);
    assert!(refusal.message.contains("facts"), "{}", refusal.message);
}

async fn a_device_that_no_host_has_is_refused(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let job = jobs::with(jobs::dc("alice"), &json!({"sched.devices": ["gpu0"]}));
    let submit = "/scheduler/v1/jobs/submit";
    let refused = http.post(submit, &json!([job, jobs::dc("alice")])).await;
    let items = refused.json();
    let said = items[0]["message"].as_str().unwrap_or_default();
    assert!(said.contains("no known host has 'gpu0'"), "{items}");
    assert_eq!(items[1]["message"], "", "the other job is no worse for it");
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    testbox.offer.devices = vec!["gpu0".to_owned()];
    testbox.ask(0).await;
    http.submit(&job).await;
    let later = Scheduler::start_with(store, &["--devices-later"]).await;
    later.http().submit(&job).await;
}

async fn imported_machines_keep_what_is_registered(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let lab = tempfile::tempdir().expect("a folder");
    let put = |name: &str, text: &str| {
        fs::write(lab.path().join(name), text).expect("a host file");
    };
    put(
        "taishan",
        &format!(
            "arch: {}\nmemory: 16G\nnr_node: 4\n",
            std::env::consts::ARCH
        ),
    );
    put(
        "taishan--a61",
        "mac_addr: 44-67-47-D7-6C-61\ntags: [lab]\ncards: [hi1822]\nssd_partitions: /dev/sda1\n",
    );
    put("plain", "nr_cpu: 4\n");
    put("vm-2p8g", "provider: qemu\n");
    put("broken", "a: [\n");
    let server = scheduler.url();
    let import = |more: &[&str]| {
        let words = [
            &["--server", &server, "--json", "hosts", "import", "."],
            more,
        ]
        .concat();
        fairlead(lab.path(), &[], &words)
    };
    let outcomes = |out: &str| {
        let all: Value = serde_json::from_str(out).expect("JSON");
        let all = all.as_array().expect("a list").iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        all.map(|one| (text(&one["name"]), text(&one["outcome"])))
            .collect::<Vec<_>>()
    };
    let expected = |machine: &str| {
        [
            ("broken", "refused"),
            ("plain", machine),
            ("taishan--a61", machine),
            ("vm-2p8g", "skipped"),
        ]
        .map(|(name, outcome)| (name.to_owned(), outcome.to_owned()))
    };
    let dry = import(&["--dry-run"]);
    assert_eq!(
        outcomes(dry.expect_code(3)),
        expected("would be registered")
    );
    let host = "/scheduler/v1/hosts/taishan--a61";
    assert_eq!(
        http.get(host).await.status,
        404,
        "nothing is registered yet"
    );
    assert_eq!(outcomes(import(&[]).expect_code(3)), expected("registered"));
    let plain = http.get("/scheduler/v1/hosts/plain").await.json();
    assert_eq!(plain["free_memory_mb"], plain["memory_mb"], "{plain}");
    // A job waits for a machine that is off.
    let asked = json!({"sched.devices": ["hi1822", "ssd"], "tags": ["lab"], "need_nodes": 4});
    let id = http
        .submit(&jobs::with(jobs::hw("alice"), &asked))
        .await
        .remove(0);
    scheduler.kill();
    scheduler.restart().await;
    let view = http.get(host).await.json();
    assert_eq!(view["state"], "off", "{view}");
    assert_eq!(
        (&view["group"], &view["memory_mb"]),
        (&json!("taishan"), &json!(16 << 10)),
        "{view}"
    );
    // Its agent reports none of these facts.
    let mut machine = Testbox::hw(&http, "taishan--a61");
    assert_eq!(machine.run_all(5).await, [id]);
    let view = http.get(host).await.json();
    assert_eq!(view["facts"]["nodes"], json!(["4"]), "{view}");
    // Facts that are no longer in a file disappear.
    put("taishan--a61", "mac_addr: 44-67-47-D7-6C-61\n");
    import(&[]);
    let view = http.get(host).await.json();
    assert_eq!(
        (&view["tags"], &view["devices"]),
        (&json!([]), &json!([])),
        "{view}"
    );
}

async fn a_job_takes_a_further_alternative_after_a_wait(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let wish = json!({"tags": ["nvme"], "else": {"after": "4s", "not_tags": ["old"]}});
    let id = http
        .submit(&jobs::with(jobs::dc("alice"), &wish))
        .await
        .remove(0);
    let mut old = Testbox::dc(&http, "old", 8 << 10);
    old.offer.tags = vec!["old".to_owned()];
    assert!(old.ask(1).await.is_empty());
    let path = format!("/scheduler/v1/jobs/{id}/explain");
    let explain = http.get(&path).await.text;
    assert!(
        explain.contains("it takes also hosts without old"),
        "{explain}"
    );
    scheduler.kill();
    scheduler.restart().await;
    let mut plain = Testbox::dc(&http, "plain", 8 << 10);
    assert_eq!(plain.run_all(20).await, [id]);
    // A job that every host can run at once need not wait.
    let all = jobs::with(jobs::dc("alice"), &json!({"else": {"after": "4s"}}));
    let item = http.submit_items(&all).await.remove(0);
    assert!(
        item.message.contains("every host at once"),
        "{}",
        item.message
    );
}

async fn a_preferred_host_is_taken_first_and_not_waited_for(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let mut fast = Testbox::dc(&http, "fast", 8 << 10);
    fast.offer.facts = facts(&[("disk", &["nvme"])]);
    let mut plain = Testbox::dc(&http, "plain", 16 << 10);
    let wish = json!({"prefer": ["disk:nvme"]});
    let job = jobs::with(jobs::dc("alice"), &wish);
    // The plain host has more room and asks first.
    let (at_plain, at_fast, id) = tokio::join!(plain.ask(8), fast.ask(8), async {
        eventually("both wait", async || {
            let hosts = http.get("/scheduler/v1/hosts").await.text;
            (hosts.matches("\"waiting\"").count() == 2).then_some(())
        })
        .await;
        http.submit(&job).await.remove(0)
    });
    assert!(at_plain.is_empty(), "{at_plain:?}");
    assert_eq!(at_fast.len(), 1, "{id}");
    let next = http.submit(&job).await.remove(0);
    assert_eq!(plain.run_all(5).await, [next], "no host is waited for");
}
