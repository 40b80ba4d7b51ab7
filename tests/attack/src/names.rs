//! Jobs that each have their own name.

use fairlead_tests::{Http, jobs, until};
use serde_json::{Value, json};

/// Number of jobs in one request, as a script would send.
const REQUEST_JOBS: usize = 500;

/// Property that is new in each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flood {
    /// Queue. All jobs are of one account, and need more memory than the host has.
    Queues,
    /// Account. The jobs need more memory than the host has.
    Accounts,
    /// Requested machine.
    Testboxes,
}

impl Flood {
    fn job(self, n: usize) -> Value {
        match self {
            Self::Queues => large("mallory", &json!({"queue": format!("flood-{n}")})),
            Self::Accounts => large(&format!("flood-{n}"), &json!({})),
            Self::Testboxes => {
                let machine = json!({"testbox": format!("flood{n}--a{n}")});
                jobs::with(jobs::hw("mallory"), &machine)
            }
        }
    }
}

/// Returns a job that is too large for every host of the tests.
fn large(account: &str, fields: &Value) -> Value {
    let job = jobs::with(jobs::dc(account), &json!({"need_memory": "100g"}));
    jobs::with(job, fields)
}

/// Submits this number of jobs, which must be done within `limit_s`.
pub async fn flood(http: &Http, kind: Flood, jobs: usize, limit_s: u64) {
    let mut sent = 0;
    until("the flood is in", limit_s, async || {
        let these = sent..jobs.min(sent + REQUEST_JOBS);
        sent = these.end;
        http.submit(&these.map(|n| kind.job(n)).collect()).await;
        (sent == jobs).then_some(())
    })
    .await;
}
