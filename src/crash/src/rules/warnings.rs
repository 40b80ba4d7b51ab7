//! Messages that begin with `WARNING`, and those of the lock validator.

use super::{Rest, texts::location};
use crate::{
    class::{Class, Family},
    culprit::Pick,
    report::Report,
};

/// Messages of the unwinder about stacks, and their titles.
const BAD_FRAMES: &[(&str, &str)] = &[
    (
        "kernel stack regs at",
        "WARNING: kernel stack regs has bad 'bp' value",
    ),
    (
        "kernel stack frame pointer at",
        "WARNING: kernel stack frame pointer has bad value",
    ),
];

pub(super) fn warning(rest: &Rest<'_>) -> Option<Report> {
    let text = rest.text;
    if let Some(report) = lockdep(text) {
        return Some(report);
    }
    let is_bad = |(begin, _): &&(&str, &str)| text.starts_with(begin) && text.contains("has bad");
    if let Some((_, head)) = BAD_FRAMES.iter().find(is_bad) {
        let (family, class) = (Family::Warning, Class::WARNING);
        return Some(Report::new(family, class, *head, Pick::Nothing));
    }
    let (file, named) = location(text)?;
    let is = |end: &str| file.ends_with(end);
    let (family, class, head) = if is("lib/refcount.c") {
        (Family::Warning, Class::REFCOUNT, "WARNING: refcount bug")
    } else if is("lib/debugobjects.c") {
        (Family::Warning, Class::WARNING, "WARNING: ODEBUG bug")
    } else if is("kernel/locking/lockdep.c") {
        (Family::Lockdep, Class::LOCKDEP, "WARNING: locking bug")
    } else if is("mm/vmalloc.c") {
        (
            Family::Warning,
            Class::WARNING,
            "WARNING: zero-size vmalloc",
        )
    } else if named
        .as_deref()
        .is_some_and(|name| name.starts_with("refcount_"))
    {
        (Family::Warning, Class::REFCOUNT, "WARNING: refcount bug")
    } else if named
        .as_deref()
        .is_some_and(|name| name.starts_with("kmalloc_") || name.starts_with("kvmalloc_"))
    {
        (Family::Warning, Class::WARNING, "WARNING: kmalloc bug")
    } else if named.as_deref() == Some("proc_register") {
        (
            Family::Warning,
            Class::WARNING,
            "WARNING: proc registration bug",
        )
    } else {
        (Family::Warning, Class::WARNING, "WARNING")
    };
    Some(Report::new(family, class, head, Pick::Stack).naming(named))
}

/// Reports of the lock validator, their titles, and the place of the function in them.
const LOCK_KINDS: &[(&str, &str, Pick)] = &[
    (
        "possible circular locking dependency",
        "possible deadlock",
        Pick::Locker,
    ),
    (
        "possible recursive locking",
        "possible deadlock",
        Pick::Locker,
    ),
    (
        "possible irq lock inversion",
        "possible deadlock",
        Pick::Locker,
    ),
    (
        "possible filesystem lock",
        "possible deadlock",
        Pick::Locker,
    ),
    ("lock order detected", "possible deadlock", Pick::Locker),
    (
        "inconsistent lock state",
        "inconsistent lock state",
        Pick::Locker,
    ),
    (
        "suspicious RCU usage",
        "WARNING: suspicious RCU usage",
        Pick::Stack,
    ),
    (
        "bad unlock balance",
        "WARNING: bad unlock balance",
        Pick::Locker,
    ),
    ("bad contention", "WARNING: bad contention", Pick::Locker),
    ("held lock freed", "WARNING: held lock freed", Pick::Locker),
    (
        "lock held at task exit",
        "WARNING: lock held at task exit",
        Pick::Locker,
    ),
    (
        "lock held when returning to user space",
        "WARNING: lock held when returning to user space",
        Pick::Locker,
    ),
    (
        "still has locks held",
        "WARNING: still has locks held",
        Pick::Locker,
    ),
    (
        "ested lock was not taken",
        "WARNING: nested lock was not taken",
        Pick::Stack,
    ),
    (
        "nvalid wait context",
        "WARNING: invalid wait context",
        Pick::Stack,
    ),
];

/// Returns a report of the lock validator. Its first words differ between versions (BUG, INFO, WARNING).
pub(super) fn lockdep(text: &str) -> Option<Report> {
    let (_, head, pick) = LOCK_KINDS
        .iter()
        .find(|(words, _, _)| text.contains(words))?;
    Some(Report::new(Family::Lockdep, Class::LOCKDEP, *head, *pick))
}
