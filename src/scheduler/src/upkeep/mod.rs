//! Chores: old months, clock steps, the keys of the lab.

pub(crate) mod clock_steps;
pub(crate) mod drop_months;
pub(crate) mod hints;
pub(crate) mod key_check;
pub(crate) mod keys;
pub(crate) mod restore;
pub(crate) mod rounds;
