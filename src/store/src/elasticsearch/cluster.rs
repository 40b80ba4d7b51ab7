//! Calls: which node, how often, how long.
//!
//! A read, and a write that may be repeated, goes on to the next node until the call's deadline. Any
//! other write is repeated only when it was certainly not taken: no connection, or 429/503.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ::elasticsearch::http::Method;
use bytes::Bytes;

use super::{
    clock::{self, Chance},
    config::ElasticConfig,
    node::{Node, Outcome},
    reply,
};
use crate::{ItemError, StoreError};

/// How many request times a call may take with its retries.
const CALL_TIMEOUTS: u32 = 3;
/// How often an overloaded cluster is asked again in one call.
const BUSY_TRIES: u32 = 5;
/// The first wait after 429 or 503; doubled with each.
const BUSY_WAIT: Duration = Duration::from_millis(50);

/// One request to whichever node.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    /// With the query.
    pub(super) path: String,
    pub(super) body: Option<Bytes>,
    /// Lines of JSON (`_bulk`, `_msearch`).
    pub(super) is_ndjson: bool,
    /// Whether it may be sent again when it may be in already.
    pub(super) is_repeatable: bool,
}

impl Call {
    /// A read, or a write that may be repeated.
    pub(super) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            body: None,
            is_ndjson: false,
            is_repeatable: true,
        }
    }

    /// With a JSON body.
    pub(super) fn json(mut self, body: &serde_json::Value) -> Self {
        self.body = Some(Bytes::from(body.to_string()));
        self
    }

    /// With lines of JSON.
    pub(super) fn lines(mut self, lines: String) -> Self {
        self.body = Some(Bytes::from(lines));
        self.is_ndjson = true;
        self
    }
}

/// A call that got no answer of use.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    /// Certainly not taken: nobody could be reached, or all were overloaded.
    NotTaken(String),
    /// Sent, and no whole answer in time.
    Unknown(String),
    /// Answered with an error.
    Status {
        status: u16,
        kind: String,
        reason: String,
    },
}

impl Failure {
    /// For a call that only reads.
    pub(super) fn of_read(self) -> StoreError {
        match self {
            Self::NotTaken(reason) | Self::Unknown(reason) => StoreError::Unavailable { reason },
            Self::Status { status, reason, .. } if status >= 500 => {
                StoreError::Unavailable { reason }
            }
            Self::Status { reason, .. } => StoreError::Refused { reason },
        }
    }

    /// For each item of a write.
    pub(super) fn of_write(self) -> ItemError {
        match self {
            Self::NotTaken(reason) => ItemError::NotTaken { reason },
            Self::Unknown(reason) => ItemError::Unknown { reason },
            Self::Status { status, reason, .. } if status >= 500 => ItemError::Unknown { reason },
            Self::Status { reason, .. } => ItemError::Refused { reason },
        }
    }
}

/// The nodes of one cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    nodes: Vec<Node>,
    turn: AtomicUsize,
    chance: Chance,
    request_timeout: Duration,
    /// What was wrong last; empty: the last call was answered.
    problem: Mutex<String>,
}

/// What to do after one try.
enum Next {
    /// This is the answer.
    Done(Result<Bytes, Failure>),
    /// Ask another node; this is why.
    Elsewhere(Failure),
    /// Ask again after a wait; this is why.
    Later(Failure),
}

impl Cluster {
    /// Connects to nothing yet.
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
            problem: Mutex::default(),
        })
    }

    /// What was wrong with the last call; empty: nothing.
    pub(super) fn problem(&self) -> String {
        self.problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Makes the call. `Ok` is the body of a 2xx answer.
    pub(super) async fn call(&self, call: &Call) -> Result<Bytes, Failure> {
        let result = self.call_until(call, clock::now()).await;
        let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        match &result {
            Err(Failure::NotTaken(reason) | Failure::Unknown(reason)) => {
                problem.clone_from(reason);
            }
            Err(Failure::Status { status, reason, .. }) if *status >= 500 => {
                problem.clone_from(reason);
            }
            Ok(_) | Err(Failure::Status { .. }) => problem.clear(),
        }
        result
    }

    async fn call_until(&self, call: &Call, start: Instant) -> Result<Bytes, Failure> {
        let deadline = start + self.request_timeout * CALL_TIMEOUTS;
        let mut tried = BTreeSet::new();
        let mut busy = 0;
        let mut last = None;
        loop {
            let left = deadline.saturating_duration_since(clock::now());
            let picked = self.pick(&tried);
            let (Some((number, node)), false) = (picked, left.is_zero()) else {
                return Err(last.unwrap_or_else(|| Failure::NotTaken("no node".to_owned())));
            };
            let timeout = left.min(self.request_timeout);
            let outcome = node
                .send(
                    call.method,
                    &call.path,
                    call.body.clone(),
                    call.is_ndjson,
                    timeout,
                )
                .await;
            match judge(call, node, outcome) {
                Next::Done(result) => return result,
                Next::Elsewhere(failure) => {
                    tried.insert(number);
                    last = Some(worse(last, failure));
                }
                Next::Later(failure) => {
                    busy += 1;
                    if busy >= BUSY_TRIES {
                        return Err(worse(last, failure));
                    }
                    last = Some(worse(last, failure));
                    let wait = self.chance.jitter(BUSY_WAIT * 2_u32.pow(busy - 1));
                    clock::pause(wait.min(left)).await;
                }
            }
        }
    }

    /// The next live node in turn that was not tried yet; else the one whose rest ends first.
    fn pick(&self, tried: &BTreeSet<usize>) -> Option<(usize, &Node)> {
        let now = clock::now();
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let in_turn = |n: usize| (first.wrapping_add(n)) % self.nodes.len();
        let mut candidates: Vec<usize> = (0..self.nodes.len())
            .map(in_turn)
            .filter(|n| !tried.contains(n))
            .collect();
        candidates.sort_by_key(|n| {
            let node = self.nodes.get(*n)?;
            node.dead_until().filter(|_| !node.is_live(now))
        });
        let number = *candidates.first()?;
        Some((number, self.nodes.get(number)?))
    }
}

/// A write that may be in stays unknown, whatever the tries after it say.
fn worse(before: Option<Failure>, now: Failure) -> Failure {
    match before {
        Some(Failure::Unknown(reason)) => Failure::Unknown(reason),
        _ => now,
    }
}

fn judge(call: &Call, node: &Node, outcome: Outcome) -> Next {
    match outcome {
        Outcome::NotSent(reason) => {
            node.mark_dead(clock::now());
            tracing::debug!(node = node.name, %reason, "a node was not reached");
            Next::Elsewhere(Failure::NotTaken(reason))
        }
        Outcome::Broken(reason) => {
            node.mark_dead(clock::now());
            tracing::warn!(node = node.name, %reason, "a node did not answer");
            let failure = Failure::Unknown(reason);
            if call.is_repeatable {
                Next::Elsewhere(failure)
            } else {
                Next::Done(Err(failure))
            }
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
                429 | 503 => Next::Later(Failure::NotTaken(reason)),
                // A proxy that lost its node: sent, perhaps.
                502 | 504 if call.is_repeatable => Next::Elsewhere(Failure::Unknown(reason)),
                502 | 504 => Next::Done(Err(Failure::Unknown(reason))),
                _ => Next::Done(Err(Failure::Status {
                    status,
                    kind,
                    reason,
                })),
            }
        }
    }
}
