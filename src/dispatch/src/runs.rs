//! Jobs in flight to a host or running on one, and versions of jobs that are gone.

use crate::event::{JobFacts, Running};
use crate::hosts::Load;
use crate::ids::{HostId, JobKey, OfferKey, Owner, Version};
use crate::index::Job;
use crate::interner::{Atom, Numbers};
use crate::shape::Shape;
use indexmap::IndexMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of gone jobs whose last version is remembered.
const GONE_MAX: usize = 65_536;

/// A job in flight or running.
#[derive(Debug)]
pub(crate) struct Run {
    pub host: HostId,
    pub suite: Atom,
    /// See [`JobFacts::class`].
    pub class: u64,
    pub group: Atom,
    pub owner: Owner,
    pub load: Load,
    pub timeout_ms: u64,
    pub version: Version,
    /// Order of its dispatch.
    pub serial: u64,
    /// Claim in flight: its offer, and the facts of the job while it waited.
    pub flight: Option<Box<Flight>>,
    /// Newer state in which the job waits again, reported before its end was.
    pub requeued: Option<Box<JobFacts>>,
}

/// A claim that is not settled.
#[derive(Debug)]
pub(crate) struct Flight {
    pub offer: OfferKey,
    /// Time of the claim.
    pub since: u64,
    pub job: Job,
    pub shape: Arc<Shape>,
    /// News of the job since then.
    pub news: News,
}

/// News of a job in flight.
#[derive(Debug)]
pub(crate) enum News {
    Nothing,
    /// Another host has the job.
    Held(Box<Running>),
    /// The job is over already.
    Ended,
}

/// All jobs in flight and running.
pub(crate) type Runs = IndexMap<JobKey, Run, Numbers>;

/// The last known versions of jobs that are gone, so that a stale read does not bring them back.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    /// Last version by job, and true if the job was over at that version.
    versions: IndexMap<JobKey, (Version, bool), Numbers>,
    order: VecDeque<JobKey>,
}

impl Gone {
    /// Notes a job that is gone, with its version. `ended`: a host had the job, and has it no more.
    pub(crate) fn note(&mut self, job: JobKey, version: Version, ended: bool) {
        let known = self.versions.entry(job).or_insert_with(|| {
            self.order.push_back(job);
            (version, ended)
        });
        *known = (version, ended).max(*known);
        while self.order.len() > GONE_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.versions.swap_remove(&oldest);
            }
        }
    }

    /// Returns true if a job read at this version is gone.
    pub(crate) fn covers(&self, job: JobKey, version: Version) -> bool {
        self.versions
            .get(&job)
            .is_some_and(|(known, _)| version <= *known)
    }

    /// Returns true if a job that a host is said to have at this version is over, or was seen elsewhere since.
    pub(crate) fn is_over(&self, job: JobKey, version: Version) -> bool {
        let over =
            |(known, ended): &(Version, bool)| version < *known || (version == *known && *ended);
        self.versions.get(&job).is_some_and(over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_the_newest_version_of_a_bounded_number() {
        let mut gone = Gone::default();
        let at = |seq_no| Version {
            primary_term: 1,
            seq_no,
        };
        gone.note(JobKey(1), at(5), false);
        gone.note(JobKey(1), at(3), true);
        assert!(
            gone.covers(JobKey(1), at(5))
                && !gone.covers(JobKey(1), at(6))
                && !gone.covers(JobKey(2), at(0))
        );
        assert!(gone.is_over(JobKey(1), at(4)) && !gone.is_over(JobKey(1), at(5)));
        gone.note(JobKey(1), at(5), true);
        assert!(gone.is_over(JobKey(1), at(5)) && !gone.is_over(JobKey(1), at(6)));
        for n in 0..GONE_MAX as u64 {
            gone.note(JobKey(10 + n), at(1), false);
        }
        assert!(!gone.covers(JobKey(1), at(5)));
        assert_eq!(
            (gone.versions.len(), gone.order.len()),
            (GONE_MAX, GONE_MAX)
        );
    }
}
