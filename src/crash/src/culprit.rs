//! Finds the function that a crash is named after.

use crate::{
    message::Message,
    names::{
        canonical, is_call_of_all, is_dispatcher, is_entry, is_helper, is_rcu_thread, is_tick,
        is_wait, system_call,
    },
    trace::{Step, steps, symbol_in},
};

/// Selection of the function that names the crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pick {
    /// No function.
    Nothing,
    /// The innermost call behind the header of the stack, except helpers.
    Stack,
    /// The innermost call of the first stack, except helpers. The stack may lack a header.
    FirstStack,
    /// The innermost call that does not merely wait.
    Waiter,
    /// The outermost meaningful call: the request to the kernel. The innermost call of an endless loop varies.
    Loop,
    /// The outermost call of a stack that is too deep, except interrupts: the request to the kernel.
    Depth,
    /// The function that takes the lock.
    Locker,
}

/// Returns the function that names the crash, if the report has one.
pub(crate) fn find(pick: Pick, named: Option<&str>, messages: &[Message]) -> Option<String> {
    if pick == Pick::Nothing {
        return None;
    }
    let guilty = named.filter(|name| !is_wait(name)).map(str::to_owned);
    let found = guilty.or_else(|| {
        // Messages of threads that print at the same time are left out. For stalls, several CPUs print.
        let own = own_messages(messages);
        match pick {
            Pick::Nothing => None,
            Pick::Stack => first(below(named, &stack(&steps(&own))), is_wait),
            Pick::FirstStack => first(below(named, &first_stack(&steps(&own))), is_wait),
            Pick::Waiter => waiter(&steps(&own)),
            Pick::Locker => locker(&own),
            Pick::Depth => meant(&stack(&steps(&own))),
            Pick::Loop => loop_of(&steps(messages)),
        }
    });
    found.map(|name| canonical(&name))
}

/// Returns the messages of the caller that printed the first one, if the console shows callers.
fn own_messages(messages: &[Message]) -> Vec<Message> {
    let caller = messages.first().and_then(|first| first.caller.as_ref());
    let is_own = |message: &&Message| caller.is_none() || message.caller.as_ref() == caller;
    messages.iter().filter(is_own).cloned().collect()
}

fn name(step: &Step) -> Option<&str> {
    match step {
        Step::Call(name) | Step::Place(name) => Some(name),
        Step::Start | Step::End => None,
    }
}

/// Returns the calls from the one that the first line names. Other stacks may stand between.
fn below<'a, 'b>(named: Option<&str>, calls: &'a [&'b str]) -> &'a [&'b str] {
    let at = calls.iter().position(|name| Some(*name) == named);
    at.and_then(|at| calls.get(at..)).unwrap_or(calls)
}

fn first(calls: &[&str], is_skipped: fn(&str) -> bool) -> Option<String> {
    let mut calls = calls.iter();
    calls
        .find(|name| !is_skipped(name))
        .map(|name| (*name).to_owned())
}

/// Returns the calls from the first header to the end of its stack, and the places before it.
fn stack(steps: &[Step]) -> Vec<&str> {
    let Some(start) = steps.iter().position(|step| *step == Step::Start) else {
        return first_stack(steps);
    };
    let (before, after) = steps.split_at(start);
    let places = before.iter().filter(|step| matches!(step, Step::Place(_)));
    let calls = after.iter().take_while(|step| **step != Step::End);
    places.chain(calls).filter_map(name).collect()
}

fn first_stack(steps: &[Step]) -> Vec<&str> {
    let begin = steps.iter().position(|step| *step != Step::End);
    let steps = steps.get(begin.unwrap_or(0)..).unwrap_or_default();
    let own = steps.iter().take_while(|step| **step != Step::End);
    own.filter_map(name).collect()
}

fn waiter(steps: &[Step]) -> Option<String> {
    let start = steps.iter().position(|step| *step == Step::Start);
    let behind = steps.iter().skip(start.unwrap_or(0));
    let own = behind
        .skip_while(|step| matches!(step, Step::Start))
        .take_while(|step| !matches!(step, Step::Start | Step::End));
    let calls: Vec<&str> = own.filter_map(name).collect();
    first(&calls, is_wait)
}

/// Returns the function of the reported lock, else that of the stack behind it.
fn locker(messages: &[Message]) -> Option<String> {
    let about = messages.iter().take_while(|message| {
        ![
            "but task is",
            "other info",
            "stack backtrace",
            "which would create",
        ]
        .iter()
        .any(|text| message.text.starts_with(text))
    });
    let mut is_next = false;
    for message in about {
        let text = message.text.as_str();
        let at = if is_next {
            Some(text)
        } else {
            text.split_once(" at: ").map(|(_, at)| at)
        };
        is_next = text.ends_with(" at:");
        if let Some(function) = at.and_then(symbol_in)
            && !is_helper(&function)
        {
            return Some(function);
        }
    }
    let steps = steps(messages);
    let start = steps.iter().rposition(|step| *step == Step::Start);
    first(&stack(steps.get(start.unwrap_or(0)..)?), is_helper)
}

/// Returns the outermost meaningful call of the first stack that has one.
fn loop_of(steps: &[Step]) -> Option<String> {
    let mut begin = 0;
    while begin < steps.len() {
        let end = end_of_stack(steps, begin);
        let calls: Vec<&str> = steps.get(begin..end)?.iter().filter_map(name).collect();
        if let Some(found) = outermost(&calls) {
            return Some(found);
        }
        begin = end;
    }
    None
}

/// Returns the end of a stack. The place of the processor stands before the header of its stack, and belongs to it.
fn end_of_stack(steps: &[Step], begin: usize) -> usize {
    let mut has_call = false;
    for (index, step) in steps.iter().enumerate().skip(begin) {
        match step {
            Step::Call(_) => has_call = true,
            Step::Start | Step::End if has_call => return index,
            Step::Place(_) | Step::Start | Step::End => {}
        }
    }
    steps.len()
}

fn outermost(calls: &[&str]) -> Option<String> {
    if calls.iter().any(|name| is_rcu_thread(name)) {
        return None;
    }
    // These are the tick that detected the stall, and the interrupted calls.
    let tick = calls
        .iter()
        .position(|name| is_tick(name) && !is_helper(name));
    let mut calls = calls.get(tick.unwrap_or(0)..)?;
    if tick.is_some() {
        let interrupted = calls.iter().position(|name| !is_tick(name))?;
        calls = calls.get(interrupted..)?;
    }
    if calls.iter().take(4).any(|name| is_call_of_all(name)) {
        return Some("smp_call_function".to_owned());
    }
    // These are the contexts, innermost first. Each ends at the interrupt or system call that started it.
    calls.split_inclusive(|name| is_entry(name)).find_map(meant)
}

/// Returns the outermost call of a context, except dispatchers.
fn meant(context: &[&str]) -> Option<String> {
    let index = context
        .iter()
        .rposition(|name| !is_dispatcher(name) && !is_entry(name))?;
    let found = context.get(index)?;
    // 32-bit entries only translate the arguments for the function below them.
    let inner = index.checked_sub(1).and_then(|index| context.get(index));
    let is_translated = inner.is_some_and(|inner| found.replace("_compat", "") == **inner);
    let found = if is_translated { inner? } else { found };
    // A meaningful system call counts only if no other function stands below it in the same context.
    Some(system_call(found).map_or_else(|| (*found).to_owned(), |_| canonical(found)))
}
