//! How testbox time divides between two accounts of weights 3 and 1, over real processes.

use fairlead_tests::{
    Agent, Http, Scheduler, Store,
    history::{all_jobs, at, busy_ms},
    jobs, until,
};
use serde_json::{Value, json};

use crate::table::{head, row, say};

/// Accounts and weights.
const WEIGHTS: [(&str, u64); 2] = [("heavy", 3), ("light", 1)];
/// Memory of every host, and of a dc job, GB.
const HOST_GB: u64 = 20;
const DC_GB: u64 = 4;
const HOSTS: [(&str, &str); 3] = [("box-1", "hw"), ("box-2", "hw"), ("server-1", "vm,dc")];
/// Time limit for all jobs, seconds.
const LIMIT_S: u64 = 1_800;

/// How testbox time divides between two accounts of weights 3 and 1, with real agents
#[derive(Debug, clap::Args)]
pub(crate) struct Shares {
    /// Use the Elasticsearch of `ES_URL` instead of the embedded store
    #[arg(long)]
    elasticsearch: bool,
    /// Jobs of each account for the two hw machines
    #[arg(long, value_name = "N", default_value_t = 110)]
    hw_jobs: usize,
    /// Jobs of each account for the host of virtual machines and containers
    #[arg(long, value_name = "N", default_value_t = 260)]
    dc_jobs: usize,
    /// How long each job runs, seconds
    #[arg(long, value_name = "S", default_value_t = 3)]
    seconds: u64,
}

/// Returns a job's part of its host: all of it, or its memory.
fn share_gb(job: &Value) -> u64 {
    if job["testbox"] == "hw" {
        HOST_GB
    } else {
        DC_GB
    }
}

/// Returns the testbox time inside a window, GB x milliseconds.
fn busy(list: &[Value], account: &str, from: u64, to: u64) -> u64 {
    list.iter()
        .filter(|job| job["my_account"] == account)
        .map(|job| busy_ms(job, from, to) * share_gb(job))
        .sum()
}

/// Returns the time during which every account had jobs waiting for every kind of testbox.
fn window(list: &[Value]) -> (u64, u64) {
    let (mut from, mut to) = (0, u64::MAX);
    for (account, _) in WEIGHTS {
        for testbox in ["hw", "dc"] {
            let of = list
                .iter()
                .filter(|job| job["my_account"] == account && job["testbox"] == testbox);
            let times: Vec<u64> = of.filter_map(|job| at(job, "dispatch_ms")).collect();
            from = from.max(times.iter().min().copied().unwrap_or(0));
            to = to.min(times.iter().max().copied().unwrap_or(0));
        }
    }
    (from, to.max(from))
}

impl Shares {
    /// Submits the jobs of both accounts.
    async fn submit(&self, http: &Http) {
        for (account, weight) in WEIGHTS {
            let path = format!("/scheduler/v1/queues/{account}");
            let reply = http.post(&path, &json!({"weight": weight})).await;
            assert_eq!(reply.status, 200, "{}", reply.text);
            let script = format!("sleep {}", self.seconds);
            let script = json!({"script": script, "need_memory": format!("{DC_GB}g")});
            let dc = jobs::with(jobs::dc(account), &script);
            let hw = jobs::with(dc.clone(), &json!({"testbox": "hw"}));
            http.submit(&jobs::times(self.dc_jobs, &dc)).await;
            http.submit(&jobs::times(self.hw_jobs, &hw)).await;
        }
    }

    pub(crate) async fn measure(&self) {
        let store = if self.elasticsearch {
            Store::Elasticsearch
        } else {
            Store::Embedded
        };
        let scheduler = Scheduler::start(store).await;
        let http = scheduler.http();
        self.submit(&http).await;
        let memory = format!("{HOST_GB}g");
        let _agents = HOSTS.map(|(name, kind)| {
            let words = ["--kind", kind, "--memory", &memory];
            Agent::start(&scheduler.url(), name, &words)
        });
        let all = WEIGHTS.len() * (self.hw_jobs + self.dc_jobs);
        until("all jobs have ended", LIMIT_S, async || {
            let path = "/scheduler/v1/jobs?stage=finish&limit=0";
            let list = http.get(path).await.json();
            (list["total"].as_u64() == Some(all as u64)).then_some(())
        })
        .await;
        print(&all_jobs(&http).await, all);
    }
}

fn print(list: &[Value], all: usize) {
    let is_good = |job: &&Value| job["job_health"] == "success" && job["attempt"] == 1;
    let good = list.iter().filter(is_good).count();
    let (from, to) = window(list);
    let got = WEIGHTS.map(|(account, _)| busy(list, account, from, to));
    say(&format!(
        "{good} of {all} jobs succeeded at their first attempt"
    ));
    let seconds = (to - from) / 1_000;
    say(&format!(
        "both accounts waited for both kinds of testbox for {seconds} s"
    ));
    let whole = (to - from) * HOST_GB * HOSTS.len() as u64;
    let busy = got.iter().sum::<u64>() * 1_000 / whole.max(1);
    say(&format!("hosts busy: {busy} of 1000"));
    head(&["account", "weight", "host seconds"]);
    for ((account, weight), got) in WEIGHTS.into_iter().zip(got) {
        row(&[&account, &weight, &(got / (HOST_GB * 1_000))]);
    }
    let permille = got[0] * 1_000 / got.iter().sum::<u64>().max(1);
    let is_within = (712..=788).contains(&permille);
    say(&format!(
        "heavy has {permille} of 1000, wanted 750; within 5 %: {is_within}"
    ));
}
