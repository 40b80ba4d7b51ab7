//! The stack below a crash: calls, the place that the processor was at, and where one stack ends.

use crate::message::Message;

/// Meaning of a message for a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// A stack begins here.
    Start,
    /// A call that is surely on the stack.
    Call(String),
    /// The place of the processor (RIP, PC).
    Place(String),
    /// The following lines belong to something else: the allocation of memory, other tasks.
    End,
}

/// Headers of stacks.
const STARTS: &[&str] = &[
    "Call Trace:",
    "Call trace:",
    "Backtrace:",
    "backtrace:",
    "backtrace (",
    "stack backtrace:",
    "NMI backtrace for",
    "Task dump for",
    "task:",
    "RCU grace-period kthread stack",
];

/// Messages after which the stacks do not belong to the crash any more.
const ENDS: &[&str] = &[
    "Allocated by task",
    "Freed by task",
    "Last potentially related work",
    "Second to last potentially",
    "The buggy address",
    "Memory state around",
    "Uninit was",
    "Local variable",
    "page last",
    "page_owner",
    "---[ end",
    "Showing all locks",
    "Sending NMI",
    "hex dump",
    "kfence-#",
    "allocated by task",
    "freed by task",
];

/// Words before the place of the processor.
const PLACES: &[&str] = &[
    "RIP:",
    "EIP:",
    "EIP is at",
    "IP:",
    "PC is at",
    "pc :",
    "epc :",
    "NIP ",
    "era ",
    "ERA:",
    "TPC:",
    "PC:",
];

/// Returns the steps of some messages, in order.
pub(crate) fn steps(messages: &[Message]) -> Vec<Step> {
    let mut steps = Vec::new();
    for message in messages {
        let text = message.text.as_str();
        if ENDS.iter().any(|end| text.starts_with(end)) {
            steps.push(Step::End);
        } else if STARTS.iter().any(|start| text.starts_with(start))
            || text.contains(" running task ")
        {
            steps.push(Step::Start);
            // Some kernels print the first call behind the header.
            if let Some((_, rest)) = text.split_once(':') {
                calls(rest, &mut steps);
            }
        } else if let Some(place) = place(text) {
            steps.push(Step::Place(place));
        } else {
            calls(text, &mut steps);
        }
    }
    steps
}

/// Returns the function before `+0x12/0x34`, without suffixes of the compiler.
pub(crate) fn symbol(word: &str) -> Option<String> {
    let (name, offset) = word.split_once("+0x")?;
    offset.contains("/0x").then_some(())?;
    function(name.trim_start_matches(['(', '<', '[']))
}

/// Returns the first function with an offset in a text.
pub(crate) fn symbol_in(text: &str) -> Option<String> {
    text.split(|c: char| c.is_whitespace() || c == '(')
        .find_map(|word| symbol(word.rsplit(':').next()?))
}

/// Returns a function's name without `.isra.0`, `.constprop.0`, `.part.1`, `.cold`.
pub(crate) fn function(name: &str) -> Option<String> {
    let name = name.trim_start_matches('.');
    let name = name.split('.').next()?;
    let mut bytes = name.bytes();
    let begins = bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let goes_on = bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$');
    (begins && goes_on).then(|| name.to_owned())
}

fn place(text: &str) -> Option<String> {
    let rest = PLACES.iter().find_map(|place| text.strip_prefix(place))?;
    rest.split_whitespace()
        .find_map(|word| symbol(word.rsplit(':').next()?))
}

/// Adds the calls of a line of a stack. ARM prints the callee and its caller.
fn calls(text: &str, steps: &mut Vec<Step>) {
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if word == "?" {
            return;
        }
        if let Some(name) = symbol(word) {
            push_call(name, steps);
            return;
        }
        let bare = word.trim_start_matches('(').trim_end_matches(')');
        let mut behind = words.clone();
        let is_arm = behind.next() == Some("from") && behind.next().is_some_and(is_caller);
        if let Some(callee) = is_arm.then(|| function(bare)).flatten() {
            push_call(callee, steps);
            words.next();
        } else if !is_address(word) {
            return;
        }
    }
}

fn push_call(name: String, steps: &mut Vec<Step>) {
    let call = Step::Call(name);
    if steps.last() != Some(&call) {
        steps.push(call);
    }
}

/// Returns true for a word that ARM prints after `from`.
fn is_caller(word: &str) -> bool {
    is_address(word) || symbol(word).is_some()
}

/// Returns true for addresses and marks of contexts, which stand before a call.
fn is_address(word: &str) -> bool {
    let inside = word.trim_matches(|c| "[]<>(){}/".contains(c));
    let is_hex = inside.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_mark = ["IRQ", "EOI", "TASK", "NMI", "EOE", "UNK"].contains(&inside);
    is_mark || (is_hex && inside.len() >= 8) || inside.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps_of(text: &str) -> Vec<Step> {
        let lines = text.lines().map(|line| Message {
            caller: None,
            text: line.trim().to_owned(),
        });
        steps(&lines.collect::<Vec<_>>())
    }

    #[test]
    fn calls_are_read_in_all_formats() {
        for line in [
            "foo_bar+0x12/0x34",
            "foo_bar.isra.0+0x12/0x34 drivers/foo.c:12",
            "[<ffffffff81234567>] foo_bar+0x12/0x34 [foo]",
            "<IRQ>  [<ffffffff81234567>] foo_bar.cold.3+0x12/0x34",
            "[c000000012345678] [c000000012345678] foo_bar+0x12/0x34 (unreliable)",
            "([<00000000123456>] foo_bar+0x12/0x34)",
        ] {
            assert_eq!(steps_of(line), [Step::Call("foo_bar".into())], "{line}");
        }
        assert_eq!(
            steps_of("[<80de0078>] (aa) from [<80de0574>] (bb+0x28/0x2c)\nbb from cc+0x1/0x2"),
            ["aa", "bb", "cc"].map(|name| Step::Call(name.into()))
        );
    }

    #[test]
    fn what_is_doubtful_is_no_call() {
        for line in [
            "? foo+0x1/0x2",
            "[<ffffffff81234567>] ? foo+0x1/0x2",
            "took foo+0x1/0x2",
            "inlined include/linux/foo.h:12 [inline]",
            "Code: 12 34",
        ] {
            assert_eq!(steps_of(line), [], "{line}");
        }
    }

    #[test]
    fn places_are_those_of_the_kernel() {
        for line in [
            "RIP: 0010:foo+0x1/0x2 foo.c:3",
            "RIP: 0010:[<ffffffff81234567>]  [<ffffffff81234567>] foo+0x1/0x2",
            "PC is at foo+0x1/0x2",
            "pc : foo+0x1/0x2",
            "NIP [c000000012345678] foo+0x1/0x2",
        ] {
            assert_eq!(steps_of(line), [Step::Place("foo".into())], "{line}");
        }
        assert_eq!(steps_of("RIP: 0033:0x465209\nLR is at foo+0x1/0x2"), []);
    }
}
