//! Templates `{{ }}`: the only computation in a job file.
//!
//! They have literals, keys and `a.b`, `==`, `=~ /pattern/`, `||`, `? :`, if/elsif/else/end and
//! case/when/then/else/end. Anything else is refused with its place. So a file never runs code.

use serde_json::Value;

use super::{
    at::At,
    error::{Files, JobFileError, printable},
    lexer::{Token, tokens},
    limits::{TEMPLATE_BYTES_MAX, TEMPLATE_NESTING_MAX},
    pattern::Pattern,
    quotes::Quotes,
};

const HINT: &str = "a template knows keys, a.b, 'text', numbers, true, false, nil, ==, =~ /pattern/, ||, ? :, \
                    if/elsif/else/end and case/when/then/else/end";

/// Meaning of texts in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Texts {
    /// A text with `{{ }}` is a template, but below `script`.
    Templates,
    /// No text is a template.
    AsTheyStand,
}

/// A text with at least one `{{ }}`.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) pieces: Vec<Piece>,
    /// Bytes of the text: what computing it costs.
    pub(crate) bytes: usize,
}

/// A part of such a text.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(String),
    Expr(Expr, At),
}

/// An expression. Its depth is bounded by [`TEMPLATE_NESTING_MAX`].
#[derive(Debug)]
pub(crate) enum Expr {
    Literal(Value),
    /// Keys from the top of the job.
    Path(Vec<String>, At),
    Equal(Box<Expr>, Box<Expr>),
    /// A value, the pattern to find in its text, and where the value stands.
    Match(Box<Expr>, Box<Pattern>, At),
    /// The first that is neither nil nor false, else the last.
    Or(Vec<Expr>),
    /// Conditions with their values, then the value of else.
    If(Vec<(Expr, Expr)>, Box<Expr>),
    /// A value, alternatives with their values, then the value of else.
    Case(Box<Expr>, Vec<(Vec<Expr>, Expr)>, Box<Expr>),
}

