//! Simulation: the real scheduler over a simulated store, network, clock and lab, in virtual time, from one seed.
//!
//! Several [`fairlead_scheduler::Replica`]s run in one thread with a paused clock. Hosts speak the wire format to them.
//! Messages are lost, delayed and doubled; processes die and pause; the store lags, loses answers and writes late. A
//! judge sees every change of the truth and every run. After a while all faults stop, and then every job must end well.
//! The same seed gives the same history.
//!
//! Entry point: [`simulate`].

mod admins;
mod answers;
mod chance;
mod chaos;
mod check;
mod cli;
mod clocks;
mod cloud;
mod health;
mod host;
mod inside;
mod kind;
mod log;
mod many;
mod needs;
mod net;
mod peers;
mod process;
mod query;
mod reuse;
mod run;
mod scenario;
mod store;
mod timer;
mod timers;
mod truth;
mod user;
mod world;

pub use chance::Chance;
pub use check::Counts;
pub use cli::SimulateArgs;
pub use kind::{FRESH, Kind, fresh_from};
pub use many::{simulate_all, workers};
pub use run::{Options, Outcome, simulate};
