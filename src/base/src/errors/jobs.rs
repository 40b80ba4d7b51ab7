//! Errors of jobs that exist: of changes, reports and nodes that wait for each other.

use fairlead_job::{DataReadiness, Health, JobId, Stage};

refusals! {
    /// An error of a job that exists.
    pub enum JobError {
        #[error("unknown job {0}")]
        Unknown(JobId) => NotFound, "list jobs with GET /scheduler/v1/jobs";
        /// Other writers changed it before each try of this change: nothing was written.
        #[error("too many requests change job {0} at once")]
        Contended(JobId) => Unavailable, "try again in a few seconds";
        #[error("job {id} is of account '{account}', not of '{asker}'")]
        NotOwner {
            id: JobId,
            account: String,
            asker: String,
        } => Forbidden, "its owner or an admin can do this";
        #[error("job {id} is in stage {stage} and cannot be cancelled")]
        NotWaiting { id: JobId, stage: Stage } => WrongStage as 403 of (stage),
            if stage.is_held() { "stop a running job with terminate" } else { "it has ended" };
        #[error("job {id} is in stage {stage} and does not run")]
        NotRunning { id: JobId, stage: Stage } => WrongStage as 403 of (stage),
            if *stage == Stage::Submit { "cancel a waiting job" } else { "it has ended" };
        #[error("job {id} is shard {n} of job {parent} and is only stopped or run again with it")]
        IsShard { id: JobId, n: u16, parent: JobId } => WrongStage, "name its parent";
        #[error("job {id} is in stage {stage}: only waiting jobs can be held, released and edited")]
        NotChangeable { id: JobId, stage: Stage } => WrongStage of (stage),
            if stage.is_held() {
                "stop it with terminate, and run it again: fairlead rerun ID -s KEY=VALUE"
            } else {
                "run it again: fairlead rerun ID -s KEY=VALUE"
            };
        #[error("the shards of job {0} wait by themselves: it cannot be held or edited any more")]
        ShardsWait(JobId) => WrongStage, "stop it with terminate, and run it again";
        #[error("'{0}' of a waiting job cannot be changed")]
        NotEditable(String) => BadField,
            "queue, priority, need_memory, need_cpus, timeout, tags and deadline can";
        #[error("no change was given")]
        NoEdit => BadField, "hold: true or false, or new values in set";
        #[error("job {0} is a node of a cluster, and cannot be changed or run again alone")]
        IsNode(JobId) => WrongStage, "submit the cluster again";
        #[error("job {id} is in stage {stage}: it has not ended")]
        NotOver { id: JobId, stage: Stage } => WrongStage, "wait for its end: fairlead wait ID";
        #[error("job {0} succeeded: nothing failed")]
        NothingFailed(JobId) => WrongStage, "run all of it again: omit failed";
        #[error("job {0} did not succeed, but none of its shards failed")]
        NoShardFailed(JobId) => WrongStage, "run all of it again: omit failed";
        #[error("the group of job {0} has no job that failed")]
        NoneOfGroupFailed(JobId) => WrongStage, "run all of it again: omit failed";
        #[error("the group of job {0} has no jobs")]
        EmptyGroup(JobId) => WrongStage, "submit its jobs into a new group";
        #[error("the store no longer knows which tests each shard of job {0} ran")]
        NoPlan(JobId) => NotFound, "run all of it again: omit failed";
        #[error("the end of the lease of job {0} could not be recorded")]
        LeaseNotEnded(JobId) => Unavailable, "ask again";

        // Right to report on it.
        #[error("no job_token was sent")]
        NoToken => Unauthorized,
            "send the job_token of the grant; a testbox account alone reports nothing of a job";
        #[error("the token is not one of job {0}")]
        WrongToken(JobId) => Forbidden,
            "use the job_token of the grant; stop the job if it is no longer this host's";
        #[error("this token's claim of job {0} is over")]
        ClaimOver(JobId) => Conflict, "stop the job; it is no longer this host's";
        #[error("attempt {attempt} of job {id} is over; attempt {present} counts")]
        AttemptOver {
            id: JobId,
            attempt: u16,
            present: u16,
        } => Conflict, "stop it; its results are kept under its own attempt";

        #[error("this attempt is over")]
        BootOver => Conflict, "ask for a new job";

        // Content of a report.
        #[error("{name}: '{shown}' is not {expected}")]
        BadReport {
            name: String,
            shown: String,
            expected: String,
        } => BadQuery, "see docs/api.md, update";
        #[error("job {0} waits: no testbox has it")]
        NoTestbox(JobId) => WrongStage,
            "the job was requeued; another testbox gets its next attempt";
        #[error("job {id} is in stage {from} and cannot go to {to}")]
        NotForward { id: JobId, from: Stage, to: Stage } => WrongStage, "stages only move forward";
        #[error("job {id} has not met its peers and cannot go to {to}")]
        PeersMissing { id: JobId, to: Stage } => WrongStage,
            "report wait_peer, and go on when jobs/ID/wait_peer says so";
        #[error("job {id} has ended: stage {stage}, health {health}")]
        Ended {
            id: JobId,
            stage: Stage,
            health: Health,
        } => Closed, "only its data readiness can still change";
        #[error("data readiness is {from} and cannot go back to {to}")]
        ReadinessBack {
            from: DataReadiness,
            to: DataReadiness,
        } => WrongStage, "it only moves forward";

        #[error("job {0} has no key for reuse")]
        NoKey(JobId) => WrongStage, "name a job with 'reuse', or one of its shards";
        #[error("outputs: the account of job {0} has not put them")]
        NoOutputs(JobId) => BadField, "put them with the token of the job, then report";

        // Waiting for the nodes of its cluster.
        #[error("job {0} is not one of several nodes")]
        NoPeers(JobId) => WrongStage, "it runs as soon as it likes";
        #[error("job {id} has ended: {reason}")]
        EndedWaiting { id: JobId, reason: String } => Closed, "stop it";
        #[error("this testbox no longer has job {id}: {reason}")]
        PutBack { id: JobId, reason: String } => Conflict,
            "stop it; it begins anew with all its peers";
        #[error("job {id} is in stage {stage} and waits for nobody")]
        NotAtBarrier { id: JobId, stage: Stage } => WrongStage, "report wait_peer first";
    }
}
