//! Resolves the queue that a job names, and checks who may use it. Happens once, at the submit; the job's state keeps
//! the result.
//!
//! An account has its own queue. A shared queue is built in, or an admin made it, with its users. Any other name is a
//! label inside the account's own queue. Labels take turns there, so no choice of names changes an account's share.
//! This module knows no waiting jobs.

use fairlead_dispatch::labels;
use fairlead_store::{NewJob, Search};

use crate::submission::SubmissionFlow;
use fairlead_base::{
    errors::{Refusal, SubmitError},
    names::VIP,
    text::joined,
};
use fairlead_known::{
    accounts::Who,
    queue_users::{Meaning, open_words},
};

/// Where a job waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The queue as it is stored.
    pub(crate) queue: String,
    /// The name that was asked for, if it is a label; else empty.
    pub(crate) label: String,
}

impl Place {
    fn whole(queue: &str) -> Self {
        Self {
            queue: queue.to_owned(),
            label: String::new(),
        }
    }
}

/// Which of its labels a name is in an account's own queue.
fn slot(label: &str) -> u8 {
    let [first, ..] = *blake3::hash(label.as_bytes()).as_bytes();
    first % labels::SLOTS
}

/// The stored queues that are meant by the name of one: itself and its labels.
pub(crate) fn stored_of(queue: &str) -> impl Iterator<Item = String> {
    std::iter::once(queue.to_owned()).chain(labels::slots_of(queue))
}

/// Narrows a search to what people mean by these queues: their jobs, and those that were submitted with such a name.
pub(crate) fn search_in(search: &mut Search, names: &[String]) {
    let stored = names.iter().flat_map(|name| stored_of(name));
    search.queues = stored.collect();
    search.queue_labels = names.to_vec();
}

impl SubmissionFlow {
    /// Where a job of this account waits that names this queue, or none.
    pub(crate) fn place_in_queue(
        &self,
        said: &str,
        account: &str,
        who: &Who,
    ) -> Result<Place, SubmitError> {
        if said.is_empty() || said == account {
            self.may_use(account, account, who)?;
            return Ok(Place::whole(account));
        }
        if self.may_use(said, account, who)? {
            return Ok(Place::whole(said));
        }
        self.may_use(account, account, who)?;
        // Where others wait, too, labels take no turns: they would take those of the others.
        let is_alone = self.people.queues.meaning(account, account) == Meaning::Nobodys;
        let queue = if is_alone {
            labels::slot_of(account, slot(said))
        } else {
            account.to_owned()
        };
        Ok(Place {
            queue,
            label: said.to_owned(),
        })
    }

    /// Whether this is a queue that the account may use; `false`: it is no shared one.
    fn may_use(&self, queue: &str, account: &str, who: &Who) -> Result<bool, SubmitError> {
        let meaning = self.people.queues.meaning(queue, account);
        let has_right = who.may_use_vip() || self.ctx.config.vip_for_all;
        match meaning {
            Meaning::BuiltIn | Meaning::Named(false) if queue == VIP => {
                if has_right {
                    return Ok(true);
                }
                Err(SubmitError::NotVip(who.name.clone()))
            }
            Meaning::Named(false) if queue != account && !who.may_use_every_queue() => {
                Err(SubmitError::OthersQueue {
                    account: account.to_owned(),
                    queue: queue.to_owned(),
                })
            }
            Meaning::Nobodys => Ok(false),
            Meaning::BuiltIn | Meaning::Unsaid | Meaning::Open | Meaning::Named(_) => Ok(true),
        }
    }

    /// Says of jobs whose queue is not what its name seems to say; if `strict`, refuses those that would wait under a
    /// label.
    pub(crate) fn warn_of_queues(
        &self,
        made: &mut [Result<NewJob, Refusal>],
        warnings: &mut [Option<String>],
        strict: bool,
    ) {
        for (outcome, warning) in made.iter_mut().zip(warnings) {
            let Some(words) = outcome.as_ref().ok().and_then(|job| self.queue_words(job)) else {
                continue;
            };
            let is_label = outcome
                .as_ref()
                .is_ok_and(|job| !job.state.queue_label.is_empty());
            if strict && is_label {
                *outcome = Err(SubmitError::OnlyLabel(words).into());
                continue;
            }
            *warning = Some(joined(warning.take(), words));
        }
    }

    fn queue_words(&self, job: &NewJob) -> Option<String> {
        let state = &job.state;
        let (queue, label) = (labels::queue_of(&state.queue), &state.queue_label);
        if !label.is_empty() {
            return Some(format!(
                "'{label}' is no shared queue: the job waits in queue '{queue}', under that label. For a shared \
                 queue ask an admin: fairlead queues set {label} --users all"
            ));
        }
        let is_others = queue != state.account;
        let is_unsaid = self.people.queues.meaning(queue, &state.account) == Meaning::Unsaid;
        (is_others && is_unsaid).then(|| open_words(queue))
    }
}

#[cfg(test)]
mod tests;
