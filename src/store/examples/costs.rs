//! Measures what the periodic reads of replicas cost an Elasticsearch with many waiting jobs.
//!
//! `cargo run --release -p fairlead-store --example costs -- URL,URL… [JOBS] [SECONDS]`
//!
//! It makes 1,000,000 waiting jobs of 300 accounts of very different sizes and 500 named machines, under the prefix
//! `costs-JOBS`. They stay there for the next run. It measures for 20 seconds each: three replicas that poll once a
//! second while nothing changes, the same with five changes a second, and finds. It is no test: it asserts only work,
//! never time.
//!
//! Results with two cores shared with other builds (load 8), and Elasticsearch 9.2.0 of one node with a heap of 512 MB
//! and one shard:
//!
//! - Three replicas use 2.4 % of a core in Elasticsearch when nothing changes, and 16 % with five changes a second.
//! - A find over 100,000 matching jobs of 300 accounts takes 13 ms of processor time for the best 1, 2 or 4 of each
//!   account. It takes 38 ms for the best 16, and 116 ms for the best 64.
//! - A find for a named machine takes 3 ms, and a find without results 1.5 ms.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement: it may panic, prints, and asks the clock and its arguments"
)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use fairlead_job::{JobId, Spec, Stage, TboxType};
use fairlead_store::{
    ChangeRanges, Changes, ElasticConfig, ElasticStore, Find, JobState, JobStore, NewJob, Patch,
    Pull, PullBy, StatePatch,
};
use futures_util::{StreamExt, stream};
use serde_json::Value;

/// Jobs of one submit.
const BATCH: usize = 500;
/// Replicas that poll.
const REPLICAS: usize = 3;
/// Changes a second while some are made.
const TRICKLE: usize = 5;

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let urls: Vec<String> = args.next().unwrap().split(',').map(str::to_owned).collect();
    let jobs: usize = args.next().map_or(1_000_000, |text| text.parse().unwrap());
    let seconds: usize = args.next().map_or(20, |text| text.parse().unwrap());
    let cpu = Cpu(urls[0].clone());
    let config = ElasticConfig {
        urls,
        index_prefix: format!("costs-{jobs}"),
        ..ElasticConfig::default()
    };
    let mut replicas = Vec::new();
    for _ in 0..REPLICAS {
        let store = ElasticStore::open(config.clone()).await.unwrap();
        replicas.push(Arc::new(store));
    }
    let store = &replicas[0];
    println!("{}", store.health().name);
    if store.counts().await.unwrap().total == 0 {
        load(store, jobs).await;
    }
    let counts = store.counts().await.unwrap();
    println!(
        "{} wait, of {} accounts, under {} host keys",
        counts.total,
        counts.accounts.len(),
        counts.host_keys.len()
    );
    one_by_one(store, &cpu).await;
    poll(&replicas, &cpu, seconds, 0).await;
    poll(&replicas, &cpu, seconds, TRICKLE).await;
    finds(store, &cpu).await;
}

/// The processor time that the cluster's nodes have used.
struct Cpu(String);

impl Cpu {
    async fn used_ms(&self) -> u64 {
        self.read_ms().await;
        // A node keeps its numbers for a second.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        self.read_ms().await
    }

    async fn read_ms(&self) -> u64 {
        let path = "_nodes/stats/process?filter_path=nodes.*.process.cpu.total_in_millis";
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = client.get(format!("{}/{path}", self.0)).send().await;
        let stats: Value = serde_json::from_str(&answer.unwrap().text().await.unwrap()).unwrap();
        let nodes = stats["nodes"].as_object().unwrap();
        let used = |node: &Value| node["process"]["cpu"]["total_in_millis"].as_u64();
        nodes.values().map(|node| used(node).unwrap()).sum()
    }

