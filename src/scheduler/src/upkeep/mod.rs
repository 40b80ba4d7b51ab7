//! Periodic chores, the start of a replica, its clock, old months, and the lab's keys.

pub(crate) mod clock_check;
pub(crate) mod clock_steps;
pub(crate) mod drop_months;
pub(crate) mod hints;
pub(crate) mod key_check;
pub(crate) mod keys;
pub(crate) mod restore;
pub(crate) mod rounds;
mod sealed;
