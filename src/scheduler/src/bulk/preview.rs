//! Makes previews, and shows them.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_api::{
    BulkAction, ErrorCode, Preview, PreviewRequest, PreviewShare, PreviewState, QueueChange,
    QueueView,
};
use fairlead_store::Search;
use serde_json::Value;
use tokio::sync::SemaphorePermit;

use super::targets::Targets;
use crate::{bulk::BulkFlow, submission::edits::Edit};
use fairlead_base::{
    budget::Identity,
    errors::{Refusal, excerpt},
};
use fairlead_known::{accounts::Who, ids::id_of_texts, previews::PreviewDoc, queues::LAB};

/// For how long a preview can be run, ms.
pub(super) const LIVES_MS: u64 = 600_000;
/// Most entries of a list that people are shown.
const SHOWN_MAX: usize = 200;
/// Characters of an id.
const ID_CHARS: usize = 20;
/// A preview that names more takes turns with others, and with large submits.
const QUICK_MAX: usize = 100;
/// Longest reason, characters.
const REASON_MAX: usize = 300;

impl BulkFlow {
    /// Says what an action will touch, and keeps that for ten minutes.
    pub(crate) async fn make_preview(
        self: &Arc<Self>,
        who: &Who,
        asked: PreviewRequest,
        filter: Option<Search>,
    ) -> Result<Preview, Refusal> {
        if is_for_admins(asked.action) {
            who.require_admin()?;
        }
        check(&asked)?;
        let turn = self.preview_turn(&asked).await?;
        let targets = self.targets(who, &asked, filter).await?;
        let shares = if asked.action == BulkAction::Weights {
            shares(&self.people.queue_views().await?, &asked.weights)
        } else {
            Vec::new()
        };
        let Targets {
            mut items,
            mut left_out,
        } = targets;
        let ids: Vec<String> = items.iter().map(|item| item.id.clone()).collect();
        let left_out_more = left_out.len().saturating_sub(SHOWN_MAX);
        items.truncate(SHOWN_MAX);
        left_out.truncate(SHOWN_MAX);
        let sentence = sentence(&asked, ids.len());
        // What was named is among the ids if it can be done.
        let asked = PreviewRequest {
            jobs: Vec::new(),
            hosts: Vec::new(),
            ..asked
        };
        let doc = PreviewDoc {
            by: who.name.clone(),
            sentence,
            asked,
            made_ms: self.ctx.clock.wall_ms(),
            ids,
            items,
            left_out,
            left_out_more: u64::try_from(left_out_more).unwrap_or(u64::MAX),
            shares,
            ..PreviewDoc::default()
        };
        let doc = doc.sealed(&self.ctx.sealer)?;
        let random = uuid::Uuid::new_v4().to_string();
        let mut id = id_of_texts(&[&self.ctx.replicas.run, &random]);
        id.truncate(ID_CHARS);
        let bytes = serde_json::to_vec(&doc).map_or(0, |json| json.len());
        drop(turn);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let (account, now) = (Identity::Account(who.name.clone()), self.ctx.clock.now());
        let previews = &self.ctx.budget.previews;
        previews.add(&account, &id, bytes, now.0)?;
        self.ctx.docs.put(&id, None, Some(&doc)).await?;
        Ok(self.shown(&id, &doc))
    }

