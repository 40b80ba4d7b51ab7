//! Reads an expression: words of the lexer of job files, `or` below `and` below `not`.

use std::{fmt, str::FromStr};

use regex::{Regex, RegexBuilder};

use super::expression::{
    DEPTH_MAX, EXPRESSION_BYTES_MAX, Expression, FIELDS, Field, Node, PARAMETER,
};
use crate::{
    file::{
        At, Token, Unknown,
        limits::{PATTERN_BYTES_MAX, PATTERN_NESTING_MAX},
        pattern_problem, tokens_of,
    },
    nearest,
};

/// The signs of an expression, longer ones first.
const SIGNS: [&str; 5] = ["==", "!=", "~", "(", ")"];
const HINT: &str =
    "an expression has FIELD == 'text', !=, ~ 'pattern', and, or, not and parentheses";

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    /// The line in the text, from 1.
    pub line: u32,
    /// The column in it, from 1.
    pub column: u32,
    /// Problem.
    pub message: String,
    /// Advice.
    pub hint: String,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            column,
            message,
            ..
        } = self;
        if *line > 1 {
            write!(f, "line {line}, column {column}: {message}")
        } else {
            write!(f, "column {column}: {message}")
        }
    }
}

impl std::error::Error for ExpressionError {}

fn error(at: At, message: impl Into<String>, hint: impl Into<String>) -> ExpressionError {
    ExpressionError {
        line: at.line,
        column: at.column,
        message: message.into(),
        hint: hint.into(),
    }
}

const START: At = At {
    file: 0,
    line: 1,
    column: 1,
};

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        if text.len() > EXPRESSION_BYTES_MAX {
            let message = format!(
                "the expression has {} bytes; the limit is {EXPRESSION_BYTES_MAX}",
                text.len()
            );
            return Err(error(START, message, "divide it into several rules"));
        }
        let unknown = |Unknown { at, message }| error(at, message, HINT);
        let words = tokens_of(text, START, &SIGNS, "an expression").map_err(unknown)?;
        let (line, last) = (text.matches('\n').count(), text.lines().last());
        let column = last.map_or(0, |last| last.chars().count());
        let place = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let end = At {
            line: place(line + 1),
            column: place(column + 1),
            ..START
        };
        let mut parser = Parser {
            words: words.into_iter().peekable(),
            end,
            depth: 0,
        };
        let node = parser.any()?;
        match parser.words.next() {
            None => Ok(Self(node)),
            Some((token, at)) => Err(unexpected(&token, at, "the end, 'and' or 'or'")),
        }
    }
}

struct Parser {
    words: std::iter::Peekable<std::vec::IntoIter<(Token, At)>>,
    end: At,
    depth: usize,
}

fn unexpected(token: &Token, at: At, expected: &str) -> ExpressionError {
    let found = match token {
        Token::Text(text) => format!("'{text}'"),
        Token::Number(number) => number.to_string(),
        Token::Pattern(pattern) => format!("/{pattern}/"),
        Token::Word(word) => word.clone(),
        Token::Sign(sign) => (*sign).to_owned(),
    };
    let found: String = found
        .chars()
        .take(60)
        .flat_map(char::escape_debug)
        .collect();
    error(at, format!("{found} where {expected} should be"), HINT)
}

impl Parser {
    fn takes(&mut self, wanted: &Token) -> bool {
        self.words.next_if(|(token, _)| token == wanted).is_some()
    }

    fn next(&mut self, expected: &str) -> Result<(Token, At), ExpressionError> {
        let ended = || {
            error(
                self.end,
                format!("the end where {expected} should be"),
                HINT,
            )
        };
        self.words.next().ok_or_else(ended)
    }

