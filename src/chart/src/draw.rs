//! Draws a chart as SVG text.

use std::fmt::{self, Display, Formatter, Write};

use crate::{
    Chart, Panel, Series, Shape,
    scale::{Range, written},
};

/// Width of the chart, pixels.
const WIDTH: f64 = 960.0;
/// Width of the legend, pixels.
const LEGEND: f64 = 230.0;
/// Room for the values and the name of the vertical axis, pixels.
const LEFT: f64 = 78.0;
/// Height of a panel between its axes, pixels.
const HEIGHT: f64 = 220.0;
/// Room above a panel, for its title.
const ABOVE: f64 = 32.0;
/// Room below a panel, for its values and the name of the axis.
const BELOW: f64 = 48.0;
/// Room for the title of the chart.
const TITLE: f64 = 34.0;
/// Height of a line of the legend.
const LINE: f64 = 16.0;
const COLOURS: [&str; 9] = [
    "#1f77b4", "#d95f02", "#1b9e77", "#7570b3", "#e7298a", "#66a61e", "#a6761d", "#d6b300",
    "#888888",
];

impl Chart {
    /// Returns the chart as an SVG document.
    pub fn svg(&self) -> String {
        let top = if self.title.is_empty() { 0.0 } else { TITLE };
        let each = ABOVE + HEIGHT + BELOW;
        let height = self.panels.iter().fold(top, |height, _| height + each);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n"
        );
        let mut drawing = Drawing(&mut text);
        if !self.title.is_empty() {
            let title = Escaped(&self.title);
            drawing.line(format_args!("<title>{title}</title>"));
        }
        drawing.line(format_args!(
            "<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>"
        ));
        if !self.title.is_empty() {
            let title = Escaped(&self.title);
            drawing.line(format_args!(
                "<text x=\"{LEFT}\" y=\"24\" font-size=\"16\" font-weight=\"bold\">{title}</text>"
            ));
        }
        let mut y = top;
        for panel in &self.panels {
            drawing.panel(panel, y + ABOVE);
            y += each;
        }
        text.push_str("</svg>\n");
        text
    }
}

/// The text so far. Writing to a text never fails.
struct Drawing<'t>(&'t mut String);

