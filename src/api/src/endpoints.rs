//! The table of endpoints: one row a route, for documentation, for tests and for `version`.

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// Anybody.
    Anybody,
    /// An account, for what is its own; admins for all.
    Account,
    /// A testbox.
    Testbox,
    /// An admin.
    Admin,
    /// Whoever holds the job's token.
    JobToken,
    /// Another replica of the lab.
    Replica,
}

/// One route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// HTTP method.
    pub method: &'static str,
    /// Path; `:x` is one segment, `*x` the rest.
    pub path: &'static str,
    /// Who may call when accounts are checked.
    pub caller: Caller,
    /// What it does.
    pub does: &'static str,
}

const fn row(
    method: &'static str,
    path: &'static str,
    caller: Caller,
    does: &'static str,
) -> Endpoint {
    Endpoint {
        method,
        path,
        caller,
        does,
    }
}

/// Every route, in the order of the documentation.
pub const ENDPOINTS: &[Endpoint] = &[
    row(
        "GET",
        "/",
        Caller::Anybody,
        "says that the scheduler is alive",
    ),
    row(
        "GET",
        "/scheduler/v1/health",
        Caller::Anybody,
        "says that the scheduler is alive, and how its store is",
    ),
    row(
        "GET",
        "/scheduler/v1/version",
        Caller::Anybody,
        "version and capabilities",
    ),
    row(
        "GET",
        "/metrics",
        Caller::Anybody,
        "what this replica counts, for Prometheus",
    ),
    row(
        "POST",
        "/scheduler/v1/jobs/submit",
        Caller::Account,
        "submits one job or a list, JSON or YAML",
    ),
    row(
        "POST",
        "/submit_job",
        Caller::Account,
        "old name of jobs/submit",
    ),
    row(
        "GET",
        "/scheduler/v1/jobs",
        Caller::Account,
        "lists jobs by filters, paged",
    ),
    row(
        "GET",
        "/scheduler/v1/jobs/dispatch",
        Caller::Testbox,
        "long poll for a hw testbox: its boot script or JSON",
    ),
    row(
        "GET",
        "/boot.:boot_type/:parameter/:value",
        Caller::Testbox,
        "old name of jobs/dispatch",
    ),
    row(
        "POST",
        "/scheduler/v1/jobs/wait",
        Caller::Account,
        "long poll until jobs reach what is waited for",
    ),
    row(
        "POST",
        "/scheduler/v1/jobs/cancel",
        Caller::Account,
        "cancels waiting jobs by ids or filters, one report each",
    ),
    row(
        "GET",
        "/scheduler/v1/jobs/:id",
        Caller::Account,
        "one job, flat",
    ),
    row(
        "GET",
        "/scheduler/v1/jobs/:id/explain",
        Caller::Account,
        "why the job waits, or where it is",
    ),
    row(
        "GET",
        "/scheduler/v1/jobs/:id/log",
        Caller::Account,
        "its output; follow=true streams to the end",
    ),
    row(
        "POST",
        "/scheduler/v1/jobs/:id/log",
        Caller::JobToken,
        "appends to its output at an offset",
    ),
    row(
        "POST",
        "/scheduler/v1/jobs/:id/update",
        Caller::JobToken,
        "reports stage, health, data readiness, milestones; renews",
    ),
    row(
        "POST",
        "/scheduler/v1/jobs/:id/wait_peer",
        Caller::JobToken,
        "long poll until all nodes of the job's cluster are there; their addresses",
    ),
    row(
        "GET",
        "/~lkp/cgi-bin/:report",
        Caller::JobToken,
        "old names of update (lkp-jobfile-append-var, report-job-step, set-job-stage), job_id in the query",
    ),
    row(
        "POST",
        "/scheduler/v1/jobs/:id/cancel",
        Caller::Account,
        "cancels a waiting job",
    ),
    row(
        "POST",
        "/scheduler/v1/jobs/:id/terminate",
        Caller::Account,
        "stops a running job",
    ),
    row(
        "POST",
        "/scheduler/v1/timers",
        Caller::Account,
        "submits a timer: one job with timer, its name, and every or cron",
    ),
    row(
        "GET",
        "/scheduler/v1/timers",
        Caller::Account,
        "lists timers with next and last runs, paged",
    ),
    row(
        "GET",
        "/scheduler/v1/timers/:timer",
        Caller::Account,
        "one timer, with its job",
    ),
    row(
        "POST",
        "/scheduler/v1/timers/:timer",
        Caller::Account,
        "changes its schedule, or replaces its job",
    ),
    row(
        "POST",
        "/scheduler/v1/timers/:timer/pause",
        Caller::Account,
        "lets no run begin until it is resumed",
    ),
    row(
        "POST",
        "/scheduler/v1/timers/:timer/resume",
        Caller::Account,
        "goes on with the next time",
    ),
    row(
        "DELETE",
        "/scheduler/v1/timers/:timer",
        Caller::Account,
        "deletes a timer; its runs go on",
    ),
    row(
        "GET",
        "/scheduler/v1/queues",
        Caller::Account,
        "queues with policy, waiting, running and share",
    ),
    row(
        "POST",
        "/scheduler/v1/queues/:name",
        Caller::Admin,
        "sets weight, priority, paused, users",
    ),
    row(
        "DELETE",
        "/scheduler/v1/queues/:name",
        Caller::Admin,
        "back to the default policy",
    ),
    row(
        "GET",
        "/scheduler/v1/hosts",
        Caller::Account,
        "hosts, what they offer and run",
    ),
    row(
        "GET",
        "/scheduler/v1/hosts/:hostname",
        Caller::Account,
        "one host, and why it is idle",
    ),
    row(
        "POST",
        "/scheduler/v1/hosts/:hostname",
        Caller::Testbox,
        "registers a host or updates what is known of it",
    ),
    row(
        "POST",
        "/scheduler/v1/hosts/:hostname/cordon",
        Caller::Admin,
        "gives a host no new job; with drain: true to empty it",
    ),
    row(
        "POST",
        "/scheduler/v1/hosts/:hostname/uncordon",
        Caller::Admin,
        "gives a closed or suspect host jobs again",
    ),
    row(
        "POST",
        "/scheduler/v1/hosts/:hostname/reserve",
        Caller::Admin,
        "keeps a host for the jobs of some accounts until a time",
    ),
    row(
        "POST",
        "/scheduler/v1/hosts/:hostname/unreserve",
        Caller::Admin,
        "gives a reserved host back to everybody",
    ),
    row(
        "POST",
        "/scheduler/v1/testboxes/:host/consume",
        Caller::Testbox,
        "long poll of an agent for work",
    ),
    row(
        "POST",
        "/scheduler/v1/testboxes/:host/heartbeat",
        Caller::Testbox,
        "renews the leases of an agent's session",
    ),
    row(
        "GET",
        "/scheduler/v1/whoami",
        Caller::Account,
        "the account that asks; no name: an open lab takes the name that a job says",
    ),
    row("GET", "/scheduler/v1/accounts", Caller::Admin, "accounts"),
    row(
        "POST",
        "/scheduler/v1/accounts/:my_account",
        Caller::Admin,
        "creates or changes an account, answers its token once",
    ),
    row(
        "POST",
        "/scheduler/v1/peers/hints",
        Caller::Replica,
        "what another replica of the lab just wrote",
    ),
    row(
        "GET",
        "/srv/scheduler/pending-jobs/:id/job.cgz",
        Caller::JobToken,
        "the job as an initrd for hw testboxes",
    ),
    row(
        "GET",
        "/srv/boot/*path",
        Caller::Anybody,
        "kernels and initrds that the operator put into the data folder",
    ),
    row(
        "POST",
        "/result/*path",
        Caller::JobToken,
        "uploads a result file",
    ),
    row(
        "PUT",
        "/result/*path",
        Caller::JobToken,
        "uploads a result file",
    ),
    row(
        "GET",
        "/result/*path",
        Caller::Account,
        "downloads a result file or lists a folder",
    ),
];
