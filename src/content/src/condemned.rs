//! The lists of what collectors are about to delete, as puts read them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Digest;

/// After this time without a change, a list or a collector counts as left behind. A batch takes a minute at most, and the
/// longest request a minute of repeats and two minutes for the last of them.
pub(crate) const LEASE: Duration = Duration::from_mins(5);

/// What a batch may delete.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Condemned {
    pub(crate) digests: Vec<Digest>,
}
