//! The code, the hint and the status of each refusal. The message is the refusal's own text.

mod content;
mod pools;

use std::borrow::Cow;

use fairlead_api::{
    ErrorBody,
    ErrorCode::{
        self, BadBody, BadField, BadName, BadQuery, Closed, Conflict, DataFull, Forbidden,
        HostConflict, Internal, NotFound, Quota, SessionOver, TooLarge, TooMany, Unauthorized,
        Unavailable, Unknown, WrongStage,
    },
};
use fairlead_job::{Fault, Stage};

use content::{of_content, of_content_field};

use crate::base::errors::{
    FileError, HostError, JobError, PeerError, PeopleError, Refusal, RequestError, StoreFault,
    SubmitError, TimerError,
};

/// A code, and what to do about it.
type Told = (ErrorCode, Cow<'static, str>);

impl Refusal {
    /// The body of the answer.
    pub(crate) fn body(&self) -> ErrorBody {
        let (code, hint) = match self {
            Self::Store(fault) => of_store(*fault),
            Self::NoKey(_) => (
                Unavailable,
                "an operator can import the key from a backup: fairlead key import FILE".into(),
            ),
            Self::Job(error) => of_job(error),
            Self::File(error) => of_file(error),
            Self::Content(fault) => of_content(fault),
            Self::Submit(error) => of_submit(error),
            Self::Timer(error) => of_timer(error),
            Self::People(error) => of_people(error),
            Self::Pool(error) => pools::of_pool(error),
            Self::Host(error) => of_host(error),
            Self::Peer(error) => of_peer(error),
            Self::Request(error) => of_request(error),
            Self::Field(error) => {
                let code = match error.fault {
                    Fault::Value => BadField,
                    Fault::Name => BadName,
                    Fault::Body => BadBody,
                    Fault::Size => TooLarge,
                };
                (code, error.hint.clone().into())
            }
            Self::Bug => (Internal, "report it with the replica's log".into()),
            Self::Stopping => (
                Unavailable,
                "ask again; another replica or its successor answers".into(),
            ),
            Self::ClockOff { .. } => (
                Unavailable,
                "ask another replica; its operator corrects the clock: chronyc tracking, timedatectl"
                    .into(),
            ),
            Self::Said(body) => return body.clone(),
        };
        ErrorBody::new(code, self.to_string(), hint)
    }

    /// The status of the answer: its code's, but where compass-ci's differs.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Job(JobError::NotWaiting { .. } | JobError::NotRunning { .. }) => 403,
            _ => self.body().code.status(),
        }
    }
}

fn of_store(fault: StoreFault) -> Told {
    let (code, hint) = match fault {
        StoreFault::Unreadable => (
            Unavailable,
            "nothing was changed; try again in a few seconds",
        ),
        StoreFault::RefusedRequest => (Internal, "the replica's log has the reason"),
        StoreFault::Missing => (NotFound, "it may have been deleted"),
        StoreFault::Conflict => (Conflict, "read it again, then repeat"),
        StoreFault::RefusedDocument => (BadField, "the replica's log names the field"),
        StoreFault::NotTaken => (Unavailable, "try again in a few seconds"),
        StoreFault::Unknown => (Unknown, "ask for the state before you repeat it"),
    };
    (code, hint.into())
}

fn of_edit(error: &JobError) -> (ErrorCode, &'static str) {
    use JobError as E;
    match error {
        E::NotChangeable { stage, .. } if stage.is_held() => (
            WrongStage,
            "stop it with terminate, and run it again: fairlead rerun ID -s KEY=VALUE",
        ),
        E::NotChangeable { .. } => (WrongStage, "run it again: fairlead rerun ID -s KEY=VALUE"),
        E::ShardsWait(_) => (WrongStage, "stop it with terminate, and run it again"),
        E::NotEditable(_) => (
            BadField,
            "queue, priority, need_memory, need_cpus, timeout, tags and deadline can",
        ),
        E::NoEdit => (BadField, "hold: true or false, or new values in set"),
        _ => (WrongStage, "it has ended"),
    }
}

