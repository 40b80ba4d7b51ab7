//! Inputs (events) and outputs (actions) of the core.

use std::time::Duration;

use fairlead_api::{
    ConsumeAnswer, ConsumeRequest, Grant, HeartbeatAnswer, HeartbeatRequest, HostLoad, JobUpdate,
};
use fairlead_job::Stage;

use super::{
    failure::Failure,
    host::{Key, Leftover, Room},
    load::Measured,
    told::Word,
};

/// Event on the testbox, or message from a scheduler.
#[derive(Debug)]
pub enum Event {
    /// Time has passed.
    Wake,
    /// The load of the machine was measured. `None`: unknown.
    Measured(Option<Measured>),
    /// An earlier agent left these jobs.
    Adopted(Vec<Leftover>),
    /// A requested session got this name.
    Session(String),
    /// A request for work ended.
    Work {
        /// Number of the request.
        call: u64,
        /// Answer to the request.
        answer: Result<ConsumeAnswer, Failure>,
    },
    /// A heartbeat ended.
    Beat {
        /// Number of the heartbeat.
        call: u64,
        /// Answer to the heartbeat.
        answer: Result<HeartbeatAnswer, Failure>,
    },
    /// A report ended.
    Reported {
        /// Job of the report.
        key: Key,
        /// Number of the report.
        call: u64,
        /// Answer to the report.
        answer: Result<(), Failure>,
    },
    /// A job reached this stage.
    Stage {
        /// Key of the job.
        key: Key,
        /// Stage that it reached. [`Stage::Finish`] is the last event about it.
        stage: Stage,
        /// Other data for its report.
        more: Box<JobUpdate>,
    },
    /// Another request for a job was refused. The job is no longer this agent's.
    Refused {
        /// Key of the job.
        key: Key,
        /// Reason, for people.
        reason: String,
    },
    /// A job has used up its own time.
    AtLimit {
        /// Key of the job.
        key: Key,
    },
    /// All processes of a job have ended.
    Over {
        /// Key of the job.
        key: Key,
        /// True if this machine could not start it.
        faulty: bool,
    },
    /// Nothing more must be done for a job.
    Gone {
        /// Key of the job.
        key: Key,
    },
    /// The agent stops: it asks for no more work, and ends all jobs.
    Stop,
}

/// Action for the driver.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this request for work. Its answer is needed even after a newer request was sent.
    AskForWork {
        /// Number for [`Event::Work`].
        call: u64,
        /// Request to send.
        request: ConsumeRequest,
    },
    /// Give up all requests for work.
    HangUp,
    /// Send this heartbeat. It replaces an open one.
    Heartbeat {
        /// Number for [`Event::Beat`].
        call: u64,
        /// Heartbeat to send.
        request: HeartbeatRequest,
    },
    /// Send this report of a job. It replaces an open one.
    Report {
        /// Key of the job.
        key: Key,
        /// Number for [`Event::Reported`].
        call: u64,
        /// Report to send.
        update: JobUpdate,
    },
    /// Start this job.
    Start(Grant),
    /// Ignore this job, which exceeds the offer. It goes back by itself.
    TurnAway {
        /// The job.
        grant: Grant,
        /// Free room.
        room: Room,
    },
    /// Tell something to a started job.
    Tell {
        /// Key of the job.
        key: Key,
        /// Message for the job.
        word: Word,
    },
    /// Name a new session. The name contains its start time.
    NewSession,
    /// A scheduler answers, for the first time or again.
    Found,
    /// No scheduler answers any more.
    Lost(Failure),
    /// A scheduler refuses a request for work or a heartbeat.
    Refused(Failure),
    /// The first scheduler that answers refuses this agent.
    Unwelcome(Failure),
    /// The host became loaded, or stopped being loaded.
    Loaded(Option<HostLoad>),
    /// The machine could not start a job. It asks for no work during this time.
    Rest(Duration),
}
