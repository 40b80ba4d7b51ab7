//! Measures how many submits and claims a second a store takes, and the cost of counts, pulls and finds.
//!
//! `cargo run --release -p fairlead-store --example rates -- [JOBS] [URL,URL…]`
//!
//! It makes 100,000 jobs by default, in the embedded store in its own folder, or in Elasticsearch. A job has 600 bytes
//! of state and a body of 2 KB. There are 300 accounts, 20 shapes and 100 host keys. It is no test: it asserts only
//! work, never time. Its indices in Elasticsearch (`rates-*`) stay there.
//!
//! Results with two cores shared with other builds (load 8), and SQLite on ext4:
//!
//! - 11,000 submits a second.
//! - Claims a second: 1,100 one by one, 5,600 with 64 in flight, 8,400 in batches of 100, 10,400 in batches of 500.
//! - With 1,000,000 waiting jobs, counts take 0.1 ms, a pull of 1,000 takes 5 ms, and a find 140 ms.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement: it may panic, prints, and asks the clock and its arguments"
)]

use std::{sync::Arc, time::Instant};

use fairlead_job::{JobId, Spec, Stage, TboxType};
use fairlead_store::{
    ClaimFields, ElasticConfig, ElasticStore, EmbeddedStore, Find, JobState, JobStore, NewJob,
    Patch, Pull, PullBy, Search, StatePatch, Version,
};

/// Jobs of one submit.
const BATCH: usize = 500;
/// Claims of one patch, and how many such are in flight.
const CLAIMS: [(usize, usize); 4] = [(1, 1), (1, 64), (100, 2), (500, 4)];

type Store = Arc<dyn JobStore>;

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let jobs: usize = args.next().map_or(100_000, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let store: Store = match args.next() {
        None => Arc::new(EmbeddedStore::open(dir.path()).unwrap()),
        Some(urls) => {
            let config = ElasticConfig {
                urls: urls.split(',').map(str::to_owned).collect(),
                index_prefix: format!("rates-{}", std::process::id()),
                ..ElasticConfig::default()
            };
            Arc::new(ElasticStore::open(config).await.unwrap())
        }
    };
    println!("{}, {jobs} jobs", store.health().name);
    let mut free = submit(&store, jobs).await;
    reads(&store).await;
    for (batch, in_flight) in CLAIMS {
        claim(&store, &mut free, batch, in_flight).await;
    }
    reads(&store).await;
    drop(store);
    if dir.path().join("fairlead.db").exists() {
        let start = Instant::now();
        EmbeddedStore::open(dir.path()).unwrap();
        println!("opened again in {:.1?}", start.elapsed());
    }
}

async fn submit(store: &Store, jobs: usize) -> Vec<(JobId, Version)> {
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    let mut free = Vec::with_capacity(jobs);
    for first in (0..jobs).step_by(BATCH) {
        if tasks.len() == 4 {
            free.extend(tasks.join_next().await.unwrap().unwrap());
        }
        let store = Arc::clone(store);
        let batch: Vec<NewJob> = (first..jobs.min(first + BATCH)).map(job).collect();
        tasks.spawn(async move {
            let ids: Vec<JobId> = batch.iter().map(|job| job.state.job_id).collect();
            let created = store.submit(batch).await;
            let versions = created.into_iter().map(|one| one.unwrap().version);
            ids.into_iter().zip(versions).collect::<Vec<_>>()
        });
    }
    while let Some(done) = tasks.join_next().await {
        free.extend(done.unwrap());
    }
    assert_eq!(free.len(), jobs);
    rate("submits in batches of 500, 4 in flight", jobs, start);
    store.refresh().await.unwrap();
    free
}