fn of_job(error: &JobError) -> Told {
    use JobError as E;
    let (code, hint) = match error {
        E::Unknown(_) => (NotFound, "list jobs with GET /scheduler/v1/jobs"),
        E::Contended(_) => (Unavailable, "try again in a few seconds"),
        E::LeaseNotEnded(_) => (Unavailable, "ask again"),
        E::NotOwner { .. } => (Forbidden, "its owner or an admin can do this"),
        E::NotWaiting { stage, .. } if stage.is_held() => {
            (WrongStage, "stop a running job with terminate")
        }
        E::NotRunning { stage, .. } if *stage == Stage::Submit => {
            (WrongStage, "cancel a waiting job")
        }
        E::NotWaiting { .. } | E::NotRunning { .. } => (WrongStage, "it has ended"),
        E::IsShard { .. } => (WrongStage, "name its parent"),
        E::NotChangeable { .. } | E::ShardsWait(_) | E::NotEditable(_) | E::NoEdit => {
            of_edit(error)
        }
        E::IsNode(_) => (WrongStage, "submit the cluster again"),
        E::NotOver { .. } => (WrongStage, "wait for its end: fairlead wait ID"),
        E::NothingFailed(_) | E::NoShardFailed(_) | E::NoneOfGroupFailed(_) => {
            (WrongStage, "run all of it again: omit failed")
        }
        E::EmptyGroup(_) => (WrongStage, "submit its jobs into a new group"),
        E::NoPlan(_) => (NotFound, "run all of it again: omit failed"),
        E::NoToken => (
            Unauthorized,
            "send the job_token of the grant; a testbox account alone reports nothing of a job",
        ),
        E::WrongToken(_) => (
            Forbidden,
            "use the job_token of the grant; stop the job if it is no longer this host's",
        ),
        E::ClaimOver(_) => (Conflict, "stop the job; it is no longer this host's"),
        E::AttemptOver { .. } => (
            Conflict,
            "stop it; its results are kept under its own attempt",
        ),
        E::BootOver => (Conflict, "ask for a new job"),
        E::BadReport { .. } => (BadQuery, "see docs/api.md, update"),
        E::NoTestbox(_) => (
            WrongStage,
            "the job was requeued; another testbox gets its next attempt",
        ),
        E::NotForward { .. } => (WrongStage, "stages only move forward"),
        E::PeersMissing { .. } => (
            WrongStage,
            "report wait_peer, and go on when jobs/ID/wait_peer says so",
        ),
        E::Ended { .. } => (Closed, "only its data readiness can still change"),
        E::ReadinessBack { .. } => (WrongStage, "it only moves forward"),
        E::NoKey(_) => (WrongStage, "name a job with 'reuse', or one of its shards"),
        E::NoOutputs(_) => (BadField, "put them with the token of the job, then report"),
        E::NoPeers(_) => (WrongStage, "it runs as soon as it likes"),
        E::EndedWaiting { .. } => (Closed, "stop it"),
        E::PutBack { .. } => (Conflict, "stop it; it begins anew with all its peers"),
        E::NotAtBarrier { .. } => (WrongStage, "report wait_peer first"),
    };
    (code, hint.into())
}

fn of_file(error: &FileError) -> Told {
    use FileError as E;
    let (code, hint) = match error {
        E::BadPath { .. } => (BadName, "a relative path below the job's result_root"),
        E::Outside(_) => (Forbidden, "upload below the result_root of the grant"),
        E::Missing => (NotFound, "list the folder above it"),
        E::Exists => (Conflict, "a result file is written once"),
        E::WrongKind | E::BadName => (BadName, "choose another name"),
        E::DiskFull => (
            DataFull,
            "an operator makes room; a testbox soon ends its job without this file",
        ),
        E::Unusable => (Internal, "the replica's log has the reason"),
        E::Unreachable => (Unavailable, "try again in a few seconds"),
        E::Damaged => (
            Internal,
            "an admin can find what is damaged: fairlead content check",
        ),
        E::TooLarge(_) => (TooLarge, "split or compress it"),
        E::OverQuota(..) => (
            Quota,
            "an admin sets it: fairlead account add NAME --results-mb N",
        ),
        E::TooManyBytes(_) => (
            Quota,
            "leave less in RESULT_ROOT; smaller files may still fit",
        ),
        E::TooManyFiles(_) => (Quota, "put many small files into an archive"),
        E::Gap { .. } => (Conflict, "append at its size"),
        E::LogTooLarge { .. } => (TooLarge, "write large output into a result file"),
        E::Sealed { .. } => (Closed, "nothing more is taken"),
    };
    (code, hint.into())
}

