//! Messages to a job: stop orders, of which the strongest wins, and the outcomes of its reports.

use std::time::Duration;

use fairlead_job::Stage;

use super::failure::Failure;

/// Why a job is to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The agent stops.
    Agent,
    /// The scheduler says so, and how the job ends.
    Order {
        /// The health that it ends with.
        health: String,
        /// Why, for people.
        reason: String,
    },
    /// It is no longer this agent's: report nothing.
    Forget {
        /// Why, for people.
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
    /// Why.
    pub why: Why,
    /// Time between the polite signal and the last one.
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

    /// Whether it counts beside an order that was given before. So an order may be repeated with each heartbeat.
    pub(super) fn overrules(&self, before: Option<&Self>) -> bool {
        before.is_none_or(|before| self.why.strength() > before.why.strength())
    }
}

/// Something that a job is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// It is to stop. A later order is a stronger one.
    Stop(Stop),
    /// It need not wait for the answer to the report of this stage any more.
    GoOn(Stage),
    /// What is left after its limit; `None`: the limit stands.
    Limit(Option<Duration>),
    /// No report of a stage is on its way any more: its results may be delivered, and then its end reported.
    Deliver,
    /// What became of the report of its end.
    Ended(Result<(), Failure>),
}

/// All that a job was told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// The order to stop that stands.
    pub stop: Option<Stop>,
    /// The last stage that it need not wait for.
    pub go_on: Option<Stage>,
    /// How often it was told of its limit, and what the last time.
    pub limit: (u32, Option<Duration>),
    /// Whether its results may be delivered.
    pub deliver: bool,
    /// What became of the report of its end.
    pub ended: Option<Result<(), Failure>>,
}

impl Told {
    /// Takes in what it is told.
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
