//! Charts as SVG text: panels below each other, with lines and stacked areas, and a legend beside each panel.
//!
//! It has no clock, no files and no randomness: the same chart gives the same text. Entry point: [`Chart::svg`].
#![forbid(unsafe_code)]

mod draw;
mod scale;

/// A chart: panels below each other, each with the same width.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chart {
    /// Title above all panels. Empty: none.
    pub title: String,
    /// Panels, from top to bottom.
    pub panels: Vec<Panel>,
}

/// One panel with two axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// Title above the panel. Empty: none.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis. A linear one begins at 0.
    pub y: Axis,
    /// Lines and areas. Areas are stacked in this order, the first at the bottom.
    pub series: Vec<Series>,
}

/// An axis. Its range contains all points.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Name of the measured quantity.
    pub label: String,
    /// Scale of the axis.
    pub scale: Scale,
    /// Unit of its values.
    pub unit: Unit,
    /// Minimum upper end of the axis, so that panels can be compared. 0: the largest point.
    pub reaches: f64,
}

impl Axis {
    /// Returns a linear axis.
    pub fn linear(label: &str, unit: Unit) -> Self {
        Self {
            label: label.to_owned(),
            scale: Scale::Linear,
            unit,
            reaches: 0.0,
        }
    }

    /// Returns a logarithmic axis.
    pub fn log(label: &str, unit: Unit) -> Self {
        Self {
            scale: Scale::Log,
            ..Self::linear(label, unit)
        }
    }
}

/// Scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences have equal distances.
    Linear,
    /// Equal ratios have equal distances. Values of 0 and less lie at the start.
    Log,
}

/// Unit in which values of an axis are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Number without a unit.
    Number,
    /// Number with `%`.
    Percent,
    /// Seconds, written as seconds, minutes, hours or days.
    Seconds,
}

/// A line or an area.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend. A line feed begins another line there.
    pub name: String,
    /// Form in which it is drawn.
    pub shape: Shape,
    /// Number of its colour. Equal numbers are equal colours.
    pub colour: usize,
    /// Points, by their `x`. All areas of a panel must have the same `x` values.
    pub points: Vec<(f64, f64)>,
}

/// Form in which a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A line.
    Line,
    /// A line with a mark at each point.
    Marked,
    /// A dashed line.
    Dashed,
    /// An area, stacked on the previous ones.
    Area,
}
