//! Live progress of followed jobs on stderr: bars on a terminal, otherwise one line per event.

use std::{collections::BTreeMap, time::Duration};

use fairlead_api::{JobSummary, StageWord};
use fairlead_job::Stage;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::{
    clock,
    context::Context,
    follow::Tracked,
    table::{cut, harmless},
};

/// Maximum number of lines of running jobs, because a terminal has few rows.
const LINES_MAX: usize = 16;
/// Number of characters of a job's parameters in its line.
const LABEL_CHARS_MAX: usize = 48;
/// Number of characters of the last output in a job's line.
const SAID_CHARS_MAX: usize = 60;

/// Shows the progress of followed jobs.
pub(crate) struct Progress<'a> {
    context: &'a Context,
    known: BTreeMap<String, StageWord>,
    ended: usize,
    bars: Option<Bars>,
}

struct Bars {
    multi: MultiProgress,
    all: ProgressBar,
    lines: BTreeMap<String, ProgressBar>,
    said: BTreeMap<String, String>,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(context: &'a Context, jobs: usize) -> Self {
        let bars = context
            .output
            .remarks_are_seen()
            .then(|| Bars::new(jobs as u64));
        Self {
            context,
            known: BTreeMap::new(),
            ended: 0,
            bars,
        }
    }

    /// Returns the jobs with a line of their own. Only their last output is worth a request.
    pub(crate) fn shown(&self) -> Vec<String> {
        self.bars
            .as_ref()
            .map_or_else(Vec::new, |bars| bars.lines.keys().cloned().collect())
    }

    /// Sets the last line that a job has written.
    pub(crate) fn said(&mut self, job_id: &str, line: &str) {
        if let Some(bars) = &mut self.bars {
            bars.said
                .insert(job_id.to_owned(), cut(&harmless(line), SAID_CHARS_MAX));
        }
    }

    /// Prints a remark above the lines.
    pub(crate) fn remark(&self, text: &str) {
        match &self.bars {
            Some(bars) => bars.multi.suspend(|| self.context.output.remark(text)),
            None => self.context.output.remark(text),
        }
    }

    /// Shows the present states.
    pub(crate) fn show(&mut self, jobs: &[Tracked]) {
        for job in jobs {
            let (now, is_over) = (job.stage(), job.is_over());
            // An end is reported only with complete results.
            if is_over && !job.done() {
                continue;
            }
            let before = self.known.insert(job.job_id.clone(), now.clone());
            let before = before.unwrap_or(Stage::Submit.into());
            if now == before {
                continue;
            }
            self.ended += usize::from(is_over);
            let Some(text) = news(job, &before, &now) else {
                continue;
            };
            // On a terminal the lines already show running jobs, so only bad ends get a lasting line.
            if self.bars.is_some() && (!is_over || job.succeeded()) {
                continue;
            }
            if is_over {
                self.remark(&format!("[{}/{}] {text}", self.ended, jobs.len()));
            } else {
                self.remark(&text);
            }
        }
        if let Some(bars) = &mut self.bars {
            bars.show(jobs, self.ended);
        }
    }

    /// Removes everything from the terminal.
    pub(crate) fn end(self) {
        if let Some(bars) = self.bars {
            for line in bars.lines.values() {
                line.finish_and_clear();
            }
            bars.all.finish_and_clear();
            // A terminal that cannot be cleared is no error.
            let _ = bars.multi.clear();
        }
    }
}

/// Returns the message about a job that changed its stage. `None`: a minor change.
fn news(job: &Tracked, before: &StageWord, now: &StageWord) -> Option<String> {
    let head = format!(
        "job {} ({})",
        job.job_id,
        cut(&job.label(), LABEL_CHARS_MAX)
    );
    let seen = job.seen.as_ref()?;
    if job.is_over() {
        let end_ms = seen.end_ms.unwrap_or_default();
        let began_ms = seen.running_ms.unwrap_or(end_ms);
        let took = clock::length(end_ms.saturating_sub(began_ms));
        let end = format!("{head}: {} after {took}", job.health());
        return Some(harmless(&format!("{end}{}", reused(seen))));
    }
    let Some(now) = now.known() else {
        let text = format!("{head}: in stage {now}, which this version does not know");
        return Some(harmless(&text));
    };
    let ran = before
        .known()
        .is_some_and(|before| before >= Stage::Running);
    if now >= Stage::Running && !ran {
        return Some(harmless(&format!("{head}: running on {}", seen.host)));
    }
    if now == Stage::Submit {
        return Some(harmless(&format!(
            "{head}: waits again, attempt {}",
            seen.attempt
        )));
    }
    None
}

/// Returns a note about reused results. Empty: none.
fn reused(seen: &JobSummary) -> String {
    match &seen.shards {
        _ if !seen.reused_from.is_empty() => format!(", reused from job {}", seen.reused_from),
        Some(shards) if shards.reused > 0 => {
            format!(", {} of {} shards reused", shards.reused, shards.count)
        }
        _ => String::new(),
    }
}

impl Bars {
    fn new(jobs: u64) -> Self {
        let multi = MultiProgress::new();
        let all = multi.add(ProgressBar::new(jobs));
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} jobs, {msg} [{elapsed}]");
        all.set_style(
            style
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=> "),
        );
        all.enable_steady_tick(Duration::from_millis(200));
        Self {
            multi,
            all,
            lines: BTreeMap::new(),
            said: BTreeMap::new(),
        }
    }

    fn show(&mut self, jobs: &[Tracked], ended: usize) {
        let held = |job: &&Tracked| !job.done() && job.stage() != Stage::Submit;
        let running: Vec<&Tracked> = jobs.iter().filter(held).collect();
        let bad = jobs
            .iter()
            .filter(|job| job.done() && !job.succeeded())
            .count();
        let waiting = jobs
            .len()
            .saturating_sub(running.len())
            .saturating_sub(ended);
        let part = if running.len() > LINES_MAX {
            format!(" ({LINES_MAX} shown)")
        } else {
            String::new()
        };
        let failed = if bad > 0 {
            format!(", {bad} failed")
        } else {
            String::new()
        };
        self.all.set_position(ended as u64);
        self.all.set_message(format!(
            "{} running{part}, {waiting} waiting{failed}",
            running.len()
        ));

        let shown: Vec<&Tracked> = running.into_iter().take(LINES_MAX).collect();
        self.lines.retain(|id, line| {
            let stays = shown.iter().any(|job| job.job_id == *id);
            if !stays {
                line.finish_and_clear();
                self.multi.remove(line);
            }
            stays
        });
        let now_ms = clock::now_ms();
        for job in shown {
            let line = self.lines.entry(job.job_id.clone()).or_insert_with(|| {
                let line = self.multi.add(ProgressBar::new_spinner());
                let style = ProgressStyle::with_template("  {wide_msg}");
                line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
                line
            });
            let state = state_of(job, now_ms);
            let label = harmless(&cut(&job.label(), LABEL_CHARS_MAX));
            let said = self
                .said
                .get(&job.job_id)
                .map(String::as_str)
                .unwrap_or_default();
            line.set_message(format!("{label}  {state:>6}  {said}"));
        }
        let lines = &self.lines;
        self.said.retain(|id, _| lines.contains_key(id));
    }
}

/// Returns the run time of a job, or its stage if it does not run yet.
fn state_of(job: &Tracked, now_ms: u64) -> String {
    let began_ms = job.seen.as_ref().and_then(|seen| seen.running_ms);
    began_ms.map_or_else(
        || job.stage().to_string(),
        |began_ms| clock::length(now_ms.saturating_sub(began_ms)),
    )
}
