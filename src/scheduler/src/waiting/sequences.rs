//! Sequences: jobs of one account with the same `sequence` run one at a time, in the order of their submits (ids).
//!
//! A member waits like a job that waits for others, until it has its turn. A small document by account and key names
//! the job with the turn. When that job has certainly ended, a compare-and-set passes the turn to the oldest member
//! that has not ended. So one member runs at a time, however many replicas check. A replica that stores or ends a
//! member checks at once. One replica also checks each sequence periodically, for whatever was missed.

use std::sync::Arc;

use fairlead_job::{JobId, Stage};
use fairlead_store::{
    DocKind, DocWrite, Expect, ItemError, JobState, Search, SearchOrder, StoredJob,
};

use crate::{
    base::errors::Refusal,
    core::Core,
    known::sequences::{Key, SequenceTurn},
    lifecycle::{sequence::with_turn, stages::HELD},
    storage::small_doc::{DocError, Stored},
};

/// How often one look begins anew because somebody else was faster or the store did not say.
const TRIES_MAX: usize = 8;
/// How long the document of a sequence is kept when nothing happens in it, ms: a day.
const KEPT_MS: u64 = 86_400_000;

impl Core {
    /// Passes turns on as this replica hears of it, until it stops.
    pub(crate) async fn watch_sequences(self: Arc<Self>) {
        loop {
            tokio::select! {
                biased;
                () = self.draining.cancelled() => return,
                () = self.waiting.sequences.due.notified() => {}
            }
            let due = self
                .waiting
                .sequences
                .with(|known| std::mem::take(&mut known.due));
            for key in due {
                self.look_at_sequence(&key).await;
            }
        }
    }

    /// Looks again at the sequences that this replica comes first for.
    pub(crate) async fn sweep_sequences(self: &Arc<Self>) {
        let waiting = self.waiting.sequences.with(|known| known.waiting.clone());
        for key in waiting {
            if self.turn_for(key.number()) == 0 {
                self.look_at_sequence(&key).await;
            }
        }
    }

    async fn look_at_sequence(self: &Arc<Self>, key: &Key) {
        // Before: a member that is seen meanwhile stays known.
        self.waiting
            .sequences
            .with(|known| known.waiting.remove(key));
        let goes_on = self.pass_on(key).await.unwrap_or_else(|refusal| {
            tracing::warn!(
                sequence = key.key,
                error = %refusal,
                "a sequence could not be checked; it is checked later"
            );
            true
        });
        if goes_on {
            self.waiting
                .sequences
                .with(|known| known.waiting.insert(key.clone()));
        }
    }

