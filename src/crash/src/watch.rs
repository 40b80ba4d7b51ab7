//! Watches a console for as long as a job runs: for crashes that end the job, for crashes that are only noted, and for
//! boots without end.

use memchr::memmem;

use crate::{
    class::{Class, Family},
    lines::Lines,
    message::messages,
    rules,
    scanner::{Crash, Scanner},
};

/// Number of boots of one kernel that make a boot loop.
pub const LOOP_BOOTS: u32 = 3;

/// Watches one console.
#[derive(Debug)]
pub struct Watch {
    partial: Lines,
    end: Scanner,
    note: Scanner,
    boots: Boots,
}

/// Crashes of a console.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The first crash that ends the job.
    pub ended: Option<Crash>,
    /// The first crash that is only noted, or a boot loop.
    pub noted: Option<Crash>,
}

impl Watch {
    /// Returns a watch at the start of a console. A family in both lists ends the job.
    pub fn new(end: &[Family], note: &[Family]) -> Self {
        let note: Vec<Family> = note
            .iter()
            .copied()
            .filter(|it| !end.contains(it))
            .collect();
        Self {
            partial: Lines::default(),
            end: Scanner::only(end),
            note: Scanner::only(&note),
            boots: Boots::default(),
        }
    }

    /// Reads the next bytes. They may end anywhere.
    pub fn push(&mut self, bytes: &[u8]) {
        let Self {
            partial,
            end,
            note,
            boots,
        } = self;
        partial.push(bytes, |line| {
            end.line(line);
            note.line(line);
            boots.line(line);
        });
    }

    /// Returns the family of the crash that ends the job, once its first line has arrived. Later lines improve its
    /// name.
    pub fn ends(&self) -> Option<Family> {
        self.end.begun()
    }

    /// Returns the crashes, named from the lines so far.
    pub fn finish(mut self) -> Seen {
        if let Some(last) = self.partial.last() {
            self.end.line(&last);
            self.note.line(&last);
            self.boots.line(&last);
        }
        Seen {
            ended: self.end.finish(),
            noted: self.note.finish().or(self.boots.crash),
        }
    }
}

/// Counts the boots of one kernel.
#[derive(Debug, Default)]
struct Boots {
    lines: u64,
    /// Version of the kernel, as printed at boot.
    kernel: String,
    count: u32,
    crash: Option<Crash>,
}

impl Boots {
    fn line(&mut self, line: &[u8]) {
        self.lines += 1;
        if self.crash.is_some() || memmem::find(line, rules::BOOT.as_bytes()).is_none() {
            return;
        }
        for boot in messages(line)
            .iter()
            .filter(|message| rules::is_boot(&message.text))
        {
            if boot.text != self.kernel {
                self.kernel.clone_from(&boot.text);
                self.count = 0;
            }
            self.count += 1;
        }
        if self.count >= LOOP_BOOTS {
            self.crash = Some(Crash {
                class: Class::BOOT_LOOP,
                family: Family::Panic,
                signature: "boot loop".to_owned(),
                line: self.lines,
            });
        }
    }
}
