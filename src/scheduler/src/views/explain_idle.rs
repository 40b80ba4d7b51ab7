//! Renders why a host is idle.

use fairlead_dispatch::HostExplanation;
use fairlead_job::JobId;

use crate::views::{
    ViewFlow,
    explain::{count, seen, words},
    explain_load::words_of_load,
};
use fairlead_base::errors::Refusal;

/// Why a host is idle, a line a reason.
pub(crate) async fn why_idle(flow: &ViewFlow, host: &str) -> Result<Vec<String>, Refusal> {
    let name = host.to_owned();
    let answer = flow
        .ctx
        .engine
        .ask(move |engine, now| engine.explain_host(now, &name))
        .await;
    let explained = answer.ok_or(Refusal::Stopping)?;
    Ok(explained.map_or_else(
        || vec!["it has not asked for work since this replica started".to_owned()],
        |e| idle_lines(&e),
    ))
}

fn idle_lines(explained: &HostExplanation) -> Vec<String> {
    let mut lines = Vec::new();
    if explained.asking.is_none() {
        lines.push(format!(
            "it does not ask for work now: {}",
            seen(explained.last_seen)
        ));
    }
    if let Some(load) = explained.load.filter(|load| load.loaded) {
        lines.push(words_of_load(load.memory_used_percent));
    }
    if let Some(job) = explained.reserved_for {
        lines.push(format!("it is reserved for job {}", JobId::new(job.0)));
    }
    if explained.shapes.is_empty() {
        lines.push("no waiting job can use it".to_owned());
    }
    for shape in &explained.shapes {
        let why: Vec<String> = shape.reasons.iter().map(words).collect();
        let why = if why.is_empty() {
            "other jobs go first".to_owned()
        } else {
            why.join("; ")
        };
        lines.push(format!(
            "{} such as {}: {why}",
            count(shape.jobs, "job", "jobs"),
            JobId::new(shape.example.0)
        ));
    }
    if explained.shapes_more {
        lines.push("more kinds of jobs do not fit".to_owned());
    }
    lines
}
