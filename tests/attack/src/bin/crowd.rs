//! Measures the cost of a crowd of connections: 10,000 long polls and 4,000 silent connections.
//!
//! `cargo run -p fairlead-attack --release --bin crowd`; build the workspace's binaries in release before.
//!
//! It prints how long the silent connections lived, and how many long polls were alive after a minute. It also prints
//! the time of a submit while all were open, and after. The limit of open files must allow 14,000 for each process.

use std::time::Duration;

use fairlead_attack::silent::{Line, Silence, poll};
use fairlead_tests::{Http, Scheduler, Store, clock, until};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

const POLLS: usize = 10_000;
const SILENT: usize = 4_000;
/// So long the long polls are watched after the last was opened.
const WATCHED: Duration = Duration::from_mins(1);
/// The longest that a silent connection may take to go, seconds, before the measurement fails.
const GONE_MAX_S: u64 = 120;

/// Time of a submit of one job that no host runs, ms.
async fn submit_ms(http: &Http) -> f64 {
    let job = json!({"suite": "x", "testbox": "dc", "arch": "s390x", "my_account": "alice"});
    let begin = clock::now();
    http.submit(&job).await;
    begin.elapsed().as_secs_f64() * 1000.0
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
#[expect(
    clippy::expect_used,
    reason = "without the limit nothing can be measured"
)]
async fn main() {
    let hard = getrlimit(Resource::Nofile).maximum;
    let all = Rlimit {
        current: hard,
        maximum: hard,
    };
    setrlimit(Resource::Nofile, all).expect("the hard limit of open files");
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let address = scheduler.url().trim_start_matches("http://").to_owned();
    println!("| what | figure |");
    println!("|---|---|");
    println!("| a submit, idle | {:.0} ms |", submit_ms(&http).await);
    let mut polls = Vec::with_capacity(POLLS);
    for n in 0..POLLS {
        polls.push(Line::open(&address, &poll(&format!("box-{n}"), None, 300)).await);
    }
    let mut silent = Vec::with_capacity(SILENT);
    for how in Silence::ALL.iter().cycle().take(SILENT) {
        silent.push(Line::silent(&address, *how).await);
    }
    let opened = clock::now();
    println!(
        "| a submit beside {POLLS} polls and {SILENT} silent connections | {:.0} ms |",
        submit_ms(&http).await
    );
    until("the silent connections are gone", GONE_MAX_S, async || {
        silent.retain(|line| line.heard().is_some());
        silent.is_empty().then_some(())
    })
    .await;
    println!(
        "| the last silent connection closed after | {:.1} s |",
        opened.elapsed().as_secs_f64()
    );
    until(
        "the long polls were watched",
        2 * WATCHED.as_secs(),
        async || (opened.elapsed() >= WATCHED).then_some(()),
    )
    .await;
    let alive = polls
        .iter()
        .filter(|line| line.heard() == Some(Vec::new()))
        .count();
    println!(
        "| long polls alive after {} s | {alive} of {POLLS} |",
        WATCHED.as_secs()
    );
    println!(
        "| a submit beside the polls | {:.0} ms |",
        submit_ms(&http).await
    );
}
