//! Queue policies, as last read or written.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use fairlead_api::{Limits, PausedView, QueueUsers};
use fairlead_dispatch::{Millis, Policy, QueuePolicy, labels};
use fairlead_store::{DocKind, StoreError};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use fairlead_base::storage::{
    doc_cache::DocCache,
    doc_fields::no_null,
    small_doc::{SmallDoc, SmallDocs},
};

/// Name of the document that pauses the whole lab. No queue has this name.
pub const LAB: &str = "(lab)";

/// Highest priority class.
pub const PRIORITY_MAX: u8 = 9;

/// Largest weight.
pub const WEIGHT_MAX: u32 = 10_000;

/// Maximum share of dispatches in the background, per mille: half of them.
pub const BACKGROUND_MAX: u16 = 500;

/// Settings of a queue, as an admin made them: its document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Set {
    pub priority: u8,
    pub weight: u32,
    pub paused: bool,
    pub background_permille: u16,
    /// Account that paused it, with the reason, as far as specified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<PausedView>,
    pub limits: Limits,
    /// Users of the queue. `None`: not set.
    #[serde(deserialize_with = "no_null", skip_serializing_if = "Option::is_none")]
    pub users: Option<QueueUsers>,
}

impl Default for Set {
    fn default() -> Self {
        Self::of(QueuePolicy::default())
    }
}

impl SmallDoc for Set {
    const KIND: DocKind = DocKind::Queue;

    fn stand_in() -> Option<Self> {
        Some(Self {
            paused: true,
            users: Some(QueueUsers::Own),
            ..Self::default()
        })
    }
}

impl Set {
    fn of(policy: QueuePolicy) -> Self {
        Self {
            priority: policy.priority,
            weight: policy.weight,
            paused: policy.paused,
            background_permille: policy.background_permille,
            pause: None,
            limits: Limits::default(),
            users: None,
        }
    }

    /// Returns the policy for the engine. Values out of range are replaced by defaults.
    pub fn policy(&self) -> QueuePolicy {
        let default = QueuePolicy::default();
        let mut policy = QueuePolicy {
            priority: self.priority,
            weight: self.weight,
            paused: self.paused,
            background_permille: self.background_permille,
        };
        if policy.priority > PRIORITY_MAX {
            policy.priority = default.priority;
        }
        if !(1..=WEIGHT_MAX).contains(&policy.weight) {
            policy.weight = default.weight;
        }
        if policy.background_permille > BACKGROUND_MAX {
            policy.background_permille = default.background_permille;
        }
        policy
    }
}

/// Policies, as last read or written.
#[derive(Debug, Default)]
pub struct Queues {
    known: Mutex<DocCache<Set>>,
    /// Time of the last read on this replica's clock, ms.
    read_ms: AtomicU64,
}

impl Queues {
    /// Returns the policies of all named queues. The site's own override the built-in ones.
    pub fn policy(&self) -> Policy {
        let mut policy = Policy {
            paused: self.lab_pause().is_some(),
            ..Policy::default()
        };
        let set = self.set().into_iter();
        policy
            .queues
            .extend(set.map(|(name, set)| (name, set.policy())));
        policy
    }

    /// Returns the limits of one queue.
    pub fn limits_of(&self, queue: &str) -> Limits {
        let limits = self.with(|known| known.get(queue).map(|set| set.limits));
        limits.unwrap_or_default()
    }

    /// Returns the limits of all queues that have limits.
    pub fn limits(&self) -> BTreeMap<String, Limits> {
        let set = self.set().into_iter();
        let limits = set.map(|(name, set)| (name, set.limits));
        limits.filter(|(_, limits)| !limits.is_none()).collect()
    }

    /// Returns the class of a queue, or of a stored label of a queue.
    pub fn class(&self, queue: &str) -> u8 {
        self.policy_of(labels::queue_of(queue)).priority
    }

    fn policy_of(&self, queue: &str) -> QueuePolicy {
        let set = self.with(|known| known.get(queue).map(Set::policy));
        set.unwrap_or_else(|| built_in(queue))
    }

    pub fn set_of(&self, queue: &str) -> Set {
        self.with(|known| known.get(queue).cloned())
            .unwrap_or_else(|| Set::of(built_in(queue)))
    }

    /// Returns the queues with settings.
    pub fn set(&self) -> BTreeMap<String, Set> {
        self.with(|known| {
            let queues = known.iter().filter(|(name, _)| *name != LAB);
            queues
                .map(|(name, set)| (name.clone(), set.clone()))
                .collect()
        })
    }

    /// Returns the pause of the whole lab. `None`: it is not paused.
    pub fn lab_pause(&self) -> Option<PausedView> {
        self.with(|known| {
            let lab = known.get(LAB).filter(|lab| lab.paused)?;
            Some(lab.pause.clone().unwrap_or_default())
        })
    }

    /// Returns the result of `look` at the users of a queue. `look` gets `None` if nobody set the queue.
    pub fn look_at_users<R>(
        &self,
        queue: &str,
        look: impl FnOnce(Option<Option<&QueueUsers>>) -> R,
    ) -> R {
        self.with(|known| look(known.get(queue).map(|set| set.users.as_ref())))
    }

    pub fn with<R>(&self, work: impl FnOnce(&mut DocCache<Set>) -> R) -> R {
        work(&mut self.known.lock())
    }

    /// Returns true if the policies were read at or after this time of this replica's clock.
    pub fn are_fresh(&self, since: Millis) -> bool {
        self.read_ms.load(Ordering::Relaxed) >= since.0
    }

    /// Notes a complete read at this time.
    pub fn were_read(&self, at: Millis) {
        self.read_ms.fetch_max(at.0, Ordering::Relaxed);
    }

    /// Reads all policies. Returns true if any changed.
    pub async fn reload(&self, docs: &SmallDocs) -> Result<bool, StoreError> {
        let read = docs.list().await?;
        Ok(self.with(|known| known.listed(read)))
    }
}

/// Returns the built-in policy of a queue without settings.
fn built_in(queue: &str) -> QueuePolicy {
    let queues = Policy::default().queues;
    queues.get(queue).copied().unwrap_or_default()
}
