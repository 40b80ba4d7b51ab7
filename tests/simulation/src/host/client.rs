//! How an agent asks: one replica after the other, beginning with the one that answered last.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use fairlead_testbox::protocol::Backoff;

use super::refusal;
use crate::{
    net::{Answer, Asker, Failed, Message},
    timer::pause,
    world::World,
};

/// Timeout of an answer in addition to the server's intended wait, ms.
pub(super) const ANSWER_MS: u64 = 10_000;
/// Timeout of a heartbeat's answer, ms.
pub(super) const BEAT_MS: u64 = 4_000;
/// Share of requests that go to a random replica, per mille, as behind a proxy.
const ANYWHERE: u32 = 100;

/// Client of all replicas.
#[derive(Debug)]
pub(super) struct Client {
    world: Arc<World>,
    asker: Asker,
    good: AtomicUsize,
}

impl Client {
    pub(super) fn new(world: &Arc<World>, host: usize) -> Self {
        let first = world.chance().index(world.slots.len());
        Self {
            world: Arc::clone(world),
            asker: Asker::Host(host),
            good: AtomicUsize::new(first),
        }
    }

    /// Tries each replica once, with this timeout for each.
    pub(super) async fn call(&self, message: &Message, limit_ms: u64) -> Result<Answer, Failed> {
        let many = self.world.slots.len();
        let mut first = self.good.load(Ordering::Relaxed);
        if many > 1 && self.world.chance().hits(ANYWHERE) {
            first = self.world.chance().index(many);
        }
        let mut refused = Err(Failed::Refused);
        for slot in (0..many).map(|step| (first + step) % many) {
            let asked = self.world.ask(self.asker, slot, message.clone(), limit_ms);
            match asked.await {
                Ok(answer) if !matches!(answer.status, 429 | 502 | 503 | 504) => {
                    self.good.store(slot, Ordering::Relaxed);
                    return Ok(answer);
                }
                Ok(answer) => refused = Ok(answer),
                Err(failed) => refused = refused.or(Err(failed)),
            }
        }
        refused
    }

    /// Repeats a request until there is a final answer, which may be a refusal.
    pub(super) async fn until_answered(&self, message: &Message) -> Answer {
        let mut backoff = Backoff::patient(self.world.chance().draw());
        loop {
            if let Ok(answer) = self.call(message, ANSWER_MS).await
                && (answer.is_good() || refusal(&answer).is_final())
            {
                return answer;
            }
            pause(u64::try_from(backoff.step().as_millis()).unwrap_or(0)).await;
        }
    }
}
