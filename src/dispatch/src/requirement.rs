//! Answers whether a job may run on a host (I3): which requirements of the job the host does not meet.
//!
//! The engine, the warnings of a submit and the simulated store all use it. The engine compares interned names, the others
//! plain strings. The rules are the same for both.

/// Number of CPUs of a host that does not report it. No job is refused for want of CPUs, and no job takes any.
pub const CPUS_UNCHECKED: u32 = u32::MAX;

/// One requirement of a job. A host that gets the job meets all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// The host serves the account of the job.
    Account,
    /// The host has the architecture of the job.
    Architecture,
    /// The host has all tags of the job.
    Tags,
    /// The host has none of the tags that the job avoids.
    NotTags,
    /// The host meets one of the job's alternatives, if it has any.
    AnyOf,
    /// The host has all devices of the job.
    Devices,
    /// The host offers one of the job's keys.
    HostKey,
    /// The job need not avoid the host: no earlier attempt failed there.
    OtherHost,
    /// The host has enough memory.
    Memory,
    /// The host has enough CPUs.
    Cpus,
}

/// A name that can be compared: by its text or, where equal names are shared, by its address.
pub trait Name: AsRef<str> + Sized {
    /// Returns true if both are the same name.
    fn is_same(&self, other: &Self) -> bool;

    /// Returns true if `names` contains it.
    fn is_among(&self, names: &[Self]) -> bool {
        names.iter().any(|other| self.is_same(other))
    }

    /// Returns true if `outer` has all names of `inner`.
    fn is_subset(inner: &[Self], outer: &[Self]) -> bool {
        inner.iter().all(|name| name.is_among(outer))
    }
}

impl Name for String {
    fn is_same(&self, other: &Self) -> bool {
        self == other
    }
}

/// Tags that a host must have, and must not have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Alternative<N> {
    /// The host has all of these.
    pub tags: Box<[N]>,
    /// The host has none of these.
    pub not_tags: Box<[N]>,
}

impl<N: Name> Alternative<N> {
    /// Returns true if a host of these tags meets it.
    pub fn is_met_by(&self, tags: &[N]) -> bool {
        N::is_subset(&self.tags, tags) && !has_any(tags, &self.not_tags)
    }
}

/// Returns true if a host of these tags has one of `avoided`.
fn has_any<N: Name>(tags: &[N], avoided: &[N]) -> bool {
    avoided.iter().any(|tag| tag.is_among(tags))
}

/// Requirements of a job.
#[derive(Debug)]
pub struct JobRequirements<'a, N> {
    /// Its account. `None`: the accounts that a host serves do not matter.
    pub account: Option<&'a str>,
    /// Its architecture; empty: any.
    pub arch: &'a N,
    /// The keys, of which the host must offer one. Never empty.
    pub keys: &'a [N],
    /// The tags that the host must have.
    pub tags: &'a [N],
    /// The tags that the host must not have.
    pub not_tags: &'a [N],
    /// The alternatives, of which the host must meet one; empty: nothing more is asked.
    pub any_of: &'a [Alternative<N>],
    /// The devices that the host must have.
    pub devices: &'a [N],
    /// The hosts that it must avoid.
    pub not_on: &'a [N],
    /// Its memory, MB.
    pub memory_mb: u32,
    /// Its CPUs.
    pub cpus: u32,
}

/// Properties of a host.
#[derive(Debug)]
pub struct HostProperties<'a, N> {
    /// Its name.
    pub name: &'a N,
    /// Its architecture.
    pub arch: &'a N,
    /// The keys that it offers.
    pub keys: &'a [N],
    /// Its tags.
    pub tags: &'a [N],
    /// Its devices.
    pub devices: &'a [N],
    /// The accounts that it serves; empty: all.
    pub accounts: &'a [N],
    /// Its memory, MB: the total or the free memory, as the caller needs.
    pub memory_mb: u32,
    /// Its CPUs, all or those that are free, as the caller needs. [`CPUS_UNCHECKED`]: enough for any job.
    pub cpus: u32,
}

impl Requirement {
    /// All requirements. The cheapest and most selective come first.
    const ALL: [Self; 10] = [
        Self::Account,
        Self::Architecture,
        Self::Tags,
        Self::NotTags,
        Self::AnyOf,
        Self::Devices,
        Self::HostKey,
        Self::OtherHost,
        Self::Memory,
        Self::Cpus,
    ];

    /// Returns true if a host meets this requirement of a job.
    #[inline]
    pub fn is_met<N: Name>(
        self,
        job: &JobRequirements<'_, N>,
        host: &HostProperties<'_, N>,
    ) -> bool {
        match self {
            Self::Account => job.account.is_none_or(|one| serves(host.accounts, one)),
            Self::Architecture => job.arch.is_same(host.arch) || job.arch.as_ref().is_empty(),
            Self::Tags => N::is_subset(job.tags, host.tags),
            Self::NotTags => !has_any(host.tags, job.not_tags),
            Self::AnyOf => {
                job.any_of.is_empty() || job.any_of.iter().any(|one| one.is_met_by(host.tags))
            }
            Self::Devices => N::is_subset(job.devices, host.devices),
            Self::HostKey => job.keys.iter().any(|key| key.is_among(host.keys)),
            Self::OtherHost => !host.name.is_among(job.not_on),
            Self::Memory => job.memory_mb <= host.memory_mb,
            Self::Cpus => job.cpus <= host.cpus,
        }
    }
}

impl<N: Name> JobRequirements<'_, N> {
    /// Returns the requirements that a host does not meet. If there are none, the job may run there.
    pub fn unmet_by(&self, host: &HostProperties<'_, N>) -> impl Iterator<Item = Requirement> {
        let all = Requirement::ALL.into_iter();
        all.filter(|requirement| !requirement.is_met(self, host))
    }

    /// Returns the first requirement that a host does not meet. It is written out, because the engine asks this for
    /// each shape: a loop over the requirements made a decision a tenth slower.
    #[inline]
    pub fn first_unmet_by(&self, host: &HostProperties<'_, N>) -> Option<Requirement> {
        let unmet = |one: Requirement| (!one.is_met(self, host)).then_some(one);
        unmet(Requirement::Account)
            .or_else(|| unmet(Requirement::Architecture))
            .or_else(|| unmet(Requirement::Tags))
            .or_else(|| unmet(Requirement::NotTags))
            .or_else(|| unmet(Requirement::AnyOf))
            .or_else(|| unmet(Requirement::Devices))
            .or_else(|| unmet(Requirement::HostKey))
            .or_else(|| unmet(Requirement::OtherHost))
            .or_else(|| unmet(Requirement::Memory))
            .or_else(|| unmet(Requirement::Cpus))
    }
}

/// Returns true if a host that serves these accounts gets jobs of this account. An empty list means all accounts.
pub(crate) fn serves<N: Name>(accounts: &[N], account: &str) -> bool {
    accounts.is_empty() || accounts.iter().any(|one| one.as_ref() == account)
}
