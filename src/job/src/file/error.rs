//! The error of job files: its place, the wrong value, the expected one, and what to do.

use std::fmt;

use super::{at::At, budget::Budget};

/// Characters of a source line that a snippet shows.
const SNIPPET_CHARS_MAX: usize = 120;

/// Why a job file was refused. Never retryable: the file, or what it names, must change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFileError {
    /// A stable word for programs, for example `duplicate_key`.
    pub code: &'static str,
    /// The file at fault, as it was named; for a setting, the setting.
    pub file: String,
    /// The line, from 1; 0 when the file as a whole is meant.
    pub line: u32,
    /// The column in characters, from 1; 0 when the file as a whole is meant.
    pub column: u32,
    /// Problem: the value and what was expected.
    pub message: String,
    /// The source line with a mark under the place; empty when there is none.
    pub snippet: String,
    /// Advice; empty when the message says it all.
    pub hint: String,
}

impl JobFileError {
    /// An error about a file, or about something that is not in a file.
    pub(crate) fn whole(code: &'static str, file: &str, message: String, hint: &str) -> Self {
        let (file, hint) = (printable(file, 300), hint.to_owned());
        Self {
            code,
            file,
            line: 0,
            column: 0,
            message,
            snippet: String::new(),
            hint,
        }
    }
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(f, "{}: {}", self.file, self.message)?;
        } else {
            write!(
                f,
                "{}:{}:{}: {}",
                self.file, self.line, self.column, self.message
            )?;
        }
        if !self.snippet.is_empty() {
            write!(f, "\n{}", self.snippet)?;
        }
        if !self.hint.is_empty() {
            write!(f, "\nhint: {}", self.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for JobFileError {}

/// The texts of all files read so far, so that a place can be shown, and what their patterns cost.
#[derive(Debug, Default)]
pub(crate) struct Files {
    texts: Vec<(String, String)>,
    pub(crate) patterns: Budget,
}

impl Files {
    /// Remembers a text and gives the number that places in it carry.
    pub(crate) fn add(&mut self, name: &str, text: &str) -> u32 {
        self.texts.push((printable(name, 300), text.to_owned()));
        u32::try_from(self.texts.len() - 1).unwrap_or(u32::MAX)
    }

    /// How many were read.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// An error at a place.
    pub(crate) fn error(
        &self,
        at: At,
        code: &'static str,
        message: String,
        hint: &str,
    ) -> JobFileError {
        let (file, text) = usize::try_from(at.file)
            .ok()
            .and_then(|n| self.texts.get(n))
            .cloned()
            .unwrap_or_default();
        let snippet = snippet(&text, at);
        JobFileError {
            code,
            file,
            line: at.line,
            column: at.column,
            message,
            snippet,
            hint: hint.to_owned(),
        }
    }

    /// The name of the file that a place is in.
    pub(crate) fn name_of(&self, at: At) -> &str {
        let file = usize::try_from(at.file)
            .ok()
            .and_then(|n| self.texts.get(n));
        file.map_or("", |(name, _)| name)
    }

    /// "line 3", or "line 3 of other.yaml" when `at` is in another file than `from`.
    pub(crate) fn place(&self, at: At, from: At) -> String {
        if at.file == from.file {
            return format!("line {}", at.line);
        }
        let name = usize::try_from(at.file)
            .ok()
            .and_then(|n| self.texts.get(n))
            .map_or("", |f| f.0.as_str());
        format!("line {} of {name}", at.line)
    }
}

/// The line of `at` with its number, and a caret under the column. A far column moves the window.
fn snippet(text: &str, at: At) -> String {
    let (Ok(line), Ok(column)) = (usize::try_from(at.line), usize::try_from(at.column)) else {
        return String::new();
    };
    let Some(source) = line.checked_sub(1).and_then(|n| text.lines().nth(n)) else {
        return String::new();
    };
    let first = column.saturating_sub(SNIPPET_CHARS_MAX * 2 / 3);
    let shown: String = source
        .chars()
        .skip(first)
        .take(SNIPPET_CHARS_MAX)
        .map(visible)
        .collect();
    let number = line.to_string();
    let caret = column
        .saturating_sub(first)
        .saturating_sub(1)
        .min(shown.chars().count());
    format!(
        "{number} | {shown}\n{:width$} | {:caret$}^",
        "",
        "",
        width = number.len()
    )
}

/// A character that may go to a terminal: none that moves the cursor or turns text around.
fn visible(c: char) -> char {
    if c == '\t' {
        ' '
    } else if c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    {
        '\u{fffd}'
    } else {
        c
    }
}

/// `text` cut to `chars_max` characters and without control characters: for messages.
pub(crate) fn printable(text: &str, chars_max: usize) -> String {
    let mut shown: String = text.chars().take(chars_max).map(visible).collect();
    if text.chars().nth(chars_max).is_some() {
        shown.push('…');
    }
    shown
}

/// The message for bytes that are not UTF-8, with the place of the first bad one.
pub(crate) fn not_utf8(file: &str, bytes: &[u8], problem: std::str::Utf8Error) -> JobFileError {
    let good = bytes.get(..problem.valid_up_to()).unwrap_or_default();
    let line = good.split(|&b| b == b'\n').count();
    let tail = good.rsplit(|&b| b == b'\n').next().unwrap_or_default();
    let column = String::from_utf8_lossy(tail).chars().count() + 1;
    let byte = bytes
        .get(problem.valid_up_to())
        .copied()
        .unwrap_or_default();
    let message = format!(
        "byte 0x{byte:02x} at offset {} is not UTF-8 text",
        problem.valid_up_to()
    );
    let mut error = JobFileError::whole("not_utf8", file, message, "save the file as UTF-8");
    error.line = u32::try_from(line).unwrap_or(u32::MAX);
    error.column = u32::try_from(column).unwrap_or(u32::MAX);
    error
}
