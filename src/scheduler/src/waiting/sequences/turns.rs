//! One look at a sequence: who has a turn, who gets one, and who is replaced.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_job::{JobId, Stage};
use fairlead_store::{ItemError, JobState, Search, SearchOrder, StoredJob};

use crate::waiting::WaitingFlow;
use fairlead_base::{
    errors::Refusal,
    storage::small_doc::{DocError, Stored},
};
use fairlead_known::sequences::{Key, SequenceTurn};
use fairlead_lifecycle::{
    alarm::is_ripe,
    sequence::{Open, is_recent, replaced_by, with_turn, without_turn},
    stages::HELD,
};

/// Members of one page, and as many with a place are enough: the oldest ones. Those behind them are looked at later.
const MEMBERS_MAX: u32 = 1_000;
/// Pages of one look, if most members have no place yet.
const PAGES_MAX: usize = 20;

/// What a look at a sequence found.
#[derive(Debug, Clone, Copy)]
pub(super) enum Looked {
    /// Something changed meanwhile, or by this look: another look is needed.
    Changed,
    /// As many have a turn as may.
    Settled,
    /// All members have ended.
    Over,
}

impl Looked {
    fn of(is_settled: bool) -> Self {
        if is_settled {
            Self::Settled
        } else {
            Self::Changed
        }
    }
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

impl Holders {
    /// Sorts the members of a sequence by whether they have a turn.
    fn sort<'a>(&self, states: &'a BTreeMap<JobId, StoredJob>) -> Open<'a> {
        let mut open = Open {
            begun_ms: self.begun_ms.clone(),
            ..Open::default()
        };
        for (id, job) in states {
            // One that begins somewhere although nobody is named counts, too.
            let has_begun = job.state.sequence_turn || job.state.stage != Stage::Submit;
            let is_ripe = is_ripe(&job.state);
            if has_begun || (is_ripe && self.ids.contains(id)) {
                open.with_turn.insert(*id, &job.state);
            } else if is_ripe {
                open.waiting.push(&job.state);
            } else {
                open.unripe.push(&job.state);
            }
        }
        open
    }

    /// The document that names these; `None`: there are none.
    fn turn(&self, mut holders: Vec<JobId>, at_ms: u64, now_ms: u64) -> Option<SequenceTurn> {
        let holder = holders.pop()?;
        let begun_ms = self.begun_ms.iter().copied();
        Some(SequenceTurn {
            holder,
            others: holders,
            begun_ms: begun_ms.filter(|ms| is_recent(*ms, now_ms)).collect(),
            host: self.host.clone(),
            at_ms,
        })
    }
}

impl WaitingFlow {
    /// Looks once at who has a turn, and gives turns that are free.
    pub(super) async fn pass_on_once(self: &Arc<Self>, key: &Key) -> Result<Looked, Refusal> {
        let known = self.read_sequence(key).await?;
        let Some(named) = Box::pin(self.look_at_holders(known.as_ref())).await? else {
            return Ok(Looked::Changed);
        };
        let members = self.members(key).await?;
        let members = members.into_iter().chain(named.open.iter().cloned());
        let mut states: BTreeMap<JobId, StoredJob> =
            members.map(|job| (job.state.job_id, job)).collect();
        let open = named.sort(&states);
        if states.is_empty() {
            return Ok(Looked::Over);
        }
        let is_changed = Box::pin(self.take_turns_back(&states)).await?
            || Box::pin(self.replace(&open, &states)).await?;
        if is_changed {
            return Ok(Looked::Changed);
        }
        let now_ms = self.ctx.clock.wall_ms();
        let turns = open.turns(now_ms);
        if let Some(again_ms) = turns.again_ms {
            let looks = &self.known.sequences.looks;
            looks.look_at(key.clone(), again_ms, ());
        }
        let untold = open.with_turn.values().filter(|it| !it.sequence_turn);
        let mut told: Vec<JobId> = untold.map(|state| state.job_id).collect();
        told.extend(&turns.next);
        let raised: Vec<(JobId, i16)> = open
            .with_turn
            .iter()
            .filter_map(|(id, state)| Some((*id, open.raised(state)?)))
            .collect();
        let has_left = |id| !open.with_turn.contains_key(id);
        if !told.is_empty() || named.ids.iter().any(has_left) {
            let since_ms = match &known {
                Some(known) if turns.next.is_empty() => known.doc.at_ms,
                _ => now_ms,
            };
            let holders = open.with_turn.keys().chain(&turns.next).copied().collect();
            let Some(turn) = named.turn(holders, since_ms, now_ms) else {
                return Ok(Looked::Settled);
            };
            if !self.name_holders(key, known.as_ref(), &turn).await? {
                return Ok(Looked::Changed);
            }
        }
        let mut is_settled = turns.next.is_empty();
        for id in &told {
            if let Some(member) = states.remove(id) {
                is_settled &= self.give_turn(member, &named.host).await?;
            }
        }
        for (id, priority) in raised {
            if let Some(member) = states.remove(&id) {
                self.raise(member, priority).await?;
            }
        }
        Ok(Looked::of(is_settled))
    }

