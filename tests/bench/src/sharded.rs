//! Sharded jobs against schedulers that run: the peak of a CI, and the end of one large job while a replica dies.
//!
//! The peak submits at an even pace, first plain jobs in requests of the same sizes, then sharded jobs. Agents end so many
//! a second. Elasticsearch's processor time for each job and each shard is comparable, because both are of one run.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use anyhow::Context;
use fairlead_api::Grant;
use fairlead_cluster::clock::{now, pause};
use futures_util::{
    StreamExt,
    future::{join_all, try_join_all},
    stream::FuturesUnordered,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    figure::Series,
    load::{Agent, Site},
    pace::Pace,
    raw::{Raw, cpu_s},
};

/// Number of agents that take and end jobs.
const AGENTS: usize = 32;
/// Number of jobs that an agent takes at one time.
const EACH: usize = 16;
/// Time that an agent waits for a job, seconds.
const WAIT_S: u32 = 5;
/// Interval between checks whether a job has ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Number of shards of the large job.
const LARGE: usize = 200;
/// Time within which they end, seconds.
const LARGE_ENDS_S: f64 = 0.9;
/// Time after which a replica is killed.
const KILL_AFTER: Duration = Duration::from_millis(450);
/// Time limit for the end of the large job.
const LARGE_TIME: Duration = Duration::from_secs(30);
/// Counter of checks of jobs with shards.
const LOOKS: &str = "fairlead_shard_looks_total ";

/// The submits.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ShardedArgs {
    /// Measure only sharded jobs, against these running schedulers, separated by commas. Needs `--elasticsearch`
    #[arg(long, value_name = "URLS", value_delimiter = ',', group = "only")]
    sharded: Vec<String>,
    /// Submits a second of `--sharded`, each of 2 to 200 jobs or shards
    #[arg(long, value_name = "N", default_value_t = 39)]
    submits: u32,
    /// Number of submits of `--sharded`, of each kind
    #[arg(long, value_name = "N", default_value_t = 2_340)]
    submits_max: usize,
    /// Ends a second of `--sharded`
    #[arg(long, value_name = "N", default_value_t = 400)]
    ends: u32,
    /// Process of the last scheduler of `--sharded`: SIGKILL stops it while the shards of one large job end
    #[arg(long, value_name = "PID")]
    kill: Option<i32>,
}

/// One kind of load.
struct Load<'a> {
    site: &'a Site,
    args: &'a ShardedArgs,
    is_sharded: bool,
}

/// Record of a sharded job.
#[derive(Debug, Default, Clone, Copy)]
struct Whole {
    left: usize,
    last_end: Option<Instant>,
}

/// Result of one kind of load.
#[derive(Debug, Default)]
struct Came {
    submit_ms: Series,
    /// Times from the last end of a shard to the end of its job, seconds.
    done_s: Series,
    jobs: usize,
    elasticsearch_s: f64,
}

impl ShardedArgs {
    pub(super) fn is_asked(&self) -> bool {
        !self.sharded.is_empty()
    }

