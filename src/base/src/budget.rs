//! Fair shares of what requests use together: memory, places to wait, streams, uploads, previews and pins.
//!
//! Each of them has a pot, and each use is charged to an identity: an account, a job, or the address of a stranger. Nobody
//! may have more of a pot than is then left for all others. So one identity takes half of it at most, and whoever comes
//! next finds room. Testboxes have a reserve for what keeps jobs alive. A charge ends when it is dropped.

mod kept;
mod pot;

use std::sync::Arc;

use fairlead_job::file::limits::NODES_MAX;
use serde_json::Value;

use crate::Limits;
pub use kept::Kept;
pub use pot::{Charge, Identity};
use pot::{Pot, PotLimits, SOON};

/// Memory of one JSON value besides its text, bytes: the value, and its share of the container.
const VALUE_BYTES: u64 = size_of::<Value>() as u64 + 64;
/// Memory of one key or value of YAML with its place, bytes, while a job file is read.
const NODE_BYTES: u64 = 150;
/// Copies in memory at worst: one as read, and one as stored.
const COPIES: u64 = 2;
const DAY_MS: u64 = 24 * 3_600_000;
const MONTH_MS: u64 = 30 * DAY_MS;
/// Limits of a pot that is limited elsewhere.
const NO_LIMIT: PotLimits = PotLimits::of(u64::MAX, u64::MAX);
// Advice for an account that has its share.
const RUN_THEM: &str = "run previews within a day, or make them smaller";
const END_IT: &str = "end a put by its manifest before the next one, or wait for a day";
const SAY_LESS: &str =
    "give hosts fewer tags and facts, or forget gone ones: fairlead hosts forget NAME";
const NAME_REAL: &str = "name machines that exist: fairlead hosts";

/// Resources that all requests share.
#[derive(Debug)]
pub struct Budget {
    /// Bodies, values built from them, and answers that are not read yet, bytes.
    pub memory: Arc<Pot>,
    /// Waiting requests, and streams.
    pub places: Arc<Pot>,
    /// Unfinished requests of unidentified senders.
    pub strangers: Arc<Pot>,
    /// Uploads under way, by job.
    pub uploads: Arc<Pot>,
    /// Previews that are stored, by account: bytes for a day.
    pub previews: Kept,
    /// Pins of puts that have not ended, by account: bytes for a day.
    pub pins: Kept,
    /// Chunks that no manifest names, by account: bytes for a day. Quotas limit them.
    pub chunks: Kept,
    /// Data that hosts report, by the account of their token: bytes while the hosts are known.
    pub hosts: Arc<Pot>,
    /// Names of unknown machines in waiting jobs, by account: bytes for a month.
    pub machines: Kept,
}

fn many(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

impl Budget {
    pub fn new(limits: &Limits) -> Self {
        let memory = PotLimits {
            all_max: limits.request_memory_max,
            reserve: limits.request_memory_reserve,
            strangers_max: limits.strangers_memory_max,
            each_max: u64::MAX,
        };
        let waiters = many(limits.waiters_max);
        let places = PotLimits {
            reserve: waiters,
            ..PotLimits::of(waiters.saturating_mul(2), u64::MAX)
        };
        let strangers = PotLimits {
            strangers_max: many(limits.strangers_requests_max),
            ..PotLimits::of(
                many(limits.strangers_requests_max),
                many(limits.stranger_requests_max),
            )
        };
        let uploads = PotLimits::of(many(limits.uploads_max), many(limits.uploads_of_job_max));
        let previews = PotLimits::of(
            limits.previews_bytes_max,
            limits.previews_of_account_bytes_max,
        );
        let pins = PotLimits::of(limits.pins_bytes_max, u64::MAX);
        let machines = PotLimits::of(limits.unknown_machines_bytes_max, u64::MAX);
        let hosts = PotLimits::of(limits.hosts_bytes_max, u64::MAX);
        let of = Pot::new;
        Self {
            memory: of("bytes of memory", SOON, memory),
            places: of("places to wait", SOON, places),
            strangers: of("requests under way", SOON, strangers),
            uploads: of("uploads under way", SOON, uploads),
            previews: Kept::new(of("bytes of previews", RUN_THEM, previews), DAY_MS),
            pins: Kept::new(of("bytes of pins", END_IT, pins), DAY_MS),
            chunks: Kept::new(of("bytes of chunks", SOON, NO_LIMIT), DAY_MS),
            hosts: of("bytes of what hosts say", SAY_LESS, hosts),
            machines: Kept::new(
                of("bytes of names of unknown machines", NAME_REAL, machines),
                MONTH_MS,
            ),
        }
    }
}

/// Returns the approximate memory of JSON text once it is parsed, bytes, rather too much. Parses nothing.
pub fn built_bytes(text: &[u8]) -> u64 {
    let (mut values, mut in_text, mut escaped) = (1u64, false, false);
    for byte in text {
        if in_text {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_text = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => in_text = true,
                b',' | b'[' | b'{' => values += 1,
                _ => {}
            }
        }
    }
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    copies(values.saturating_mul(VALUE_BYTES).saturating_add(length))
}

/// Returns the memory of this many bytes once they are jobs.
pub fn copies(bytes: u64) -> u64 {
    bytes.saturating_mul(COPIES)
}

/// Returns the approximate memory of YAML text while it is read, bytes.
pub fn yaml_bytes(text: &[u8]) -> u64 {
    let nodes = text.iter().filter(|byte| b",:\n[{-".contains(byte)).count();
    let nodes = nodes.min(2 * NODES_MAX);
    u64::try_from(nodes)
        .unwrap_or(u64::MAX)
        .saturating_mul(NODE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_takes_is_seen_before_it_is_built() {
        let numbers = format!("[{}0]", "0,".repeat(999));
        assert!(built_bytes(numbers.as_bytes()) >= 1000 * VALUE_BYTES);
        let text = format!("{{\"script\": \"{}\\\",,,\"}}", "[,:{".repeat(1000));
        assert!(built_bytes(text.as_bytes()) < COPIES * (2 * VALUE_BYTES + 5000));
    }
}