    /// Runs it for some seconds; prints wall and processor time of each.
    async fn of<T>(&self, what: &str, mut work: impl AsyncFnMut() -> T) -> T {
        let mut last = work().await;
        let before = self.used_ms().await;
        let start = Instant::now();
        let mut times: u32 = 0;
        while times < 5 || start.elapsed() < Duration::from_secs(4) {
            last = work().await;
            times += 1;
        }
        let wall = start.elapsed() / times;
        let used = self.used_ms().await - before;
        println!(
            "  {what}: {wall:.1?} each, {:.1} ms of processor",
            per(used, u64::from(times))
        );
        last
    }
}

fn per(sum: u64, times: u64) -> f64 {
    let whole = |n: u64| f64::from(u32::try_from(n).unwrap());
    whole(sum) / whole(times)
}

async fn load(store: &Arc<ElasticStore>, jobs: usize) {
    let start = Instant::now();
    let batches = (0..jobs).step_by(BATCH).map(|first| {
        let batch: Vec<NewJob> = (first..jobs.min(first + BATCH)).map(job).collect();
        let store = Arc::clone(store);
        async move { store.submit(batch).await }
    });
    let mut sent = stream::iter(batches).buffer_unordered(4);
    while let Some(results) = sent.next().await {
        assert!(results.iter().all(Result::is_ok));
    }
    store.refresh().await.unwrap();
    println!("{jobs} jobs submitted in {:.0?}", start.elapsed());
}

async fn one_by_one(store: &Arc<ElasticStore>, cpu: &Cpu) {
    println!("nothing changes:");
    cpu.of("counts", async || store.counts().await.unwrap())
        .await;
    let since = store.change_mark().await.unwrap();
    let asked = [true, false].map(|waiting| Changes {
        since: since.clone(),
        within: ChangeRanges::new(),
        waiting,
        limit: 1_000,
    });
    cpu.of("changes", async || {
        store.changes(&asked).await.unwrap();
    })
    .await;
    cpu.of("a mark", async || store.change_mark().await.unwrap())
        .await;
}

/// Every replica counts and reads changes once a second; meanwhile `trickle` jobs change a second.
async fn poll(replicas: &[Arc<ElasticStore>], cpu: &Cpu, seconds: usize, trickle: usize) {
    let store = &replicas[0];
    let mut free = first_jobs(store, trickle * seconds).await;
    store.refresh().await.unwrap();
    let mut marks = Vec::new();
    for replica in replicas {
        marks.push(replica.change_mark().await.unwrap());
    }
    let (before, mut read) = (cpu.used_ms().await, 0);
    let mut tick = tokio::time::interval(Duration::from_secs(1) / u32::try_from(REPLICAS).unwrap());
    for turn in 0..seconds * REPLICAS {
        tick.tick().await;
        if turn % REPLICAS == 0 {
            let patches = free.split_off(free.len() - trickle);
            let results = store.patch(patches).await;
            assert!(results.iter().all(Result::is_ok));
        }
        let (replica, mark) = (&replicas[turn % REPLICAS], &mut marks[turn % REPLICAS]);
        replica.counts().await.unwrap();
        let asked = [true, false].map(|waiting| Changes {
            since: mark.clone(),
            within: ChangeRanges::new(),
            waiting,
            limit: 1_000,
        });
        for page in replica.changes(&asked).await.unwrap() {
            read += page.jobs.len();
            for (place, seq) in page.mark.0 {
                let known = mark.0.entry(place).or_default();
                *known = seq.max(*known);
            }
        }
    }
    let used = cpu.used_ms().await - before;
    println!(
        "{REPLICAS} replicas that poll once a second, {trickle} changes a second ({read} read): \
         {:.1} % of one core",
        per(used, u64::try_from(seconds).unwrap()) / 10.0
    );
}

/// A change of priority of each of the first jobs: they go on waiting.
async fn first_jobs(store: &Arc<ElasticStore>, many: usize) -> Vec<Patch> {
    let ids: Vec<JobId> = (0..many).map(|n| job(n).state.job_id).collect();
    let jobs = store.get(&ids).await.unwrap();
    let patch = |before: fairlead_store::StoredJob| {
        let mut after = before.state.clone();
        after.priority = 1 - after.priority;
        Patch {
            id: after.job_id,
            expect: before.version,
            set: StatePatch::between(&before.state, &after),
        }
    };
    jobs.into_iter().flatten().map(patch).collect()
}

