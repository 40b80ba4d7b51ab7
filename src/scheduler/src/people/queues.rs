//! Queue policies: admins set them, small documents store them, and the engine gets them.

use std::collections::BTreeMap;

use fairlead_api::{PausedView, QueueChange, QueueView};
use fairlead_dispatch::{Policy, labels};
use fairlead_store::{StoreError, Version};

use crate::people::PeopleFlow;
use fairlead_base::{
    errors::{PeopleError, Refusal},
    names::check_name,
};
use fairlead_known::{
    limits::changed,
    queue_users::{check_users, users_after},
    queues::{BACKGROUND_MAX, LAB, PRIORITY_MAX, Set, WEIGHT_MAX},
};

/// Counts of waiting jobs that are not older are good enough for who watches the lab, ms: they come every four seconds
/// at the longest.
const COUNTED_MS: u64 = 6_000;

pub(crate) fn check(change: &QueueChange) -> Result<(), PeopleError> {
    if *change == QueueChange::default() {
        return Err(PeopleError::NoChange);
    }
    if let Some(given) = change.priority.filter(|p| *p > PRIORITY_MAX) {
        let max = PRIORITY_MAX;
        return Err(PeopleError::PriorityTooHigh { given, max });
    }
    if let Some(given) = change.weight.filter(|w| !(1..=WEIGHT_MAX).contains(w)) {
        let max = WEIGHT_MAX;
        return Err(PeopleError::BadWeight { given, max });
    }
    let too_much = |share: &u16| *share > BACKGROUND_MAX;
    if let Some(given) = change.background_permille.filter(too_much) {
        let max = BACKGROUND_MAX;
        return Err(PeopleError::BackgroundTooHigh { given, max });
    }
    Ok(())
}