    /// Measures, and returns a text.
    pub(super) async fn measure(
        &self,
        elasticsearch: &str,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<String> {
        let site = Site::new(self.sharded.clone())?;
        if let Some(pid) = self.kill {
            return self.kill_while_it_ends(&site, pid).await;
        }
        let raw = Raw::new(elasticsearch)?;
        let processes = raw.processes().await?;
        let mut came = Vec::new();
        for is_sharded in [false, true] {
            say(if is_sharded {
                "sharded jobs"
            } else {
                "plain jobs"
            });
            let load = Load {
                site: &site,
                args: self,
                is_sharded,
            };
            let before = cpu_s(&processes);
            let mut of = load.run().await?;
            of.elasticsearch_s = cpu_s(&processes) - before;
            came.push(of);
        }
        let [plain, sharded] =
            <[Came; 2]>::try_from(came).map_err(|_| anyhow::anyhow!("two loads"))?;
        let each = |came: &Came| came.elasticsearch_s * 1_000.0 / count(came.jobs);
        Ok(format!(
            "{} submits/s, {} ends/s; plain: {} jobs; sharded: {} shards in {} jobs; none refused\n\
             submit, ms: plain p50 {:.0} p99 {:.0}; sharded p50 {:.0} p99 {:.0}\n\
             end of a job after its last shard, s: p50 {:.2} p99 {:.2}\n\
             processor time of Elasticsearch, ms: {:.3} a plain job, {:.3} a shard, ratio {:.2}\n",
            self.submits,
            self.ends,
            plain.jobs,
            sharded.jobs,
            sharded.done_s.values().len(),
            plain.submit_ms.median(),
            plain.submit_ms.p99(),
            sharded.submit_ms.median(),
            sharded.submit_ms.p99(),
            sharded.done_s.median(),
            sharded.done_s.p99(),
            each(&plain),
            each(&sharded),
            each(&sharded) / each(&plain),
        ))
    }

    /// Ends all shards of a large job at once, and kills a replica meanwhile.
    async fn kill_while_it_ends(&self, site: &Site, pid: i32) -> anyhow::Result<String> {
        let last = self.sharded.len().saturating_sub(1);
        let alive = Site::new(self.sharded.iter().take(last).cloned().collect())?;
        let job = json!([{
            "suite": "bench", "my_account": "a", "testbox": "dc", "need_memory": "1m", "script": "true",
            "shards": LARGE,
        }]);
        let id = site
            .submit(&job)
            .await?
            .into_iter()
            .next()
            .context("an id")?;
        let held = take_all(site).await?;
        let failed = |n: usize| n % 7;
        let uploads = held.iter().enumerate().map(|(n, grant)| {
            let counts = json!({"passed": n, "failed": failed(n), "skipped": 0, "error": 0});
            let results = json!({"format": 1, "counts": counts, "cases": []});
            let alive = &alive;
            async move { alive.upload(n, grant, &results).await }
        });
        try_join_all(uploads).await?;
        let looks = alive.metric(LOOKS).await?;
        let begin = now();
        let pid = rustix::process::Pid::from_raw(pid).context("a process")?;
        let kill = async {
            pause(KILL_AFTER).await;
            rustix::process::kill_process(pid, rustix::process::Signal::KILL)
        };
        // An agent whose replica dies asks the next one.
        let pace = Pace::new(count(LARGE) / LARGE_ENDS_S);
        let alive = &alive;
        let ends = join_all(held.iter().enumerate().map(|(n, grant)| async move {
            pace.wait(begin, n).await;
            match site.end(n, grant).await {
                Ok(()) => Ok(()),
                Err(_) => alive.end(n, grant).await,
            }
        }));
        let (ended, killed) = tokio::join!(ends, kill);
        killed?;
        ended.into_iter().collect::<anyhow::Result<Vec<()>>>()?;
        let ended = now();
        let over = over(alive, &id).await?;
        let took_s = ended.elapsed().as_secs_f64();
        let looks = alive.metric(LOOKS).await? - looks;
        let recount = (0..LARGE).fold((0, 0), |(passed, bad), n| (passed + n, bad + failed(n)));
        Ok(format!(
            "{LARGE} shards ended within {:.2} s; the job ended {took_s:.2} s after the last one, after {looks} looks at \
             the replicas that live; it says {} passed and {} failed, the files {} and {}\n",
            (ended - begin).as_secs_f64(),
            over["cases"]["passed"],
            over["cases"]["failed"],
            recount.0,
            recount.1,
        ))
    }
}

/// Lets agents take all shards of the large job, and hold them.
async fn take_all(site: &Site) -> anyhow::Result<Vec<Grant>> {
    let mut agents: Vec<Agent> = (0..AGENTS).map(Agent::new).collect();
    let mut held = Vec::new();
    while held.len() < LARGE {
        for agent in &mut agents {
            agent.ask(site, EACH, 1).await?;
            held.append(&mut agent.take_held());
        }
    }
    Ok(held)
}

/// Returns the answer of a job once it has ended.
async fn over(site: &Site, id: &str) -> anyhow::Result<Value> {
    let begin = now();
    loop {
        let answer = site.get(&format!("/r/{id}?format=json")).await?;
        if answer["over"] == true {
            return Ok(answer);
        }
        anyhow::ensure!(
            begin.elapsed() < LARGE_TIME,
            "job {id} does not end: {answer}"
        );
        pause(Duration::from_millis(20)).await;
    }
}

impl Load<'_> {
    async fn run(&self) -> anyhow::Result<Came> {
        let sizes: Vec<usize> = (0..self.args.submits_max).map(size).collect();
        let all: usize = sizes.iter().sum();
        let wholes: Mutex<BTreeMap<String, Whole>> = Mutex::default();
        let ended = AtomicUsize::new(0);
        let submits = self.submit_all(&sizes);
        let pace = Pace::new(f64::from(self.args.ends));
        let begin = now();
        let agents = try_join_all((0..AGENTS).map(|n| {
            let (wholes, ended) = (&wholes, &ended);
            async move {
                self.serve(Agent::new(n), (begin, pace), all, wholes, ended)
                    .await
            }
        }));
        let looks = self.watch(&wholes, all, &ended);
        let (submit_ms, _, done_s) = tokio::try_join!(submits, agents, looks)?;
        Ok(Came {
            submit_ms,
            done_s,
            jobs: all,
            elasticsearch_s: 0.0,
        })
    }

