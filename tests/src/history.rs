//! Outcomes of jobs, read page by page from a scheduler's list.

use serde_json::Value;

use crate::Http;

/// Jobs in one page.
const PAGE: usize = 500;

/// All jobs that there are.
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

/// A job's time stamp, UTC epoch ms, once it has one.
pub fn at(job: &Value, field: &str) -> Option<u64> {
    job[field].as_u64().filter(|&ms| ms > 0)
}

/// For how long of a window, UTC epoch ms, a testbox had the job, ms.
pub fn busy_ms(job: &Value, from: u64, to: u64) -> u64 {
    let begin = at(job, "dispatch_ms").unwrap_or(to).max(from);
    let end = at(job, "end_ms").unwrap_or(to).min(to);
    end.saturating_sub(begin)
}
