//! A look as a page of text that fits a terminal. Pure: asks no clock and writes nothing.

use fairlead_api::JobSummary;
use unicode_width::UnicodeWidthStr;

use super::look::{Counts, Look};
use crate::{
    clock,
    printable::{Hue, hued},
    results::blamed,
    table::{Grid, Paper, cut, harmless, or_dash},
};

/// Maximum width of the bar, columns.
const BAR_MAX: usize = 40;
/// Maximum number of failed jobs that are shown.
const FAILURES_MAX: usize = 5;
/// Gap between two words of a line.
const GAP: &str = "  ";

/// Data of a page other than the jobs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page<'a> {
    /// Command line of the watched jobs.
    pub(crate) title: &'a str,
    /// Number of columns and rows.
    pub(crate) size: (usize, usize),
    pub(crate) now_ms: u64,
    /// Text of the last line.
    pub(crate) remark: &'a str,
}

impl Page<'_> {
    /// Returns the lines, as many as there are rows.
    pub(crate) fn lines(&self, look: &Look) -> Vec<String> {
        let (columns, rows) = self.size;
        let mut lines = vec![cut(&harmless(self.title), columns)];
        lines.push(bar(&look.counts, columns));
        lines.extend(wrapped(&kinds(look), columns));
        // The last line is for the remark.
        let mut left = rows.saturating_sub(lines.len() + 1);
        let failed = table_of_failures(&look.failed, self.now_ms, self.size);
        let failed: &[String] = if failed.len() + 3 <= left {
            &failed
        } else {
            &[]
        };
        left = left.saturating_sub(failed.len());
        lines.extend(self.running(look, left));
        lines.extend_from_slice(failed);
        lines.truncate(rows.saturating_sub(1));
        lines.resize(rows.saturating_sub(1), String::new());
        lines.push(cut(&harmless(self.remark), columns));
        lines
    }

    /// Returns the running jobs, in at most `most` lines.
    fn running(&self, look: &Look, most: usize) -> Vec<String> {
        // Three lines are for a blank line, the headings, and the number of further jobs.
        let fit = most.saturating_sub(3);
        if look.running.is_empty() || fit == 0 {
            return Vec::new();
        }
        let shown = look.running.len().min(fit);
        let jobs = look.running.get(..shown).unwrap_or_default();
        let mut lines = vec![String::new()];
        let text = table_of_running(jobs, self.now_ms, self.size.0);
        lines.extend(text.lines().map(str::to_owned));
        let all = look.counts.running.max(look.running.len() as u64);
        if let Some(more @ 1..) = all.checked_sub(shown as u64) {
            lines.push(cut(&format!("… and {more} more"), self.size.0));
        }
        lines
    }
}

/// Returns a bar: `[=====>    ] 12/40 ended`.
fn bar(counts: &Counts, columns: usize) -> String {
    let (ended, all) = (counts.ended(), counts.jobs);
    if all == 0 {
        return cut("no job matches yet", columns);
    }
    let words = format!("{ended}/{all} ended");
    let width = columns.saturating_sub(words.len() + 3).min(BAR_MAX);
    if width < 4 {
        return cut(&words, columns);
    }
    let done = usize::try_from(ended.saturating_mul(width as u64) / all).unwrap_or(0);
    let head = if done < width { ">" } else { "" };
    let rest = width.saturating_sub(done + head.len());
    format!("[{}{head}{}] {words}", "=".repeat(done), " ".repeat(rest))
}

/// Returns the number of jobs of each kind, and of running jobs by stage.
fn kinds(look: &Look) -> Vec<(String, Option<Hue>)> {
    let counts = &look.counts;
    let mut words = vec![(format!("{} waiting", counts.waiting), None)];
    let mut stages: Vec<(&str, usize)> = Vec::new();
    for job in &look.running {
        match stages
            .iter_mut()
            .find(|(stage, _)| *stage == job.job_stage.as_str())
        {
            Some((_, jobs)) => *jobs += 1,
            None => stages.push((job.job_stage.as_str(), 1)),
        }
    }
    let stages: Vec<String> = stages
        .into_iter()
        .filter(|(stage, _)| *stage != "running")
        .map(|(stage, jobs)| format!("{jobs} {}", harmless(stage)))
        .collect();
    let of_those = if stages.is_empty() {
        String::new()
    } else {
        format!(" ({})", stages.join(", "))
    };
    words.push((
        format!("{} on testboxes{of_those}", counts.running),
        Some(Hue::Busy),
    ));
    words.push((format!("{} succeeded", counts.succeeded), Some(Hue::Good)));
    words.push((format!("{} failed", counts.failed), Some(Hue::Bad)));
    if counts.cancelled > 0 {
        words.push((format!("{} cancelled", counts.cancelled), None));
    }
    // A count of zero has no colour.
    for (word, hue) in &mut words {
        if word.starts_with("0 ") {
            *hue = None;
        }
    }
    words
}

