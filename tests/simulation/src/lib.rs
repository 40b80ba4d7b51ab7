//! Simulation: the real scheduler over a simulated store, network, clock and lab, in virtual time, from
//! one seed.
//!
//! Several [`fairlead_scheduler::Replica`]s run in one thread with a paused clock. Hosts speak the wire
//! format to them; messages are lost, delayed and doubled; processes die and pause; the store lags, loses
//! answers and writes late. A judge looks at every change of the truth and at every run. After a while
//! all faults end, and everything must end well (DESIGN section 8). The same seed gives the same history.
//!
//! Entry point: [`simulate`].

mod admins;
mod chance;
mod chaos;
mod check;
mod cli;
mod clocks;
mod health;
mod host;
mod inside;
mod log;
mod net;
mod peers;
mod process;
mod query;
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
pub use cli::{SimulateArgs, replay};
pub use run::{Options, Outcome, simulate};
