//! Judges a job on each known host for people: whether the host could run it, and whether it could now.
//!
//! It uses the rules of matching ([`crate::requirement`]), so nothing is judged in two ways. A job may be compared with
//! the same job without one of its constraints: that is what the constraint costs.

use crate::engine::Engine;
use crate::event::JobFacts;
use crate::hosts::Host;
use crate::ids::Millis;
use crate::interner::{Atom, Atoms};
use crate::kept_off::Waits;
use crate::shape::{Shape, View};

/// Maximum number of jobs that one job is compared with. More are left out, because each one needs a look at each
/// known host.
pub const COMPARED_MAX: usize = 16;

/// Hosts that a job would gain if it had the facts of another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct More {
    /// Hosts that could run the other job, and not this one.
    pub able: u64,
    /// Hosts that could run the other job now, and not this one.
    pub ready: u64,
    /// Memory of the largest of those that are able, MB.
    pub most_mb: u32,
    /// CPUs of the largest able host; [`CPUS_UNCHECKED`](crate::CPUS_UNCHECKED): it did not say.
    pub most_cpus: u32,
}

/// A job as hosts see it.
pub(crate) struct Judge<'a> {
    account: &'a str,
    pub shape: &'a Shape,
    /// True if loaded hosts do not get the job for now.
    is_kept_off: bool,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(engine: &Engine, waits: Waits<'a>, now: u64) -> Self {
        Self {
            account: waits.account,
            shape: waits.shape,
            is_kept_off: engine.hosts.kept_off(waits, now).is_some(),
        }
    }

    /// Returns true if the load of the host keeps the job off.
    pub(crate) fn is_kept(&self, host: &Host) -> bool {
        self.is_kept_off && host.is_loaded()
    }

    /// Returns true if the host could run the job on its own.
    pub(crate) fn is_able(&self, host: &Host) -> bool {
        let anybodys = self.shape.requirements(None);
        anybodys.first_unmet_by(&host.view.idle()).is_none()
    }

    /// Returns the number of reasons that keep the job off the host now.
    pub(crate) fn lacking(&self, host: &View) -> usize {
        let required = self.shape.requirements(Some(self.account));
        required.unmet_by(&host.now(self.shape.kind)).count()
            + usize::from(!host.admits(self.shape.kind))
            + usize::from(!self.shape.is_let_in(host))
    }

    /// Returns true if the host asks, and nothing keeps the job off it.
    pub(crate) fn is_ready(&self, host: &Host) -> bool {
        host.open.is_some() && !self.is_kept(host) && self.lacking(&host.view) == 0
    }
}

impl Engine {
    /// Compares the hosts for a job with those for each of these others, in their order. At most [`COMPARED_MAX`] of
    /// them are looked at.
    pub fn compare_facts(&self, now: Millis, job: &JobFacts, others: &[JobFacts]) -> Vec<More> {
        if others.is_empty() {
            return Vec::new();
        }
        let now = self.now.max(now.0);
        let others = others.get(..COMPARED_MAX).unwrap_or(others);
        let shape_of = |facts: &JobFacts| plain_shape(&self.atoms, facts);
        let (shape, shapes) = (shape_of(job), others.iter().map(shape_of));
        let shapes: Vec<Shape> = shapes.collect();
        let submitted = job.submitted.0.min(now);
        let judge = |shape| Judge::new(self, Waits::new(&job.account, shape, submitted), now);
        let own = judge(&shape);
        let judges: Vec<Judge<'_>> = shapes.iter().map(judge).collect();
        let mut found = vec![More::default(); judges.len()];
        for (_, host) in self.hosts.present() {
            let (is_able, is_ready) = (own.is_able(host), own.is_ready(host));
            for (judge, more) in judges.iter().zip(&mut found) {
                if !is_able && judge.is_able(host) {
                    more.able += 1;
                    more.most_mb = more.most_mb.max(host.view.total_mb);
                    more.most_cpus = more.most_cpus.max(host.view.total_cpus);
                }
                more.ready += u64::from(!is_ready && judge.is_ready(host));
            }
        }
        found
    }
}

/// Returns the shape of the facts. Names are not added to the table.
pub(crate) fn plain_shape(known: &Atoms, facts: &JobFacts) -> Shape {
    let lists = [
        &facts.host_keys,
        &facts.tags,
        &facts.not_tags,
        &facts.devices,
        &facts.not_on,
    ];
    let each = facts.any_of.iter();
    let alternatives = each.flat_map(|one| one.tags.iter().chain(&one.not_tags));
    let names = lists.into_iter().flatten().chain([&facts.arch]);
    let names = names.chain(alternatives);
    let mut atoms = known.those_of(names.map(String::as_str));
    crate::engine::shape_of(&mut atoms, facts)
}

/// Returns the texts of names.
pub(crate) fn texts(names: &[Atom]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}
