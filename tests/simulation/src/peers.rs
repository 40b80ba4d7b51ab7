//! Messages between replicas, over lines that lose, delay and double.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use fairlead_scheduler::{PeerLink, Replica};
use serde_json::Value;

use super::{
    process::Process,
    timer::{pause, within},
    world::{Broken, World},
};

/// Timeout of a message, ms.
const SEND_MS: u64 = 2_000;

/// Connection of one replica to the others.
pub(super) struct Peers {
    world: Arc<World>,
    process: Arc<Process>,
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers")
            .field("of", &self.process.name)
            .finish_non_exhaustive()
    }
}

impl Peers {
    pub(super) fn new(world: &Arc<World>, process: &Arc<Process>) -> Self {
        Self {
            world: Arc::clone(world),
            process: Arc::clone(process),
        }
    }

    async fn carry(&self, url: &str, token: &str, body: Bytes) -> Result<(), String> {
        let world = &self.world;
        let faults = world.faults();
        let slow = world.hits(faults.peer_slow);
        let takes_ms = world
            .chance()
            .within(if slow { 100..=3_000 } else { 0..=4 });
        let (is_lost, doubled) = (
            world.hits(faults.peer_lost),
            world.hits(faults.peer_doubled),
        );
        pause(takes_ms).await;
        let target = world.slots.iter().enumerate().find_map(|(number, slot)| {
            let path = url.strip_prefix(&slot.url())?;
            path.starts_with('/').then_some((number, path))
        });
        let Some((number, path)) = target else {
            return Err(format!("there is no {url}"));
        };
        let (low, high) = (number.min(self.process.slot), number.max(self.process.slot));
        if is_lost || world.is_broken(Broken::Peers(low, high)) {
            return std::future::pending().await;
        }
        for _ in 0..=u32::from(doubled) {
            let Some((process, replica)) =
                world.slots.get(number).and_then(super::process::Slot::up)
            else {
                return Err("nobody listens".to_owned());
            };
            process.gate().await;
            let is_older = world.scenario.older == Some(self.process.slot);
            let body = if is_older {
                as_older(&body)
            } else {
                body.clone()
            };
            deliver(&replica, path, token, body).await?;
            process.gate().await;
        }
        Ok(())
    }
}

/// Returns a message in the form of versions that sent no bodies and did not mark created states.
fn as_older(body: &Bytes) -> Bytes {
    let Ok(Value::Object(mut message)) = serde_json::from_slice(body) else {
        return body.clone();
    };
    message.insert("format".to_owned(), 3.into());
    message.remove("bodies");
    for job in message
        .get_mut("jobs")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(job) = job.as_object_mut() {
            job.remove("created");
            job.remove("body");
        }
    }
    Value::Object(message).to_string().into()
}

async fn deliver(replica: &Replica, path: &str, token: &str, body: Bytes) -> Result<(), String> {
    let request = http::Request::builder()
        .method(http::Method::POST)
        .uri(path)
        .header("authorization", format!("Bearer {token}"))
        .body(body);
    let answer = replica
        .call(request.map_err(|error| error.to_string())?)
        .await;
    if answer.status().is_success() {
        return Ok(());
    }
    Err(format!("status {}", answer.status()))
}

#[async_trait]
impl PeerLink for Peers {
    async fn post(&self, url: &str, token: &str, body: Bytes) -> Result<(), String> {
        self.process.gate().await;
        let outcome = within(SEND_MS, self.carry(url, token, body)).await;
        self.process.gate().await;
        outcome.unwrap_or_else(|| Err(format!("no answer within {SEND_MS} ms")))
    }
}
