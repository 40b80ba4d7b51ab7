//! The answer of a job as a page: counts, a grid of shards, first failures. Plain HTML without scripts.

use std::fmt::Write as _;

use fairlead_api::{CaseTotals, HealthWord, JobAnswer, ShardAnswer, StageWord};
use fairlead_job::{Health, Stage};

use fairlead_base::clock::utc_text;

/// Shards that failed and are told of in words.
const TOLD_MAX: usize = 50;

const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1b1f24;background:#fff}\
h1{font-size:1.3rem}table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top}\
.grid{display:flex;flex-wrap:wrap;gap:4px;padding:0;list-style:none}\
.grid a{display:block;min-width:2.2rem;padding:.15rem;text-align:center;border-radius:4px;text-decoration:none;\
border:1px solid #8c959f;color:inherit}\
.good a,.good b{background:#d1f0d9}.bad a,.bad b{background:#ffd8d3}.run a,.run b{background:#d6e8ff}\
b{padding:.1rem .5rem;border-radius:4px}\
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}a{color:#79b8ff}\
.good a,.good b{background:#12411f}.bad a,.bad b{background:#5b1a15}.run a,.run b{background:#0b315c}}";

/// The page of an answer. It loads itself again while the job goes on.
pub(crate) fn page(answer: &JobAnswer) -> String {
    let mut html = String::from("<!doctype html><html lang=en><meta charset=utf-8>");
    html.push_str("<meta name=viewport content='width=device-width'>");
    if !answer.over {
        html.push_str("<meta http-equiv=refresh content=5>");
    }
    let (id, word) = (
        escaped(&answer.job_id),
        word(&answer.job_stage, &answer.job_health),
    );
    let _ = write!(
        html,
        "<title>{word}: job {id}</title><style>{STYLE}</style>"
    );
    let class = class(&answer.job_stage, &answer.job_health);
    let suite = escaped(&answer.suite);
    let _ = write!(
        html,
        "<h1 class={class}>Job {id} <b>{word}</b></h1><p>{suite} of {account}, submitted {time}",
        account = escaped(&answer.my_account),
        time = utc_text(answer.submit_ms),
    );
    if let Some(end_ms) = answer.end_ms {
        let _ = write!(html, ", ended {}", utc_text(end_ms));
    }
    html.push_str("</p>");
    if !answer.reason.is_empty() {
        let _ = write!(html, "<p>{}</p>", escaped(&answer.reason));
    }
    if let Some(cases) = &answer.cases {
        html.push_str(&told(cases));
    }
    if answer.shards.is_none() {
        let _ = write!(
            html,
            "<p>{}</p>",
            links(&answer.job_id, &answer.result_root)
        );
    } else {
        html.push_str(&grid(answer));
    }
    html
}

/// The cases of a job, and the first that failed.
fn told(cases: &CaseTotals) -> String {
    let CaseTotals {
        passed,
        failed,
        skipped,
        first_failures,
    } = cases;
    let mut html =
        format!("<p>{passed} tests passed, {failed} failed, {skipped} were skipped.</p>");
    if !first_failures.is_empty() {
        html.push_str("<h2>First failures</h2><ul>");
        for failure in first_failures {
            let _ = write!(html, "<li>{}", escaped(failure));
        }
        html.push_str("</ul>");
    }
    html
}

fn grid(answer: &JobAnswer) -> String {
    let mut html = String::new();
    if let Some(shards) = &answer.shards {
        let _ = write!(
            html,
            "<h2>Shards</h2><p>{} shards: {} run, {} have ended, {} of these failed, {} were reused.</p><ul class=grid>",
            shards.count, shards.running, shards.over, shards.failed, shards.reused
        );
    }
    for part in &answer.parts {
        let class = class(&part.job_stage, &part.job_health);
        let (id, n) = (escaped(&part.job_id), part.shard);
        let mut state = word(&part.job_stage, &part.job_health);
        if !part.reused_from.is_empty() {
            state.push_str(", reused");
        }
        let _ = write!(
            html,
            "<li class={class}><a href='/r/{id}' title='shard {n}: {state}'>{n}</a>"
        );
    }
    html.push_str("</ul>");
    let failed = answer.parts.iter().filter(|part| is_bad(part));
    let failed: Vec<&ShardAnswer> = failed.take(TOLD_MAX).collect();
    if failed.is_empty() {
        return html;
    }
    html.push_str("<h2>Failed shards</h2><table><tr><th>shard<th>health<th>host<th>why<th>files");
    for part in failed {
        let _ = write!(
            html,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}",
            part.shard,
            escaped(part.job_health.as_str()),
            escaped(&part.host),
            escaped(&part.reason),
            links(&part.job_id, &part.result_root)
        );
    }
    html.push_str("</table>");
    html
}

fn links(id: &str, root: &str) -> String {
    let log = format!(
        "<a href='/scheduler/v1/jobs/{}/log'>output</a>",
        escaped(id)
    );
    if root.is_empty() {
        return log;
    }
    format!("{log}, <a href='{}'>results</a>", escaped(root))
}

fn is_over(stage: &StageWord) -> bool {
    stage.known().is_some_and(Stage::is_terminal)
}

fn is_bad(part: &ShardAnswer) -> bool {
    is_over(&part.job_stage) && part.job_health != Health::Success
}

fn word(stage: &StageWord, health: &HealthWord) -> String {
    match stage.as_str() {
        "" => "not made yet".to_owned(),
        _ if is_over(stage) => escaped(health.as_str()),
        stage => escaped(stage),
    }
}

fn class(stage: &StageWord, health: &HealthWord) -> &'static str {
    match stage.known() {
        Some(Stage::Submit) => "wait",
        None if stage.as_str().is_empty() => "wait",
        Some(end) if end.is_terminal() && *health == Health::Success => "good",
        Some(end) if end.is_terminal() => "bad",
        _ => "run",
    }
}

/// Text that a browser shows as it is, also inside quotes.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use fairlead_api::ShardCounts;

    use super::*;

    #[test]
    fn a_page_shows_all_shards_and_runs_nothing_that_a_job_wrote() {
        let part = |shard, stage, health| ShardAnswer {
            shard,
            job_id: format!("{shard}"),
            job_stage: stage,
            job_health: health,
            reason: "<script>alert(1)</script>".to_owned(),
            result_root: "/result/a'onclick='x".to_owned(),
            ..ShardAnswer::default()
        };
        let answer = JobAnswer {
            job_id: "7".to_owned(),
            job_stage: Stage::Running.into(),
            cases: Some(CaseTotals {
                passed: 3,
                failed: 1,
                first_failures: vec!["2: a<b>".to_owned()],
                ..CaseTotals::default()
            }),
            shards: Some(ShardCounts {
                count: 3,
                running: 1,
                over: 1,
                failed: 1,
                reused: 1,
            }),
            parts: vec![
                part(1, Stage::Running.into(), Health::Unknown.into()),
                part(2, Stage::Finish.into(), Health::Fail.into()),
                part(3, StageWord::default(), HealthWord::default()),
                ShardAnswer {
                    reused_from: "5".to_owned(),
                    ..part(4, Stage::Finish.into(), Health::Success.into())
                },
            ],
            ..JobAnswer::default()
        };
        let html = page(&answer);
        for text in [
            "title='shard 2: fail'",
            "title='shard 3: not made yet'",
            "title='shard 4: success, reused'",
            "1 were reused",
            "class=run",
            "3 tests passed, 1 failed",
            "2: a&lt;b&gt;",
            "http-equiv=refresh",
        ] {
            assert!(html.contains(text), "{text}: {html}");
        }
        assert!(
            !html.contains("<script") && !html.contains("'onclick"),
            "{html}"
        );
        let over = JobAnswer {
            over: true,
            ..answer
        };
        assert!(!page(&over).contains("http-equiv"));
    }
}