impl PeopleFlow {
    /// Reads the queues that are set anew, and tells the engine.
    pub(crate) async fn reload_queues(&self) -> Result<(), StoreError> {
        let now = self.ctx.clock.now();
        if self.queues.reload(&self.ctx.docs).await? {
            self.tell_policy();
        }
        self.queues.were_read(now);
        Ok(())
    }

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
        for (what, limit) in [
            ("content_mb", change.limits.content_mb),
            ("content_day_mb", change.limits.content_day_mb),
            ("results_mb", change.limits.results_mb),
        ] {
            if limit.is_some_and(|limit| !limit.is_none()) {
                return Err(PeopleError::LimitOfAccounts { what }.into());
            }
        }
        let said = change.users.as_ref().map(check_users).transpose()?;
        let next = async |known: Option<Set>| -> Result<Set, Refusal> {
            let users = users_after(name, known.as_ref(), said.as_ref());
            let set = known.unwrap_or_else(|| self.queues.set_of(name));
            let share = change.background_permille;
            Ok(Set {
                priority: change.priority.unwrap_or(set.priority),
                weight: change.weight.unwrap_or(set.weight),
                paused: change.paused.unwrap_or(set.paused),
                background_permille: share.unwrap_or(set.background_permille),
                pause: set.pause.filter(|_| change.paused.is_none()),
                limits: changed(set.limits, &change.limits)?,
                users,
            })
        };
        let stored = self.ctx.docs.change(name, next).await?;
        self.queue_is(name, stored.version, Some(stored.doc));
        self.ctx.outbox.queue(name);
        Ok(())
    }

    /// Pauses a queue, or with [`LAB`] the whole lab, or lets it go on.
    pub(crate) async fn pause_queue(
        &self,
        name: &str,
        pause: Option<PausedView>,
    ) -> Result<(), Refusal> {
        if name != LAB {
            check_name("queue", name)?;
        }
        let next = async |known: Option<Set>| -> Result<Set, Refusal> {
            let users = users_after(name, known.as_ref(), None);
            let set = known.unwrap_or_else(|| self.queues.set_of(name));
            Ok(Set {
                paused: pause.is_some(),
                pause: pause.clone(),
                users,
                ..set
            })
        };
        let stored = self.ctx.docs.change(name, next).await?;
        self.queue_is(name, stored.version, Some(stored.doc));
        self.ctx.outbox.queue(name);
        Ok(())
    }

    /// Back to the default policy.
    pub(crate) async fn delete_queue(&self, name: &str) -> Result<(), Refusal> {
        check_name("queue", name)?;
        let Some(version) = self.ctx.docs.delete::<Set>(name).await? else {
            return Err(PeopleError::DefaultPolicy(name.to_owned()).into());
        };
        self.queue_is(name, version, None);
        self.ctx.outbox.queue(name);
        Ok(())
    }

    fn queue_is(&self, name: &str, version: Version, set: Option<Set>) {
        self.queues.with(|known| known.wrote(name, version, set));
        self.tell_policy();
    }

    /// Another replica changed a queue's policy: reads it in real time.
    pub(crate) async fn reread_queue(&self, name: &str) -> Result<(), Refusal> {
        // A deleted one is noticed when all are read.
        if let Some(known) = self.ctx.docs.read::<Set>(name).await? {
            self.queue_is(name, known.version, Some(known.doc));
        }
        Ok(())
    }

    async fn queue_view(&self, name: &str) -> Result<QueueView, Refusal> {
        let found = self
            .queue_views()
            .await?
            .into_iter()
            .find(|view| view.name == name);
        Ok(found.ok_or_else(|| PeopleError::UnknownQueue(name.to_owned()))?)
    }

    /// How many jobs wait, by stored queue: as counted within the last seconds, or counted now.
    async fn waiting_by_queue(&self) -> Result<Vec<(String, u64)>, StoreError> {
        let now = self.ctx.clock.now().0;
        let counted = self.lab.board.counted_since(now.saturating_sub(COUNTED_MS));
        if let Some(counted) = counted.filter(|_| self.lab.board.is_watched()) {
            return Ok(counted.queues);
        }
        Ok(self
            .ctx
            .store
            .count(&self.lab.hosts.count_of())
            .await?
            .queues)
    }

    /// All queues: those with a policy and those with work.
    pub(crate) async fn queue_views(&self) -> Result<Vec<QueueView>, Refusal> {
        let mut waiting: BTreeMap<String, u64> = BTreeMap::new();
        for (stored, jobs) in self.waiting_by_queue().await? {
            // A queue's labels are its own.
            *waiting
                .entry(labels::queue_of(&stored).to_owned())
                .or_default() += jobs;
        }
        let reports = self
            .ctx
            .engine
            .ask(fairlead_dispatch::Engine::queues)
            .await
            .ok_or(Refusal::Stopping)?;
        let set = self.queues.set();
        let mut views = BTreeMap::new();
        let names = Policy::default()
            .queues
            .into_keys()
            .chain(set.keys().cloned())
            .chain(waiting.keys().cloned());
        for name in names.chain(reports.iter().map(|report| report.name.clone())) {
            let set_of = self.queues.set_of(&name);
            let policy = set_of.policy();
            views.entry(name.clone()).or_insert_with(|| QueueView {
                priority: policy.priority,
                weight: policy.weight,
                paused: policy.paused,
                background_permille: policy.background_permille,
                waiting: waiting.get(&name).copied().unwrap_or(0),
                running: 0,
                share_permille: 0,
                got_1h_permille: None,
                got_24h_permille: None,
                got_7d_permille: None,
                oldest_ready_ms: None,
                set: set.contains_key(&name),
                limits: set_of.limits,
                users: set_of.users,
                warning: self.queues.warning_of(&name),
                name,
            });
        }
        for report in reports {
            if let Some(view) = views.get_mut(&report.name) {
                view.running = report.running;
                view.share_permille = report.share_permille;
            }
        }
        Ok(views.into_values().collect())
    }
}

#[cfg(test)]
mod tests {
    use fairlead_dispatch::QueuePolicy;

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
        assert!(refusal.to_string().contains("501 is over 500"));
    }

    #[test]
    fn a_damaged_policy_reads_as_the_default() {
        let set = |priority, weight, background_permille| Set {
            priority,
            weight,
            background_permille,
            ..Set::default()
        };
        assert_eq!(set(99, 0, 501).policy(), QueuePolicy::default());
        assert_eq!(set(9, 1, 0).policy().priority, 9);
        assert_eq!(set(9, 1, 50).policy().background_permille, 50);
    }
}
