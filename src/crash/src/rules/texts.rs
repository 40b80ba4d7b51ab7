//! Pieces of messages: words without numbers, and places in source files.

use crate::trace::symbol;

/// Maximum length of a text, bytes. Longer texts are cut, because they are titles.
const WORDS_BYTES_MAX: usize = 120;

/// Returns a text without the differences between equal crashes: numbers become `NUM`, addresses `ADDR`.
pub(crate) fn plain_words(text: &str) -> String {
    let mut words = Vec::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let word = plain_word(word);
        length += word.len() + 1;
        if length > WORDS_BYTES_MAX {
            break;
        }
        words.push(word);
    }
    words.join(" ")
}

fn plain_word(word: &str) -> String {
    let inside = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let hex = inside.strip_prefix("0x").unwrap_or(inside);
    let is_hex = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_address = is_hex && (hex.len() >= 8 || hex.len() < inside.len());
    if is_address {
        return word.replace(inside, "ADDR");
    }
    let mut plain = String::with_capacity(word.len());
    let mut was_digit = false;
    for character in word.chars() {
        let is_digit = character.is_ascii_digit();
        if is_digit && !was_digit {
            plain.push_str("NUM");
        } else if !is_digit {
            plain.push(if character.is_ascii_graphic() {
                character
            } else {
                '?'
            });
        }
        was_digit = is_digit;
    }
    plain
}

/// Returns the file and, if printed, the function of a warning: `CPU: 0 PID: 1 at FILE:LINE FUNCTION`. New kernels
/// print `FILE:LINE at FUNCTION, CPU#0: …`, old ones `at FILE:LINE FUNCTION()`.
pub(crate) fn location(text: &str) -> Option<(&str, Option<String>)> {
    let mut words = text.split_whitespace();
    let is_known = text.starts_with("CPU: ") || text.starts_with("at ") || text.contains(" at ");
    if !is_known {
        return None;
    }
    let file = words.find_map(|word| {
        let (file, line) = word.rsplit_once(':')?;
        let is_line = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
        let is_source = [".c", ".h", ".S", ".rs"]
            .iter()
            .any(|end| file.ends_with(end));
        (is_line && is_source).then_some(file)
    });
    match file {
        Some(file) => {
            let named = words.take(2).find_map(symbol);
            Some((file, named))
        }
        None => text.starts_with("CPU: ").then_some(("", None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_addresses_have_no_place_in_a_title() {
        assert_eq!(
            plain_words("executor 4 failed 11 times at 0x7f12 (ffff8800b43179b0): dir12/x"),
            "executor NUM failed NUM times at ADDR (ADDR): dirNUM/x"
        );
        assert!(plain_words(&"word ".repeat(100)).len() <= WORDS_BYTES_MAX);
    }

    #[test]
    fn locations_are_read_in_all_formats() {
        for text in [
            "CPU: 0 PID: 1 at fs/foo.c:12 foo+0x1/0x2",
            "at fs/foo.c:12 foo+0x1/0x2()",
            "fs/foo.c:12 at foo+0x1/0x2, CPU#1: bash/12",
        ] {
            assert_eq!(
                location(text),
                Some(("fs/foo.c", Some("foo".into()))),
                "{text}"
            );
        }
        assert_eq!(
            location("fs/foo.c:12 at 0x0, CPU#1: a/1"),
            Some(("fs/foo.c", None))
        );
        assert_eq!(location("The mand mount option has been deprecated"), None);
        assert_eq!(location("line over 80 characters in foo.c:12"), None);
    }
}
