//! Tests of matching: memory, order, jobs that do not fit, and machines that boot over the network.

use fairlead_tests::{Scheduler, Store, Testbox, jobs, on_both_stores};
use serde_json::{Value, json};

on_both_stores!(
    row_05_a_vip_job_does_not_stop_the_others,
    row_08_priority_orders_inside_an_account,
    row_17_memory_is_what_the_author_wrote,
    row_17_a_host_is_never_overcommitted,
    cpus_are_matched_beside_memory,
    row_25_jobs_that_do_not_fit_hide_none_that_do,
    tags_devices_and_machines_are_required,
    what_no_host_could_ever_run_is_told_or_refused,
    a_machine_boots_into_its_job,
);

async fn row_05_a_vip_job_does_not_stop_the_others(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let mut all = http.submit(&jobs::times(50, &jobs::dc("alice"))).await;
    let vip = jobs::with(jobs::dc("bob"), &json!({"queue": "vip"}));
    let urgent = http.submit(&vip).await.remove(0);
    let mut testbox = Testbox::dc(&http, "host-1", 1 << 10);
    let mut ran = testbox.run_all(3).await;
    assert_eq!(ran[0], urgent, "vip goes first");
    all.push(urgent);
    ran.sort_unstable();
    all.sort_unstable();
    assert_eq!(ran, all);
}

async fn row_08_priority_orders_inside_an_account(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let job = |priority: i32| jobs::with(jobs::dc("alice"), &json!({"priority": priority}));
    let ids = http
        .submit(&json!([job(1), job(1), job(9), job(-5), job(1)]))
        .await;
    let mut testbox = Testbox::dc(&http, "host-1", 1 << 10);
    let ran = testbox.run_all(3).await;
    let wanted: Vec<_> = [2, 0, 1, 4, 3].map(|at: usize| ids[at].clone()).into();
    assert_eq!(ran, wanted);
}

async fn row_17_memory_is_what_the_author_wrote(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    for (fields, memory_mb) in [
        // QEMU itself takes 80 MB.
        (
            json!({"testbox": "vm-2p8g", "need_memory": null}),
            (8 << 10) + 80,
        ),
        (json!({"testbox": "dc-8g", "need_memory": null}), 8 << 10),
        (json!({"need_memory": "512M"}), 512),
        (json!({"need_memory": "300MB"}), 300),
        (json!({"need_memory": "8g"}), 8 << 10),
        (json!({"need_memory": 8}), 8 << 10),
        (json!({"need_memory": null, "memory_minimum": "2"}), 2 << 10),
    ] {
        let job = jobs::with(jobs::dc("alice"), &fields);
        let id = http.submit(&job).await.remove(0);
        let list = http
            .get("/scheduler/v1/jobs?stage=submit&limit=100&order=newest")
            .await;
        assert_eq!(list.status, 200, "{}", list.text);
        let mut testbox = Testbox::dc(&http, "host-small", memory_mb - 1);
        assert!(
            testbox.ask(0).await.is_empty(),
            "{fields} does not fit into 1 MB less"
        );
        let mut testbox = Testbox::dc(&http, "host-large", memory_mb);
        let grants = testbox.take_all().await;
        assert_eq!(grants.len(), 1, "{fields}");
        assert_eq!((&grants[0].job_id, grants[0].memory_mb), (&id, memory_mb));
        testbox.finish(&grants[0]).await;
    }
    for nonsense in ["lots", "8 elephants", "-1g", "", "1.5.2g", "99999999999g"] {
        let job = jobs::with(jobs::dc("alice"), &json!({"need_memory": nonsense}));
        if nonsense.is_empty() {
            continue;
        }
        let item = http.submit_items(&job).await.remove(0);
        assert_eq!(item.job_id, "0", "{nonsense:?}: {item:?}");
        assert!(item.message.contains("need_memory"), "{item:?}");
    }
}

