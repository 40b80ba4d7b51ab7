//! Looks of controllers (`storage/controller`), by the name of the controller.

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::times::Label;

/// Metrics of all controllers.
#[derive(Debug, Default)]
pub struct AllLooks {
    begun: Family<Label, Counter>,
    failed: Family<Label, Counter>,
    due: Family<Label, Gauge>,
}

/// Metrics of one controller.
#[derive(Debug, Clone)]
pub struct Looks {
    pub begun: Counter,
    pub failed: Counter,
    /// Keys that are due soon, or wait for their look.
    pub due: Gauge,
}

impl AllLooks {
    pub(super) fn register(&self, to: &mut Registry) {
        let help = "Looks at what was due, by controller";
        to.register("looks", help, self.begun.clone());
        let help = "Failed looks by controller; each is repeated soon";
        to.register("looks_failed", help, self.failed.clone());
        let help = "What is due soon, or waits for its look, by controller";
        to.register("looks_due", help, self.due.clone());
    }

    /// Returns the metrics of this controller.
    pub fn of(&self, controller: &'static str) -> Looks {
        let label = [("controller", controller)];
        Looks {
            begun: self.begun.get_or_create_owned(&label),
            failed: self.failed.get_or_create_owned(&label),
            due: self.due.get_or_create_owned(&label),
        }
    }
}
