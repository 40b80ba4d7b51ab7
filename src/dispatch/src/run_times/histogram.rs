//! Counts of run times in buckets whose widths grow by a seventh: 256 bytes, from 64 ms to 17 days.

/// Buckets of a histogram.
pub const BUCKETS: usize = 128;

/// Number of samples at which all counts are halved, so that new samples soon weigh more than old ones.
const SAMPLES_MAX: u32 = 128;

/// Samples that halving must leave. With fewer, the samples are too spread to lose the rare ones.
const SAMPLES_LEFT_MIN: u32 = SAMPLES_MAX / 4;

/// The upper bound of each bucket, ms. The last one has none.
const BOUNDS_MS: [u64; BUCKETS] = bounds();

const fn bounds() -> [u64; BUCKETS] {
    let mut all = [64; BUCKETS];
    let mut n = 1;
    while n < BUCKETS {
        #[expect(
            clippy::indexing_slicing,
            reason = "n is within it; the compiler computes it"
        )]
        {
            all[n] = all[n - 1] + all[n - 1] / 7;
        }
        n += 1;
    }
    all
}

/// Run times of jobs of one kind, as counts of the last 64 to 128 jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: [u16; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: [0; BUCKETS],
        }
    }
}

impl Histogram {
    /// Creates a histogram with these counts by bucket, below [`BUCKETS`]; other buckets are ignored.
    #[must_use]
    pub fn from_counts(counts: impl IntoIterator<Item = (u8, u16)>) -> Self {
        let mut new = Self::default();
        for (bucket, count) in counts {
            if let Some(known) = new.counts.get_mut(usize::from(bucket)) {
                *known = count;
            }
        }
        new
    }

    /// Returns its counts by bucket, without the empty ones.
    pub fn counts(&self) -> impl Iterator<Item = (u8, u16)> {
        let all = (0..=u8::MAX).zip(self.counts);
        all.filter(|(_, count)| *count > 0)
    }

    /// Adds the run time of a job, ms.
    pub fn note(&mut self, took_ms: u64) {
        let bucket = BOUNDS_MS.partition_point(|bound| *bound <= took_ms);
        if let Some(count) = self.counts.get_mut(bucket.min(BUCKETS - 1)) {
            *count = count.saturating_add(1);
        }
        self.halve();
    }

    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count = count.saturating_add(more);
        }
        self.halve();
    }

    fn halve(&mut self) {
        while self.samples() >= SAMPLES_MAX {
            let halved = Self {
                counts: self.counts.map(|count| count / 2),
            };
            if halved.samples() < SAMPLES_LEFT_MIN {
                return;
            }
            *self = halved;
        }
    }

    /// Returns the number of jobs that it holds.
    pub fn samples(&self) -> u32 {
        self.counts.iter().map(|count| u32::from(*count)).sum()
    }

    /// Returns the mean, ms, exact to a fourteenth; `None`: it is empty.
    pub fn mean_ms(&self) -> Option<u64> {
        let each = middles().zip(self.counts);
        let sum: u64 = each
            .map(|(middle, count)| middle.saturating_mul(u64::from(count)))
            .fold(0, u64::saturating_add);
        sum.checked_div(u64::from(self.samples()))
    }

    /// Returns the mean remaining run time of a job that has run for `elapsed_ms`, ms; `None`: no job ran for so
    /// long.
    pub fn left_ms(&self, elapsed_ms: u64) -> Option<u64> {
        let each = middles().zip(self.counts);
        let longer = each.filter(|(middle, _)| *middle > elapsed_ms);
        let (sum, count) = longer.fold((0_u64, 0_u64), |(sum, all), (middle, count)| {
            let count = u64::from(count);
            let left = (middle - elapsed_ms).saturating_mul(count);
            (sum.saturating_add(left), all + count)
        });
        sum.checked_div(count)
    }

    /// Returns the quantile in thousandths, ms, exact to a seventh; `None`: it is empty.
    pub fn quantile_ms(&self, permille: u32) -> Option<u64> {
        let samples = self.samples();
        let wanted = u64::from(samples) * u64::from(permille.min(1_000));
        let wanted = wanted.div_ceil(1_000).max(1);
        let mut seen = 0;
        let each = BOUNDS_MS.into_iter().zip(self.counts);
        each.filter(|(_, count)| *count > 0)
            .find(|(_, count)| {
                seen += u64::from(*count);
                seen >= wanted
            })
            .map(|(bound, _)| bound)
    }
}

