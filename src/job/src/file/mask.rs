//! Hides unquoted `{{ }}` from the YAML parser, which would read nested maps.
//!
//! `load: {{ fs == 'xfs' ? 1 : 2 }}` becomes `load: "          "`, with blanks of the same width. So every other place
//! in the file keeps its line and column. The expression is kept aside under its place. Only a `{{` at the beginning of
//! a value or key is hidden. A scanner that knows just enough YAML skips comments, quotes and block scalars. A `{{`
//! inside a longer text needs no hiding.

use std::collections::BTreeMap;

use super::{
    at::At,
    error::{Files, JobFileError},
    limits::TEMPLATE_BYTES_MAX,
    quotes::Quotes,
};

/// The text for the YAML parser, and what was hidden: (line, column) to the raw text with its braces.
#[derive(Debug)]
pub(crate) struct Masked {
    pub(crate) text: String,
    pub(crate) hidden: BTreeMap<(u32, u32), String>,
}

/// Hides the unquoted templates of file number `file`.
pub(crate) fn mask(text: &str, file: u32, files: &Files) -> Result<Masked, JobFileError> {
    if !text.contains("{{") {
        return Ok(Masked {
            text: text.to_owned(),
            hidden: BTreeMap::new(),
        });
    }
    let mut scanner = Scanner::new(text);
    while scanner.i < scanner.chars.len() {
        scanner.step().map_err(|(line, column)| {
            files.error(
                At { file, line, column },
                "template_open",
                format!("'{{{{' without its '}}}}' within {TEMPLATE_BYTES_MAX} bytes"),
                "close the template, or quote the text if it is not a template",
            )
        })?;
    }
    Ok(Masked {
        text: scanner.out,
        hidden: scanner.hidden,
    })
}

/// Construct that the scanner is inside of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// Where a key or value may begin.
    Start,
    /// A scalar without quotes, or what follows a closed one.
    Plain,
    Single,
    Double,
    Comment,
}

struct Scanner {
    chars: Vec<char>,
    i: usize,
    line: u32,
    /// From 1.
    column: u32,
    inside: Inside,
    /// Open `[` and `{`.
    flow: usize,
    /// Column of the key or dash that the present value belongs to; 0 at the top.
    owner: u32,
    /// Column of the present token.
    token: u32,
    out: String,
    hidden: BTreeMap<(u32, u32), String>,
}

impl Scanner {
    fn new(text: &str) -> Self {
        Self {
            chars: text.chars().collect(),
            i: 0,
            line: 1,
            column: 1,
            inside: Inside::Start,
            flow: 0,
            owner: 0,
            token: 1,
            out: String::with_capacity(text.len()),
            hidden: BTreeMap::new(),
        }
    }

    fn at(&self, ahead: usize) -> char {
        self.chars.get(self.i + ahead).copied().unwrap_or('\n')
    }

    /// Returns true if nothing but a blank or a line end follows `ahead` characters on.
    fn blank(&self, ahead: usize) -> bool {
        matches!(self.at(ahead), ' ' | '\t' | '\n' | '\r')
    }

    fn advance(&mut self) {
        let Some(&c) = self.chars.get(self.i) else {
            return;
        };
        self.out.push(c);
        self.i += 1;
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
    }

    fn advance_by(&mut self, count: usize) {
        for _ in 0..count {
            self.advance();
        }
    }

    /// One character or construct. An error is the place of a template that never closes.
    fn step(&mut self) -> Result<(), (u32, u32)> {
        let c = self.at(0);
        if c == '\n' {
            self.newline();
            return Ok(());
        }
        match self.inside {
            Inside::Comment => self.advance(),
            Inside::Single if c == '\'' && self.at(1) == '\'' => self.advance_by(2),
            Inside::Double if c == '\\' && self.at(1) != '\n' => self.advance_by(2),
            Inside::Single | Inside::Double => {
                if c == if self.inside == Inside::Single {
                    '\''
                } else {
                    '"'
                } {
                    self.inside = Inside::Plain;
                }
                self.advance();
            }
            Inside::Start => return self.start(c),
            Inside::Plain => self.plain(c),
        }
        Ok(())
    }

    fn newline(&mut self) {
        self.advance();
        match self.inside {
            Inside::Single | Inside::Double => return,
            // A plain scalar goes on over lines that are indented more than its owner.
            Inside::Plain if self.flow > 0 || self.indent() >= self.owner.max(1) => return,
            Inside::Start | Inside::Comment | Inside::Plain => self.inside = Inside::Start,
        }
        if self.flow == 0 && self.at(0) != '\n' {
            let indent = self.indent();
            self.owner = self.owner.min(indent);
        }
    }

