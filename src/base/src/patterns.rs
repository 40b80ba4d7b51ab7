//! Simple patterns of names: `*` stands for any text, and `?` for one character.

/// Returns true if `name` matches the pattern. Linear in the name for each `*`.
pub fn matches(pattern: &str, name: &str) -> bool {
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
}
