//! Quotes of a template: finds the characters inside a text or a pattern, where `}}` does not close.

/// State of reading a template, from its first character on.
#[derive(Debug, Default)]
pub(crate) struct Quotes {
    /// The character that closes the text or pattern.
    closer: Option<char>,
    /// True if a backslash of a pattern came just before.
    is_escaped: bool,
    /// The last two characters outside that are not blank.
    last: [char; 2],
}

impl Quotes {
    /// Returns true if the next character stands outside of texts and patterns.
    pub(crate) fn are_closed(&self) -> bool {
        self.closer.is_none()
    }

    /// Reads one character.
    pub(crate) fn read(&mut self, c: char) {
        match self.closer {
            Some('/') if self.is_escaped => self.is_escaped = false,
            Some('/') if c == '\\' => self.is_escaped = true,
            Some(closer) if closer == c => self.closer = None,
            None if matches!(c, '\'' | '"') || (c == '/' && self.last == ['=', '~']) => {
                self.closer = Some(c);
            }
            Some(_) | None => {}
        }
        if !c.is_whitespace() {
            self.last = [self.last[1], c];
        }
    }
}
