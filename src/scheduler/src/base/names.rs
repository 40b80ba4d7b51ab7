//! Reserved names, and the rule for valid names.

use fairlead_api::ErrorCode;

use crate::base::errors::{Refusal, excerpt};

/// Checks an account's name: 1 to 128 bytes of what is safe in paths and tables.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), Refusal> {
    let good = |c: char| c.is_alphanumeric() || "._-@+~:".contains(c);
    if (1..=128).contains(&name.len()) && name.chars().all(good) && name != "." && name != ".." {
        return Ok(());
    }
    let shown = excerpt(name);
    Err(Refusal::new(
        ErrorCode::BadName,
        format!("{what}: '{shown}' is not a name"),
        "1 to 128 bytes of letters, digits and ._-@+~:",
    ))
}

/// The queue that only those use who may.
pub(crate) const VIP: &str = "vip";

/// Whose jobs alone a suspect host gets.
pub(crate) const HEALTH_CHECK: &str = "health-check";
