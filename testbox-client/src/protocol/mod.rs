//! The protocol of an agent with its scheduler, without IO: what it sends, and when.
//!
//! Messages between an agent and a scheduler are lost, late, or repeated. Three things must not follow from that: a
//! granted job that nobody runs, a job that runs twice, and a host that idles beside waiting jobs. These rules prevent
//! them:
//!
//! - Requests for work have numbers. Each names the jobs that the agent has, and up to which request no answer is on
//!   its way any more (`seen`). A job that was granted up to there and is not named goes back.
//! - A request without an answer is repeated under its number, and gets the same answer again. So no other jobs are
//!   granted for it.
//! - A newer attempt of a job begins only after the older one on this host is over.
//! - A request is replaced and never dropped. To hang up would undo what was just granted for it. At most two are open.
//! - The reports of a job are sent in order, each until it is answered. Five seconds after the job's end only that end
//!   is reported. A job stays named until its end is confirmed.
//!
//! For example, a host of 1,000 MB has 400 MB free and asks for work (request 5). A job of 300 MB ends:
//!
//! ```text
//! agent      request 6: 700 MB free, request 5 is still open
//! scheduler  answers 5: job 41, with 200 MB, which it had just claimed for it
//! agent      begins job 41, and counts 500 MB as offered by request 6
//! ```
//!
//! Without contact, a lease ends and the scheduler gives the job to another host. A job that must not run twice says so
//! (`stop_when_cut_off`). With a lease of 60 s, the agent stops such a job after 40 s without an answer. The job then
//! has at most 10 s to end.
//!
//! [`Core`] takes an [`Event`] with its time, and answers with [`Action`]s. It has no clock, no network and no task,
//! and its only randomness is a seed. So the same events give the same actions. The agent of this crate drives it, and
//! so do simulated testboxes:
//!
//! ```text
//! driver: event and time -> Core::handle -> Core::next_action, until there is none -> driver: sends, starts, stops
//!         at Core::wakes_at, if no other event came before: Event::Wake
//! ```

mod answers;
mod backoff;
mod contact;
mod core;
mod event;
mod failure;
mod host;
mod job;
mod jobs;
mod load;
mod reports;
mod roster;
#[cfg(test)]
mod tests;
mod told;

pub use self::core::Core;
pub use backoff::Backoff;
pub use event::{Action, Event};
pub use failure::Failure;
pub use host::{Host, Key, Leftover, Room, Time};
pub use load::{LOADED_REST, Measured};
pub use told::{Stop, Told, Why, Word};
