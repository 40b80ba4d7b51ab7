//! Bulks: many writes in one request, each with its own result.
//!
//! A bulk is split by items and bytes. If it is refused as a whole (a malformed line, too large), it is halved until
//! the faulty item is alone. Items that met overload or a month without an index are retried, because they were
//! certainly not stored.

use std::{collections::BTreeSet, time::Duration};

use futures_util::{StreamExt, stream};
use reqwest::Method;
use serde_json::value::RawValue;

use super::{
    call::{Answered, Call, Failure, Kind},
    cluster::Cluster,
    reply::{self, Bulk, BulkItem},
    setup,
};
use crate::{ItemError, Version, clock, codec::refused, health::Outcomes};

/// Maximum number of items in one bulk.
const BULK_ITEMS: usize = 500;
/// Approximate maximum size of one bulk, bytes. Elasticsearch limits all requests in flight to a tenth of its heap.
const BULK_BYTES: usize = 5 << 20;
/// Maximum number of rounds for items that were not taken.
const ROUNDS: u32 = 4;
/// Wait before the second round; doubled with each.
const ROUND_WAIT: Duration = Duration::from_millis(50);
/// Text in the error of a block that an operator set.
const BY_OPERATOR: &str = "(api)]";
/// Parts of the answer that are needed.
const REPLY: &str = "items.*.status,items.*._seq_no,items.*._primary_term,\
    items.*.error.type,items.*.error.reason,items.*.error.caused_by,items.*.get._source";

/// One write.
#[derive(Debug, Clone)]
pub(super) struct Op {
    /// Index that it writes to.
    pub(super) index: String,
    /// Action, and the document if there is one: whole lines.
    pub(super) lines: String,
}

/// Mode of sending a batch of writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    /// True if a bulk may be sent again when it may have been written already.
    pub(super) is_repeatable: bool,
    /// Number of bulks that may be in flight; 1 keeps the order of the items.
    pub(super) in_flight: usize,
}

/// Result of an update.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub(super) version: Version,
    /// Whole document, if the update asked for it.
    pub(super) source: Option<Box<RawValue>>,
}

/// Result of one item in one round.
#[derive(Debug)]
enum Got {
    Done(Result<Written, ItemError>),
    Busy(String),
    NoIndex,
}

impl Cluster {
    /// Sends all writes. The results are in the order of `ops`.
    pub(super) async fn bulk(&self, ops: &[Op], how: How) -> Vec<Result<Version, ItemError>> {
        let written = self.bulk_written(ops, how).await.into_iter();
        written.map(|item| Ok(item?.version)).collect()
    }

    /// Sends all writes, and returns the documents that the updates asked for.
    pub(super) async fn bulk_written(
        &self,
        ops: &[Op],
        how: How,
    ) -> Vec<Result<Written, ItemError>> {
        let mut results: Vec<Result<Written, ItemError>> = ops.iter().map(|_| not_sent()).collect();
        let mut open: Vec<usize> = (0..ops.len()).collect();
        for round in 1..=ROUNDS {
            let got = self.round(ops, &open, how).await;
            open.clear();
            let mut missing = BTreeSet::new();
            for (number, got) in got {
                let (Some(slot), Some(op)) = (results.get_mut(number), ops.get(number)) else {
                    continue;
                };
                *slot = match got {
                    Got::Done(result) => result,
                    Got::Busy(reason) => {
                        open.push(number);
                        Err(ItemError::NotTaken { reason })
                    }
                    Got::NoIndex => {
                        open.push(number);
                        missing.insert(op.index.clone());
                        Err(ItemError::NotTaken {
                            reason: format!("index {} does not exist", op.index),
                        })
                    }
                };
            }
            if open.is_empty() || round == ROUNDS {
                break;
            }
            open.sort_unstable();
            if missing.is_empty() {
                clock::pause(self.chance.jitter(ROUND_WAIT * 2_u32.pow(round))).await;
            } else if let Err(error) = setup::make_indices(self, missing).await {
                tracing::warn!(%error, "an index could not be created");
            }
        }
        results
    }

