//! Measures how long a job takes from its submit at one replica to a host that waits at another: `cargo run -p
//! fairlead-tests --release --bin hints` (build the workspace's binaries in release before; `ES_URL` names an
//! Elasticsearch). Prints a table; a test may not depend on how long things take, so it is none.

use std::time::Duration;

use fairlead_tests::{Http, Lab, Metrics, Scheduler, Testbox, clock, jobs, until};
use serde_json::{Value, json};

const JOBS: usize = 50;
/// Replicas tell each other of the first jobs of a list only: one behind so many is found in the store.
const UNHINTED: usize = 300;
const WARM: Duration = Duration::from_secs(12);

/// Time from the submit to the grant, and from the submit's answer to it.
struct Took {
    submit: Duration,
    answer: Duration,
}

async fn one(here: &Http, there: &Http, host: &mut Testbox, list: &Value) -> Took {
    host.turn_to(there);
    host.next_request(60);
    let submit = async {
        until("the host waits", 30, async || {
            (Metrics::of(there).await.get("fairlead_waiters") >= 1.0).then_some(())
        })
        .await;
        let begin = clock::now();
        here.submit(list).await;
        (begin, clock::now())
    };
    let grant = async { (host.ask_again().await, clock::now()) };
    let ((answer, granted), (begin, answered)) = tokio::join!(grant, submit);
    host.finish(&answer.jobs[0]).await;
    Took {
        submit: granted - begin,
        answer: granted.saturating_duration_since(answered),
    }
}

async fn measure(https: &[Http], list: &Value, count: usize) -> Vec<Took> {
    let mut host = Testbox::dc(&https[0], "host-1", 2 << 10);
    let mut all = Vec::new();
    for n in 0..count {
        let (here, there) = (&https[n % https.len()], &https[(n + 1) % https.len()]);
        all.push(one(here, there, &mut host, list).await);
    }
    all
}

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn print(what: &str, all: &[Took]) {
    let at = |pick: fn(&Took) -> Duration, permille: usize| {
        let mut times: Vec<Duration> = all.iter().map(pick).collect();
        times.sort_unstable();
        let at = (times.len() * permille / 1000).min(times.len().saturating_sub(1));
        times.get(at).map_or(0, Duration::as_millis)
    };
    let row = |from: &str, pick: fn(&Took) -> Duration| {
        let (n, p50, p90, most) = (all.len(), at(pick, 500), at(pick, 900), at(pick, 1000));
        println!("| {what}, from the {from} | {n} | {p50} | {p90} | {most} |");
    };
    row("submit", |took| took.submit);
    row("submit's answer", |took| took.answer);
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
async fn main() {
    let lab = Lab::new();
    let replicas = lab.schedulers(3, &[]).await;
    let https: Vec<Http> = replicas.iter().map(Scheduler::http).collect();
    let hinted = jobs::dc("alice");
    let elsewhere = jobs::with(jobs::dc("bob"), &json!({"target_machines": ["nowhere"]}));
    let mut list = vec![elsewhere; UNHINTED];
    list.push(jobs::dc("alice"));
    // Connections and caches are warm after some, and a replica takes no hints in its first ten seconds.
    let begin = clock::now();
    while begin.elapsed() < WARM {
        measure(&https, &hinted, 6).await;
    }
    println!("| | jobs | p50 ms | p90 ms | longest ms |");
    println!("|---|---|---|---|---|");
    print("hinted", &measure(&https, &hinted, JOBS).await);
    print(
        "not hinted",
        &measure(&https, &Value::Array(list), JOBS).await,
    );
}
