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

/// Maximum number of states, hosts and queues of each kind that wait for one replica. Beyond it, only versions of
/// states are sent.
pub const WAITING_MAX: usize = 4_000;

/// Maximum number of versions that wait for one replica. The replica finds later ones in the store.
pub const BARE_MAX: usize = 50_000;

/// Maximum number of states in one message, and of versions.
pub const BATCH_MAX: usize = 500;

/// Maximum number of jobs of one submit that are sent. Replicas find the others by the missing numbers.
pub const SUBMITTED_MAX: usize = 500;

/// Maximum number of bodies of one submit that are sent. Its later jobs wait for longer than bodies are cached.
pub const BODIES_MAX: usize = 100;

/// Maximum length of a body that is sent, bytes. Typical bodies have 1,000 to 4,000.
const BODY_MAX: usize = 4_096;

/// Version of the message layout.
const FORMAT: u16 = 4;

/// One message.
#[derive(Debug, Serialize, Deserialize)]
pub struct Message<J = HintedJob> {
    format: u16,
    pub from: Peer,
    /// Jobs in their stored form: `primary_term`, `seq_no`, `state`.
    #[serde(default = "Vec::new")]
    pub jobs: Vec<J>,
    /// Versions of the jobs whose states exceeded the limits.
    #[serde(default)]
    pub bare: Vec<BareJob>,
    /// Versions of bodies of new jobs. Bodies take numbers among the changes, and there is nothing to read.
    #[serde(default)]
    pub bodies: Vec<BareJob>,
    /// Queues with a changed policy.
    #[serde(default)]
    pub queues: Vec<String>,
    /// Hosts that ask at this replica now, with their turns.
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
    /// True if the sender created the job, so that the state has all stored fields.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub created: bool,
    pub state: Box<RawValue>,
    /// Body of a newly created job, as the store keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Box<RawValue>>,
}

/// Origin of a written state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// A new job, with its body if that is sent as well.
    Created(Option<String>),
    Changed,
}

/// Version of a job's state or body.
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

    /// Returns the version of its session document. Every later turn has a greater version, even that of a repeated
    /// request.
    pub fn turn(&self) -> Version {
        Version {
            primary_term: self.primary_term,
            seq_no: self.seq_no,
        }
    }
}

/// Messages that wait, by replica.
#[derive(Debug, Default)]
pub struct Outbox {
    queues: Mutex<BTreeMap<String, Queue>>,
    /// Notified when a new replica appears.
    pub joined: Notify,
}

/// Messages that wait for one replica.
#[derive(Debug)]
struct Queue {
    peer: Peer,
    /// True if a task sends them.
    is_served: bool,
    waiting: Waiting,
    ready: Arc<Notify>,
}

/// Contents of the next message.
#[derive(Debug, Default)]
pub struct Waiting {
    pub jobs: VecDeque<Arc<HintedJob>>,
    pub bare: VecDeque<BareJob>,
    pub bodies: VecDeque<BareJob>,
    pub queues: Vec<String>,
    pub hosts: VecDeque<HintedHost>,
}

/// Queue of one replica, for its sender.
#[derive(Debug)]
pub struct Served {
    pub peer: Peer,
    /// Notified if there is something to send, or if the replica is gone.
    pub ready: Arc<Notify>,
}

/// Next step of the sender of one replica's queue.
#[derive(Debug)]
pub enum Next {
    Send(Waiting),
    /// The queue is empty.
    Wait,
    /// The replica is gone. A later one of the same name has another sender.
    Gone,
}

impl Outbox {
    /// Sends to exactly these replicas from now on.
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
        // The senders of replicas that are gone end.
        for queue in before.values() {
            queue.ready.notify_one();
        }
        if is_new {
            self.joined.notify_one();
        }
    }

    /// Returns the replicas without a sender. The caller sends to them from now on.
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

    /// Returns true if there is any replica to send to.
    pub fn has_readers(&self) -> bool {
        !self.queues.lock().is_empty()
    }

    /// Queues the state of a job that was written.
    pub fn job(&self, job: &StoredJob, written: Written) {
        let (mut encoded, mut written): (Option<Arc<HintedJob>>, _) = (None, Some(written));
        self.with_each(|waiting| {
            if waiting.jobs.len() < WAITING_MAX {
                // The job is encoded once for all replicas.
                let encode = || encode(job, written.take()?);
                encoded = encoded.take().or_else(encode);
                waiting.jobs.extend(encoded.clone());
            } else if waiting.bare.len() < BARE_MAX {
                let bare = BareJob::of(job.state.job_id, job.version);
                waiting.bare.push_back(bare);
            }
        });
    }

    /// Queues the version of a new job's body. It was written in the same place as the state.
    pub fn body(&self, id: JobId, version: Version) {
        self.with_each(|waiting| {
            if waiting.bodies.len() < BARE_MAX {
                waiting.bodies.push_back(BareJob::of(id, version));
            }
        });
    }

    /// Queues the name of a queue whose policy was written.
    pub fn queue(&self, name: &str) {
        self.with_each(|waiting| {
            if waiting.queues.len() < WAITING_MAX {
                waiting.queues.push(name.to_owned());
            }
        });
    }

    /// Queues a host that asks here.
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

    /// Returns the contents of the next message to a replica.
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

/// Returns a state from another replica as the store keeps it.
pub fn stored(state: JobState, primary_term: u64, seq_no: u64) -> StoredJob {
    StoredJob {
        state,
        version: Version {
            primary_term,
            seq_no,
        },
    }
}
