//! Remembers the alarms of waiting jobs that are due soon.

use fairlead_job::Stage;
use fairlead_store::StoredJob;

use crate::core::Core;

/// How much later each replica looks at a job than the one that comes before it, ms.
pub(crate) const OTHERS_LATER_MS: u64 = 2_000;
/// How far ahead alarms are known, ms: more than two seconds between looks and a search that lags by another.
pub(crate) const AHEAD_MS: u64 = 5_000;

impl Core {
    /// A waiting job was written, told of or read: remembers its alarm, if it rings soon.
    pub(crate) fn set_alarm(&self, stored: &StoredJob) {
        let (state, now_ms) = (&stored.state, self.clock.wall_ms());
        let soon = state.stage == Stage::Submit
            && (1..now_ms.saturating_add(AHEAD_MS)).contains(&state.alarm_ms);
        if !soon {
            return;
        }
        let rank = self.turn_for(state.job_id);
        let turn = u64::try_from(rank).unwrap_or(u64::MAX);
        let at_ms = state
            .alarm_ms
            .saturating_add(turn.saturating_mul(OTHERS_LATER_MS));
        self.waiting
            .alarms
            .set(state.job_id, stored.version, at_ms, stored.clone());
    }
}
