//! The scenario of a seed: replicas, hosts, and kinds of faults.
//!
//! Most seeds lack most kinds of faults, so that the remaining ones often coincide.

use super::{admins::Plan, chance::Chance, clocks, cloud, kind::Kind, reuse};

/// Random stream of the hosts' CPUs.
const CPUS_STREAM: u64 = 8;
/// Maximum distance of a clock from the true time, ms.
const SKEW_MS: i64 = 2_000;

/// Tags that hosts may have.
pub(super) const TAGS: [&str; 3] = ["ssd", "net10g", "old"];

/// Rates of faults, per mille.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Faults {
    /// A request of a host or a user never arrives.
    pub(super) request_lost: u32,
    /// The answer to a request never arrives.
    pub(super) answer_lost: u32,
    /// A request arrives twice.
    pub(super) request_doubled: u32,
    /// A request or its answer takes seconds.
    pub(super) message_slow: u32,
    /// A message between replicas is lost, arrives twice, or takes seconds.
    pub(super) peer_lost: u32,
    pub(super) peer_doubled: u32,
    pub(super) peer_slow: u32,
    /// A read fails.
    pub(super) read_failed: u32,
    /// A search sees what was visible one refresh earlier.
    pub(super) search_stale: u32,
    /// A call of the store takes seconds.
    pub(super) call_slow: u32,
    /// A write is not carried out, and nobody gets an answer.
    pub(super) write_lost: u32,
    /// A write is carried out, and nobody gets an answer.
    pub(super) write_unanswered: u32,
    /// Nobody gets an answer, and the write is carried out seconds later, if that is still possible.
    pub(super) write_late: u32,
    /// A write is carried out, but answered as a conflict, because the store's own retry met the first try.
    pub(super) write_as_conflict: u32,
    /// A write is not carried out, and is answered as a conflict.
    pub(super) write_conflict: u32,
    /// A write is refused for now (429).
    pub(super) write_not_taken: u32,
    /// A write is visible to its writer for a while and then lost, as on a primary that was cut off.
    pub(super) write_phantom: u32,
    /// One item of a batch has its own fault.
    pub(super) item_alone: u32,
    /// Only one half of a submitted job (state or body) is stored at the first try.
    pub(super) submit_half: u32,
    /// A refresh is seconds late.
    pub(super) refresh_late: u32,
}

impl Faults {
    fn draw(chance: &mut Chance) -> Self {
        let mut rate = |often: &[u32]| {
            if chance.hits(500) {
                0
            } else {
                chance.one_of(often, 0)
            }
        };
        let (seldom, often) = ([2, 5, 20], [5, 20, 80]);
        Self {
            request_lost: rate(&often),
            answer_lost: rate(&often),
            request_doubled: rate(&often),
            message_slow: rate(&often),
            peer_lost: rate(&[20, 200, 1000]),
            peer_doubled: rate(&often),
            peer_slow: rate(&often),
            read_failed: rate(&seldom),
            search_stale: rate(&often),
            call_slow: rate(&seldom),
            write_lost: rate(&often),
            write_unanswered: rate(&often),
            write_late: rate(&often),
            write_as_conflict: rate(&often),
            write_conflict: rate(&often),
            write_not_taken: rate(&often),
            write_phantom: rate(&seldom),
            item_alone: rate(&often),
            submit_half: rate(&often),
            refresh_late: rate(&[20, 100, 300]),
        }
    }
}

/// Event that affects a whole process, machine or store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// A replica dies and is restarted.
    ReplicaDies,
    /// A replica is paused for seconds.
    ReplicaPauses,
    /// A replica is stopped in order and restarted.
    ReplicaRestarts,
    /// A replica and the store cannot reach each other.
    ReplicaWithoutStore,
    /// Two replicas cannot reach each other.
    PeersApart,
    /// A host loses its power, or its agent dies.
    HostDies,
    /// A host cannot reach any replica.
    HostAlone,
    /// A host and one replica cannot reach each other.
    HostApart,
    /// The store is unreachable.
    StoreAway,
    /// Calls of the store take seconds.
    StoreSlow,
    /// The store refuses writes.
    StoreFull,
    /// Writes conflict.
    StoreConflicts,
}

