//! Time in equal parts, and what lay in each: charts show parts, so that they stay small however many jobs there are.

/// Number of time bins in a chart.
pub(crate) const PARTS: usize = 160;
/// Number of points of a distribution for each factor of ten.
const POINTS_OF_TEN: i32 = 8;
/// Number of milliseconds in a second.
const SECOND_MS: f64 = 1_000.0;

/// A period in equal bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time {
    from_ms: u64,
    part_ms: u64,
    parts: usize,
}

impl Time {
    /// Returns the period from `from_ms` to `to_ms` with this number of bins, at least one.
    pub(crate) fn new(from_ms: u64, to_ms: u64, parts: usize) -> Self {
        let parts = parts.max(1);
        let length_ms = to_ms.saturating_sub(from_ms).max(1);
        Self {
            from_ms,
            part_ms: length_ms.div_ceil(parts as u64),
            parts,
        }
    }

    /// Returns the bin of a time. Times outside count to the first or the last bin.
    fn part(self, at_ms: u64) -> usize {
        let part = at_ms.saturating_sub(self.from_ms) / self.part_ms;
        usize::try_from(part)
            .unwrap_or(usize::MAX)
            .min(self.parts - 1)
    }

    /// Returns the start of a bin, ms.
    fn begin(self, part: usize) -> u64 {
        let passed = self.part_ms.saturating_mul(part as u64);
        self.from_ms.saturating_add(passed)
    }

    /// Returns the middle of a bin, seconds from the start of the period.
    #[expect(clippy::cast_precision_loss, reason = "a place in a chart")]
    fn middle_s(self, part: usize) -> f64 {
        (part as f64 + 0.5) * self.part_ms as f64 / SECOND_MS
    }
}

/// Amount of something in each bin.
#[derive(Debug, Clone)]
pub(crate) struct Levels {
    time: Time,
    sums: Vec<f64>,
}

impl Levels {
    pub(crate) fn new(time: Time) -> Self {
        Self {
            time,
            sums: vec![0.0; time.parts],
        }
    }

    /// Adds an amount that lasted from one time to another. Only the part within the period counts.
    #[expect(
        clippy::cast_precision_loss,
        reason = "times of jobs are far below 2^53 ms"
    )]
    pub(crate) fn add(&mut self, from_ms: u64, to_ms: u64, amount: f64) {
        let end = self.time.begin(self.time.parts);
        let from_ms = from_ms.max(self.time.from_ms);
        let to_ms = to_ms.min(end);
        if to_ms <= from_ms {
            return;
        }
        let (first, last) = (self.time.part(from_ms), self.time.part(to_ms - 1));
        for part in first..=last {
            let begin = self.time.begin(part).max(from_ms);
            let end = self.time.begin(part + 1).min(to_ms);
            if let Some(sum) = self.sums.get_mut(part) {
                *sum += amount * end.saturating_sub(begin) as f64;
            }
        }
    }

    /// Returns amount times ms in each bin.
    pub(crate) fn sums(&self) -> &[f64] {
        &self.sums
    }

    /// Returns the mean amount in each bin, by the seconds at its middle.
    #[expect(clippy::cast_precision_loss, reason = "a place in a chart")]
    pub(crate) fn points(&self) -> Vec<(f64, f64)> {
        let part_ms = self.time.part_ms as f64;
        let sums = self.sums.iter().enumerate();
        sums.map(|(part, sum)| (self.time.middle_s(part), sum / part_ms))
            .collect()
    }
}

/// Mean of the noted values in each bin.
#[derive(Debug, Clone)]
pub(crate) struct Means {
    time: Time,
    sums: Vec<(f64, u32)>,
}

impl Means {
    pub(crate) fn new(time: Time) -> Self {
        Self {
            time,
            sums: vec![(0.0, 0); time.parts],
        }
    }

    pub(crate) fn note(&mut self, at_ms: u64, value: f64) {
        if let Some((sum, count)) = self.sums.get_mut(self.time.part(at_ms)) {
            *sum += value;
            *count = count.saturating_add(1);
        }
    }

