//! `fairlead replay history`: from a lab's jobs, hosts and queues to a replay of them, and its figures as tables.

mod history;
mod past;
mod plot;
mod policy;

pub(crate) use history::{HistoryArgs, run};
pub(crate) use plot::write_plot;
