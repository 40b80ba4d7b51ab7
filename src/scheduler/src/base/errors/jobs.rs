//! Errors of jobs that exist: of changes, reports and nodes that wait for each other.

use fairlead_job::{DataReadiness, Health, JobId, Stage};

/// An error of a job that exists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JobError {
    #[error("unknown job {0}")]
    Unknown(JobId),
    /// Others changed it each time before this change was written: nothing was.
    #[error("too many requests change job {0} at once")]
    Contended(JobId),
    #[error("job {id} is of account '{account}', not of '{asker}'")]
    NotOwner {
        id: JobId,
        account: String,
        asker: String,
    },
    #[error("job {id} is in stage {stage} and cannot be cancelled")]
    NotWaiting { id: JobId, stage: Stage },
    #[error("job {id} is in stage {stage} and does not run")]
    NotRunning { id: JobId, stage: Stage },
    #[error("job {id} is shard {n} of job {parent} and is only stopped or run again with it")]
    IsShard { id: JobId, n: u16, parent: JobId },
    #[error("job {id} is in stage {stage}: only waiting jobs can be held, released and edited")]
    NotChangeable { id: JobId, stage: Stage },
    #[error("the shards of job {0} wait by themselves: it cannot be held or edited any more")]
    ShardsWait(JobId),
    #[error("'{0}' of a waiting job cannot be changed")]
    NotEditable(String),
    #[error("no change was given")]
    NoEdit,
    #[error("job {0} is a node of a cluster, and cannot be changed or run again alone")]
    IsNode(JobId),
    #[error("job {id} is in stage {stage}: it has not ended")]
    NotOver { id: JobId, stage: Stage },
    #[error("job {0} succeeded: nothing failed")]
    NothingFailed(JobId),
    #[error("job {0} did not succeed, but none of its shards failed")]
    NoShardFailed(JobId),
    #[error("the group of job {0} has no job that failed")]
    NoneOfGroupFailed(JobId),
    #[error("the group of job {0} has no jobs")]
    EmptyGroup(JobId),
    #[error("the store no longer knows which tests each shard of job {0} ran")]
    NoPlan(JobId),
    #[error("the end of the lease of job {0} could not be recorded")]
    LeaseNotEnded(JobId),

    // Who may report on it.
    #[error("no job_token was sent")]
    NoToken,
    #[error("the token is not one of job {0}")]
    WrongToken(JobId),
    #[error("this token's claim of job {0} is over")]
    ClaimOver(JobId),
    #[error("attempt {attempt} of job {id} is over; attempt {present} counts")]
    AttemptOver {
        id: JobId,
        attempt: u16,
        present: u16,
    },

    #[error("this attempt is over")]
    BootOver,

    // What a report says.
    #[error("{name}: '{shown}' is not {expected}")]
    BadReport {
        name: String,
        shown: String,
        expected: String,
    },
    #[error("job {0} waits: no testbox has it")]
    NoTestbox(JobId),
    #[error("job {id} is in stage {from} and cannot go to {to}")]
    NotForward { id: JobId, from: Stage, to: Stage },
    #[error("job {id} has not met its peers and cannot go to {to}")]
    PeersMissing { id: JobId, to: Stage },
    #[error("job {id} has ended: stage {stage}, health {health}")]
    Ended {
        id: JobId,
        stage: Stage,
        health: Health,
    },
    #[error("data readiness is {from} and cannot go back to {to}")]
    ReadinessBack {
        from: DataReadiness,
        to: DataReadiness,
    },

    #[error("job {0} has no key for reuse")]
    NoKey(JobId),
    #[error("outputs: the account of job {0} has not put them")]
    NoOutputs(JobId),

    // Waiting for the nodes of its cluster.
    #[error("job {0} is not one of several nodes")]
    NoPeers(JobId),
    #[error("job {id} has ended: {reason}")]
    EndedWaiting { id: JobId, reason: String },
    #[error("this testbox no longer has job {id}: {reason}")]
    PutBack { id: JobId, reason: String },
    #[error("job {id} is in stage {stage} and waits for nobody")]
    NotAtBarrier { id: JobId, stage: Stage },
}
