//! Messages that begin with `BUG`, and those of the sanitizers among them.

use super::{
    Rest, leak, lockdep, null_dereference, paging_request, plain_words, symbol, symbol_in,
};
use crate::{
    class::{Class, Family},
    culprit::Pick,
    report::{Detail, Report},
};

/// Starts of messages, and their meaning. An empty head means the start itself.
const KINDS: &[(&str, &str, Family, Class, Pick)] = &[
    ("soft lockup", "", Family::Lockup, Class::HANG, Pick::Loop),
    (
        "workqueue lockup",
        "",
        Family::Lockup,
        Class::HANG,
        Pick::Nothing,
    ),
    (
        "spinlock lockup suspected",
        "",
        Family::Lockup,
        Class::LOCKDEP,
        Pick::Stack,
    ),
    (
        "spinlock bad magic",
        "",
        Family::Lockdep,
        Class::LOCKDEP,
        Pick::Stack,
    ),
    (
        "spinlock recursion",
        "",
        Family::Lockdep,
        Class::LOCKDEP,
        Pick::Stack,
    ),
    (
        "spinlock cpu recursion",
        "",
        Family::Lockdep,
        Class::LOCKDEP,
        Pick::Stack,
    ),
    (
        "spinlock already unlocked",
        "",
        Family::Lockdep,
        Class::LOCKDEP,
        Pick::Stack,
    ),
    (
        "spinlock wrong owner",
        "",
        Family::Lockdep,
        Class::LOCKDEP,
        Pick::Stack,
    ),
    (
        "spinlock wrong CPU",
        "",
        Family::Lockdep,
        Class::LOCKDEP,
        Pick::Stack,
    ),
    (
        "rwlock bad magic",
        "",
        Family::Lockdep,
        Class::LOCKDEP,
        Pick::Stack,
    ),
    (
        "rwlock recursion",
        "",
        Family::Lockdep,
        Class::LOCKDEP,
        Pick::Stack,
    ),
    (
        "rwlock lockup",
        "",
        Family::Lockup,
        Class::LOCKDEP,
        Pick::Stack,
    ),
    (
        "rwlock wrong owner",
        "",
        Family::Lockdep,
        Class::LOCKDEP,
        Pick::Stack,
    ),
    (
        "rwlock wrong CPU",
        "",
        Family::Lockdep,
        Class::LOCKDEP,
        Pick::Stack,
    ),
    (
        "scheduling while atomic",
        "",
        Family::Lockdep,
        Class::ATOMIC_SLEEP,
        Pick::Waiter,
    ),
    (
        "sleeping function called from invalid context",
        "",
        Family::Lockdep,
        Class::ATOMIC_SLEEP,
        Pick::Stack,
    ),
    (
        "assuming atomic context",
        "",
        Family::Lockdep,
        Class::ATOMIC_SLEEP,
        Pick::Stack,
    ),
    (
        "Bad page state",
        "",
        Family::Warning,
        Class::BUG,
        Pick::FirstStack,
    ),
    ("Bad page map", "", Family::Warning, Class::BUG, Pick::Stack),
    (
        "Bad page cache",
        "",
        Family::Warning,
        Class::BUG,
        Pick::Stack,
    ),
    (
        "Bad rss-counter state",
        "",
        Family::Warning,
        Class::BUG,
        Pick::Nothing,
    ),
    (
        "non-zero pgtables_bytes on freeing mm",
        "",
        Family::Warning,
        Class::BUG,
        Pick::Nothing,
    ),
    (
        "non-zero nr_ptes on freeing mm",
        "",
        Family::Warning,
        Class::BUG,
        Pick::Nothing,
    ),
    (
        "atomic counter underflow",
        "",
        Family::Warning,
        Class::BUG,
        Pick::Stack,
    ),
    (
        "stack guard page was hit",
        "",
        Family::Oops,
        Class::DENIAL,
        Pick::Depth,
    ),
    (
        "TASK stack guard page was hit",
        "BUG: stack guard page was hit",
        Family::Oops,
        Class::DENIAL,
        Pick::Depth,
    ),
    (
        "IRQ stack guard page was hit",
        "BUG: stack guard page was hit",
        Family::Oops,
        Class::DENIAL,
        Pick::Depth,
    ),
    (
        "workqueue leaked",
        "BUG: workqueue leaked lock or atomic",
        Family::Lockdep,
        Class::LOCKDEP,
        Pick::Stack,
    ),
    (
        "looking up invalid subclass",
        "",
        Family::Lockdep,
        Class::LOCKDEP,
        Pick::Stack,
    ),
    (
        "failure at ",
        "kernel BUG",
        Family::Oops,
        Class::BUG,
        Pick::Stack,
    ),
    (
        "unable to handle kernel",
        "",
        Family::Oops,
        Class::DENIAL,
        Pick::Stack,
    ),
];

const NULLS: &[&str] = &[
    "unable to handle kernel NULL pointer",
    "kernel NULL pointer dereference",
    "Kernel NULL pointer dereference",
];

const PAGING: &[&str] = &[
    "unable to handle kernel paging request",
    "unable to handle page fault",
    "Unable to handle kernel data access",
    "Unable to handle kernel instruction fetch",
    "Unable to handle unaligned access",
    "Unable to handle kernel paging request",
];

