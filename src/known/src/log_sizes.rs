//! How long the logs are that this replica appended to. A wrong number costs one more look at the log.

use std::collections::HashMap;

use fairlead_job::JobId;
use parking_lot::Mutex;

/// Maximum number of remembered log sizes.
const SIZES_MAX: usize = 10_000;

/// Sizes of logs by job and attempt, bytes.
#[derive(Debug, Default)]
pub struct LogSizes(Mutex<HashMap<(JobId, u16), u64>>);

impl LogSizes {
    pub fn of(&self, log: (JobId, u16)) -> Option<u64> {
        self.0.lock().get(&log).copied()
    }

    pub fn set(&self, log: (JobId, u16), size: u64) {
        let mut sizes = self.0.lock();
        if sizes.len() >= SIZES_MAX {
            sizes.clear();
        }
        sizes.insert(log, size);
    }
}
