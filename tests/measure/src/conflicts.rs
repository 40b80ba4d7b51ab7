//! How often replicas claim the same job.
//!
//! One queue, and hw machines that ask without a pause, spread evenly over the replicas. Once the machines keep as many
//! jobs in flight as they can, once jobs come one by one to machines that wait everywhere.

use std::collections::BTreeSet;

use fairlead_tests::{Http, Metrics, Testbox, jobs, until};
use tokio::task::JoinSet;

use crate::{
    lab::{Replicas, submit_all, sum, timed},
    table::{head, number, row},
};

/// Time that a machine waits, seconds.
const WAIT_S: u32 = 5;

/// How often replicas claim the same job, from a backlog and with jobs that come one by one
#[derive(Debug, clap::Args)]
pub(crate) struct Conflicts {
    /// Numbers of replicas, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2,4,8")]
    replicas: Vec<usize>,
    /// Number of machines
    #[arg(long, value_name = "N", default_value_t = 24)]
    machines: usize,
    /// Jobs of the backlog
    #[arg(long, value_name = "N", default_value_t = 3_000)]
    jobs: usize,
    /// Jobs that come one by one
    #[arg(long, value_name = "N", default_value_t = 300)]
    single_jobs: usize,
}

/// Runs jobs at one replica until none comes. A machine that gets no job at all ends at the same time as the others.
async fn one_machine(http: Http, n: usize) -> Vec<String> {
    let mut machine = Testbox::hw(&http, &format!("machine-{n}"));
    let mut ran = Vec::new();
    loop {
        let next = machine.run_next(WAIT_S).await;
        if next.is_empty() {
            break;
        }
        ran.extend(next);
    }
    assert!(machine.held().is_empty(), "all were reported");
    ran
}

/// Returns the numbers of successful and of failed claims.
async fn claims(https: &[Http]) -> (f64, f64) {
    let of = |outcome| format!("fairlead_claims_total{{outcome=\"{outcome}\"}}");
    (
        sum(https, &of("committed")).await,
        sum(https, &of("conflict")).await,
    )
}

impl Conflicts {
    fn machines(&self, https: &[Http]) -> JoinSet<Vec<String>> {
        let mut running = JoinSet::new();
        for (n, http) in (0..self.machines).zip(https.iter().cycle()) {
            running.spawn(one_machine(http.clone(), n));
        }
        running
    }

    async fn backlog(&self, https: &[Http]) -> Vec<String> {
        submit_all(&https[..1], self.jobs, |_| jobs::hw("alice")).await;
        self.machines(https).join_all().await.concat()
    }

    async fn one_by_one(&self, https: &[Http]) -> Vec<String> {
        let running = self.machines(https);
        for http in https.iter().cycle().take(self.single_jobs) {
            http.submit(&jobs::hw("alice")).await;
        }
        running.join_all().await.concat()
    }

    pub(crate) async fn measure(&self) {
        head(&[
            "replicas",
            "jobs",
            "dispatched",
            "claims",
            "conflicts",
            "of 100 claims",
            "jobs a second",
        ]);
        for &count in &self.replicas {
            let lab = Replicas::start(count, &[]).await;
            let https = &lab.https;
            until("all know each other", 60, async || {
                for http in https {
                    let peers = Metrics::of(http).await.get("fairlead_peers");
                    if peers + 1.0 < number(count) {
                        return None;
                    }
                }
                Some(())
            })
            .await;
            self.measure_one("a backlog", https, self.backlog(https))
                .await;
            self.measure_one("one by one", https, self.one_by_one(https))
                .await;
        }
    }

    async fn measure_one(
        &self,
        what: &str,
        https: &[Http],
        work: impl Future<Output = Vec<String>>,
    ) {
        let before = claims(https).await;
        let (ran, time) = timed(work).await;
        let seconds = time.as_secs_f64() - f64::from(WAIT_S);
        let distinct = ran.iter().collect::<BTreeSet<_>>().len();
        assert_eq!(distinct, ran.len(), "a job was handed out twice");
        let after = claims(https).await;
        let (committed, conflicts) = (after.0 - before.0, after.1 - before.1);
        let all = committed + conflicts;
        row(&[
            &https.len(),
            &what,
            &distinct,
            &all,
            &conflicts,
            &format!("{:.1}", conflicts / all.max(1.0) * 100.0),
            &format!("{:.0}", committed / seconds),
        ]);
    }
}
