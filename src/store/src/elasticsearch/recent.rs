//! What was kept of the newest jobs, up to a number; the oldest ones are forgotten.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use fairlead_job::JobId;

/// A value a job.
#[derive(Debug)]
pub(super) struct Recent<T> {
    /// Values of one generation, at most; there are two.
    kept_max: usize,
    all: Mutex<Generations<T>>,
}

#[derive(Debug)]
struct Generations<T> {
    new: HashMap<JobId, T>,
    old: HashMap<JobId, T>,
}

impl<T> Generations<T> {
    fn take(&mut self, id: JobId) -> Option<T> {
        let found = self.new.remove(&id);
        found.or_else(|| self.old.remove(&id))
    }
}

impl<T> Recent<T> {
    /// Room for so many values at the least, 1 or more, and twice as many at the most.
    pub(super) fn new(kept_max: usize) -> Self {
        let (new, old) = (HashMap::new(), HashMap::new());
        Self {
            kept_max: kept_max.max(1),
            all: Mutex::new(Generations { new, old }),
        }
    }

    /// Keeps the value of a job in place of what was kept of it.
    pub(super) fn keep(&self, id: JobId, value: T) {
        let mut all = self.all();
        drop(all.take(id));
        if all.new.len() >= self.kept_max {
            all.old = std::mem::take(&mut all.new);
        }
        all.new.insert(id, value);
    }

    /// What was kept of a job. It is kept no longer.
    pub(super) fn take(&self, id: JobId) -> Option<T> {
        self.all().take(id)
    }

    /// Forgets all.
    pub(super) fn clear(&self) {
        let mut all = self.all();
        all.new.clear();
        all.old.clear();
    }

    fn all(&self) -> MutexGuard<'_, Generations<T>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let recent = Recent::new(100);
        let count = 300;
        for id in 0..count {
            recent.keep(JobId::new(id), id);
        }
        assert_eq!(recent.take(JobId::new(0)), None);
        for id in count - 100..count {
            assert_eq!(recent.take(JobId::new(id)), Some(id));
            assert_eq!(recent.take(JobId::new(id)), None, "taken once");
        }
    }

    #[test]
    fn what_is_kept_again_is_young_again_and_the_last_one() {
        let recent = Recent::new(2);
        for (id, value) in [(1, 1), (2, 2), (1, 1), (3, 3), (3, 34), (4, 4)] {
            recent.keep(JobId::new(id), value);
        }
        let taken = [1, 2, 3, 4].map(|id| recent.take(JobId::new(id)));
        assert_eq!(taken, [Some(1), Some(2), Some(34), Some(4)]);
        recent.keep(JobId::new(5), 5);
        recent.clear();
        assert_eq!(recent.take(JobId::new(5)), None);
    }
}
