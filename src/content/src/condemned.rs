//! The lists of what collectors are about to delete, as puts read them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Digest;

/// Time without a change after which a list or a collector counts as abandoned. A batch takes at most a minute. The
/// longest request takes a minute of repeats and two minutes for the last one.
pub(crate) const LEASE: Duration = Duration::from_mins(5);

/// Digests that a batch may delete.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Condemned {
    pub(crate) digests: Vec<Digest>,
}
