//! The rights as they are meant: what each role is told by each route.

use fairlead_api::{Caller, Endpoint};

/// Sender of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Actor {
    Nobody,
    UnknownToken,
    /// The owner of the job, timer and files.
    Owner,
    OtherUser,
    /// A testbox account that names the host.
    Testbox,
    /// A testbox account that names other hosts.
    OtherTestbox,
    Admin,
    /// A sender without an account, with the token of the job's present attempt.
    Holder,
    /// A sender without an account, with the token of another job.
    OtherHolder,
}

pub(super) const ACTORS: [Actor; 9] = [
    Actor::Nobody,
    Actor::UnknownToken,
    Actor::Owner,
    Actor::OtherUser,
    Actor::Testbox,
    Actor::OtherTestbox,
    Actor::Admin,
    Actor::Holder,
    Actor::OtherHolder,
];

/// Expected answer: let through (with any result), or refused with this status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Through,
    Refused(u16),
}

/// Returns true if a route for accounts shows everybody's things.
fn is_everybodys(row: &Endpoint) -> bool {
    matches!(
        (row.methods[0], row.path),
        (
            "GET",
            "/scheduler/v1/jobs"
                | "/scheduler/v1/jobs/:id"
                | "/scheduler/v1/jobs/:id/explain"
                | "/scheduler/v1/jobs/:id/reuse"
                | "/scheduler/v1/queues"
                | "/scheduler/v1/hosts"
                | "/scheduler/v1/hosts/:hostname"
                | "/scheduler/v1/timers"
                | "/scheduler/v1/timers/:timer"
                | "/scheduler/v1/whoami"
                | "/r/:id"
                | "/scheduler/v1/tests"
                | "/scheduler/v1/webhooks"
                | "/scheduler/v1/usage"
                | "/scheduler/v1/overview"
                | "/scheduler/v1/live"
                | "/scheduler/v1/series"
                | "/scheduler/v1/audit"
                | "/scheduler/v1/pools"
                | "/scheduler/v1/pools/:name"
                | "/scheduler/v1/pools/:name/decisions"
                | "/scheduler/v1/scaling"
                | "/scheduler/v1/submits/:submit/events"
                | "/scheduler/v1/content"
        ) | (
            "POST",
            "/scheduler/v1/jobs/wait" | "/scheduler/v1/webhooks/test" | "/scheduler/v1/previews"
        )
    )
}

/// Returns true if a foreign thing is answered like an unknown one.
fn hides_others(row: &Endpoint) -> bool {
    row.path == "/scheduler/v1/webhooks/:webhook/redeliver"
        || row.path.contains(":group")
        || row.path.contains(":preview")
        || reads_content(row)
}

/// Returns true for routes of accounts and jobs that read stored content.
fn reads_content(row: &Endpoint) -> bool {
    matches!(
        (row.methods[0], row.path),
        (
            "GET",
            "/scheduler/v1/content/chunks/:digest" | "/scheduler/v1/content/manifests/:content"
        ) | ("POST", "/scheduler/v1/content/urls")
    )
}

/// Returns true if the holder of a job's token may use it.
pub(super) fn takes_jobs(row: &Endpoint) -> bool {
    matches!(
        row.caller,
        Caller::JobToken | Caller::JobTokenOrAdmin | Caller::AccountOrJob
    )
}

/// Returns the rights as they are meant.
pub(super) fn meant(row: &Endpoint, actor: Actor) -> Told {
    use Actor::{Admin, Holder, OtherHolder, OtherTestbox, OtherUser, Owner, Testbox};
    use Told::{Refused, Through};
    let is_testbox = matches!(actor, Testbox | OtherTestbox);
    let has_account = is_testbox || matches!(actor, Owner | OtherUser | Admin);
    match row.caller {
        Caller::Anybody => Through,
        Caller::Replica => Refused(403),
        Caller::JobToken | Caller::JobTokenOrAdmin => match actor {
            Holder => Through,
            OtherHolder => Refused(403),
            Admin if row.caller == Caller::JobTokenOrAdmin => Through,
            _ => Refused(401),
        },
        Caller::AccountOrJob => match actor {
            Owner | Admin | Holder => Through,
            OtherHolder => Refused(403),
            _ if !has_account => Refused(401),
            _ if is_testbox => Refused(403),
            _ if reads_content(row) => Refused(404),
            _ => Through,
        },
        _ if !has_account => Refused(401),
        Caller::Account | Caller::Signer | Caller::Submitter => match actor {
            Owner | Admin => Through,
            _ if row.path == "/scheduler/v1/whoami" => Through,
            _ if row.caller == Caller::Submitter => Refused(401),
            _ if is_testbox => Refused(403),
            _ if is_everybodys(row) => Through,
            _ if hides_others(row) => Refused(404),
            _ => Refused(403),
        },
        Caller::Testbox | Caller::Worker | Caller::Booter => match actor {
            Testbox => Through,
            Admin if row.caller == Caller::Testbox => Through,
            _ => Refused(403),
        },
        Caller::Admin => match actor {
            Admin => Through,
            _ => Refused(403),
        },
    }
}

pub(super) fn told(row: &Endpoint, status: u16) -> Told {
    match status {
        401 | 403 => Told::Refused(status),
        404 if hides_others(row) => Told::Refused(status),
        _ => Told::Through,
    }
}
