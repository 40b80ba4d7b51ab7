//! How long a job waits for a host that holds its cache directories.

use std::sync::Arc;

use crate::engine::Engine;
use crate::event::JobFacts;
use crate::index::Job;
use crate::interner::Atom;
use crate::shape::{Shape, could_run};

impl Engine {
    /// Returns the end of a job's wait for a host that holds its cache directories, and these directories. `None`: no
    /// such host may come.
    pub(crate) fn affine_until(
        &mut self,
        facts: &JobFacts,
        job: &Job,
        shape: &Shape,
    ) -> Option<(u64, Arc<[Atom]>)> {
        let until = job
            .submitted
            .min(self.now)
            .saturating_add(self.config.affinity_wait_ms);
        if facts.cache_dirs.is_empty() || until <= self.now {
            return None;
        }
        let dirs: Arc<[Atom]> = Arc::from(self.atoms.set(&facts.cache_dirs));
        let may_come = |dir: &Atom| {
            self.hosts
                .recent_holders(dir, self.now)
                .any(|host| could_run(Some(&facts.account), shape, &host.view))
        };
        dirs.iter().any(may_come).then_some((until, dirs))
    }
}
