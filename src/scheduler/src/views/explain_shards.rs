//! Explains a job that runs in parts.

use fairlead_job::Stage;
use fairlead_job::units::counted;
use fairlead_store::{JobState, StoredJob};

use crate::views::ViewFlow;
use fairlead_lifecycle::parent::is_released;

/// The shards of a parent, as they are in the store.
pub(super) struct ShardsSeen {
    count: u16,
    run: usize,
    over: usize,
    missing: usize,
    /// Its tests are not packed yet: the job that lists them is the only one.
    lists: bool,
    /// Why they stop; empty: they do not.
    stops: String,
    pub(super) first_waiting: Option<StoredJob>,
}

/// The shards of a job, if it has some that were released and the store can be read.
pub(super) async fn shards_of(flow: &ViewFlow, state: &JobState) -> Option<ShardsSeen> {
    let sharding = state.shards.as_ref().filter(|_| is_released(state))?;
    let shards = flow.jobs.read_shards(state.job_id, sharding.count).await;
    let shards = shards.ok()?.1;
    let there: Vec<&StoredJob> = shards.iter().flatten().collect();
    let of = |is: fn(&Stage) -> bool| there.iter().filter(|job| is(&job.state.stage)).count();
    let waits = |job: &&&StoredJob| job.state.stage == Stage::Submit;
    let stops = Some(&state.reason).filter(|_| state.stop_asked);
    Some(ShardsSeen {
        count: sharding.count,
        run: of(|stage| stage.is_held()),
        over: of(|stage| stage.is_terminal()),
        missing: shards.len() - there.len(),
        lists: sharding.is_unplanned(),
        stops: stops.cloned().unwrap_or_default(),
        first_waiting: there.iter().find(waits).map(|job| (*job).clone()),
    })
}

impl ShardsSeen {
    pub(super) fn summary(&self) -> String {
        let Self {
            count, run, over, ..
        } = self;
        if self.lists {
            return match (run, over) {
                (0, 0) => "the job that lists its tests waits".to_owned(),
                (_, 0) => "the job that lists its tests runs".to_owned(),
                _ => "its tests are packed".to_owned(),
            };
        }
        let wait = usize::from(*count).saturating_sub(run + over);
        format!("of its {count} shards {wait} wait, {run} run and {over} have ended")
    }

    /// `first`: why the first of them that waits does.
    pub(super) fn reasons(&self, first: Option<String>) -> Vec<String> {
        let mut reasons = Vec::new();
        if !self.stops.is_empty() {
            reasons.push(format!("its shards stop: {}", self.stops));
        }
        if let (Some(job), Some(why)) = (&self.first_waiting, first) {
            reasons.push(format!("its shard {} waits: {why}", job.state.job_id));
        }
        if self.missing > 0 {
            let many = u64::try_from(self.missing).unwrap_or(u64::MAX);
            let missing = counted(many, "shard is", "shards are");
            reasons.push(format!("{missing} not stored yet"));
        }
        reasons
    }
}
