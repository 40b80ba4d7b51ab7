//! Hints that wait to be sent to other replicas: a queue for each of them, so that a hung one delays no other.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use fairlead_job::JobId;
use fairlead_store::{JobState, StoredJob, Version};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::Notify;

use crate::replicas::Peer;

/// Most states, hosts and queues of each kind that wait to be told to one replica. Of states beyond it, only the versions
/// are told.
pub const WAITING_MAX: usize = 4_000;

/// Most versions that wait to be told to one replica. What is beyond it is found in the store.
pub const BARE_MAX: usize = 50_000;

/// Most states in one message, and most versions.
pub const BATCH_MAX: usize = 500;

/// Of one submit so many jobs are told: the others find the rest by the numbers that are missing.
pub const SUBMITTED_MAX: usize = 500;

/// Of one submit the bodies of so many jobs are told: others of it wait for longer than bodies are kept.
pub const BODIES_MAX: usize = 100;

/// Longest document of a body that is told, bytes: an ordinary one has 1,000 to 4,000.
const BODY_MAX: usize = 4_096;

/// The layout of messages.
const FORMAT: u16 = 4;

/// One message.
#[derive(Debug, Serialize, Deserialize)]
pub struct Message<J = HintedJob> {
    format: u16,
    pub from: Peer,
    /// Jobs as they are stored: `primary_term`, `seq_no`, `state`.
    #[serde(default = "Vec::new")]
    pub jobs: Vec<J>,
    /// Jobs of which there were too many to tell their states.
    #[serde(default)]
    pub bare: Vec<BareJob>,
    /// The versions of bodies of new jobs, which take numbers among the changes. Nothing is to be read.
    #[serde(default)]
    pub bodies: Vec<BareJob>,
    /// Queues whose policy was changed.
    #[serde(default)]
    pub queues: Vec<String>,
    /// Hosts that ask here now, and with which turn.
    #[serde(default)]
    pub hosts: Vec<HintedHost>,
}

impl<'a> Message<&'a HintedJob> {
    pub fn of(next: &'a Waiting, from: Peer) -> Self {
        Self {
            format: FORMAT,
            from,
            jobs: next.jobs.iter().map(|job| &**job).collect(),
            bare: next.bare.iter().copied().collect(),
            bodies: next.bodies.iter().copied().collect(),
            queues: next.queues.clone(),
            hosts: next.hosts.iter().cloned().collect(),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct HintedJob {
    pub primary_term: u64,
    pub seq_no: u64,
    /// The sender created it: the state has all fields that are stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub created: bool,
    pub state: Box<RawValue>,
    /// Of a job that was created: its body, as the store of this kind has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Box<RawValue>>,
}

/// How a state came to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// With the body, if it is told, too.
    Created(Option<String>),
    Changed,
}

/// The version of a job's state or body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BareJob {
    pub job_id: JobId,
    pub primary_term: u64,
    pub seq_no: u64,
}

impl BareJob {
    fn of(job_id: JobId, version: Version) -> Self {
        Self {
            job_id,
            primary_term: version.primary_term,
            seq_no: version.seq_no,
        }
    }

    pub fn version(&self) -> Version {
        Version {
            primary_term: self.primary_term,
            seq_no: self.seq_no,
        }
    }
}

/// A host that asks another replica now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HintedHost {
    pub host: String,
    pub primary_term: u64,
    pub seq_no: u64,
}

impl HintedHost {
    pub fn of(host: &str, turn: Version) -> Self {
        Self {
            host: host.to_owned(),
            primary_term: turn.primary_term,
            seq_no: turn.seq_no,
        }
    }

    /// The version of its session document: every later turn, one of a repeated request too, has a greater one.
    pub fn turn(&self) -> Version {
        Version {
            primary_term: self.primary_term,
            seq_no: self.seq_no,
        }
    }
}

/// What waits to be told, by replica.
#[derive(Debug, Default)]
pub struct Outbox {
    queues: Mutex<BTreeMap<String, Queue>>,
    /// There are replicas that were not there before.
    pub joined: Notify,
}

/// What waits to be told to one replica.
#[derive(Debug)]
struct Queue {
    peer: Peer,
    /// Somebody sends it.
    is_served: bool,
    waiting: Waiting,
    ready: Arc<Notify>,
}

/// What waits to be told.
#[derive(Debug, Default)]
pub struct Waiting {
    pub jobs: VecDeque<Arc<HintedJob>>,
    pub bare: VecDeque<BareJob>,
    pub bodies: VecDeque<BareJob>,
    pub queues: Vec<String>,
    pub hosts: VecDeque<HintedHost>,
}

/// One replica's queue, for its sender.
#[derive(Debug)]
pub struct Served {
    pub peer: Peer,
    /// There is something to send, or the replica is gone.
    pub ready: Arc<Notify>,
}

/// What the sender of one replica's queue does next.
#[derive(Debug)]
pub enum Next {
    Send(Waiting),
    /// Nothing waits.
    Wait,
    /// The replica is gone. One of the same name that came later has another sender.
    Gone,
}

