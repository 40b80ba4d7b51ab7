//! Shapes of jobs, views of hosts, and whether jobs of a shape may start on a host now (I3).
//!
//! [`crate::requirement`] has the rules between a job and a host. Two obstacles that pass by themselves are added here:
//! other jobs on the host, and the gate of the job.

use crate::event::Kind;
use crate::ids::{BucketId, KeyId, Place, ShapeId};
use crate::interner::{Atom, Fixed, Numbers};
use crate::requirement::{Alternative, HostProperties, JobRequirements, Name, Requirement, serves};
use slotmap::SlotMap;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

/// What keeps a job back for a while.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Gate {
    /// Nothing.
    Open,
    /// Only hosts that hold one of these cache directories (sorted), until its affinity expires.
    Affine(Arc<[Atom]>),
    /// Nobody: the store could not say who has it.
    Blocked,
}

/// Everything that matching looks at. Jobs of equal shape are interchangeable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub kind: Kind,
    pub gate: Gate,
    pub memory_mb: u32,
    pub cpus: u32,
    pub arch: Atom,
    /// Sorted, like all lists here.
    pub keys: Box<[Atom]>,
    pub tags: Box<[Atom]>,
    /// Tags that a host must not have.
    pub not_tags: Box<[Atom]>,
    /// In the job's order.
    pub any_of: Box<[Alternative<Atom>]>,
    pub devices: Box<[Atom]>,
    /// Hosts that must not have it.
    pub not_on: Box<[Atom]>,
}

impl Shape {
    /// A requirement that few hosts meet, to find shapes by; shapes without one are found under `None`.
    pub(crate) fn anchor(&self) -> Option<&Atom> {
        self.devices.first().or_else(|| self.tags.first())
    }

    /// What jobs of this shape require of a host, if they are this account's. None: whosever they are.
    #[inline]
    pub(crate) fn requirements<'a>(
        &'a self,
        account: Option<&'a str>,
    ) -> JobRequirements<'a, Atom> {
        JobRequirements {
            account,
            arch: &self.arch,
            keys: &self.keys,
            tags: &self.tags,
            not_tags: &self.not_tags,
            any_of: &self.any_of,
            devices: &self.devices,
            not_on: &self.not_on,
            memory_mb: self.memory_mb,
            cpus: self.cpus,
        }
    }

    /// Whether the gate is open for this host.
    pub(crate) fn is_let_in(&self, host: &View) -> bool {
        match &self.gate {
            Gate::Open => true,
            Gate::Affine(dirs) => dirs.iter().any(|dir| dir.is_among(&host.caches)),
            Gate::Blocked => false,
        }
    }
}

/// What does not change from offer to offer of one host; shared by hosts that are alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Env {
    pub arch: Atom,
    /// Sorted, like all lists here.
    pub tags: Box<[Atom]>,
    pub devices: Box<[Atom]>,
    /// Whose jobs alone it gets; empty: everybody's.
    pub accounts: Box<[Atom]>,
}

impl From<&Env> for Arc<Env> {
    fn from(env: &Env) -> Self {
        Arc::new(env.clone())
    }
}

impl Env {
    /// Its tags and devices.
    pub(crate) fn marks(&self) -> Marks {
        Marks::of(self.tags.iter().chain(&self.devices))
    }

    /// Whether it gets jobs of this account.
    pub(crate) fn serves(&self, account: &str) -> bool {
        serves(&self.accounts, account)
    }
}

/// A host as matching sees it now.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// The host's name.
    pub name: Atom,
    pub env: Arc<Env>,
    /// The tags and devices of `env`.
    pub has: Marks,
    /// Sorted, like all lists here.
    pub keys: Box<[Atom]>,
    pub caches: Box<[Atom]>,
    pub total_mb: u32,
    /// What jobs may still take.
    pub free_mb: u32,
    /// [`CPUS_UNCHECKED`](crate::requirement::CPUS_UNCHECKED): it did not say.
    pub total_cpus: u32,
    /// What jobs may still take; unchecked like `total_cpus`.
    pub free_cpus: u32,
    /// Nothing runs or is in flight there: a hw job may enter.
    pub hw_open: bool,
    /// No hw job runs or is in flight there: vm and dc jobs may enter.
    pub shared_open: bool,
}

impl View {
    /// Whether the jobs there leave room for one of this kind at all.
    pub(crate) fn admits(&self, kind: Kind) -> bool {
        if kind == Kind::Hw {
            self.hw_open
        } else {
            self.shared_open
        }
    }

    /// Memory that a job of this kind may take now, MB: a hw job never shares it.
    pub(crate) fn memory_for(&self, kind: Kind) -> u32 {
        if kind == Kind::Hw {
            self.total_mb
        } else {
            self.free_mb
        }
    }

    /// CPUs that a job of this kind may take now: a hw job never shares them.
    pub(crate) fn cpus_for(&self, kind: Kind) -> u32 {
        if kind == Kind::Hw {
            self.total_cpus
        } else {
            self.free_cpus
        }
    }