fn of_submit(error: &SubmitError) -> Told {
    use SubmitError as E;
    let (code, hint) = match error {
        E::NoWrites => (
            Unavailable,
            "nothing was submitted; submit again in a few seconds; GET /scheduler/v1/health says what is wrong",
        ),
        E::NoAccount => (
            BadField,
            "set my_account in the job, or the account in the configuration: fairlead config",
        ),
        E::ForOthers { .. } | E::OthersSubmit(_) => (Forbidden, "use your own, or ask an admin"),
        E::NotVip(_) => (Forbidden, "ask an admin: fairlead account add NAME --vip"),
        E::OthersQueue { .. } => (
            Forbidden,
            "omit queue, or ask an admin: fairlead queues set NAME --users LIST",
        ),
        E::SeveralNodes { .. } => (
            BadField,
            "use cs-localhost to run all roles on one machine, or omit the cluster",
        ),
        E::UnknownParent(_) => (BadField, "submit that job first"),
        E::NoHost(_) => (
            BadField,
            "see the offers of hosts with GET hosts, or submit without strict to wait for one",
        ),
        E::UnknownInput(..) | E::SeveralOfName { .. } | E::Measures(_) => {
            (BadField, of_content_field(error))
        }
        E::NoReceiver { .. } => (
            Forbidden,
            "the operator allows receivers with: fairlead serve --webhooks-to HOST",
        ),
        E::NoDevice(_) => (
            BadField,
            "see the devices of hosts: fairlead hosts NAME; or register the host that has it first",
        ),
        E::OnlyLabel(_) => (
            BadField,
            "omit queue, use one of: fairlead queues, or submit without strict",
        ),
        E::Misspelt(_) => (
            BadField,
            "correct it; without strict it is a parameter of the job",
        ),
        E::SeveralKeys => (
            BadField,
            "use one key per submit, or send the jobs in several submits",
        ),
        E::KeyUsed => (Conflict, "use a new key for each submit"),
        E::RefusedBefore => (Conflict, "use a new key to submit it"),
        E::TooManyAlike { .. }
        | E::TooManyShards { .. }
        | E::TooManyWait { .. }
        | E::HoursSpent(_) => (Quota, over_quota(error)),
        E::GroupClosed { .. } => (Conflict, "open another group: use a new name"),
        E::GroupFull { .. } => (Quota, "open another group for the rest"),
    };
    (code, hint.into())
}

/// What helps whoever is over a limit.
fn over_quota(error: &SubmitError) -> &'static str {
    use SubmitError as E;
    match error {
        E::TooManyAlike { .. } => {
            "use their results, or submit with a larger max_run or without it"
        }
        E::TooManyShards { .. } => {
            "submit again when some of them have ended, use fewer shards, or ask an admin for a higher limit"
        }
        E::HoursSpent(_) => {
            "submit again later, when some of these hours are over a day old, or ask an admin for a higher limit"
        }
        _ => {
            "submit again when some of these jobs have started or are cancelled, or ask an admin for a higher limit"
        }
    }
}

fn of_timer(error: &TimerError) -> Told {
    use TimerError as E;
    let (code, hint) = match error {
        E::NoName => (BadField, "give the timer a name: timer: nightly"),
        E::Exists => (
            Conflict,
            "change it with: fairlead timers update NAME, or use another name",
        ),
        E::Unknown { .. } => (NotFound, "list them with: fairlead timers list"),
        E::NotOwner { .. } => (Forbidden, "its owner or an admin can do this"),
        E::TooOften { .. } => (
            BadField,
            "use a longer interval, or ask the operator for a lower timer_period_min_s",
        ),
        E::TooMany { .. } => (TooMany, "delete some: fairlead timers delete NAME"),
        E::NoChange => (
            BadField,
            "set every, cron, timezone, overlap or missed, or send a whole job",
        ),
        E::RunDue(_) => (
            Unavailable,
            "nothing was changed; try again in a few seconds",
        ),
        E::NoSubmitter(_) => (Forbidden, "submit the timer again as another account"),
    };
    (code, hint.into())
}

