//! Charts of replays: waits, shares, and machines over time.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_chart::{Axis, Chart, Panel, Scale, Series, Shape, Unit};

use crate::{
    Course, Outcome, Sample, Scaled,
    bins::{Levels, Means, PARTS, Time, at_most},
    ran::Ran,
};

/// Maximum number of accounts with a line or an area of their own: those with the largest use. The others are combined.
const ACCOUNTS_MAX: usize = 6;
const BLUE: usize = 0;
const ORANGE: usize = 1;
const YELLOW: usize = 7;
/// Colour of the combined others.
const GREY: usize = 8;

/// One replay, beside others in a chart.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// Name of the replay.
    pub name: String,
    /// Jobs with their start and run time.
    pub ran: &'a [Ran],
}

/// Returns the jobs of a trace for [`waits`]: units and start.
pub fn of_trace(outcomes: &[Outcome]) -> Vec<Ran> {
    let mut names: BTreeMap<u64, Arc<str>> = BTreeMap::new();
    let ran = outcomes.iter().map(|outcome| {
        let job = &outcome.job;
        let name = names.entry(job.user);
        Ran {
            submit_ms: job.submit_s * 1_000,
            start_ms: outcome.start_s * 1_000,
            run_ms: job.run_s * 1_000,
            amount: f64::from(job.units),
            account: Arc::clone(name.or_insert_with(|| format!("user {}", job.user).into())),
            queue: Arc::from(""),
            class: 0,
        }
    });
    ran.collect()
}

