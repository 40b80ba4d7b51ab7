//! Messages to a job: stop orders, of which the strongest wins, and the outcomes of its reports.

use std::time::Duration;

use fairlead_job::Stage;

use super::failure::Failure;

/// Reason to stop a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The agent stops.
    Agent,
    /// The scheduler orders it, and sets the health.
    Order {
        /// Health with which the job ends.
        health: String,
        /// Reason, for people.
        reason: String,
    },
    /// The job is no longer this agent's. Nothing is reported.
    Forget {
        /// Reason, for people.
        reason: String,
    },
}

impl Why {
    fn strength(&self) -> u8 {
        match self {
            Self::Agent => 0,
            Self::Order { .. } => 1,
            Self::Forget { .. } => 2,
        }
    }
}

/// An order to stop a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// Reason of the order.
    pub why: Why,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
}

impl Stop {
    pub(super) fn forget(reason: impl Into<String>, grace: Duration) -> Self {
        let reason = reason.into();
        Self {
            why: Why::Forget { reason },
            grace,
        }
    }

    /// Returns true if it is stronger than an earlier order. So heartbeats may repeat orders.
    pub(super) fn overrules(&self, before: Option<&Self>) -> bool {
        before.is_none_or(|before| self.why.strength() > before.why.strength())
    }
}

/// A message for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// Stop. A later order is stronger.
    Stop(Stop),
    /// Do not wait any longer for the answer to the report of this stage.
    GoOn(Stage),
    /// Time left after the job's limit. `None`: the limit stands.
    Limit(Option<Duration>),
    /// No stage report is in transit any more, so the results may be delivered and then the end reported.
    Deliver,
    /// Result of the report of the end.
    Ended(Result<(), Failure>),
}

/// All messages that a job got.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// Current order to stop.
    pub stop: Option<Stop>,
    /// Last stage that the job need not wait for.
    pub go_on: Option<Stage>,
    /// Number of messages about the limit, and the latest one.
    pub limit: (u32, Option<Duration>),
    /// True if its results may be delivered.
    pub deliver: bool,
    /// Result of the report of its end.
    pub ended: Option<Result<(), Failure>>,
}

impl Told {
    /// Takes in a message.
    pub fn hear(&mut self, word: Word) {
        match word {
            Word::Stop(stop) => self.stop = Some(stop),
            Word::GoOn(stage) => self.go_on = Some(stage),
            Word::Limit(left) => self.limit = (self.limit.0 + 1, left),
            Word::Deliver => self.deliver = true,
            Word::Ended(answer) => self.ended = Some(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_order_stands() {
        let order = |health: &str| Stop {
            why: Why::Order {
                health: health.to_owned(),
                reason: String::new(),
            },
            grace: Duration::ZERO,
        };
        let agent = Stop {
            why: Why::Agent,
            grace: Duration::ZERO,
        };
        let forget = Stop::forget("gone", Duration::ZERO);
        assert!(agent.overrules(None));
        assert!(order("terminate").overrules(Some(&agent)));
        assert!(!order("timeout_running").overrules(Some(&order("terminate"))));
        assert!(!agent.overrules(Some(&order("terminate"))));
        assert!(forget.overrules(Some(&order("terminate"))));
        assert!(!order("terminate").overrules(Some(&forget)));
    }
}
