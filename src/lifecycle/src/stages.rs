//! Stages in which a testbox holds a job.

use fairlead_job::Stage;

/// Stages in which a testbox holds a job.
pub const HELD: [Stage; 8] = [
    Stage::Dispatch,
    Stage::Boot,
    Stage::Setup,
    Stage::WaitPeer,
    Stage::Running,
    Stage::PostRun,
    Stage::ManualCheck,
    Stage::Renew,
];
