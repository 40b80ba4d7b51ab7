//! The ids of samples: by their order, those of a time lie beside each other.

/// Begins the id of the sample of a minute.
pub(crate) const MINUTE: &str = "m";
/// Begins the id of the sample of an hour.
pub(crate) const HOUR: &str = "h";

/// The sample of a minute since 1970 that one run of a replica counted.
pub(crate) fn minute_id(minute: u64, run: &str) -> String {
    format!("{MINUTE}{minute:010}.{run}")
}

/// The sum of an hour since 1970 that one run of a replica counted.
pub(crate) fn hour_id(hour: u64, run: &str) -> String {
    format!("{HOUR}{hour:08}.{run}")
}

/// The minute or hour of a sample, and the run that counted it.
pub(crate) fn moment_of(id: &str) -> Option<(u64, &str)> {
    let (moment, run) = id.get(1..)?.split_once('.')?;
    Some((moment.parse().ok()?, run))
}
