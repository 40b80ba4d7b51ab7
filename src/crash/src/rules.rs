//! The first lines of crashes, in the formats of the kernel's sources.

mod bugs;
mod texts;
mod warnings;

use crate::{
    class::{Class, Family},
    culprit::Pick,
    report::{Detail, End, Report},
    trace::{function, symbol, symbol_in},
};
use bugs::{bug, kernel_bug, kernel_bug_report, slab};
pub(crate) use texts::plain_words;
use warnings::{lockdep, warning};

/// Start of a message, and the function that reads the rest.
struct Rule {
    begin: &'static str,
    read: fn(&Rest<'_>) -> Option<Report>,
}

/// Text behind the start of a rule, and its position.
struct Rest<'a> {
    text: &'a str,
    /// True if only a known prefix stands before the start.
    is_first: bool,
    is_stamped: bool,
}

const fn rule(begin: &'static str, read: fn(&Rest<'_>) -> Option<Report>) -> Rule {
    Rule { begin, read }
}

const RULES: &[Rule] = &[
    rule("BUG: ", bug),
    rule("BUG ", slab),
    rule("kernel BUG ", kernel_bug),
    rule("Kernel BUG ", kernel_bug),
    rule("WARNING: ", warning),
    rule("INFO: ", info),
    rule("blocked for more than ", hang),
    rule("blocked in I/O wait for more than ", hang),
    rule("can't die for more than ", hang),
    rule("Kernel panic - not syncing", |rest| {
        let end = panic_end(rest.text);
        Some(panic(rest).ending(end))
    }),
    rule("Unable to handle kernel ", access),
    rule("general protection fault", protection_fault),
    rule("divide error: ", |rest| exception(rest, "divide error")),
    rule("invalid opcode: ", |rest| exception(rest, "invalid opcode")),
    rule("stack segment: ", |rest| {
        exception(rest, "stack segment fault")
    }),
    rule("alignment check: ", |rest| {
        exception(rest, "alignment check")
    }),
    rule("invalid TSS: ", |rest| exception(rest, "invalid TSS")),
    rule("segment not present: ", |rest| {
        exception(rest, "segment not present")
    }),
    rule("control protection fault: ", |rest| {
        exception(rest, "control protection fault")
    }),
    rule("double fault: ", |rest| {
        exception(rest, "PANIC: double fault")
    }),
    rule("PANIC: double fault", |_| Some(oops("PANIC: double fault"))),
    rule("Kernel access of bad area", |_| Some(paging_request())),
    rule("Oops: ", |rest| exception(rest, "Oops")),
    rule("Oops [#", |_| Some(oops("Oops"))),
    rule("Oops[#", |_| Some(oops("Oops"))),
    rule("Oops - ", |rest| exception(rest, "Oops")),
    rule("illegal operation: ", |rest| {
        exception(rest, "illegal operation")
    }),
    rule("addressing exception: ", |rest| {
        exception(rest, "addressing exception")
    }),
    rule("specification exception: ", |rest| {
        exception(rest, "specification exception")
    }),
    rule("Kernel bug detected[#", |_| Some(kernel_bug_report())),
    rule("Bad mode in ", |_| Some(oops("Bad mode"))),
    rule("Unexpected kernel BRK exception", |_| {
        Some(oops("Unexpected kernel BRK exception"))
    }),
    rule("Fixing recursive fault but reboot is needed", |_| {
        Some(oops("recursive fault"))
    }),
    rule("Internal error: ", |rest| exception(rest, "Internal error")),
    rule("Unhandled fault: ", |_| Some(oops("Unhandled fault"))),
    rule("Unhandled prefetch abort: ", |_| {
        Some(oops("Unhandled prefetch abort"))
    }),
    rule("Alignment trap: not handling ", |_| {
        Some(oops("Alignment trap"))
    }),
    rule("Reserved instruction in kernel code", |_| {
        Some(oops("Reserved instruction in kernel code"))
    }),
    rule("SError Interrupt on CPU", |_| {
        Some(oops("SError interrupt"))
    }),
    rule("kernel stack overflow", |_| Some(stack_overflow())),
    rule("Kernel stack overflow", |_| Some(stack_overflow())),
    rule("Insufficient stack space to handle exception", |_| {
        Some(stack_overflow())
    }),
    rule("hard LOCKUP on cpu", |_| Some(hard_lockup())),
    rule("self-detected hard LOCKUP", |_| Some(hard_lockup())),
    rule("UBSAN: ", undefined),
    rule("unreferenced object 0x", |_| Some(leak())),
    rule("new suspected memory leaks", |_| Some(leak().weak())),
    rule("unregister_netdevice: waiting for ", device_waits),
    rule("VFS: Busy inodes after unmount", |_| {
        Some(inodes("VFS: Busy inodes after unmount (use-after-free)"))
    }),
    rule("VFS: Close: file count is ", |_| {
        Some(inodes("VFS: Close: file count is zero (use-after-free)"))
    }),
    rule("Out of memory: Kill", |_| Some(out_of_memory())),
    rule("ut of memory: Kill", |_| Some(out_of_memory())),
    rule("SYZFAIL: ", |rest| Some(fuzzer(rest, "SYZFAIL"))),
    rule("SYZFATAL: ", |rest| Some(fuzzer(rest, "SYZFATAL"))),
];