    /// The turn of a large preview; `None`: this one is quick.
    async fn preview_turn(
        &self,
        asked: &PreviewRequest,
    ) -> Result<Option<SemaphorePermit<'_>>, Refusal> {
        let named = asked.jobs.len().max(asked.hosts.len());
        if asked.filter.is_empty() && named <= QUICK_MAX {
            return Ok(None);
        }
        let turn = self.submission.readers.acquire().await;
        turn.map(Some).map_err(|_| Refusal::Stopping)
    }

    async fn targets(
        self: &Arc<Self>,
        who: &Who,
        asked: &PreviewRequest,
        filter: Option<Search>,
    ) -> Result<Targets, Refusal> {
        use BulkAction as A;
        let mut targets = Targets::default();
        match asked.action {
            A::Cancel | A::Terminate | A::Rerun | A::Change | A::Hold | A::Release => {
                return self
                    .job_targets(who, asked.action, &asked.jobs, filter)
                    .await;
            }
            A::Cordon | A::Drain | A::Uncordon | A::Reserve | A::Unreserve => {
                return self.host_targets(asked.action, &asked.hosts).await;
            }
            A::PauseQueue | A::ResumeQueue => {
                let set = self.people.queues.set_of(&asked.queue);
                targets.take(
                    &asked.queue,
                    pausing(asked.action == A::PauseQueue, set.paused),
                );
            }
            A::PauseLab | A::ResumeLab => {
                let is_paused = self.people.queues.lab_pause().is_some();
                targets.take(LAB, pausing(asked.action == A::PauseLab, is_paused));
            }
            A::Weights => {
                for (queue, weight) in &asked.weights {
                    let set = self.people.queues.set_of(queue);
                    let words = format!("weight {} becomes {weight}", set.weight);
                    targets.take(queue, Ok(words));
                }
            }
        }
        Ok(targets)
    }

    /// A preview of one's own, or an admin's of all.
    pub(crate) async fn preview(&self, who: &Who, id: &str) -> Result<Preview, Refusal> {
        let stored = self.ctx.docs.read::<PreviewDoc>(id).await?;
        let doc = stored.map(|stored| stored.doc);
        let doc = doc.filter(|doc| doc.by == who.name || who.acts_for_all());
        let doc = doc.ok_or_else(|| unknown(id))?;
        Ok(self.shown(id, &doc))
    }

    pub(super) fn shown(&self, id: &str, doc: &PreviewDoc) -> Preview {
        let many = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let expires_ms = doc.made_ms.saturating_add(LIVES_MS);
        let is_over =
            doc.state == PreviewState::Previewed && expires_ms <= self.ctx.clock.wall_ms();
        Preview {
            preview_id: id.to_owned(),
            action: doc.action(),
            by: doc.by.clone(),
            made_ms: doc.made_ms,
            expires_ms,
            sentence: doc.sentence.clone(),
            total: many(doc.ids.len()),
            items: doc.items.clone(),
            items_more: many(doc.ids.len().saturating_sub(doc.items.len())),
            left_out: doc.left_out.clone(),
            left_out_more: doc.left_out_more,
            shares: doc.shares.clone(),
            state: if is_over {
                PreviewState::Expired
            } else {
                doc.state
            },
            done: doc.tried,
            failed: doc.failed.clone(),
        }
    }
}

pub(super) fn unknown(id: &str) -> Refusal {
    Refusal::new(
        ErrorCode::NotFound,
        format!("there is no preview '{}' of yours", excerpt(id)),
        "make one by POST /scheduler/v1/previews",
    )
}

fn pausing(pauses: bool, is_paused: bool) -> Result<String, String> {
    match (pauses, is_paused) {
        (true, true) => Err("it is paused already".to_owned()),
        (false, false) => Err("it is not paused".to_owned()),
        (true, false) => Ok("jobs are dispatched".to_owned()),
        (false, true) => Ok("paused".to_owned()),
    }
}

/// Whether only an admin may do it.
pub(super) fn is_for_admins(action: BulkAction) -> bool {
    use BulkAction as A;
    !matches!(
        action,
        A::Cancel | A::Terminate | A::Rerun | A::Change | A::Hold | A::Release
    )
}

