//! The cost of a crowd of connections to one scheduler: long polls and silent connections.
//!
//! It prints how long the silent connections lived, and how many long polls were alive after a minute. It also prints
//! the time of a submit while all were open, and after. The limit of open files must allow all for each process.

use std::time::Duration;

use fairlead_attack::silent::{Line, Silence, poll};
use fairlead_tests::{Http, Scheduler, Store, clock, until};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::{
    lab::{pass, timed},
    table::{head, row},
};

/// Time for which the long polls are watched after the last one was opened.
const WATCHED: Duration = Duration::from_mins(1);
/// Maximum time until a silent connection is closed, seconds. Beyond it the measurement fails.
const GONE_MAX_S: u64 = 120;
/// Time that a poll waits, s.
const POLL_S: u32 = 300;

/// Cost of a crowd of connections: long polls, and connections that begin a request and stay silent
#[derive(Debug, clap::Args)]
pub(crate) struct Crowd {
    /// Number of long polls
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    polls: usize,
    /// Number of silent connections
    #[arg(long, value_name = "N", default_value_t = 4_000)]
    silent: usize,
}

/// Measures a submit of one job that no host runs.
async fn submit(http: &Http) -> String {
    let job = json!({"suite": "x", "testbox": "dc", "arch": "s390x", "my_account": "alice"});
    let (_, time) = timed(http.submit(&job)).await;
    format!("{} ms", time.as_millis())
}

impl Crowd {
    pub(crate) async fn measure(&self) {
        let hard = getrlimit(Resource::Nofile).maximum;
        let all = Rlimit {
            current: hard,
            maximum: hard,
        };
        setrlimit(Resource::Nofile, all).expect("the hard limit of open files");
        let scheduler = Scheduler::start(Store::Embedded).await;
        let http = scheduler.http();
        let address = scheduler.url().trim_start_matches("http://").to_owned();
        head(&["what", "figure"]);
        row(&[&"a submit, idle", &submit(&http).await]);
        let mut polls = Vec::with_capacity(self.polls);
        for n in 0..self.polls {
            let poll = poll(&format!("box-{n}"), None, POLL_S);
            polls.push(Line::open(&address, &poll).await);
        }
        let mut silent = Vec::with_capacity(self.silent);
        for how in Silence::ALL.iter().cycle().take(self.silent) {
            silent.push(Line::silent(&address, *how).await);
        }
        let opened = clock::now();
        let beside = format!(
            "a submit beside {} polls and {} silent connections",
            self.polls, self.silent
        );
        row(&[&beside, &submit(&http).await]);
        until("the silent connections are gone", GONE_MAX_S, async || {
            silent.retain(|line| line.heard().is_some());
            silent.is_empty().then_some(())
        })
        .await;
        let gone = format!("{:.1} s", opened.elapsed().as_secs_f64());
        row(&[&"the last silent connection closed after", &gone]);
        pass(WATCHED.saturating_sub(opened.elapsed())).await;
        let heard = polls.iter().map(Line::heard);
        let alive = heard.filter(|heard| *heard == Some(Vec::new())).count();
        let after = format!("long polls alive after {} s", WATCHED.as_secs());
        row(&[&after, &format!("{alive} of {}", self.polls)]);
        row(&[&"a submit beside the polls", &submit(&http).await]);
    }
}
