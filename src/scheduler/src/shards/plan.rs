//! Packs the tests that a job listed into its shards. The plan is stored once, under the name of what it holds, before the
//! parent names it.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_job::{Health, JobId};
use fairlead_store::{DocFind, DocKind, ItemError, StoreError, StoredJob};

use crate::shards::ShardFlow;
use fairlead_base::errors::Refusal;
use fairlead_known::{
    plans::{Plan, id_of, parent_of},
    test_times::{TestTimes, prefix_of},
};
use fairlead_lifecycle::{
    packing::{pack, read_list},
    shards::{never_planned, planned},
};

/// Most bytes of a list that are read.
const LIST_BYTES_MAX: u64 = 4 << 20;
/// How long after its end the output of a list may still be missing here, ms: another replica has it.
const OUTPUT_COMES_MS: u64 = 60_000;
/// How long a plan is kept from the submit of its job on, seconds: a week, in which what failed may run again.
const KEPT_S: u64 = 7 * 86_400;
/// Most plans that are looked at in one round.
const SWEPT_MAX: u32 = 1_000;
/// Most groups of hosts whose times are read.
const GROUPS_MAX: u32 = 32;

impl ShardFlow {
    /// Packs the tests that `lister` printed. `false`: its output is not here yet, or it changed meanwhile.
    pub(super) async fn plan_tests(
        self: &Arc<Self>,
        parent: StoredJob,
        lister: Vec<Option<StoredJob>>,
    ) -> Result<bool, Refusal> {
        let Some(list) = lister.first().cloned().flatten() else {
            return Ok(false);
        };
        if !self.are_sure(lister).await? {
            return Ok(false);
        }
        let (id, now_ms) = (list.state.job_id, self.ctx.clock.wall_ms());
        let attempt = list.state.attempt;
        let output = self.files.read_log(id, attempt, 0, LIST_BYTES_MAX).await?;
        if output.is_empty() && now_ms < list.state.end_ms.saturating_add(OUTPUT_COMES_MS) {
            return Ok(false);
        }
        let tests = match read_list(&String::from_utf8_lossy(&output)) {
            Ok(tests) => tests,
            Err(problem) => {
                let end = never_planned(&parent.state, Health::AbortInvalid, now_ms, &problem);
                self.set_parent(parent, end).await?;
                return Ok(true);
            }
        };
        let times = self.times_of(&parent.state.suite).await?;
        let most = parent.state.shards.as_ref().map_or(1, |it| it.count);
        let plan = Plan {
            tests: pack(&tests, |name| times.get(name).copied(), most),
        };
        let digest = plan.digest();
        let plan_id = id_of(parent.state.job_id, &digest);
        match self.ctx.docs.put(&plan_id, None, Some(&plan)).await {
            // Another replica packed them in the same way.
            Ok(_) | Err(ItemError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let count = u16::try_from(plan.tests.len()).unwrap_or(most);
        let wanted = planned(&parent.state, count, &digest);
        self.set_parent(parent, wanted).await?;
        Ok(true)
    }

    /// How long the tests of a suite take, seconds: the mean over all groups of hosts.
    async fn times_of(&self, suite: &str) -> Result<BTreeMap<String, f64>, StoreError> {
        let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for times in self.test_times_of(suite).await? {
            for (name, record) in times.tests {
                if let Some(seconds) = record.seconds {
                    let sum = sums.entry(name).or_default();
                    *sum = (sum.0 + seconds, sum.1 + 1.0);
                }
            }
        }
        let means = sums.into_iter();
        Ok(means
            .map(|(name, (sum, many))| (name, sum / many))
            .collect())
    }

    /// What is remembered of the tests of a suite, by group of hosts.
    pub(crate) async fn test_times_of(&self, suite: &str) -> Result<Vec<TestTimes>, StoreError> {
        let find = DocFind {
            prefix: prefix_of(suite),
            limit: GROUPS_MAX,
            ..DocFind::default()
        };
        let found = self.ctx.store.page_docs(DocKind::TestTimes, &find).await?;
        let docs = found.docs.into_iter();
        let read = docs.filter_map(|doc| serde_json::from_value(doc.body).ok());
        Ok(read
            .filter(|times: &TestTimes| times.suite == suite)
            .collect())
    }

    /// Forgets old plans of jobs that have ended, some at a time.
    pub(crate) async fn sweep_plans(&self) -> Result<(), StoreError> {
        let before_s = (self.ctx.clock.wall_ms() / 1_000).saturating_sub(KEPT_S);
        let find = DocFind {
            limit: SWEPT_MAX,
            ..DocFind::default()
        };
        let oldest = self.ctx.store.page_docs(DocKind::Plan, &find).await?.docs;
        let parents = oldest
            .iter()
            .filter_map(|doc| Some((parent_of(&doc.id)?, doc)));
        let old = parents.filter(|(parent, _)| parent.born_s() < before_s);
        let (ids, docs): (Vec<JobId>, Vec<_>) = old.unzip();
        let parents = self.ctx.store.get(&ids).await?;
        for (parent, doc) in parents.into_iter().zip(docs) {
            let is_needed = parent.is_some_and(|parent| !parent.state.stage.is_terminal());
            if !is_needed {
                // Another replica may have been faster.
                drop(self.ctx.docs.delete::<Plan>(&doc.id).await);
            }
        }
        Ok(())
    }
}
