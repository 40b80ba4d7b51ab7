//! Sanitizes other people's texts for a terminal: letters stay, and nothing moves the cursor, hides or reorders them.
//! Pipes and files are not affected.

use anstream::adapter::StripBytes;

/// Returns true if a character is invisible, but acts on a terminal or on the order of the letters beside it.
pub(crate) fn acts(c: char) -> bool {
    c.is_control() || is_bidi(c)
}

/// Returns true if a character changes the direction of the text around it.
pub(crate) fn is_bidi(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Colour class of a word on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hue {
    /// Success.
    Good,
    /// Failure.
    Bad,
    /// Work in progress.
    Busy,
}

/// End of a mark. Marks are private-use characters, which are removed from foreign texts.
const END: char = '\u{e000}';

impl Hue {
    const ALL: [(Self, char, &'static str); 3] = [
        (Self::Good, '\u{e001}', "\u{1b}[32m"),
        (Self::Bad, '\u{e002}', "\u{1b}[31m"),
        (Self::Busy, '\u{e003}', "\u{1b}[36m"),
    ];
}

/// Returns true if a character marks a colour.
pub(crate) fn is_mark(c: char) -> bool {
    ('\u{e000}'..='\u{e003}').contains(&c)
}

/// Returns `text` between the marks of a colour.
pub(crate) fn hued(hue: Hue, text: &str) -> String {
    let mark = Hue::ALL.iter().find(|(one, ..)| *one == hue);
    mark.map_or_else(
        || text.to_owned(),
        |(_, mark, _)| format!("{mark}{text}{END}"),
    )
}

/// Replaces marks by colours, or removes them.
pub(crate) fn paint(text: &str, with_colours: bool) -> String {
    let mut painted = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            END if with_colours => painted.push_str("\u{1b}[0m"),
            c if !is_mark(c) => painted.push(c),
            c if with_colours => {
                let colour = Hue::ALL.iter().find(|(_, mark, _)| *mark == c);
                painted.push_str(colour.map_or("", |(.., code)| code));
            }
            _ => {}
        }
    }
    painted
}

/// Returns the command's own lines without control characters. Tabs and newlines stay.
pub(crate) fn lines(text: &str) -> String {
    text.chars()
        .map(|c| {
            if acts(c) && !"\n\t".contains(c) {
                ' '
            } else {
                c
            }
        })
        .collect()
}

/// Filters a log, piece by piece. Escape sequences are removed completely and never extend over the end of a line, so
/// none can hide the next lines. A lone carriage return ends a line instead of overwriting it.
#[derive(Debug, Default)]
pub(crate) struct LogFilter {
    strip: StripBytes,
    /// First bytes of a letter whose other bytes are missing yet.
    open: Vec<u8>,
    after_return: bool,
}

impl LogFilter {
    /// Returns the part of the next piece that may be shown.
    pub(crate) fn next(&mut self, bytes: &[u8]) -> String {
        let mut shown = std::mem::take(&mut self.open);
        for line in bytes.split_inclusive(|byte| *byte == b'\n' || *byte == b'\r') {
            if line == b"\n" && std::mem::take(&mut self.after_return) {
                continue;
            }
            let (text, end) = match line.split_last() {
                Some((b'\n' | b'\r', text)) => (text, true),
                _ => (line, false),
            };
            self.after_return = line.ends_with(b"\r");
            for kept in self.strip.strip_next(text) {
                shown.extend_from_slice(kept);
            }
            if end {
                self.strip = StripBytes::default();
                shown.push(b'\n');
            }
        }
        self.letters(&shown)
    }

    /// Returns the rest at the end.
    pub(crate) fn end(&mut self) -> String {
        let open = std::mem::take(&mut self.open);
        String::from_utf8_lossy(&open).into_owned()
    }

    fn letters(&mut self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.extend(
                chunk
                    .valid()
                    .chars()
                    .filter(|c| !acts(*c) || "\n\t".contains(*c)),
            );
            let bad = chunk.invalid();
            let is_begun = chunks.peek().is_none()
                && std::str::from_utf8(bad).is_err_and(|error| error.error_len().is_none());
            if is_begun {
                self.open = bad.to_vec();
            } else if !bad.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&[u8]]) -> String {
        let mut filter = LogFilter::default();
        let mut text: String = pieces.iter().map(|piece| filter.next(piece)).collect();
        text.push_str(&filter.end());
        text
    }

    #[test]
    fn nothing_of_a_log_acts_on_the_terminal() {
        let cases: [(&[&[u8]], &str); 10] = [
            (&[b"plain \xc3\xa4\ttab\n"], "plain \u{e4}\ttab\n"),
            (&[b"\x1b[31mred\x1b[0m \x1b]0;title\x07x\n"], "red x\n"),
            // An escape sequence over two pieces, and a letter over three.
            (
                &[b"a\x1b[3", b"1mb\xe2", b"\x82", b"\xac\n"],
                "ab\u{20ac}\n",
            ),
            // An unterminated sequence removes no further line.
            (&[b"\x1b]0;never\nnext\n"], "\nnext\n"),
            (&[b"50%\r100%\r\ndone\r", b"\nend"], "50%\n100%\ndone\nend"),
            (&[b"over\x08\x08\x7fwrite\x07\n"], "overwrite\n"),
            (&["a\u{202e}b\u{2066}c\u{200f}\n".as_bytes()], "abc\n"),
            // The one-byte control sequence introducer, as a letter and as a byte.
            (&["a\u{9b}2Jb\n".as_bytes()], "a2Jb\n"),
            (&[b"a\x9b2Jb\xff\n"], "a2Jb\n"),
            (&[b"cut \xe2\x82"], "cut \u{fffd}"),
        ];
        for (pieces, text) in cases {
            assert_eq!(shown(pieces), text, "{pieces:?}");
        }
    }

    #[test]
    fn lines_keep_their_ends_and_nothing_that_acts() {
        assert_eq!(lines("a\tb\n\u{1b}[2Jc\u{202e}d\r"), "a\tb\n [2Jc d ");
    }
}