fn of_people(error: &PeopleError) -> Told {
    use PeopleError as E;
    let (code, hint) = match error {
        E::TokenOver(account) => {
            let hint = format!(
                "a newer one replaced it, or it expired; an admin makes one: fairlead account add {account} --new-token"
            );
            return (Unauthorized, hint.into());
        }
        E::NoToken | E::UnknownToken | E::OthersToken => (
            Unauthorized,
            "send 'Authorization: Bearer TOKEN' with a token from: fairlead account add NAME",
        ),
        E::NewRole(_) => (
            Forbidden,
            "a newer version set it; upgrade all replicas, or ask an admin for another role",
        ),
        E::NotAdmin(_) => (Forbidden, "ask an admin, or use the token of an admin"),
        E::NotTestbox(_) => (
            Forbidden,
            "create one with: fairlead account add NAME --role testbox --hosts 'PATTERN'",
        ),
        E::NotItsHost { account, .. } => {
            let hint = format!(
                "an admin names all its hosts: fairlead account add {account} --hosts 'PATTERN,PATTERN'"
            );
            return (Forbidden, hint.into());
        }
        E::OnlyTestbox(_) => (Forbidden, "use the token of a user"),
        E::NotItsGroup { account, .. } => {
            let hint = format!(
                "an admin names all its groups: fairlead account add {account} --groups 'PATTERN,PATTERN'"
            );
            return (Forbidden, hint.into());
        }
        E::OpenLab(_) => (
            Forbidden,
            "start with --auth; make the first admin in the store: fairlead account add NAME --role admin --data DIR",
        ),
        E::DefaultPolicy(_) => (NotFound, "only queues with a policy can be deleted"),
        E::UnknownQueue(_) => (NotFound, "list them with GET queues"),
        E::UnknownAccount(_) => (NotFound, "list them with GET accounts"),
        E::MayNotDrop(_) => (
            Conflict,
            "add that right to the role of the login, then set it again",
        ),
        E::OwnAccount(_) => (Conflict, "another admin can delete it"),
        E::OthersNotify { .. } => (Forbidden, "its owner or an admin can do this"),
        E::NoNotify(_) => (NotFound, "set one with: fairlead account notify URL"),
        E::BadReuse(_) => (
            BadField,
            "write for example {suites: [{suite: 'ltp*', within: 14d}], performance: ['iozone*']}",
        ),
        E::BadRule(error) => return (BadField, error.hint.clone().into()),
        other => (BadField, of_setting(other)),
    };
    (code, hint.into())
}

/// How an account or a queue can be set instead.
fn of_setting(error: &PeopleError) -> &'static str {
    use PeopleError as E;
    match error {
        E::UnknownRole(_) => "one of: admin, user, testbox",
        E::NamesNoHosts(_) => "only testbox accounts act for hosts: --role testbox",
        E::HostPatterns { .. } => "a pattern such as rack1-* stands for many hosts",
        E::BadHostPattern(_) => {
            "1 to 128 bytes of letters, digits and ._-@+~:, with * for any text and ? for one character"
        }
        E::NoNewToken(_) => "make one: new_token: true, or --new-token",
        E::TokenTime { .. } => "seconds; omit it for the default",
        E::TooManyMonths { .. } => "0 keeps jobs for ever; null leaves it to --keep-months",
        E::LimitTooHigh { .. } => "omit it for no limit",
        E::LimitOfAccounts { .. } => "set it for an account: fairlead account set NAME",
        E::NoSoftLimit { .. } => "set a hard limit: N, or none",
        E::SoftOverHard { .. } => {
            "jobs over the soft limit go behind others; jobs at the hard limit wait"
        }
        E::PriorityTooHigh { .. } => "0 to 9; 9 is served first, 3 is the default",
        E::BadWeight { .. } => "to stop a queue set paused: true",
        E::BackgroundTooHigh { .. } => {
            "thousandths of all dispatches, 50 for one of twenty; 0 for none"
        }
        E::NoUsers | E::TooManyUsers { .. } => {
            "name accounts, or say 'all' for every account, 'own' for the one of its name"
        }
        // The last of them, and what is no setting.
        _ => "set priority, weight, paused, background_permille, users or limits",
    }
}

