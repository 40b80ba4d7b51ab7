//! Measures how often replicas claim the same job: `cargo run -p fairlead-tests --release --bin conflicts` (build the
//! workspace's binaries in release before; `ES_URL` names an Elasticsearch).
//!
//! One queue, and hw machines that ask without a pause, spread evenly over 2, 4 and 8 replicas. Once the machines
//! keep as many jobs in flight as they can, once jobs come one by one to machines that wait everywhere. Prints a table.

use std::collections::BTreeSet;

use fairlead_tests::{Http, Lab, Metrics, Scheduler, Testbox, clock, jobs, until};
use tokio::task::JoinSet;

const MACHINES: usize = 24;
const JOBS: usize = 3_000;
/// Of these, so many come one by one.
const SINGLE_JOBS: usize = 300;
/// How long a machine waits, seconds.
const WAIT_S: u32 = 5;

/// Runs jobs at one replica until none comes.
async fn one_machine(http: Http, n: usize) -> Vec<String> {
    let mut machine = Testbox::hw(&http, &format!("machine-{n}"));
    let ran = machine.run_all(WAIT_S).await;
    assert!(machine.held().is_empty(), "all were reported");
    ran
}

fn machines(https: &[Http]) -> JoinSet<Vec<String>> {
    let mut running = JoinSet::new();
    for (n, http) in (0..MACHINES).zip(https.iter().cycle()) {
        running.spawn(one_machine(http.clone(), n));
    }
    running
}

async fn backlog(https: &[Http]) -> Vec<String> {
    https[0]
        .submit(&jobs::times(JOBS, &jobs::hw("alice")))
        .await;
    machines(https).join_all().await.concat()
}

async fn one_by_one(https: &[Http]) -> Vec<String> {
    let running = machines(https);
    for http in https.iter().cycle().take(SINGLE_JOBS) {
        http.submit(&jobs::hw("alice")).await;
    }
    running.join_all().await.concat()
}

/// Claims that went well, and those that did not.
async fn claims(https: &[Http]) -> (f64, f64) {
    let (mut committed, mut conflicts) = (0.0, 0.0);
    for http in https {
        let metrics = Metrics::of(http).await;
        committed += metrics.get("fairlead_claims_total{outcome=\"committed\"}");
        conflicts += metrics.get("fairlead_claims_total{outcome=\"conflict\"}");
    }
    (committed, conflicts)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
async fn main() {
    println!(
        "| replicas | jobs | dispatched | claims | conflicts | of 100 claims | jobs a second |"
    );
    println!("|---|---|---|---|---|---|---|");
    for count in [2, 4, 8] {
        let lab = Lab::new();
        let replicas = lab.schedulers(count, &[]).await;
        let https: Vec<Http> = replicas.iter().map(Scheduler::http).collect();
        until("all know each other", 60, async || {
            for http in &https {
                let peers = Metrics::of(http).await.get("fairlead_peers");
                if peers + 1.0 < f64::from(u32::try_from(count).unwrap_or(0)) {
                    return None;
                }
            }
            Some(())
        })
        .await;
        for what in ["a backlog", "one by one"] {
            let (before, begin) = (claims(&https).await, clock::now());
            let ran = if what == "a backlog" {
                backlog(&https).await
            } else {
                one_by_one(&https).await
            };
            let seconds = (clock::now() - begin).as_secs_f64() - f64::from(WAIT_S);
            let distinct = ran.iter().collect::<BTreeSet<_>>().len();
            assert_eq!(distinct, ran.len(), "a job was handed out twice");
            let after = claims(&https).await;
            let (committed, conflicts) = (after.0 - before.0, after.1 - before.1);
            let all = committed + conflicts;
            println!(
                "| {count} | {what} | {distinct} | {all} | {conflicts} | {:.1} | {:.0} |",
                conflicts / all.max(1.0) * 100.0,
                committed / seconds
            );
        }
    }
}
