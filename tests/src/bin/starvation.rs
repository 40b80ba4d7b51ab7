//! Measures whether a full cache hides a light account's only job: `cargo run -p fairlead-tests --release --bin
//! starvation` (build the workspace's binaries in release before; `ES_URL` names an Elasticsearch).
//!
//! 100,000 jobs wait, a replica caches 10,000, one account has 99,990 of them and ten accounts one each, bound to
//! a machine of its own. In each of ten runs three replicas start anew, so that they know of the ten by the store
//! alone; the ten machines ask them in turn, all at once. Prints a table; it takes some minutes, so it is no test.

use std::time::Duration;

use fairlead_tests::{Http, Lab, Metrics, Scheduler, Testbox, clock, jobs, until};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const REPLICAS: usize = 3;
const RUNS: usize = 10;
const MACHINES: usize = 10;
const BIG_JOBS: usize = 99_990;
const SUBMIT_JOBS: usize = 10_000;
const CACHE_JOBS_MAX: f64 = 10_000.0;
/// How long a machine asks at most, seconds, and what is wanted.
const ASK_S: u32 = 20;
const WANTED: Duration = Duration::from_secs(2);

/// What stands before the ten jobs, and how they are submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    /// The large account's jobs are for other machines and kinds of testbox.
    Elsewhere,
    /// They are for any machine, these ten too.
    Anywhere,
    /// They are for these ten machines and no others, 9,999 for each.
    SameMachines,
    /// The same, and the ten jobs are in queue vip.
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

/// What became of one of the ten jobs.
struct Dispatch {
    took: Option<Duration>,
    /// Jobs of the large account that its machine was given before.
    others: usize,
}

async fn load(https: &[Http], all: Vec<Value>) {
    let mut loading = JoinSet::new();
    for (batch, http) in all.chunks(SUBMIT_JOBS).zip(https.iter().cycle()) {
        let (http, batch) = (http.clone(), Value::Array(batch.to_vec()));
        loading.spawn(async move { http.submit(&batch).await.len() });
        if loading.len() == https.len() {
            loading.join_next().await;
        }
    }
    loading.join_all().await;
}

/// A machine that asks until it has `id`; what it gets before, it ends at once.
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

/// Waits until there is in memory what a start brings. The first jobs of an account are mostly those of its queue
/// and its host key too, so that a third of the cache is as much as there is of jobs that are all alike.
async fn caches_are_filled(https: &[Http]) {
    for http in https {
        until("the cache is filled", 120, async || {
            let cached = Metrics::of(http).await.get("fairlead_jobs_cached");
            (cached >= CACHE_JOBS_MAX * 0.3).then_some(())
        })
        .await;
    }
}

async fn one_run(case: Case, replicas: &mut [Scheduler], run: usize) -> Vec<Dispatch> {
    let https: Vec<Http> = replicas.iter().map(Scheduler::http).collect();
    // The large account has had testbox time, and goes on to have it.
    let busy = jobs::with(jobs::hw("big"), &json!({"target_machines": ["busy"]}));
    https[0].submit(&busy).await;
    let mut worker = Testbox::hw(&https[0], "busy");
    let held = worker.ask(ASK_S).await;
    assert_eq!(held.len(), 1, "the large account runs a job");
    let light: Value = (0..MACHINES).map(|n| case.light(n)).collect();
    let ids = https[run % REPLICAS].submit(&light).await;

    replicas.iter_mut().for_each(Scheduler::kill);
    for replica in replicas.iter_mut() {
        replica.restart().await;
    }
    caches_are_filled(&https).await;
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

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn print(case: Case, cached: f64, mut all: Vec<Dispatch>) {
    let n = all.len();
    let others: usize = all.iter().map(|dispatch| dispatch.others).sum();
    all.retain(|dispatch| dispatch.took.is_some());
    let mut took: Vec<Duration> = all.iter().filter_map(|dispatch| dispatch.took).collect();
    took.sort_unstable();
    let within = took.iter().filter(|took| **took <= WANTED).count();
    let at = |permille: usize| {
        let at = (took.len() * permille / 1000).min(took.len().saturating_sub(1));
        took.get(at).map_or(0, Duration::as_millis)
    };
    println!(
        "| {} | {cached} | {} of {n} | {within} | {} | {} | {} | {others} |",
        case.words(),
        took.len(),
        at(500),
        at(900),
        at(1000)
    );
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
async fn main() {
    println!(
        "| case | cached at the end | dispatched | within 2 s | p50 ms | p90 ms | longest ms | others' jobs first |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for case in Case::ALL {
        let lab = Lab::new();
        let mut replicas = lab.schedulers(REPLICAS, &["--lease", "10m"]).await;
        let https: Vec<Http> = replicas.iter().map(Scheduler::http).collect();
        load(&https, (0..BIG_JOBS).map(|n| case.big(n)).collect()).await;
        let mut all = Vec::new();
        for run in 0..RUNS {
            all.extend(one_run(case, &mut replicas, run).await);
        }
        let cached = Metrics::of(&https[0]).await.get("fairlead_jobs_cached");
        print(case, cached, all);
    }
}
