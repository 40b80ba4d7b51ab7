//! Tells the engine the policy: weights of queues, and the room that limits leave to accounts.

use fairlead_api::Limits;
use fairlead_dispatch::{Allowance, Event, Policy};

use crate::people::PeopleFlow;
use fairlead_known::usage::{HOUR_MS, Whose};

impl PeopleFlow {
    /// What the engine is to know: queues, and what limits leave to whom.
    pub(crate) fn policy(&self) -> Policy {
        let mut policy = self.queues.policy();
        let allowance = |whose: &Whose, limits: Limits| Allowance {
            running_soft: limits.running.soft,
            running_hard: limits.running.hard,
            behind: self.is_behind(whose, limits),
            spent: self.is_spent(whose, limits),
        };
        for (name, limits) in self.accounts.limits() {
            let allowance = allowance(&Whose::Account(name.clone()), limits);
            policy.account_limits.insert(name, allowance);
        }
        for (name, limits) in self.queues.limits() {
            let allowance = allowance(&Whose::Queue(name.clone()), limits);
            policy.queue_limits.insert(name, allowance);
        }
        policy
    }

    /// Ready jobs of an account or a queue, as counted last.
    pub(crate) fn waiting(&self, whose: &Whose) -> u64 {
        self.usage
            .with(|used| used.waiting.get(whose).copied().unwrap_or(0))
    }

    /// For how long testboxes had its jobs within a day, ms.
    pub(crate) fn used_ms(&self, whose: &Whose) -> u64 {
        self.usage
            .with(|used| used.spent_ms.get(whose).copied().unwrap_or(0))
    }

    /// Whether more wait, or testboxes had them for longer, than a soft limit says.
    fn is_behind(&self, whose: &Whose, limits: Limits) -> bool {
        let wait = limits.waiting.soft;
        let hours = limits.hours.soft;
        wait.is_some_and(|most| self.waiting(whose) > most)
            || hours.is_some_and(|most| self.used_ms(whose) >= most.saturating_mul(HOUR_MS))
    }

    /// Whether testboxes had its jobs for as long as the hard limit says.
    pub(crate) fn is_spent(&self, whose: &Whose, limits: Limits) -> bool {
        let hours = limits.hours.hard;
        hours.is_some_and(|most| self.used_ms(whose) >= most.saturating_mul(HOUR_MS))
    }

    /// Tells the engine the policy, if it is another one than it was told last.
    pub(crate) fn tell_policy(&self) {
        let policy = self.policy();
        let is_news = self.usage.with(|used| {
            let is_news = used.told.as_ref() != Some(&policy);
            if is_news {
                used.told = Some(policy.clone());
            }
            is_news
        });
        if is_news {
            self.ctx.engine.tell(Event::PolicyChanged(policy));
        }
    }

    /// The limits of an account or a queue.
    pub(crate) fn limits_of(&self, whose: &Whose) -> Limits {
        match whose {
            Whose::Account(name) => self.accounts.limits_of(name),
            Whose::Queue(name) => self.queues.limits_of(name),
        }
    }
}
