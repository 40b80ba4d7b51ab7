//! The table of endpoints. The server's router, the client's paths, the rights tests and docs/api-reference.md are made
//! from it.
//!
//! A path is a slice pattern: a word stands for itself, a name is one segment, `name @ ..` is the rest. The first pattern
//! that fits a request is its path, so words come before names.

use crate::{
    parameters::{
        AUDIT, CONTENT, LIST, NONE, ONE_CONTENT, ONE_TIMER, PAGE,
        Parameters::{self, Any, Known},
        SERIES, SUBMIT, UPLOAD,
    },
    route_macros::{path_text, routes},
};

/// Who may call, and how the router knows the caller before the handler runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// Anybody.
    Anybody,
    /// An account, for what is its own; admins for all.
    Account,
    /// The same, which may also name itself by `my_account` and `my_token` of a JSON object in the body.
    Signer,
    /// The same, which may also name itself in the jobs of the body.
    Submitter,
    /// A testbox, for the host in the path; or an admin.
    Testbox,
    /// A testbox, for the host in the path: the answer may hold secrets of jobs, which no admin reads.
    Worker,
    /// A testbox without an agent, by its account, or by the token of the script that it booted.
    Booter,
    /// An admin.
    Admin,
    /// Whoever holds the job's token. The handler reads the job to judge it.
    JobToken,
    /// Whoever holds the job's token, or an admin.
    JobTokenOrAdmin,
    /// An account, for what is its own; or whoever holds the token of a job, for what is its account's.
    AccountOrJob,
    /// Another replica of the lab.
    Replica,
}

impl Caller {
    /// Whether it is an account alone, whatever its role.
    pub const fn is_account(self) -> bool {
        matches!(self, Self::Account | Self::Signer | Self::Submitter)
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// HTTP methods that do the same; the client uses the first.
    pub methods: &'static [&'static str],
    /// Path; `:x` is one segment, `*x` the rest.
    pub path: &'static str,
    /// Who may call when accounts are checked.
    pub caller: Caller,
    /// What it reads from the query.
    pub parameters: Parameters,
    /// What it does.
    pub does: &'static str,
}

/// A segment of a path: the id of a job.
pub type JobId<'a> = &'a str;
/// The name of a host.
pub type Host<'a> = &'a str;
/// The name of a timer.
pub type Timer<'a> = &'a str;
/// The name of a queue.
pub type Queue<'a> = &'a str;
/// The name of an account.
pub type Account<'a> = &'a str;
/// A word of compass-ci's.
pub type Word<'a> = &'a str;
/// The last segments of a path.
pub type Rest<'a> = &'a [&'a str];

/// What a name in a path stands for, as segments.
trait Segments<'a> {
    fn segments(&self) -> &[&'a str];
}

impl<'a> Segments<'a> for &'a str {
    fn segments(&self) -> &[&'a str] {
        std::slice::from_ref(self)
    }
}

impl<'a> Segments<'a> for Rest<'a> {
    fn segments(&self) -> &[&'a str] {
        self
    }
}