/// Returns a chart of waits and shares of each run: over time, by class and by account. `units` names the resource that
/// jobs take, such as processors.
pub fn waits(title: &str, runs: &[Run<'_>], units: &str) -> Chart {
    let all = || runs.iter().flat_map(|run| run.ran);
    let from_ms = all().map(|ran| ran.submit_ms).min().unwrap_or(0);
    let to_ms = all().map(Ran::end_ms).max().unwrap_or(1);
    let time = Time::new(from_ms, to_ms, PARTS);
    let accounts = largest(runs.first().map_or(&[][..], |run| run.ran));
    let mut panels = vec![waits_over_time(runs, time), waits_of_runs(runs)];
    for run in runs {
        panels.extend(waits_by_class(run));
    }
    for run in runs {
        panels.push(waits_by_account(run, &accounts));
    }
    let mut most = 0.0_f64;
    let mut shares = Vec::new();
    for run in runs {
        let series = shares_of_accounts(run, &accounts, time);
        most = most.max(top(&series));
        let title = format!("{}: {units} in use, by account", run.name);
        let up = Axis::linear(units, Unit::Number);
        shares.push(over_time(title, up, series));
    }
    for panel in &mut shares {
        panel.y.reaches = most;
    }
    panels.extend(shares);
    align(&mut panels);
    Chart {
        title: title.to_owned(),
        panels,
    }
}

/// Returns a chart of each law's machines over time, with the waiting shards and their waits.
pub fn machines(title: &str, laws: &[(String, &Scaled, &Course)]) -> Chart {
    let samples = || laws.iter().flat_map(|(_, _, course)| &course.samples);
    let from_ms = samples().map(|sample| sample.at_ms).min().unwrap_or(0);
    let to_ms = samples().map(|sample| sample.at_ms).max().unwrap_or(1);
    let time = Time::new(from_ms, to_ms, PARTS);
    let mut panels = Vec::new();
    let mut most = 0.0_f64;
    for (name, figures, course) in laws {
        let series = machines_of(figures, course, time);
        most = most.max(top(&series));
        let title = format!("{name}: machines, {:.0} hours", figures.machine_hours);
        let up = Axis::linear("machines", Unit::Number);
        panels.push(over_time(title, up, series));
    }
    for panel in &mut panels {
        panel.y.reaches = most;
    }
    let waiting = laws.iter().enumerate().map(|(n, (name, _, course))| {
        let points = means(course, time, |sample| sample.waiting);
        line(name.clone(), n, points)
    });
    panels.push(over_time(
        "Shards that wait".to_owned(),
        Axis::linear("shards", Unit::Number),
        waiting.collect(),
    ));
    let waited = laws.iter().enumerate().map(|(n, (name, figures, course))| {
        let name = format!("{name}\n95 %: {:.0} s", figures.p95_s);
        line(name, n, at_most(&course.waits_ms))
    });
    panels.push(distribution(
        "Shards that waited at most so long".to_owned(),
        waited.collect(),
    ));
    align(&mut panels);
    Chart {
        title: title.to_owned(),
        panels,
    }
}

/// Returns the machines of a law by activity.
fn machines_of(figures: &Scaled, course: &Course, time: Time) -> Vec<Series> {
    let area = |name: String, colour: usize, count: fn(&Sample) -> u32| Series {
        name,
        shape: Shape::Area,
        colour,
        points: means(course, time, count),
    };
    let busy = format!("busy\n{:.0} hours", figures.busy_hours);
    let booting = format!("booting\n{} launches", figures.launches);
    vec![
        area(busy, BLUE, |sample| sample.busy),
        area("idle".to_owned(), YELLOW, |sample| sample.idle),
        area(booting, ORANGE, |sample| sample.booting),
    ]
}

/// Returns the mean of a count in each bin of the time.
fn means(course: &Course, time: Time, count: fn(&Sample) -> u32) -> Vec<(f64, f64)> {
    let mut means = Means::new(time);
    for sample in &course.samples {
        means.note(sample.at_ms, f64::from(count(sample)));
    }
    means.points()
}

/// Returns the accounts with the largest use, in descending order.
fn largest(ran: &[Ran]) -> Vec<Arc<str>> {
    let mut used: BTreeMap<&Arc<str>, f64> = BTreeMap::new();
    for one in ran {
        *used.entry(&one.account).or_default() += one.used();
    }
    let mut used: Vec<_> = used.into_iter().collect();
    used.sort_by(|a, b| b.1.total_cmp(&a.1));
    let names = used.into_iter().take(ACCOUNTS_MAX);
    names.map(|(name, _)| Arc::clone(name)).collect()
}

/// Returns the index of an account among the largest. The next index stands for all others.
fn place(accounts: &[Arc<str>], of: &Ran) -> usize {
    let place = accounts.iter().position(|name| *name == of.account);
    place.unwrap_or(accounts.len())
}

fn account_name(accounts: &[Arc<str>], place: usize) -> String {
    let name = accounts.get(place).map(ToString::to_string);
    name.unwrap_or_else(|| "all others".to_owned())
}

fn account_colour(accounts: &[Arc<str>], place: usize) -> usize {
    if place < accounts.len() { place } else { GREY }
}

fn waits_over_time(runs: &[Run<'_>], time: Time) -> Panel {
    let lines = runs.iter().enumerate().map(|(n, run)| {
        let mut means = Means::new(time);
        for ran in run.ran {
            means.note(ran.submit_ms, ran.wait_s());
        }
        line(in_lines(&run.name), n, means.points())
    });
    over_time(
        "Mean wait, by the time of the submit".to_owned(),
        Axis::linear("wait", Unit::Seconds),
        lines.collect(),
    )
}

fn waits_of_runs(runs: &[Run<'_>]) -> Panel {
    let lines = runs.iter().enumerate();
    let lines = lines.map(|(n, run)| line(in_lines(&run.name), n, waited(run.ran.iter())));
    distribution(
        "Jobs that waited at most so long".to_owned(),
        lines.collect(),
    )
}

/// Returns the waits by class. `None`: all jobs are of one class.
fn waits_by_class(run: &Run<'_>) -> Option<Panel> {
    let mut classes: Vec<u8> = run.ran.iter().map(|ran| ran.class).collect();
    classes.sort_unstable_by(|a, b| b.cmp(a));
    classes.dedup();
    let lines = classes.iter().enumerate().map(|(n, class)| {
        let of = run.ran.iter().filter(|ran| ran.class == *class);
        line(format!("class {class}"), n, waited(of))
    });
    let title = format!("{}: waits by class", run.name);
    (classes.len() > 1).then(|| distribution(title, lines.collect()))
}

fn waits_by_account(run: &Run<'_>, accounts: &[Arc<str>]) -> Panel {
    let lines = (0..=accounts.len()).map(|one| {
        let of = run.ran.iter().filter(|ran| place(accounts, ran) == one);
        let colour = account_colour(accounts, one);
        line(account_name(accounts, one), colour, waited(of))
    });
    let lines = lines.filter(|line| !line.points.is_empty());
    distribution(format!("{}: waits by account", run.name), lines.collect())
}

fn shares_of_accounts(run: &Run<'_>, accounts: &[Arc<str>], time: Time) -> Vec<Series> {
    let mut levels = vec![Levels::new(time); accounts.len() + 1];
    let mut is_used = vec![false; accounts.len() + 1];
    for ran in run.ran {
        let one = place(accounts, ran);
        if let (Some(level), Some(is_used)) = (levels.get_mut(one), is_used.get_mut(one)) {
            level.add(ran.start_ms, ran.end_ms(), ran.amount);
            *is_used = true;
        }
    }
    let used = levels.iter().enumerate().zip(is_used);
    let areas = used.filter(|(_, is_used)| *is_used);
    let areas = areas.map(|((one, level), _)| Series {
        name: account_name(accounts, one),
        shape: Shape::Area,
        colour: account_colour(accounts, one),
        points: level.points(),
    });
    areas.collect()
}

/// Returns the height of the stacked areas.
fn top(areas: &[Series]) -> f64 {
    let points = areas.iter().map(|area| area.points.len()).max();
    let heights = (0..points.unwrap_or(0)).map(|n| {
        let values = areas.iter().filter_map(|area| area.points.get(n));
        values.map(|point| point.1).sum()
    });
    heights.fold(0.0, f64::max)
}

/// Gives equal axes of a chart equal ranges. Lines of distributions that reached 100 % stay there.
fn align(panels: &mut [Panel]) {
    for scale in [Scale::Linear, Scale::Log] {
        let same = panels.iter().filter(|panel| panel.x.scale == scale);
        let points = same.flat_map(|panel| panel.series.iter().flat_map(|line| &line.points));
        let last = points.map(|point| point.0).fold(0.0, f64::max);
        for panel in panels.iter_mut().filter(|panel| panel.x.scale == scale) {
            panel.x.reaches = last;
            for line in panel.series.iter_mut().filter(|_| scale == Scale::Log) {
                if let Some((_, percent)) = line.points.last().copied().filter(|end| end.0 < last) {
                    line.points.push((last, percent));
                }
            }
        }
    }
}

/// Breaks a name into lines for a narrow legend.
fn in_lines(name: &str) -> String {
    name.replace(", ", "\n")
}

fn waited<'a>(ran: impl Iterator<Item = &'a Ran>) -> Vec<(f64, f64)> {
    let mut waits_ms: Vec<u64> = ran.map(Ran::wait_ms).collect();
    waits_ms.sort_unstable();
    at_most(&waits_ms)
}

fn line(name: String, colour: usize, points: Vec<(f64, f64)>) -> Series {
    Series {
        name,
        shape: Shape::Line,
        colour,
        points,
    }
}

fn over_time(title: String, y: Axis, series: Vec<Series>) -> Panel {
    Panel {
        title,
        x: Axis::linear("time", Unit::Seconds),
        y,
        series,
    }
}

fn distribution(title: String, series: Vec<Series>) -> Panel {
    Panel {
        title,
        x: Axis::log("wait", Unit::Seconds),
        y: Axis::linear("share", Unit::Percent),
        series,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(account: &str, class: u8, submit_ms: u64, start_ms: u64) -> Ran {
        Ran {
            submit_ms,
            start_ms,
            run_ms: 60_000,
            amount: 0.5,
            account: Arc::from(account),
            queue: Arc::from("q"),
            class,
        }
    }

    #[test]
    fn each_run_has_its_panels() {
        let mut all = vec![ran("vip", 9, 0, 0)];
        all.extend((0..20).map(|n| ran(&format!("a{n}"), 3, n * 1_000, n * 60_000)));
        let run = |name: &str| Run {
            name: name.to_owned(),
            ran: &all,
        };
        let chart = waits("A day", &[run("now"), run("other")], "hosts");
        let titles: Vec<&str> = chart
            .panels
            .iter()
            .map(|panel| panel.title.as_str())
            .collect();
        assert_eq!(
            titles,
            [
                "Mean wait, by the time of the submit",
                "Jobs that waited at most so long",
                "now: waits by class",
                "other: waits by class",
                "now: waits by account",
                "other: waits by account",
                "now: hosts in use, by account",
                "other: hosts in use, by account",
            ]
        );
        let shares = &chart.panels[7].series;
        assert_eq!(shares.len(), ACCOUNTS_MAX + 1);
        assert!(chart.panels[2].x.reaches >= 1_140.0);
        let ends = chart.panels[1..6].iter().flat_map(|panel| &panel.series);
        let last = |line: &Series| line.points.last().copied();
        for end in ends.filter_map(last) {
            assert_eq!(end, (chart.panels[2].x.reaches, 100.0));
        }
        let names: Vec<&str> = shares.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names.last(), Some(&"all others"));
        assert!(shares.iter().all(|series| series.points.len() == PARTS));
        // Half of a host is in use at a time, because one job follows the other.
        assert!((chart.panels[7].y.reaches - 1.0).abs() < 0.3, "{chart:?}");
        let one = [ran("a", 3, 0, 0)];
        let run = Run {
            name: "now".to_owned(),
            ran: &one,
        };
        assert_eq!(waits("", &[run], "hosts").panels.len(), 4);
        assert!(waits("", &[], "hosts").svg().contains("</svg>"));
    }
}
