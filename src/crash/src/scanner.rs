//! Reads a console as it comes, and keeps the lines of the first crash until its name is certain.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use memchr::memchr;

use crate::{
    class::{Class, Family},
    message::{Message, messages, seconds},
    report::Report,
    rules,
};

/// A longer line is cut here: what matters of a message stands at its begin.
pub const LINE_BYTES_MAX: usize = 1024;

/// Lines behind the first one from which a crash gets its name. The deepest stacks, of endless recursion, have 700.
pub const REPORT_LINES_MAX: usize = 1000;

/// Messages kept of these lines: one line may hold many short ones.
const REPORT_MESSAGES_MAX: usize = 2 * REPORT_LINES_MAX;

/// A crash with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    /// What went wrong.
    pub class: Class,
    /// How bad it is for the machine.
    pub family: Family,
    /// The title: equal for equal crashes, without addresses, process ids and numbers.
    pub signature: String,
    /// Number of its first line; a console begins with line 1.
    pub line: u64,
}

/// The lines of a crash that is not yet named.
#[derive(Debug)]
struct Pending {
    report: Report,
    line: u64,
    messages: Vec<Message>,
}

impl Pending {
    fn name(self) -> Crash {
        let family = self.report.family;
        let (class, signature) = self.report.complete(&self.messages);
        Crash {
            class,
            family,
            signature,
            line: self.line,
        }
    }
}

/// Finds the first crash of a console. Its memory is bounded, whatever the console says.
#[derive(Debug, Default)]
pub struct Scanner {
    /// The begin of a line whose end has not come.
    partial: Vec<u8>,
    lines: u64,
    /// The latest time that the kernel printed.
    uptime_s: u64,
    restarts: bool,
    pending: Option<Pending>,
    weak: Option<Pending>,
    found: Option<Crash>,
}

impl Scanner {
    /// A scanner at the begin of a console.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next bytes; they may end anywhere.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            if self.partial.is_empty() {
                self.line(line);
            } else {
                self.keep(line);
                let whole = std::mem::take(&mut self.partial);
                self.line(&whole);
                self.partial = whole;
                self.partial.clear();
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.keep(bytes);
    }

    /// The family of a crash whose first line came. Its name may still change until [`Scanner::found`] has it.
    pub fn begun(&self) -> Option<Family> {
        let pending = self.pending.as_ref().map(|pending| pending.report.family);
        self.found.as_ref().map(|crash| crash.family).or(pending)
    }

    /// The crash, once nothing that follows can change its name.
    pub fn found(&self) -> Option<&Crash> {
        self.found.as_ref()
    }

    /// The crash of a console that has ended or is silent, named from the lines that are there.
    pub fn finish(mut self) -> Option<Crash> {
        if !self.partial.is_empty() {
            let last = std::mem::take(&mut self.partial);
            self.line(&last);
        }
        let named = self.pending.or(self.weak).map(Pending::name);
        self.found.or(named)
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES_MAX.saturating_sub(self.partial.len());
        let kept = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        self.partial.extend_from_slice(kept);
    }

    fn line(&mut self, line: &[u8]) {
        self.lines += 1;
        if self.found.is_some() {
            return;
        }
        let line = line.get(..LINE_BYTES_MAX).unwrap_or(line);
        if self.pending.is_some() {
            self.collect(line);
        } else {
            self.look(line);
        }
    }

    /// Looks for the begin of a crash. Nearly all lines end after the one search for all beginnings.
    fn look(&mut self, line: &[u8]) {
        let uptime_s = seconds(line);
        if beginnings().is_match(line) {
            self.recognize(line, uptime_s);
        }
        if let Some(uptime_s) = uptime_s {
            self.uptime_s = uptime_s;
        }
    }

    fn recognize(&mut self, line: &[u8], uptime_s: Option<u64>) {
        let is_stamped = uptime_s.is_some();
        let messages = messages(line);
        for (index, message) in messages.iter().enumerate() {
            if rules::is_restart(&message.text) {
                self.restarts = true;
            }
            let report = if rules::is_boot(&message.text) {
                let is_again = self.uptime_s > 0 && uptime_s.unwrap_or(0) == 0;
                (is_again && !std::mem::take(&mut self.restarts)).then(rules::reboot)
            } else {
                rules::recognize(&message.text, is_stamped)
            };
            let Some(report) = report else {
                continue;
            };
            let pending = Pending {
                report,
                line: self.lines,
                messages: messages.get(index..).unwrap_or_default().to_vec(),
            };
            if pending.report.is_weak {
                self.weak.get_or_insert(pending);
            } else {
                self.pending = Some(pending);
                return;
            }
        }
    }

    fn collect(&mut self, line: &[u8]) {
        let Some(pending) = &mut self.pending else {
            return;
        };
        let mut more = messages(line);
        // The next boot says nothing of this crash.
        let boot = more
            .iter()
            .position(|message| rules::is_boot(&message.text));
        more.truncate(boot.unwrap_or(more.len()));
        pending.messages.append(&mut more);
        let lines = self.lines - pending.line;
        let is_full = boot.is_some()
            || lines >= REPORT_LINES_MAX as u64
            || pending.messages.len() >= REPORT_MESSAGES_MAX;
        if is_full {
            self.found = self.pending.take().map(Pending::name);
        }
    }
}

/// One automaton for the beginnings of all crashes.
fn beginnings() -> &'static AhoCorasick {
    static BUILT: OnceLock<AhoCorasick> = OnceLock::new();
    BUILT.get_or_init(|| {
        AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::DFA))
            .build(rules::beginnings())
            .unwrap_or_else(|error| unreachable!("short constant patterns: {error}"))
    })
}