    /// Blanks at the head of the present line; a blank line or comment counts as none.
    fn indent(&self) -> u32 {
        let mut blanks = 0;
        while self.at(blanks) == ' ' && self.i + blanks < self.chars.len() {
            blanks += 1;
        }
        if matches!(self.at(blanks), '\n' | '\r' | '#') {
            0
        } else {
            u32::try_from(blanks).unwrap_or(u32::MAX)
        }
    }

    fn start(&mut self, c: char) -> Result<(), (u32, u32)> {
        self.token = self.column;
        match c {
            ' ' | '\t' | '\r' => self.advance(),
            '#' => self.inside = Inside::Comment,
            '{' if self.at(1) == '{' => return self.template(),
            '[' | '{' => self.open(),
            ',' | ']' | '}' if self.flow > 0 => self.separator(c),
            '\'' | '"' => {
                self.inside = if c == '\'' {
                    Inside::Single
                } else {
                    Inside::Double
                };
                self.advance();
            }
            '-' | '?' | ':' if self.blank(1) => {
                if self.flow == 0 && c != ':' {
                    self.owner = self.column;
                }
                self.advance();
            }
            '-' if self.column == 1 && self.at(1) == '-' && self.at(2) == '-' && self.blank(3) => {
                (self.owner, self.flow) = (0, 0);
                self.advance_by(3);
            }
            '|' | '>' if self.flow == 0 && self.is_block_header() => self.block(),
            '&' | '*' | '!' => {
                while !(self.blank(0) || (self.flow > 0 && matches!(self.at(0), ',' | ']' | '}'))) {
                    self.advance();
                }
            }
            _ => self.inside = Inside::Plain,
        }
        Ok(())
    }

    fn open(&mut self) {
        self.flow += 1;
        self.advance();
    }

    fn separator(&mut self, c: char) {
        if c == ',' {
            self.inside = Inside::Start;
        } else {
            self.flow -= 1;
            self.inside = Inside::Plain;
        }
        self.advance();
    }

    fn plain(&mut self, c: char) {
        match c {
            ':' if self.blank(1) => {
                if self.flow == 0 {
                    self.owner = self.token;
                }
                self.inside = Inside::Start;
            }
            '#' if self.out.ends_with([' ', '\t', '\n']) => {
                self.inside = Inside::Comment;
                return;
            }
            ',' | ']' | '}' if self.flow > 0 => {
                self.separator(c);
                return;
            }
            _ => {}
        }
        self.advance();
    }

    /// `|` or `>` with an optional indentation digit and `+` or `-`, then nothing or a comment.
    fn is_block_header(&self) -> bool {
        let mut ahead = 1;
        while ahead <= 2 && matches!(self.at(ahead), '+' | '-' | '1'..='9') {
            ahead += 1;
        }
        while matches!(self.at(ahead), ' ' | '\t' | '\r') {
            ahead += 1;
        }
        self.at(ahead) == '\n' || (self.at(ahead) == '#' && self.blank(ahead - 1))
    }

    /// Skips a block scalar: every line that is blank or indented more than its owner.
    fn block(&mut self) {
        loop {
            while self.i < self.chars.len() && self.at(0) != '\n' {
                self.advance();
            }
            if self.i >= self.chars.len() {
                return;
            }
            self.advance();
            let mut blanks = 0;
            while self.at(blanks) == ' ' && self.i + blanks < self.chars.len() {
                blanks += 1;
            }
            let is_blank = matches!(self.at(blanks), '\n' | '\r');
            if !is_blank && u32::try_from(blanks).unwrap_or(u32::MAX) < self.owner {
                self.inside = Inside::Start;
                let indent = self.indent();
                self.owner = self.owner.min(indent);
                return;
            }
            if !is_blank && self.owner == 0 && self.is_marker() {
                self.inside = Inside::Start;
                return;
            }
        }
    }

    /// Returns true if `---` or `...` stands here.
    fn is_marker(&self) -> bool {
        ['-', '.']
            .iter()
            .any(|&m| self.at(0) == m && self.at(1) == m && self.at(2) == m && self.blank(3))
    }

    /// Characters of the text that begins here with a template: more text and templates may follow it.
    fn text_length(&self) -> Option<usize> {
        let rest = self.chars.get(self.i..).unwrap_or_default();
        let mut end = 0;
        loop {
            let mut next = end;
            while matches!(self.at(next), ' ' | '\t') {
                next += 1;
            }
            end = match self.at(next) {
                '\n' | '\r' => return Some(end),
                '#' if next > end => return Some(end),
                ':' if self.blank(next + 1) => return Some(end),
                ',' | ']' | '}' if self.flow > 0 => return Some(end),
                '{' if self.at(next + 1) == '{' => next + template_length(rest.get(next..)?)?,
                _ => next + 1,
            };
        }
    }

