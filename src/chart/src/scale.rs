//! Ranges of axes, the values that are written beside them, and where a value lies.

use crate::{Axis, Scale, Unit};

/// Maximum number of values along an axis.
const TICKS_MAX: f64 = 8.0;
/// Steps of times, seconds.
const TIMES_S: [f64; 23] = [
    1.0,
    2.0,
    5.0,
    10.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
    1_800.0,
    3_600.0,
    7_200.0,
    14_400.0,
    28_800.0,
    86_400.0,
    172_800.0,
    432_000.0,
    864_000.0,
    1_728_000.0,
    4_320_000.0,
    8_640_000.0,
    17_280_000.0,
    43_200_000.0,
];
/// Values of times along a logarithmic axis, seconds.
const LOG_TIMES_S: [f64; 12] = [
    0.01,
    0.1,
    1.0,
    10.0,
    60.0,
    600.0,
    3_600.0,
    36_000.0,
    86_400.0,
    864_000.0,
    8_640_000.0,
    86_400_000.0,
];

/// Range of an axis, and its length in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range {
    scale: Scale,
    from: f64,
    to: f64,
    length: f64,
}

impl Range {
    /// Returns the range of values along an axis. A vertical linear axis begins at 0 and has room above.
    pub(crate) fn of(
        axis: &Axis,
        values: impl Iterator<Item = f64>,
        is_vertical: bool,
        length: f64,
    ) -> Self {
        let is_log = axis.scale == Scale::Log;
        let finite = values.filter(|value| value.is_finite() && (!is_log || *value > 0.0));
        let (least, most) = finite.fold((f64::MAX, f64::MIN), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        let (least, most) = if least > most {
            (1.0, 1.0)
        } else {
            (least, most)
        };
        let most = most.max(axis.reaches);
        let (from, to) = match axis.scale {
            Scale::Log => (least, most.max(least * 2.0)),
            Scale::Linear if is_vertical && axis.unit == Unit::Percent => (0.0, most.max(100.0)),
            Scale::Linear if is_vertical => (0.0, most.max(f64::MIN_POSITIVE) * 1.08),
            Scale::Linear => (least, if most > least { most } else { least + 1.0 }),
        };
        Self {
            scale: axis.scale,
            from,
            to,
            length,
        }
    }

    /// Returns the position of a value, pixels from the start of the axis, within the axis.
    pub(crate) fn place(self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Log => (value / self.from).max(1.0).ln() / (self.to / self.from).ln(),
        };
        if part.is_finite() {
            part.clamp(0.0, 1.0) * self.length
        } else {
            0.0
        }
    }

    /// Returns the values that are written beside the axis.
    pub(crate) fn ticks(self, unit: Unit) -> Vec<f64> {
        let inside = |value: &f64| *value >= self.from * 0.999 && *value <= self.to * 1.001;
        match (self.scale, unit) {
            (Scale::Log, Unit::Seconds) => LOG_TIMES_S.into_iter().filter(inside).collect(),
            (Scale::Log, Unit::Number | Unit::Percent) => {
                let powers = (-6..13).map(|power| 10_f64.powi(power));
                let tens: Vec<f64> = powers.clone().filter(inside).collect();
                if tens.len() > 2 {
                    return tens;
                }
                let between = powers.flat_map(|ten| [ten, 2.0 * ten, 5.0 * ten]);
                between.filter(inside).collect()
            }
            (Scale::Linear, _) => {
                let step = step((self.to - self.from) / TICKS_MAX, unit);
                let first = (self.from / step).ceil();
                let all = (0..=32).map(|n| (first + f64::from(n)) * step);
                all.take_while(|value| *value <= self.to * 1.001).collect()
            }
        }
    }
}

/// Returns the smallest round step that is at least `least`.
fn step(least: f64, unit: Unit) -> f64 {
    if unit == Unit::Seconds {
        let mut times = TIMES_S.into_iter();
        if let Some(step) = times.find(|step| *step >= least) {
            return step;
        }
    }
    let ten = 10_f64.powf(least.max(f64::MIN_POSITIVE).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * ten);
    let fits = steps.into_iter().find(|step| *step >= least * 0.999);
    fits.unwrap_or(ten * 10.0)
}

