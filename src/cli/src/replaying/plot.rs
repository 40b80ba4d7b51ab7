//! Writes a chart beside the figures of a replay.

use std::{fs, path::Path};

use fairlead_replay::Chart;

use crate::exit::Failure;

/// Writes a chart as SVG.
pub(crate) fn write_plot(chart: &Chart, path: &Path) -> Result<(), Failure> {
    fs::write(path, chart.svg()).map_err(|error| {
        let problem = format!("cannot write the plot '{}': {error}", path.display());
        Failure::local(problem, "check the path and its permissions")
    })
}