pub(super) fn bug(rest: &Rest<'_>) -> Option<Report> {
    let text = rest.text;
    if let Some(report) = sanitizer(text) {
        return Some(report);
    }
    let is_any = |begins: &[&str]| begins.iter().any(|begin| text.starts_with(begin));
    if is_any(NULLS) {
        return Some(null_dereference());
    }
    if is_any(PAGING) {
        return Some(paging_request());
    }
    if text.starts_with("memory leak") {
        return Some(leak());
    }
    if let Some((begin, head, family, class, pick)) =
        KINDS.iter().find(|kind| text.starts_with(kind.0))
    {
        let head = if head.is_empty() {
            format!("BUG: {begin}")
        } else {
            (*head).to_owned()
        };
        return Some(Report::new(*family, *class, head, *pick));
    }
    if let Some((what, _)) = text
        .strip_prefix("using ")
        .and_then(|text| text.split_once(" in preemptible"))
    {
        let head = format!("BUG: using {what} in preemptible code");
        return Some(Report::new(
            Family::Lockdep,
            Class::LOCKDEP,
            head,
            Pick::Stack,
        ));
    }
    if text.starts_with("Dentry ") && text.contains("still in use") {
        let head = "BUG: Dentry still in use";
        return Some(Report::new(
            Family::Warning,
            Class::BUG,
            head,
            Pick::Nothing,
        ));
    }
    if text.starts_with("MAX_") && text.contains("too low") {
        let head = format!("BUG: {}", plain_words(text));
        return Some(Report::new(
            Family::Lockdep,
            Class::LOCKDEP,
            head,
            Pick::Nothing,
        ));
    }
    lockdep(text).or_else(|| other(rest))
}

/// Returns the report of a kind of bug without a rule, if the kernel printed it.
fn other(rest: &Rest<'_>) -> Option<Report> {
    let is_kernel = rest.is_first && rest.is_stamped;
    is_kernel.then(|| {
        let head = format!("BUG: {}", plain_words(rest.text));
        Report::new(Family::Warning, Class::BUG, head, Pick::Nothing)
    })
}

/// Returns the report of a check of the allocator: `BUG kmalloc-64 (Tainted: G B): Poison overwritten`.
pub(super) fn slab(rest: &Rest<'_>) -> Option<Report> {
    let (cache, rest_text) = rest.text.split_once(" (")?;
    let (state, what) = rest_text.split_once("): ")?;
    let is_slab = rest.is_first && !cache.contains(' ') && state.to_lowercase().contains("tainted");
    is_slab.then(|| {
        let head = format!("BUG: {}", plain_words(what));
        Report::new(Family::Sanitizer, Class::DENIAL, head, Pick::Nothing)
    })
}

pub(super) fn kernel_bug_report() -> Report {
    Report::new(Family::Oops, Class::BUG, "kernel BUG", Pick::Stack)
}

/// Returns the report of `kernel BUG at FILE:LINE!`.
pub(super) fn kernel_bug(rest: &Rest<'_>) -> Option<Report> {
    let place = rest.text.strip_prefix("at ")?;
    let file = place.split([':', ' ', '!']).next()?;
    let (class, head) = if file.ends_with("lib/list_debug.c") {
        (Class::MEMORY, "BUG: corrupted list")
    } else if file.ends_with("mm/usercopy.c") {
        (Class::BUG, "BUG: bad usercopy")
    } else {
        return Some(kernel_bug_report());
    };
    Some(Report::new(Family::Oops, class, head, Pick::Stack))
}

fn sanitizer(text: &str) -> Option<Report> {
    let (tool, rest) = text.split_once(": ")?;
    let (kind, place) = rest.split_once(" in ").unwrap_or((rest, ""));
    // Both kinds have words before the place: `null-ptr-deref on address`, `use-after-free at`.
    let kind = kind.split([':', '[']).next()?.trim();
    let named = symbol_in(place);
    let make = |class, head: String, pick| Report::new(Family::Sanitizer, class, head, pick);
    match tool {
        "KASAN" | "KASan" => {
            let kind = kind
                .split(" on address")
                .next()?
                .replace(' ', "-")
                .replace("-or-", " or ");
            Some(
                make(Class::KASAN_READ, format!("KASAN: {kind}"), Pick::Stack)
                    .with(Detail::Access)
                    .naming(named),
            )
        }
        "KMSAN" => {
            let class = match kind {
                _ if kind.contains("infoleak") => Class::KMSAN_LEAK,
                _ if kind.contains("use-after-free") => Class::KMSAN_USED,
                _ => Class::KMSAN_UNINIT,
            };
            Some(make(class, format!("KMSAN: {kind}"), Pick::FirstStack).naming(named))
        }
        "KFENCE" => Some(
            make(
                kfence_class(kind),
                format!("KFENCE: {kind}"),
                Pick::FirstStack,
            )
            .naming(named),
        ),
        "KCSAN" => {
            let class = if rest.starts_with("assert") {
                Class::KCSAN_ASSERT
            } else {
                Class::KCSAN_RACE
            };
            let kind = if rest.starts_with("assert") {
                "assert: race"
            } else {
                kind
            };
            let mut racers: Vec<String> = place
                .split(" / ")
                .filter_map(|word| symbol(word.trim()))
                .collect();
            racers.sort();
            let head = format!("KCSAN: {kind} in {}", racers.join(" / "));
            Some(make(class, head, Pick::Nothing))
        }
        _ => None,
    }
}

fn kfence_class(kind: &str) -> Class {
    let is_write = kind.ends_with("write");
    match kind {
        "memory corruption" => Class::KFENCE_CORRUPTION,
        "invalid free" => Class::KFENCE_FREE,
        _ if kind.starts_with("use-after-free") => {
            if is_write {
                Class::KFENCE_USED_WRITE
            } else {
                Class::KFENCE_USED_READ
            }
        }
        _ if is_write => Class::KFENCE_WRITE,
        _ => Class::KFENCE_READ,
    }
}
