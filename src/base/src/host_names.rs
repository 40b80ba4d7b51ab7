//! The hosts of a testbox account: names and simple patterns, as in its document.
//!
//! `*` matches any text, and `?` one character. A document without this field matches all hosts: an older version wrote
//! it, or the account was created without hosts.

use std::sync::Arc;

use crate::{
    errors::{PeopleError, excerpt},
    patterns::matches,
};

/// Most patterns of one account.
const PATTERNS_MAX: usize = 64;
/// Longest pattern, bytes: as long as a host's name.
const PATTERN_BYTES_MAX: usize = 128;
/// Pattern of every host.
const ANY: &str = "*";

/// Hosts of one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostNames {
    /// Patterns; `None`: the document has none.
    said: Option<Arc<[String]>>,
}

impl HostNames {
    /// Returns the hosts in an account's document.
    pub fn of(said: Option<&[String]>) -> Self {
        Self {
            said: said.map(Arc::from),
        }
    }

    /// Returns every host.
    pub fn all() -> Self {
        Self { said: None }
    }

    /// Returns true if the account has no patterns.
    pub fn is_unsaid(&self) -> bool {
        self.said.is_none()
    }

    /// Returns true if the patterns contain this host.
    pub fn names(&self, host: &str) -> bool {
        match &self.said {
            None => true,
            Some(patterns) => patterns.iter().any(|pattern| matches(pattern, host)),
        }
    }

    /// Returns the patterns, for display.
    pub fn shown(&self) -> Vec<String> {
        match &self.said {
            None => vec![ANY.to_owned()],
            Some(patterns) => patterns.to_vec(),
        }
    }
}

/// Checks new patterns of an account of this role.
pub fn check(patterns: &[String], role: &str) -> Result<(), PeopleError> {
    if role != "testbox" {
        return Err(PeopleError::NamesNoHosts(role.to_owned()));
    }
    if patterns.is_empty() || patterns.len() > PATTERNS_MAX {
        return Err(PeopleError::HostPatterns {
            given: patterns.len(),
            max: PATTERNS_MAX,
        });
    }
    let good = |c: char| c.is_alphanumeric() || "._-@+~:*?".contains(c);
    for pattern in patterns {
        if !(1..=PATTERN_BYTES_MAX).contains(&pattern.len()) || !pattern.chars().all(good) {
            return Err(PeopleError::BadHostPattern(excerpt(pattern)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_pattern_is_refused() {
        let check = |patterns: &[&str], role: &str| {
            let patterns: Vec<String> = patterns.iter().map(|&text| text.to_owned()).collect();
            check(&patterns, role)
        };
        assert!(check(&["rack1-*", "a66", "b?"], "testbox").is_ok());
        assert!(check(&["a66"], "user").is_err() && check(&[], "testbox").is_err());
        for bad in ["", "a b", "a/b", "x\0", &"x".repeat(129)] {
            assert!(check(&[bad], "testbox").is_err(), "{bad:?}");
        }
        assert!(check(&["a"; 65], "testbox").is_err());
    }
}
