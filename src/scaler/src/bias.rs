//! How estimates turned out, to correct the next ones.

/// Half-life of what was learned, as run time of ended jobs, ms.
const FORGET_MS: u64 = 50 * 3_600_000;

/// Minimum known run time before corrections, ms.
const KNOWN_MIN_MS: u64 = 60_000;

/// Maximum correction factor, in both directions.
const FACTOR_MAX: u64 = 8;

/// Sums of expected and actual run times of a pool's jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bias {
    expected_ms: u64,
    took_ms: u64,
}

impl Bias {
    /// Notes the end of a job with this expected run time.
    pub fn note(&mut self, expected_ms: u64, took_ms: u64) {
        self.expected_ms = self.expected_ms.saturating_add(expected_ms);
        self.took_ms = self.took_ms.saturating_add(took_ms);
        if self.took_ms.max(self.expected_ms) > FORGET_MS {
            self.expected_ms /= 2;
            self.took_ms /= 2;
        }
    }

    /// Returns the corrected estimate, ms.
    pub fn corrected_ms(&self, estimate_ms: u64) -> u64 {
        if self.took_ms < KNOWN_MIN_MS || self.expected_ms == 0 {
            return estimate_ms;
        }
        let exact =
            u128::from(estimate_ms) * u128::from(self.took_ms) / u128::from(self.expected_ms);
        let exact = u64::try_from(exact).unwrap_or(u64::MAX);
        exact.clamp(
            estimate_ms / FACTOR_MAX,
            estimate_ms.saturating_mul(FACTOR_MAX),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_follow_what_jobs_took() {
        let mut bias = Bias::default();
        assert_eq!(bias.corrected_ms(1_000), 1_000);
        bias.note(10_000, 30_000);
        assert_eq!(bias.corrected_ms(1_000), 1_000);
        bias.note(20_000, 60_000);
        assert_eq!(bias.corrected_ms(1_000), 3_000);
        for _ in 0..10_000 {
            bias.note(60_000, 30_000);
        }
        assert!(bias.corrected_ms(1_000).abs_diff(500) < 10);
        for _ in 0..10_000 {
            bias.note(1, 3_600_000);
        }
        assert_eq!(bias.corrected_ms(1_000), 8_000);
    }
}
