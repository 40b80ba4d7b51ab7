//! Alarms of waiting jobs in the next seconds, by time.

use fairlead_job::JobId;
use fairlead_store::StoredJob;

use fairlead_base::storage::controller::Controller;

/// Alarms that ring soon, by when this replica looks, UTC epoch ms.
pub type Alarms = Controller<JobId, StoredJob>;