    /// Sends each request at its time, regardless of the duration of the previous ones. Returns the durations, ms.
    async fn submit_all(&self, sizes: &[usize]) -> anyhow::Result<Series> {
        let pace = Pace::new(f64::from(self.args.submits));
        let begin = now();
        let all: FuturesUnordered<_> = sizes
            .iter()
            .enumerate()
            .map(|(n, size)| async move {
                pace.wait(begin, n).await;
                let body = self.body(n, *size);
                let sent = now();
                self.site.submit_at(n, &body).await?;
                anyhow::Ok(sent.elapsed().as_secs_f64() * 1_000.0)
            })
            .collect();
        let took: Vec<anyhow::Result<f64>> = all.collect().await;
        let mut series = Series::default();
        for took in took {
            series.push(took?);
        }
        Ok(series)
    }

    fn body(&self, n: usize, size: usize) -> Value {
        let job = json!({
            "suite": "bench", "my_account": format!("account{}", n % 30), "testbox": "dc",
            "need_memory": "1m", "script": "true", "bench": n,
        });
        if !self.is_sharded {
            return Value::Array(vec![job; size]);
        }
        let mut job = job;
        job["shards"] = size.into();
        json!([job])
    }

    /// Takes jobs, and ends each when its turn comes, until all have ended.
    async fn serve(
        &self,
        mut agent: Agent,
        (begin, pace): (Instant, Pace),
        all: usize,
        wholes: &Mutex<BTreeMap<String, Whole>>,
        ended: &AtomicUsize,
    ) -> anyhow::Result<()> {
        while ended.load(Ordering::Relaxed) < all {
            agent.ask(self.site, EACH, WAIT_S).await?;
            for grant in agent.take_held() {
                pace.wait(begin, ended.load(Ordering::Relaxed)).await;
                self.site.end(agent.number(), &grant).await?;
                ended.fetch_add(1, Ordering::Relaxed);
                if let Some(id) = grant.job.get("shard_of").and_then(Value::as_str) {
                    let total = grant
                        .job
                        .get("shard_total")
                        .and_then(Value::as_u64)
                        .unwrap_or(0);
                    let mut wholes = wholes.lock();
                    let whole = wholes.entry(id.to_owned()).or_insert_with(|| Whole {
                        left: usize::try_from(total).unwrap_or(0),
                        last_end: None,
                    });
                    whole.left = whole.left.saturating_sub(1);
                    whole.last_end = Some(now());
                }
            }
            agent.have_ended();
        }
        Ok(())
    }

    /// Returns the time from the end of the last shard to the end of each job, seconds.
    async fn watch(
        &self,
        wholes: &Mutex<BTreeMap<String, Whole>>,
        all: usize,
        ended: &AtomicUsize,
    ) -> anyhow::Result<Series> {
        let mut done_s = Series::default();
        loop {
            let is_last = ended.load(Ordering::Relaxed) >= all;
            let over: Vec<(String, Instant)> = {
                let wholes = wholes.lock();
                let over = wholes.iter().filter(|(_, whole)| whole.left == 0);
                over.filter_map(|(id, whole)| Some((id.clone(), whole.last_end?)))
                    .collect()
            };
            let is_empty = over.is_empty();
            for (id, since) in over {
                let path = format!("/scheduler/v1/jobs/{id}?fields=job_stage");
                if self.site.get(&path).await?["job_stage"] == "finish" {
                    done_s.push(since.elapsed().as_secs_f64());
                    wholes.lock().remove(&id);
                }
            }
            if is_last && is_empty {
                return Ok(done_s);
            }
            pause(LOOK_EVERY).await;
        }
    }
}

/// Returns the number of jobs of the nth request. Four of five have 2 to 10, and one has 50 to 200.
fn size(n: usize) -> usize {
    if n % 5 == 4 {
        50 + n * 37 % 151
    } else {
        2 + n * 7 % 9
    }
}

fn count(many: usize) -> f64 {
    f64::from(u32::try_from(many).unwrap_or(u32::MAX))
}