    /// The jobs that a document names. `None`: one that had ended, or waited for something else, does not, for what was
    /// read vanished.
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
        for holder in self.ctx.store.get(&named.ids).await?.into_iter().flatten() {
            if !holder.state.stage.is_terminal() {
                let is_left = !holder.state.sequence_turn && !is_ripe(&holder.state);
                if is_left && !Box::pin(self.jobs.are_proven(vec![holder.clone()])).await? {
                    return Ok(None);
                }
                named.open.push(holder);
                continue;
            }
            // What is read may vanish, and with it the end.
            let (holder, is_sure) = Box::pin(self.jobs.confirm(holder)).await?;
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

    /// Takes turns back from members that wait for something else now; `true`: some had one.
    async fn take_turns_back(
        self: &Arc<Self>,
        states: &BTreeMap<JobId, StoredJob>,
    ) -> Result<bool, Refusal> {
        let mut is_change = false;
        let lapsed = states
            .values()
            .filter(|job| without_turn(&job.state).is_some());
        for member in lapsed {
            let back = |state: &JobState| Ok(without_turn(state));
            let changed = self.jobs.change_known(member.clone(), back).await?;
            is_change |= changed.is_change();
        }
        Ok(is_change)
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
        let now_ms = self.ctx.clock.wall_ms();
        let mut is_change = false;
        for member in replaced.iter().filter_map(|id| states.get(id)) {
            let over = |state: &JobState| Ok(replaced_by(state, &newest, now_ms));
            let changed = self.jobs.change_known(member.clone(), over).await?;
            is_change |= changed.is_change();
        }
        Ok(is_change)
    }

    /// A member that has its turn and waits for a host stands in the queue by the best job behind it.
    async fn raise(self: &Arc<Self>, member: StoredJob, priority: i16) -> Result<(), Refusal> {
        self.jobs
            .change_known(member, |state| {
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
        match self.ctx.docs.put(&key.id(), over, Some(turn)).await {
            Ok(_) => Ok(true),
            Err(ItemError::Conflict { .. } | ItemError::Unknown { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// `false`: it changed meanwhile. Then another look may have seen it held and given its turn away, so it gets none
    /// before the next look.
    pub(super) async fn give_turn(
        self: &Arc<Self>,
        member: StoredJob,
        host: &str,
    ) -> Result<bool, Refusal> {
        let now_ms = self.ctx.clock.wall_ms();
        let mut is_as_read = true;
        let give = |state: &JobState| {
            let is_first = std::mem::take(&mut is_as_read);
            Ok(is_first.then(|| with_turn(state, host, now_ms)).flatten())
        };
        let given = self.jobs.change_known(member, give).await?.after.state;
        Ok(given.sequence_turn || given.stage.is_held())
    }

    pub(super) async fn read_sequence(
        &self,
        key: &Key,
    ) -> Result<Option<Stored<SequenceTurn>>, DocError> {
        self.ctx.docs.read(&key.id()).await
    }

    /// The first members that have not ended, as many as it takes to find enough with a place, and the newest of all.
    async fn members(&self, key: &Key) -> Result<Vec<StoredJob>, Refusal> {
        let mut search = Search {
            accounts: vec![key.account.clone()],
            sequences: vec![key.key.clone()],
            stages: std::iter::once(Stage::Submit).chain(HELD).collect(),
            order: SearchOrder::OldestFirst,
            limit: MEMBERS_MAX,
            ..Search::default()
        };
        let mut members: Vec<StoredJob> = Vec::new();
        let mut placed = 0;
        for _ in 0..PAGES_MAX {
            let page = self.ctx.store.search(&search).await?;
            search.after = page.jobs.last().map(|job| job.state.job_id);
            placed += page.jobs.iter().filter(|job| is_ripe(&job.state)).count();
            members.extend(page.jobs);
            if !page.more {
                return Ok(members);
            }
            if u32::try_from(placed).is_ok_and(|placed| placed >= MEMBERS_MAX) {
                break;
            }
        }
        let newest = Search {
            order: SearchOrder::NewestFirst,
            limit: 1,
            after: None,
            ..search
        };
        members.extend(self.ctx.store.search(&newest).await?.jobs);
        Ok(members)
    }
}
