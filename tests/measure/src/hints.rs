//! How long a job takes from its submit at one replica to a host that waits at another.

use std::time::Duration;

use fairlead_tests::{Http, Testbox, clock, jobs};
use serde_json::{Value, json};

use crate::{
    lab::{Replicas, waiters},
    table::{head, permille_ms, row},
};

/// Index of a job beyond the hints. Replicas only tell each other the first jobs of a list; later ones are found in the
/// store.
const UNHINTED: usize = 300;
const WARM: Duration = Duration::from_secs(12);

/// Time from a submit at one replica to a host that waits at another
#[derive(Debug, clap::Args)]
pub(crate) struct Hints {
    /// Number of jobs to time, with a hint and without
    #[arg(long, value_name = "N", default_value_t = 50)]
    jobs: usize,
}

/// Time from the submit to the grant, and from the submit's answer to the grant.
struct Took {
    submit: Duration,
    answer: Duration,
}

async fn one(here: &Http, there: &Http, host: &mut Testbox, list: &Value) -> Took {
    host.turn_to(there);
    host.next_request(60);
    let submit = async {
        waiters(std::slice::from_ref(there), 1.0, 30).await;
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

fn print(what: &str, all: &[Took]) {
    let print = |from: &str, pick: fn(&Took) -> Duration| {
        let times: Vec<Duration> = all.iter().map(pick).collect();
        let at = |nth| permille_ms(&times, nth);
        let what = format!("{what}, from the {from}");
        row(&[&what, &all.len(), &at(500), &at(900), &at(1_000)]);
    };
    print("submit", |took| took.submit);
    print("submit's answer", |took| took.answer);
}

impl Hints {
    pub(crate) async fn measure(&self) {
        let lab = Replicas::start(3, &[]).await;
        let hinted = jobs::dc("alice");
        let elsewhere = jobs::with(jobs::dc("bob"), &json!({"target_machines": ["nowhere"]}));
        let mut list = vec![elsewhere; UNHINTED];
        list.push(jobs::dc("alice"));
        // Connections and caches are warm after some requests, and a replica takes no hints in its first ten seconds.
        let begin = clock::now();
        while begin.elapsed() < WARM {
            measure(&lab.https, &hinted, 6).await;
        }
        head(&["", "jobs", "p50 ms", "p90 ms", "longest ms"]);
        print("hinted", &measure(&lab.https, &hinted, self.jobs).await);
        let unhinted = measure(&lab.https, &Value::Array(list), self.jobs).await;
        print("not hinted", &unhinted);
    }
}
