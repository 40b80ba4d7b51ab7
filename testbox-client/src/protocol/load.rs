//! The load of the host: its marks, and the memory that is really free. Without IO.
//!
//! Two marks with a gap between them keep a host from changing its mind every other second. A host is loaded above
//! [`LOADED_ABOVE_PERCENT`] of its memory in use. It recovers after a while without a break below
//! [`LOADED_UNTIL_PERCENT`].

use std::time::Duration;

use fairlead_api::{HostLoad, LOADED_ABOVE_PERCENT, LOADED_REST_S, LOADED_UNTIL_PERCENT};

use super::host::{Room, Time};

/// Default time for which a loaded host must be below the lower mark.
pub const LOADED_REST: Duration = Duration::from_secs(LOADED_REST_S as u64);

/// Fraction (1/N) of all memory that is never offered. Free memory is also reported again after a change by this
/// fraction.
const MARGIN_PART: u32 = 10;

/// Change of the CPU pressure that is reported at once, percent.
const PRESSURE_STEP: u8 = 10;

/// Measured load of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Memory of the machine, or of the control group that limits the agent, MB.
    pub total_mb: u32,
    /// Memory that is available without swapping, MB.
    pub available_mb: u32,
    /// Share of the last 10 s in which something waited for a CPU, percent. `None`: unknown.
    pub cpu_pressure_percent: Option<u8>,
    /// Share of the last 10 s in which something waited for memory, percent. `None`: unknown.
    pub memory_pressure_percent: Option<u8>,
}

impl Measured {
    fn used_mb(&self) -> u64 {
        self.total_mb.saturating_sub(self.available_mb).into()
    }

    fn mark_mb(&self, percent: u8) -> u64 {
        u64::from(self.total_mb) * u64::from(percent) / 100
    }

    fn margin_mb(&self) -> u32 {
        self.total_mb / MARGIN_PART
    }

    fn pressure(&self) -> u8 {
        self.cpu_pressure_percent.unwrap_or(0)
    }

    /// Returns the memory that jobs may still take, MB.
    fn spare_mb(&self) -> u32 {
        self.available_mb.saturating_sub(self.margin_mb())
    }
}

/// State of the host's load.
#[derive(Debug, Default)]
pub(super) struct Load {
    last: Option<Measured>,
    loaded: bool,
    /// Time since which it has been below the lower mark without a break.
    below_since: Option<Time>,
    /// Memory limit of offers, MB. It follows the measurements in steps. `None`: unknown.
    spare_mb: Option<u32>,
    /// CPU pressure that was last reported, percent.
    told_pressure: u8,
}

impl Load {
    /// Notes a measurement. `None`: unknown. Returns true if a mark was crossed.
    pub(super) fn note(&mut self, now: Time, measured: Option<Measured>, rest: Duration) -> bool {
        let was = self.loaded;
        match &measured {
            None => (self.loaded, self.below_since) = (false, None),
            Some(seen) if seen.used_mb() > seen.mark_mb(LOADED_ABOVE_PERCENT) => {
                (self.loaded, self.below_since) = (true, None);
            }
            Some(seen) if seen.used_mb() < seen.mark_mb(LOADED_UNTIL_PERCENT) => {
                let since = *self.below_since.get_or_insert(now);
                self.loaded = self.loaded && now.saturating_sub(since) < rest;
            }
            Some(_) => self.below_since = None,
        }
        self.last = measured;
        let is_far = match (self.spare_mb, &measured) {
            (Some(said), Some(seen)) => said.abs_diff(seen.spare_mb()) >= seen.margin_mb().max(1),
            (said, seen) => said.is_some() != seen.is_some(),
        };
        if is_far || was != self.loaded {
            self.refresh();
        }
        was != self.loaded
    }

    /// Notes a measurement of a whole machine, which has no marks.
    pub(super) fn note_hw(&mut self, measured: Option<Measured>) -> bool {
        self.last = measured;
        false
    }

    /// Bases the offers on the last measurement.
    pub(super) fn refresh(&mut self) {
        self.spare_mb = self.last.as_ref().map(Measured::spare_mb);
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.loaded
    }

