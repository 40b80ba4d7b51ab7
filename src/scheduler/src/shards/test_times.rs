//! Writes down how tests ended and how long they took.

use std::sync::Arc;

use fairlead_cases::Run;
use fairlead_store::JobState;

use crate::shards::ShardFlow;
use fairlead_base::errors::Refusal;
use fairlead_known::test_times::{TestTimes, prefix_of};

impl ShardFlow {
    /// The results of an attempt are in: notes its tests.
    pub(crate) fn learn_tests(&self, state: &JobState, runs: Vec<Run>) {
        if !runs.is_empty() {
            let key = (state.suite.clone(), state.host_group.clone());
            self.test_times.add(key, runs);
        }
    }

    /// Writes what was noted since the last time.
    pub(crate) async fn write_test_times(self: &Arc<Self>) -> Result<(), Refusal> {
        let now_ms = self.ctx.clock.wall_ms();
        for ((suite, group), runs) in self.test_times.take() {
            let id = format!("{}{group}", prefix_of(&suite));
            let learn = async |known: Option<TestTimes>| {
                let mut times = known.unwrap_or_else(|| TestTimes {
                    suite: suite.clone(),
                    group: group.clone(),
                    ..TestTimes::default()
                });
                times.learn(&runs, now_ms);
                Ok::<_, Refusal>(times)
            };
            self.ctx.docs.change(&id, learn).await?;
        }
        Ok(())
    }
}