async fn claim(store: &Store, free: &mut Vec<(JobId, Version)>, batch: usize, in_flight: usize) {
    let many = free
        .len()
        .min((batch * in_flight * 100).clamp(1_000, 20_000));
    let picked = free.split_off(free.len() - many);
    let batches: Vec<_> = picked.chunks(batch).map(<[_]>::to_vec).collect();
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for batch in batches {
        if tasks.len() == in_flight {
            tasks.join_next().await.unwrap().unwrap();
        }
        let store = Arc::clone(store);
        tasks.spawn(async move {
            let patches = batch.into_iter().map(|(id, expect)| Patch {
                id,
                expect,
                set: StatePatch::claim(&ClaimFields {
                    host: "host-1",
                    host_group: "rack-1",
                    host_memory_mb: 65_536,
                    host_cpus: 0,
                    host_class: "",
                    session: "8c5b0a52-52f0-4e5e-9d3c-4f4a1c6f2b77",
                    request: 7,
                    claim_token: &id.to_string(),
                    replica: "r1",
                    dispatch_ms: 1_795_228_571_000,
                }),
            });
            let results = store.patch(patches.collect()).await;
            assert!(results.iter().all(Result::is_ok));
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    rate(
        &format!("claims in batches of {batch}, {in_flight} in flight"),
        many,
        start,
    );
}

async fn reads(store: &Store) {
    store.refresh().await.unwrap();
    let start = Instant::now();
    let counts = store.counts().await.unwrap();
    println!("  counts: {} wait, {:.1?}", counts.total, start.elapsed());
    let pulls: Vec<Pull> = (0..300)
        .map(|n| Pull {
            by: PullBy::Account(format!("account-{n}")),
            limit: 4,
            after: None,
        })
        .collect();
    timed("300 pulls of 4", store.pull(&pulls)).await;
    let all = Pull {
        by: PullBy::All,
        limit: 1_000,
        after: None,
    };
    timed("one pull of 1,000", store.pull(&[all])).await;
    let offer = Find {
        host: "h1".to_owned(),
        keys: vec!["vm.x86_64".to_owned(), "vm@7".to_owned()],
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
    timed("a find", store.find(std::slice::from_ref(&offer))).await;
    let none = Find {
        free_memory_mb: 1,
        free_cpus: None,
        ..offer
    };
    timed("a find of nothing", store.find(&[none])).await;
    let search = Search {
        stages: vec![Stage::Submit],
        limit: 50,
        ..Search::default()
    };
    timed("a search", store.search(&search)).await;
}

async fn timed<T>(what: &str, work: impl Future<Output = Result<T, fairlead_store::StoreError>>) {
    let start = Instant::now();
    work.await.unwrap();
    println!("  {what}: {:.1?}", start.elapsed());
}

fn rate(what: &str, many: usize, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    let many = f64::from(u32::try_from(many).unwrap());
    println!("{what}: {:.0} a second", many / seconds);
}

fn job(n: usize) -> NewJob {
    let number = u64::try_from(n).unwrap();
    let shape = u32::try_from(n % 20).unwrap();
    let tags: Vec<String> = (0..shape % 3).map(|t| format!("tag-{t}")).collect();
    let account = format!("account-{}", n % 300);
    let state = JobState {
        ready: true,
        ready_ms: 1_795_228_571_000,
        principal: account.clone(),
        queue: account.clone(),
        account,
        class: 3,
        submit_ms: 1_795_228_571_000 + number,
        submit_id: format!("s-{}", n / 100),
        suite: "hackbench".to_owned(),
        category: "benchmark".to_owned(),
        params: "nr_threads=8 mode=process".to_owned(),
        testbox: "vm-2p8g".to_owned(),
        tbox_group: "vm-2p8g".to_owned(),
        host_keys: vec!["vm.x86_64".to_owned(), format!("vm@{}", n % 99)],
        memory_mb: 1_000 * (1 + shape % 5),
        tags_n: u16::try_from(tags.len()).unwrap(),
        tags,
        timeout_s: 3600,
        retry_lost_left: 1,
        ..JobState::blank(JobId::new(2_611_210_236_110_000_000 + number), TboxType::Vm)
    };
    let mut body = Spec::new();
    body.insert(
        "script".to_owned(),
        "echo 0123456789abcdef\n".repeat(90).into(),
    );
    let body = body.into();
    NewJob { state, body }
}
