//! How testbox time divides between queues over three replicas.
//!
//! Ten machines of one kind ask three replicas, 7, 2 and 1 of them. Five queues of weights 50, 30, 20, 10 and 10
//! have jobs waiting all the time, all of one suite. The jobs of one queue are 300 times as short as the others',
//! then 300 times as long: whoever learned lengths by suite is wrong by that.

use std::time::Duration;

use fairlead_tests::{
    Http, Testbox,
    history::{all_jobs, at, busy_ms},
    jobs,
};
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    lab::{Replicas, pass, submit_all},
    table::{head, row, say},
};

/// Number of machines that ask each replica.
const MACHINES: [usize; 3] = [7, 2, 1];
const QUEUES: [(&str, u64); 5] = [
    ("first", 50),
    ("second", 30),
    ("third", 20),
    ("fourth", 10),
    ("fifth", 10),
];
/// Queue whose jobs differ from those of the others.
const ODD: &str = "second";
/// Time between the first dispatch and the start of a window, ms.
const LEAD_IN_MS: u64 = 30_000;

/// How testbox time divides between five queues, over machines that ask three replicas
#[derive(Debug, clap::Args)]
pub(crate) struct SharesReplicas {
    /// Length of the windows, percent of 4 and 10 minutes
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100))]
    window: u64,
}

/// Lengths of jobs and of the window.
struct Case {
    words: &'static str,
    odd_ms: u64,
    others_ms: u64,
    window_ms: u64,
    /// Minimum overhead of a dispatch, ms. It determines the number of jobs at the start, so that none run out.
    gap_ms: u64,
}

const CASES: [Case; 2] = [
    Case {
        words: "jobs of the second queue are 300 times as short",
        odd_ms: 20,
        others_ms: 6_000,
        window_ms: 240_000,
        gap_ms: 10,
    },
    Case {
        words: "jobs of the second queue are 300 times as long",
        odd_ms: 30_000,
        others_ms: 100,
        window_ms: 600_000,
        gap_ms: 20,
    },
];

impl Case {
    fn length_ms(&self, queue: &str) -> u64 {
        if queue == ODD {
            self.odd_ms
        } else {
            self.others_ms
        }
    }

    /// Returns a number of jobs that is enough for the whole time, even if the queue got twice its share.
    fn count(&self, queue: &str, weight: u64) -> usize {
        let machines: usize = MACHINES.iter().sum();
        let all: u64 = QUEUES.iter().map(|(_, weight)| weight).sum();
        let time_ms = (self.window_ms + 2 * LEAD_IN_MS) * machines as u64 * weight / all;
        let each_ms = self.length_ms(queue) + self.gap_ms;
        usize::try_from(2 * time_ms / each_ms).unwrap_or(0) + 2 * machines
    }
}

async fn submit(https: &[Http], case: &Case) {
    for (queue, weight) in QUEUES {
        let path = format!("/scheduler/v1/queues/{queue}");
        let reply = https[0].post(&path, &json!({"weight": weight})).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let length = json!({"length_ms": case.length_ms(queue)});
        let job = jobs::with(jobs::hw(queue), &length);
        submit_all(&https[..1], case.count(queue, weight), |_| job.clone()).await;
    }
}

/// Runs a machine that takes the jobs' own run times, until it is told to stop.
async fn one_machine(http: Http, host: String, over: watch::Receiver<bool>) {
    let mut machine = Testbox::hw(&http, &host);
    while !*over.borrow() {
        for grant in machine.ask(5).await {
            let length = Duration::from_millis(grant.job["length_ms"].as_u64().unwrap_or(0));
            let reply = machine.report(&grant, "job_stage=running").await;
            assert_eq!(reply.status, 200, "{}", reply.text);
            pass(length).await;
            machine.finish_running(&grant).await;
        }
    }
}

async fn run(case: &Case) -> Vec<Value> {
    let lab = Replicas::start(MACHINES.len(), &[]).await;
    let https = &lab.https;
    submit(https, case).await;
    let (over, look) = watch::channel(false);
    let mut running = JoinSet::new();
    for (replica, (http, n)) in https.iter().zip(MACHINES).enumerate() {
        for n in 0..n {
            let host = format!("machine-{replica}-{n}");
            running.spawn(one_machine(http.clone(), host, look.clone()));
        }
    }
    pass(Duration::from_millis(case.window_ms + 2 * LEAD_IN_MS)).await;
    over.send_replace(true);
    running.join_all().await;
    let mut all = all_jobs(&https[0]).await;
    all.retain(|job| at(job, "dispatch_ms").is_some());
    all
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds and weights are far below that"
)]
fn print(case: &Case, ran: &[Value]) {
    let first = ran.iter().filter_map(|job| at(job, "dispatch_ms")).min();
    let from = first.unwrap_or(0) + LEAD_IN_MS;
    let to = from + case.window_ms;
    let of = |queue: &str| -> (usize, f64) {
        let times = ran.iter().filter(|job| job["queue"] == queue);
        let times: Vec<u64> = times
            .map(|job| busy_ms(job, from, to))
            .filter(|ms| *ms > 0)
            .collect();
        (times.len(), times.iter().sum::<u64>() as f64 / 1000.0)
    };
    let whole: f64 = QUEUES.iter().map(|(queue, _)| of(queue).1).sum();
    let weights: u64 = QUEUES.iter().map(|(_, weight)| weight).sum();
    let machines: usize = MACHINES.iter().sum();
    let most = machines as f64 * case.window_ms as f64 / 1000.0;
    say(&format!(
        "\n{}: {:.1} % of the machines' time was busy\n",
        case.words,
        whole / most * 100.0
    ));
    head(&[
        "queue",
        "weight",
        "job s",
        "jobs",
        "host s",
        "its part",
        "off by s",
        "allowed s",
        "within",
    ]);
    for (queue, weight) in QUEUES {
        let (count, busy) = of(queue);
        let part = whole * weight as f64 / weights as f64;
        let length = case.length_ms(queue) as f64 / 1000.0;
        let allowed = part * 0.05 + length * MACHINES.len() as f64;
        let off = busy - part;
        row(&[
            &queue,
            &weight,
            &length,
            &count,
            &format!("{busy:.1}"),
            &format!("{part:.1}"),
            &format!("{off:+.1}"),
            &format!("{allowed:.1}"),
            &(off.abs() <= allowed),
        ]);
    }
}

impl SharesReplicas {
    pub(crate) async fn measure(&self) {
        for case in CASES {
            let case = Case {
                window_ms: case.window_ms * self.window / 100,
                ..case
            };
            print(&case, &run(&case).await);
        }
    }
}
