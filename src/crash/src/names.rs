//! Functions that are on the stack of many different crashes, and so name none of them. The lists are in `names/`.

use std::{collections::HashMap, sync::LazyLock};

static HELPERS: LazyLock<Names> = LazyLock::new(|| Names::read(include_str!("names/helpers.txt")));
static WAITS: LazyLock<Names> = LazyLock::new(|| Names::read(include_str!("names/waits.txt")));
static DISPATCHERS: LazyLock<Names> =
    LazyLock::new(|| Names::read(include_str!("names/dispatchers.txt")));
static DISPATCHING_CALLS: LazyLock<Names> =
    LazyLock::new(|| Names::read(include_str!("names/calls.txt")));
static TICKS: LazyLock<Names> = LazyLock::new(|| Names::read(include_str!("names/ticks.txt")));
static ENTRIES: LazyLock<Names> = LazyLock::new(|| Names::read(include_str!("names/entries.txt")));

/// Patterns of function names by their first byte. Patterns without a fixed start are under `None`.
struct Names(HashMap<Option<u8>, Vec<Pattern>>);

/// A name without leading underscores, or its start and a text somewhere behind it.
enum Pattern {
    Whole(&'static str),
    Parts(&'static str, &'static str),
}

impl Names {
    fn read(text: &'static str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let mut names: HashMap<_, Vec<_>> = HashMap::new();
        for word in lines.flat_map(str::split_whitespace) {
            let (first, pattern) = match word.split_once('*') {
                None => (word.bytes().next(), Pattern::Whole(word)),
                Some((begin, rest)) => (
                    begin.bytes().next(),
                    Pattern::Parts(begin, rest.trim_end_matches('*')),
                ),
            };
            names.entry(first).or_default().push(pattern);
        }
        Self(names)
    }

    fn has(&self, name: &str) -> bool {
        let bare = name.trim_start_matches('_');
        [bare.bytes().next(), None]
            .iter()
            .filter_map(|first| self.0.get(first))
            .flatten()
            .any(|pattern| match pattern {
                Pattern::Whole(whole) => bare == *whole,
                Pattern::Parts(begin, part) => bare
                    .strip_prefix(begin)
                    .is_some_and(|rest| rest.contains(part)),
            })
    }
}

/// Returns true for a helper that any code calls.
pub(crate) fn is_helper(name: &str) -> bool {
    HELPERS.has(name)
}

/// Returns true for a function in which tasks wait, or a helper.
pub(crate) fn is_wait(name: &str) -> bool {
    WAITS.has(name) || is_helper(name)
}

/// Returns true for a function on the way from a system call or an interrupt to the code that matters.
pub(crate) fn is_dispatcher(name: &str) -> bool {
    let call = system_call(name);
    call.map_or_else(
        || DISPATCHERS.has(name) || is_wait(name),
        |call| DISPATCHING_CALLS.has(call),
    )
}

/// Returns true for a part of the interrupt that detects a stall.
pub(crate) fn is_tick(name: &str) -> bool {
    TICKS.has(name)
}

/// Returns true for the start of a context.
pub(crate) fn is_entry(name: &str) -> bool {
    ENTRIES.has(name)
}

/// Returns true for the RCU thread, which is never the one that stalls.
pub(crate) fn is_rcu_thread(name: &str) -> bool {
    name.starts_with("rcu_gp_") || name == "rcu_tasks_kthread"
}

/// Returns the system call of a function: `mount` for `__x64_sys_mount`.
pub(crate) fn system_call(name: &str) -> Option<&str> {
    const BEGINNINGS: &[&str] = &[
        "compat_SyS_",
        "C_SYSC_",
        "SYSC_",
        "SyS_",
        "x64_sys_",
        "ia32_compat_sys_",
        "ia32_sys_",
        "x32_compat_sys_",
        "arm64_compat_sys_",
        "arm64_sys_",
        "riscv_sys_",
        "s390x_sys_",
        "s390_sys_",
        "se_compat_sys_",
        "se_sys_",
        "do_compat_sys_",
        "do_sys_",
        "compat_sys_",
        "sys_",
        "ksys_",
    ];
    let name = name.trim_start_matches('_');
    if name == "x64_sys_call" || name == "ia32_sys_call" {
        return None;
    }
    let call = BEGINNINGS
        .iter()
        .find_map(|start| name.strip_prefix(start))?;
    (!call.is_empty()).then_some(call)
}

/// Returns one name for functions without a relevant difference: ways of waiting for all CPUs, entries of a system
/// call.
pub(crate) fn canonical(name: &str) -> String {
    let bare = name.trim_start_matches('_');
    if bare.starts_with("synchronize_rcu")
        || bare.starts_with("synchronize_srcu")
        || bare.starts_with("synchronize_sched")
    {
        return "synchronize_rcu".to_owned();
    }
    if is_call_of_all(name) {
        return "smp_call_function".to_owned();
    }
    system_call(name).map_or_else(|| name.to_owned(), |call| format!("sys_{call}"))
}

/// Returns true for a wait for answers of other CPUs. Those CPUs hang.
pub(crate) fn is_call_of_all(name: &str) -> bool {
    name.trim_start_matches('_')
        .starts_with("smp_call_function")
        || name == "csd_lock_wait"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_are_known_by_exact_names_and_beginnings() {
        for name in [
            "__kmalloc_node",
            "kfree",
            "_raw_spin_lock_bh",
            "mutex_lock_nested",
            "print_circular_bug",
            "strlen",
        ] {
            assert!(is_helper(name), "{name}");
        }
        for name in [
            "ext4_mb_init",
            "kfree_rcu_work",
            "upload",
            "kthread_work",
            "print_bug_list",
        ] {
            assert!(!is_helper(name), "{name}");
        }
    }

    #[test]
    fn system_calls_have_one_name() {
        for name in [
            "__x64_sys_mount",
            "__se_sys_mount",
            "compat_SyS_mount",
            "SyS_mount",
            "ksys_mount",
        ] {
            assert_eq!(canonical(name), "sys_mount");
        }
        assert!(is_dispatcher("__arm64_sys_ioctl") && !is_dispatcher("__arm64_sys_mount"));
        assert_eq!(canonical("__synchronize_srcu"), "synchronize_rcu");
        assert_eq!(canonical("smp_call_function_many"), "smp_call_function");
    }
}
