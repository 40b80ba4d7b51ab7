//! The controllers of all flows (`storage/controller`), each with a row of constants.

use fairlead_base::storage::controller::{By, Row};

/// Time by which alarms, timers and webhooks are known in advance, ms. It covers the 2 s between reads of the store and
/// the lag of a search.
pub const AHEAD_MS: u64 = 5_000;

/// Defaults of the rows.
const ROW: Row = Row {
    name: "",
    by: By::Own,
    keys_max: 100_000,
    width: 1,
    batch: 1,
    again_ms: 2_000,
    others_later_ms: 2_000,
};

/// Alarms of waiting jobs.
pub static ALARMS: Row = Row {
    name: "alarms",
    by: By::Wall,
    keys_max: 20_000,
    width: 256,
    ..ROW
};

/// Timers. A lost replica's timers still begin within a second.
pub static TIMERS: Row = Row {
    name: "timers",
    by: By::Wall,
    keys_max: 20_000,
    width: 4,
    batch: 500,
    again_ms: 500,
    others_later_ms: 500,
};

/// Webhooks.
pub static WEBHOOKS: Row = Row {
    name: "webhooks",
    width: 32,
    again_ms: 3_000,
    others_later_ms: 3_000,
    ..ROW
};

/// Parents of shards. The row has room for the maximum number of parents.
pub static PARENTS: Row = Row {
    name: "parents",
    keys_max: 1_000_000,
    width: 64,
    ..ROW
};

/// Sequences. One refresh of the store serves a batch. Batches of a sweep leave room for a sequence in which a job has
/// just ended.
pub static SEQUENCES: Row = Row {
    name: "sequences",
    by: By::Wall,
    width: 2,
    batch: 1_000,
    again_ms: 10_000,
    ..ROW
};

/// Clusters.
pub static CLUSTERS: Row = Row {
    name: "clusters",
    width: 16,
    ..ROW
};

/// Results that other jobs may reuse. Results over the limit are forgotten, so those jobs run once more.
pub static RESULTS: Row = Row {
    name: "results",
    keys_max: 20_000,
    width: 16,
    again_ms: 1_000,
    ..ROW
};