async fn finds(store: &Arc<ElasticStore>, cpu: &Cpu) {
    println!("finds:");
    let any = Find {
        host: "h1".to_owned(),
        keys: vec!["vm.x86_64".to_owned(), "vm.x86_64@m7".to_owned()],
        arch: "x86_64".to_owned(),
        free_memory_mb: 3_000,
        free_cpus: None,
        tags: vec!["tag-1".to_owned()],
        devices: vec![],
        accounts: vec![],
        limit: 1,
        pairs_max: u32::MAX,
        after: None,
    };
    let machine = Find {
        keys: vec!["hw@m7".to_owned()],
        ..any.clone()
    };
    let nothing = Find {
        free_memory_mb: 1,
        free_cpus: None,
        ..any.clone()
    };
    for (what, offer) in [
        ("of any", any),
        ("of one machine", machine),
        ("of nothing", nothing),
    ] {
        for limit in [1, 2, 4, 16, 64] {
            let offer = Find {
                limit,
                ..offer.clone()
            };
            let ask = async || {
                store
                    .find(std::slice::from_ref(&offer))
                    .await
                    .unwrap()
                    .remove(0)
            };
            let found = cpu.of(&format!("{what}, limit {limit}"), ask).await;
            println!("    {} jobs, more: {}", found.jobs.len(), found.more);
        }
    }
    let all = Pull {
        by: PullBy::All,
        limit: 1_000,
        after: None,
    };
    cpu.of("a pull of 1,000", async || {
        store.pull(std::slice::from_ref(&all)).await.unwrap();
    })
    .await;
}

/// A waiting job; number `n` says all of it.
fn job(n: usize) -> NewJob {
    let number = u64::try_from(n).unwrap();
    // Well mixed, so that no two properties go together.
    let mixed = usize::try_from((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33).unwrap();
    let (first, second) = (mixed % 300, mixed / 300 % 300);
    // The larger its number, the smaller the account.
    let account = format!("account-{}", first % (second + 1));
    let machine = mixed / 7 % 500;
    let host_keys = match mixed / 11 % 10 {
        0..5 => vec!["vm.x86_64".to_owned()],
        5..7 => vec!["dc.x86_64".to_owned()],
        7 => vec!["hw.x86_64".to_owned()],
        8 => vec!["dc.aarch64".to_owned()],
        _ => vec![
            format!("hw@m{machine}"),
            format!("hw@m{}", (machine + 1) % 500),
        ],
    };
    let tags: Vec<String> = (0..mixed / 13 % 3).map(|t| format!("tag-{t}")).collect();
    let state = JobState {
        ready: true,
        ready_ms: 1_795_228_571_000,
        principal: account.clone(),
        queue: account.clone(),
        account,
        class: match mixed / 17 % 1_000 {
            0 => 9,
            1..50 => 1,
            _ => 3,
        },
        submit_ms: 1_795_228_571_000 + number,
        submit_id: format!("s-{}", n / 100),
        suite: "hackbench".to_owned(),
        testbox: "vm-2p8g".to_owned(),
        tbox_group: "vm-2p8g".to_owned(),
        host_keys,
        memory_mb: 1_000 * u32::try_from(1 + mixed / 19 % 5).unwrap(),
        tags_n: u16::try_from(tags.len()).unwrap(),
        tags,
        timeout_s: 3600,
        retry_lost_left: 1,
        stage: Stage::Submit,
        ..JobState::blank(JobId::new(2_611_210_236_110_000_000 + number), TboxType::Vm)
    };
    let mut body = Spec::new();
    body.insert("script".to_owned(), "true".into());
    let body = body.into();
    NewJob { state, body }
}
