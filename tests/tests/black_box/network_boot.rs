//! Tests of machines that boot over the network, as their firmware speaks. `network` in the agent's tests boots real
//! ones.

use std::io::Read;

use fairlead_tests::{Http, Reply, Scheduler, Store, jobs, on_both_stores};
use serde_json::{Value, json};

on_both_stores!(
    an_unknown_machine_asks_again_and_is_shown_until_it_is_registered,
    a_box_that_boots_hears_of_the_end_of_its_job,
    secrets_go_to_the_box_that_boots_and_only_if_the_site_says_so,
    firmware_has_names_of_its_own_and_what_is_registered_wins,
    a_job_boots_the_system_that_it_names_or_none,
);

const MAC: &str = "52-54-00-00-00-0a";

/// Returns the boot script for a machine with this address.
async fn boot(http: &Http, mac: &str, more: &str) -> Reply {
    let reply = http.get(&format!("/boot.ipxe/mac/{mac}?{more}")).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert!(reply.text.starts_with("#!ipxe\n"), "{}", reply.text);
    reply
}

async fn register(http: &Http, about: &Value) {
    let reply = http.post("/scheduler/v1/hosts/box-a", about).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}

/// Returns the unpacked files of the job's initrd, which the script names.
async fn initrd(script: &str) -> String {
    let mut lines = script
        .lines()
        .filter_map(|line| line.strip_prefix("initrd "));
    let url = lines
        .find(|url| url.contains("/job.cgz"))
        .expect("job.cgz in the script");
    let answer = reqwest::get(url).await.expect("an answer");
    assert_eq!(answer.status(), 200);
    let packed = answer.bytes().await.expect("a body");
    let mut files = Vec::new();
    let mut unpacking = flate2::read::GzDecoder::new(&packed[..]);
    unpacking
        .read_to_end(&mut files)
        .expect("a gzipped archive");
    String::from_utf8_lossy(&files).into_owned()
}

async fn an_unknown_machine_asks_again_and_is_shown_until_it_is_registered(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let told = boot(&http, MAC, "arch=i386&hostname=&wait=30").await.text;
    assert!(told.contains("not registered"), "{told}");
    assert!(
        told.contains("chain --replace --autofree http://"),
        "{told}"
    );
    let shown = http.get("/scheduler/v1/machines/unknown").await.json();
    assert_eq!(shown[0]["mac"], "52:54:00:00:00:0a", "{shown}");
    assert_eq!(
        (&shown[0]["arch"], &shown[0]["address"]),
        (&json!("x86_64"), &json!("127.0.0.1"))
    );
    http.get("/boot.ipxe/mac/nonsense?hostname=")
        .await
        .refused(404);
    register(
        &http,
        &json!({"mac_addr": [MAC], "arch": std::env::consts::ARCH}),
    )
    .await;
    let shown = http.get("/scheduler/v1/machines/unknown").await.json();
    assert_eq!(shown, json!([]));
    let ids = http.submit(&jobs::hw("alice")).await;
    let told = boot(&http, MAC, "arch=i386&hostname=&wait=30").await.text;
    assert!(told.contains(&ids[0]), "{told}");
}

async fn a_box_that_boots_hears_of_the_end_of_its_job(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    register(
        &http,
        &json!({"mac_addr": [MAC], "arch": std::env::consts::ARCH}),
    )
    .await;
    for fetches in [false, true] {
        let id = http.submit(&jobs::hw("alice")).await.remove(0);
        let told = boot(&http, MAC, "wait=30").await.text;
        assert!(told.contains(&id), "{told}");
        if fetches {
            initrd(&told).await;
            assert_eq!(http.job(&id).await["job_stage"], "boot");
        }
        let stopped = http
            .post(
                &format!("/scheduler/v1/jobs/{id}/terminate"),
                &json!({"my_account": "alice"}),
            )
            .await;
        assert_eq!(stopped.status, 200, "{}", stopped.text);
        let job = http.job(&id).await;
        assert_eq!(
            (&job["job_stage"], &job["job_health"]),
            (&json!("finish"), &json!("terminate"))
        );
        let again = boot(&http, MAC, "wait=0").await.text;
        assert!(again.contains("No job available"), "{again}");
    }
}

