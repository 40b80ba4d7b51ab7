//! Paths of the results of a job and of each attempt.

use fairlead_job::{JobId, Spec};
use serde_json::Value;

use fairlead_base::clock::utc_date;

/// Returns the path of a job's results: `/result/SUITE/DATE/GROUP/ROOTFS/PARAMS/ID`, as in compass-ci. Parts that the
/// job lacks are left out.
pub fn result_root(suite: &str, group: &str, spec: &Spec, submit_ms: u64, id: JobId) -> String {
    let text = |name: &str| {
        spec.get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let rootfs = match (text("os"), text("os_version")) {
        (Some(os), Some(version)) => {
            Some(format!("{os}-{version}-{}", text("arch").unwrap_or("any")))
        }
        _ => None,
    };
    let mut path = format!(
        "/result/{}/{}/{}",
        part(suite),
        utc_date(submit_ms),
        part(group)
    );
    if let Some(rootfs) = rootfs {
        path.push('/');
        path.push_str(&part(&rootfs));
    }
    path.push('/');
    path.push_str(&id.to_string());
    path
}

/// Returns the folder of attempt `to`, from that of attempt `from`.
pub fn attempt_root(root: &str, from: u16, to: u16) -> String {
    let base = if from > 1 {
        root.strip_suffix(&format!(".{from}")).unwrap_or(root)
    } else {
        root
    };
    if to > 1 {
        format!("{base}.{to}")
    } else {
        base.to_owned()
    }
}

/// Returns a text as one segment of a path.
pub fn part(text: &str) -> String {
    let safe: String = text
        .chars()
        .take(100)
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._-+=@".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    match safe.as_str() {
        "" | "." | ".." => "_".to_owned(),
        _ => safe,
    }
}