/// Wraps words into as few lines as possible.
fn wrapped(words: &[(String, Option<Hue>)], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut width = 0;
    for (word, hue) in words {
        let word = cut(word, columns);
        let gap = if width == 0 { 0 } else { GAP.len() };
        let shown = hue.map_or_else(|| word.clone(), |hue| hued(hue, &word));
        match lines.last_mut() {
            Some(line) if width + gap + word.width() <= columns => {
                line.push_str(GAP);
                line.push_str(&shown);
                width += gap + word.width();
            }
            _ => {
                lines.push(shown);
                width = word.width();
            }
        }
    }
    lines
}

fn table_of_running(jobs: &[JobSummary], now_ms: u64, columns: usize) -> String {
    let headings = ["job", "stage", "host", ">age", "suite", "parameters"];
    let grid = Grid::new(&headings).keep(&["host", "age", "stage", "parameters", "suite"]);
    let mut grid = grid.colour("stage", |_| Some(Hue::Busy));
    for job in jobs {
        let began = job.running_ms.or(job.dispatch_ms).unwrap_or(job.submit_ms);
        grid.row([
            job.job_id.clone(),
            job.job_stage.to_string(),
            or_dash(&job.host),
            clock::length(now_ms.saturating_sub(began)),
            or_dash(&job.suite),
            or_dash(&job.params),
        ]);
    }
    grid.render(paper(columns))
}

fn table_of_failures(
    jobs: &[JobSummary],
    now_ms: u64,
    (columns, rows): (usize, usize),
) -> Vec<String> {
    let shown = jobs.len().min(FAILURES_MAX).min(rows / 4);
    if shown == 0 {
        return Vec::new();
    }
    let headings = ["failed", "health", "host", ">ago", "suite", "parameters"];
    let grid = Grid::new(&headings).keep(&["health", "ago", "host", "parameters", "suite"]);
    let mut grid = grid.colour("health", |_| Some(Hue::Bad));
    for job in jobs.iter().take(shown) {
        grid.row([
            job.job_id.clone(),
            blamed(&job.job_health),
            or_dash(&job.host),
            clock::length(now_ms.saturating_sub(job.end_ms.unwrap_or(now_ms))),
            or_dash(&job.suite),
            or_dash(&job.params),
        ]);
    }
    let text = grid.render(paper(columns));
    let lines = text.lines().map(str::to_owned);
    std::iter::once(String::new()).chain(lines).collect()
}

fn paper(columns: usize) -> Paper {
    Paper {
        width: Some(columns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{printable::paint, watching::look::sample as job};

    fn look(running: u64, failed: u64) -> Look {
        Look {
            counts: Counts {
                jobs: 40,
                waiting: 24,
                running,
                succeeded: 16 - running - failed,
                failed,
                cancelled: 0,
                ..Counts::default()
            },
            running: (0..running)
                .map(|n| job(2_611_280_101_234_500_000 + n, "running", "unknown"))
                .collect(),
            failed: (0..failed)
                .map(|n| job(2_611_280_101_234_600_000 + n, "finish", "fail"))
                .collect(),
            requests: 5,
        }
    }

    #[test]
    fn a_page_fits_its_terminal() {
        for columns in [1, 12, 30, 80, 200] {
            for rows in [1, 2, 5, 12, 24, 60] {
                for look in [look(0, 0), look(3, 1), look(9, 7), Look::default()] {
                    let page = Page {
                        title: "fairlead watch --submit-id 0199-a --failed",
                        size: (columns, rows),
                        now_ms: 90_000,
                        remark: "q leaves; the jobs go on",
                    };
                    let lines = page.lines(&look);
                    assert_eq!(lines.len(), rows);
                    // The first column of a table names its row, so it is never cut.
                    let widest = columns.max(19);
                    for line in lines {
                        let line = paint(&line, false);
                        assert!(line.width() <= widest, "{columns}x{rows}: '{line}'");
                    }
                }
            }
        }
    }

    #[test]
    fn a_page_shows_what_there_is() {
        let page = Page {
            title: "fairlead watch --mine",
            size: (80, 24),
            now_ms: 90_000,
            remark: "q leaves; the jobs go on",
        };
        let text = paint(&page.lines(&look(9, 7)).join("\n"), false);
        for part in [
            "fairlead watch --mine\n",
            "] 7/40 ended",
            "24 waiting  9 on testboxes  0 succeeded  7 failed",
            "server-1",
            "nr_threads=4",
            "failed",
            "\nq leaves; the jobs go on",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(text.matches("fail (1)").count(), 0, "{text}");
        let many = look(14, 0);
        let small = Page {
            size: (80, 12),
            ..page
        };
        let text = paint(&small.lines(&many).join("\n"), false);
        assert!(text.contains("… and 9 more"), "{text}");
    }
}
