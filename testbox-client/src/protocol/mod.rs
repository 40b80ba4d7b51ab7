//! The protocol of an agent with its scheduler, without IO: what it sends, and when.
//!
//! [`Core`] takes an [`Event`] with its time, and answers with [`Action`]s. It has no clock, no network and no task,
//! and its only randomness is a seed. So the same events give the same actions. The agent of this crate drives it, and
//! so do simulated testboxes.
//!
//! A driver feeds each event to [`Core::handle`], then carries out all of [`Core::next_action`]. At [`Core::wakes_at`],
//! if no other event came before, it feeds [`Event::Wake`].

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
