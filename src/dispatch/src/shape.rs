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

/// Condition that holds a job back for a while.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Gate {
    /// No condition.
    Open,
    /// Only hosts that hold one of these cache directories (sorted) get the job, until its affinity expires.
    Affine(Arc<[Atom]>),
    /// No host gets the job: the store could not tell which host has it.
    Blocked,
}

/// All facts that matching looks at. Jobs of equal shape are interchangeable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub kind: Kind,
    pub gate: Gate,
    pub memory_mb: u32,
    pub cpus: u32,
    pub arch: Atom,
    /// Host keys, sorted, like all lists here.
    pub keys: Box<[Atom]>,
    pub tags: Box<[Atom]>,
    /// Tags that a host must not have.
    pub not_tags: Box<[Atom]>,
    /// Alternatives in the job's order.
    pub any_of: Box<[Alternative<Atom>]>,
    pub devices: Box<[Atom]>,
    /// Hosts that must not run the job.
    pub not_on: Box<[Atom]>,
}

impl Shape {
    /// Returns a requirement that few hosts meet, by which shapes are found. Shapes without one are found under
    /// `None`.
    pub(crate) fn anchor(&self) -> Option<&Atom> {
        self.devices.first().or_else(|| self.tags.first())
    }

    /// Returns the requirements of jobs of this shape and this account. `None`: any account.
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

    /// Returns true if the gate is open for this host.
    pub(crate) fn is_let_in(&self, host: &View) -> bool {
        match &self.gate {
            Gate::Open => true,
            Gate::Affine(dirs) => dirs.iter().any(|dir| dir.is_among(&host.caches)),
            Gate::Blocked => false,
        }
    }
}

/// Properties that stay the same from one offer of a host to the next. Equal hosts share them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Env {
    pub arch: Atom,
    /// Tags, sorted, like all lists here.
    pub tags: Box<[Atom]>,
    pub devices: Box<[Atom]>,
    /// Accounts that alone may use the host; empty: all accounts.
    pub accounts: Box<[Atom]>,
}

impl From<&Env> for Arc<Env> {
    fn from(env: &Env) -> Self {
        Arc::new(env.clone())
    }
}

impl Env {
    /// Returns the marks of its tags and devices.
    pub(crate) fn marks(&self) -> Marks {
        Marks::of(self.tags.iter().chain(&self.devices))
    }

    /// Returns true if the host serves this account.
    pub(crate) fn serves(&self, account: &str) -> bool {
        serves(&self.accounts, account)
    }
}

/// State of a host for matching.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// The host's name.
    pub name: Atom,
    pub env: Arc<Env>,
    /// Marks of the tags and devices of `env`.
    pub has: Marks,
    /// Host keys, sorted, like all lists here.
    pub keys: Box<[Atom]>,
    pub caches: Box<[Atom]>,
    pub total_mb: u32,
    /// Memory that jobs may still take, MB.
    pub free_mb: u32,
    /// CPUs of the host; [`CPUS_UNCHECKED`](crate::requirement::CPUS_UNCHECKED): it did not say.
    pub total_cpus: u32,
    /// CPUs that jobs may still take; unchecked like `total_cpus`.
    pub free_cpus: u32,
    /// True if no job runs or is in flight there: a hw job may enter.
    pub hw_open: bool,
    /// True if no hw job runs or is in flight there: vm and dc jobs may enter.
    pub shared_open: bool,
}

impl View {
    /// Returns true if the jobs there leave room for a job of this kind at all.
    pub(crate) fn admits(&self, kind: Kind) -> bool {
        if kind == Kind::Hw {
            self.hw_open
        } else {
            self.shared_open
        }
    }

    /// Returns the memory that a job of this kind may take now, MB. A hw job never shares it.
    pub(crate) fn memory_for(&self, kind: Kind) -> u32 {
        if kind == Kind::Hw {
            self.total_mb
        } else {
            self.free_mb
        }
    }

    /// Returns the CPUs that a job of this kind may take now. A hw job never shares them.
    pub(crate) fn cpus_for(&self, kind: Kind) -> u32 {
        if kind == Kind::Hw {
            self.total_cpus
        } else {
            self.free_cpus
        }
    }

    /// Returns its properties for a job of this kind now.
    #[inline]
    pub(crate) fn now(&self, kind: Kind) -> HostProperties<'_, Atom> {
        self.with(self.memory_for(kind), self.cpus_for(kind))
    }

    /// Returns its properties when nothing runs there.
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

/// Reason that keeps the next job of a shape off a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// Jobs there share no host with it.
    Busy,
    /// Gate of the shape.
    Gate,
    Unmet(Requirement),
}

impl Obstacle {
    /// Returns true if the obstacle may disappear when the host's present jobs end.
    pub(crate) fn may_pass(self) -> bool {
        matches!(
            self,
            Self::Busy | Self::Unmet(Requirement::Memory | Requirement::Cpus)
        )
    }
}

/// Returns the first obstacle that keeps jobs of this shape off a host now; `None`: they fit. Without an account, any
/// account fits.
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

/// Returns true if a host could run jobs of this shape on its own.
pub(crate) fn could_run(account: Option<&str>, shape: &Shape, host: &View) -> bool {
    let required = shape.requirements(account);
    shape.is_let_in(host) && required.first_unmet_by(&host.idle()).is_none()
}

/// Approximate set of names: each name has a bit, which several names may share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Marks(u64);

impl Marks {
    fn of<'a>(names: impl Iterator<Item = &'a Atom>) -> Self {
        let bits = names.map(|name| 1 << (Numbers::default().hash_one(name) % 64));
        Self(bits.fold(0, |all, bit: u64| all | bit))
    }

    /// Returns false if `all` surely lacks one of these names.
    pub(crate) fn may_be_in(self, all: Self) -> bool {
        self.0 & !all.0 == 0
    }
}

/// First job of a bucket, with marks that rule out most of them without a look at the shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Head {
    pub place: Place,
    pub memory_mb: u32,
    pub bucket: BucketId,
    pub needs: Marks,
}

/// Shape with the buckets of its jobs.
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
    /// Returns the head of a bucket of this shape.
    pub(crate) fn head(&self, place: Place, bucket: BucketId) -> Head {
        Head {
            place,
            memory_mb: self.shape.memory_mb,
            bucket,
            needs: self.needs,
        }
    }
}

/// Shape with its hash, which takes a while to compute.
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
    /// Reserves room for this many shapes.
    pub(crate) fn reserve(&mut self, shapes: usize) {
        self.ids.reserve(shapes);
        self.entries.reserve(shapes);
    }

    /// Returns the id of this shape, and true if it is new. The keys of a new one are not set.
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

    /// Forgets a shape that no job has any more.
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