routes! {
    [] => {
        "GET" | "HEAD" Alive, Anybody, NONE, NOTHING => HEALTH, "says that the scheduler is alive";
    }
    ["scheduler", "v1", "health"] => {
        "GET" | "HEAD" Health, Anybody, NONE, NOTHING => HEALTH, "says that the scheduler is alive, and how its store is";
    }
    ["scheduler", "v1", "version"] => {
        "GET" Version, Anybody, NONE, NOTHING => json::<Version>(), "version and capabilities";
    }
    ["openapi.json"] => {
        "GET" OpenApi, Anybody, NONE, NOTHING => OPENAPI, "this interface as OpenAPI 3.1";
    }
    ["metrics"] => {
        "GET" Metrics, Anybody, NONE, NOTHING => TEXT, "what this replica counts, for Prometheus";
    }
    ["scheduler", "v1", "jobs", "submit"] => {
        "POST" Submit, Submitter, SUBMIT, JOBS => json::<Vec<SubmitItem>>(), "submits one job or a list, JSON or YAML";
    }
    ["submit_job"] => {
        "POST" OldSubmit, Submitter, SUBMIT, JOBS => json::<Vec<SubmitItem>>(), "old name of jobs/submit";
    }
    ["scheduler", "v1", "jobs"] => {
        "GET" Jobs, Account, LIST, NOTHING => json::<JobList>(), "lists jobs by filters, paged";
    }
    ["scheduler", "v1", "jobs", "dispatch"] => {
        "GET" Dispatch, Booter, Any, NOTHING => BOOT_SCRIPT, "long poll for a hw testbox: its boot script or JSON";
    }
    [boot_type, parameter, value] if boot_type.starts_with("boot.") => {
        "GET" OldDispatch { boot_type: Word, parameter: Word, value: Word }, Booter, Any, NOTHING => BOOT_SCRIPT, "old name of jobs/dispatch";
    }
    ["scheduler", "v1", "jobs", "wait"] => {
        "POST" Wait, Signer, NONE, json::<WaitRequest>() => json::<WaitAnswer>(), "long poll until jobs reach what is waited for";
    }
    ["scheduler", "v1", "jobs", "cancel"] => {
        "POST" CancelMany, Signer, NONE, json::<CancelRequest>() => json::<CancelReport>(), "cancels waiting jobs by ids or filters, one report each";
    }
    ["scheduler", "v1", "jobs", "change"] => {
        "POST" ChangeJobs, Signer, NONE, json::<ChangeRequest>() => json::<CancelReport>(),
            "holds, releases or edits waiting jobs, one report each";
    }
    ["scheduler", "v1", "jobs", "rerun"] => {
        "POST" RerunMany, Signer, NONE, json::<RerunRequest>() => json::<Vec<SubmitItem>>(),
            "submits jobs again as one submit, with new values for some fields";
    }
    ["scheduler", "v1", "jobs", id] => {
        "GET" Job { id: JobId }, Account, Known(&["fields"]), NOTHING => json::<JobView>(), "one job, flat";
    }
    ["scheduler", "v1", "jobs", id, "explain"] => {
        "GET" Explain { id: JobId }, Account, NONE, NOTHING => json::<Explanation>(), "why the job waits, or where it is";
    }
    ["scheduler", "v1", "jobs", id, "reuse"] => {
        "GET" ExplainReuse { id: JobId }, Account, NONE, NOTHING => json::<ReuseExplanation>(),
            "whether the job has the result of another one, and which part of its key differs from the nearest earlier job";
        "DELETE" ForgetReuse { id: JobId }, Account, NONE, NOTHING => json::<ReuseForgotten>(),
            "forgets the results of the job's key, also that it is flaky: the next job runs";
    }
    ["r", id] => {
        "GET" Answer { id: JobId }, Account, Known(&["format"]), NOTHING => PAGE_OR_ANSWER,
            "the answer of a job and of each of its shards: a page, or JSON if that is accepted or format=json";
    }
    ["scheduler", "v1", "jobs", id, "log"] => {
        "GET" ReadLog { id: JobId }, Account, Known(&["attempt", "offset", "follow"]), NOTHING => TEXT,
            "its output; follow=true streams to the end";
        "POST" AppendLog { id: JobId }, JobTokenOrAdmin, Known(&["attempt", "offset", "job_token"]), BYTES => json::<Written>(),
            "appends to its output at an offset";
    }
    ["scheduler", "v1", "jobs", id, "update"] => {
        "POST" Update { id: JobId }, JobTokenOrAdmin, Any, NOTHING => TEXT,
            "reports stage, health, data readiness, milestones; renews";
    }
    ["scheduler", "v1", "jobs", id, "wait_peer"] => {
        "POST" WaitPeer { id: JobId }, JobToken, Known(&["attempt", "job_token"]), NOTHING => json::<PeersAnswer>(),
            "long poll until all nodes of the job's cluster are there; their addresses";
    }
    ["~lkp", "cgi-bin", "lkp-post-run"] => {
        "GET" | "POST" OldPostRun, Anybody, Any, NOTHING => TEXT, "does nothing; compass-ci's jobs call it at their end";
    }
    ["~lkp", "cgi-bin", "lkp-wtmp"] => {
        "GET" | "POST" OldWtmp, Anybody, Any, NOTHING => TEXT, "does nothing; compass-ci's jobs call it at a boot";
    }
    ["~lkp", "cgi-bin", report] if is_report(report) => {
        "GET" | "POST" OldReport { report: Word }, JobTokenOrAdmin, Any, NOTHING => TEXT,
            "old names of update (lkp-jobfile-append-var, report-job-step, set-job-stage), job_id in the query";
    }
    ["scheduler", "v1", "jobs", id, "cancel"] => {
        "POST" Cancel { id: JobId }, Signer, NONE, json::<Signed>() => TEXT, "cancels a waiting job";
    }
    ["scheduler", "v1", "jobs", id, "rerun"] => {
        "POST" Rerun { id: JobId }, Signer, NONE, json::<RerunRequest>() => json::<Vec<SubmitItem>>(),
            "submits the job again, or with failed its shards or tests that failed";
    }
    ["scheduler", "v1", "jobs", id, "terminate"] => {
        "POST" Terminate { id: JobId }, Signer, NONE, json::<TerminateRequest>() => TEXT, "stops a running job";
    }
    ["scheduler", "v1", "submits", submit, "events"] => {
        "GET" SubmitEvents { submit: Word }, Account, Known(&["after"]), NOTHING => EVENTS,
            "a stream of the changes of a submit's jobs, until all have ended";
    }
    ["scheduler", "v1", "timers"] => {
        "POST" SubmitTimer, Submitter, NONE, JOBS => json::<TimerView>(), "submits a timer: one job with timer, its name, and every or cron";
        "GET" Timers, Account, Known(&["account", "limit", "after"]), NOTHING => json::<TimerList>(), "lists timers with next and last runs, paged";
    }
    ["scheduler", "v1", "timers", timer] => {
        "GET" Timer { timer: Timer }, Account, ONE_TIMER, NOTHING => json::<TimerView>(), "one timer, with its job";
        "POST" UpdateTimer { timer: Timer }, Account, ONE_TIMER, JOBS => json::<TimerView>(), "changes its schedule, or replaces its job";
        "DELETE" DeleteTimer { timer: Timer }, Account, ONE_TIMER, NOTHING => TEXT, "deletes a timer; its runs go on";
    }
    ["scheduler", "v1", "timers", timer, "pause"] => {
        "POST" PauseTimer { timer: Timer }, Account, ONE_TIMER, NOTHING => json::<TimerView>(), "lets no run begin until it is resumed";
    }
    ["scheduler", "v1", "timers", timer, "resume"] => {
        "POST" ResumeTimer { timer: Timer }, Account, ONE_TIMER, NOTHING => json::<TimerView>(), "goes on with the next time";
    }
    ["scheduler", "v1", "groups", group] => {
        "GET" Group { group: Word }, Account, Known(&["account"]), NOTHING => json::<JobAnswer>(),
            "the answer of a group: of all jobs that joined it by its name";
    }
    ["scheduler", "v1", "groups", group, "close"] => {
        "POST" CloseGroup { group: Word }, Signer, Known(&["account"]), json::<Signed>() => json::<JobAnswer>(),
            "lets no job join the group any more; the same answer";
    }
    ["scheduler", "v1", "tests"] => {
        "GET" Tests, Account, Known(&["suite", "test", "limit", "after"]), NOTHING => json::<Vec<TestHistory>>(), "the history of the tests of a suite, by group of hosts";
    }
    ["scheduler", "v1", "webhooks"] => {
        "GET" Webhooks, Account, PAGE, NOTHING => json::<Vec<WebhookView>>(), "your webhooks, an admin's of all accounts, newest first";
    }
    ["scheduler", "v1", "webhooks", "test"] => {
        "POST" TestWebhook, Signer, NONE, json::<WebhookTest>() => json::<WebhookTested>(), "sends a test message to a receiver now";
    }
    ["scheduler", "v1", "webhooks", webhook, "redeliver"] => {
        "POST" RedeliverWebhook { webhook: Word }, Signer, NONE, json::<Signed>() => TEXT, "sends a webhook again, under the same id";
    }
    ["scheduler", "v1", "content"] => {
        "GET" Contents, Account, Known(&["account", "limit", "after"]), NOTHING => json::<ContentList>(),
            "your inputs and outputs, an admin's of all accounts, paged";
    }
    ["scheduler", "v1", "content", "pin"] => {
        "POST" PinChunks, AccountOrJob, CONTENT, json::<ContentPin>() => json::<ContentMissing>(),
            "keeps chunks from collection for a put, and says which of them must be sent, and where";
    }
    ["scheduler", "v1", "content", "chunks", digest] => {
        "PUT" PutChunk { digest: Word }, AccountOrJob, Known(&["put", "job_id", "job_token", "attempt"]), BYTES => json::<Written>(),
            "stores a chunk, if it is what its digest says";
        "GET" Chunk { digest: Word }, AccountOrJob, Known(&["id", "job_id", "job_token", "attempt"]), NOTHING => BYTES,
            "a chunk of an input or output that the caller may read";
    }
    ["scheduler", "v1", "content", "urls"] => {
        "POST" ChunkUrls, AccountOrJob, CONTENT, json::<ContentUrlsRequest>() => json::<ContentUrls>(),
            "from where to read chunks of an input or output";
    }
    ["scheduler", "v1", "content", "manifests"] => {
        "POST" PutManifest, AccountOrJob, Known(&["put", "name", "job_id", "job_token", "attempt"]), BYTES => json::<ContentView>(),
            "ends a put: stores a manifest, if all its chunks are there";
    }
    ["scheduler", "v1", "content", "manifests", content] => {
        "GET" Manifest { content: Word }, AccountOrJob, CONTENT, NOTHING => BYTES, "the list of the files of an input or output";
    }
    ["scheduler", "v1", "content", "collect"] => {
        "POST" CollectContent, Admin, NONE, json::<ContentCareRequest>() => json::<ContentCollected>(),
            "removes what no job names and nobody keeps";
    }
    ["scheduler", "v1", "content", "check"] => {
        "POST" CheckContent, Admin, NONE, json::<ContentCareRequest>() => json::<ContentChecked>(),
            "reads all that is stored, and sets aside what is damaged";
    }
    ["scheduler", "v1", "content", content] => {
        "GET" ContentOf { content: Word }, Account, ONE_CONTENT, NOTHING => json::<ContentView>(), "one input or output";
        "POST" KeepContent { content: Word }, Account, ONE_CONTENT, json::<ContentKeep>() => json::<ContentView>(), "keeps it until a time, whatever jobs do";
        "DELETE" ForgetContent { content: Word }, Account, ONE_CONTENT, NOTHING => TEXT, "gives it up; it goes when no job names it";
    }
    ["scheduler", "v1", "usage"] => {
        "GET" Usage, Account, Known(&["by", "since_ms", "until_ms"]), NOTHING => json::<UsageReport>(),
            "hours, jobs and waits between two times, by account, queue, host, suite or class";
    }
    ["scheduler", "v1", "queues"] => {
        "GET" Queues, Account, PAGE, NOTHING => json::<Vec<QueueView>>(), "queues with policy, waiting, running and share";
    }
    ["scheduler", "v1", "queues", name] => {
        "POST" | "PUT" SetQueue { name: Queue }, Admin, NONE, json::<QueueChange>() => json::<QueueView>(), "sets weight, priority, paused, users";
        "DELETE" DeleteQueue { name: Queue }, Admin, NONE, NOTHING => TEXT, "back to the default policy";
    }
    ["scheduler", "v1", "pools"] => {
        "GET" Pools, Account, PAGE, NOTHING => json::<Vec<PoolView>>(), "pools of machines that come and go, with their machines";
    }
    ["scheduler", "v1", "pools", name] => {
        "GET" Pool { name: Word }, Account, NONE, NOTHING => json::<PoolView>(), "one pool";
        "POST" | "PUT" SetPool { name: Word }, Admin, NONE, json::<PoolChange>() => json::<PoolView>(), "sets what is given of a pool, and makes it";
        "DELETE" DeletePool { name: Word }, Admin, NONE, NOTHING => TEXT, "deletes a pool that has no machines";
    }
    ["scheduler", "v1", "pools", name, "decisions"] => {
        "GET" PoolDecisions { name: Word }, Account, Known(&["before", "limit"]), NOTHING => json::<Vec<PoolDecision>>(),
            "the decisions of a pool with their numbers, the newest first; `before=` a number goes on behind it";
    }
    ["scheduler", "v1", "scaling"] => {
        "GET" Scaling, Account, NONE, NOTHING => json::<ScalingSettings>(), "what holds for all pools together";
        "POST" | "PUT" SetScaling, Admin, NONE, json::<ScalingSettings>() => json::<ScalingSettings>(), "replaces what holds for all pools together";
    }
    ["scheduler", "v1", "retention"] => {
        "GET" Retention, Admin, NONE, NOTHING => json::<RetentionView>(), "for how many months jobs are kept";
        "POST" | "PUT" SetRetention, Admin, NONE, json::<RetentionChange>() => json::<RetentionView>(), "sets for how many months jobs are kept";
    }
    ["scheduler", "v1", "reuse"] => {
        "GET" ReuseRules, Admin, NONE, NOTHING => json::<ReuseSettings>(), "how the lab reuses results of earlier jobs";
        "POST" | "PUT" SetReuseRules, Admin, NONE, json::<ReuseSettings>() => json::<ReuseSettings>(), "replaces how the lab reuses results";
    }
    ["scheduler", "v1", "rules"] => {
        "GET" Rules, Admin, NONE, NOTHING => json::<SubmitRules>(), "the submit rules, in their order";
        "POST" | "PUT" SetRules, Admin, NONE, json::<SubmitRules>() => json::<SubmitRules>(), "replaces all submit rules";
    }
    ["scheduler", "v1", "hosts"] => {
        "GET" Hosts, Account, Known(&["tags", "limit", "after"]), NOTHING => json::<Vec<HostView>>(), "hosts, what they offer and run; with `tags=` those that have all of them";
    }
    ["scheduler", "v1", "machines", "unknown"] => {
        "GET" UnknownMachines, Admin, PAGE, NOTHING => json::<Vec<UnknownMachine>>(), "machines that asked this replica what to boot and are not registered";
    }
    ["scheduler", "v1", "hosts", hostname] => {
        // compass-ci's hosts say `report_metrics`, and nothing follows from it.
        "GET" Host { hostname: Host }, Account, Known(&["report_metrics"]), NOTHING => json::<HostView>(), "one host, and why it is idle";
        "POST" RegisterHost { hostname: Host }, Testbox, Known(&["report_metrics"]), json::<HostRegistration>() => json::<HostView>(),
            "registers a host or updates what is known of it";
        "DELETE" ForgetHost { hostname: Host }, Admin, NONE, NOTHING => TEXT, "forgets a host that is gone";
    }
    ["scheduler", "v1", "hosts", hostname, "cordon"] => {
        "POST" Cordon { hostname: Host }, Admin, NONE, json::<HostClose>() => json::<HostView>(), "gives a host no new job; with drain: true to empty it";
    }
    ["scheduler", "v1", "hosts", hostname, "uncordon"] => {
        "POST" Uncordon { hostname: Host }, Admin, NONE, NOTHING => json::<HostView>(), "gives a closed or suspect host jobs again";
    }
    ["scheduler", "v1", "hosts", hostname, "reserve"] => {
        "POST" Reserve { hostname: Host }, Admin, NONE, json::<HostReserve>() => json::<HostView>(), "keeps a host for the jobs of some accounts until a time";
    }
    ["scheduler", "v1", "hosts", hostname, "unreserve"] => {
        "POST" Unreserve { hostname: Host }, Admin, NONE, NOTHING => json::<HostView>(), "gives a reserved host back to everybody";
    }
    ["scheduler", "v1", "hosts", hostname, "reset"] => {
        "POST" ResetHost { hostname: Host }, Admin, NONE, NOTHING => json::<HostReset>(), "repairs malformed session, lease and registration documents of a host";
    }
    ["scheduler", "v1", "testboxes", hostname, "consume"] => {
        "POST" Consume { hostname: Host }, Worker, NONE, json::<ConsumeRequest>() => json::<ConsumeAnswer>(), "long poll of an agent for work";
    }
    ["scheduler", "v1", "testboxes", hostname, "heartbeat"] => {
        "POST" Heartbeat { hostname: Host }, Testbox, NONE, json::<HeartbeatRequest>() => json::<HeartbeatAnswer>(), "renews the leases of an agent's session";
    }
    ["scheduler", "v1", "whoami"] => {
        "GET" Whoami, Account, NONE, NOTHING => json::<AccountView>(), "the account that asks; no name: an open lab takes the name that a job says";
    }
    ["scheduler", "v1", "login"] => {
        "POST" Login, Anybody, NONE, json::<Login>() => json::<AccountView>(), "lets a browser in: the answer sets a cookie for pages of this scheduler";
    }
    ["scheduler", "v1", "logout"] => {
        "POST" Logout, Anybody, NONE, NOTHING => TEXT, "forgets the cookie of a login, and ends all logins of its account";
    }
    ["scheduler", "v1", "overview"] => {
        "GET" Overview, Account, NONE, NOTHING => json::<Snapshot>(), "the lab as it is: queues, hosts, replicas and stages of jobs, at most a second old";
    }
    ["scheduler", "v1", "live"] => {
        "GET" Live, Account, NONE, NOTHING => LIVE, "a stream of that: a snapshot first, then what changed, once a second";
    }
    ["scheduler", "v1", "series"] => {
        "GET" Series, Account, SERIES, NOTHING => json::<Series>(), "what ran in each minute between two times, or in each hour of long times";
    }
    ["scheduler", "v1", "audit"] => {
        "GET" Audit, Account, AUDIT, NOTHING => json::<AuditList>(),
            "who did what, the newest first: an admin sees all, others see their own acts and those on hosts, queues, pools and the lab";
    }
    ["scheduler", "v1", "previews"] => {
        "POST" MakePreview, Account, NONE, json::<PreviewRequest>() => json::<Preview>(),
            "shows what an action on many jobs, hosts or queues will touch; it can be run for 10 minutes";
    }
    ["scheduler", "v1", "previews", preview] => {
        "GET" Preview { preview: Word }, Account, NONE, NOTHING => json::<Preview>(), "a preview, and how far it is done";
    }
    ["scheduler", "v1", "previews", preview, "run"] => {
        "POST" RunPreview { preview: Word }, Account, NONE, NOTHING => json::<Preview>(),
            "does what a preview shows, on nothing else; it goes on if the replica dies";
    }
    ["ui"] => {
        "GET" | "HEAD" Page, Anybody, Any, NOTHING => PAGE_OR_FILE, "the dashboard";
    }
    ["ui", path @ ..] => {
        "GET" | "HEAD" PageOrFile { path: Rest }, Anybody, Any, NOTHING => PAGE_OR_FILE, "a page or a file of the dashboard";
    }
    ["scheduler", "v1", "accounts"] => {
        "GET" Accounts, Admin, PAGE, NOTHING => json::<Vec<AccountView>>(), "accounts";
    }
    ["scheduler", "v1", "accounts", my_account] => {
        "POST" SetAccount { my_account: Account }, Admin, NONE, json::<AccountChange>() => json::<AccountView>(), "creates or changes an account, answers its token once";
        "DELETE" DeleteAccount { my_account: Account }, Admin, NONE, NOTHING => TEXT, "deletes an account; its jobs go on";
    }
    ["scheduler", "v1", "accounts", my_account, "notify"] => {
        "GET" Notify { my_account: Account }, Account, NONE, NOTHING => json::<NotifyView>(),
            "who is told of the jobs of an account that do not say so themselves; 404: nobody";
        "POST" SetNotify { my_account: Account }, Signer, NONE, json::<NotifyChange>() => json::<NotifyView>(),
            "sets who is told, for jobs that are submitted from then on";
        "DELETE" ForgetNotify { my_account: Account }, Account, NONE, NOTHING => TEXT, "lets nobody be told, also of jobs that wait or run";
    }
    ["scheduler", "v1", "peers", "hints"] => {
        "POST" Hints, Replica, NONE, BYTES => TEXT, "what another replica of the lab just wrote";
    }
    ["srv", "scheduler", "pending-jobs", id, "job.cgz"] => {
        "GET" JobInitrd { id: JobId }, JobToken, Known(&["job_token", "secrets_key"]), NOTHING => BYTES, "the job as an initrd for hw testboxes";
    }
    ["srv", "boot", path @ ..] => {
        "GET" BootFile { path: Rest }, Anybody, NONE, NOTHING => BYTES, "kernels and initrds that the operator put into the data folder";
    }
    ["result", path @ ..] => {
        "POST" | "PUT" Upload { path: Rest }, JobTokenOrAdmin, UPLOAD, BYTES => json::<Written>(), "uploads a result file";
        "GET" Download { path: Rest }, Account, NONE, NOTHING => FILE_OR_FOLDER, "downloads a result file or lists a folder";
    }
}

