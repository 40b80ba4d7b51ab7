//! Orders to stop a job: kept where the job's course sees them, the strongest wins.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

/// Why a job is to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Why {
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
pub(crate) struct Stop {
    pub(crate) why: Why,
    /// Time between the polite signal and the last one.
    pub(crate) grace: Duration,
}

/// The end at which orders are given. Clones give orders to the same job.
#[derive(Debug, Clone)]
pub(crate) struct StopHandle(Arc<watch::Sender<Option<Stop>>>);

impl StopHandle {
    pub(crate) fn new() -> (Self, watch::Receiver<Option<Stop>>) {
        let (sender, receiver) = watch::channel(None);
        (Self(Arc::new(sender)), receiver)
    }

    /// Gives an order; one that is not stronger than what is there already changes nothing, so an
    /// order may be repeated with each heartbeat.
    pub(crate) fn order(&self, stop: Stop) {
        self.0.send_if_modified(|present| {
            let stronger = present
                .as_ref()
                .is_none_or(|present| stop.why.strength() > present.why.strength());
            if stronger {
                *present = Some(stop);
            }
            stronger
        });
    }

    pub(crate) fn forget(&self, reason: impl Into<String>, grace: Duration) {
        self.order(Stop {
            why: Why::Forget {
                reason: reason.into(),
            },
            grace,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_order_stands() {
        let (handle, receiver) = StopHandle::new();
        let order = |health: &str| Stop {
            why: Why::Order {
                health: health.to_owned(),
                reason: String::new(),
            },
            grace: Duration::ZERO,
        };
        handle.order(order("terminate"));
        handle.order(order("timeout_running"));
        handle.order(Stop {
            why: Why::Agent,
            grace: Duration::ZERO,
        });
        assert_eq!(*receiver.borrow(), Some(order("terminate")));
        handle.forget("gone", Duration::ZERO);
        handle.order(order("terminate"));
        assert!(matches!(
            receiver.borrow().as_ref().map(|stop| &stop.why),
            Some(Why::Forget { .. })
        ));
    }
}
