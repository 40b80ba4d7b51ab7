//! Sequences: of the jobs of one account with the same `sequence` one runs at a time, with the same `concurrency` as many
//! as its limits say, in the order of their submits (ids).
//!
//! A member waits like a job that waits for others, until it has its turn. A small document by account and key names
//! the jobs with a turn. When one of them has certainly ended, a compare-and-set passes its turn to the oldest member
//! that has not ended. So no more run than may, however many replicas check. A replica that stores or ends a
//! member checks at once. One replica also checks each sequence periodically, for whatever was missed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use fairlead_job::{JobId, Stage};
use fairlead_store::{
    DocKind, DocWrite, Expect, ItemError, JobState, Search, SearchOrder, StoredJob,
};

use crate::{
    base::errors::Refusal,
    core::Core,
    known::sequences::{Key, SequenceTurn},
    lifecycle::{
        sequence::{Open, is_recent, replaced_by, with_turn},
        stages::HELD,
    },
    storage::small_doc::{DocError, Stored},
};

/// How often one look begins anew because somebody else was faster or the store did not say.
const TRIES_MAX: usize = 8;
/// How long the document of a sequence is kept when nothing happens in it, ms: a day.
const KEPT_MS: u64 = 86_400_000;
/// The longest sleep until the clock is looked at again, which may step, ms.
const LATER_MAX_MS: u64 = 10_000;
/// Members of one sequence that are looked at: the oldest ones. Those behind them are looked at later.
const MEMBERS_MAX: u32 = 1_000;

/// What a look at a sequence found.
enum Looked {
    /// Something changed meanwhile, or by this look: another look is needed.
    Changed,
    /// As many have a turn as may.
    Settled,
    /// All members have ended.
    Over,
}

/// The jobs that a document names.
#[derive(Debug, Default)]
struct Holders {
    ids: Vec<JobId>,
    /// Those that have not ended.
    open: Vec<StoredJob>,
    /// Where the last one ran that has ended; empty: none did.
    host: String,
    /// When those began that are named no more, UTC epoch ms.
    begun_ms: Vec<u64>,
}