    fn template(&mut self) -> Result<(), (u32, u32)> {
        let place = (self.line, self.column);
        let length = self.text_length().ok_or(place)?;
        let raw: String = self.chars.iter().skip(self.i).take(length).collect();
        let first_line = raw.chars().take_while(|&c| c != '\n').count();
        for (n, c) in raw.chars().enumerate() {
            let masked = match c {
                '\n' => '\n',
                _ if n == 0 || n + 1 == first_line => '"',
                _ => ' ',
            };
            if let Some(slot) = self.chars.get_mut(self.i) {
                *slot = masked;
            }
            self.advance();
        }
        self.hidden.insert(place, raw);
        self.inside = Inside::Plain;
        Ok(())
    }
}

/// Characters from `{{` to its `}}`, both included. Quotes hide a `}}`, unless nothing else closes.
fn template_length(chars: &[char]) -> Option<usize> {
    let within = chars.get(..chars.len().min(TEMPLATE_BYTES_MAX))?;
    let mut quotes = Quotes::default();
    let mut first = None;
    for (n, pair) in within.windows(2).enumerate().skip(2) {
        let (c, next) = (pair.first().copied()?, pair.get(1).copied()?);
        if c == '}' && next == '}' {
            if quotes.are_closed() {
                return Some(n + 2);
            }
            first = first.or(Some(n + 2));
        }
        quotes.read(c);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(text: &str) -> Vec<(u32, u32, String)> {
        let masked = mask(text, 0, &Files::default()).expect("masks");
        let shape = |t: &str| t.lines().map(|l| l.chars().count()).collect::<Vec<_>>();
        assert_eq!(
            shape(&masked.text),
            shape(text),
            "places stay: {}",
            masked.text
        );
        masked
            .hidden
            .into_iter()
            .map(|((l, c), raw)| (l, c, raw))
            .collect()
    }

    #[test]
    fn templates_are_found_where_values_begin() {
        let one = |line, column, raw: &str| vec![(line, column, raw.to_owned())];
        assert_eq!(hidden("a: {{ b }}\nc: 1\n"), one(1, 4, "{{ b }}"));
        assert_eq!(hidden("- {{ b ? 1 : 2 }}\n"), one(1, 3, "{{ b ? 1 : 2 }}"));
        assert_eq!(hidden("x: [1, {{ b }}, 3]"), one(1, 8, "{{ b }}"));
        assert_eq!(hidden("x: {y: {{ b }}}"), one(1, 8, "{{ b }}"));
        assert_eq!(hidden("x:\n  {{ b }}\n"), one(2, 3, "{{ b }}"));
        assert_eq!(
            hidden("x: {{\n  if a\n 1 end }} # c\ny: 2"),
            one(1, 4, "{{\n  if a\n 1 end }}")
        );
        assert_eq!(hidden("x: {{ '}}' }}"), one(1, 4, "{{ '}}' }}"));
        assert_eq!(hidden("x: {{ don't }}"), one(1, 4, "{{ don't }}"));
        assert_eq!(
            hidden("x: {{ a }}-{{ b }} c # d"),
            one(1, 4, "{{ a }}-{{ b }} c")
        );
        assert_eq!(hidden("x: [{{ a }} b, c]"), one(1, 5, "{{ a }} b"));
        assert_eq!(hidden("s: |\n  {{ no }}\nx: {{ b }}"), one(3, 4, "{{ b }}"));
        assert_eq!(
            hidden("- s: |\n    {{ no }}\n  x: {{ b }}"),
            one(3, 6, "{{ b }}")
        );
        assert_eq!(
            hidden("s: >-\n\n  {{ no }}\n\n---\nx: {{ b }}"),
            one(6, 4, "{{ b }}")
        );
        assert_eq!(hidden("# it's\nx: {{ b }}"), one(2, 4, "{{ b }}"));
        assert_eq!(hidden("s: it's\nx: {{ b }}"), one(2, 4, "{{ b }}"));
        assert_eq!(
            hidden("s: it\n  's {{ no }}\nx: {{ b }}"),
            one(3, 4, "{{ b }}")
        );
    }

    #[test]
    fn other_braces_are_left_to_the_parser() {
        for text in [
            "a: '{{ b }}'",
            "a: \"{{ b }}\"",
            "a: b {{ c }}",
            "a: {b: {c: 1}}",
            "# {{ a }}",
            "a: 1 # {{ a }}",
            "a: |\n  {{ b }}\n  {{ c }}\n",
            "a:\n- |\n {{ b }}\n",
            "a: 'x\n  {{ b }}\n  y'",
        ] {
            assert_eq!(hidden(text), [], "{text:?}");
        }
    }

    #[test]
    fn an_open_template_is_an_error_with_its_place() {
        let mut files = Files::default();
        let file = files.add("f.yaml", "a: 1\nb: {{ c\n");
        let error = mask("a: 1\nb: {{ c\n", file, &files).expect_err("open");
        assert_eq!(
            (error.code, error.line, error.column),
            ("template_open", 2, 4)
        );
    }
}