async fn row_17_a_host_is_never_overcommitted(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    http.submit(&jobs::times(20, &jobs::dc("alice"))).await;
    let mut testbox = Testbox::dc(&http, "host-1", 4 << 10);
    assert_eq!(testbox.take_all().await.len(), 4);
    // The host is full: asking again brings nothing, although jobs wait.
    assert!(testbox.ask(0).await.is_empty());
    let done = testbox.held()[0].clone();
    testbox.finish(&done).await;
    assert_eq!(testbox.take_all().await.len(), 1, "as much as came free");
    // An old report of free memory does not override the known use of the host.
    testbox.next_request(0);
    testbox.offer.free_memory_mb = testbox.offer.memory_mb;
    assert!(
        testbox.ask_again().await.jobs.is_empty(),
        "4 GB hold four jobs of 1 GB"
    );
}

async fn cpus_are_matched_beside_memory(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let small = jobs::with(jobs::dc("alice"), &json!({"need_memory": "1M"}));
    let wide = jobs::with(small.clone(), &json!({"nr_cpu": 3}));
    let never = jobs::with(small.clone(), &json!({"need_cpus": 5}));
    http.submit(&jobs::times(6, &small)).await;
    let mut testbox = Testbox::dc(&http, "host-1", 4 << 10);
    (testbox.offer.cpus, testbox.offer.free_cpus) = (Some(4), Some(4));
    let took = testbox.take_all().await;
    assert_eq!(took.len(), 4, "one CPU each");
    assert!(took.iter().all(|grant| grant.cpus == 1));
    let host = http.get("/scheduler/v1/hosts/host-1").await.json();
    assert_eq!((&host["cpus"], &host["free_cpus"]), (&json!(4), &json!(4)));
    for done in took {
        testbox.finish(&done).await;
    }
    assert_eq!(testbox.take_all().await.len(), 2);
    let wide = http.submit(&wide).await.remove(0);
    assert!(testbox.ask(0).await.is_empty(), "two of four are free");
    let done = testbox.held()[0].clone();
    testbox.finish(&done).await;
    assert_eq!(testbox.take_all().await[0].job_id, wide);
    let answer = http.post("/scheduler/v1/jobs/submit", &never).await;
    assert!(
        answer
            .text
            .contains("the largest host with enough memory has 4"),
        "{}",
        answer.text
    );
    // An agent that reports no CPUs gets jobs with any number of them.
    let mut old = Testbox::dc(&http, "host-2", 4 << 10);
    assert_eq!(old.take_all().await.len(), 1);
    let refused = http
        .post(
            "/scheduler/v1/testboxes/host-3/consume",
            &json!({
                "session": "s", "request": 1, "kinds": ["dc"], "arch": "x86_64", "memory_mb": 1,
                "free_memory_mb": 1, "cpus": 2, "free_cpus": 3,
            }),
        )
        .await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert!(refused.text.contains("free_cpus"), "{}", refused.text);
}

async fn row_25_jobs_that_do_not_fit_hide_none_that_do(store: Store) {
    // The jobs that do not fit exceed the cache.
    let scheduler = Scheduler::start_with(store, &["--cache-jobs-max", "10000"]).await;
    let http = scheduler.http();
    let large = jobs::with(jobs::dc("alice"), &json!({"need_memory": "100g"}));
    for _ in 0..3 {
        http.submit(&jobs::times(4000, &large)).await;
    }
    let fits = http.submit(&jobs::dc("alice")).await.remove(0);
    let other = http.submit(&jobs::dc("bob")).await.remove(0);
    let mut testbox = Testbox::dc(&http, "host-1", 4 << 10);
    let mut ran = testbox.run_all(10).await;
    ran.sort_unstable();
    assert_eq!(ran, [fits, other]);
}