fn of_host(error: &HostError) -> Told {
    use HostError as E;
    let (code, hint) = match error {
        E::Unknown(_) => (
            NotFound,
            "list them with GET hosts; one that never asked for work is registered with POST hosts/:hostname",
        ),
        E::TooManyOfAccount { .. } => (Quota, "forget gone hosts, or add another account"),
        E::SaysTooMuch { .. } => (TooLarge, "say fewer; each text counts 32 bytes more"),
        E::TooMany(_) => (TooMany, "forget gone hosts: fairlead hosts forget NAME"),
        E::NotGone { .. } => (WrongStage, "drain it, and stop its agent first"),
        E::MacTaken(_) => (
            Forbidden,
            "an admin can register it, or take it away from the other host",
        ),
        E::BadRegistration { .. } => (BadField, "see the operator's guide, hosts"),
        E::UnknownKind(_) | E::NoKinds => (BadField, "hw alone, or vm and/or dc"),
        E::NotClosed(_) | E::NotReserved(_) => (NotFound, "list hosts with GET hosts"),
        E::ReservedFor { max, .. } => {
            let hint = format!("give 1 to {max} accounts whose jobs the host gets");
            return (BadField, hint.into());
        }
        E::BadTime(_) => (
            BadField,
            "write +2h for two hours from now, or a time: 2026-11-22T05:00:00+08:00; without a zone it is UTC",
        ),
        E::BadUntil { days_max, .. } => {
            let hint = format!("use a time in the future, at most {days_max} days ahead");
            return (BadField, hint.into());
        }
        E::BadRequest { .. } | E::BadWord { .. } => (BadField, "see docs/api.md, consume"),
        E::TooManyHeld { .. } => (BadField, "one host cannot have so many"),
        E::NoAnswer | E::DispatcherStopping => (Unavailable, "ask again"),
        E::SessionOver(_) => (
            SessionOver,
            "begin a new session; if this goes on, two agents have the same name",
        ),
        E::Late { .. } => (Conflict, "ask again with a greater number"),
        E::TurnLost => (
            Conflict,
            "its answer has the jobs; ask again with a greater number",
        ),
        E::Retired(_) => (
            Closed,
            "stop its agent; a pool asks its provider for new machines, fairlead scale log shows why",
        ),
        E::OtherAgent(_) => (
            HostConflict,
            "start one of them with another --host; if the other agent is gone, this one takes over after two of its heartbeats",
        ),
        E::BadBootType(_) => (BadQuery, "one of: ipxe, grub, native"),
        E::NoName => (
            NotFound,
            "register it: POST /scheduler/v1/hosts/NAME {\"mac_addr\": [...]}",
        ),
        E::BadMemory(_) => (BadQuery, "for example 256g"),
        E::NotPacked => (Internal, "the replica's log has the reason"),
    };
    (code, hint.into())
}

fn of_peer(error: &PeerError) -> Told {
    let (code, hint) = match error {
        PeerError::Stranger => (Forbidden, "nothing else needs to call this"),
        PeerError::BadMessage(_) => (
            BadBody,
            "replicas of versions next to each other understand each other",
        ),
    };
    (code, hint.into())
}

fn of_request(error: &RequestError) -> Told {
    use RequestError as E;
    let (code, hint) = match error {
        E::QueryTooLong { .. } => (TooLarge, "send long lists in the body"),
        E::NotInRange { default, .. } => {
            let hint = format!("a whole number; {default} when not said");
            return (BadQuery, hint.into());
        }
        E::NoSwitch { .. } => (BadQuery, "true or false; false when not said"),
        E::NotUtf8 => (BadName, "percent-encode UTF-8"),
        E::Nul => (BadName, "leave it out"),
    };
    (code, hint.into())
}

#[cfg(test)]
mod tests;