    /// What it has for a job of this kind now.
    #[inline]
    pub(crate) fn now(&self, kind: Kind) -> HostProperties<'_, Atom> {
        self.with(self.memory_for(kind), self.cpus_for(kind))
    }

    /// What it has when nothing runs there.
    #[inline]
    pub(crate) fn idle(&self) -> HostProperties<'_, Atom> {
        self.with(self.total_mb, self.total_cpus)
    }

    #[inline]
    fn with(&self, memory_mb: u32, cpus: u32) -> HostProperties<'_, Atom> {
        HostProperties {
            name: &self.name,
            arch: &self.env.arch,
            keys: &self.keys,
            tags: &self.env.tags,
            devices: &self.env.devices,
            accounts: &self.env.accounts,
            memory_mb,
            cpus,
        }
    }
}

/// What keeps the next job of a shape off a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// Jobs that share no host with it.
    Busy,
    /// The shape's gate.
    Gate,
    Unmet(Requirement),
}

impl Obstacle {
    /// Whether it may go away when the host's present jobs end.
    pub(crate) fn may_pass(self) -> bool {
        matches!(
            self,
            Self::Busy | Self::Unmet(Requirement::Memory | Requirement::Cpus)
        )
    }
}

/// The first thing that keeps jobs of this shape off a host now; none: they fit. No account: whosever they are.
#[inline]
pub(crate) fn first_obstacle(
    account: Option<&str>,
    shape: &Shape,
    host: &View,
) -> Option<Obstacle> {
    if !host.admits(shape.kind) {
        return Some(Obstacle::Busy);
    }
    if !shape.is_let_in(host) {
        return Some(Obstacle::Gate);
    }
    let required = shape.requirements(account);
    required
        .first_unmet_by(&host.now(shape.kind))
        .map(Obstacle::Unmet)
}

/// Whether a host could run jobs of this shape if nothing else ran there.
pub(crate) fn could_run(account: Option<&str>, shape: &Shape, host: &View) -> bool {
    let required = shape.requirements(account);
    shape.is_let_in(host) && required.first_unmet_by(&host.idle()).is_none()
}

/// A set of names, roughly: a bit each, which several may share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Marks(u64);

impl Marks {
    fn of<'a>(names: impl Iterator<Item = &'a Atom>) -> Self {
        let bits = names.map(|name| 1 << (Numbers::default().hash_one(name) % 64));
        Self(bits.fold(0, |all, bit: u64| all | bit))
    }

    /// False: `all` surely lack one of these names.
    pub(crate) fn may_be_in(self, all: Self) -> bool {
        self.0 & !all.0 == 0
    }
}

/// The first job of a bucket, with what rules most of them out: who cannot have it need not look at its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Head {
    pub place: Place,
    pub memory_mb: u32,
    pub bucket: BucketId,
    pub needs: Marks,
}

/// A shape and who has jobs of it.
#[derive(Debug)]
pub(crate) struct ShapeEntry {
    pub shape: Arc<Shape>,
    pub holders: BTreeSet<BucketId>,
    /// The ids of its keys, in the same order.
    pub keys: Box<[KeyId]>,
    /// Its tags and devices.
    pub needs: Marks,
    hash: u64,
}

impl ShapeEntry {
    /// The head of a bucket of this shape.
    pub(crate) fn head(&self, place: Place, bucket: BucketId) -> Head {
        Head {
            place,
            memory_mb: self.shape.memory_mb,
            bucket,
            needs: self.needs,
        }
    }
}

/// A shape with its hash, which takes a while to compute.
#[derive(Debug)]
struct Hashed {
    hash: u64,
    shape: Arc<Shape>,
}

impl Hash for Hashed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl PartialEq for Hashed {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shape, &other.shape)
            || (self.hash == other.hash && self.shape == other.shape)
    }
}

impl Eq for Hashed {}

/// All shapes of cached jobs, each once.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    ids: HashMap<Hashed, ShapeId, Numbers>,
    entries: SlotMap<ShapeId, ShapeEntry>,
}

impl Shapes {
    /// Makes room for so many.
    pub(crate) fn reserve(&mut self, shapes: usize) {
        self.ids.reserve(shapes);
        self.entries.reserve(shapes);
    }

    /// The id of this shape, and whether it is new. The keys of a new one are not set.
    pub(crate) fn intern(&mut self, shape: Shape) -> (ShapeId, bool) {
        let hash = Fixed::default().hash_one(&shape);
        let shape = Arc::new(shape);
        let hashed = Hashed {
            hash,
            shape: Arc::clone(&shape),
        };
        if let Some(id) = self.ids.get(&hashed) {
            return (*id, false);
        }
        let id = self.entries.insert(ShapeEntry {
            needs: Marks::of(shape.tags.iter().chain(&shape.devices)),
            shape,
            holders: BTreeSet::new(),
            keys: Box::default(),
            hash,
        });
        self.ids.insert(hashed, id);
        (id, true)
    }

    pub(crate) fn get(&self, id: ShapeId) -> Option<&ShapeEntry> {
        self.entries.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: ShapeId) -> Option<&mut ShapeEntry> {
        self.entries.get_mut(id)
    }

    /// Forgets a shape that nobody has any more.
    pub(crate) fn forget(&mut self, id: ShapeId) {
        if let Some(ShapeEntry { hash, shape, .. }) = self.entries.remove(id) {
            self.ids.remove(&Hashed { hash, shape });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ShapeId, &ShapeEntry)> {
        self.entries.iter()
    }
}
