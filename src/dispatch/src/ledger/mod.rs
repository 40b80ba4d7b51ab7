//! The ledger: queues, their accounts, their charges, and who is next (I4, I5). Knows no hosts or shapes.

mod background;
mod charge;
mod charges;
mod idle;
mod idle_names;
mod limited;
mod limits;
mod notes;
mod owners;
mod state;
mod virtual_time;

pub(crate) use charge::{Charge, SHARE_MIN, WHOLE};
pub(crate) use state::{Ledger, MemberRank, Queue, QueueRank};