impl Trouble {
    const ALL: [Self; 12] = [
        Self::ReplicaDies,
        Self::ReplicaPauses,
        Self::ReplicaRestarts,
        Self::ReplicaWithoutStore,
        Self::PeersApart,
        Self::HostDies,
        Self::HostAlone,
        Self::HostApart,
        Self::StoreAway,
        Self::StoreSlow,
        Self::StoreFull,
        Self::StoreConflicts,
    ];
}

/// Description of a host.
#[derive(Debug, Clone)]
pub(super) struct HostPlan {
    pub(super) name: String,
    /// Kinds: `hw` alone, or `vm` and/or `dc`.
    pub(super) kinds: Vec<&'static str>,
    pub(super) arch: &'static str,
    pub(super) memory_mb: u32,
    /// Number of CPUs. `None`: its agent does not report it.
    pub(super) cpus: Option<u32>,
    pub(super) tags: Vec<&'static str>,
    pub(super) devices: Vec<&'static str>,
    pub(super) jobs_max: u32,
    pub(super) wait_s: u32,
    /// True if its jobs continue while its agent is away.
    pub(super) jobs_survive: bool,
    /// Number of boots, which its kernel version shows. `None`: it reports no facts.
    pub(super) boots: Option<u32>,
    /// True if jobs succeed on it that fail everywhere else.
    pub(super) is_poisoned: bool,
}

impl HostPlan {
    pub(super) fn is_hw(&self) -> bool {
        self.kinds == ["hw"]
    }

    /// Adds CPUs to hosts in half of the seeds, though one host may not report them. They have their own random stream,
    /// so the other half stays unchanged.
    fn with_cpus(self, cpus: &mut Chance, counted: bool) -> Self {
        let many = [1, 2, 4, 16].map(Some);
        let drawn = cpus.one_of(&[many[0], many[1], many[2], many[3], None], None);
        Self {
            cpus: drawn.filter(|_| counted),
            ..self
        }
    }

