//! Hosts, their open offers, and which of them wait under which host key. Never knows queues.

mod host;
mod load;
mod offer;
mod table;
mod waiting;

pub(crate) use host::Host;
pub(crate) use load::Load;
pub(crate) use offer::{Arrival, Nothing, OpenOffer, Slot, Standing};
pub(crate) use table::Hosts;
