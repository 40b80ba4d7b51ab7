//! Whether a full cache hides a light account's only job.
//!
//! A replica caches 10,000 jobs. One account has many more that wait, and ten accounts one each, bound to a machine of
//! its own. In each run three replicas start anew, so that they know of the ten by the store alone; the ten machines ask
//! them in turn, all at once.

use std::time::Duration;

use fairlead_tests::{Http, Metrics, Scheduler, Testbox, clock, jobs, until};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    lab::{Replicas, submit_all},
    table::{head, number, permille_ms, row},
};

const REPLICAS: usize = 3;
const MACHINES: usize = 10;
const CACHE_JOBS_MAX: &str = "10000";
/// Maximum duration of a machine's request, seconds. The next constant is the goal.
const ASK_S: u32 = 20;
const WANTED: Duration = Duration::from_secs(2);

/// Whether a full cache hides the only job of a light account
#[derive(Debug, clap::Args)]
pub(crate) struct Starvation {
    /// Jobs of the large account
    #[arg(long, value_name = "N", default_value_t = 99_990)]
    jobs: usize,
    /// Runs of each case, each with new replicas
    #[arg(long, value_name = "N", default_value_t = 10)]
    runs: usize,
}

/// Jobs of the large account, and submits of the ten jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    /// The large account's jobs are for other machines and kinds of testbox.
    Elsewhere,
    /// The large account's jobs are for any machine, including these ten.
    Anywhere,
    /// The large account's jobs are for exactly these ten machines, 9,999 for each.
    SameMachines,
    /// As before, and the ten jobs are in queue vip.
    Vip,
}

impl Case {
    const ALL: [Self; 4] = [
        Self::Elsewhere,
        Self::Anywhere,
        Self::SameMachines,
        Self::Vip,
    ];

    fn words(self) -> &'static str {
        match self {
            Self::Elsewhere => "the others' jobs fit elsewhere",
            Self::Anywhere => "the others' jobs fit everywhere",
            Self::SameMachines => "the others' jobs are for the very same machines",
            Self::Vip => "the same, and the ten jobs are vip",
        }
    }

    fn big(self, n: usize) -> Value {
        let hw = jobs::hw("big");
        match self {
            Self::Elsewhere if n.is_multiple_of(2) => {
                jobs::with(jobs::dc("big"), &json!({"need_memory": "4g"}))
            }
            Self::Elsewhere => jobs::with(hw, &json!({"target_machines": ["elsewhere"]})),
            Self::Anywhere => hw,
            Self::SameMachines | Self::Vip => {
                jobs::with(hw, &json!({"target_machines": [machine(n % MACHINES)]}))
            }
        }
    }

    fn light(self, n: usize) -> Value {
        let job = jobs::hw(&format!("light{n}"));
        let queue = if self == Self::Vip {
            json!("vip")
        } else {
            Value::Null
        };
        jobs::with(
            job,
            &json!({"target_machines": [machine(n)], "queue": queue}),
        )
    }
}

fn machine(n: usize) -> String {
    format!("machine{n}")
}

/// Dispatch of one of the ten jobs.
struct Dispatch {
    took: Option<Duration>,
    /// Number of the large account's jobs that its machine got before.
    others: usize,
}

/// Runs a machine that asks until it has `id`, and ends all earlier jobs at once.
async fn wait_for(mut asking: Testbox, replicas: Vec<Http>, id: String) -> Dispatch {
    let begin = clock::now();
    let mut others = 0;
    for http in replicas.iter().cycle().skip(1) {
        let grants = asking.ask(ASK_S).await;
        let took = clock::now() - begin;
        let Some(grant) = grants.into_iter().next() else {
            break;
        };
        asking.finish(&grant).await;
        if grant.job_id == id {
            return Dispatch {
                took: Some(took),
                others,
            };
        }
        others += 1;
        asking.turn_to(http);
    }
    Dispatch { took: None, others }
}

/// Waits until the first jobs after a start are in memory. The first jobs of an account are mostly also those of its
/// queue and host key. So identical jobs fill only a third of the cache.
async fn caches_are_filled(https: &[Http], jobs: usize) {
    let most = CACHE_JOBS_MAX.parse().unwrap_or(f64::MAX);
    for http in https {
        until("the cache is filled", 120, async || {
            let cached = Metrics::of(http).await.get("fairlead_jobs_cached");
            (cached >= number(jobs).min(most) * 0.3).then_some(())
        })
        .await;
    }
}

async fn one_run(case: Case, lab: &mut Replicas, run: usize, jobs: usize) -> Vec<Dispatch> {
    let https = &lab.https;
    // The large account has used testbox time, and continues to use it.
    let busy = jobs::with(jobs::hw("big"), &json!({"target_machines": ["busy"]}));
    https[0].submit(&busy).await;
    let mut worker = Testbox::hw(&https[0], "busy");
    let held = worker.ask(ASK_S).await;
    assert_eq!(held.len(), 1, "the large account runs a job");
    let light: Value = (0..MACHINES).map(|n| case.light(n)).collect();
    let ids = https[run % REPLICAS].submit(&light).await;

    lab.schedulers.iter_mut().for_each(Scheduler::kill);
    for replica in &mut lab.schedulers {
        replica.restart().await;
    }
    caches_are_filled(https, jobs).await;
    let mut asking = JoinSet::new();
    for (n, id) in ids.into_iter().enumerate() {
        let mut turns = https.clone();
        turns.rotate_left((n + run) % REPLICAS);
        let machine = Testbox::hw(&turns[0], &machine(n));
        asking.spawn(wait_for(machine, turns, id));
    }
    let all = asking.join_all().await;
    worker.finish(&held[0]).await;
    all
}

fn print(case: Case, cached: f64, mut all: Vec<Dispatch>) {
    let n = all.len();
    let others: usize = all.iter().map(|dispatch| dispatch.others).sum();
    all.retain(|dispatch| dispatch.took.is_some());
    let took: Vec<Duration> = all.iter().filter_map(|dispatch| dispatch.took).collect();
    let within = took.iter().filter(|took| **took <= WANTED).count();
    let at = |nth| permille_ms(&took, nth);
    row(&[
        &case.words(),
        &cached,
        &format!("{} of {n}", took.len()),
        &within,
        &at(500),
        &at(900),
        &at(1_000),
        &others,
    ]);
}

impl Starvation {
    pub(crate) async fn measure(&self) {
        head(&[
            "case",
            "cached at the end",
            "dispatched",
            "within 2 s",
            "p50 ms",
            "p90 ms",
            "longest ms",
            "others' jobs first",
        ]);
        for case in Case::ALL {
            let more = ["--lease", "10m", "--cache-jobs-max", CACHE_JOBS_MAX];
            let mut lab = Replicas::start(REPLICAS, &more).await;
            submit_all(&lab.https, self.jobs, |n| case.big(n)).await;
            let mut all = Vec::new();
            for run in 0..self.runs {
                all.extend(one_run(case, &mut lab, run, self.jobs).await);
            }
            let metrics = Metrics::of(&lab.https[0]).await;
            print(case, metrics.get("fairlead_jobs_cached"), all);
        }
    }
}
