//! Patterns of `=~`: compiled within bounds, and matched within the work of one call.

use regex::{Error, Regex, RegexBuilder};

use super::{
    budget::Budget,
    error::printable,
    limits::{PATTERN_BYTES_MAX, PATTERN_NESTING_MAX, PATTERNS_MAX},
};

/// The smallest size that a pattern is charged for, in bytes.
const SIZE_UNIT: usize = 1024;

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// Cost of each byte of a text. It grows with the size of the compiled pattern.
    weight: u64,
}

/// Problem with a pattern, and advice.
pub(crate) type Problem = (String, &'static str);

impl Pattern {
    /// Compiles `pattern`. As in Ruby, `^` and `$` stand at the ends of each line.
    pub(crate) fn compile(pattern: &str, budget: &Budget) -> Result<Self, Problem> {
        if !budget.admits_pattern() {
            let message = format!("more than {PATTERNS_MAX} patterns in all files together");
            return Err((message, "use fewer '=~'"));
        }
        let mut size = SIZE_UNIT;
        let mut weight = 1;
        loop {
            let built = RegexBuilder::new(pattern)
                .multi_line(true)
                .size_limit(size)
                .dfa_size_limit(PATTERN_BYTES_MAX)
                .nest_limit(PATTERN_NESTING_MAX)
                .build();
            match built {
                Ok(regex) => return Ok(Self { regex, weight }),
                Err(Error::CompiledTooBig(_)) if size < PATTERN_BYTES_MAX => {
                    size *= 2;
                    weight *= 2;
                }
                Err(error) => return Err(problem(pattern, &error)),
            }
        }
    }

    /// Returns true if it is found in `text`; `None`: this call's work is spent.
    pub(crate) fn is_in(&self, text: &str, budget: &Budget) -> Option<bool> {
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let work = bytes.saturating_add(1).saturating_mul(self.weight);
        budget.admits_work(work).then(|| self.regex.is_match(text))
    }
}

/// Why a text is no pattern.
pub(crate) fn problem(pattern: &str, error: &Error) -> Problem {
    let shown = printable(pattern, 60);
    if let Error::CompiledTooBig(limit) = error {
        let message = format!("pattern /{shown}/ takes more than {limit} bytes when compiled");
        return (
            message,
            "repeat less, and write [a-z0-9_] where \\w is not needed",
        );
    }
    // The last line says what is wrong, those before it draw where.
    let told = error.to_string();
    let what = told.lines().last().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(what);
    (
        format!("/{shown}/ is not a pattern: {what}"),
        "write a regular expression, such as /ext4|xfs/; a \\ before a character makes it literal",
    )
}

#[cfg(test)]
mod tests {
    use super::{super::limits::PATTERN_WORK_MAX, *};

    fn refused(pattern: &str) -> String {
        let (message, hint) = Pattern::compile(pattern, &Budget::default()).unwrap_err();
        assert!(!hint.is_empty());
        message
    }

    #[test]
    fn a_pattern_is_found_anywhere_and_lines_have_ends() {
        let is_in = |pattern: &str, text: &str| {
            let budget = Budget::default();
            let pattern = Pattern::compile(pattern, &budget).unwrap();
            pattern.is_in(text, &budget).unwrap()
        };
        assert!(is_in("xfs|ext4", "my ext4 disk") && !is_in("xfs|ext4", "btrfs"));
        assert!(is_in(r"^v\d+\.\w+$", "v6.rc1") && !is_in(r"^v\d+$", "v6.1"));
        assert!(is_in("^b$", "a\nb\nc") && is_in("(?i)XFS", "xfs"));
    }

    #[test]
    fn what_is_no_pattern_or_too_large_is_told_with_the_pattern() {
        assert_eq!(refused("(ext4"), "/(ext4/ is not a pattern: unclosed group");
        assert_eq!(
            refused("a{1000}{9}"),
            "pattern /a{1000}{9}/ takes more than 65536 bytes when compiled"
        );
    }

    #[test]
    fn patterns_of_one_call_have_a_number_and_a_work_that_end() {
        let budget = Budget::default();
        for _ in 1..PATTERNS_MAX {
            Pattern::compile("a", &budget).unwrap();
        }
        let last = Pattern::compile("(?:a?){400}b", &budget).unwrap();
        let (message, _) = Pattern::compile("a", &budget).unwrap_err();
        assert_eq!(message, "more than 256 patterns in all files together");

        let light = Pattern::compile("a", &Budget::default()).unwrap();
        assert!(last.weight > light.weight, "{last:?}");
        assert!(budget.admits_work(PATTERN_WORK_MAX - last.weight * 3));
        assert_eq!(last.is_in("ab", &budget), Some(true));
        assert_eq!(last.is_in("", &budget), None);
    }
}
