//! Ids of jobs, offers, hosts and queues, and the order of jobs. Imports nothing of this crate.

use slotmap::new_key_type;
use std::cmp::Reverse;

/// Milliseconds since the Unix epoch by the caller's *monotonic* clock, which never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(pub u64);

/// A job's id as a number; greater means submitted later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey(pub u64);

/// One request of a host for work. Made by the caller, never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferKey(pub u64);

/// Version of a stored job's state. Ordered by (`primary_term`, `seq_no`): a later version is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version {
    /// Elasticsearch's `_primary_term`; 1 in the embedded store.
    pub primary_term: u64,
    /// Elasticsearch's `_seq_no`.
    pub seq_no: u64,
}

new_key_type! {
    /// A host that is known.
    pub(crate) struct HostId;
    /// A queue that is known.
    pub(crate) struct QueueId;
    /// An account in a queue.
    pub(crate) struct MemberId;
    /// An account, over all queues.
    pub(crate) struct AccountId;
    /// The jobs of one owner and shape.
    pub(crate) struct BucketId;
    /// A host key under which jobs wait.
    pub(crate) struct KeyId;
    /// A shape that some cached job has.
    pub(crate) struct ShapeId;
}

/// Highest class.
pub(crate) const CLASS_MAX: u8 = 9;

/// Owner of a job: the queue and the member that are charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub queue: QueueId,
    pub member: MemberId,
}

/// Order inside an account: priority, higher first, then submit order.
pub(crate) type Place = (Reverse<i16>, JobKey);
