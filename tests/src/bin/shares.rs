//! Measures how testbox time divides between two accounts of weights 3 and 1, over real processes:
//! `cargo run -p fairlead-tests --release --bin shares [elasticsearch]` (build the workspace's binaries
//! in release before). Prints the figure; it takes some minutes, so it is no test.

use fairlead_tests::{
    Agent, Scheduler, Store,
    history::{all_jobs, at, busy_ms},
    jobs, until,
};
use serde_json::{Value, json};

/// Jobs of each account for the two hw machines, and for the host of virtual machines and containers.
const HW_JOBS: usize = 110;
const DC_JOBS: usize = 260;
/// Accounts and weights.
const WEIGHTS: [(&str, u64); 2] = [("heavy", 3), ("light", 1)];
/// How long every job runs, seconds.
const SECONDS: u64 = 3;
/// Memory of every host, and of a dc job, GB.
const HOST_GB: u64 = 20;
const DC_GB: u64 = 4;

/// A job's part of its host: all of it, or its memory's.
fn share_gb(job: &Value) -> u64 {
    if job["testbox"] == "hw" {
        HOST_GB
    } else {
        DC_GB
    }
}

/// GB x milliseconds of testbox time inside a window.
fn busy(list: &[Value], account: &str, from: u64, to: u64) -> u64 {
    list.iter()
        .filter(|job| job["my_account"] == account)
        .map(|job| busy_ms(job, from, to) * share_gb(job))
        .sum()
}

/// The time during which every account had jobs waiting for every kind of testbox.
fn window(list: &[Value]) -> (u64, u64) {
    let (mut from, mut to) = (0, u64::MAX);
    for (account, _) in WEIGHTS {
        for testbox in ["hw", "dc"] {
            let of = list
                .iter()
                .filter(|job| job["my_account"] == account && job["testbox"] == testbox);
            let times: Vec<u64> = of.filter_map(|job| at(job, "dispatch_ms")).collect();
            from = from.max(times.iter().min().copied().unwrap_or(0));
            to = to.min(times.iter().max().copied().unwrap_or(0));
        }
    }
    (from, to.max(from))
}

#[tokio::main]
#[expect(
    clippy::print_stdout,
    reason = "the figure is what this program is for"
)]
async fn main() {
    let store = match std::env::args().nth(1).as_deref() {
        Some("elasticsearch") => Store::Elasticsearch,
        _ => Store::Embedded,
    };
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    for (account, weight) in WEIGHTS {
        let path = format!("/scheduler/v1/queues/{account}");
        assert_eq!(
            http.post(&path, &json!({ "weight": weight })).await.status,
            200
        );
        let script =
            json!({ "script": format!("sleep {SECONDS}"), "need_memory": format!("{DC_GB}g") });
        let dc = jobs::with(jobs::dc(account), &script);
        let hw = jobs::with(dc.clone(), &json!({ "testbox": "hw" }));
        http.submit(&jobs::times(DC_JOBS, &dc)).await;
        http.submit(&jobs::times(HW_JOBS, &hw)).await;
    }
    let memory = format!("{HOST_GB}g");
    let hosts = [("box-1", "hw"), ("box-2", "hw"), ("server-1", "vm,dc")];
    let _agents = hosts.map(|(name, kind)| {
        Agent::start(
            &scheduler.url(),
            name,
            &["--kind", kind, "--memory", &memory],
        )
    });
    let all = WEIGHTS.len() * (HW_JOBS + DC_JOBS);
    until("all jobs have ended", 1800, async || {
        let list = http
            .get("/scheduler/v1/jobs?stage=finish&limit=0")
            .await
            .json();
        (list["total"].as_u64() == Some(all as u64)).then_some(())
    })
    .await;
    let list = all_jobs(&http).await;
    let good = list
        .iter()
        .filter(|job| job["job_health"] == "success" && job["attempt"] == 1)
        .count();
    let (from, to) = window(&list);
    let got = WEIGHTS.map(|(account, _)| busy(&list, account, from, to));
    println!("{good} of {all} jobs succeeded at their first attempt");
    println!(
        "both accounts waited for both kinds of testbox for {} s",
        (to - from) / 1000
    );
    let whole = (to - from) * HOST_GB * hosts.len() as u64;
    println!(
        "hosts busy: {} of 1000",
        (got[0] + got[1]) * 1000 / whole.max(1)
    );
    for ((account, weight), got) in WEIGHTS.into_iter().zip(got) {
        println!(
            "{account} (weight {weight}): {} host seconds",
            got / (HOST_GB * 1000)
        );
    }
    let permille = got[0] * 1000 / (got[0] + got[1]).max(1);
    println!(
        "heavy has {permille} of 1000, wanted 750; within 5 %: {}",
        (712..=788).contains(&permille)
    );
}
