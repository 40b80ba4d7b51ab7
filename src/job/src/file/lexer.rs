//! Splits an expression into tokens, each with its place: those of `{{ }}`, and of submit rules.

use serde_json::Value;

use super::{at::At, scalar};

/// One word.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    /// `'text'` or `"text"`.
    Text(String),
    /// A number.
    Number(Value),
    /// `/pattern/`, which only stands after `=~`.
    Pattern(String),
    /// A key, a dotted path or a keyword.
    Word(String),
    /// One of the signs that are asked for.
    Sign(&'static str),
}

/// Text that is no word.
#[derive(Debug)]
pub(crate) struct Unknown {
    pub(crate) at: At,
    pub(crate) message: String,
}

/// Splits the `text` of a `{{ }}`, whose first character stands at `at`. Line ends and `;` only separate.
pub(crate) fn tokens(text: &str, at: At) -> Result<Vec<(Token, At)>, Unknown> {
    let signs = ["==", "=~", "||", "?", ":", ","];
    tokens_of(text, at, &signs, "a template")
}

/// Splits `text` with these signs, longer ones first; `what` it is, for messages.
pub(crate) fn tokens_of(
    text: &str,
    at: At,
    signs: &[&'static str],
    what: &'static str,
) -> Result<Vec<(Token, At)>, Unknown> {
    let mut lexer = Lexer {
        chars: text.chars().collect(),
        i: 0,
        at,
        signs,
        what,
    };
    let mut found: Vec<(Token, At)> = Vec::new();
    while let Some(c) = lexer.peek(0) {
        let at = lexer.at;
        if c.is_whitespace() || c == ';' {
            lexer.bump();
        } else if c == '/' && matches!(found.last(), Some((Token::Sign("=~"), _))) {
            found.push((lexer.pattern()?, at));
        } else {
            found.push((lexer.token(c)?, at));
        }
    }
    Ok(found)
}

fn unknown<T>(at: At, message: String) -> Result<T, Unknown> {
    Err(Unknown { at, message })
}

struct Lexer<'s> {
    chars: Vec<char>,
    i: usize,
    at: At,
    signs: &'s [&'static str],
    what: &'static str,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.i + ahead).copied()
    }

    fn bump(&mut self) {
        if self.peek(0) == Some('\n') {
            self.at.line += 1;
            self.at.column = 1;
        } else {
            self.at.column += 1;
        }
        self.i += 1;
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(c) = self.peek(0).filter(|&c| accept(c)) {
            taken.push(c);
            self.bump();
        }
        taken
    }

    fn token(&mut self, c: char) -> Result<Token, Unknown> {
        let signed = c == '-' && self.peek(1).is_some_and(|d| d.is_ascii_digit());
        match c {
            '\'' | '"' => self.text(c),
            'a'..='z' | 'A'..='Z' | '_' => self.word(),
            _ if c.is_ascii_digit() || signed => self.number(),
            _ => self.sign(),
        }
    }

    fn text(&mut self, quote: char) -> Result<Token, Unknown> {
        let start = self.at;
        self.bump();
        let mut text = String::new();
        loop {
            let Some(c) = self.peek(0) else {
                return unknown(start, format!("text without its closing {quote}"));
            };
            self.bump();
            match (c, self.peek(0)) {
                _ if c == quote => return Ok(Token::Text(text)),
                ('\\', Some(next)) if next == quote || next == '\\' => {
                    text.push(next);
                    self.bump();
                }
                ('\\', Some(_)) if quote == '"' => {
                    return unknown(
                        start,
                        "an escape other than \\\\ and \\\" in text".to_owned(),
                    );
                }
                ('#', Some('{')) if quote == '"' => {
                    return unknown(
                        start,
                        "'#{' in text: nothing is computed inside text".to_owned(),
                    );
                }
                _ => text.push(c),
            }
        }
    }

    /// `/pattern/`: a `\/` in it is a `/`, any other `\` is the pattern's own.
    fn pattern(&mut self) -> Result<Token, Unknown> {
        let start = self.at;
        self.bump();
        let mut pattern = String::new();
        loop {
            let Some(c) = self.peek(0) else {
                return unknown(start, "a pattern without its closing /".to_owned());
            };
            self.bump();
            match (c, self.peek(0)) {
                ('/', Some(flag)) if flag.is_alphanumeric() => {
                    return unknown(
                        self.at,
                        format!(
                            "'{flag}' after a pattern: it takes no flags, (?{flag}) in front does"
                        ),
                    );
                }
                ('/', _) => return Ok(Token::Pattern(pattern)),
                ('\\', Some(next)) => {
                    if next != '/' {
                        pattern.push(c);
                    }
                    pattern.push(next);
                    self.bump();
                }
                _ => pattern.push(c),
            }
        }
    }

    fn word(&mut self) -> Result<Token, Unknown> {
        let start = self.at;
        let word = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        let is_name = |part: &str| part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if word.split('.').all(is_name) {
            Ok(Token::Word(word))
        } else {
            unknown(
                start,
                format!("'{word}' is neither a key nor a path of keys such as a.b"),
            )
        }
    }

    fn number(&mut self) -> Result<Token, Unknown> {
        let start = self.at;
        let mut text = String::new();
        if self.peek(0) == Some('-') {
            text.push('-');
            self.bump();
        }
        text.push_str(&self.take_while(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.'));
        match scalar::integer(&text).or_else(|| scalar::float(&text)) {
            Some(number) => Ok(Token::Number(number)),
            None => unknown(start, format!("'{text}' is not a number")),
        }
    }

    fn sign(&mut self) -> Result<Token, Unknown> {
        let start = self.at;
        let rest: String = self.chars.iter().skip(self.i).take(3).collect();
        for sign in self.signs {
            if rest.starts_with(sign) && rest != "===" {
                for _ in 0..sign.len() {
                    self.bump();
                }
                return Ok(Token::Sign(sign));
            }
        }
        let wide = ["===", "&&", "||", "!=", "<=", ">=", "!~", "=~"]
            .into_iter()
            .find(|w| rest.starts_with(w));
        let shown: String = wide.map_or_else(|| rest.chars().take(1).collect(), str::to_owned);
        unknown(
            start,
            format!("'{}' is not known in {}", shown.escape_debug(), self.what),
        )
    }
}