impl Drawing<'_> {
    fn line(&mut self, line: fmt::Arguments<'_>) {
        let _ = writeln!(self.0, "{line}");
    }

    fn panel(&mut self, panel: &Panel, top: f64) {
        let width = WIDTH - LEFT - LEGEND - 20.0;
        let stacks = stacks(&panel.series);
        let xs = panel.series.iter().flat_map(|series| &series.points);
        let x = Range::of(&panel.x, xs.map(|point| point.0), false, width);
        let ys = stacks.iter().flatten().map(|point| point.2);
        let y = Range::of(&panel.y, ys, true, HEIGHT);
        self.line(format_args!("<g transform=\"translate({LEFT} {top})\">"));
        let title = Escaped(&panel.title);
        if !panel.title.is_empty() {
            self.line(format_args!(
                "<text y=\"-10\" font-weight=\"bold\">{title}</text>"
            ));
        }
        self.axes(panel, x, y, width);
        // Areas are below lines.
        let drawn = || panel.series.iter().zip(&stacks);
        for (series, points) in drawn().filter(|(series, _)| series.shape == Shape::Area) {
            self.area(series, points, x, y);
        }
        for (series, points) in drawn().filter(|(series, _)| series.shape != Shape::Area) {
            self.curve(series, points, x, y);
        }
        self.legend(&panel.series, width + 18.0);
        self.line(format_args!("</g>"));
    }

    fn axes(&mut self, panel: &Panel, x: Range, y: Range, width: f64) {
        let mut grid = String::new();
        let mut words = String::new();
        for tick in y.ticks(panel.y.unit) {
            let at = Short(HEIGHT - y.place(tick));
            let word = written(tick, panel.y.unit);
            let _ = write!(grid, "M0 {at}h{width}");
            let _ = write!(
                words,
                "<text x=\"-6\" y=\"{at}\" dy=\"4\" text-anchor=\"end\">{word}</text>"
            );
        }
        for tick in x.ticks(panel.x.unit) {
            let at = Short(x.place(tick));
            let word = written(tick, panel.x.unit);
            let _ = write!(grid, "M{at} 0v{HEIGHT}");
            let _ = write!(
                words,
                "<text x=\"{at}\" y=\"{}\" text-anchor=\"middle\">{word}</text>",
                HEIGHT + 16.0
            );
        }
        self.line(format_args!(
            "<path d=\"{grid}\" stroke=\"#ddd\" fill=\"none\"/>"
        ));
        self.line(format_args!("<g fill=\"#444\">{words}</g>"));
        self.line(format_args!(
            "<path d=\"M0 0V{HEIGHT}H{width}\" stroke=\"#444\" fill=\"none\"/>"
        ));
        let (along, up) = (Escaped(&panel.x.label), Escaped(&panel.y.label));
        let (middle, below) = (width / 2.0, HEIGHT + 34.0);
        self.line(format_args!(
            "<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">{along}</text>"
        ));
        let middle = HEIGHT / 2.0;
        self.line(format_args!(
            "<text transform=\"translate(-62 {middle}) rotate(-90)\" text-anchor=\"middle\">{up}</text>"
        ));
    }

    fn area(&mut self, series: &Series, points: &[Stacked], x: Range, y: Range) {
        let place = |at: f64, value: f64| (x.place(at), HEIGHT - y.place(value));
        let above = points.iter().map(|(at, _, high)| place(*at, *high));
        let below = points.iter().rev().map(|(at, low, _)| place(*at, *low));
        let outline = Path(above.chain(below).collect());
        let colour = colour(series);
        self.line(format_args!(
            "<path d=\"{outline}z\" fill=\"{colour}\" fill-opacity=\"0.75\"/>"
        ));
    }

    fn curve(&mut self, series: &Series, points: &[Stacked], x: Range, y: Range) {
        let place = |(at, _, high): &Stacked| (x.place(*at), HEIGHT - y.place(*high));
        let path = Path(points.iter().map(place).collect());
        let (colour, dashes) = (colour(series), dashes(series));
        self.line(format_args!(
            "<path d=\"{path}\" stroke=\"{colour}\" stroke-width=\"1.8\" fill=\"none\"{dashes}/>"
        ));
        if series.shape == Shape::Marked {
            for (at, up) in path.0 {
                let (at, up) = (Short(at), Short(up));
                self.line(format_args!(
                    "<circle cx=\"{at}\" cy=\"{up}\" r=\"2.5\" fill=\"{colour}\"/>"
                ));
            }
        }
    }

    /// Draws the names, the uppermost area first.
    fn legend(&mut self, series: &[Series], left: f64) {
        let areas = series.iter().rev().filter(|one| one.shape == Shape::Area);
        let lines = series.iter().filter(|one| one.shape != Shape::Area);
        let mut y = 10.0;
        for one in lines.chain(areas) {
            let (colour, dashes) = (colour(one), dashes(one));
            let middle = y - 4.0;
            let swatch = if one.shape == Shape::Area { 10 } else { 3 };
            self.line(format_args!(
                "<path d=\"M{left} {middle}h20\" stroke=\"{colour}\" stroke-width=\"{swatch}\"{dashes}/>"
            ));
            for word in one.name.lines() {
                let (word, x) = (Escaped(word), left + 27.0);
                self.line(format_args!("<text x=\"{x}\" y=\"{y}\">{word}</text>"));
                y += LINE;
            }
        }
    }
}

/// A point: its `x`, and its lower and upper `y`.
type Stacked = (f64, f64, f64);

/// Returns the points of each series, with areas stacked.
fn stacks(all: &[Series]) -> Vec<Vec<Stacked>> {
    let mut tops: Vec<f64> = Vec::new();
    let mut stacks = Vec::with_capacity(all.len());
    for series in all {
        let is_area = series.shape == Shape::Area;
        tops.resize(tops.len().max(series.points.len()), 0.0);
        let place = |((at, value), top): (&(f64, f64), &mut f64)| {
            let low = if is_area { *top } else { 0.0 };
            if is_area {
                *top += value;
            }
            (*at, low, low + value)
        };
        stacks.push(series.points.iter().zip(&mut tops).map(place).collect());
    }
    stacks
}