    /// Sends the valid writes. The results are in the order of `made`. Invalid writes keep their errors.
    pub(super) async fn bulk_made(
        &self,
        made: Vec<Result<Op, ItemError>>,
        how: How,
    ) -> Vec<Result<Written, ItemError>> {
        let mut ops = Vec::with_capacity(made.len());
        let failed: Vec<Option<ItemError>> = made
            .into_iter()
            .map(|op| op.map(|op| ops.push(op)).err())
            .collect();
        let mut written = self.bulk_written(&ops, how).await.into_iter();
        let each = failed.into_iter();
        each.map(|failed| failed.map_or_else(|| written.next().unwrap_or_else(not_sent), Err))
            .collect()
    }

    /// Sends all writes once. The watch notes the result. Elasticsearch waits for a shard for `wait_ms`.
    pub(super) async fn probe(&self, ops: &[Op], how: How, wait_ms: u64) {
        let all: Vec<usize> = (0..ops.len()).collect();
        for chunk in split(ops, &all) {
            if let Err(failure) = self.send(ops, &chunk, how.is_repeatable, wait_ms).await {
                tracing::debug!(reason = failure.words(), "indices cannot be probed");
            }
        }
    }

    async fn round(&self, ops: &[Op], open: &[usize], how: How) -> Vec<(usize, Got)> {
        let sends = split(ops, open)
            .into_iter()
            .map(|chunk| self.send_halving(ops, chunk, how));
        let chunks: Vec<Vec<(usize, Got)>> = stream::iter(sends)
            .buffered(how.in_flight.max(1))
            .collect()
            .await;
        chunks.into_iter().flatten().collect()
    }

    /// Sends one chunk. Splits it into halves if it is refused as a whole.
    async fn send_halving(&self, ops: &[Op], chunk: Vec<usize>, how: How) -> Vec<(usize, Got)> {
        let mut got = Vec::with_capacity(chunk.len());
        let mut todo = vec![chunk];
        while let Some(mut chunk) = todo.pop() {
            let (is_repeatable, wait_ms) = (how.is_repeatable, self.shard_wait_ms());
            match self.send(ops, &chunk, is_repeatable, wait_ms).await {
                Ok(items) => got.extend(chunk.into_iter().zip(items)),
                Err(Failure::Status {
                    status: 400 | 413, ..
                }) if chunk.len() > 1 => {
                    // The first half is next: the order of items stays.
                    let second = chunk.split_off(chunk.len() / 2);
                    todo.push(second);
                    todo.push(chunk);
                }
                Err(failure) => {
                    let error = failure.of_write();
                    got.extend(
                        chunk
                            .into_iter()
                            .map(|n| (n, Got::Done(Err(error.clone())))),
                    );
                }
            }
        }
        got
    }

    async fn send(
        &self,
        ops: &[Op],
        chunk: &[usize],
        is_repeatable: bool,
        wait_ms: u64,
    ) -> Result<Vec<Got>, Failure> {
        let lines: String = chunk
            .iter()
            .filter_map(|n| ops.get(*n))
            .map(|op| op.lines.as_str())
            .collect();
        let path = format!("/_bulk?timeout={wait_ms}ms&filter_path={REPLY}");
        let kind = if is_repeatable {
            Kind::Write
        } else {
            Kind::WriteOnce
        };
        let call = Call::new(kind, Method::POST, path).lines(lines);
        let Answered {
            body,
            after_unknown,
        } = self.ask(&call).await?;
        // Sent and answered, but not in words that we know: nothing is known of the items.
        let unknown = |reason: String| Failure::Unknown(reason);
        let reply: Bulk = reply::parse(body)
            .await
            .map_err(|error| unknown(error.to_string()))?;
        if reply.items.len() != chunk.len() {
            return Err(unknown(format!(
                "a bulk of {} items was answered with {}",
                chunk.len(),
                reply.items.len()
            )));
        }
        let items = reply.items.into_iter();
        let got: Vec<Got> = items
            .map(|item| judge(item.into_item()))
            .map(|got| if after_unknown { got.doubted() } else { got })
            .collect();
        let written = chunk.iter().filter_map(|n| ops.get(*n)).zip(&got);
        self.note_written(written);
        Ok(got)
    }

    /// Returns the time for which Elasticsearch waits for a shard, ms. It ends before our own timeout, so that the
    /// answer names the reason.
    fn shard_wait_ms(&self) -> u64 {
        u64::try_from(self.request_timeout.as_millis() * 4 / 5).unwrap_or(u64::MAX)
    }

