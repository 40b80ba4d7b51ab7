//! Queue policies, as last read or written.

use std::collections::BTreeMap;

use fairlead_api::{Limits, QueueUsers};
use fairlead_dispatch::{Policy, QueuePolicy};
use fairlead_store::{DocKind, JobStore, StoreError};
use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    known::{limits::limits_from, queue_users::users_from},
    storage::doc_cache::DocCache,
};

/// Highest class.
pub(crate) const PRIORITY_MAX: u8 = 9;

/// Largest weight.
pub(crate) const WEIGHT_MAX: u32 = 10_000;

/// The field of a share of dispatches, and the largest one, in thousandths: half of them.
pub(crate) const BACKGROUND: &str = "background_permille";

pub(crate) const BACKGROUND_MAX: u16 = 500;

/// What an admin set of a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) policy: QueuePolicy,
    pub(crate) limits: Limits,
    /// Who may use it; `None`: nobody says so.
    pub(crate) users: Option<QueueUsers>,
}

/// Policies as last read or written.
#[derive(Debug, Default)]
pub(crate) struct Queues(Mutex<DocCache<Set>>);

impl Queues {
    /// The policies of all named queues: the site's own over the built-in ones.
    pub(crate) fn policy(&self) -> Policy {
        let mut policy = Policy::default();
        let set = self.set().into_iter();
        policy
            .queues
            .extend(set.map(|(name, set)| (name, set.policy)));
        policy
    }

    /// The limits of one.
    pub(crate) fn limits_of(&self, queue: &str) -> Limits {
        let limits = self.with(|known| known.get(queue).map(|set| set.limits));
        limits.unwrap_or_default()
    }

    /// The limits of those that have any.
    pub(crate) fn limits(&self) -> BTreeMap<String, Limits> {
        let set = self.set().into_iter();
        let limits = set.map(|(name, set)| (name, set.limits));
        limits.filter(|(_, limits)| !limits.is_none()).collect()
    }

    /// Class of a queue.
    pub(crate) fn class(&self, queue: &str) -> u8 {
        self.policy_of(queue).priority
    }

    fn policy_of(&self, queue: &str) -> QueuePolicy {
        let set = self.with(|known| known.get(queue).map(|set| set.policy));
        set.unwrap_or_else(|| built_in(queue))
    }

    pub(crate) fn set_of(&self, queue: &str) -> Set {
        let unset = || Set {
            policy: built_in(queue),
            ..Set::default()
        };
        self.with(|known| known.get(queue).cloned())
            .unwrap_or_else(unset)
    }

    pub(crate) fn set(&self) -> BTreeMap<String, Set> {
        self.with(|known| {
            known
                .iter()
                .map(|(name, set)| (name.clone(), set.clone()))
                .collect()
        })
    }

    /// What a look at a queue's users says; `None`: nobody set the queue.
    pub(crate) fn look_at_users<R>(
        &self,
        queue: &str,
        look: impl FnOnce(Option<Option<&QueueUsers>>) -> R,
    ) -> R {
        self.with(|known| look(known.get(queue).map(|set| set.users.as_ref())))
    }

    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut DocCache<Set>) -> R) -> R {
        work(&mut self.0.lock())
    }

    /// Reads all policies anew; says whether any changed.
    pub(crate) async fn reload(&self, store: &dyn JobStore) -> Result<bool, StoreError> {
        let docs = store.list_docs(DocKind::Queue).await?;
        let read = docs.into_iter().map(|doc| {
            let set = set_from(&doc.body);
            (doc.id, doc.version, set)
        });
        Ok(self.with(|known| known.listed(read.collect())))
    }
}

/// The policy of a queue that nobody set.
fn built_in(queue: &str) -> QueuePolicy {
    let queues = Policy::default().queues;
    queues.get(queue).copied().unwrap_or_default()
}

pub(crate) fn set_from(body: &Value) -> Set {
    Set {
        policy: policy_from(body),
        limits: limits_from(body),
        users: users_from(body),
    }
}

pub(crate) fn policy_from(body: &Value) -> QueuePolicy {
    let default = QueuePolicy::default();
    let number = |name: &str| body.get(name).and_then(Value::as_u64);
    QueuePolicy {
        priority: number("priority")
            .and_then(|p| u8::try_from(p).ok())
            .filter(|p| *p <= PRIORITY_MAX)
            .unwrap_or(default.priority),
        weight: number("weight")
            .and_then(|w| u32::try_from(w).ok())
            .filter(|w| (1..=WEIGHT_MAX).contains(w))
            .unwrap_or(default.weight),
        paused: body
            .get("paused")
            .and_then(Value::as_bool)
            .unwrap_or(default.paused),
        background_per_mille: number(BACKGROUND)
            .and_then(|share| u16::try_from(share).ok())
            .filter(|share| *share <= BACKGROUND_MAX)
            .unwrap_or(default.background_per_mille),
    }
}
