//! Writes how long hosts were occupied by jobs, and tells the engine at the start.

use std::sync::Arc;

use fairlead_dispatch::Event;
use fairlead_store::{DocFind, StoreError};

use crate::samples::SampleFlow;
use fairlead_base::errors::Refusal;
use fairlead_known::run_times::TimesDoc;

/// Documents of one page.
const PAGE: u32 = 1_000;
/// Most pages that are read at the start.
const PAGES_MAX: usize = 66;

impl SampleFlow {
    /// Writes what was noted since the last time. What cannot be written is noted again.
    pub(crate) async fn write_run_times(self: &Arc<Self>) -> Result<(), Refusal> {
        let mut all = self.known.run_times.take().into_iter();
        while let Some((pair, ends)) = all.next() {
            let learn = async |known: Option<TimesDoc>| {
                Ok::<_, Refusal>(TimesDoc::learn(known, &pair, &ends))
            };
            if let Err(refusal) = self.ctx.docs.change(&pair.id(), learn).await {
                self.known.run_times.add(pair, ends);
                all.for_each(|(pair, ends)| self.known.run_times.add(pair, ends));
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// Forgets the times of suites that did not run for long.
    pub(crate) async fn forget_run_times(&self) -> Result<(), StoreError> {
        self.ctx
            .docs
            .forget_due::<TimesDoc>(self.ctx.clock.wall_ms())
            .await
    }

    /// Tells the engine what is stored.
    pub(crate) async fn read_run_times(&self) -> Result<(), StoreError> {
        let mut find = DocFind {
            limit: PAGE,
            ..DocFind::default()
        };
        for _ in 0..PAGES_MAX {
            let page = self.ctx.docs.page::<TimesDoc>(&find).await?;
            let Some((last, _)) = page.last() else {
                break;
            };
            find.after.clone_from(last);
            let times = page.into_iter().map(|(_, stored)| stored.doc.times());
            self.ctx.engine.tell(Event::RunTimesRead(times.collect()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fairlead_dispatch::{JobKind, StoredTimes};
    use fairlead_job::{Health, Stage};
    use fairlead_store::JobState;

    use super::*;
    use crate::{
        flows::Flows,
        testing::{flows, flows_beside, held},
    };
    use fairlead_base::mailbox::Message;

    fn told(flows: &Flows) -> Vec<StoredTimes> {
        let messages = flows.ctx.engine.take().into_iter();
        let times = messages.filter_map(|message| match message {
            Message::Event(event) => match *event {
                Event::RunTimesRead(times) => Some(times),
                _ => None,
            },
            Message::Question(_) => None,
        });
        times.flatten().collect()
    }

    #[tokio::test]
    async fn the_next_replica_knows_how_long_jobs_took() {
        let (_data, flows) = flows().await;
        let before = JobState {
            dispatch_ms: 5_000,
            ..held()
        };
        let after = JobState {
            stage: Stage::Finish,
            health: Health::Success,
            end_ms: 65_000,
            ..before.clone()
        };
        for _ in 0..2 {
            // Two replicas add to the same document.
            let replica = flows_beside(&flows);
            replica.samples.known.run_times.ended(&before, &after);
            replica.samples.write_run_times().await.unwrap();
            replica.samples.write_run_times().await.unwrap();
        }
        let next = flows_beside(&flows);
        next.samples.read_run_times().await.unwrap();
        let [times] = told(&next).try_into().unwrap();
        assert_eq!(times.suite, before.suite);
        assert_eq!(times.all.samples(), 2);

        let mut engine = fairlead_dispatch::Engine::new(
            fairlead_dispatch::EngineConfig::default(),
            next.people.policy(),
        );
        let now = flows.ctx.clock.now();
        engine.on(now, Event::RunTimesRead(vec![times]), &mut Vec::new());
        let kind = JobKind {
            suite: &before.suite,
            class: 0,
            group: "another",
        };
        let expected = engine.run_times().expect_ms(kind);
        assert!(
            expected.is_some_and(|ms| ms.abs_diff(60_000) < 5_000),
            "{expected:?}"
        );
    }

    #[tokio::test]
    async fn times_are_forgotten_half_a_year_later() {
        let (_data, flows) = flows().await;
        let old = JobState {
            dispatch_ms: 5_000,
            ..held()
        };
        let wall_ms = flows.ctx.clock.wall_ms();
        for (suite, end_ms) in [("old", 65_000), ("new", wall_ms)] {
            let before = JobState {
                suite: suite.to_owned(),
                ..old.clone()
            };
            let after = JobState {
                stage: Stage::Finish,
                health: Health::Fail,
                end_ms,
                ..before.clone()
            };
            flows.samples.known.run_times.ended(&before, &after);
        }
        flows.samples.write_run_times().await.unwrap();
        flows.samples.forget_run_times().await.unwrap();
        flows.samples.read_run_times().await.unwrap();
        let suites: Vec<String> = told(&flows).into_iter().map(|times| times.suite).collect();
        assert_eq!(suites, ["new"]);
    }
}
