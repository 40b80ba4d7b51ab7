//! Draws rates by waiting jobs, by replicas and by agents, each beside Elasticsearch alone.

use std::{fs, path::Path};

use fairlead_chart::{Axis, Chart, Panel, Series, Shape, Unit};

use super::figure::{At, Figure, Rate};

/// Colours of dispatches and of submits.
const BLUE: usize = 0;
const ORANGE: usize = 1;

/// One plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plot {
    Waiting,
    Replicas,
    Agents,
}

/// Medians of fairlead or of its limit.
#[derive(Debug, PartialEq)]
struct Line {
    name: String,
    is_submits: bool,
    is_limit: bool,
    points: Vec<(f64, f64)>,
}

impl Plot {
    pub(super) const ALL: [Self; 3] = [Self::Waiting, Self::Replicas, Self::Agents];

    /// Returns the name of the horizontal axis.
    pub(super) const fn along(self) -> &'static str {
        match self {
            Self::Waiting => "jobs that wait",
            Self::Replicas => "replicas",
            Self::Agents => "agents that ask",
        }
    }

    /// Returns the name of its file, beside a report.
    pub(super) fn file(self, report: &Path) -> String {
        let by = match self {
            Self::Waiting => "waiting",
            Self::Replicas => "replicas",
            Self::Agents => "agents",
        };
        let name = report.file_stem().unwrap_or_default();
        format!("{}-{by}.svg", name.display())
    }

    /// Returns the position of a figure, if it belongs to the plot. `first` has the constant values while another value
    /// changes.
    fn place(self, at: At, first: At) -> Option<usize> {
        let is_main = matches!(at.rate, Rate::Submits) || at.rate == first.rate;
        match (self, at.rate) {
            (Self::Waiting, _) if is_main && at.replicas == first.replicas => Some(at.waiting),
            (Self::Replicas, _) if is_main && at.waiting == first.waiting => {
                Some(at.replicas.into())
            }
            (Self::Agents, Rate::Dispatches(agents)) => {
                let same = (at.waiting, at.replicas) == (first.waiting, first.replicas);
                same.then_some(agents)
            }
            _ => None,
        }
    }

    fn lines(self, figures: &[Figure], first: At) -> Vec<Line> {
        let mut lines = Vec::new();
        for (is_submits, rate) in [(false, "dispatches"), (true, "submits, 100 a request")] {
            for (is_limit, who) in [(false, "fairlead"), (true, "Elasticsearch alone")] {
                let points = figures.iter().filter_map(|figure| {
                    let at = figure.at?;
                    let place = self.place(at, first)?;
                    let series = if is_limit {
                        &figure.limit
                    } else {
                        &figure.ours
                    };
                    let point = (f64::from(u32::try_from(place).ok()?), series.median());
                    ((at.rate == Rate::Submits) == is_submits).then_some(point)
                });
                let points: Vec<(f64, f64)> = points.collect();
                if !points.is_empty() {
                    lines.push(Line {
                        name: format!("{rate}, {who}"),
                        is_submits,
                        is_limit,
                        points,
                    });
                }
            }
        }
        lines
    }

    fn draw(self, lines: &[Line]) -> String {
        let series = lines.iter().map(|line| Series {
            name: line.name.replace(", ", ",\n"),
            shape: if line.is_limit {
                Shape::Dashed
            } else {
                Shape::Marked
            },
            colour: if line.is_submits { ORANGE } else { BLUE },
            points: line.points.clone(),
        });
        let panel = Panel {
            title: String::new(),
            x: Axis::log(self.along(), Unit::Number),
            y: Axis::linear("a second", Unit::Number),
            series: series.collect(),
        };
        let chart = Chart {
            title: String::new(),
            panels: vec![panel],
        };
        chart.svg()
    }
}

/// Draws all plots with more than one point beside this report, and returns them. `first` has the smallest measured
/// value of each.
pub(super) fn draw_all(report: &Path, figures: &[Figure], first: At) -> anyhow::Result<Vec<Plot>> {
    let mut drawn = Vec::new();
    for plot in Plot::ALL {
        let lines = plot.lines(figures, first);
        if lines.iter().any(|line| line.points.len() > 1) {
            fs::write(report.with_file_name(plot.file(report)), plot.draw(&lines))?;
            drawn.push(plot);
        }
    }
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::{super::figure::Goal, *};

    const FIRST: At = At {
        rate: Rate::Dispatches(64),
        waiting: 1_000,
        replicas: 1,
    };

    fn figure(at: At, ours: f64, limit: f64) -> Figure {
        let mut figure = Figure::new("a rate", "a limit", Goal::None).drawn(at);
        figure.push(ours, limit);
        figure
    }

    #[test]
    fn each_figure_is_drawn_where_it_belongs() {
        let many = At {
            waiting: 9_000,
            ..FIRST
        };
        let four = At {
            replicas: 4,
            ..FIRST
        };
        let of_rate = |rate| At { rate, ..FIRST };
        let figures = [
            figure(FIRST, 8.0, 10.0),
            figure(many, 7.0, 11.0),
            figure(four, 6.0, 12.0),
            figure(of_rate(Rate::Dispatches(1)), 1.0, 2.0),
            figure(of_rate(Rate::Submits), 5.0, 9.0),
        ];
        let points = |plot: Plot| -> Vec<Vec<(f64, f64)>> {
            let lines = plot.lines(&figures, FIRST);
            lines.into_iter().map(|line| line.points).collect()
        };
        let submits = [vec![(1_000.0, 5.0)], vec![(1_000.0, 9.0)]];
        assert_eq!(
            points(Plot::Waiting),
            [
                vec![(1_000.0, 8.0), (9_000.0, 7.0)],
                vec![(1_000.0, 10.0), (9_000.0, 11.0)],
                submits[0].clone(),
                submits[1].clone(),
            ]
        );
        assert_eq!(
            points(Plot::Replicas)[0],
            [(1.0, 8.0), (4.0, 6.0)],
            "only the least number of waiting jobs"
        );
        assert_eq!(
            points(Plot::Agents),
            [
                vec![(64.0, 8.0), (1.0, 1.0)],
                vec![(64.0, 10.0), (1.0, 2.0)]
            ]
        );
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("fast.md");
        assert_eq!(draw_all(&report, &figures, FIRST).unwrap(), Plot::ALL);
        for (by, plot) in ["waiting", "replicas", "agents"].into_iter().zip(Plot::ALL) {
            let name = format!("fast-{by}.svg");
            let drawn = fs::read_to_string(folder.path().join(name)).unwrap();
            let ends = drawn.trim_end().ends_with("</svg>");
            assert!(drawn.contains(plot.along()) && ends, "{drawn}");
            assert!(drawn.contains("Elasticsearch alone"), "{drawn}");
        }
        assert_eq!(
            draw_all(&report, &figures[..2], FIRST).unwrap(),
            [Plot::Waiting]
        );
    }
}