impl Template {
    /// Reads `text`, whose first character stands at `at`; `None` when it holds no `{{`.
    pub(crate) fn parse(text: &str, at: At, files: &Files) -> Result<Option<Self>, JobFileError> {
        if !text.contains("{{") {
            return Ok(None);
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        let mut place = at;
        while let Some((before, inside, after)) = split(rest).map_err(|n| {
            let place = moved(place, rest.get(..n).unwrap_or_default());
            let message = format!("'{{{{' without its '}}}}' within {TEMPLATE_BYTES_MAX} bytes");
            files.error(place, "template_open", message, "close the template")
        })? {
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            place = moved(moved(place, before), "{{");
            pieces.push(Piece::Expr(expression(inside, place, files)?, place));
            place = moved(moved(place, inside), "}}");
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        let is_blank = |p: &Piece| matches!(p, Piece::Text(t) if t.trim().is_empty());
        if pieces.iter().filter(|p| !is_blank(p)).count() == 1 {
            pieces.retain(|p| !is_blank(p));
        }
        Ok(Some(Self {
            pieces,
            bytes: text.len(),
        }))
    }
}

/// `at`, after `text`.
fn moved(at: At, text: &str) -> At {
    text.chars().fold(at, |at, c| {
        if c == '\n' {
            At {
                line: at.line + 1,
                column: 1,
                ..at
            }
        } else {
            At {
                column: at.column + 1,
                ..at
            }
        }
    })
}

/// Returns the text before, inside and after the first `{{ }}`; an error is the offset of one that stays open.
fn split(text: &str) -> Result<Option<(&str, &str, &str)>, usize> {
    let Some((before, rest)) = text.split_once("{{") else {
        return Ok(None);
    };
    let mut quotes = Quotes::default();
    let mut first = None;
    for (n, c) in rest.char_indices() {
        if n > TEMPLATE_BYTES_MAX {
            break;
        }
        if rest.get(n..).is_some_and(|r| r.starts_with("}}")) {
            first = first.or(Some(n));
            if quotes.are_closed() {
                first = Some(n);
                break;
            }
        }
        quotes.read(c);
    }
    let end = first.ok_or(before.len())?;
    let (inside, after) = rest.split_at_checked(end).ok_or(before.len())?;
    Ok(Some((
        before,
        inside,
        after.strip_prefix("}}").unwrap_or(after),
    )))
}

fn expression(text: &str, at: At, files: &Files) -> Result<Expr, JobFileError> {
    let refuse = |no: Refusal| files.error(no.at, no.code, no.message, no.hint);
    let tokens = tokens(text, at).map_err(|u| refuse(Refusal::syntax(u.at, u.message)))?;
    let end = moved(at, text);
    let mut parser = Parser {
        files,
        tokens,
        next: 0,
        depth: 0,
        end,
    };
    let parsed = parser.ternary().and_then(|expr| match parser.peek() {
        None => Ok(expr),
        Some(_) => Err(parser.expected("'}}'")),
    });
    parsed.map_err(refuse)
}

struct Refusal {
    at: At,
    code: &'static str,
    message: String,
    hint: &'static str,
}

impl Refusal {
    fn syntax(at: At, message: String) -> Self {
        Self {
            at,
            code: "template_syntax",
            message,
            hint: HINT,
        }
    }
}

struct Parser<'f> {
    files: &'f Files,
    tokens: Vec<(Token, At)>,
    next: usize,
    depth: usize,
    end: At,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(token, _)| token)
    }

    fn place(&self) -> At {
        self.tokens.get(self.next).map_or(self.end, |(_, at)| *at)
    }

    fn expected(&self, what: &str) -> Refusal {
        let found = match self.peek() {
            None => "the end of the template".to_owned(),
            Some(Token::Text(text)) => format!("text '{}'", printable(text, 40)),
            Some(Token::Number(number)) => format!("number {number}"),
            Some(Token::Word(word)) => format!("'{}'", printable(word, 40)),
            Some(Token::Pattern(pattern)) => format!("pattern /{}/", printable(pattern, 40)),
            Some(Token::Sign(sign)) => format!("'{sign}'"),
        };
        Refusal::syntax(
            self.place(),
            format!("found {found} where {what} was expected"),
        )
    }

    fn accept_sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(s)) if *s == sign);
        self.next += usize::from(found);
        found
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(w)) if w == word);
        self.next += usize::from(found);
        found
    }

    fn ternary(&mut self) -> Result<Expr, Refusal> {
        self.depth += 1;
        if self.depth > TEMPLATE_NESTING_MAX {
            return Err(Refusal::syntax(
                self.place(),
                format!("template nests deeper than {TEMPLATE_NESTING_MAX} levels"),
            ));
        }
        let condition = self.or()?;
        let whole = if self.accept_sign("?") {
            let yes = self.ternary()?;
            if !self.accept_sign(":") {
                return Err(self.expected("':' of '? :'"));
            }
            Expr::If(vec![(condition, yes)], Box::new(self.ternary()?))
        } else {
            condition
        };
        self.depth -= 1;
        Ok(whole)
    }

    fn or(&mut self) -> Result<Expr, Refusal> {
        let first = self.equal()?;
        let mut all = vec![first];
        while self.accept_sign("||") {
            all.push(self.equal()?);
        }
        Ok(if all.len() == 1 {
            all.remove(0)
        } else {
            Expr::Or(all)
        })
    }

    fn equal(&mut self) -> Result<Expr, Refusal> {
        let at = self.place();
        let left = self.primary()?;
        if self.accept_sign("=~") {
            return Ok(Expr::Match(Box::new(left), Box::new(self.pattern()?), at));
        }
        if !self.accept_sign("==") {
            return Ok(left);
        }
        let right = self.primary()?;
        Ok(Expr::Equal(Box::new(left), Box::new(right)))
    }

    fn pattern(&mut self) -> Result<Pattern, Refusal> {
        let Some(Token::Pattern(pattern)) = self.peek() else {
            return Err(self.expected("/pattern/"));
        };
        let compiled = Pattern::compile(pattern, &self.files.patterns);
        let compiled = compiled.map_err(|(message, hint)| Refusal {
            at: self.place(),
            code: "template_pattern",
            message,
            hint,
        })?;
        self.next += 1;
        Ok(compiled)
    }

    fn primary(&mut self) -> Result<Expr, Refusal> {
        let at = self.place();
        let found = self.peek().cloned();
        let expr = match found {
            Some(Token::Text(text)) => Expr::Literal(Value::String(text)),
            Some(Token::Number(number)) => Expr::Literal(number),
            Some(Token::Word(word)) => match word.as_str() {
                "if" => return self.if_else(),
                "case" => return self.case(),
                "true" => Expr::Literal(Value::Bool(true)),
                "false" => Expr::Literal(Value::Bool(false)),
                "nil" => Expr::Literal(Value::Null),
                "when" | "then" | "else" | "elsif" | "end" | "and" | "or" | "not" | "unless"
                | "while" | "until" | "do" | "begin" | "rescue" | "return" | "self" | "def" => {
                    return Err(self.expected("a value"));
                }
                _ => Expr::Path(word.split('.').map(str::to_owned).collect(), at),
            },
            Some(Token::Sign(_) | Token::Pattern(_)) | None => return Err(self.expected("a value")),
        };
        self.next += 1;
        Ok(expr)
    }

    fn if_else(&mut self) -> Result<Expr, Refusal> {
        let mut arms = Vec::new();
        while self.accept_word(if arms.is_empty() { "if" } else { "elsif" }) {
            let condition = self.ternary()?;
            self.accept_word("then");
            arms.push((condition, self.ternary()?));
        }
        let otherwise = self.otherwise("'elsif', 'else' or 'end' of 'if'")?;
        Ok(Expr::If(arms, Box::new(otherwise)))
    }

    fn case(&mut self) -> Result<Expr, Refusal> {
        self.next += 1;
        let subject = self.ternary()?;
        let mut arms = Vec::new();
        while self.accept_word("when") {
            let mut values = vec![self.ternary()?];
            while self.accept_sign(",") {
                values.push(self.ternary()?);
            }
            self.accept_word("then");
            arms.push((values, self.ternary()?));
        }
        if arms.is_empty() {
            return Err(self.expected("'when'"));
        }
        let otherwise = self.otherwise("'when', 'else' or 'end' of 'case'")?;
        Ok(Expr::Case(Box::new(subject), arms, Box::new(otherwise)))
    }

    /// `else X end` or `end`, which gives nil.
    fn otherwise(&mut self, what: &str) -> Result<Expr, Refusal> {
        let has_else = self.accept_word("else");
        let otherwise = if has_else {
            self.ternary()?
        } else {
            Expr::Literal(Value::Null)
        };
        if self.accept_word("end") {
            Ok(otherwise)
        } else {
            Err(self.expected(if has_else { "'end'" } else { what }))
        }
    }
}