/// Start of the message of a booting kernel.
pub(crate) const BOOT: &str = "Linux version ";
const RESTARTS: &[&str] = &[
    "Restarting system",
    "Power down",
    "Starting new kernel",
    "System halted",
];

/// Prefixes that do not change the meaning of a message.
const PREFIXES: &[&str] = &[
    "rcu: ",
    "watchdog: ",
    "NMI watchdog: ",
    "Watchdog ",
    "traps: ",
    "kernel: ",
    "kmemleak: ",
    "[ ",
    "INFO: ",
    "== ",
];

/// Returns the starts of everything that [`recognize`], [`is_boot`] and [`is_restart`] look at.
pub(crate) fn beginnings() -> impl Iterator<Item = &'static str> {
    let marks = RESTARTS.iter().copied().chain([BOOT]);
    RULES.iter().map(|rule| rule.begin).chain(marks)
}

/// Returns true if a kernel starts.
pub(crate) fn is_boot(text: &str) -> bool {
    text.starts_with(BOOT)
}

/// Returns true if the kernel reports a requested stop.
pub(crate) fn is_restart(text: &str) -> bool {
    RESTARTS.iter().any(|mark| text.contains(mark))
}

/// Returns the report of a kernel that starts again without a message of the last one.
pub(crate) fn reboot() -> Report {
    Report::new(
        Family::Panic,
        Class::REBOOT,
        "unexpected kernel reboot",
        Pick::Nothing,
    )
    .ending(End::Consequence)
}

/// Returns the report that the message begins, if it begins a crash.
pub(crate) fn recognize(text: &str, is_stamped: bool) -> Option<Report> {
    let mut found: Vec<(usize, &Rule)> = RULES
        .iter()
        .flat_map(|rule| {
            text.match_indices(rule.begin)
                .map(move |(at, _)| (at, rule))
        })
        .collect();
    found.sort_by_key(|(at, rule)| (*at, std::cmp::Reverse(rule.begin.len())));
    found.into_iter().find_map(|(at, rule)| {
        let (before, rest) = text.split_at(at);
        // Inside a word or a quotation it is a foreign text.
        let is_inside = before.ends_with(|c: char| c.is_alphanumeric() || "_\"'`=".contains(c));
        let is_cut = rule.begin.starts_with("ut ");
        if is_inside && !is_cut {
            return None;
        }
        (rule.read)(&Rest {
            text: &rest[rule.begin.len()..],
            is_first: is_prefix(before),
            is_stamped,
        })
    })
}

fn is_prefix(mut before: &str) -> bool {
    while let Some(rest) = PREFIXES
        .iter()
        .find_map(|prefix| before.strip_prefix(prefix))
    {
        before = rest;
    }
    let is_date = |c: char| c.is_ascii_digit() || "/-:. TZ+".contains(c);
    before.chars().all(is_date)
}

fn oops(head: &str) -> Report {
    Report::new(Family::Oops, Class::DENIAL, head, Pick::Stack)
}

fn paging_request() -> Report {
    let head = "BUG: unable to handle kernel paging request";
    Report::new(Family::Oops, Class::MEMORY, head, Pick::Stack)
}

fn null_dereference() -> Report {
    let head = "BUG: unable to handle kernel NULL pointer dereference";
    Report::new(Family::Oops, Class::NULL, head, Pick::Stack)
}

fn leak() -> Report {
    Report::new(Family::Leak, Class::LEAK, "memory leak", Pick::Stack)
}

fn out_of_memory() -> Report {
    Report::new(Family::Oom, Class::DENIAL, "out of memory", Pick::Nothing).weak()
}

/// Returns the report of a processor exception. The kernel's exceptions have a number (`[#1]`), those of user space
/// have none.
fn exception(rest: &Rest<'_>, head: &str) -> Option<Report> {
    if !rest.text.contains("[#") && !rest.text.starts_with("0000") {
        return None;
    }
    for (text, name) in [
        ("general protection", "general protection fault"),
        ("divide error", "divide error"),
        ("stack segment", "stack segment fault"),
    ] {
        if rest.text.starts_with(text) {
            return Some(oops(name));
        }
    }
    Some(oops(head))
}

fn protection_fault(rest: &Rest<'_>) -> Option<Report> {
    let is_kernel = [":", ", probably for", ", maybe for", " for non-canonical"]
        .iter()
        .any(|text| rest.text.starts_with(text));
    is_kernel.then(|| oops("general protection fault"))
}

