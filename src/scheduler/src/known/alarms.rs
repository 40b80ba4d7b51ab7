//! Alarms of waiting jobs in the next seconds, by time.

use fairlead_job::JobId;
use fairlead_store::StoredJob;

use crate::storage::controller::Controller;

/// Alarms that ring soon, by when this replica looks, UTC epoch ms.
pub(crate) type Alarms = Controller<JobId, StoredJob>;