impl Outbox {
    /// These replicas are told from now on, and no others.
    pub fn follow(&self, peers: Vec<Peer>) {
        let mut queues = self.queues.lock();
        let mut before = std::mem::take(&mut *queues);
        let mut is_new = false;
        for peer in peers {
            let queue = before.remove(&peer.run).filter(|queue| queue.peer == peer);
            is_new |= queue.is_none();
            let queue = queue.unwrap_or_else(|| Queue {
                peer: peer.clone(),
                is_served: false,
                waiting: Waiting::default(),
                ready: Arc::default(),
            });
            queues.insert(peer.run, queue);
        }
        // Their senders end.
        for queue in before.values() {
            queue.ready.notify_one();
        }
        if is_new {
            self.joined.notify_one();
        }
    }

    /// Replicas that nobody serves yet; who asks does from now on.
    pub fn unserved(&self) -> Vec<Served> {
        let mut queues = self.queues.lock();
        let unserved = queues.values_mut().filter(|queue| !queue.is_served);
        unserved
            .map(|queue| {
                queue.is_served = true;
                Served {
                    peer: queue.peer.clone(),
                    ready: Arc::clone(&queue.ready),
                }
            })
            .collect()
    }

    /// Whether there is anybody to be told.
    pub fn has_readers(&self) -> bool {
        !self.queues.lock().is_empty()
    }

    /// A job was written.
    pub fn job(&self, job: &StoredJob, written: Written) {
        let (mut encoded, mut written): (Option<Arc<HintedJob>>, _) = (None, Some(written));
        self.with_each(|waiting| {
            if waiting.jobs.len() < WAITING_MAX {
                // Once for all replicas.
                let encode = || encode(job, written.take()?);
                encoded = encoded.take().or_else(encode);
                waiting.jobs.extend(encoded.clone());
            } else if waiting.bare.len() < BARE_MAX {
                let bare = BareJob::of(job.state.job_id, job.version);
                waiting.bare.push_back(bare);
            }
        });
    }

    /// The body of a new job was written, in the place of its state.
    pub fn body(&self, id: JobId, version: Version) {
        self.with_each(|waiting| {
            if waiting.bodies.len() < BARE_MAX {
                waiting.bodies.push_back(BareJob::of(id, version));
            }
        });
    }

    /// A queue's policy was written.
    pub fn queue(&self, name: &str) {
        self.with_each(|waiting| {
            if waiting.queues.len() < WAITING_MAX {
                waiting.queues.push(name.to_owned());
            }
        });
    }

    /// A host asks here.
    pub fn host(&self, host: &HintedHost) {
        self.with_each(|waiting| {
            if waiting.hosts.len() < WAITING_MAX {
                waiting.hosts.push_back(host.clone());
            }
        });
    }

    fn with_each(&self, mut work: impl FnMut(&mut Waiting)) {
        for queue in self.queues.lock().values_mut() {
            work(&mut queue.waiting);
            queue.ready.notify_one();
        }
    }

    /// What goes into the next message to a replica.
    pub fn next(&self, served: &Served) -> Next {
        let mut queues = self.queues.lock();
        let Some(queue) = queues
            .get_mut(&served.peer.run)
            .filter(|queue| Arc::ptr_eq(&queue.ready, &served.ready))
        else {
            return Next::Gone;
        };
        let next = queue.waiting.take();
        if next.is_empty() {
            return Next::Wait;
        }
        Next::Send(next)
    }
}

impl Waiting {
    fn take(&mut self) -> Self {
        fn first<T>(all: &mut VecDeque<T>) -> VecDeque<T> {
            all.drain(..all.len().min(BATCH_MAX)).collect()
        }
        Self {
            jobs: first(&mut self.jobs),
            bare: first(&mut self.bare),
            bodies: first(&mut self.bodies),
            queues: std::mem::take(&mut self.queues),
            hosts: first(&mut self.hosts),
        }
    }

    fn is_empty(&self) -> bool {
        let no_jobs = self.jobs.is_empty() && self.bare.is_empty() && self.bodies.is_empty();
        no_jobs && self.queues.is_empty() && self.hosts.is_empty()
    }
}

fn encode(job: &StoredJob, written: Written) -> Option<Arc<HintedJob>> {
    let (created, body) = match written {
        Written::Created(body) => (true, body),
        Written::Changed => (false, None),
    };
    let body = body.filter(|body| body.len() <= BODY_MAX);
    Some(Arc::new(HintedJob {
        primary_term: job.version.primary_term,
        seq_no: job.version.seq_no,
        created,
        state: to_raw_value(&job.state).ok()?,
        body: body.and_then(|body| RawValue::from_string(body).ok()),
    }))
}

/// A state that another replica told, as the store has it.
pub fn stored(state: JobState, primary_term: u64, seq_no: u64) -> StoredJob {
    StoredJob {
        state,
        version: Version {
            primary_term,
            seq_no,
        },
    }
}