fn access(rest: &Rest<'_>) -> Option<Report> {
    if rest.text.starts_with("NULL pointer") {
        return Some(null_dereference());
    }
    let known = [
        "paging request",
        "access to user memory",
        "read from unreadable",
        "write to read-only",
        "execute from",
        "unaligned",
        "pointer dereference",
        "data access",
        "instruction fetch",
    ];
    known
        .iter()
        .any(|text| rest.text.starts_with(text))
        .then(paging_request)
}

fn stack_overflow() -> Report {
    Report::new(
        Family::Oops,
        Class::DENIAL,
        "kernel stack overflow",
        Pick::Depth,
    )
}

fn hard_lockup() -> Report {
    Report::new(Family::Lockup, Class::HANG, "BUG: hard lockup", Pick::Loop)
}

fn hang(rest: &Rest<'_>) -> Option<Report> {
    let is_time =
        rest.text.starts_with(|c: char| c.is_ascii_digit()) && rest.text.contains(" seconds");
    is_time.then(|| {
        Report::new(Family::Lockup, Class::HANG, "INFO: task hung", Pick::Waiter).with(Detail::Hang)
    })
}

fn undefined(rest: &Rest<'_>) -> Option<Report> {
    let (kind, _) = rest.text.split_once(" in ")?;
    let kind = kind.to_lowercase().replace(' ', "-");
    Some(Report::new(
        Family::Sanitizer,
        Class::UBSAN,
        format!("UBSAN: {kind}"),
        Pick::Stack,
    ))
}

fn device_waits(rest: &Rest<'_>) -> Option<Report> {
    rest.text.contains("to become free").then(|| {
        let head = "unregister_netdevice: waiting for DEV to become free";
        Report::new(Family::Lockup, Class::DENIAL, head, Pick::Nothing)
    })
}

fn inodes(head: &str) -> Report {
    Report::new(Family::Warning, Class::DENIAL, head, Pick::Nothing)
}

fn fuzzer(rest: &Rest<'_>, word: &str) -> Report {
    let head = format!("{word}: {}", plain_words(rest.text));
    Report::new(Family::Warning, Class::FUZZER, head, Pick::Nothing)
}

/// Returns [`End::Consequence`] if a panic only reports that an earlier crash was fatal.
fn panic_end(text: &str) -> End {
    let consequences = [
        "Fatal exception",
        "panic_on_warn",
        "panic_on_oops",
        "hung_task",
        "softlockup",
        "LOCKUP",
        "RCU Stall",
        "Aiee, killing interrupt handler",
        "Attempted to kill the idle task",
    ];
    if consequences.iter().any(|words| text.contains(words)) {
        End::Consequence
    } else {
        End::Stop
    }
}

fn panic(rest: &Rest<'_>) -> Report {
    let text = rest.text.trim_start_matches(':').trim();
    let is = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if is(&["corrupted stack end"]) {
        let head = "kernel panic: corrupted stack end";
        return Report::new(Family::Panic, Class::DENIAL, head, Pick::Depth);
    }
    if let Some((_, place)) = text.split_once("stack is corrupted in: ") {
        let is_address = place.bytes().take(8).all(|byte| byte.is_ascii_hexdigit());
        let plain = (!is_address).then(|| function(place.split_whitespace().next()?));
        let named = symbol_in(place).or(plain.flatten());
        let head = "kernel panic: stack is corrupted";
        return Report::new(Family::Panic, Class::DENIAL, head, Pick::Stack).naming(named);
    }
    let (family, class) = if is(&["ut of memory", "deadlocked on memory"]) {
        (Family::Oom, Class::DENIAL)
    } else if is(&["hung_task", "softlockup", "LOCKUP", "RCU Stall"]) {
        (Family::Lockup, Class::HANG)
    } else {
        (Family::Panic, Class::DENIAL)
    };
    let text = text.split("exitcode").next().unwrap_or(text);
    let text = plain_words(text);
    let head = format!("kernel panic: {}", text.trim_end_matches(['.', ' ']));
    let head = head.trim_end_matches([':', ' ']);
    Report::new(family, class, head, Pick::Nothing)
}

fn info(rest: &Rest<'_>) -> Option<Report> {
    let text = rest.text;
    if text.contains("stall") && (text.contains("rcu") || text.contains("RCU")) {
        return Some(Report::new(
            Family::Lockup,
            Class::HANG,
            "INFO: rcu detected stall",
            Pick::Loop,
        ));
    }
    if text.starts_with("trying to register non-static key") {
        let head = "INFO: trying to register non-static key";
        return Some(Report::new(
            Family::Lockdep,
            Class::LOCKDEP,
            head,
            Pick::Stack,
        ));
    }
    // This is the allocator's report without its first lines.
    for word in ["Allocated in ", "Freed in "] {
        if let Some(place) = text.strip_prefix(word) {
            let head = format!("INFO: {word}{}", symbol_in(place)?);
            return Some(Report::new(
                Family::Sanitizer,
                Class::BUG,
                head,
                Pick::Nothing,
            ));
        }
    }
    lockdep(text)
}
