//! How many files jobs have uploaded to this replica.

use std::collections::HashMap;

use fairlead_job::JobId;
use parking_lot::Mutex;

/// Jobs whose files are counted.
const JOBS_MAX: usize = 10_000;

/// Files by job.
#[derive(Debug, Default)]
pub(crate) struct Uploads(Mutex<HashMap<JobId, u64>>);

impl Uploads {
    /// Counts one more file of a job, unless it has `most`.
    pub(crate) fn add(&self, id: JobId, most: u64) -> bool {
        let mut files = self.0.lock();
        if files.len() >= JOBS_MAX && !files.contains_key(&id) {
            files.clear();
        }
        let files = files.entry(id).or_default();
        if *files >= most {
            return false;
        }
        *files += 1;
        true
    }

    /// One of them was not stored.
    pub(crate) fn give_back(&self, id: JobId) {
        if let Some(files) = self.0.lock().get_mut(&id) {
            *files = files.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_so_many_files_and_others_have_their_own() {
        let (uploads, job) = (Uploads::default(), JobId::new(1));
        assert!(uploads.add(job, 2) && uploads.add(job, 2) && !uploads.add(job, 2));
        assert!(uploads.add(JobId::new(2), 2));
        uploads.give_back(job);
        assert!(uploads.add(job, 2) && !uploads.add(job, 2));
    }
}
