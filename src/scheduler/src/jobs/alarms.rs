//! Remembers the alarms of waiting jobs that are due soon.

use fairlead_job::Stage;
use fairlead_store::StoredJob;

use crate::jobs::JobFlow;
use fairlead_known::controllers::{AHEAD_MS, ALARMS};

impl JobFlow {
    /// A waiting job was written, told of or read: remembers its alarm, if it rings soon.
    pub(crate) fn set_alarm(&self, stored: &StoredJob) {
        let (state, now_ms) = (&stored.state, self.ctx.clock.wall_ms());
        let soon = state.stage == Stage::Submit
            && (1..now_ms.saturating_add(AHEAD_MS)).contains(&state.alarm_ms);
        if !soon {
            return;
        }
        let rank = self.ctx.turn_for(state.job_id);
        let at_ms = state.alarm_ms.saturating_add(ALARMS.later_ms(rank));
        self.alarms
            .set(state.job_id, stored.version, at_ms, stored.clone());
    }
}
