//! Measures how testbox time divides between two accounts of weights 3 and 1, over real processes:
//! `cargo run -p fairlead-tests --release --bin shares [elasticsearch]` (build the workspace's binaries
//! in release before). Prints the figure; it takes some minutes, so it is no test.

use fairlead_tests::{Agent, Http, Scheduler, Store, jobs, until};
use serde_json::{Value, json};

/// Of each account.
const JOBS: usize = 450;
/// How long the accounts' jobs run, seconds: not the same, so that counting jobs would show.
const SECONDS: [(&str, u64, &str); 2] = [("heavy", 3, "2"), ("light", 1, "4")];
const SLOTS: u64 = 20;

async fn all_jobs(http: &Http) -> Vec<Value> {
    let mut all = Vec::new();
    let mut after = String::new();
    loop {
        let page = http
            .get(&format!("/scheduler/v1/jobs?limit=500{after}"))
            .await
            .json();
        all.extend(page["jobs"].as_array().cloned().unwrap_or_default());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return all,
        }
    }
}

/// Milliseconds of testbox time inside a window.
fn busy(list: &[Value], account: &str, from: u64, to: u64) -> u64 {
    let inside = |job: &&Value| job["my_account"] == account;
    let time = |job: &Value| {
        let at = |field: &str| job[field].as_u64().filter(|&ms| ms > 0);
        let begin = at("dispatch_ms").unwrap_or(to).max(from);
        at("end_ms").unwrap_or(to).min(to).saturating_sub(begin)
    };
    list.iter().filter(inside).map(time).sum()
}

#[tokio::main]
#[expect(
    clippy::print_stdout,
    reason = "the figure is what this program is for"
)]
async fn main() {
    let store = match std::env::args().nth(1).as_deref() {
        Some("elasticsearch") => Store::Elasticsearch,
        _ => Store::Embedded,
    };
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    for (account, weight, seconds) in SECONDS {
        let path = format!("/scheduler/v1/queues/{account}");
        assert_eq!(
            http.post(&path, &json!({"weight": weight})).await.status,
            200
        );
        let script = json!({"script": format!("sleep {seconds}")});
        http.submit(&jobs::times(JOBS, &jobs::with(jobs::dc(account), &script)))
            .await;
    }
    let memory = format!("{SLOTS}g");
    let _agent = Agent::start(
        &scheduler.url(),
        "server-1",
        &["--kind", "vm,dc", "--memory", &memory],
    );
    until("one account has nothing waiting", 900, async || {
        let waiting = async |account: &str| {
            let path = format!("/scheduler/v1/jobs?stage=submit&account={account}&limit=1");
            http.get(&path).await.json()["total"].as_u64().unwrap_or(0)
        };
        (waiting("heavy").await == 0 || waiting("light").await == 0).then_some(())
    })
    .await;
    let list = all_jobs(&http).await;
    let dispatched = |account: &str| {
        let of = list.iter().filter(|job| job["my_account"] == account);
        let times: Vec<_> = of
            .filter_map(|job| job["dispatch_ms"].as_u64().filter(|&ms| ms > 0))
            .collect();
        (
            times.iter().min().copied().unwrap_or(0),
            times.iter().max().copied().unwrap_or(0),
        )
    };
    let (heavy, light) = (dispatched("heavy"), dispatched("light"));
    let (from, to) = (heavy.0.max(light.0), heavy.1.min(light.1));
    let (heavy, light) = (
        busy(&list, "heavy", from, to),
        busy(&list, "light", from, to),
    );
    let permille = heavy * 1000 / (heavy + light).max(1);
    println!("window {} s, {SLOTS} slots", (to - from) / 1000);
    println!("heavy (weight 3): {} s of testbox time", heavy / 1000);
    println!("light (weight 1): {} s of testbox time", light / 1000);
    println!(
        "heavy has {permille} of 1000, wanted 750; within 5 %: {}",
        (712..=788).contains(&permille)
    );
}
