//! The history, line by line: the last lines for people, and all lines for its hash.

use std::{collections::VecDeque, fmt, fmt::Write as _};

/// Number of last lines that are kept for a report.
const KEPT: usize = 400;
/// Parameters of the hash FNV-1a with 64 bits.
const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;
const HASH_PRIME: u64 = 0x0100_0000_01b3;

/// History of one simulation.
#[derive(Debug)]
pub(super) struct Log {
    hash: u64,
    lines: u64,
    last: VecDeque<String>,
    /// True if each line is printed at once.
    trace: bool,
}

impl Log {
    pub(super) fn new(trace: bool) -> Self {
        Self {
            hash: HASH_START,
            lines: 0,
            last: VecDeque::with_capacity(KEPT),
            trace,
        }
    }

    #[expect(clippy::print_stdout, reason = "a trace was asked for")]
    pub(super) fn add(&mut self, at_ms: u64, what: fmt::Arguments<'_>) {
        let mut line = if self.last.len() == KEPT {
            self.last.pop_front().unwrap_or_default()
        } else {
            String::new()
        };
        line.clear();
        // Writing into memory cannot fail.
        let _ = write!(line, "{:>4}.{:03} {what}", at_ms / 1000, at_ms % 1000);
        for byte in line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(HASH_PRIME);
        }
        self.lines += 1;
        if self.trace {
            println!("{line}");
        }
        self.last.push_back(line);
    }

    /// Returns the hash over all lines.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns the last lines, oldest first.
    pub(super) fn last(&self) -> Vec<String> {
        self.last.iter().cloned().collect()
    }
}
