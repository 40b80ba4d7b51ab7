//! Reads a console as it comes, and keeps the lines of the first crash until its name is certain.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::{
    class::{Class, Family},
    lines::Lines,
    message::{Message, messages, seconds},
    report::{End, Report},
    rules,
};

/// Number of lines behind the first one that may name a crash. The deepest stacks, of endless recursion, have 700.
pub const REPORT_LINES_MAX: usize = 1000;

/// Maximum number of messages kept of these lines. One line may hold many short ones.
const REPORT_MESSAGES_MAX: usize = 2 * REPORT_LINES_MAX;

/// A crash with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    /// Kind of the problem.
    pub class: Class,
    /// Severity for the machine.
    pub family: Family,
    /// Title without addresses, process ids and numbers. Equal crashes have equal titles.
    pub signature: String,
    /// Number of its first line. A console begins with line 1.
    pub line: u64,
}

/// Lines of a crash that is not yet named.
#[derive(Debug)]
struct Pending {
    report: Report,
    line: u64,
    messages: Vec<Message>,
}

impl Pending {
    /// Returns true if no line after line `lines` belongs to it.
    fn is_full(&self, lines: u64) -> bool {
        lines - self.line >= REPORT_LINES_MAX as u64 || self.messages.len() >= REPORT_MESSAGES_MAX
    }

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

/// Finds the first crash of a console, in bounded memory for any input.
#[derive(Debug, Default)]
pub struct Scanner {
    partial: Lines,
    lines: u64,
    /// Latest time stamp of the kernel, seconds.
    uptime_s: u64,
    restarts: bool,
    /// Families to look for. `None`: all.
    wanted: Option<Vec<Family>>,
    /// A crash of another family, kept while a panic may be its consequence.
    cause: Option<Pending>,
    pending: Option<Pending>,
    weak: Option<Pending>,
    found: Option<Crash>,
}

impl Scanner {
    /// Returns a scanner at the start of a console.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a scanner for crashes of these families only. A kernel that stopped is a panic for any reason. If it
    /// stopped because of a crash that it had reported, the panic has the name of that crash.
    pub fn only(families: &[Family]) -> Self {
        Self {
            wanted: Some(families.to_vec()),
            ..Self::default()
        }
    }

    /// Reads the next bytes. They may end anywhere.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut partial = std::mem::take(&mut self.partial);
        partial.push(bytes, |line| self.line(line));
        self.partial = partial;
    }

    /// Returns the family of a crash whose first line has arrived. Its name may still change until [`Scanner::found`]
    /// has it.
    pub fn begun(&self) -> Option<Family> {
        let pending = self.pending.as_ref().map(|pending| pending.report.family);
        self.found.as_ref().map(|crash| crash.family).or(pending)
    }

    /// Returns the crash, once its name is final.
    pub fn found(&self) -> Option<&Crash> {
        self.found.as_ref()
    }

    /// Returns the crash of a console that has ended or is silent, named from the lines so far.
    pub fn finish(mut self) -> Option<Crash> {
        if let Some(last) = self.partial.last() {
            self.line(&last);
        }
        let named = self.pending.or(self.weak).map(Pending::name);
        self.found.or(named)
    }

    /// Reads a line, without its end.
    pub(crate) fn line(&mut self, line: &[u8]) {
        self.lines += 1;
        if self.found.is_some() {
            return;
        }
        if self.pending.is_some() {
            self.collect(line);
        } else {
            self.look(line);
        }
    }

    /// Looks for the start of a crash. Nearly all lines need only the one search for all starts.
    fn look(&mut self, line: &[u8]) {
        let uptime_s = seconds(line);
        self.follow(line);
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
            let is_boot = rules::is_boot(&message.text);
            let report = if is_boot {
                let is_again = self.uptime_s > 0 && uptime_s.unwrap_or(0) == 0;
                (is_again && !std::mem::take(&mut self.restarts)).then(rules::reboot)
            } else {
                rules::recognize(&message.text, is_stamped)
            };
            if let Some(report) = report {
                self.begin(Pending {
                    report,
                    line: self.lines,
                    messages: messages.get(index..).unwrap_or_default().to_vec(),
                });
            }
            if is_boot {
                self.cause = None;
            }
            if self.pending.is_some() {
                return;
            }
        }
    }

    /// Starts a crash with its first line.
    fn begin(&mut self, mut pending: Pending) {
        let Report {
            family,
            is_weak,
            end,
            ..
        } = pending.report;
        let Some(wanted) = &self.wanted else {
            let place = if is_weak {
                &mut self.weak
            } else {
                &mut self.pending
            };
            place.get_or_insert(pending);
            return;
        };
        let family = if wanted.contains(&family) {
            family
        } else if end != End::None && wanted.contains(&Family::Panic) {
            Family::Panic
        } else {
            let is_graver = |cause: &Pending| is_grave(family) && !is_grave(cause.report.family);
            if !is_weak && self.cause.as_ref().is_none_or(is_graver) {
                self.cause = Some(pending);
            }
            return;
        };
        let is_reboot = pending.report.class == Class::REBOOT;
        if end == End::Consequence
            && let Some(cause) = self.cause.take()
            && (is_grave(cause.report.family) || !is_reboot)
        {
            pending = cause;
        }
        pending.report.family = family;
        self.pending = Some(pending);
    }

    /// Keeps the lines after a crash of another family, until it is too old to be the cause of a panic.
    fn follow(&mut self, line: &[u8]) {
        if let Some(cause) = &mut self.cause {
            cause.messages.append(&mut messages(line));
            if cause.is_full(self.lines) {
                self.cause = None;
            }
        }
    }

    fn collect(&mut self, line: &[u8]) {
        let Some(pending) = &mut self.pending else {
            return;
        };
        let mut more = messages(line);
        // Messages of the next boot do not belong to this crash.
        let boot = more
            .iter()
            .position(|message| rules::is_boot(&message.text));
        more.truncate(boot.unwrap_or(more.len()));
        pending.messages.append(&mut more);
        if boot.is_some() || pending.is_full(self.lines) {
            self.found = self.pending.take().map(Pending::name);
        }
    }
}

/// Returns true if a kernel seldom runs on for long after such a crash.
fn is_grave(family: Family) -> bool {
    family <= Family::Lockup
}

/// Returns the automaton for the starts of all crashes.
fn beginnings() -> &'static AhoCorasick {
    static BUILT: OnceLock<AhoCorasick> = OnceLock::new();
    BUILT.get_or_init(|| {
        AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::DFA))
            .build(rules::beginnings())
            .unwrap_or_else(|error| unreachable!("short constant patterns: {error}"))
    })
}
