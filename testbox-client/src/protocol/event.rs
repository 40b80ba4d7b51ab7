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

/// Something that happened on the testbox or came from a scheduler.
#[derive(Debug)]
pub enum Event {
    /// Time has passed.
    Wake,
    /// How loaded the machine is. `None`: that cannot be known.
    Measured(Option<Measured>),
    /// An earlier agent left these jobs.
    Adopted(Vec<Leftover>),
    /// The name of a session that was asked for.
    Session(String),
    /// What became of a request for work.
    Work {
        /// Which request.
        call: u64,
        /// The answer.
        answer: Result<ConsumeAnswer, Failure>,
    },
    /// What became of a heartbeat.
    Beat {
        /// Which one.
        call: u64,
        /// The answer.
        answer: Result<HeartbeatAnswer, Failure>,
    },
    /// What became of a report.
    Reported {
        /// Of which job.
        key: Key,
        /// Which report.
        call: u64,
        /// The answer.
        answer: Result<(), Failure>,
    },
    /// A job has come to this stage.
    Stage {
        /// The job.
        key: Key,
        /// How far it is. [`Stage::Finish`]: nothing more will be said of it.
        stage: Stage,
        /// What else its report says.
        more: Box<JobUpdate>,
    },
    /// Another request for a job was refused: the job is no longer this agent's.
    Refused {
        /// The job.
        key: Key,
        /// Why, for people.
        reason: String,
    },
    /// A job has used up its own time.
    AtLimit {
        /// The job.
        key: Key,
    },
    /// Nothing of a job runs any more.
    Over {
        /// The job.
        key: Key,
        /// This machine could not begin it.
        faulty: bool,
    },
    /// Nothing more is to be done about a job.
    Gone {
        /// The job.
        key: Key,
    },
    /// The agent stops: no more work is asked for, and all jobs are to end.
    Stop,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this request for work. Its answer is wanted even when a newer one is sent.
    AskForWork {
        /// Names it in [`Event::Work`].
        call: u64,
        /// The request.
        request: ConsumeRequest,
    },
    /// Give up all requests for work.
    HangUp,
    /// Send this heartbeat. It takes the place of one that is open.
    Heartbeat {
        /// Names it in [`Event::Beat`].
        call: u64,
        /// The heartbeat.
        request: HeartbeatRequest,
    },
    /// Send this report of a job. It takes the place of one that is open.
    Report {
        /// The job.
        key: Key,
        /// Names it in [`Event::Reported`].
        call: u64,
        /// The report.
        update: JobUpdate,
    },
    /// Begin this job.
    Start(Grant),
    /// This job was granted beyond what was offered: it goes back by itself.
    TurnAway {
        /// The job.
        grant: Grant,
        /// What was free.
        room: Room,
    },
    /// Tell a job that was begun.
    Tell {
        /// The job.
        key: Key,
        /// What.
        word: Word,
    },
    /// Name a new session, which says when it began.
    NewSession,
    /// A scheduler answers, for the first time or again.
    Found,
    /// No scheduler answers any more.
    Lost(Failure),
    /// A scheduler refuses a request for work or a heartbeat.
    Refused(Failure),
    /// The first scheduler that answers refuses this agent.
    Unwelcome(Failure),
    /// The host is loaded now, or no more.
    Loaded(Option<HostLoad>),
    /// The machine could not begin a job. It asks for no work for so long.
    Rest(Duration),
}
