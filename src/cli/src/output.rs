//! The only writer to stdout and stderr. A closed reader (`| head`) is no error: later output is dropped, and endless
//! commands check [`Output::closed`].

use std::io::{self, IsTerminal, Write};

use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;

use crate::{
    exit::{self, Failure},
    printable::{acts, lines, paint},
    settings::Environment,
    table::Paper,
};

/// Destination of a command's results and remarks.
pub(crate) struct Output {
    streams: Mutex<Streams>,
    terminal: bool,
    remarks_terminal: bool,
    /// True if the terminal may show colours.
    colours: bool,
}

struct Streams {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    closed: bool,
    problem: Option<io::Error>,
}

impl Output {
    /// Returns the process's own stdout and stderr.
    pub(crate) fn standard(env: &Environment) -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        Self {
            terminal: out.is_terminal(),
            colours: env.get("NO_COLOR").is_none() && env.get("TERM") != Some("dumb"),
            remarks_terminal: err.is_terminal(),
            streams: Mutex::new(Streams {
                out: Box::new(out),
                err: Box::new(err),
                closed: false,
                problem: None,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock()
    }

    /// Returns true if results go to a person's terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Returns the paper of tables. A terminal that does not know its width has 80 columns.
    pub(crate) fn paper(&self) -> Paper {
        let width = || {
            let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
            Some(usize::from(size.ws_col)).filter(|width| *width > 0)
        };
        Paper {
            width: self.terminal.then(|| width().unwrap_or(80)),
        }
    }

    /// Returns true if remarks and progress go to a person's terminal.
    pub(crate) fn remarks_are_seen(&self) -> bool {
        self.remarks_terminal
    }

    /// Prints lines of the result. On a terminal, control characters in them are removed.
    pub(crate) fn line(&self, text: &str) {
        let text = if self.terminal {
            paint(&lines(text), self.colours)
        } else {
            paint(text, false)
        };
        self.bytes(format!("{text}\n").as_bytes());
    }

    /// Draws a page of a terminal over the previous one. Each line is cleared before it is written. Clearing after a
    /// line that fills its row would remove the last letter.
    pub(crate) fn page(&self, rows: &[String]) {
        let mut text = String::from("\u{1b}[H");
        for (n, row) in rows.iter().enumerate() {
            let end = if n == 0 { "" } else { "\r\n" };
            text.push_str(end);
            text.push_str("\u{1b}[2K");
            text.push_str(&paint(&lines(row), self.colours));
        }
        self.bytes(text.as_bytes());
    }

    /// Prints one value on one line, for programs that read while a command runs.
    pub(crate) fn json_line(&self, value: &impl Serialize) -> Result<(), serde_json::Error> {
        self.line(&escaped(&serde_json::to_string(value)?));
        Ok(())
    }

    /// Prints bytes of the result unchanged, at once.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        let mut streams = self.lock();
        if streams.closed || streams.problem.is_some() {
            return;
        }
        let written = streams
            .out
            .write_all(bytes)
            .and_then(|()| streams.out.flush());
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => streams.closed = true,
            Err(error) => streams.problem = Some(error),
        }
    }

    /// Prints the result for programs. Characters that act on a terminal are written as escapes with the same meaning.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), serde_json::Error> {
        self.line(&escaped(&serde_json::to_string_pretty(value)?));
        Ok(())
    }

    /// Prints a question on stderr, without a newline.
    pub(crate) fn ask(&self, text: &str) {
        let mut streams = self.lock();
        let _ = write!(streams.err, "{}", lines(text)).and_then(|()| streams.err.flush());
    }

    /// Prints a remark on stderr. A closed stderr is no error.
    pub(crate) fn remark(&self, text: &str) {
        let text = if self.remarks_terminal {
            lines(text)
        } else {
            text.to_owned()
        };
        let mut streams = self.lock();
        let _ = writeln!(streams.err, "{text}");
    }

    /// Returns true if the reader of the results is gone, or if they cannot be written.
    pub(crate) fn closed(&self) -> bool {
        let streams = self.lock();
        streams.closed || streams.problem.is_some()
    }

    /// Returns the error of a failed write, except for a reader that is gone.
    pub(crate) fn problem(&self) -> Result<(), Failure> {
        match self.lock().problem.take() {
            None => Ok(()),
            Some(error) => Err(Failure::new(
                exit::LOCAL,
                format!("cannot write the result: {error}"),
                "is the disk full?",
            )),
        }
    }
}

/// Returns JSON with escapes for the characters that act on a terminal.
fn escaped(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        if acts(c) && c != '\n' {
            let escape = format!("\\u{:04x}", u32::from(c));
            safe.push_str(&escape);
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use super::*;

    /// Keeps the written bytes. Fails with `error`, if it is set.
    #[derive(Clone, Default)]
    pub(crate) struct Kept {
        pub(crate) bytes: Arc<Mutex<Vec<u8>>>,
        pub(crate) error: Option<io::ErrorKind>,
    }

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(kind) = self.error {
                return Err(kind.into());
            }
            self.bytes.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Regression: foreign texts went to the terminal unfiltered, for example in an error message.
    #[test]
    fn on_a_terminal_nothing_acts_and_json_stays_what_it_is() {
        let kept = Kept::default();
        let on_terminal = Output {
            terminal: true,
            ..output(kept.clone())
        };
        on_terminal.line("a\u{1b}[2J\u{202e}b\nc");
        on_terminal.json(&"x\u{202e}\u{9b}y").unwrap();
        let written = String::from_utf8(kept.bytes.lock().clone()).unwrap();
        assert_eq!(written, "a [2J b\nc\n\"x\\u202e\\u009by\"\n");
        let piped = Kept::default();
        output(piped.clone()).line("a\u{1b}[2J");
        assert_eq!(*piped.bytes.lock(), b"a\x1b[2J\n");
    }

    fn output(out: Kept) -> Output {
        let streams = Streams {
            out: Box::new(out),
            err: Box::new(io::sink()),
            closed: false,
            problem: None,
        };
        Output {
            colours: false,
            streams: Mutex::new(streams),
            terminal: false,
            remarks_terminal: false,
        }
    }

    #[test]
    fn lines_are_written_whole() {
        let kept = Kept::default();
        output(kept.clone()).line("a\nb");
        assert_eq!(*kept.bytes.lock(), b"a\nb\n");
    }

    #[test]
    fn a_reader_that_went_away_is_no_problem() {
        let output = output(Kept {
            error: Some(io::ErrorKind::BrokenPipe),
            ..Kept::default()
        });
        output.line("a");
        assert!(output.closed());
        assert!(output.problem().is_ok());
    }

    #[test]
    fn a_full_disk_is_one() {
        let output = output(Kept {
            error: Some(io::ErrorKind::StorageFull),
            ..Kept::default()
        });
        output.line("a");
        assert!(output.closed());
        assert_eq!(output.problem().unwrap_err().code, exit::LOCAL);
    }
}
