//! Hosts, their open offers, and the offers that wait under each host key. Knows no queues.

mod calm;
mod crowd;
mod host;
mod load;
mod offer;
mod table;
mod waiting;

pub(crate) use crowd::Crowd;
pub(crate) use host::Host;
pub(crate) use load::{Load, Taken};
pub(crate) use offer::{Arrival, Nothing, OpenOffer, Recency, Slot, Standing};
pub(crate) use table::Hosts;
