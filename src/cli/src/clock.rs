//! The clock of the CLI. No other module asks for the time or waits.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::{Timestamp, tz::TimeZone};

/// Returns the UTC time, epoch milliseconds.
pub(crate) fn now_ms() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the CLI's clock")]
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the time of a monotonic clock.
pub(crate) fn monotonic() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "the CLI's clock")]
    Instant::now()
}

/// Waits between two polls of something without notifications.
pub(crate) async fn pause(how_long: Duration) {
    #[expect(clippy::disallowed_methods, reason = "the CLI's timer")]
    tokio::time::sleep(how_long).await;
}

/// Returns the UTC time as `yyyymmdd-HHMMSS`, for folder names.
pub(crate) fn folder_stamp(epoch_ms: u64) -> String {
    zoned(epoch_ms, TimeZone::UTC)
        .map_or_else(String::new, |t| t.strftime("%Y%m%d-%H%M%S").to_string())
}

/// Returns a time in the user's own zone. 0 gives `-`.
pub(crate) fn shown(epoch_ms: u64) -> String {
    if epoch_ms == 0 {
        return "-".to_owned();
    }
    zoned(epoch_ms, TimeZone::system()).map_or_else(
        || "-".to_owned(),
        |t| t.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

fn zoned(epoch_ms: u64, zone: TimeZone) -> Option<jiff::Zoned> {
    let stamp = Timestamp::from_millisecond(i64::try_from(epoch_ms).ok()?).ok()?;
    Some(stamp.to_zoned(zone))
}

/// Returns a duration for people: `0.4s`, `12s`, `3m05s`, `2h07m`, `3d04h`.
pub(crate) fn length(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..10 => format!("{seconds}.{}s", ms % 1000 / 100),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_short() {
        for (ms, text) in [
            (0, "0.0s"),
            (9_999, "9.9s"),
            (59_999, "59s"),
            (185_000, "3m05s"),
            (7_620_000, "2h07m"),
            (273_600_000, "3d04h"),
        ] {
            assert_eq!(length(ms), text);
        }
    }

    #[test]
    fn stamps_are_utc() {
        assert_eq!(folder_stamp(1_795_228_571_000), "20261121-023611");
        assert_eq!(shown(0), "-");
    }
}
