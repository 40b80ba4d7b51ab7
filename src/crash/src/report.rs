//! Reads the first line of a crash, and completes its name from the lines behind it.

use crate::{
    class::{Class, Family},
    culprit::{self, Pick},
    message::Message,
    trace::{function, symbol_in},
};

/// A crash of which only the first line was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) family: Family,
    pub(crate) class: Class,
    /// Signature without the function.
    pub(crate) head: String,
    /// Selection of the function in the signature.
    pub(crate) pick: Pick,
    /// Function that the first line names.
    pub(crate) named: Option<String>,
    /// Parts that later lines may change.
    pub(crate) detail: Detail,
    /// True if the report counts only if no crash follows.
    pub(crate) is_weak: bool,
    /// Consequence for the kernel that printed the report.
    pub(crate) end: End,
}

/// Consequence of a report for its kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The kernel may go on.
    None,
    /// The kernel stopped.
    Stop,
    /// The kernel stopped because of the crash that it reported before.
    Consequence,
}

/// Parts of a report that later lines may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    None,
    /// The kind of access, which KASAN prints on the next line.
    Access,
    /// The holder of the resource that a task waits for, on the next line.
    Hang,
}

impl Report {
    pub(crate) fn new(family: Family, class: Class, head: impl Into<String>, pick: Pick) -> Self {
        Self {
            family,
            class,
            head: head.into(),
            pick,
            named: None,
            detail: Detail::None,
            is_weak: false,
            end: End::None,
        }
    }

    pub(crate) fn naming(mut self, function: Option<String>) -> Self {
        self.named = function;
        self
    }

    pub(crate) fn with(mut self, detail: Detail) -> Self {
        self.detail = detail;
        self
    }

    pub(crate) fn ending(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    pub(crate) fn weak(mut self) -> Self {
        self.is_weak = true;
        self
    }

    /// Returns class and signature, from all lines of the report. The first message is the recognized one.
    pub(crate) fn complete(self, messages: &[Message]) -> (Class, String) {
        let mut class = self.class;
        let mut head = self.head;
        match self.detail {
            Detail::None => {}
            Detail::Access => {
                let is_write = is_write(messages);
                class = access_class(&head, is_write.unwrap_or(false));
                if let Some(is_write) = is_write {
                    head.push_str(if is_write { " Write" } else { " Read" });
                }
            }
            Detail::Hang => {
                if messages
                    .iter()
                    .take(2)
                    .any(|message| message.text.contains("can't die"))
                {
                    head = String::from("INFO: task can't die");
                }
            }
        }
        let caller = messages.iter().take(8).find_map(|message| {
            let text = message.text.as_str();
            let last = text.strip_prefix("last function: ").and_then(function);
            last.or_else(|| symbol_in(text.strip_prefix("caller is ")?))
        });
        let named = self.named.or(caller);
        match culprit::find(self.pick, named.as_deref(), messages) {
            Some(function) => (class, format!("{head} in {function}")),
            None => (class, head),
        }
    }
}

/// Returns true for a write, from the kind of access that KASAN prints.
fn is_write(messages: &[Message]) -> Option<bool> {
    messages.iter().take(12).find_map(|message| {
        let text = message.text.trim_start_matches("==").trim_start();
        match text.split_once([' ', ':'])? {
            ("Read", rest) if is_access(rest) => Some(false),
            ("Write", rest) if is_access(rest) => Some(true),
            _ => None,
        }
    })
}

fn is_access(rest: &str) -> bool {
    ["of size", "at addr", "by task"]
        .iter()
        .any(|word| rest.contains(word))
}

fn access_class(head: &str, is_write: bool) -> Class {
    let is = |word: &str| head.contains(word);
    if is("double-free") || is("invalid-free") {
        Class::KASAN_FREE
    } else {
        match (
            is("use-after-free") || is("use after free"),
            is("null-ptr"),
            is_write,
        ) {
            (true, _, false) => Class::KASAN_USED_READ,
            (true, _, true) => Class::KASAN_USED_WRITE,
            (_, true, false) => Class::KASAN_NULL_READ,
            (_, true, true) => Class::KASAN_NULL_WRITE,
            (_, _, false) => Class::KASAN_READ,
            (_, _, true) => Class::KASAN_WRITE,
        }
    }
}