/// Returns a value as it is written beside an axis.
pub(crate) fn written(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Number => number(value),
        Unit::Percent => format!("{} %", number(value)),
        Unit::Seconds => {
            let units = [
                (86_400.0, "d"),
                (3_600.0, "h"),
                (60.0, "min"),
                (1.0, "s"),
                (0.001, "ms"),
            ];
            let whole = |(size, _): &&(f64, &str)| {
                let count = value / size;
                count >= 0.999 && (count - count.round()).abs() < 1e-6
            };
            match units.iter().find(whole) {
                Some((size, name)) => format!("{:.0} {name}", value / size),
                None if value == 0.0 => "0".to_owned(),
                None => format!("{} s", number(value)),
            }
        }
    }
}

/// Returns a number with the digits that it needs, and spaces between thousands.
fn number(value: f64) -> String {
    let rounded = value.round();
    if (value - rounded).abs() > 1e-6 {
        let text = format!("{value:.3}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let digits = format!("{:.0}", rounded.abs());
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if rounded < 0.0 {
        text.insert(0, '-');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(axis: &Axis, values: &[f64], is_vertical: bool) -> Range {
        Range::of(axis, values.iter().copied(), is_vertical, 100.0)
    }

    #[test]
    fn values_lie_where_the_axis_says() {
        let linear = range(&Axis::linear("x", Unit::Number), &[10.0, 20.0], false);
        assert!((linear.place(15.0) - 50.0).abs() < 1e-9);
        assert!((linear.place(-5.0)).abs() < 1e-9 && (linear.place(99.0) - 100.0).abs() < 1e-9);
        let log = range(&Axis::log("x", Unit::Number), &[1.0, 100.0], false);
        assert!((log.place(10.0) - 50.0).abs() < 1e-9 && log.place(0.0).abs() < 1e-9);
        let percent = range(&Axis::linear("y", Unit::Percent), &[3.0], true);
        assert!((percent.place(50.0) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn an_axis_without_values_is_still_one() {
        for axis in [
            Axis::linear("x", Unit::Seconds),
            Axis::log("x", Unit::Number),
        ] {
            for values in [&[][..], &[f64::NAN], &[0.0], &[5.0, 5.0]] {
                for is_vertical in [true, false] {
                    let range = range(&axis, values, is_vertical);
                    assert!(range.place(0.0).is_finite() && range.place(f64::NAN).is_finite());
                    assert!(range.ticks(axis.unit).len() < 40, "{range:?}");
                }
            }
        }
    }

    #[test]
    fn ticks_are_round_numbers() {
        let of = |axis: &Axis, values: &[f64]| {
            let ticks = range(axis, values, false).ticks(axis.unit);
            let words = ticks.into_iter().map(|tick| written(tick, axis.unit));
            words.collect::<Vec<_>>().join(" ")
        };
        let time = Axis::linear("t", Unit::Seconds);
        assert_eq!(of(&time, &[0.0, 86_400.0]), "0 4 h 8 h 12 h 16 h 20 h 1 d");
        assert_eq!(of(&time, &[0.0, 7.0]), "0 1 s 2 s 3 s 4 s 5 s 6 s 7 s");
        let log = Axis::log("t", Unit::Seconds);
        assert_eq!(of(&log, &[1.0, 4_000.0]), "1 s 10 s 1 min 10 min 1 h");
        let count = Axis::linear("n", Unit::Number);
        assert_eq!(
            of(&count, &[0.0, 6_000.0]),
            "0 1,000 2,000 3,000 4,000 5,000 6,000"
        );
        assert_eq!(of(&Axis::log("n", Unit::Number), &[1.0, 4.0]), "1 2");
        assert_eq!(written(0.25, Unit::Number), "0.25");
        assert_eq!(written(1.5, Unit::Seconds), "1500 ms");
    }
}
