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

/// Submits in flight at one time; beyond it the load waits.
const IN_FLIGHT_MAX: usize = 200;
/// How often a client is used before there are new ones.
const SUBMITS_EACH: usize = 10;
/// Accounts.
const ACCOUNTS: u64 = 5;
/// Jobs of class vip, of a thousand.
const VIP_PERMILLE: u32 = 50;
/// Jobs for hw machines, of a thousand.
const HW_PERMILLE: u32 = 250;
/// How long jobs run, ms.
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

/// A client for each replica, which asks that one first. A replica that hangs takes its part of the load, as behind a
/// balancer, and the load goes on.
fn clients(urls: &[String]) -> Vec<Client> {
    let begins_at = |first| {
        let mut urls = urls.to_vec();
        urls.rotate_left(first);
        Client::new(ClientConfig::new(urls)).ok()
    };
    (0..urls.len()).filter_map(begins_at).collect()
}

/// Submits `per_second` jobs each second until `over`, then waits for the answers that are open.
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
            // A client stays with the replica that answered it last: new ones are spread again.
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

/// Only an id is an acknowledgement, and only a word that nothing was done is a refusal.
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
