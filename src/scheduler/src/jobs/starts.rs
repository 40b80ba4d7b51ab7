//! Jobs whose time has come: those of one time go to hosts together.

use fairlead_dispatch::Millis;
use fairlead_store::{JobState, StoredJob};

use crate::jobs::JobFlow;

impl JobFlow {
    /// Before when a job that is ready now is given to no host, since others of the same start time get ready, too; 0: at
    /// once. `before`: its state before this replica changed it.
    pub(super) fn with_others(&self, state: &JobState, before: Option<&JobState>) -> Millis {
        let of_alarm = || {
            let start_ms = |alarm: &StoredJob| alarm.state.start_ms;
            self.alarms.look(&state.job_id, start_ms)
        };
        let start_ms = before.map(|before| before.start_ms).or_else(of_alarm);
        let start_ms = start_ms.filter(|start_ms| *start_ms > 0 && state.ready);
        start_ms.map_or(Millis(0), |start_ms| {
            self.starts.not_before(start_ms, self.ctx.clock.now())
        })
    }
}

#[cfg(test)]
mod tests {
    use fairlead_dispatch::Event;
    use fairlead_job::JobId;
    use fairlead_store::Version;

    use super::*;
    use crate::testing::{flows, state, store_job};
    use fairlead_base::mailbox::Message;
    use fairlead_lifecycle::alarm::at_alarm;

    /// A host that waits would get the first one that is ready, whatever its priority.
    #[tokio::test]
    async fn jobs_of_one_start_time_go_to_hosts_together() {
        let (_data, flows) = flows().await;
        let start_ms = flows.ctx.clock.wall_ms();
        let delayed = JobState {
            ready: false,
            start_ms,
            ..state(7)
        }
        .set_alarm();
        let known = |n| StoredJob {
            state: JobState {
                job_id: JobId::new(n),
                ..delayed.clone()
            },
            version: Version::default(),
        };
        // One is made ready here, and a peer tells of the other.
        let own = store_job(&flows, known(7).state).await;
        flows.jobs.observe(&known(8));
        flows.ctx.engine.take();
        let begun = |state: &JobState| Ok(at_alarm(state, start_ms));
        flows.jobs.change_known(own, begun).await.unwrap();
        let told = StoredJob {
            state: at_alarm(&known(8).state, start_ms).unwrap(),
            version: Version {
                primary_term: 1,
                seq_no: 5,
            },
        };
        flows.jobs.observe(&told);
        let waiting = flows.ctx.engine.take().into_iter();
        let from: Vec<Millis> = waiting
            .filter_map(|message| match message {
                Message::Event(event) => Some(*event),
                Message::Question(_) => None,
            })
            .filter_map(|event| match event {
                Event::JobsLearned(jobs) => Some(jobs),
                _ => None,
            })
            .flatten()
            .map(|facts| facts.not_before)
            .collect();
        assert!(from.len() == 2 && from[0] == from[1], "{from:?}");
        assert!(from[0] > flows.ctx.clock.now(), "{from:?}");
    }
}
