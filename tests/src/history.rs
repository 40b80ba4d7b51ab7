//! Outcomes of jobs, read page by page from a scheduler's list.

use serde_json::Value;

use crate::Http;

/// Number of jobs on one page.
const PAGE: usize = 500;

/// Returns all jobs.
pub async fn all_jobs(http: &Http) -> Vec<Value> {
    let mut all = Vec::new();
    let mut after = String::new();
    loop {
        let path = format!("/scheduler/v1/jobs?limit={PAGE}{after}");
        let page = http.get(&path).await.json();
        all.extend(page["jobs"].as_array().cloned().unwrap_or_default());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return all,
        }
    }
}

/// Returns a time of a job, UTC epoch ms, once it has one.
pub fn at(job: &Value, field: &str) -> Option<u64> {
    job[field].as_u64().filter(|&ms| ms > 0)
}

/// Returns the time for which a testbox had the job within a window, ms. The window is in UTC epoch ms.
pub fn busy_ms(job: &Value, from: u64, to: u64) -> u64 {
    let begin = at(job, "dispatch_ms").unwrap_or(to).max(from);
    let end = at(job, "end_ms").unwrap_or(to).min(to);
    end.saturating_sub(begin)
}