    fn draw(number: usize, chance: &mut Chance) -> Self {
        let is_hw = chance.hits(400);
        let kinds = match (is_hw, chance.index(3)) {
            (true, _) => vec!["hw"],
            (false, 0) => vec!["vm"],
            (false, 1) => vec!["dc"],
            (false, _) => vec!["dc", "vm"],
        };
        let few = |chance: &mut Chance, all: &[&'static str]| -> Vec<&'static str> {
            all.iter().copied().filter(|_| chance.hits(400)).collect()
        };
        Self {
            name: format!("g{}--h{number}", chance.index(2)),
            kinds,
            arch: chance.one_of(&["x86_64", "x86_64", "aarch64"], "x86_64"),
            memory_mb: chance.one_of(&[2048, 4096, 8192], 4096),
            cpus: None,
            tags: few(chance, &TAGS),
            devices: few(chance, &["gpu", "nvme"]),
            jobs_max: if is_hw {
                1
            } else {
                chance.one_of(&[1, 2, 4, 64], 4)
            },
            wait_s: chance.one_of(&[2, 5, 10, 30], 10),
            jobs_survive: !is_hw && chance.hits(500),
            boots: None,
            is_poisoned: false,
        }
    }
}

/// Plan of a seed before its start.
#[derive(Debug, Clone)]
pub(super) struct Scenario {
    pub(super) seed: u64,
    pub(super) hosts: Vec<HostPlan>,
    /// Lead of each replica's wall clock over the true time, ms.
    pub(super) skews_ms: Vec<i64>,
    pub(super) users: usize,
    /// Approximate number of jobs submitted during the faults.
    pub(super) jobs: u64,
    pub(super) lease_ms: u64,
    pub(super) heartbeat_ms: u64,
    pub(super) cache_jobs_max: u32,
    pub(super) refresh_ms: u64,
    /// Number of shards of the jobs' index.
    pub(super) places: usize,
    pub(super) fault_ms: u64,
    pub(super) faults: Faults,
    /// Possible troubles. The next field is their average distance, ms.
    pub(super) troubles: Vec<Trouble>,
    pub(super) trouble_every_ms: u64,
    pub(super) admins: Plan,
    pub(super) clocks: clocks::Plan,
    pub(super) kind: Kind,
    /// Replica whose messages to others are those of an older version.
    pub(super) older: Option<usize>,
    /// Pool whose machines are the last hosts.
    pub(super) pool: Option<cloud::Plan>,
}

/// Returns the hosts, followed by those of the pool, which are like the first one.
fn with_elastic(mut hosts: Vec<HostPlan>, pool: Option<cloud::Plan>) -> Vec<HostPlan> {
    if let Some((pool, like)) = pool.zip(hosts.first().cloned()) {
        hosts.extend((0..pool.machines).map(|n| HostPlan {
            name: format!("{}--{n}", cloud::POOL),
            jobs_survive: false,
            is_poisoned: false,
            ..like.clone()
        }));
    }
    hosts
}

impl Scenario {
    pub(super) fn draw(seed: u64, replicas_max: usize) -> Self {
        let chance = &mut Chance::new(seed, 1);
        let most = u64::try_from(replicas_max.max(1)).unwrap_or(1);
        let cpus = &mut Chance::new(seed, CPUS_STREAM);
        let are_cpus_counted = cpus.hits(500);
        let replicas = chance.within(1..=most);
        let hosts = usize::try_from(chance.within(2..=8)).unwrap_or(3);
        let calm_clocks = chance.hits(500);
        let skew = |chance: &mut Chance| {
            // Replicas with a larger difference of clocks do not start.
            let ms = i64::try_from(chance.within(0..=600_000)).unwrap_or(0) / 150 - SKEW_MS;
            if calm_clocks { 0 } else { ms }
        };
        let clocks = clocks::Plan::draw(seed);
        let kind = Kind::of(seed);
        let has_reuse = kind >= Kind::Reuse;
        let poisoned = reuse::poisoned(seed).filter(|_| has_reuse);
        let lease_ms = chance.one_of(&[6_000, 10_000, 20_000], 10_000);
        let hosts = (0..hosts)
            .map(|n| HostPlan {
                boots: has_reuse.then_some(0),
                is_poisoned: poisoned == Some(n),
                ..HostPlan::draw(n, chance).with_cpus(cpus, are_cpus_counted)
            })
            .collect();
        let pool = (kind >= Kind::Pools).then(|| cloud::Plan::draw(seed));
        Self {
            seed,
            hosts: with_elastic(hosts, pool),
            pool,
            skews_ms: (0..replicas).map(|_| skew(chance)).collect(),
            users: usize::try_from(chance.within(1..=3)).unwrap_or(1),
            jobs: chance.within(15..=60),
            lease_ms,
            heartbeat_ms: lease_ms / 6,
            cache_jobs_max: chance.one_of(&[4, 12, 10_000], 10_000),
            refresh_ms: chance.one_of(&[200, 1_000, 1_000], 1_000),
            places: 1 + chance.index(3),
            fault_ms: clocks.fault_ms(chance.within(30_000..=90_000)),
            faults: Faults::draw(chance),
            troubles: Trouble::ALL
                .into_iter()
                .filter(|_| chance.hits(350))
                .collect(),
            trouble_every_ms: chance.one_of(&[3_000, 8_000, 20_000], 8_000),
            admins: match pool {
                Some(_) => Plan::draw(seed).without_elsewhere(),
                None => Plan::draw(seed),
            },
            clocks,
            kind,
            older: (kind >= Kind::Younger && chance.hits(333))
                .then(|| chance.index(usize::try_from(replicas).unwrap_or(1))),
        }
    }

    /// Returns true if its jobs have newer fields.
    pub(super) fn is_younger(&self) -> bool {
        self.kind >= Kind::Younger
    }

    /// Returns true if some of its jobs run in parts.
    pub(super) fn has_shards(&self) -> bool {
        self.kind >= Kind::Shards
    }

    /// Returns true if jobs join groups.
    pub(super) fn has_groups(&self) -> bool {
        self.kind >= Kind::Groups
    }

    /// Returns true if two jobs of a sequence may run at the same time.
    pub(super) fn has_pairs(&self) -> bool {
        self.kind >= Kind::Pairs
    }

    /// Returns true if jobs need others of their submit, and some take whole hosts.
    pub(super) fn has_needs(&self) -> bool {
        self.kind >= Kind::Needs
    }

    /// Returns true if jobs reuse results of others.
    pub(super) fn has_reuse(&self) -> bool {
        self.kind >= Kind::Reuse
    }

    pub(super) fn replicas(&self) -> usize {
        self.skews_ms.len()
    }
}