impl Core {
    /// Passes turns on as this replica hears of it, until it stops.
    pub(crate) async fn watch_sequences(self: Arc<Self>) {
        loop {
            let next_ms = self.waiting.sequences.with(|known| known.next_ms());
            let left_ms = next_ms.map(|ms| ms.saturating_sub(self.clock.wall_ms()));
            let left = Duration::from_millis(left_ms.unwrap_or(LATER_MAX_MS).min(LATER_MAX_MS));
            tokio::select! {
                biased;
                () = self.draining.cancelled() => return,
                () = self.waiting.sequences.due.notified() => {}
                () = self.clock.sleep(left) => {}
            }
            let now_ms = self.clock.wall_ms();
            let due = self.waiting.sequences.with(|known| known.take_due(now_ms));
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

    /// Sees to it that as many members have a turn as may; `false`: all have ended.
    async fn pass_on(self: &Arc<Self>, key: &Key) -> Result<bool, Refusal> {
        for _ in 0..TRIES_MAX {
            match Box::pin(self.pass_on_once(key)).await? {
                Looked::Changed => {}
                Looked::Settled => return Ok(true),
                Looked::Over => return Ok(false),
            }
        }
        Ok(true)
    }

    async fn pass_on_once(self: &Arc<Self>, key: &Key) -> Result<Looked, Refusal> {
        let known = self.read_sequence(key).await?;
        let Some(named) = Box::pin(self.look_at_holders(known.as_ref())).await? else {
            return Ok(Looked::Changed);
        };
        self.store.refresh().await?;
        let members = self.members(key).await?;
        let mut states: BTreeMap<JobId, StoredJob> = BTreeMap::new();
        for job in members.into_iter().chain(named.open) {
            states.insert(job.state.job_id, job);
        }
        let is_named = |id: &JobId| named.ids.contains(id);
        let mut open = Open {
            begun_ms: named.begun_ms.clone(),
            ..Open::default()
        };
        for (id, job) in &states {
            // One that begins somewhere although nobody is named counts, too.
            if is_named(id) || job.state.sequence_turn || job.state.stage != Stage::Submit {
                open.with_turn.insert(*id, &job.state);
            } else {
                open.waiting.push(&job.state);
            }
        }
        if open.with_turn.is_empty() && open.waiting.is_empty() {
            return Ok(Looked::Over);
        }
        if Box::pin(self.replace(&open, &states)).await? {
            return Ok(Looked::Changed);
        }
        let now_ms = self.clock.wall_ms();
        let turns = open.turns(now_ms);
        if let Some(again_ms) = turns.again_ms {
            self.waiting.sequences.due_at(key, again_ms);
        }
        let untold = open.with_turn.values().filter(|it| !it.sequence_turn);
        let untold: Vec<JobId> = untold.map(|state| state.job_id).collect();
        let mut holders: Vec<JobId> = open.with_turn.keys().copied().collect();
        holders.extend(&turns.next);
        let raised: Vec<(JobId, i16)> = open
            .with_turn
            .iter()
            .filter_map(|(id, state)| Some((*id, open.raised(state)?)))
            .collect();
        let has_ended = named.ids.iter().any(|id| !states.contains_key(id));
        if !turns.next.is_empty() || !untold.is_empty() || has_ended {
            let Some((holder, others)) = holders.split_last() else {
                return Ok(Looked::Settled);
            };
            let begun = named.begun_ms.iter().copied();
            let turn = SequenceTurn {
                holder: *holder,
                others: others.to_vec(),
                begun_ms: begun.filter(|ms| is_recent(*ms, now_ms)).collect(),
                host: named.host.clone(),
                at_ms: match &known {
                    Some(known) if turns.next.is_empty() => known.doc.at_ms,
                    _ => now_ms,
                },
            };
            if !self.name_holders(key, known.as_ref(), &turn).await? {
                return Ok(Looked::Changed);
            }
        }
        let mut is_settled = turns.next.is_empty();
        for id in untold.iter().chain(&turns.next) {
            if let Some(member) = states.remove(id) {
                is_settled &= self.give_turn(member, &named.host).await?;
            }
        }
        for (id, priority) in raised {
            if let Some(member) = states.remove(&id) {
                self.raise(member, priority).await?;
            }
        }
        Ok(if is_settled {
            Looked::Settled
        } else {
            Looked::Changed
        })
    }

    /// The jobs that a document names. `None`: one that had ended has not, for what was read vanished.
    async fn look_at_holders(
        self: &Arc<Self>,
        known: Option<&Stored<SequenceTurn>>,
    ) -> Result<Option<Holders>, Refusal> {
        let mut named = Holders::default();
        let Some(turn) = known.map(|known| &known.doc) else {
            return Ok(Some(named));
        };
        named.host.clone_from(&turn.host);
        named.begun_ms.clone_from(&turn.begun_ms);
        named.ids = turn.holders();
        for holder in self.store.get(&named.ids).await?.into_iter().flatten() {
            if !holder.state.stage.is_terminal() {
                named.open.push(holder);
                continue;
            }
            // What is read may vanish, and with it the end.
            let (holder, is_sure) = Box::pin(self.confirm(holder)).await?;
            if !is_sure {
                return Ok(None);
            }
            if holder.state.dispatch_ms > 0 {
                named.begun_ms.push(holder.state.dispatch_ms);
            }
            if !holder.state.host.is_empty() {
                named.host = holder.state.host;
            }
        }
        Ok(Some(named))
    }

    /// Takes out the members that a newer one replaces; `true`: some were.
    async fn replace(
        self: &Arc<Self>,
        open: &Open<'_>,
        states: &BTreeMap<JobId, StoredJob>,
    ) -> Result<bool, Refusal> {
        let Some((newest, replaced)) = open.replaced() else {
            return Ok(false);
        };
        let Some(newest) = states.get(&newest).map(|job| job.state.clone()) else {
            return Ok(false);
        };
        let now_ms = self.clock.wall_ms();
        let mut is_change = false;
        for member in replaced.iter().filter_map(|id| states.get(id)) {
            let over = |state: &JobState| Ok(replaced_by(state, &newest, now_ms));
            let changed = self.change_known(member.clone(), over).await?;
            is_change |= changed.is_change();
        }
        Ok(is_change)
    }

    /// A member that has its turn and waits for a host stands in the queue by the best job behind it.
    async fn raise(self: &Arc<Self>, member: StoredJob, priority: i16) -> Result<(), Refusal> {
        self.change_known(member, |state| {
            let is_raised = state.stage == Stage::Submit && state.priority < priority;
            Ok(is_raised.then(|| JobState {
                priority,
                ..state.clone()
            }))
        })
        .await?;
        Ok(())
    }

    /// Writes down whose turn it is. `false`: the document changed, or the store did not say.
    async fn name_holders(
        &self,
        key: &Key,
        over: Option<&Stored<SequenceTurn>>,
        turn: &SequenceTurn,
    ) -> Result<bool, Refusal> {
        match self.docs.put(&key.id(), over, Some(turn)).await {
            Ok(_) => Ok(true),
            Err(ItemError::Conflict { .. } | ItemError::Unknown { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// `false`: it has ended meanwhile.
    async fn give_turn(self: &Arc<Self>, member: StoredJob, host: &str) -> Result<bool, Refusal> {
        let now_ms = self.clock.wall_ms();
        let given = self
            .change_known(member, |state| Ok(with_turn(state, host, now_ms)))
            .await?;
        Ok(!given.after.state.stage.is_terminal())
    }

    async fn read_sequence(&self, key: &Key) -> Result<Option<Stored<SequenceTurn>>, DocError> {
        self.docs.read(&key.id()).await
    }

    /// The first members that have not ended, and the newest of all.
    async fn members(&self, key: &Key) -> Result<Vec<StoredJob>, Refusal> {
        let search = Search {
            accounts: vec![key.account.clone()],
            sequences: vec![key.key.clone()],
            stages: std::iter::once(Stage::Submit).chain(HELD).collect(),
            order: SearchOrder::OldestFirst,
            limit: MEMBERS_MAX,
            ..Search::default()
        };
        let mut page = self.store.search(&search).await?;
        if page.more {
            let newest = Search {
                order: SearchOrder::NewestFirst,
                limit: 1,
                ..search
            };
            page.jobs.extend(self.store.search(&newest).await?.jobs);
        }
        Ok(page.jobs)
    }

    /// What a member waits for.
    pub(crate) async fn why_no_turn(&self, state: &JobState) -> Option<String> {
        let key = Key::of(state).filter(|_| !state.sequence_turn)?;
        let turn = self.read_sequence(&key).await.ok().flatten();
        let holders = turn.map(|turn| turn.doc.holders()).unwrap_or_default();
        let who = match holders.as_slice() {
            [] => String::new(),
            [one] if *one == state.job_id => String::new(),
            [one] => format!(": job {one} has it"),
            [first, ..] => format!(": {} jobs have one, job {first} among them", holders.len()),
        };
        let limits = limits_text(state);
        Some(format!(
            "waits for its turn in sequence '{}'{limits}{who}",
            key.key
        ))
    }

    /// Forgets sequences in which nothing happened for a day.
    pub(crate) async fn forget_sequences(&self) -> Result<(), Refusal> {
        let before_ms = self.clock.wall_ms().saturating_sub(KEPT_MS);
        let mut old = self.docs.list::<SequenceTurn>().await?;
        old.retain(|(_, turn)| turn.doc.at_ms < before_ms);
        let holders: Vec<JobId> = old
            .iter()
            .flat_map(|(_, turn)| turn.doc.holders())
            .collect();
        let found = self.store.get(&holders).await?.into_iter().flatten();
        let open: BTreeSet<JobId> = found
            .filter(|job| !job.state.stage.is_terminal())
            .map(|job| job.state.job_id)
            .collect();
        old.retain(|(_, turn)| turn.doc.holders().iter().all(|id| !open.contains(id)));
        let deletes = old.into_iter().map(|(id, turn)| DocWrite {
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

/// The limits of a job in a sequence, in words; empty: one at a time.
fn limits_text(state: &JobState) -> String {
    let mut limits = Vec::new();
    if state.sequence_limit > 1 {
        limits.push(format!("at most {} run", state.sequence_limit));
    }
    if state.sequence_per_minute > 0 {
        limits.push(format!(
            "at most {} begin in a minute",
            state.sequence_per_minute
        ));
    }
    if limits.is_empty() {
        String::new()
    } else {
        format!(" ({})", limits.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use fairlead_job::{Health, Replace};

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
            others: Vec::new(),
            begun_ms: Vec::new(),
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

    #[tokio::test]
    async fn as_many_run_as_the_limit_says_whoever_looks() {
        let (_data, a) = core().await;
        let b = core_beside(&a);
        let of_two = |n| JobState {
            sequence_limit: 2,
            ..member(n)
        };
        for n in 1..=4 {
            store_job(&a, of_two(n)).await;
        }
        let same = key();
        let (left, right) = tokio::join!(a.pass_on(&same), b.pass_on(&same));
        assert_eq!((left, right), (Ok(true), Ok(true)));
        assert_eq!(ready(&a, &[1, 2, 3, 4]).await, [true, true, false, false]);
        let why = a.why_no_turn(&of_two(3)).await.unwrap();
        assert!(
            why.contains("at most 2 run") && why.contains("2 jobs"),
            "{why}"
        );
        end(&a, 1).await;
        b.pass_on(&key()).await.unwrap();
        assert_eq!(ready(&a, &[2, 3, 4]).await, [true, true, false]);
        let turn = a.read_sequence(&key()).await.unwrap().unwrap().doc;
        assert_eq!(turn.holders().len(), 2, "{turn:?}");
    }

    #[tokio::test]
    async fn the_rate_is_kept_and_the_next_look_has_a_time() {
        let (_data, core) = core().await;
        let rated = |n| JobState {
            sequence_limit: 10,
            sequence_per_minute: 1,
            ..member(n)
        };
        for n in [1, 2] {
            store_job(&core, rated(n)).await;
        }
        core.pass_on(&key()).await.unwrap();
        assert_eq!(ready(&core, &[1, 2]).await, [true, false]);
        let began_ms = core.clock.wall_ms();
        let ran = |state: &JobState| {
            Ok(Some(JobState {
                dispatch_ms: began_ms,
                ..ended(state, Stage::Finish, Health::Success, began_ms + 1, "")
            }))
        };
        core.change(JobId::new(1), ran).await.unwrap();
        core.pass_on(&key()).await.unwrap();
        assert_eq!(ready(&core, &[2]).await, [false]);
        let next_ms = core.waiting.sequences.with(|known| known.next_ms());
        assert_eq!(next_ms, Some(began_ms + 60_000));
        let due = core
            .waiting
            .sequences
            .with(|known| known.take_due(began_ms + 60_000));
        assert!(due.contains(&key()));
    }

    #[tokio::test]
    async fn the_newest_cancels_older_ones_and_lends_its_priority() {
        let (_data, core) = core().await;
        for n in [1, 2] {
            let plain = JobState {
                submit_id: n.to_string(),
                ..member(n)
            };
            store_job(&core, plain).await;
        }
        let urgent = JobState {
            priority: 9,
            submit_id: "3".to_owned(),
            ..member(3)
        };
        store_job(&core, urgent.clone()).await;
        core.pass_on(&key()).await.unwrap();
        let first = core.stored_job(JobId::new(1)).await.unwrap().state;
        assert_eq!((first.ready, first.priority), (true, 9));
        let newest = JobState {
            sequence_replace: Some(Replace::Waiting),
            submit_id: "4".to_owned(),
            ..urgent
        };
        store_job(
            &core,
            JobState {
                job_id: JobId::new(4),
                ..newest
            },
        )
        .await;
        core.pass_on(&key()).await.unwrap();
        for n in [1, 2, 3] {
            let state = core.stored_job(JobId::new(n)).await.unwrap().state;
            assert_eq!(state.stage, Stage::Cancel, "{n}");
        }
        assert_eq!(ready(&core, &[4]).await, [true]);
    }
}
