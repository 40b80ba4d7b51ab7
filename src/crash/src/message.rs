//! From a raw console line to the messages on it, without time, caller, log level and escape sequences.

/// One message of the kernel, or other text on the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// Thread or CPU that printed it (`T123`, `C0`), if the console shows it.
    pub(crate) caller: Option<String>,
    pub(crate) text: String,
}

/// Returns the messages of a line. Two CPUs may write to one line, so each time stamp begins a new message.
pub(crate) fn messages(line: &[u8]) -> Vec<Message> {
    let text = plain(line);
    let mut messages = Vec::new();
    let mut begin = 0;
    let mut caller = None;
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('[')) {
        let open = at + found;
        let Some(mut end) = stamp(&text, open) else {
            at = open + 1;
            continue;
        };
        push(&mut messages, caller.take(), &text[begin..open]);
        while let Some((name, after)) = caller_at(&text, end) {
            caller = Some(name);
            end = after;
        }
        begin = end;
        at = end;
    }
    push(&mut messages, caller, &text[begin..]);
    messages
}

/// Returns the seconds of the time stamp at the start of the line, if there is one.
pub(crate) fn seconds(line: &[u8]) -> Option<u64> {
    let start = line.iter().take(8).position(|byte| *byte == b'[')?;
    let digits: Vec<u8> = line
        .get(start + 1..)?
        .iter()
        .copied()
        .skip_while(|byte| *byte == b' ')
        .take_while(|byte| *byte != b'.')
        .take(12)
        .collect();
    std::str::from_utf8(&digits).ok()?.parse().ok()
}

fn push(messages: &mut Vec<Message>, caller: Option<String>, text: &str) {
    let mut text = text.trim();
    while let Some(rest) = after_level(text) {
        text = rest.trim_start();
    }
    if !text.is_empty() {
        messages.push(Message {
            caller,
            text: text.to_owned(),
        });
    }
}

/// Returns the rest behind a log level (`<4>`).
fn after_level(text: &str) -> Option<&str> {
    let (level, rest) = text.strip_prefix('<')?.split_once('>')?;
    let is_level = !level.is_empty() && level.len() <= 3 && is_digits(level);
    is_level.then_some(rest)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the end of the time stamp (`[   12.345678]`, `[12.345678@1]`) that begins at `open`.
fn stamp(text: &str, open: usize) -> Option<usize> {
    let rest = text.get(open + 1..)?;
    let close = rest.bytes().take(32).position(|byte| byte == b']')?;
    let inside = rest.get(..close)?.trim_start_matches(' ');
    let (seconds, part) = inside.split_once('.')?;
    let (part, cpu) = part.split_once('@').unwrap_or((part, ""));
    let is_time = !seconds.is_empty()
        && (1..=9).contains(&part.len())
        && [seconds, part, cpu].into_iter().all(is_digits);
    is_time.then_some(open + 1 + close + 1)
}

/// Returns the caller that printk adds after the time (`[ T123]`, `[    C0]`), and its end.
fn caller_at(text: &str, at: usize) -> Option<(String, usize)> {
    let rest = text.get(at..)?;
    let inner = rest.trim_start_matches(' ').strip_prefix('[')?;
    let close = inner.bytes().take(16).position(|byte| byte == b']')?;
    let name = inner.get(..close)?.trim();
    let number = name.strip_prefix(['T', 'C'])?;
    if number.is_empty() || !is_digits(number) {
        return None;
    }
    let end = at + (rest.len() - inner.len()) + close + 1;
    Some((name.to_owned(), end))
}

/// Returns the line as text without escape sequences, control characters and invalid UTF-8.
fn plain(line: &[u8]) -> String {
    let lossy = String::from_utf8_lossy(line);
    let mut plain = String::with_capacity(lossy.len());
    let mut rest = lossy.chars().peekable();
    while let Some(character) = rest.next() {
        if character == '\u{1b}' {
            if rest.next_if_eq(&'[').is_some() {
                // Parameters, and then the letter that ends the sequence.
                while rest
                    .next_if(|c| c.is_ascii_digit() || *c == ';' || *c == '?')
                    .is_some()
                {}
                rest.next_if(char::is_ascii_alphabetic);
            }
        } else if character == '\t' {
            plain.push(' ');
        } else if !character.is_control() {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        let messages = messages(line.as_bytes()).into_iter();
        messages.map(|message| message.text).collect()
    }

    #[test]
    fn decorations_are_no_part_of_a_message() {
        for line in [
            "oops",
            "[   12.345678] oops",
            "<4>[   12.345678][  T123] oops",
            "[   12.345678][    C0] <4> oops\r",
            "\x1b[1;31m[12.345@1]\x1b[0m\toops",
        ] {
            assert_eq!(texts(line), ["oops"], "{line:?}");
        }
    }

    #[test]
    fn a_time_stamp_within_a_line_begins_a_message() {
        assert_eq!(
            texts("login: [  1.25][  T7] one [#1] [  1.5] two [3.x] [<ffff>]"),
            ["login:", "one [#1]", "two [3.x] [<ffff>]"]
        );
        assert_eq!(messages(b"[1.25][ T7] a")[0].caller.as_deref(), Some("T7"));
    }

    #[test]
    fn seconds_are_those_of_the_stamp() {
        assert_eq!(seconds(b"[  417.670183] x"), Some(417));
        assert_eq!(seconds(b"<4>[    0.000000] x"), Some(0));
        assert_eq!(seconds(b"[x] y"), None);
        assert_eq!(seconds(b"no [ 1.0]"), Some(1));
    }
}
