//! The steady load: jobs of several accounts for both kinds of testbox, now and then one of class vip.

use std::{sync::Arc, time::Duration};

use fairlead_api::{Client, ClientConfig, ClientError, SubmitItem};
use serde_json::{Value, json};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

use super::history::{Acked, History};
use fairlead_simulation::Chance;

/// Maximum number of submits in flight. The load waits beyond it.
const IN_FLIGHT_MAX: usize = 200;
/// Number of submits after which a client is replaced.
const SUBMITS_EACH: usize = 10;
/// Number of accounts.
const ACCOUNTS: u64 = 5;
/// Share of jobs of class vip, per mille.
const VIP_PERMILLE: u32 = 50;
/// Share of jobs for hw machines, per mille.
const HW_PERMILLE: u32 = 250;
/// Run times of jobs, ms.
const RUN_MS: std::ops::RangeInclusive<u64> = 1_000..=3_000;

/// One job to submit.
#[derive(Debug, Clone)]
struct Planned {
    number: u64,
    vip: bool,
    hw: bool,
    body: Value,
}

impl Planned {
    fn draw(number: u64, chance: &mut Chance) -> Self {
        let (vip, hw) = (chance.hits(VIP_PERMILLE), chance.hits(HW_PERMILLE));
        let mut body = json!({
            "suite": "faults",
            "my_account": format!("user{}", chance.within(1..=ACCOUNTS)),
            "testbox": if hw { "hw" } else { "dc" },
            "script": "true",
            "run_ms": chance.within(RUN_MS),
            "load_number": number,
            "stop_when_cut_off": true,
            "retry": {"max": 10, "on": ["infra"]},
        });
        if !hw {
            body["need_memory"] = json!("1g");
        }
        if vip {
            body["queue"] = json!("vip");
        }
        Self {
            number,
            vip,
            hw,
            body,
        }
    }
}

/// Returns a client for each replica, which asks that one first. A replica that hangs blocks its part of the load, as
/// behind a balancer, and the rest goes on.
fn clients(urls: &[String]) -> Vec<Client> {
    let begins_at = |first| {
        let mut urls = urls.to_vec();
        urls.rotate_left(first);
        Client::new(ClientConfig::new(urls)).ok()
    };
    (0..urls.len()).filter_map(begins_at).collect()
}

/// Submits `per_second` jobs each second until `over`, then waits for the open answers.
pub(super) async fn submit_steadily(
    urls: Vec<String>,
    history: Arc<History>,
    per_second: u32,
    mut chance: Chance,
    over: CancellationToken,
) {
    let mut ticks = interval(Duration::from_secs(1) / per_second.max(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let room = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
    let mut open = JoinSet::new();
    let mut by_replica = Vec::new();
    for number in 1_u64.. {
        if by_replica.is_empty() {
            // A client stays with the replica that answered it last, so new clients spread the load again.
            by_replica = vec![clients(&urls); SUBMITS_EACH].concat();
        }
        let free = async {
            ticks.tick().await;
            Arc::clone(&room).acquire_owned().await
        };
        let Some(Ok(place)) = over.run_until_cancelled(free).await else {
            break;
        };
        let Some(client) = by_replica.pop() else {
            break;
        };
        let planned = Planned::draw(number, &mut chance);
        let history = Arc::clone(&history);
        open.spawn(async move {
            submit(&client, &history, planned).await;
            drop(place);
        });
        while open.try_join_next().is_some() {}
    }
    open.join_all().await;
}

async fn submit(client: &Client, history: &History, planned: Planned) {
    let began = history.now();
    let said = client.submit(&planned.body).await;
    let at = history.now();
    let mut facts = history.facts();
    match judge(said) {
        Said::Acked(job) => {
            facts.submit_took.push(at.saturating_sub(began));
            facts.acked.push(Acked {
                job,
                number: planned.number,
                vip: planned.vip,
                hw: planned.hw,
                at,
            });
        }
        Said::Refused => facts.refused.push(planned.number),
        Said::Unknown => facts.unknown.push(planned.number),
    }
}

enum Said {
    Acked(String),
    Refused,
    Unknown,
}

/// Judges an answer. Only an id is an acknowledgement, and only a statement that nothing was done is a refusal.
fn judge(said: Result<Vec<SubmitItem>, ClientError>) -> Said {
    let is_nothing_done = |code: &str| matches!(code, "unavailable" | "too_many");
    match said {
        Ok(items) => match items.into_iter().next() {
            Some(item) if item.job_id != "0" => Said::Acked(item.job_id),
            Some(item) if is_nothing_done(&item.code) => Said::Refused,
            _ => Said::Unknown,
        },
        Err(ClientError::Unreachable { .. }) => Said::Refused,
        Err(error) => match error.code() {
            Some(code) if is_nothing_done(code.as_str()) => Said::Refused,
            _ => Said::Unknown,
        },
    }
}
