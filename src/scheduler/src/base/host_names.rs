//! The hosts of a testbox account: names and simple patterns, as in its document.
//!
//! `*` matches any text, and `?` one character. A document without this field matches all hosts: an older version wrote
//! it, or the account was created without hosts.

use std::sync::Arc;

use crate::base::errors::{PeopleError, excerpt};

/// Most patterns of one account.
const PATTERNS_MAX: usize = 64;
/// Longest pattern, bytes: as long as a host's name.
const PATTERN_BYTES_MAX: usize = 128;
/// Stands for every host.
const ANY: &str = "*";

/// The hosts of one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostNames {
    /// `None`: the document does not say.
    said: Option<Arc<[String]>>,
}

impl HostNames {
    /// What an account's document says.
    pub(crate) fn of(said: Option<&[String]>) -> Self {
        Self {
            said: said.map(Arc::from),
        }
    }

    /// Every host.
    pub(crate) fn all() -> Self {
        Self { said: None }
    }

    /// Whether the account was never told which hosts are its own.
    pub(crate) fn is_unsaid(&self) -> bool {
        self.said.is_none()
    }

    /// Whether it names this host.
    pub(crate) fn names(&self, host: &str) -> bool {
        match &self.said {
            None => true,
            Some(patterns) => patterns.iter().any(|pattern| matches(pattern, host)),
        }
    }

    /// The patterns, for people.
    pub(crate) fn shown(&self) -> Vec<String> {
        match &self.said {
            None => vec![ANY.to_owned()],
            Some(patterns) => patterns.to_vec(),
        }
    }
}

/// Checks new patterns of an account of this role.
pub(crate) fn check(patterns: &[String], role: &str) -> Result<(), PeopleError> {
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

/// Whether `name` is of this form. Linear in the name for each `*`.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Behind the last star, and where in the name it was tried last.
    let mut star: Option<(usize, usize)> = None;
    while let Some(c) = name.get(n) {
        match (pattern.get(p), star) {
            (Some('*'), _) => {
                p += 1;
                star = Some((p, n));
            }
            (Some(wanted), _) if *wanted == '?' || wanted == c => {
                p += 1;
                n += 1;
            }
            (_, Some((behind, tried))) => {
                p = behind;
                n = tried + 1;
                star = Some((behind, n));
            }
            (_, None) => return false,
        }
    }
    pattern.iter().skip(p).all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_text() {
        for (pattern, good, bad) in [
            ("a66", &["a66"][..], &["a6", "a666", "A66", ""][..]),
            (
                "rack1-*",
                &["rack1-", "rack1-7"],
                &["rack1", "rack11-7", "xrack1-7"],
            ),
            ("*", &["", "x"], &[]),
            ("a?c*e", &["abce", "abcde", "aäcee"], &["ace", "abcd"]),
            ("*-a*b*", &["x-ab", "-a-a-b-"], &["x-a", "ab"]),
        ] {
            for name in good {
                assert!(matches(pattern, name), "{pattern} {name}");
            }
            for name in bad {
                assert!(!matches(pattern, name), "{pattern} {name}");
            }
        }
        assert!(!matches(&"*a".repeat(60), &"a".repeat(59)));
    }

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
