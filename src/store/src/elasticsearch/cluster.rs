//! Sends calls: chooses the node, the retries and the deadline.
//!
//! A read, or a write that may be repeated, goes to the next node until the call's deadline. Any other write is
//! repeated only if it was certainly not stored: no connection, or 429/503.
//!
//! While a store is opened, nobody waits for its calls but the start. A call that may be repeated is then made again,
//! because a busy cluster takes its time over new templates, fields and indices.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::Mutex;

use super::{
    call::{Answered, Call, Failure, Kind, is_trouble},
    config::ElasticConfig,
    indices::Indices,
    node::{Node, Outcome},
    reply,
};
use crate::{
    StoreError,
    clock::{self, Chance},
    health::Watch,
};

/// Maximum time of a call with its retries, in request times.
const CALL_TIMEOUTS: u32 = 3;
/// Time after which a call of a start is not repeated, in request times.
const OPEN_TIMEOUTS: u32 = 6;
/// Time that a read waits for a node while there is another one to ask. A search may hang on a node behind the asked
/// one, and another node may use a different copy.
const READ_FIRST: Duration = Duration::from_secs(3);
/// Maximum number of tries in one call at an overloaded cluster.
pub(super) const BUSY_TRIES: u32 = 5;
/// First wait after 429 or 503; doubled with each.
const BUSY_WAIT: Duration = Duration::from_millis(50);

/// Nodes of one cluster, and the names of our indices there.
#[derive(Debug)]
pub(super) struct Cluster {
    nodes: Vec<Node>,
    turn: AtomicUsize,
    pub(super) chance: Chance,
    pub(super) request_timeout: Duration,
    pub(super) indices: Indices,
    /// Months whose indices this process has created or found.
    pub(super) made: Mutex<BTreeSet<String>>,
    /// Health of the cluster, from its last answers. The sender of a bulk notes the results of its items.
    pub(super) watch: Watch,
    /// True while the store is being opened.
    is_opening: AtomicBool,
}

/// Next action after one try.
enum Next {
    /// Return this answer.
    Done(Result<Bytes, Failure>),
    /// Ask another node because of this failure.
    Elsewhere(Failure),
    /// Ask again after a wait because of this failure.
    Later(Failure),
}