/// Returns the middle of each bucket, ms.
fn middles() -> impl Iterator<Item = u64> {
    let lower = std::iter::once(0).chain(BOUNDS_MS);
    let both = lower.zip(BOUNDS_MS);
    both.map(|(lower, upper)| lower.midpoint(upper))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_has_256_bytes_and_reaches_17_days() {
        assert_eq!(size_of::<Histogram>(), 256);
        assert!(BOUNDS_MS.is_sorted());
        let last = BOUNDS_MS[BUCKETS - 1];
        assert!(last > 12 * 86_400_000, "{last}");
        let mut long = Histogram::default();
        long.note(u64::MAX);
        assert_eq!(long.quantile_ms(500), Some(last));
    }

    #[test]
    fn it_follows_what_changes() {
        let mut times = Histogram::default();
        assert_eq!((times.mean_ms(), times.quantile_ms(950)), (None, None));
        for _ in 0..1_000 {
            times.note(1_000);
        }
        assert!(times.samples() < SAMPLES_MAX);
        for _ in 0..512 {
            times.note(300_000);
        }
        let mean = times.mean_ms().unwrap();
        assert!(mean.abs_diff(300_000) < 25_000, "{mean}");
    }

    #[test]
    fn a_job_that_runs_for_long_is_one_of_the_long_ones() {
        let mut times = Histogram::default();
        for n in 0..20 {
            times.note(if n % 2 == 0 { 10_000 } else { 600_000 });
        }
        let about = |elapsed_ms: u64, ms: u64| {
            let left = times.left_ms(elapsed_ms).unwrap();
            let within = (elapsed_ms + ms) / 13;
            assert!(left.abs_diff(ms) <= within, "{elapsed_ms} {left}");
        };
        about(0, 305_000);
        about(15_000, 585_000);
        about(400_000, 200_000);
        assert_eq!(times.left_ms(700_000), None);
        assert_eq!(Histogram::default().left_ms(0), None);
    }

    #[test]
    fn rare_times_are_not_lost_where_all_are_rare() {
        let mut spread = Histogram::default();
        for bound in BOUNDS_MS {
            spread.note(bound);
        }
        assert!(spread.samples() >= SAMPLES_MAX);
    }

    proptest! {
        #[test]
        fn it_is_as_exact_as_it_says(times in prop::collection::vec(128_u64..1_000_000_000, 1..100), permille in 1_u32..=1_000) {
            let mut histogram = Histogram::default();
            for time in &times {
                histogram.note(*time);
            }
            let mean = times.iter().sum::<u64>() / times.len() as u64;
            let about = histogram.mean_ms().unwrap();
            prop_assert!(about.abs_diff(mean) <= mean / 13, "{about} {mean}");
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let rank = (times.len() * permille as usize).div_ceil(1_000).max(1);
            let exact = sorted.get(rank - 1).copied().unwrap();
            let about = histogram.quantile_ms(permille).unwrap();
            prop_assert!(exact < about && about <= exact + exact / 6, "{about} {exact}");
        }

        #[test]
        fn its_counts_make_it_again(times in prop::collection::vec(any::<u64>(), 0..300)) {
            let mut histogram = Histogram::default();
            for time in &times {
                histogram.note(*time);
            }
            prop_assert_eq!(Histogram::from_counts(histogram.counts()), histogram);
        }
    }
}
