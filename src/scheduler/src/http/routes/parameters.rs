//! Refuses query parameters that no handler reads: a misspelt filter must not match everything.

use fairlead_api::{COMMON, ErrorCode, Parameters, Route};
use fairlead_job::nearest;

use fairlead_base::{
    errors::{Refusal, excerpt},
    query::Query,
};

/// Refuses the first parameter that the route does not know.
pub(super) fn refuse_unknown(route: &Route<'_>, query: &Query) -> Result<(), Refusal> {
    let row = route.endpoint();
    let Parameters::Known(names) = row.parameters else {
        return Ok(());
    };
    let known = || names.iter().chain(COMMON).copied();
    let Some((name, _)) = query
        .pairs()
        .find(|(name, _)| !known().any(|known| known == *name))
    else {
        return Ok(());
    };
    let all: Vec<&str> = known().collect();
    let meant =
        nearest(name, known()).map_or_else(String::new, |near| format!("did you mean {near}? "));
    Err(Refusal::new(
        ErrorCode::BadQuery,
        format!("{}: there is no such parameter", excerpt(name)),
        format!(
            "{meant}{} {} takes {}",
            row.methods[0],
            row.path,
            all.join(", ")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, path: &str, query: &str) -> Result<(), String> {
        let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let query = Query::parse(query).unwrap();
        let route = Route::find(method, &segments).unwrap();
        refuse_unknown(&route, &query)
            .map_err(|refusal| format!("{refusal}; {}", refusal.body().hint))
    }

    #[test]
    fn an_unknown_parameter_is_refused_with_the_one_that_was_meant() {
        let told = asked("GET", "/scheduler/v1/jobs", "stage=submit&helth=fail").unwrap_err();
        assert!(
            told.starts_with("helth: there is no such parameter; did you mean health? GET"),
            "{told}"
        );
        for (method, path, query) in [
            ("GET", "/scheduler/v1/jobs/7", "filds=suite"),
            ("GET", "/scheduler/v1/jobs/7/explain", "x=1"),
            ("POST", "/scheduler/v1/jobs/submit", "stirct=true"),
            ("PUT", "/scheduler/v1/queues/q", "weight=3"),
            ("HEAD", "/", "x"),
        ] {
            assert!(
                asked(method, path, query).is_err(),
                "{method} {path}?{query}"
            );
        }
    }

    #[test]
    fn what_compass_ci_s_clients_and_testboxes_send_is_taken() {
        for (method, path, query) in [
            ("GET", "/scheduler/v1/jobs/7", "fields=suite,id&token=t"),
            ("GET", "/boot.ipxe/mac/ec-f4", "arch=x&ip=1.2.3.4&odd=1"),
            (
                "GET",
                "/scheduler/v1/jobs/dispatch",
                "mac=1&is_remote=true&sched_port=3000",
            ),
            (
                "GET",
                "/~lkp/cgi-bin/lkp-jobfile-append-var",
                "job_id=7&job_file=x&loadavg=1",
            ),
            ("POST", "/~lkp/cgi-bin/set-job-stage", "job_id=7&odd=1"),
            (
                "POST",
                "/scheduler/v1/jobs/7/update",
                "job_step=smoke&ssh_port=22",
            ),
            ("POST", "/scheduler/v1/hosts/h", "report_metrics"),
            ("PUT", "/result/a/b", "job_id=7&job_token=t"),
        ] {
            assert_eq!(
                asked(method, path, query),
                Ok(()),
                "{method} {path}?{query}"
            );
        }
    }
}