async fn secrets_go_to_the_box_that_boots_and_only_if_the_site_says_so(store: Store) {
    let secret = json!({"secrets": {"root_password": "s3cret-of-alice"}});
    for (arguments, is_given) in [(&[][..], false), (&["--boot-secrets"][..], true)] {
        let scheduler = Scheduler::start_with(store, arguments).await;
        let http = scheduler.http();
        register(
            &http,
            &json!({"mac_addr": [MAC], "arch": std::env::consts::ARCH}),
        )
        .await;
        http.submit(&jobs::with(jobs::hw("alice"), &secret)).await;
        let told = boot(&http, MAC, "wait=30").await.text;
        assert!(!told.contains("s3cret"), "{told}");
        let files = initrd(&told).await;
        assert_eq!(files.contains("s3cret-of-alice"), is_given, "{files}");
        assert_eq!(files.contains("secrets_withheld"), !is_given, "{files}");
        // The token alone is not enough: a machine at another address has another key.
        let key = told.find("&secrets_key=").map_or("", |at| &told[at..]);
        let key = key.lines().next().unwrap_or_default();
        let without = initrd(&told.replace(key, "")).await;
        assert!(!without.contains("s3cret-of-alice"), "{without}");
    }
}

async fn firmware_has_names_of_its_own_and_what_is_registered_wins(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    // Without a registered architecture, the firmware's counts.
    register(&http, &json!({"mac_addr": [MAC]})).await;
    let job = jobs::with(jobs::hw("alice"), &json!({"arch": "aarch64"}));
    let id = http.submit(&job).await.remove(0);
    let told = boot(&http, MAC, "arch=arm64&wait=30").await.text;
    assert!(told.contains(&id), "{told}");
    http.post(&format!("/scheduler/v1/jobs/{id}/terminate"), &json!({}))
        .await;
    register(&http, &json!({"mac_addr": [MAC], "arch": "aarch64"})).await;
    let job = jobs::with(jobs::hw("alice"), &json!({"arch": "aarch64"}));
    let ids = http.submit(&job).await;
    let told = boot(&http, MAC, "arch=x86_64&wait=30").await.text;
    assert!(told.contains(&ids[0]), "{told}");
    assert!(told.contains("console=ttyAMA0"), "{told}");
    // The machine is not registered, but reports its name.
    for (firmware, arch) in [("i386", "x86_64"), ("arm64", "aarch64")] {
        let job = jobs::with(jobs::hw("alice"), &json!({"arch": arch}));
        let ids = http.submit(&job).await;
        let path =
            format!("/scheduler/v1/jobs/dispatch?hostname=m-{firmware}&arch={firmware}&wait=30");
        let told = http.get(&path).await;
        assert!(told.text.contains(&ids[0]), "{}", told.text);
    }
    let none = http
        .get("/scheduler/v1/jobs/dispatch?hostname=m-n&boot_type=native&wait=0")
        .await;
    assert_eq!(
        (none.status, none.text.as_str()),
        (200, r#"{"job_id":"0"}"#)
    );
}

async fn a_job_boots_the_system_that_it_names_or_none(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let arch = std::env::consts::ARCH;
    register(&http, &json!({"mac_addr": [MAC], "arch": arch})).await;
    let job = jobs::with(
        jobs::hw("alice"),
        &json!({"os": "debian", "os_version": "12"}),
    );
    let lacks = "no kernel for os debian 12";
    let said = http.post("/scheduler/v1/jobs/submit", &job).await.json();
    let hint = said[0]["hint"].as_str().unwrap_or_default();
    assert!(hint.contains(lacks), "{said}");
    let told = boot(&http, MAC, "wait=30").await.text;
    assert!(told.contains("No job available"), "{told}");
    let waits = http
        .job(said[0]["job_id"].as_str().unwrap_or_default())
        .await;
    assert_eq!(waits["job_stage"], "submit", "{waits}");
    let reason = waits["reason"].as_str().unwrap_or_default();
    assert!(reason.contains(lacks), "{waits}");
    // A machine with its own way of booting needs no kernel.
    let id = http.submit(&job).await.remove(0);
    let path = format!("/scheduler/v1/jobs/dispatch?mac={MAC}&boot_type=native&wait=30");
    let native = http.get(&path).await.json();
    assert_eq!(native["job_id"], id.as_str(), "{native}");
    let folder = scheduler.data().join(format!("srv/boot/{arch}/debian/12"));
    std::fs::create_dir_all(&folder).expect("a folder");
    for file in ["vmlinuz", "initrd.cgz", "modules.cgz"] {
        std::fs::write(folder.join(file), file).expect("a file");
    }
    // The machine has booted again without starting the job.
    let told = boot(&http, MAC, "wait=30").await.text;
    assert!(told.contains(&id), "{told}");
    assert!(
        told.contains(&format!("/srv/boot/{arch}/debian/12/vmlinuz ")),
        "{told}"
    );
    assert!(
        told.contains("initrd=initrd.cgz initrd=modules.cgz initrd=job.cgz"),
        "{told}"
    );
}