async fn tags_devices_and_machines_are_required(store: Store) {
    let scheduler = Scheduler::start_with(store, &["--devices-later"]).await;
    let http = scheduler.http();
    let job = |fields: Value| jobs::with(jobs::dc("alice"), &fields);
    let ids = http
        .submit(&json!([
            job(json!({"tags": ["nvme", "fast"]})),
            job(json!({"sched": {"devices": ["gpu0"]}})),
            job(json!({"target_machines": ["host-b"]})),
            job(json!({"arch": "riscv64"})),
        ]))
        .await;
    let mut plain = Testbox::dc(&http, "host-a", 8 << 10);
    plain.offer.tags = vec!["nvme".to_owned()];
    assert!(plain.ask(1).await.is_empty(), "it meets none of them");
    let mut right = Testbox::dc(&http, "host-b", 8 << 10);
    right.offer.tags = ["fast", "nvme", "old"].map(str::to_owned).into();
    right.offer.devices = ["gpu0", "gpu1"].map(str::to_owned).into();
    let mut ran = right.run_all(2).await;
    ran.sort_unstable();
    assert_eq!(ran, ids[..3]);
    let explain = http
        .get(&format!("/scheduler/v1/jobs/{}/explain", ids[3]))
        .await
        .json();
    assert!(
        !explain["summary"].as_str().unwrap_or_default().is_empty(),
        "{explain}"
    );
}

async fn what_no_host_could_ever_run_is_told_or_refused(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    Testbox::dc(&http, "host-1", 8 << 10).ask(0).await;
    let huge = jobs::with(jobs::dc("alice"), &json!({"need_memory": "900g"}));
    let both = json!([jobs::dc("alice"), huge]);
    let items = http.post("/scheduler/v1/jobs/submit", &both).await.json();
    assert_eq!(items[0]["hint"], Value::Null, "{items}");
    let warning = items[1]["hint"].as_str().unwrap_or_default();
    assert!(warning.contains("has 8192 MB"), "{items}");
    assert_eq!(items[1]["message"], "", "accepted all the same");
    let strict = "/scheduler/v1/jobs/submit?strict=true";
    let reply = http.post(strict, &both).await;
    let items = reply.json();
    assert_eq!(
        (reply.status, &items[0]["message"]),
        (200, &json!("")),
        "{items}"
    );
    assert_eq!(
        (&items[1]["job_id"], &items[1]["code"]),
        (&json!("0"), &json!("bad_field")),
        "{items}"
    );
    http.post("/scheduler/v1/jobs/submit?strict=perhaps", &both)
        .await
        .refusal();
}

async fn a_machine_boots_into_its_job(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let arch = std::env::consts::ARCH;
    let ask = async |more: &str| {
        http.get(&format!("/scheduler/v1/jobs/dispatch?arch={arch}&{more}"))
            .await
    };
    for kind in ["ipxe", "grub"] {
        let none = ask(&format!("hostname=m-{kind}&boot_type={kind}&wait=0")).await;
        assert_eq!(
            none.status, 200,
            "iPXE runs no body of an error: {}",
            none.text
        );
        assert!(none.text.contains("No job"), "{}", none.text);
        let ids = http.submit(&jobs::hw("alice")).await;
        let script = ask(&format!(
            "hostname=m-{kind}&boot_type={kind}&wait=30&mac=52-54-00-00-00-01"
        ))
        .await;
        assert_eq!(script.status, 200, "{}", script.text);
        assert!(script.text.contains(&ids[0]), "{}", script.text);
        assert_eq!(
            script.text.starts_with("#!ipxe"),
            kind == "ipxe",
            "{}",
            script.text
        );
    }
    let ids = http.submit(&jobs::hw("alice")).await;
    let native = ask("hostname=m-native&boot_type=native&wait=30")
        .await
        .json();
    assert_eq!(native["job_id"].as_str(), Some(ids[0].as_str()), "{native}");
    for nonsense in [
        "wait=-1",
        "wait=601",
        "wait=x",
        "boot_type=floppy",
        "memory=-2",
    ] {
        ask(&format!("hostname=m-x&{nonsense}")).await.refused(400);
    }
    ask("hostname=").await.refusal();
}
