//! Which parameters each route reads from its query.

/// What a route reads from its query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameters {
    /// These, and [`COMMON`]; any other one is refused.
    Known(&'static [&'static str]),
    /// Whatever comes: scripts of testboxes that cannot be changed send more than anybody reads.
    Any,
}

/// Every route takes these: who asks, where no header can say it.
pub const COMMON: &[&str] = &["token", "my_account"];

const OF_A_LIST: &[&str] = &[
    "stage",
    "job_stage",
    "health",
    "job_health",
    "account",
    "queue",
    "host",
    "host_machine",
    "suite",
    "submit_id",
    "sequence",
    "group_id",
    "tbox_group",
    "since_ms",
    "until_ms",
    "order",
    "after",
    "limit",
];
const OF_A_SUBMIT: &[&str] = &["strict", "idempotency_key"];
const OF_AN_UPLOAD: &[&str] = &["job_id", "job_token", "attempt"];

/// Routes that read parameters, by method and path as in [`crate::ENDPOINTS`].
const TABLE: &[(&str, &str, Parameters)] = &[
    known("POST", "/scheduler/v1/jobs/submit", OF_A_SUBMIT),
    known("POST", "/submit_job", OF_A_SUBMIT),
    known("GET", "/scheduler/v1/jobs", OF_A_LIST),
    any("GET", "/scheduler/v1/jobs/dispatch"),
    any("GET", "/boot.:boot_type/:parameter/:value"),
    known("GET", "/scheduler/v1/jobs/:id", &["fields"]),
    known(
        "GET",
        "/scheduler/v1/jobs/:id/log",
        &["attempt", "offset", "follow"],
    ),
    known(
        "POST",
        "/scheduler/v1/jobs/:id/log",
        &["attempt", "offset", "job_token"],
    ),
    any("POST", "/scheduler/v1/jobs/:id/update"),
    known(
        "POST",
        "/scheduler/v1/jobs/:id/wait_peer",
        &["attempt", "job_token"],
    ),
    any("GET", "/~lkp/cgi-bin/:report"),
    known(
        "GET",
        "/scheduler/v1/timers",
        &["account", "limit", "after"],
    ),
    known("GET", "/scheduler/v1/timers/:timer", &["account"]),
    known("POST", "/scheduler/v1/timers/:timer", &["account"]),
    known("POST", "/scheduler/v1/timers/:timer/pause", &["account"]),
    known("POST", "/scheduler/v1/timers/:timer/resume", &["account"]),
    known("DELETE", "/scheduler/v1/timers/:timer", &["account"]),
    // compass-ci's hosts say so, and nothing follows from it.
    known("GET", "/scheduler/v1/hosts/:hostname", &["report_metrics"]),
    known("POST", "/scheduler/v1/hosts/:hostname", &["report_metrics"]),
    known(
        "GET",
        "/srv/scheduler/pending-jobs/:id/job.cgz",
        &["job_token"],
    ),
    known("POST", "/result/*path", OF_AN_UPLOAD),
    known("PUT", "/result/*path", OF_AN_UPLOAD),
];

const fn known(
    method: &'static str,
    path: &'static str,
    names: &'static [&'static str],
) -> (&'static str, &'static str, Parameters) {
    (method, path, Parameters::Known(names))
}

const fn any(method: &'static str, path: &'static str) -> (&'static str, &'static str, Parameters) {
    (method, path, Parameters::Any)
}

/// What the route of this row reads beside [`COMMON`].
pub fn parameters_of(method: &str, path: &str) -> Parameters {
    let row = TABLE
        .iter()
        .find(|(known, place, _)| (*known, *place) == (method, path));
    row.map_or(Parameters::Known(&[]), |(_, _, parameters)| *parameters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ENDPOINTS;

    #[test]
    fn every_row_is_of_a_route() {
        for (method, path, _) in TABLE {
            let found = ENDPOINTS
                .iter()
                .any(|row| (row.method, row.path) == (*method, *path));
            assert!(found, "{method} {path}");
        }
    }
}
