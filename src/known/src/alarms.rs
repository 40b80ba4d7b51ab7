//! Alarms of waiting jobs in the next seconds, by time.

use fairlead_job::JobId;
use fairlead_store::StoredJob;

use fairlead_base::storage::controller::Controller;

/// Alarms that ring soon, ordered by the time of this replica's next look, UTC epoch ms.
pub type Alarms = Controller<JobId, StoredJob>;