/// Refuses what could never be done.
fn check(asked: &PreviewRequest) -> Result<(), Refusal> {
    let bad = |message: String, hint: &str| Err(Refusal::new(ErrorCode::BadField, message, hint));
    let reason = asked.reason.chars().count();
    if reason > REASON_MAX {
        let message = format!("reason: {reason} characters; the limit is {REASON_MAX}");
        return bad(message, "shorten it");
    }
    match asked.action {
        BulkAction::Change => {
            Edit::new(None, asked.set.clone())?;
        }
        BulkAction::Reserve if asked.accounts.is_empty() || asked.hours == 0 => {
            return bad(
                format!(
                    "reserve: {} accounts for {} hours",
                    asked.accounts.len(),
                    asked.hours
                ),
                r#""accounts": ["ann"], "hours": 2"#,
            );
        }
        BulkAction::PauseQueue | BulkAction::ResumeQueue => {
            fairlead_base::names::check_name("queue", &asked.queue)?;
        }
        BulkAction::Weights if asked.weights.is_empty() => {
            return bad(
                "weights: none is given".to_owned(),
                r#""weights": {"ci": 30}"#,
            );
        }
        BulkAction::Weights => {
            for (queue, weight) in &asked.weights {
                fairlead_base::names::check_name("queue", queue)?;
                crate::people::queues::check(&QueueChange {
                    weight: Some(*weight),
                    ..QueueChange::default()
                })?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn sentence(asked: &PreviewRequest, many: usize) -> String {
    use BulkAction as A;
    let jobs = |what: &str| match many {
        1 => format!("This {what} 1 job."),
        _ => format!("This {what} {many} jobs."),
    };
    let hosts = |what: &str| match many {
        1 => format!("This {what} 1 host."),
        _ => format!("This {what} {many} hosts."),
    };
    match asked.action {
        A::Cancel => jobs("cancels"),
        A::Terminate => jobs("stops"),
        A::Rerun => jobs("submits again"),
        A::Hold => jobs("holds back"),
        A::Release => jobs("releases"),
        A::Change => {
            let set = asked.set.iter().map(|(name, value)| match value {
                Value::String(text) => format!("{name} {text}"),
                other => format!("{name} {other}"),
            });
            let set: Vec<String> = set.collect();
            jobs(&format!("sets {} of", set.join(", ")))
        }
        A::Cordon => hosts("cordons"),
        A::Drain => hosts("drains"),
        A::Uncordon => hosts("opens"),
        A::Reserve => {
            let accounts = asked.accounts.join(", ");
            format!(
                "{} They are kept for {accounts} for {} hours.",
                hosts("reserves"),
                asked.hours
            )
        }
        A::Unreserve => hosts("gives back"),
        A::PauseQueue => format!(
            "Nothing of queue {} is dispatched from then on.",
            asked.queue
        ),
        A::ResumeQueue => format!("Jobs of queue {} are dispatched again.", asked.queue),
        A::Weights => format!("This sets the weights of {many} queues."),
        A::PauseLab => {
            "Nothing is dispatched in the whole lab from then on; running jobs go on.".to_owned()
        }
        A::ResumeLab => "Jobs are dispatched again in the whole lab.".to_owned(),
    }
}

/// The shares of queues of the classes that change: now, and with the new weights; among queues with work, and those
/// that change.
fn shares(queues: &[QueueView], weights: &BTreeMap<String, u32>) -> Vec<PreviewShare> {
    let counts =
        |queue: &&QueueView| queue.waiting + queue.running > 0 || weights.contains_key(&queue.name);
    let counted: Vec<&QueueView> = queues.iter().filter(counts).collect();
    let then = |queue: &QueueView| weights.get(&queue.name).copied().unwrap_or(queue.weight);
    let sum = |class: u8, weight: &dyn Fn(&QueueView) -> u32| -> u64 {
        let its = counted.iter().filter(|queue| queue.priority == class);
        its.map(|queue| u64::from(weight(queue))).sum()
    };
    let permille = |part: u32, whole: u64| {
        let share = u64::from(part) * 1_000 / whole.max(1);
        u32::try_from(share).unwrap_or(1_000)
    };
    let shares = counted.iter().map(|queue| PreviewShare {
        queue: queue.name.clone(),
        now_permille: permille(queue.weight, sum(queue.priority, &|queue| queue.weight)),
        then_permille: permille(then(queue), sum(queue.priority, &then)),
    });
    shares.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, priority: u8, weight: u32, waiting: u64) -> QueueView {
        let view = serde_json::json!({
            "name": name, "priority": priority, "weight": weight, "paused": false,
            "waiting": waiting, "running": 0, "share_permille": 0, "set": true,
        });
        serde_json::from_value(view).unwrap()
    }

    #[test]
    fn shares_follow_from_the_weights_of_queues_with_work() {
        let queues = [
            queue("a", 5, 10, 3),
            queue("b", 5, 30, 1),
            queue("empty", 5, 100, 0),
            queue("other", 9, 10, 1),
        ];
        let shares = shares(&queues, &BTreeMap::from([("a".to_owned(), 30)]));
        let of =
            |share: &PreviewShare| (share.queue.clone(), share.now_permille, share.then_permille);
        let found: Vec<_> = shares.iter().map(of).collect();
        let expected = [("a", 250, 500), ("b", 750, 500), ("other", 1_000, 1_000)];
        let expected = expected.map(|(name, now, then)| (name.to_owned(), now, then));
        assert_eq!(found, expected);
    }

    #[test]
    fn what_could_never_be_done_is_refused_with_its_value() {
        let asked = |json: Value| serde_json::from_value::<PreviewRequest>(json).unwrap();
        for (request, word) in [
            (
                serde_json::json!({"action": "change", "set": {"suite": "x"}}),
                "suite",
            ),
            (
                serde_json::json!({"action": "reserve", "hosts": ["a"]}),
                "0 accounts",
            ),
            (serde_json::json!({"action": "weights"}), "none"),
            (
                serde_json::json!({"action": "weights", "weights": {"a": 0}}),
                "0",
            ),
            (
                serde_json::json!({"action": "pause_queue", "queue": "a b"}),
                "a b",
            ),
            (
                serde_json::json!({"action": "pause_lab", "reason": "x".repeat(301)}),
                "301",
            ),
        ] {
            let refused = check(&asked(request)).unwrap_err().to_string();
            assert!(refused.contains(word), "{word}: {refused}");
        }
    }
}
