//! The table of endpoints. The server's router, the client's paths, the rights tests and the list in docs/api.md are made
//! from it.
//!
//! A path is a slice pattern: a word stands for itself, a name is one segment, `name @ ..` is the rest. The first pattern
//! that fits a request is its path, so words come before names.

use crate::parameters::{
    LIST, NONE, ONE_TIMER,
    Parameters::{self, Any, Known},
    SUBMIT, UPLOAD,
};

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

/// The pattern of a path as the documentation writes it.
macro_rules! path_text {
    ([]) => { "/" };
    // compass-ci's `/boot.ipxe/mac/…`; its value has the prefix, too.
    ([boot_type $(, $($rest:tt)+)?]) => { concat!("/boot.:boot_type", $(path_text!([$($rest)+]))?) };
    ([$word:literal $(, $($rest:tt)+)?]) => { concat!("/", $word, $(path_text!([$($rest)+]))?) };
    ([$name:ident @ ..]) => { concat!("/*", stringify!($name)) };
    ([$name:ident $(, $($rest:tt)+)?]) => { concat!("/:", stringify!($name), $(path_text!([$($rest)+]))?) };
}

/// Makes the enum of all routes, the table, and what leads from one to the other.
macro_rules! routes {
    ($($path:tt $(if $guard:expr)? => {
        $($($method:literal)|+ $name:ident $({ $($field:ident: $kind:ident),+ })?, $caller:ident, $parameters:expr, $does:literal;)+
    })+) => {
        /// An endpoint, with what the names in its path stand for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Route<'a> {
            $($(
                #[doc = concat!("`", path_text!($path), "`")]
                $name $({
                    $(
                        #[doc = concat!("`", stringify!($field), "` of the path.")]
                        $field: $kind<'a>
                    ),+
                })?,
            )+)+
        }

        /// Every route, in the order of the documentation.
        pub const ENDPOINTS: &[Endpoint] = &[$($(
            Endpoint {
                methods: &[$($method),+],
                path: path_text!($path),
                caller: Caller::$caller,
                parameters: $parameters,
                does: $does,
            },
        )+)+];

        /// The place of each route in [`ENDPOINTS`].
        #[derive(Clone, Copy)]
        enum Row { $($($name),+),+ }

        impl<'a> Route<'a> {
            /// The route of a request. Otherwise the methods that its path takes; none: there is no such path.
            pub fn find(method: &str, segments: &'a [&'a str]) -> Result<Self, &'static [&'static str]> {
                match segments {
                    $($path $(if $guard)? => match method {
                        $($($method)|+ => Ok(Route::$name $({ $($field),+ })?),)+
                        _ => Err(&[$($($method),+),+]),
                    },)+
                    _ => Err(&[]),
                }
            }

            /// Its row in the table.
            pub fn endpoint(&self) -> &'static Endpoint {
                let row = match self {
                    $($(Route::$name { .. } => Row::$name,)+)+
                };
                &ENDPOINTS[row as usize]
            }

            /// What a name in its path stands for; empty: the path has no such name.
            pub fn value(&self, name: &str) -> &[&'a str] {
                match self {
                    $($(Route::$name $({ $($field),+ })? => {
                        $($(if name == stringify!($field) {
                            return $field.segments();
                        })+)?
                    })+)+
                }
                &[]
            }
        }
    };
}