impl Cluster {
    /// Creates the cluster without connecting to it.
    pub(super) fn new(config: &ElasticConfig) -> Result<Self, StoreError> {
        let nodes = config
            .urls
            .iter()
            .map(|url| Node::new(url, config))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            nodes,
            turn: AtomicUsize::new(0),
            chance: Chance::new(),
            request_timeout: config.request_timeout,
            indices: Indices {
                prefix: config.index_prefix.clone(),
            },
            made: Mutex::default(),
            watch: Watch::new(),
            is_opening: AtomicBool::new(true),
        })
    }

    /// Notes that the store is open. From now on each call ends by its deadline.
    pub(super) fn opened(&self) {
        self.is_opening.store(false, Ordering::Relaxed);
    }

    /// Makes the call. `Ok` is the body of a 2xx answer, whatever the results of earlier tries.
    pub(super) async fn call(&self, call: &Call) -> Result<Bytes, Failure> {
        self.ask(call).await.map(|answer| answer.body)
    }

    /// Makes the call. `Ok` is a 2xx answer, and true if an earlier try may have done it. In that case, items that
    /// this answer calls not done may be done.
    pub(super) async fn ask(&self, call: &Call) -> Result<Answered, Failure> {
        let give_up = clock::now() + self.request_timeout * OPEN_TIMEOUTS;
        let is_patient = call.kind != Kind::WriteOnce && self.is_opening.load(Ordering::Relaxed);
        loop {
            let result = self.call_until(call, clock::now()).await;
            self.note(call.kind, &result);
            match result {
                Err(Failure::Unknown(reason)) if is_patient && clock::now() < give_up => {
                    tracing::warn!(path = call.path, reason, "the start asks again");
                }
                result => return result,
            }
        }
    }

    /// Waits before another try after overload: longer with each try, and with jitter.
    pub(super) async fn wait_while_busy(&self, tries: u32, most: Duration) {
        let wait = self.chance.jitter(BUSY_WAIT * 2_u32.pow(tries.min(8)) / 2);
        clock::pause(wait.min(most)).await;
    }

    fn note(&self, kind: Kind, result: &Result<Answered, Failure>) {
        let is_read = kind == Kind::Read;
        match result {
            Ok(_) if is_read => self.watch.read(),
            Ok(_) => self.watch.answered(),
            Err(Failure::Status { status, .. }) if !is_trouble(*status) => self.watch.answered(),
            Err(Failure::Busy(reason) | Failure::Status { reason, .. }) if is_read => {
                self.watch.read_failed(reason);
            }
            Err(Failure::Busy(reason) | Failure::Status { reason, .. }) => {
                self.watch.write_failed(reason);
            }
            // Only one node was asked.
            Err(Failure::Unknown(reason)) if kind == Kind::WriteOnce => {
                self.watch.write_failed(reason);
            }
            Err(Failure::NotSent(reason) | Failure::Unknown(reason)) => {
                self.watch.silence(reason);
            }
        }
    }

    async fn call_until(&self, call: &Call, start: Instant) -> Result<Answered, Failure> {
        let deadline = start + self.request_timeout * CALL_TIMEOUTS;
        let mut tried = BTreeSet::new();
        let mut busy = 0;
        let mut last = None;
        loop {
            let left = deadline.saturating_duration_since(clock::now());
            let picked = self.pick(call.kind, &tried);
            let (Some((number, node)), false) = (picked, left.is_zero()) else {
                return Err(last.unwrap_or_else(|| Failure::NotSent("no node".to_owned())));
            };
            tried.insert(number);
            let timeout = left.min(self.patience(call.kind, &tried));
            let outcome = if self.nodes.len() == 1 {
                node.send(call, timeout).await
            } else {
                node.send_or_hang_up(call, timeout).await
            };
            match judge(call, node, outcome) {
                Next::Done(Ok(body)) => {
                    let after_unknown = matches!(last, Some(Failure::Unknown(_)));
                    return Ok(Answered {
                        body,
                        after_unknown,
                    });
                }
                Next::Done(Err(failure)) if call.kind == Kind::Read => return Err(failure),
                Next::Done(Err(failure)) => return Err(worse(last, failure)),
                Next::Elsewhere(failure) => last = Some(worse(last, failure)),
                Next::Later(failure) => {
                    tried.remove(&number);
                    busy += 1;
                    last = Some(worse(last, failure));
                    if busy < BUSY_TRIES {
                        self.wait_while_busy(busy, left).await;
                    } else {
                        return Err(last.unwrap_or_else(|| Failure::Busy(String::new())));
                    }
                }
            }
        }
    }

    /// Returns the maximum time of one try.
    fn patience(&self, kind: Kind, tried: &BTreeSet<usize>) -> Duration {
        let now = clock::now();
        let mut others = (0..).zip(&self.nodes);
        let has_other = others.any(|(number, node)| !tried.contains(&number) && node.is_live(now));
        if kind == Kind::Read && has_other {
            self.request_timeout.min(READ_FIRST)
        } else {
            self.request_timeout
        }
    }

    /// Returns the next live node in turn that was not tried yet. A read also tries, now and then, a failed node. If
    /// no node is live, returns the one whose back-off ends first.
    fn pick(&self, kind: Kind, tried: &BTreeSet<usize>) -> Option<(usize, &Node)> {
        let now = clock::now();
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let in_turn = (0..self.nodes.len()).map(|n| first.wrapping_add(n) % self.nodes.len());
        let (number, node) = in_turn
            .filter(|number| !tried.contains(number))
            .filter_map(|number| Some((number, self.nodes.get(number)?)))
            .min_by_key(|(_, node)| node.rank(now, kind == Kind::Read))?;
        node.begin(now);
        Some((number, node))
    }
}

/// Keeps a write unknown that may have been written, whatever the later tries say.
fn worse(before: Option<Failure>, now: Failure) -> Failure {
    match before {
        Some(Failure::Unknown(reason)) => Failure::Unknown(reason),
        _ => now,
    }
}

fn judge(call: &Call, node: &Node, outcome: Outcome) -> Next {
    let unknown = |reason: String| {
        let failure = Failure::Unknown(reason);
        match call.kind {
            Kind::Read | Kind::Write => Next::Elsewhere(failure),
            Kind::WriteOnce => Next::Done(Err(failure)),
        }
    };
    match outcome {
        Outcome::NotSent(reason) => {
            node.mark_dead(clock::now());
            tracing::debug!(node = node.name, %reason, "a node was not reached");
            Next::Elsewhere(Failure::NotSent(reason))
        }
        Outcome::Broken(reason) => {
            node.mark_dead(clock::now());
            tracing::warn!(node = node.name, %reason, "a node did not answer");
            unknown(reason)
        }
        Outcome::Answer { status, body } if (200..300).contains(&status) => {
            node.mark_live();
            Next::Done(Ok(body))
        }
        Outcome::Answer { status, body } => {
            node.mark_live();
            let (kind, words) = reply::error_of(&body);
            let reason = format!("{}: {status} {words}", node.name);
            match status {
                // A block lasts until somebody makes room; a cluster without a master soon has one.
                429 if kind == reply::BLOCK => Next::Done(Err(Failure::Busy(reason))),
                429 | 503 => Next::Later(Failure::Busy(reason)),
                // A proxy that lost its node: sent, perhaps.
                502 | 504 => unknown(reason),
                _ => Next::Done(Err(Failure::Status {
                    status,
                    kind,
                    reason,
                })),
            }
        }
    }
}
