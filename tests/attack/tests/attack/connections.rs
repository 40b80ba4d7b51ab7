//! Connections that say nothing take places and files. They must go, and long polls and slow uploads must stay.

use std::{fs, process};

use fairlead_attack::silent::{Line, Silence, poll};
use fairlead_tests::{Scheduler, Store, Testbox, clock, eventually, jobs, until};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Time within which a silent connection is closed, seconds.
const GONE_S: u64 = 50;
/// Number of connections of each kind.
const SILENT_EACH: usize = 60;
const POLLS: usize = 300;

fn address(scheduler: &Scheduler) -> String {
    scheduler.url().trim_start_matches("http://").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_go_and_long_polls_stay() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let address = address(&scheduler);
    let mut polls = Vec::new();
    for n in 0..POLLS {
        polls.push(Line::open(&address, &poll(&format!("box-{n}"), None, 60)).await);
    }
    let mut silent = Vec::new();
    for how in Silence::ALL {
        for _ in 0..SILENT_EACH {
            silent.push((how, Line::silent(&address, how).await));
        }
    }
    let began = clock::now();
    until("silent connections are gone", GONE_S, async || {
        silent.retain(|(_, line)| line.heard().is_some());
        if began.elapsed().as_secs() >= GONE_S - 1 {
            let kinds = Silence::ALL.map(|how| silent.iter().filter(|(it, _)| *it == how).count());
            assert!(
                silent.is_empty(),
                "still open of {:?}: {kinds:?}",
                Silence::ALL
            );
        }
        silent.is_empty().then_some(())
    })
    .await;
    for line in &polls {
        assert_eq!(
            line.heard(),
            Some(Vec::new()),
            "a long poll was answered or closed"
        );
    }
    let http = scheduler.http();
    let job = serde_json::json!({"suite": "x", "testbox": "dc", "arch": "riscv64", "my_account": "alice"});
    http.submit(&job).await;
    eventually("a long poll gets the job", async || {
        polls
            .iter()
            .any(|line| line.heard().is_some_and(|heard| !heard.is_empty()))
            .then_some(())
    })
    .await;
}

/// Tests an upload in pieces, each of which takes its time.
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_goes_on_is_taken_and_one_that_stops_is_not() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    http.submit(&jobs::dc("alice")).await;
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let grant = testbox.take().await;
    let head = |name: &str| {
        format!(
            "POST {}/{name}?job_id={}&job_token={} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
            grant.result_root, grant.job_id, grant.job_token
        )
    };
    let mut slow = Line::open(&address(&scheduler), head("slow").as_bytes()).await;
    let stopped = Line::open(&address(&scheduler), head("stopped").as_bytes()).await;
    let mut told = Vec::new();
    until("the upload that stopped is refused", GONE_S, async || {
        slow.say(b"1\r\na\r\n").await;
        let heard = stopped.heard();
        let is_over = heard.is_none();
        told.extend(heard.unwrap_or_default());
        (is_over || told.ends_with(b"}")).then_some(())
    })
    .await;
    let told = String::from_utf8_lossy(&told).into_owned();
    assert!(
        told.contains("408") && told.contains("body_timeout"),
        "{told}"
    );
    slow.say(b"0\r\n\r\n").await;
    eventually("the slow one is taken", async || {
        let answer = slow.heard().expect("it is open");
        String::from_utf8_lossy(&answer)
            .contains("200 OK")
            .then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduler_may_open_as_many_files_as_the_system_lets_it() {
    // The limit is the one of a shell or a service without LimitNOFILE, and enough for the other tests.
    let few = Rlimit {
        current: Some(4_096),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, few).expect("a lower limit");
    let scheduler = Scheduler::start(Store::Embedded).await;
    let limits = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/limits")).expect("the limits");
        let line = text.lines().find(|line| line.starts_with("Max open files"));
        let words = line.unwrap_or_default().split_whitespace().skip(3);
        words.take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let own = limits(scheduler.id());
    assert_eq!(own.first(), own.last(), "{own:?}");
    assert_eq!(own.last(), limits(process::id()).last());
}
