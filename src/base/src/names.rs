//! Reserved names, and the rule for valid names.

use fairlead_job::FieldError;

/// Checks a name that becomes part of paths and tables.
pub fn check_name(what: &str, name: &str) -> Result<(), FieldError> {
    fairlead_job::check_name(what, name)
}

/// Queue that only allowed accounts may use.
pub const VIP: &str = "vip";

/// Account whose jobs alone a suspect host gets.
pub const HEALTH_CHECK: &str = "health-check";