fn colour(series: &Series) -> &'static str {
    let colour = COLOURS.get(series.colour % COLOURS.len());
    colour.copied().unwrap_or("#000")
}

fn dashes(series: &Series) -> &'static str {
    if series.shape == Shape::Dashed {
        " stroke-dasharray=\"6 4\""
    } else {
        ""
    }
}

/// A coordinate with one decimal digit, which is left out if it is 0.
struct Short(f64);

impl Display for Short {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = format!("{:.1}", self.0);
        f.write_str(text.strip_suffix(".0").unwrap_or(&text))
    }
}

/// Points of a path. Points inside a level stretch are left out.
struct Path(Vec<(f64, f64)>);

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (n, (x, y)) in self.0.iter().enumerate() {
            let level =
                |other: Option<&(f64, f64)>| other.is_some_and(|other| (other.1 - y).abs() < 0.05);
            let before = n.checked_sub(1).and_then(|before| self.0.get(before));
            if level(before) && level(self.0.get(n + 1)) {
                continue;
            }
            let letter = if n == 0 { "M" } else { "L" };
            write!(f, "{letter}{} {}", Short(*x), Short(*y))?;
        }
        Ok(())
    }
}

/// Text escaped for SVG.
struct Escaped<'t>(&'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                letter if letter.is_control() => f.write_char(' ')?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Unit};

    fn series(name: &str, shape: Shape, points: &[(f64, f64)]) -> Series {
        Series {
            name: name.to_owned(),
            shape,
            colour: 0,
            points: points.to_vec(),
        }
    }

    fn panel(series: Vec<Series>) -> Panel {
        Panel {
            title: "Machines".to_owned(),
            x: Axis::linear("time", Unit::Seconds),
            y: Axis::linear("machines", Unit::Number),
            series,
        }
    }

    #[test]
    fn areas_lie_upon_each_other_and_lines_on_the_axis() {
        let all = [
            series("busy", Shape::Area, &[(0.0, 1.0), (1.0, 2.0)]),
            series("waiting", Shape::Line, &[(0.0, 9.0), (1.0, 9.0)]),
            series("idle", Shape::Area, &[(0.0, 3.0), (1.0, 4.0)]),
        ];
        let stacks = stacks(&all);
        assert_eq!(stacks[0], [(0.0, 0.0, 1.0), (1.0, 0.0, 2.0)]);
        assert_eq!(stacks[1], [(0.0, 0.0, 9.0), (1.0, 0.0, 9.0)]);
        assert_eq!(stacks[2], [(0.0, 1.0, 4.0), (1.0, 2.0, 6.0)]);
    }

    #[test]
    fn a_chart_is_a_document_with_its_words() {
        let lines = vec![
            series(
                "a <b> & \"c\"\nmore\u{1b}",
                Shape::Marked,
                &[(0.0, 1.0), (60.0, 2.0)],
            ),
            series("d", Shape::Dashed, &[(0.0, 1.0), (60.0, 2.0)]),
        ];
        let chart = Chart {
            title: "A day".to_owned(),
            panels: vec![panel(lines), panel(Vec::new())],
        };
        let svg = chart.svg();
        assert!(
            svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
        for word in [
            "<title>A day</title>",
            "a &lt;b&gt; &amp; &quot;c&quot;<",
            ">more <",
            "stroke-dasharray",
            "<circle",
            ">1 min<",
        ] {
            assert!(svg.contains(word), "{word}: {svg}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(svg.matches("<g transform").count(), 2);
        assert_eq!(chart.svg(), svg);
    }

    #[test]
    fn level_stretches_are_short() {
        let flat = Path((0..100).map(|n| (f64::from(n), 5.0)).collect());
        assert_eq!(flat.to_string(), "M0 5L99 5");
        let bend = Path(vec![(0.0, 0.0), (1.0, 0.0), (2.0, 3.25)]);
        assert_eq!(bend.to_string(), "M0 0L1 0L2 3.2");
    }
}
