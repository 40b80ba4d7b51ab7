//! Draws rates by waiting jobs, by replicas and by agents, each beside Elasticsearch alone.

use std::{fs, path::Path};

use plotters::{
    prelude::{
        ChartBuilder, DashedLineSeries, IntoDrawingArea, IntoLogRange, LineSeries, PathElement,
        SVGBackend,
    },
    style::{BLACK, Color, RGBColor, WHITE},
};

use super::figure::{At, Figure, Rate};

const SIZE: (u32, u32) = (720, 420);
const WIDTH: u32 = 2;
/// Elasticsearch alone is drawn with dashes of this length, and gaps of as much.
const DASH: u32 = 6;
/// Length of a line in the legend.
const SWATCH: i32 = 24;
const BLUE: RGBColor = RGBColor(31, 119, 180);
const ORANGE: RGBColor = RGBColor(217, 95, 2);

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

    /// What changes along it.
    pub(super) const fn along(self) -> &'static str {
        match self {
            Self::Waiting => "jobs that wait",
            Self::Replicas => "replicas",
            Self::Agents => "agents that ask",
        }
    }

    /// The name of its file, beside a report.
    pub(super) fn file(self, report: &Path) -> String {
        let by = match self {
            Self::Waiting => "waiting",
            Self::Replicas => "replicas",
            Self::Agents => "agents",
        };
        let name = report.file_stem().unwrap_or_default();
        format!("{}-{by}.svg", name.display())
    }

    /// Where a figure lies along it, if it belongs to it. `first` has what is there while another thing changes.
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

    fn draw(self, lines: &[Line]) -> anyhow::Result<String> {
        let points = || lines.iter().flat_map(|line| &line.points);
        let least = points().map(|point| point.0).fold(f64::MAX, f64::min);
        let most = points().map(|point| point.0).fold(least, f64::max);
        let top = points().map(|point| point.1).fold(1.0, f64::max) * 1.1;
        let mut text = String::new();
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(70)
            .build_cartesian_2d((least..most * 1.05).log_scale(), 0.0..top)?;
        chart
            .configure_mesh()
            .x_desc(self.along())
            .y_desc("a second")
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y:.0}"))
            .draw()?;
        for line in lines {
            let colour = if line.is_submits { ORANGE } else { BLUE };
            let (style, points) = (colour.stroke_width(WIDTH), line.points.iter().copied());
            let drawn = if line.is_limit {
                chart.draw_series(DashedLineSeries::new(points, DASH, DASH, style))?
            } else {
                chart.draw_series(LineSeries::new(points, style).point_size(WIDTH))?
            };
            let shade = if line.is_limit { 0.4 } else { 1.0 };
            drawn.label(&line.name).legend(move |(x, y)| {
                PathElement::new(
                    [(x, y), (x + SWATCH, y)],
                    colour.mix(shade).stroke_width(WIDTH),
                )
            });
        }
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK)
            .draw()?;
        area.present()?;
        drop(chart);
        drop(area);
        Ok(text)
    }
}

/// Draws beside this report all that has more than one point, and answers which those are. `first`: the least of each
/// that was measured.
pub(super) fn draw_all(report: &Path, figures: &[Figure], first: At) -> anyhow::Result<Vec<Plot>> {
    let mut drawn = Vec::new();
    for plot in Plot::ALL {
        let lines = plot.lines(figures, first);
        if lines.iter().any(|line| line.points.len() > 1) {
            fs::write(report.with_file_name(plot.file(report)), plot.draw(&lines)?)?;
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
            assert!(drawn.contains("dispatches, Elasticsearch alone"));
        }
        assert_eq!(
            draw_all(&report, &figures[..2], FIRST).unwrap(),
            [Plot::Waiting]
        );
    }
}
