//! Queue policies: what admins set, stored as small documents, told to the engine.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use fairlead_api::{ErrorCode, Limits, QueueChange, QueueUsers, QueueView};
use fairlead_dispatch::{Policy, QueuePolicy, labels};
use fairlead_store::{DocKind, DocWrite, Expect, JobStore, StoreError, Version};
use serde_json::{Map, Value, json};

use crate::{
    accounts::check_name,
    core::Core,
    fresh::Fresh,
    limits::{changed, limits_from},
    queue_use::{USERS, check_users, users_after, users_from},
    refusal::Refusal,
};

/// The queue that only those use who may.
pub(crate) const VIP: &str = "vip";
/// Highest class.
const PRIORITY_MAX: u8 = 9;
/// Largest weight.
const WEIGHT_MAX: u32 = 10_000;
/// The field of a share of dispatches, and the largest one, in thousandths: half of them.
const BACKGROUND: &str = "background_permille";
const BACKGROUND_MAX: u16 = 500;

/// What an admin set of a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Set {
    policy: QueuePolicy,
    limits: Limits,
    /// Who may use it; `None`: nobody says so.
    users: Option<QueueUsers>,
}

/// Policies as last read or written.
#[derive(Debug, Default)]
pub(crate) struct Queues(Mutex<Fresh<Set>>);

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

    fn set_of(&self, queue: &str) -> Set {
        let unset = || Set {
            policy: built_in(queue),
            ..Set::default()
        };
        self.with(|known| known.get(queue).cloned())
            .unwrap_or_else(unset)
    }

    fn set(&self) -> BTreeMap<String, Set> {
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

    fn with<R>(&self, work: impl FnOnce(&mut Fresh<Set>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
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

fn set_from(body: &Value) -> Set {
    Set {
        policy: policy_from(body),
        limits: limits_from(body),
        users: users_from(body),
    }
}

fn policy_from(body: &Value) -> QueuePolicy {
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

/// A queue's document; fields of it that this version does not know stay.
fn body_of(set: &Set, before: Value) -> Value {
    let mut fields = match before {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let policy = &set.policy;
    fields.insert("priority".to_owned(), json!(policy.priority));
    fields.insert("weight".to_owned(), json!(policy.weight));
    fields.insert("paused".to_owned(), json!(policy.paused));
    fields.insert(BACKGROUND.to_owned(), json!(policy.background_per_mille));
    fields.insert("limits".to_owned(), json!(set.limits));
    match &set.users {
        Some(users) => fields.insert(USERS.to_owned(), json!(users)),
        None => fields.shift_remove(USERS),
    };
    Value::Object(fields)
}

fn check(change: &QueueChange) -> Result<(), Refusal> {
    if *change == QueueChange::default() {
        let hint = "say priority, weight, paused, background_permille, users or limits";
        return Err(Refusal::new(
            ErrorCode::BadField,
            "nothing to change was said",
            hint,
        ));
    }
    if let Some(priority) = change.priority.filter(|p| *p > PRIORITY_MAX) {
        return Err(Refusal::new(
            ErrorCode::BadField,
            format!("priority: {priority} is over {PRIORITY_MAX}"),
            "0 to 9; 9 is served first, 3 is the default",
        ));
    }
    if let Some(weight) = change.weight.filter(|w| !(1..=WEIGHT_MAX).contains(w)) {
        return Err(Refusal::new(
            ErrorCode::BadField,
            format!("weight: {weight} is not 1 to {WEIGHT_MAX}"),
            "to stop a queue set paused: true",
        ));
    }
    let too_much = |share: &u16| *share > BACKGROUND_MAX;
    if let Some(share) = change.background_permille.filter(too_much) {
        return Err(Refusal::new(
            ErrorCode::BadField,
            format!("{BACKGROUND}: {share} is over {BACKGROUND_MAX}"),
            "thousandths of all dispatches, 50 for one of twenty; 0 for none",
        ));
    }
    Ok(())
}

impl Core {
    /// Sets what is given of a queue's policy. It acts at once.
    pub(crate) async fn set_queue(
        &self,
        name: &str,
        change: &QueueChange,
    ) -> Result<QueueView, Refusal> {
        self.change_queue(name, change).await?;
        self.queue_view(name).await
    }

    /// The same, without a view of it.
    pub(crate) async fn change_queue(
        &self,
        name: &str,
        change: &QueueChange,
    ) -> Result<(), Refusal> {
        check_name("queue", name)?;
        check(change)?;
        let known = self.store.get_doc(DocKind::Queue, name).await?;
        let present = known
            .as_ref()
            .map_or_else(|| self.queues.set_of(name), |doc| set_from(&doc.body));
        let policy = QueuePolicy {
            priority: change.priority.unwrap_or(present.policy.priority),
            weight: change.weight.unwrap_or(present.policy.weight),
            paused: change.paused.unwrap_or(present.policy.paused),
            background_per_mille: change
                .background_permille
                .unwrap_or(present.policy.background_per_mille),
        };
        let limits = changed(present.limits, &change.limits)?;
        let said = change.users.as_ref().map(check_users).transpose()?;
        let users = users_after(name, known.as_ref().map(|doc| &doc.body), said.as_ref());
        let (expect, before) = known.map_or((Expect::Absent, Value::Null), |doc| {
            (Expect::Version(doc.version), doc.body)
        });
        let set = Set {
            policy,
            limits,
            users,
        };
        let body = body_of(&set, before);
        let version = self.write_queue(name, expect, Some(body)).await?;
        self.queue_is(name, version, Some(set));
        self.outbox.queue(name);
        Ok(())
    }

    /// Back to the default policy.
    pub(crate) async fn delete_queue(&self, name: &str) -> Result<(), Refusal> {
        check_name("queue", name)?;
        let Some(doc) = self.store.get_doc(DocKind::Queue, name).await? else {
            return Err(Refusal::new(
                ErrorCode::NotFound,
                format!("nobody set a policy for queue '{name}'"),
                "queues with work exist by themselves and cannot be deleted",
            ));
        };
        let version = self
            .write_queue(name, Expect::Version(doc.version), None)
            .await?;
        self.queue_is(name, version, None);
        self.outbox.queue(name);
        Ok(())
    }

    fn queue_is(&self, name: &str, version: Version, set: Option<Set>) {
        self.queues.with(|known| known.wrote(name, version, set));
        self.tell_policy();
    }

    /// Another replica changed a queue's policy: reads it in real time.
    pub(crate) async fn reread_queue(&self, name: &str) -> Result<(), Refusal> {
        // A deleted one is noticed when all are read.
        if let Some(doc) = self.store.get_doc(DocKind::Queue, name).await? {
            self.queue_is(name, doc.version, Some(set_from(&doc.body)));
        }
        Ok(())
    }

    async fn write_queue(
        &self,
        name: &str,
        expect: Expect,
        body: Option<Value>,
    ) -> Result<Version, Refusal> {
        let write = DocWrite {
            id: name.to_owned(),
            expect,
            body,
        };
        let outcome = self.store.put_docs(DocKind::Queue, vec![write]).await.pop();
        Ok(outcome.unwrap_or(Ok(Version::default()))?)
    }

    async fn queue_view(&self, name: &str) -> Result<QueueView, Refusal> {
        let found = self
            .queue_views()
            .await?
            .into_iter()
            .find(|view| view.name == name);
        found.ok_or_else(|| {
            Refusal::new(
                ErrorCode::NotFound,
                format!("no queue '{name}'"),
                "list them with GET queues",
            )
        })
    }

    /// All queues: those with a policy and those with work.
    pub(crate) async fn queue_views(&self) -> Result<Vec<QueueView>, Refusal> {
        let mut waiting: BTreeMap<String, u64> = BTreeMap::new();
        for (stored, jobs) in self.store.count(&self.count_of()).await?.queues {
            // A queue's labels are its own.
            *waiting
                .entry(labels::queue_of(&stored).to_owned())
                .or_default() += jobs;
        }
        let reports = self
            .engine
            .ask(fairlead_dispatch::Engine::queues)
            .await
            .ok_or_else(Refusal::stopping)?;
        let set = self.queues.set();
        let mut views = BTreeMap::new();
        let names = Policy::default()
            .queues
            .into_keys()
            .chain(set.keys().cloned())
            .chain(waiting.keys().cloned());
        for name in names.chain(reports.iter().map(|report| report.name.clone())) {
            let Set {
                policy,
                limits,
                users,
            } = self.queues.set_of(&name);
            views.entry(name.clone()).or_insert_with(|| QueueView {
                priority: policy.priority,
                weight: policy.weight,
                paused: policy.paused,
                background_permille: policy.background_per_mille,
                waiting: waiting.get(&name).copied().unwrap_or(0),
                running: 0,
                share_permille: 0,
                set: set.contains_key(&name),
                limits,
                users,
                warning: self.queues.warning_of(&name),
                name,
            });
        }
        for report in reports {
            if let Some(view) = views.get_mut(&report.name) {
                view.running = report.running;
                view.share_permille = report.share_per_mille;
            }
        }
        Ok(views.into_values().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_weights_have_limits() {
        assert!(
            check(&QueueChange {
                priority: Some(10),
                ..QueueChange::default()
            })
            .is_err()
        );
        assert!(
            check(&QueueChange {
                weight: Some(0),
                ..QueueChange::default()
            })
            .is_err()
        );
        assert!(
            check(&QueueChange {
                weight: Some(50),
                priority: Some(9),
                ..QueueChange::default()
            })
            .is_ok()
        );
    }

    #[test]
    fn at_most_half_of_all_dispatches_are_kept_for_a_queue() {
        let change = |share| QueueChange {
            background_permille: Some(share),
            ..QueueChange::default()
        };
        assert!(check(&change(0)).is_ok() && check(&change(500)).is_ok());
        let refusal = check(&change(501)).unwrap_err();
        assert!(refusal.body.message.contains("501 is over 500"));
    }

    #[test]
    fn a_damaged_policy_reads_as_the_default() {
        assert_eq!(
            policy_from(&json!({"priority": 99, "weight": -1})),
            QueuePolicy::default()
        );
        assert_eq!(policy_from(&json!({"priority": 9})).priority, 9);
        let kept = |share: u64| policy_from(&json!({ BACKGROUND: share })).background_per_mille;
        assert_eq!((kept(50), kept(501)), (50, 0));
    }
}
