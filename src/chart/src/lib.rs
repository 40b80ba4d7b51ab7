//! Charts as SVG text: panels below each other, with lines and stacked areas, and a legend beside each panel.
//!
//! It has no clock, no files and no randomness: the same chart gives the same text. Entry point: [`Chart::svg`].
#![forbid(unsafe_code)]

mod draw;
mod scale;

/// A chart: panels below each other, each with the same width.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chart {
    /// What it shows, above all panels; empty: nothing is written there.
    pub title: String,
    /// Its panels, from above.
    pub panels: Vec<Panel>,
}

/// One panel with two axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// What it shows, above it; empty: nothing is written there.
    pub title: String,
    /// Its horizontal axis.
    pub x: Axis,
    /// Its vertical axis. A linear one begins at 0.
    pub y: Axis,
    /// What is drawn. Areas are stacked in this order, the first at the bottom.
    pub series: Vec<Series>,
}

/// An axis. Its range holds all points.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it measures.
    pub label: String,
    /// How values lie along it.
    pub scale: Scale,
    /// How its values are written.
    pub unit: Unit,
    /// It reaches at least to this value, so that panels can be compared; 0: as far as its points.
    pub reaches: f64,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str, unit: Unit) -> Self {
        Self {
            label: label.to_owned(),
            scale: Scale::Linear,
            unit,
            reaches: 0.0,
        }
    }

    /// A logarithmic axis.
    pub fn log(label: &str, unit: Unit) -> Self {
        Self {
            scale: Scale::Log,
            ..Self::linear(label, unit)
        }
    }
}

/// How values lie along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart. Values of 0 and less lie at its begin.
    Log,
}

/// How values of an axis are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// As a number.
    Number,
    /// As a number with `%`.
    Percent,
    /// Seconds, written as seconds, minutes, hours or days.
    Seconds,
}

/// A line or an area.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend; a line feed begins another line there.
    pub name: String,
    /// How it is drawn.
    pub shape: Shape,
    /// Which of the colours: equal numbers are equal colours.
    pub colour: usize,
    /// Its points, by their `x`. Areas of a panel must have the same `x`, each.
    pub points: Vec<(f64, f64)>,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A line.
    Line,
    /// A line with a mark at each point.
    Marked,
    /// A line of dashes.
    Dashed,
    /// An area, stacked on those before it.
    Area,
}