/// Whether it is an old name of `update`.
fn is_report(word: &str) -> bool {
    matches!(
        word,
        "lkp-jobfile-append-var" | "report-job-step" | "set-job-stage"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pattern_that_fits_is_the_path_of_a_request() {
        let told = |method: &str, path: &str| {
            let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
            match Route::find(method, &segments) {
                Ok(route) => format!("{:?} {}", route, route.endpoint().path),
                Err(methods) => methods.join(" or "),
            }
        };
        for (method, path, meant) in [
            ("HEAD", "/", "Alive /"),
            (
                "GET",
                "/scheduler/v1/jobs/7",
                r#"Job { id: "7" } /scheduler/v1/jobs/:id"#,
            ),
            ("GET", "/scheduler/v1/jobs/wait", "POST"),
            ("DELETE", "/scheduler/v1/jobs/7/log", "GET or POST"),
            ("GET", "/scheduler/v1/jobs/7/8", ""),
            (
                "GET",
                "/boot.ipxe/mac/x",
                r#"OldDispatch { boot_type: "boot.ipxe", parameter: "mac", value: "x" } /boot.:boot_type/:parameter/:value"#,
            ),
            ("GET", "/root.ipxe/mac/x", ""),
            ("GET", "/~lkp/cgi-bin/odd", ""),
            (
                "POST",
                "/~lkp/cgi-bin/lkp-wtmp",
                "OldWtmp /~lkp/cgi-bin/lkp-wtmp",
            ),
            (
                "PUT",
                "/result/a/b",
                r#"Upload { path: ["a", "b"] } /result/*path"#,
            ),
            ("GET", "/srv/boot", r"BootFile { path: [] } /srv/boot/*path"),
        ] {
            assert_eq!(told(method, path), meant, "{method} {path}");
        }
    }
}
