//! Shapes of jobs, properties of hosts, and the one list of checks between them (I3).
//!
//! Matching and explaining both use [`lacks`]. Nothing else decides whether a job may run on a host.

use crate::event::Kind;
use crate::ids::{BucketId, KeyId, Place, ShapeId};
use crate::interner::{Atom, Fixed, Numbers, is_among, is_subset, same};
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
    pub arch: Atom,
    /// Sorted, like all lists here.
    pub keys: Box<[Atom]>,
    pub tags: Box<[Atom]>,
    pub devices: Box<[Atom]>,
    /// Hosts that must not have it.
    pub not_on: Box<[Atom]>,
}

impl Shape {
    /// A requirement that few hosts meet, to find shapes by; shapes without one are found under `None`.
    pub(crate) fn anchor(&self) -> Option<&Atom> {
        self.devices.first().or_else(|| self.tags.first())
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
        self.accounts.is_empty() || self.accounts.iter().any(|one| **one == *account)
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
    /// Nothing runs or is in flight there: a hw job may enter.
    pub hw_open: bool,
    /// No hw job runs or is in flight there: vm and dc jobs may enter.
    pub shared_open: bool,
}

/// What a host lacks for a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    Account,
    Key,
    /// An earlier attempt failed on this very host.
    Elsewhere,
    Arch,
    Busy,
    Memory,
    Tags,
    Devices,
    Caches,
    Blocked,
}

type Check = (Lack, fn(&Shape, &View) -> bool);

/// Cheap and telling ones first. Those that pass with time (busy, memory, gates) come last.
const CHECKS: [Check; 9] = [
    (Lack::Arch, |shape, host| {
        same(&shape.arch, &host.env.arch) || shape.arch.is_empty()
    }),
    (Lack::Tags, |shape, host| {
        is_subset(&shape.tags, &host.env.tags)
    }),
    (Lack::Devices, |shape, host| {
        is_subset(&shape.devices, &host.env.devices)
    }),
    (Lack::Key, |shape, host| {
        shape.keys.iter().any(|key| is_among(key, &host.keys))
    }),
    (Lack::Elsewhere, |shape, host| {
        !is_among(&host.name, &shape.not_on)
    }),
    (Lack::Blocked, |shape, _| shape.gate != Gate::Blocked),
    (Lack::Caches, |shape, host| match &shape.gate {
        Gate::Affine(dirs) => dirs.iter().any(|dir| is_among(dir, &host.caches)),
        Gate::Open | Gate::Blocked => true,
    }),
    (Lack::Busy, |shape, host| {
        if shape.kind == Kind::Hw {
            host.hw_open
        } else {
            host.shared_open
        }
    }),
    (Lack::Memory, |shape, host| {
        shape.memory_mb
            <= if shape.kind == Kind::Hw {
                host.total_mb
            } else {
                host.free_mb
            }
    }),
];

/// What `host` lacks to run jobs of this shape of this account now; empty: they fit.
pub(crate) fn lacks_of<'a>(
    account: &str,
    shape: &'a Shape,
    host: &'a View,
) -> impl Iterator<Item = Lack> + use<'a> {
    let account = (!host.env.serves(account)).then_some(Lack::Account);
    account.into_iter().chain(lacks(shape, host))
}

/// The same, whosever they are.
pub(crate) fn lacks<'a>(shape: &'a Shape, host: &'a View) -> impl Iterator<Item = Lack> + 'a {
    CHECKS
        .iter()
        .filter(move |(_, holds)| !holds(shape, host))
        .map(|(lack, _)| *lack)
}

/// Whether a lack goes away when the host's present jobs end.
pub(crate) fn passes_with_jobs(lack: Lack, shape: &Shape, host: &View) -> bool {
    match lack {
        Lack::Busy => shape.memory_mb <= host.total_mb,
        Lack::Memory => shape.memory_mb <= host.total_mb && shape.kind != Kind::Hw,
        Lack::Account
        | Lack::Key
        | Lack::Elsewhere
        | Lack::Arch
        | Lack::Tags
        | Lack::Devices
        | Lack::Caches
        | Lack::Blocked => false,
    }
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