    /// Notes the results of the writes to each index. A missing index is created when it is needed.
    fn note_written<'a>(&self, written: impl Iterator<Item = (&'a Op, &'a Got)>) {
        let mut outcomes = Outcomes::new();
        for (op, got) in written {
            if !self.indices.is_needed(&op.index) {
                continue;
            }
            let outcome = outcomes.entry(op.index.as_str()).or_default();
            // An operator may close a month of long ago; looks tell of others.
            if let Some(reason) = got.trouble().filter(|reason| !reason.contains(BY_OPERATOR)) {
                *outcome = Some(format!("index {}: {reason}", op.index));
            }
        }
        self.watch.wrote_to(&outcomes);
    }
}

fn not_sent() -> Result<Written, ItemError> {
    Err(ItemError::Unknown {
        reason: "the bulk was not sent".to_owned(),
    })
}

impl Got {
    /// Returns the result after another try of a write that may have been written.
    fn doubted(self) -> Self {
        match self {
            Self::Busy(reason) => Self::Done(Err(ItemError::Unknown { reason })),
            Self::Done(result) => Self::Done(result.map_err(ItemError::after_unknown)),
            Self::NoIndex => Self::NoIndex,
        }
    }

    /// Returns the reason why writes are not taken at present, if the result tells one.
    fn trouble(&self) -> Option<&str> {
        match self {
            Self::Busy(reason)
            | Self::Done(Err(ItemError::NotTaken { reason } | ItemError::Unknown { reason })) => {
                Some(reason)
            }
            Self::Done(_) | Self::NoIndex => None,
        }
    }
}

fn split(ops: &[Op], open: &[usize]) -> Vec<Vec<usize>> {
    let mut chunks = Vec::new();
    let mut chunk = Vec::new();
    let mut bytes = 0;
    for number in open {
        let size = ops.get(*number).map_or(0, |op| op.lines.len());
        if !chunk.is_empty() && (chunk.len() == BULK_ITEMS || bytes + size > BULK_BYTES) {
            chunks.push(std::mem::take(&mut chunk));
            bytes = 0;
        }
        chunk.push(*number);
        bytes += size;
    }
    if !chunk.is_empty() {
        chunks.push(chunk);
    }
    chunks
}

fn judge(item: BulkItem) -> Got {
    let cause = item.error.unwrap_or_default();
    let reason = match item.status {
        200..300 => String::new(),
        _ => cause.in_words(),
    };
    let result = match (item.status, cause.kind.as_str()) {
        // A block, set by an operator or when a disk is nearly full, or credentials that are no longer valid. It
        // lasts, so another try is useless.
        (_, reply::BLOCK) | (401 | 403, _) => Err(ItemError::NotTaken { reason }),
        (200..300, _) => match (item.seq_no, item.primary_term) {
            (Some(seq_no), Some(primary_term)) => Ok(Written {
                version: Version {
                    primary_term,
                    seq_no,
                },
                source: item.get.and_then(|get| get.source),
            }),
            _ => Err(ItemError::Unknown {
                reason: "a write was answered without its version".to_owned(),
            }),
        },
        (409, _) => Err(ItemError::Conflict { current: None }),
        (404, "index_not_found_exception") => return Got::NoIndex,
        (404, _) => Err(ItemError::Missing),
        (429, _) => return Got::Busy(reason),
        (400..500, _) => Err(refused(reason)),
        // A copy may hold it although the primary failed.
        _ => Err(ItemError::Unknown { reason }),
    };
    Got::Done(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(bytes: usize) -> Op {
        Op {
            index: "i".to_owned(),
            lines: "x".repeat(bytes),
        }
    }

    #[test]
    fn bulks_are_split_by_items_and_by_bytes() {
        let small: Vec<Op> = (0..1_200).map(|_| op(10)).collect();
        let open: Vec<usize> = (0..1_200).collect();
        let sizes = |chunks: Vec<Vec<usize>>| chunks.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(split(&small, &open)), [500, 500, 200]);
        let large: Vec<Op> = [3 << 20, 1 << 20, 2 << 20, 9 << 20, 10].map(op).into();
        assert_eq!(sizes(split(&large, &[0, 1, 2, 3, 4])), [2, 1, 1, 1]);
        assert!(split(&large, &[]).is_empty());
    }
}