    /// Sees to it that one member has the turn; `false`: all have ended.
    async fn pass_on(self: &Arc<Self>, key: &Key) -> Result<bool, Refusal> {
        for _ in 0..TRIES_MAX {
            let known = self.read_sequence(key).await?;
            let mut host = String::new();
            if let Some(known) = &known {
                host.clone_from(&known.doc.host);
                let holder = self.store.get(&[known.doc.holder]).await?;
                let holder = holder.into_iter().next().flatten();
                match holder {
                    Some(holder) if !holder.state.stage.is_terminal() => {
                        if Box::pin(self.made_sure(key, known, holder)).await? {
                            return Ok(true);
                        }
                        continue;
                    }
                    // What is read may vanish, and with it the end.
                    Some(holder) => match Box::pin(self.confirm(holder)).await? {
                        (holder, true) if !holder.state.host.is_empty() => host = holder.state.host,
                        (_, true) => {}
                        (_, false) => continue,
                    },
                    None => {}
                }
            }
            let Some(next) = self.oldest_member(key).await? else {
                return Ok(false);
            };
            let turn = SequenceTurn {
                holder: next.state.job_id,
                host,
                at_ms: self.clock.wall_ms(),
            };
            if self.name_holder(key, known.as_ref(), &turn, next).await? {
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// The document names this member, which has not ended: it has its turn, or gets it. `false`: the document
    /// changed.
    async fn made_sure(
        self: &Arc<Self>,
        key: &Key,
        known: &Stored<SequenceTurn>,
        holder: StoredJob,
    ) -> Result<bool, Refusal> {
        if holder.state.sequence_turn {
            return Ok(true);
        }
        // Who named it did not come to telling it; or the document that was read will vanish.
        self.name_holder(key, Some(known), &known.doc, holder).await
    }

    /// Writes down whose turn it is, and gives it to that member. `false`: the document changed, or it has ended.
    async fn name_holder(
        self: &Arc<Self>,
        key: &Key,
        over: Option<&Stored<SequenceTurn>>,
        turn: &SequenceTurn,
        member: StoredJob,
    ) -> Result<bool, Refusal> {
        match self.docs.put(&key.id(), over, Some(turn)).await {
            Ok(_) => self.give_turn(member, turn).await,
            // Somebody else was faster, or the store did not say.
            Err(ItemError::Conflict { .. } | ItemError::Unknown { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// `false`: it has ended meanwhile.
    async fn give_turn(
        self: &Arc<Self>,
        member: StoredJob,
        turn: &SequenceTurn,
    ) -> Result<bool, Refusal> {
        let now_ms = self.clock.wall_ms();
        let given = self
            .change_known(member, |state| Ok(with_turn(state, &turn.host, now_ms)))
            .await?;
        Ok(!given.after.state.stage.is_terminal())
    }

    async fn read_sequence(&self, key: &Key) -> Result<Option<Stored<SequenceTurn>>, DocError> {
        self.docs.read(&key.id()).await
    }

    /// The first member that has not ended.
    async fn oldest_member(&self, key: &Key) -> Result<Option<StoredJob>, Refusal> {
        self.store.refresh().await?;
        let search = Search {
            accounts: vec![key.account.clone()],
            sequences: vec![key.key.clone()],
            stages: std::iter::once(Stage::Submit).chain(HELD).collect(),
            order: SearchOrder::OldestFirst,
            limit: 1,
            ..Search::default()
        };
        Ok(self.store.search(&search).await?.jobs.pop())
    }

    /// What a member waits for.
    pub(crate) async fn why_no_turn(&self, state: &JobState) -> Option<String> {
        let key = Key::of(state).filter(|_| !state.sequence_turn)?;
        let turn = self.read_sequence(&key).await.ok().flatten();
        let who = match turn {
            Some(turn) if turn.doc.holder != state.job_id => {
                format!(": job {} has it", turn.doc.holder)
            }
            _ => String::new(),
        };
        Some(format!("waits for its turn in sequence '{}'{who}", key.key))
    }

    /// Forgets sequences in which nothing happened for a day.
    pub(crate) async fn forget_sequences(&self) -> Result<(), Refusal> {
        let before_ms = self.clock.wall_ms().saturating_sub(KEPT_MS);
        let mut old = self.docs.list::<SequenceTurn>().await?;
        old.retain(|(_, turn)| turn.doc.at_ms < before_ms);
        let holders: Vec<JobId> = old.iter().map(|(_, turn)| turn.doc.holder).collect();
        let found = self.store.get(&holders).await?;
        let over = old.into_iter().zip(found).filter(|(_, holder)| {
            holder
                .as_ref()
                .is_none_or(|job| job.state.stage.is_terminal())
        });
        let deletes = over.map(|((id, turn), _)| DocWrite {
            id,
            expect: Expect::Version(turn.version),
            body: None,
        });
        let deletes: Vec<DocWrite> = deletes.collect();
        if !deletes.is_empty() {
            // Another replica may have been faster.
            drop(self.store.put_docs(DocKind::Sequence, deletes).await);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fairlead_job::Health;

    use super::*;
    use crate::{
        lifecycle::{attempt::ended, sequence::kept_on},
        testing::{core, core_beside, state, store_job},
    };

    fn member(n: u64) -> JobState {
        JobState {
            sequence: "k".to_owned(),
            ready: false,
            ..state(n)
        }
    }

    fn key() -> Key {
        Key::of(&member(1)).unwrap()
    }

    async fn ready(core: &Core, ids: &[u64]) -> Vec<bool> {
        let ids: Vec<JobId> = ids.iter().map(|id| JobId::new(*id)).collect();
        let found = core.store.get(&ids).await.unwrap();
        found
            .into_iter()
            .map(|job| job.unwrap().state.ready)
            .collect()
    }

    async fn end(core: &Arc<Core>, id: u64) {
        let over = |state: &JobState| Ok(Some(ended(state, Stage::Finish, Health::Success, 9, "")));
        core.change(JobId::new(id), over).await.unwrap();
    }

    #[tokio::test]
    async fn one_runs_at_a_time_in_order_whoever_looks() {
        let (_data, a) = core().await;
        let b = core_beside(&a);
        for n in [3, 1, 2] {
            store_job(&a, member(n)).await;
        }
        for core in [&a, &b, &a] {
            assert_eq!(core.pass_on(&key()).await, Ok(true));
            assert_eq!(ready(&a, &[1, 2, 3]).await, [true, false, false]);
        }
        let why = a.why_no_turn(&member(2)).await.unwrap();
        let first = JobId::new(1).to_string();
        assert!(why.contains(&first) && why.contains("'k'"), "{why}");
        end(&a, 1).await;
        b.pass_on(&key()).await.unwrap();
        assert_eq!(ready(&a, &[2, 3]).await, [true, false]);
        // One that is cancelled while it waits keeps nobody.
        end(&b, 3).await;
        end(&a, 2).await;
        assert_eq!(a.pass_on(&key()).await, Ok(false));
    }

    /// Making sure of the end was taken for another end, and so on for ever.
    #[tokio::test]
    async fn the_end_of_the_last_one_is_looked_at_once() {
        let (_data, core) = core().await;
        store_job(&core, member(1)).await;
        assert_eq!(core.pass_on(&key()).await, Ok(true));
        end(&core, 1).await;
        let due = || {
            core.waiting
                .sequences
                .with(|known| std::mem::take(&mut known.due))
        };
        assert_eq!(due(), [key()].into());
        assert_eq!(core.pass_on(&key()).await, Ok(false));
        assert_eq!(due(), [].into());
    }

    #[tokio::test]
    async fn what_a_dead_replica_began_another_one_ends() {
        let (_data, a) = core().await;
        store_job(&a, member(1)).await;
        let turn = SequenceTurn {
            holder: JobId::new(1),
            host: String::new(),
            at_ms: 1,
        };
        let written = a.docs.put(&key().id(), None, Some(&turn)).await;
        assert!(written.is_ok());
        let b = core_beside(&a);
        b.waiting.sequences.seen(&member(1));
        Box::pin(b.sweep_sequences()).await;
        assert_eq!(ready(&a, &[1]).await, [true]);
        // A job that is over does not keep its turn, and nobody remembers it for ever.
        b.forget_sequences().await.unwrap();
        assert!(b.read_sequence(&key()).await.unwrap().is_some());
        end(&b, 1).await;
        b.forget_sequences().await.unwrap();
        assert!(b.read_sequence(&key()).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn those_that_stay_together_run_where_the_first_did() {
        let (_data, core) = core().await;
        for n in [1, 2] {
            let same = JobState {
                sequence_same_host: true,
                ..member(n)
            };
            store_job(&core, same).await;
        }
        core.pass_on(&key()).await.unwrap();
        let ran = |state: &JobState| {
            Ok(Some(JobState {
                host: "h7".to_owned(),
                ..ended(state, Stage::Finish, Health::Fail, 9, "")
            }))
        };
        core.change(JobId::new(1), ran).await.unwrap();
        core.pass_on(&key()).await.unwrap();
        let next = core.stored_job(JobId::new(2)).await.unwrap().state;
        assert_eq!(
            (next.ready, next.host_keys),
            (true, vec!["dc.x86_64@h7".to_owned()])
        );
    }

    #[test]
    fn keys_of_a_host_are_those_under_which_it_asks() {
        let kept = |keys: &[&str]| {
            let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
            kept_on(&keys, "h")
        };
        assert_eq!(kept(&["hw.x86_64", "hw@group"]), ["hw@h"]);
        assert_eq!(kept(&["vm.x86_64@h", "vm.x86_64@other"]), ["vm.x86_64@h"]);
        assert_eq!(kept(&["vm.x86_64@other"]), ["vm.x86_64@other"]);
    }
}
