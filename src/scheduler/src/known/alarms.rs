//! Alarms of waiting jobs in the next seconds, by time.

use fairlead_job::JobId;
use fairlead_store::StoredJob;

use crate::storage::due_queue::DueQueue;

/// Alarms that ring soon, by when this replica looks, UTC epoch ms.
pub(crate) type Alarms = DueQueue<JobId, StoredJob>;
