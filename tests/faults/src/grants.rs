//! Grants as the replicas logged them, because the store keeps no history.

use std::{fs, path::PathBuf, time::Duration};

use serde_json::Value;

use super::history::{History, Micros};

/// A grant as a replica logged it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GrantLine {
    pub(super) at: Micros,
    pub(super) replica: u16,
    pub(super) host: String,
    pub(super) session: String,
    pub(super) request: u64,
    pub(super) job: String,
    pub(super) attempt: u64,
    pub(super) token: String,
}

/// Reads the logs of replicas, by number, in order of time. Lines that a kill cut off are left out.
pub(super) fn read(logs: &[(u16, PathBuf)], history: &History) -> std::io::Result<Vec<GrantLine>> {
    let mut grants = Vec::new();
    for (replica, path) in logs {
        let bytes = fs::read(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let lines = text
            .lines()
            .filter_map(|line| parse(*replica, line, history));
        grants.extend(lines);
    }
    grants.sort_by_key(|grant| grant.at);
    Ok(grants)
}

fn parse(replica: u16, line: &str, history: &History) -> Option<GrantLine> {
    if !line.contains("fairlead::grant") {
        return None;
    }
    let line: Value = serde_json::from_str(line).ok()?;
    if line["target"] != "fairlead::grant" {
        return None;
    }
    let fields = &line["fields"];
    let text = |name: &str| fields[name].as_str().map(str::to_owned);
    Some(GrantLine {
        at: history.at(unix(line["timestamp"].as_str()?)?),
        replica,
        host: text("host")?,
        session: text("session")?,
        request: fields["request"].as_u64()?,
        job: text("job_id")?,
        attempt: fields["attempt"].as_u64()?,
        token: text("claim_token")?,
    })
}

/// Parses `2026-11-21T16:12:50.011996Z` as time since the epoch.
fn unix(text: &str) -> Option<Duration> {
    let stamp: jiff::Timestamp = text.parse().ok()?;
    Duration::try_from(stamp.as_duration()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_logs_are_read() {
        let known = [
            ("1970-01-01T00:00:00Z", 0, 0),
            ("2026-11-21T02:36:11.000001Z", 1_795_228_571, 1_000),
        ];
        for (text, seconds, nanos) in known {
            assert_eq!(unix(text), Some(Duration::new(seconds, nanos)), "{text}");
        }
        assert_eq!(unix("yesterday"), None);
    }

    #[test]
    fn only_whole_lines_about_grants_count() {
        let history = History::begin();
        let line = r#"{"timestamp":"2126-11-21T16:12:50.0Z","level":"INFO","fields":{"message":"granted","host":"h","session":"s","request":3,"job_id":"7","attempt":2,"claim_token":"t"},"target":"fairlead::grant"}"#;
        let grant = parse(2, line, &history).unwrap();
        assert_eq!((grant.replica, grant.request, grant.attempt), (2, 3, 2));
        assert_eq!((grant.job.as_str(), grant.token.as_str()), ("7", "t"));
        assert_eq!(parse(2, &line[..80], &history), None);
        let other = line.replace(r#""target":"fairlead::grant""#, r#""target":"x""#);
        assert_eq!(parse(2, &other, &history), None);
    }
}