    /// Returns the mean in each bin with values, by the seconds at its middle.
    pub(crate) fn points(&self) -> Vec<(f64, f64)> {
        let noted = self.sums.iter().enumerate();
        noted
            .filter(|(_, (_, count))| *count > 0)
            .map(|(part, (sum, count))| (self.time.middle_s(part), sum / f64::from(*count)))
            .collect()
    }
}

/// Returns the percentage of waits up to each time, by seconds that grow by a constant factor. `waits_ms` is sorted.
#[expect(clippy::cast_precision_loss, reason = "a share in a chart")]
pub(crate) fn at_most(waits_ms: &[u64]) -> Vec<(f64, f64)> {
    let Some(longest) = waits_ms.last() else {
        return Vec::new();
    };
    let longest_s = *longest as f64 / SECOND_MS;
    // Nearly idle labs dispatch within milliseconds.
    let first = if longest_s < 10.0 { -2 } else { 0 };
    let growth = 10_f64.powf(1.0 / f64::from(POINTS_OF_TEN));
    let mut points = Vec::new();
    let mut seconds = 10_f64.powi(first);
    loop {
        let within = waits_ms.partition_point(|wait| *wait as f64 / SECOND_MS <= seconds);
        let percent = 100.0 * within as f64 / waits_ms.len() as f64;
        points.push((seconds, percent));
        if within == waits_ms.len() {
            return points;
        }
        seconds *= growth;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_stretch_counts_in_each_part_as_far_as_it_lies_there() {
        let mut levels = Levels::new(Time::new(1_000, 5_000, 4));
        levels.add(1_500, 3_250, 2.0);
        // Amounts before and after the period do not count.
        levels.add(0, 1_100, 1.0);
        levels.add(4_900, 9_000, 1.0);
        levels.add(6_000, 9_000, 1.0);
        assert_eq!(levels.sums(), [1_100.0, 2_000.0, 500.0, 100.0]);
        let points = levels.points();
        assert_eq!(points[0], (0.5, 1.1));
        assert_eq!(points[3], (3.5, 0.1));
    }

    #[test]
    fn a_mean_is_of_what_was_noted_in_its_part() {
        let mut means = Means::new(Time::new(0, 3_000, 3));
        means.note(100, 4.0);
        means.note(200, 8.0);
        means.note(99_000, 5.0);
        assert_eq!(means.points(), [(0.5, 6.0), (2.5, 5.0)]);
    }

    #[test]
    fn a_distribution_ends_with_all() {
        assert!(at_most(&[]).is_empty());
        assert_eq!(at_most(&[0, 0]), [(0.01, 100.0)]);
        let points = at_most(&[0, 500, 20_000, 3_600_000]);
        assert_eq!(points[0], (1.0, 50.0));
        assert!((points[8].0 - 10.0).abs() < 1e-6);
        assert!(points.iter().any(|point| (point.1 - 75.0).abs() < 1e-9));
        let last = points[points.len() - 1];
        assert!(last.0 >= 3_600.0 && (last.1 - 100.0).abs() < 1e-9);
        assert!(points.len() < 40);
    }

    proptest! {
        #[test]
        fn nothing_within_is_lost(
            stretches in prop::collection::vec((0_u64..10_000, 0_u64..5_000), 0..20),
            from in 0_u64..3_000, length in 1_u64..9_000, parts in 1_usize..50,
        ) {
            let mut levels = Levels::new(Time::new(from, from + length, parts));
            let end = levels.time.begin(parts);
            let mut within = 0;
            for (begin, takes) in stretches {
                levels.add(begin, begin + takes, 1.0);
                within += (begin + takes).min(end).saturating_sub(begin.max(from));
            }
            let sum: f64 = levels.sums().iter().sum();
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let off = (sum - within as f64).abs();
            prop_assert!(off < 1e-6);
        }
    }
}
