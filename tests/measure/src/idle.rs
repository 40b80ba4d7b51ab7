//! The cost of three replicas and Elasticsearch while nothing is dispatched.
//!
//! Half of the waiting jobs are bound to one of 500 machines. Processor time is read before and after windows of a
//! minute. There are three cases:
//!
//! - nothing else happens;
//! - a job is submitted, dispatched and ended each second;
//! - hosts wait for jobs that none of them can run.
//!
//! Each case first runs for some minutes, because Elasticsearch compiles new queries at first, which is no idle cost.
//! The Elasticsearch must have nothing else to do.

use std::{cell::Cell, fmt::Display, time::Duration};

use fairlead_tests::{Http, Scheduler, Testbox, cpu, jobs, settings, until};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    lab::{Replicas, pass, submit_all, timed, waiters},
    table::{head, number, row, say},
};

const REPLICAS: usize = 3;
const ACCOUNTS: usize = 300;
const MACHINES: usize = 500;
/// Number of windows of the trickle before the measured one.
const WARM_UP: u32 = 2;
/// Time that a host's request waits, seconds.
const WAIT_S: u32 = 50;
/// Difference between two measurements below which the store is quiet, percent of a core.
const QUIET: f64 = 3.0;

/// Cost of replicas and Elasticsearch while nothing is dispatched, beside waiting jobs and hosts
#[derive(Debug, clap::Args)]
pub(crate) struct Idle {
    /// Number of waiting jobs, of 300 accounts
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    jobs: usize,
    /// Number of hosts that wait
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    hosts: usize,
    /// Length of a window, seconds
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(5..))]
    window: u64,
}

/// Returns the `n`th waiting job. The machines never ask, and no host has so much memory.
fn waiting(n: usize) -> Value {
    let account = format!("account{}", n % ACCOUNTS);
    if n.is_multiple_of(2) {
        let machine = format!("machine{}", n / 2 % MACHINES);
        jobs::with(jobs::hw(&account), &json!({"target_machines": [machine]}))
    } else {
        jobs::with(jobs::dc(&account), &json!({"need_memory": "100g"}))
    }
}

/// The lab and its Elasticsearch.
struct Site {
    lab: Replicas,
    elasticsearch: Http,
}

impl Site {
    /// Returns the processor time so far, of each replica and of Elasticsearch.
    async fn spent(&self) -> Vec<Duration> {
        let mut all: Vec<Duration> = self.lab.schedulers.iter().map(Scheduler::cpu).collect();
        all.push(cpu::of_elasticsearch(&self.elasticsearch).await);
        all
    }

    /// Returns the processor use of each during `work`, percent of one core.
    async fn percent(&self, work: impl Future<Output = ()>) -> Vec<f64> {
        let before = self.spent().await;
        let ((), time) = timed(work).await;
        let after = self.spent().await;
        let used = after.iter().zip(before);
        used.map(|(after, before)| after.saturating_sub(before).as_secs_f64())
            .map(|used_s| used_s / time.as_secs_f64() * 100.0)
            .collect()
    }

    /// Waits until two measurements of ten seconds are alike, so that merges and warm-up do not count.
    async fn settle(&self) {
        let last = Cell::new(f64::MAX);
        until("the store is quiet", 1_200, async || {
            let window = pass(Duration::from_secs(10));
            let now: f64 = self.percent(window).await.iter().sum();
            let before = last.replace(now);
            ((now - before).abs() < QUIET).then_some(())
        })
        .await;
    }
}

impl Idle {
    fn window(&self) -> Duration {
        Duration::from_secs(self.window)
    }

    /// Submits, dispatches and ends a job each second, for a window.
    async fn trickle(&self, https: &[Http]) {
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        for n in (0..https.len()).cycle().take(self.window_seconds()) {
            seconds.tick().await;
            let (here, there) = (&https[n], &https[(n + 1) % https.len()]);
            let job = jobs::with(
                jobs::hw("trickle"),
                &json!({"target_machines": ["trickle"]}),
            );
            here.submit(&job).await;
            let mut machine = Testbox::hw(there, "trickle");
            for grant in machine.ask(10).await {
                machine.finish(&grant).await;
            }
        }
    }

    fn window_seconds(&self) -> usize {
        usize::try_from(self.window).unwrap_or(usize::MAX)
    }

    /// Starts waiting hosts with different memory sizes, so that no two ask for the same.
    fn idle_hosts(&self, https: &[Http]) -> JoinSet<()> {
        let mut waiting = JoinSet::new();
        for n in 0..self.hosts {
            let memory_mb = 1024 + u32::try_from(n).unwrap_or(0);
            let mut host = Testbox::dc(&https[n % https.len()], &format!("idle{n}"), memory_mb);
            waiting.spawn(async move {
                loop {
                    let got = host.ask(WAIT_S).await;
                    assert!(got.is_empty(), "{} got {got:?}", host.host);
                }
            });
        }
        waiting
    }

    pub(crate) async fn measure(&self) {
        let site = Site {
            lab: Replicas::start(REPLICAS, &[]).await,
            elasticsearch: Http::new(&settings::elasticsearch()[0]),
        };
        let https = &site.lab.https;
        let ((), time) = timed(submit_all(https, self.jobs, waiting)).await;
        let (jobs, seconds) = (self.jobs, time.as_secs());
        say(&format!("{jobs} jobs were submitted in {seconds} s"));
        for _ in 0..WARM_UP {
            self.trickle(https).await;
        }
        site.settle().await;
        head(&[
            "percent of one core",
            "replica 1",
            "replica 2",
            "replica 3",
            "Elasticsearch",
            "all",
        ]);
        print("nothing changes", &site.percent(pass(self.window())).await);
        print("a job a second", &site.percent(self.trickle(https)).await);
        let hosts = self.idle_hosts(https);
        waiters(https, 0.99 * number(self.hosts), 300).await;
        site.settle().await;
        let quiet = site.percent(pass(self.window())).await;
        print(
            &format!("{} hosts wait, nothing changes", self.hosts),
            &quiet,
        );
        let both = site.percent(self.trickle(https)).await;
        print(&format!("{} hosts wait, a job a second", self.hosts), &both);
        drop(hosts);
    }
}

fn print(what: &str, percent: &[f64]) {
    let all: f64 = percent.iter().sum();
    let each: Vec<String> = percent
        .iter()
        .chain([&all])
        .map(|used| format!("{used:.1}"))
        .collect();
    let mut cells: Vec<&dyn Display> = vec![&what];
    cells.extend(each.iter().map(|cell| cell as &dyn Display));
    row(&cells);
}
