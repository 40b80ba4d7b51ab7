//! Pools of machines that come and go: one replica at a time decides how many there are, and tells their providers.
//!
//! A decision and the machines that it asks for are stored before a provider is called. Each machine has a token, and the
//! same token makes one machine, so a call may be repeated by whoever decides next. A machine retires by its session
//! document: from then on no replica gives it a job, and only then it is ended.

mod calls;
mod decide;
mod explain;
mod fleet;
mod lease;
mod machines;
mod memory;
mod people;
mod round;
mod trial;
mod work;
