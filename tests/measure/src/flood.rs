//! The effect of an attack on a victim: the time from its submit to its job's grant, idle and attacked, and whether a job
//! that runs meanwhile keeps its lease.
//!
//! The attacker is a process of its own that yields to all others, as one on another machine takes no processor time of
//! the lab.

mod attacker;

use std::{
    process::{Child, Command},
    time::Duration,
};

use clap::ValueEnum;
use fairlead_tests::{Guarded, Http, Metrics, Store, Testbox, clock, jobs, reaper};
use serde_json::Value;
use tokio::time::MissedTickBehavior;

pub(crate) use self::attacker::Attacker;
use self::attacker::{Attack, NAMES_MAX};
use crate::{
    lab::waiters,
    table::{head, permille, row},
};

/// Nice value of the attacker. 19 is the maximum.
const NICE: &str = "19";
/// Interval at which the machine with the running job renews its lease.
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// Minimum time between two submits of the victim.
const SUBMIT_EVERY: Duration = Duration::from_millis(20);

/// Delay of a victim's jobs beside each attack of a stranger or another account
#[derive(Debug, clap::Args)]
pub(crate) struct Flood {
    /// Use the Elasticsearch of `ES_URL` instead of the embedded store
    #[arg(long)]
    elasticsearch: bool,
    /// Length of each phase, s
    #[arg(long, value_name = "S", default_value_t = 15)]
    seconds: u64,
    /// Rounds, each idle and then attacked
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Only this kind of attack; several with commas [default: each]
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',')]
    attacks: Vec<Attack>,
}

/// Measurements of one phase.
struct Measured {
    /// Times from the submit of each job to its grant.
    times: Vec<Duration>,
    /// Number of heartbeats that failed or were refused. The next field is the number of all.
    missed: usize,
    seen: usize,
    /// Number of lost leases.
    lost: usize,
}

/// A lab that checks tokens.
struct Target {
    url: String,
    alice: Http,
    mallory: Http,
    boxes: Http,
    _scheduler: Guarded,
}

impl Target {
    async fn start(store: Store) -> Self {
        let guarded = Guarded::start(store, &[]).await;
        Self {
            url: guarded.scheduler.url(),
            alice: guarded.user("alice").await,
            mallory: guarded.user("mallory").await,
            boxes: guarded.testbox("boxes", &["host-*"]).await,
            _scheduler: guarded,
        }
    }
}

/// Measures one job from submit to grant.
async fn one(alice: &Http, host: &mut Testbox, job: &Value) -> Duration {
    host.next_request(60);
    let submit = async {
        waiters(std::slice::from_ref(alice), 1.0, 60).await;
        let begin = clock::now();
        alice.submit(job).await;
        begin
    };
    let grant = async { (host.ask_again().await, clock::now()) };
    let ((answer, granted), begin) = tokio::join!(grant, submit);
    for grant in &answer.jobs {
        host.finish(grant).await;
    }
    granted.saturating_duration_since(begin)
}

/// Measures the jobs of a phase while another job runs.
async fn measure(lab: &Target, phase: Duration) -> Measured {
    let mut holder = Testbox::dc(&lab.boxes, "host-2", 2 << 10);
    lab.alice.submit(&jobs::dc("alice")).await;
    let held = holder.take().await;
    let mut ticks = tokio::time::interval(BEAT_EVERY);
    let (mut missed, mut seen) = (0, 0);
    let beats = async {
        loop {
            ticks.tick().await;
            let beat = holder.try_heartbeat().await;
            missed += usize::from(!beat.is_ok_and(|reply| reply.status == 200));
            seen += 1;
        }
    };
    let times = tokio::select! {
        times = times(lab, phase) => times,
        () = beats => unreachable!("beats go on"),
    };
    let end = holder.report(&held, "job_stage=running").await;
    let lost = usize::from(end.status != 200);
    if lost == 0 {
        holder.finish_running(&held).await;
    }
    Measured {
        times,
        missed,
        seen,
        lost,
    }
}

/// Returns the time of each job of one phase.
async fn times(lab: &Target, phase: Duration) -> Vec<Duration> {
    let (alice, boxes) = (&lab.alice, &lab.boxes);
    let mut host = Testbox::dc(boxes, "host-1", 2 << 10);
    let job = jobs::dc("alice");
    let mut times = Vec::new();
    let mut ticks = tokio::time::interval(SUBMIT_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let begin = clock::now();
    while begin.elapsed() < phase {
        ticks.tick().await;
        times.push(one(alice, &mut host, &job).await);
    }
    times
}

/// Starts an attacker.
fn begin(attack: Attack, lab: &Target, first: usize) -> Child {
    let own = std::env::current_exe().expect("this program");
    let mut command = Command::new("nice");
    command.args(["-n", NICE]).arg(own);
    command.args(["flood-attacker", &attack.name(), &lab.url]);
    command.args([lab.mallory.token().unwrap_or_default(), &first.to_string()]);
    command.envs([reaper::variable()]);
    command.spawn().expect("nice, of the coreutils")
}

impl Flood {
    /// Measures beside each attack, alternating with none.
    pub(crate) async fn measure(&self) {
        let store = if self.elasticsearch {
            Store::Elasticsearch
        } else {
            Store::Embedded
        };
        head(&[
            "attack",
            "round",
            "jobs",
            "idle p50 ms",
            "idle p99",
            "attacked p50",
            "attacked p99",
            "p99 of idle",
            "beats missed",
            "leases lost",
        ]);
        let all = Attack::value_variants().to_vec();
        let attacks = if self.attacks.is_empty() {
            all
        } else {
            self.attacks.clone()
        };
        let phase = Duration::from_secs(self.seconds);
        for attack in attacks {
            let lab = Target::start(store).await;
            times(&lab, phase / 3).await;
            for round in 0..self.rounds {
                let idle = measure(&lab, phase).await;
                let mut attacker = begin(attack, &lab, round * NAMES_MAX);
                let attacked = measure(&lab, phase).await;
                attacker.kill().expect("the attacker ran until now");
                attacker.wait().expect("its end");
                print(&attack.name(), round + 1, &idle, &attacked);
            }
            let metrics = Metrics::of(&lab.alice).await;
            let submitted = metrics.get("fairlead_jobs_submitted_total");
            let what = format!("{}: jobs submitted in all", attack.name());
            row(&[&what, &submitted, &"", &"", &"", &"", &"", &"", &"", &""]);
        }
    }
}

fn print(attack: &str, round: usize, idle: &Measured, attacked: &Measured) {
    let ms = |of: &Measured, nth| permille(&of.times, nth).as_secs_f64() * 1_000.0;
    let (before, during) = (ms(idle, 990), ms(attacked, 990));
    row(&[
        &attack,
        &round,
        &attacked.times.len(),
        &format!("{:.1}", ms(idle, 500)),
        &format!("{before:.1}"),
        &format!("{:.1}", ms(attacked, 500)),
        &format!("{during:.1}"),
        &format!("{:.2}", during / before),
        &format!("{} of {}", attacked.missed, attacked.seen),
        &(idle.lost + attacked.lost),
    ]);
}