routes! {
    [] => {
        "GET" | "HEAD" Alive, Anybody, NONE, "says that the scheduler is alive";
    }
    ["scheduler", "v1", "health"] => {
        "GET" | "HEAD" Health, Anybody, NONE, "says that the scheduler is alive, and how its store is";
    }
    ["scheduler", "v1", "version"] => {
        "GET" Version, Anybody, NONE, "version and capabilities";
    }
    ["metrics"] => {
        "GET" Metrics, Anybody, NONE, "what this replica counts, for Prometheus";
    }
    ["scheduler", "v1", "jobs", "submit"] => {
        "POST" Submit, Account, SUBMIT, "submits one job or a list, JSON or YAML";
    }
    ["submit_job"] => {
        "POST" OldSubmit, Account, SUBMIT, "old name of jobs/submit";
    }
    ["scheduler", "v1", "jobs"] => {
        "GET" Jobs, Account, LIST, "lists jobs by filters, paged";
    }
    ["scheduler", "v1", "jobs", "dispatch"] => {
        "GET" Dispatch, Testbox, Any, "long poll for a hw testbox: its boot script or JSON";
    }
    [boot_type, parameter, value] if boot_type.starts_with("boot.") => {
        "GET" OldDispatch { boot_type: Word, parameter: Word, value: Word }, Testbox, Any, "old name of jobs/dispatch";
    }
    ["scheduler", "v1", "jobs", "wait"] => {
        "POST" Wait, Account, NONE, "long poll until jobs reach what is waited for";
    }
    ["scheduler", "v1", "jobs", "cancel"] => {
        "POST" CancelMany, Account, NONE, "cancels waiting jobs by ids or filters, one report each";
    }
    ["scheduler", "v1", "jobs", id] => {
        "GET" Job { id: JobId }, Account, Known(&["fields"]), "one job, flat";
    }
    ["scheduler", "v1", "jobs", id, "explain"] => {
        "GET" Explain { id: JobId }, Account, NONE, "why the job waits, or where it is";
    }
    ["r", id] => {
        "GET" Answer { id: JobId }, Account, Known(&["format"]),
            "the answer of a job and of each of its shards: a page, or JSON if that is accepted or format=json";
    }
    ["scheduler", "v1", "jobs", id, "log"] => {
        "GET" ReadLog { id: JobId }, Account, Known(&["attempt", "offset", "follow"]),
            "its output; follow=true streams to the end";
        "POST" AppendLog { id: JobId }, JobToken, Known(&["attempt", "offset", "job_token"]),
            "appends to its output at an offset";
    }
    ["scheduler", "v1", "jobs", id, "update"] => {
        "POST" Update { id: JobId }, JobToken, Any,
            "reports stage, health, data readiness, milestones; renews";
    }
    ["scheduler", "v1", "jobs", id, "wait_peer"] => {
        "POST" WaitPeer { id: JobId }, JobToken, Known(&["attempt", "job_token"]),
            "long poll until all nodes of the job's cluster are there; their addresses";
    }
    ["~lkp", "cgi-bin", report] => {
        "GET" | "POST" OldReport { report: Word }, JobToken, Any,
            "old names of update (lkp-jobfile-append-var, report-job-step, set-job-stage), job_id in the query";
    }
    ["scheduler", "v1", "jobs", id, "cancel"] => {
        "POST" Cancel { id: JobId }, Account, NONE, "cancels a waiting job";
    }
    ["scheduler", "v1", "jobs", id, "rerun"] => {
        "POST" Rerun { id: JobId }, Account, NONE,
            "submits the job again, or with failed its shards or tests that failed";
    }
    ["scheduler", "v1", "jobs", id, "terminate"] => {
        "POST" Terminate { id: JobId }, Account, NONE, "stops a running job";
    }
    ["scheduler", "v1", "timers"] => {
        "POST" SubmitTimer, Account, NONE, "submits a timer: one job with timer, its name, and every or cron";
        "GET" Timers, Account, Known(&["account", "limit", "after"]), "lists timers with next and last runs, paged";
    }
    ["scheduler", "v1", "timers", timer] => {
        "GET" Timer { timer: Timer }, Account, ONE_TIMER, "one timer, with its job";
        "POST" UpdateTimer { timer: Timer }, Account, ONE_TIMER, "changes its schedule, or replaces its job";
        "DELETE" DeleteTimer { timer: Timer }, Account, ONE_TIMER, "deletes a timer; its runs go on";
    }
    ["scheduler", "v1", "timers", timer, "pause"] => {
        "POST" PauseTimer { timer: Timer }, Account, ONE_TIMER, "lets no run begin until it is resumed";
    }
    ["scheduler", "v1", "timers", timer, "resume"] => {
        "POST" ResumeTimer { timer: Timer }, Account, ONE_TIMER, "goes on with the next time";
    }
    ["scheduler", "v1", "groups", group] => {
        "GET" Group { group: Word }, Account, Known(&["account"]),
            "the answer of a group: of all jobs that joined it by its name";
    }
    ["scheduler", "v1", "groups", group, "close"] => {
        "POST" CloseGroup { group: Word }, Account, Known(&["account"]),
            "lets no job join the group any more; the same answer";
    }
    ["scheduler", "v1", "tests"] => {
        "GET" Tests, Account, Known(&["suite", "test"]), "the history of the tests of a suite, by group of hosts";
    }
    ["scheduler", "v1", "webhooks"] => {
        "GET" Webhooks, Account, NONE, "your webhooks, an admin's of all accounts, newest first";
    }
    ["scheduler", "v1", "webhooks", "test"] => {
        "POST" TestWebhook, Account, NONE, "sends a test message to a receiver now";
    }
    ["scheduler", "v1", "webhooks", webhook, "redeliver"] => {
        "POST" RedeliverWebhook { webhook: Word }, Account, NONE, "sends a webhook again, under the same id";
    }
    ["scheduler", "v1", "queues"] => {
        "GET" Queues, Account, NONE, "queues with policy, waiting, running and share";
    }
    ["scheduler", "v1", "queues", name] => {
        "POST" | "PUT" SetQueue { name: Queue }, Admin, NONE, "sets weight, priority, paused, users";
        "DELETE" DeleteQueue { name: Queue }, Admin, NONE, "back to the default policy";
    }
    ["scheduler", "v1", "hosts"] => {
        "GET" Hosts, Account, Known(&["tags"]), "hosts, what they offer and run; with `tags=` those that have all of them";
    }
    ["scheduler", "v1", "machines", "unknown"] => {
        "GET" UnknownMachines, Admin, NONE, "machines that asked this replica what to boot and are not registered";
    }
    ["scheduler", "v1", "hosts", hostname] => {
        // compass-ci's hosts say `report_metrics`, and nothing follows from it.
        "GET" Host { hostname: Host }, Account, Known(&["report_metrics"]), "one host, and why it is idle";
        "POST" RegisterHost { hostname: Host }, Testbox, Known(&["report_metrics"]),
            "registers a host or updates what is known of it";
    }
    ["scheduler", "v1", "hosts", hostname, "cordon"] => {
        "POST" Cordon { hostname: Host }, Admin, NONE, "gives a host no new job; with drain: true to empty it";
    }
    ["scheduler", "v1", "hosts", hostname, "uncordon"] => {
        "POST" Uncordon { hostname: Host }, Admin, NONE, "gives a closed or suspect host jobs again";
    }
    ["scheduler", "v1", "hosts", hostname, "reserve"] => {
        "POST" Reserve { hostname: Host }, Admin, NONE, "keeps a host for the jobs of some accounts until a time";
    }
    ["scheduler", "v1", "hosts", hostname, "unreserve"] => {
        "POST" Unreserve { hostname: Host }, Admin, NONE, "gives a reserved host back to everybody";
    }
    ["scheduler", "v1", "hosts", hostname, "reset"] => {
        "POST" ResetHost { hostname: Host }, Admin, NONE, "repairs malformed session, lease and registration documents of a host";
    }
    ["scheduler", "v1", "testboxes", hostname, "consume"] => {
        "POST" Consume { hostname: Host }, Testbox, NONE, "long poll of an agent for work";
    }
    ["scheduler", "v1", "testboxes", hostname, "heartbeat"] => {
        "POST" Heartbeat { hostname: Host }, Testbox, NONE, "renews the leases of an agent's session";
    }
    ["scheduler", "v1", "whoami"] => {
        "GET" Whoami, Account, NONE, "the account that asks; no name: an open lab takes the name that a job says";
    }
    ["scheduler", "v1", "accounts"] => {
        "GET" Accounts, Admin, NONE, "accounts";
    }
    ["scheduler", "v1", "accounts", my_account] => {
        "POST" SetAccount { my_account: Account }, Admin, NONE, "creates or changes an account, answers its token once";
    }
    ["scheduler", "v1", "peers", "hints"] => {
        "POST" Hints, Replica, NONE, "what another replica of the lab just wrote";
    }
    ["srv", "scheduler", "pending-jobs", id, "job.cgz"] => {
        "GET" JobInitrd { id: JobId }, JobToken, Known(&["job_token", "secrets_key"]), "the job as an initrd for hw testboxes";
    }
    ["srv", "boot", path @ ..] => {
        "GET" BootFile { path: Rest }, Anybody, NONE, "kernels and initrds that the operator put into the data folder";
    }
    ["result", path @ ..] => {
        "POST" | "PUT" Upload { path: Rest }, JobToken, UPLOAD, "uploads a result file";
        "GET" Download { path: Rest }, Account, NONE, "downloads a result file or lists a folder";
    }
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
