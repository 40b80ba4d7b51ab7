//! How much jobs have uploaded to this replica.

use std::collections::{HashMap, hash_map::Entry};

use fairlead_job::JobId;
use parking_lot::Mutex;

/// Maximum number of jobs whose files are counted.
const JOBS_MAX: usize = 10_000;

/// Number and bytes of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    pub files: u64,
    pub bytes: u64,
}

/// Amount of uploaded files by job.
#[derive(Debug, Default)]
pub struct Uploads(Mutex<HashMap<JobId, Amount>>);

impl Uploads {
    /// Returns the counted amount of a job. `None`: not counted yet.
    pub fn of(&self, id: JobId) -> Option<Amount> {
        self.0.lock().get(&id).copied()
    }

    /// Sets the existing amount of a job, unless it is known.
    pub fn learn(&self, id: JobId, has: Amount) {
        entry(&mut self.0.lock(), id).or_insert(has);
    }

    /// Adds to the amount of a job. Returns false without adding if it would exceed `most`.
    pub fn add(&self, id: JobId, more: Amount, most: Amount) -> bool {
        let mut jobs = self.0.lock();
        let has = entry(&mut jobs, id).or_default();
        let after = Amount {
            files: has.files.saturating_add(more.files),
            bytes: has.bytes.saturating_add(more.bytes),
        };
        let fits = after.files <= most.files && after.bytes <= most.bytes;
        if fits {
            *has = after;
        }
        fits
    }

    /// Subtracts an amount that was not stored.
    pub fn give_back(&self, id: JobId, less: Amount) {
        if let Some(has) = self.0.lock().get_mut(&id) {
            has.files = has.files.saturating_sub(less.files);
            has.bytes = has.bytes.saturating_sub(less.bytes);
        }
    }
}

/// Returns the entry of a job. All jobs are forgotten if there would be too many.
fn entry(jobs: &mut HashMap<JobId, Amount>, id: JobId) -> Entry<'_, JobId, Amount> {
    if jobs.len() >= JOBS_MAX && !jobs.contains_key(&id) {
        jobs.clear();
    }
    jobs.entry(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_so_much_and_others_have_their_own() {
        let (uploads, job) = (Uploads::default(), JobId::new(1));
        let of = |files, bytes| Amount { files, bytes };
        let most = of(2, 100);
        assert_eq!(uploads.of(job), None);
        assert!(uploads.add(job, of(1, 0), most) && uploads.add(job, of(0, 60), most));
        assert!(!uploads.add(job, of(0, 41), most), "too many bytes");
        assert!(uploads.add(job, of(1, 40), most) && !uploads.add(job, of(1, 0), most));
        assert!(uploads.add(JobId::new(2), of(2, 100), most));
        uploads.give_back(job, of(1, 40));
        assert!(uploads.add(job, of(1, 40), most) && !uploads.add(job, of(1, 0), most));
    }

    #[test]
    fn what_a_job_has_already_counts_once() {
        let (uploads, job) = (Uploads::default(), JobId::new(1));
        let of = |files, bytes| Amount { files, bytes };
        uploads.learn(job, of(1, 90));
        uploads.learn(job, of(0, 0));
        assert_eq!(uploads.of(job), Some(of(1, 90)));
        assert!(!uploads.add(job, of(1, 11), of(9, 100)));
    }

    /// Content stores only call `add`, never `learn`: the limit of remembered jobs holds for them, too.
    #[test]
    fn so_many_jobs_are_counted_however_they_came() {
        let uploads = Uploads::default();
        let one = Amount { files: 1, bytes: 1 };
        let last = u64::try_from(JOBS_MAX).unwrap();
        for id in 1..=last {
            assert!(uploads.add(JobId::new(id), one, one));
        }
        uploads.learn(JobId::new(1), Amount::default());
        assert_eq!(uploads.of(JobId::new(1)), Some(one), "it was known");
        assert!(uploads.add(JobId::new(last + 1), one, one));
        assert_eq!(uploads.of(JobId::new(1)), None);
        assert_eq!(uploads.of(JobId::new(last + 1)), Some(one));
    }
}
