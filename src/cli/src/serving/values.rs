//! Values of the settings of `fairlead serve` that have a form of their own.

use fairlead_scheduler::FilesIn;

use crate::amounts;

/// Minimum grace period of inputs and outputs, ms: an hour.
const GRACE_MS_MIN: u64 = 3_600_000;

/// Parses an octal mode such as `0640`: the owner can read and write, and others cannot write.
pub(crate) fn results_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok();
    mode.filter(|mode| mode & 0o600 == 0o600 && mode & !0o664 == 0)
        .ok_or_else(|| {
            "expected an octal mode with which the owner reads and writes: 0600, 0640, 0644, 0660 or 0664"
                .to_owned()
        })
}

/// Parses the number or name of a group.
pub(crate) fn results_group(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    match nix::unistd::Group::from_name(text) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        Ok(None) => Err("this machine has no such group".to_owned()),
        Err(error) => Err(format!("cannot look up groups: {error}")),
    }
}

pub(crate) fn files_in(text: &str) -> Result<FilesIn, String> {
    match text {
        "data" => Ok(FilesIn::DataFolder),
        "content" => Ok(FilesIn::Content),
        _ => Err("expected data or content".to_owned()),
    }
}

/// Parses a grace period. Its minimum lets a put of a large folder end before a collection.
pub(crate) fn grace_ms(text: &str) -> Result<u64, String> {
    let ms = amounts::length_ms(text)?;
    if ms < GRACE_MS_MIN {
        return Err(format!("'{text}' is shorter than an hour"));
    }
    Ok(ms)
}