    /// Returns the part of this room that is really free. On a loaded host it is empty.
    pub(super) fn limit(&self, room: Room) -> Room {
        let spare_mb = if self.loaded { Some(0) } else { self.spare_mb };
        Room {
            free_mb: spare_mb.map_or(room.free_mb, |spare_mb| spare_mb.min(room.free_mb)),
            ..room
        }
    }

    /// Returns true if the CPU pressure differs from the last reported one.
    pub(super) fn has_other_pressure(&self) -> bool {
        let pressure = self.last.map_or(0, |seen| seen.pressure());
        pressure.abs_diff(self.told_pressure) >= PRESSURE_STEP
    }

    /// Returns the load to report, for this unpromised memory and this number of jobs.
    pub(super) fn told(&mut self, unpromised_memory_mb: u32, jobs: usize) -> Option<HostLoad> {
        let seen = self.last?;
        self.told_pressure = seen.pressure();
        Some(HostLoad {
            memory_total_mb: seen.total_mb,
            memory_available_mb: seen.available_mb,
            unpromised_memory_mb,
            cpu_pressure_percent: seen.cpu_pressure_percent,
            memory_pressure_percent: seen.memory_pressure_percent,
            jobs: u32::try_from(jobs).unwrap_or(u32::MAX),
            loaded: self.loaded,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn used(percent: u32) -> Measured {
        Measured {
            total_mb: 1_000,
            available_mb: 10 * (100 - percent),
            cpu_pressure_percent: None,
            memory_pressure_percent: None,
        }
    }

    fn at(seconds: u64) -> Time {
        Duration::from_secs(seconds)
    }

    fn free_mb(load: &Load) -> u32 {
        let room = Room {
            free_mb: 700,
            free_cpus: None,
            slots: 1,
        };
        load.limit(room).free_mb
    }

    #[test]
    fn a_host_is_loaded_above_one_mark_until_it_stays_below_the_other() {
        let mut load = Load::default();
        let mut crossed = Vec::new();
        let course = [
            (0, 90),
            (2, 91),
            (4, 85),
            (6, 79),
            (30, 79),
            (32, 80),
            (34, 79),
            (62, 50),
            (64, 79),
            (66, 89),
        ];
        for (second, percent) in course {
            if load.note(at(second), Some(used(percent)), LOADED_REST) {
                crossed.push((second, load.is_loaded()));
            }
        }
        assert_eq!(crossed, [(2, true), (64, false)]);
    }

    #[test]
    fn a_host_offers_what_is_really_free_less_a_tenth() {
        let mut load = Load::default();
        assert_eq!(free_mb(&load), 700, "nothing is known");
        load.note(at(0), Some(used(10)), LOADED_REST);
        assert_eq!(free_mb(&load), 700, "no more than is promised to nobody");
        load.note(at(2), Some(used(60)), LOADED_REST);
        assert_eq!(free_mb(&load), 300);
        load.note(at(4), Some(used(69)), LOADED_REST);
        assert_eq!(
            free_mb(&load),
            300,
            "a small change is told with the next request"
        );
        load.refresh();
        assert_eq!(free_mb(&load), 210);
        load.note(at(6), Some(used(95)), LOADED_REST);
        assert_eq!(free_mb(&load), 0);
        load.note(at(8), None, LOADED_REST);
        assert_eq!((free_mb(&load), load.told(0, 0)), (700, None));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Compares the marks with a simple evaluation of the rule over the whole past.
        #[test]
        fn the_marks_do_as_they_say(course in proptest::collection::vec(0_u32..=100, 1..80)) {
            let mut load = Load::default();
            for (n, percent) in course.iter().enumerate() {
                let now = at(2 * n as u64);
                load.note(now, Some(used(*percent)), LOADED_REST);
                let past = &course[..=n];
                let loaded = past.iter().rposition(|percent| *percent > 90).is_some_and(|last| {
                    let mut calm_s = None;
                    !past[last..].iter().any(|percent| {
                        calm_s = (*percent < 80).then(|| calm_s.map_or(0, |calm: u32| calm + 2));
                        calm_s.is_some_and(|calm| calm >= LOADED_REST_S)
                    })
                });
                prop_assert_eq!(load.is_loaded(), loaded);
            }
        }
    }
}