    /// Parts with a word between them.
    fn parts(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Result<Node, ExpressionError>,
        joined: fn(Vec<Node>) -> Node,
    ) -> Result<Node, ExpressionError> {
        let first = part(self)?;
        let mut all = vec![first];
        while self.takes(&Token::Word(word.to_owned())) {
            all.push(part(self)?);
        }
        match <[Node; 1]>::try_from(all) {
            Ok([only]) => Ok(only),
            Err(all) => Ok(joined(all)),
        }
    }

    fn any(&mut self) -> Result<Node, ExpressionError> {
        self.parts("or", Self::all, Node::Any)
    }

    fn all(&mut self) -> Result<Node, ExpressionError> {
        self.parts("and", Self::one, Node::All)
    }

    fn one(&mut self) -> Result<Node, ExpressionError> {
        const EXPECTED: &str = "a field, 'not' or '('";
        let (token, at) = self.next(EXPECTED)?;
        let is_not = token == Token::Word("not".to_owned());
        if !is_not && token != Token::Sign("(") {
            return match token {
                Token::Word(word) => self.comparison(&word, at),
                other => Err(unexpected(&other, at, EXPECTED)),
            };
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("more than {DEPTH_MAX} levels of parentheses and 'not'");
            return Err(error(at, message, "divide it into several rules"));
        }
        let inner = if is_not {
            Node::Not(Box::new(self.one()?))
        } else {
            let inner = self.any()?;
            match self.next("')'")? {
                (Token::Sign(")"), _) => inner,
                (other, at) => return Err(unexpected(&other, at, "')', 'and' or 'or'")),
            }
        };
        self.depth -= 1;
        Ok(inner)
    }

    fn comparison(&mut self, word: &str, at: At) -> Result<Node, ExpressionError> {
        let field = field(word, at)?;
        let sign = match self.next("==, != or ~")? {
            (Token::Sign(sign), _) if !["(", ")"].contains(&sign) => sign,
            (other, at) => return Err(unexpected(&other, at, "==, != or ~")),
        };
        let expected = "a text in quotes, a number, true or false";
        let (token, at) = self.next(expected)?;
        let value = match token {
            Token::Text(text) => text,
            Token::Number(number) => number.to_string(),
            Token::Word(word) if ["true", "false"].contains(&word.as_str()) => word,
            Token::Word(word) => {
                let message = format!("{word} where {expected} should be");
                return Err(error(at, message, format!("put it in quotes: '{word}'")));
            }
            other => return Err(unexpected(&other, at, expected)),
        };
        match sign {
            "==" => Ok(Node::Equal(field, value)),
            "!=" => Ok(Node::Unequal(field, value)),
            _ => Ok(Node::Match(field, pattern(&value, at)?)),
        }
    }
}

fn field(word: &str, at: At) -> Result<Field, ExpressionError> {
    if let Some(path) = word.strip_prefix(PARAMETER) {
        return Ok(Field::Parameter(path.to_owned()));
    }
    if let Some(known) = FIELDS.into_iter().find(|known| *known == word) {
        return Ok(Field::Known(known));
    }
    let near = nearest(word, FIELDS).map_or_else(
        || format!("fields are {}", FIELDS.join(", ")),
        |near| format!("did you mean '{near}'?"),
    );
    Err(error(
        at,
        format!("unknown field '{word}'"),
        format!("{near}; a parameter is {PARAMETER}{word}"),
    ))
}

/// A pattern that fits whole values only.
fn pattern(text: &str, at: At) -> Result<Regex, ExpressionError> {
    let build = |pattern: &str| {
        RegexBuilder::new(pattern)
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(PATTERN_BYTES_MAX)
            .nest_limit(PATTERN_NESTING_MAX)
            .build()
    };
    let refuse = |failed: regex::Error| {
        let (message, hint) = pattern_problem(text, &failed);
        error(at, message, hint)
    };
    // Alone first: `a)|(b` would become another pattern between the parentheses.
    build(text).map_err(refuse)?;
    build(&format!("^(?:{text})$")).map_err(refuse)
}

#[cfg(test)]
mod tests;
