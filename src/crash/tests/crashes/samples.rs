//! Short consoles, written for these tests, and what each must be called.

use fairlead_crash::{Family, LINE_BYTES_MAX, REPORT_LINES_MAX, Scanner};

use crate::scan;

/// A console and its crash: family, class, signature.
pub(crate) type Sample = (&'static str, &'static str, &'static str, &'static str);

const TASK: &str = "CPU: 1 PID: 77 Comm: test Not tainted 6.1.0 #1\nHardware name: none";

/// Every kind of crash at least once.
pub(crate) const SAMPLES: &[Sample] = &[
    (
        "BUG: KASAN: slab-use-after-free in frob_read+0x12/0x40 [frob]\nRead of size 8 at addr ffff88801234 by task a/7\n\
         Call Trace:\n dump_stack+0x1/0x2\n kasan_report+0x1/0x2\n frob_read+0x12/0x40\nFreed by task 7:\n kfree+0x1/0x2",
        "sanitizer",
        "KASAN-USE-AFTER-FREE-READ",
        "KASAN: slab-use-after-free Read in frob_read",
    ),
    (
        "BUG: KASAN: slab-out-of-bounds in memcpy+0x1d/0x40\nWrite of size 4 at addr ffff88801234 by task a/7\n\
         Call Trace:\n dump_stack+0x1/0x2\n ? odd+0x1/0x2\n memcpy+0x1d/0x40\n frob_copy.isra.0+0x12/0x40\n main_loop+0x1/0x2",
        "sanitizer",
        "KASAN-WRITE",
        "KASAN: slab-out-of-bounds Write in frob_copy",
    ),
    (
        "BUG: KASAN: double-free or invalid-free in frob_put+0x1/0x2",
        "sanitizer",
        "KASAN-INVALID-FREE",
        "KASAN: double-free or invalid-free in frob_put",
    ),
    (
        "BUG: KASAN: null-ptr-deref in frob_get+0x1/0x2\nRead of size 4 at addr 0000000000000008 by task a/7",
        "sanitizer",
        "KASAN-NULL-POINTER-DEREFERENCE-READ",
        "KASAN: null-ptr-deref Read in frob_get",
    ),
    (
        "BUG: KFENCE: use-after-free read in frob_peek+0x1/0x2",
        "sanitizer",
        "KFENCE-USE-AFTER-FREE-READ",
        "KFENCE: use-after-free read in frob_peek",
    ),
    (
        "BUG: KFENCE: memory corruption in kfree+0x1/0x2\n kfree+0x1/0x2\n frob_free+0x1/0x2",
        "sanitizer",
        "KFENCE-MEMORY-CORRUPTION",
        "KFENCE: memory corruption in frob_free",
    ),
    (
        "BUG: KMSAN: uninit-value in strlen+0x1/0x2\n strlen+0x1/0x2\n frob_name+0x1/0x2\nUninit was created at:\n kmalloc+0x1/0x2",
        "sanitizer",
        "KMSAN-UNINIT-VALUE",
        "KMSAN: uninit-value in frob_name",
    ),
    (
        "BUG: KMSAN: kernel-infoleak in _copy_to_iter+0x1/0x2\n _copy_to_iter+0x1/0x2\n frob_recv+0x1/0x2",
        "sanitizer",
        "KMSAN-INFO-LEAK",
        "KMSAN: kernel-infoleak in frob_recv",
    ),
    (
        "BUG: KCSAN: data-race in zeta_set.part.0+0x1/0x2 / alpha_get+0x3/0x4",
        "sanitizer",
        "KCSAN-DATARACE",
        "KCSAN: data-race in alpha_get / zeta_set",
    ),
    (
        "UBSAN: Undefined behaviour in drivers/frob.c:12:3\nshift exponent 64 is too large\nCall Trace:\n dump_stack+0x1/0x2\n\
         ubsan_epilogue+0x1/0x2\n __ubsan_handle_shift_out_of_bounds+0x1/0x2\n frob_shift+0x1/0x2",
        "sanitizer",
        "UBSAN",
        "UBSAN: undefined-behaviour in frob_shift",
    ),
    (
        "BUG kmalloc-64 (Not tainted): Poison overwritten",
        "sanitizer",
        "DoS",
        "BUG: Poison overwritten",
    ),
    (
        "BUG: unable to handle page fault for address: ffff887ffffffff0\n#PF: supervisor read access\nOops: 0000 [#1] SMP\n\
         RIP: 0010:frob_walk+0x1/0x2\nCall Trace:\n frob_all+0x1/0x2",
        "oops",
        "MEMORY_SAFETY_BUG",
        "BUG: unable to handle kernel paging request in frob_walk",
    ),
    (
        "Unable to handle kernel paging request at virtual address fee00001\nInternal error: Oops: 805 [#1] SMP ARM\n\
         PC is at frob_out+0x40/0x48\nLR is at other+0x28/0x48",
        "oops",
        "MEMORY_SAFETY_BUG",
        "BUG: unable to handle kernel paging request in frob_out",
    ),
    (
        "BUG: kernel NULL pointer dereference, address: 0000000000000010\nOops: 0002 [#1]\nRIP: 0010:__mutex_lock+0x1/0x2\n\
         Call Trace:\n mutex_lock_nested+0x1/0x2\n frob_lock+0x1/0x2",
        "oops",
        "NULL-POINTER-DEREFERENCE",
        "BUG: unable to handle kernel NULL pointer dereference in frob_lock",
    ),
    (
        "general protection fault, probably for non-canonical address 0xdffffc0000000002: 0000 [#1] SMP KASAN\n\
         KASAN: null-ptr-deref in range [0x10-0x17]\nRIP: 0010:frob_gone+0x1/0x2",
        "oops",
        "DoS",
        "general protection fault in frob_gone",
    ),
    (
        "divide error: 0000 [#1] SMP\nRIP: 0010:frob_rate+0x1/0x2",
        "oops",
        "DoS",
        "divide error in frob_rate",
    ),
    (
        "kernel BUG at drivers/frob.c:12!\ninvalid opcode: 0000 [#1]\nRIP: 0010:frob_assert+0x1/0x2",
        "oops",
        "BUG",
        "kernel BUG in frob_assert",
    ),
    (
        "kernel BUG at lib/list_debug.c:53!\nRIP: 0010:__list_del_entry_valid+0x1/0x2\nCall Trace:\n frob_unlink+0x1/0x2",
        "oops",
        "MEMORY_SAFETY_BUG",
        "BUG: corrupted list in frob_unlink",
    ),
    (
        "BUG: TASK stack guard page was hit at ffffc900 (stack is ffffc900..ffffc901)\nRIP: 0010:frob_deep+0x1/0x2\nCall Trace:\n\
         frob_deep+0x1/0x2\n frob_enter+0x1/0x2\n vfs_write+0x1/0x2\n do_syscall_64+0x1/0x2",
        "oops",
        "DoS",
        "BUG: stack guard page was hit in frob_enter",
    ),
    (
        "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b",
        "panic",
        "DoS",
        "kernel panic: Attempted to kill init!",
    ),
    (
        "Kernel panic - not syncing: Out of memory and no killable processes...",
        "oom",
        "DoS",
        "kernel panic: Out of memory and no killable processes",
    ),
    (
        "Kernel panic - not syncing: stack-protector: Kernel stack is corrupted in: frob_text+0x1/0x2",
        "panic",
        "DoS",
        "kernel panic: stack is corrupted in frob_text",
    ),
    (
        "watchdog: BUG: soft lockup - CPU#1 stuck for 23s! [test:77]\nRIP: 0010:_raw_spin_unlock+0x1/0x2\nCall Trace:\n\
         frob_step+0x1/0x2\n frob_write+0x1/0x2\n vfs_write+0x1/0x2\n ksys_write+0x1/0x2\n do_syscall_64+0x1/0x2",
        "lockup",
        "HANG",
        "BUG: soft lockup in frob_write",
    ),
    (
        "rcu: INFO: rcu_preempt self-detected stall on CPU\nNMI backtrace for cpu 0\nCall Trace:\n <IRQ>\n dump_stack+0x1/0x2\n\
         rcu_sched_clock_irq+0x1/0x2\n update_process_times+0x1/0x2\n hrtimer_interrupt+0x1/0x2\n apic_timer_interrupt+0x1/0x2\n\
         </IRQ>\nRIP: 0010:frob_spin+0x1/0x2\n frob_ioctl+0x1/0x2\n do_vfs_ioctl+0x1/0x2\n __x64_sys_ioctl+0x1/0x2\n do_syscall_64+0x1/0x2",
        "lockup",
        "HANG",
        "INFO: rcu detected stall in frob_ioctl",
    ),
    (
        "INFO: task test:77 blocked for more than 143 seconds.\n      Not tainted 6.1.0 #1\ntask:test state:D stack:0\nCall Trace:\n\
         __schedule+0x1/0x2\n schedule+0x1/0x2\n rwsem_down_write_slowpath+0x1/0x2\n frob_close+0x1/0x2\n __fput+0x1/0x2",
        "lockup",
        "HANG",
        "INFO: task hung in frob_close",
    ),
    (
        "unregister_netdevice: waiting for lo to become free. Usage count = 5",
        "lockup",
        "DoS",
        "unregister_netdevice: waiting for DEV to become free",
    ),
    (
        "WARNING: possible circular locking dependency detected\n6.1.0 #1 Not tainted\ntest/77 is trying to acquire lock:\n\
         ffff8880 (&frob->lock){+.+.}-{3:3}, at: frob_open+0x1/0x2\n\nbut task is already holding lock:\n(b){+.+.}, at: other+0x1/0x2",
        "lockdep",
        "LOCKDEP",
        "possible deadlock in frob_open",
    ),
    (
        "[ INFO: suspicious RCU usage. ]\nother info that might help us debug this:\nstack backtrace:\nCall Trace:\n\
         dump_stack+0x1/0x2\n lockdep_rcu_suspicious+0x1/0x2\n frob_find+0x1/0x2",
        "lockdep",
        "LOCKDEP",
        "WARNING: suspicious RCU usage in frob_find",
    ),
    (
        "BUG: sleeping function called from invalid context at mm/slab.h:12\nCall Trace:\n dump_stack+0x1/0x2\n\
         ___might_sleep+0x1/0x2\n kmem_cache_alloc+0x1/0x2\n frob_timer+0x1/0x2",
        "lockdep",
        "ATOMIC_SLEEP",
        "BUG: sleeping function called from invalid context in frob_timer",
    ),
    (
        "BUG: using smp_processor_id() in preemptible [00000000] code: test/77\ncaller is frob_count+0x1/0x2",
        "lockdep",
        "LOCKDEP",
        "BUG: using smp_processor_id() in preemptible code in frob_count",
    ),
    (
        "WARNING: CPU: 1 PID: 77 at drivers/frob.c:12 frob_check+0x1/0x2",
        "warning",
        "WARNING",
        "WARNING in frob_check",
    ),
    (
        "WARNING: drivers/frob.c:12 at frob_check+0x1/0x2, CPU#1: test/77",
        "warning",
        "WARNING",
        "WARNING in frob_check",
    ),
    (
        "refcount_t: underflow; use-after-free.\nWARNING: CPU: 1 PID: 77 at lib/refcount.c:28 refcount_warn_saturate+0x1/0x2\n\
         RIP: 0010:refcount_warn_saturate+0x1/0x2\nCall Trace:\n frob_put+0x1/0x2",
        "warning",
        "REFCOUNT_WARNING",
        "WARNING: refcount bug in frob_put",
    ),
    (
        "BUG: memory leak\nunreferenced object 0xffff88801234 (size 64):\n  backtrace:\n    [<00000000ba068e0d>] kmalloc_trace+0x1/0x2\n    [<00000000ba068e0e>] frob_new+0x1/0x2",
        "leak",
        "LEAK",
        "memory leak in frob_new",
    ),
    (
        "Out of memory: Killed process 77 (test) total-vm:4kB",
        "oom",
        "DoS",
        "out of memory",
    ),
    (
        "[   77.000000] last words\n[    0.000000] Linux version 6.1.0 (gcc)",
        "panic",
        "REBOOT",
        "unexpected kernel reboot",
    ),
];

/// Lines that look like a crash but are none.
const CLEAN: &[&str] = &[
    "DEBUG: #15 pc 0045c4a0 /system/lib64/libart.so",
    "WARNING: The mand mount option has been deprecated",
    "XFS (loop4): WARNING: Reset corrupted AGFL on AG 0.",
    "INFO: lockdep is turned off.",
    "traps: a.out[77] general protection fault ip:4cb420 sp:7f27fd37a250 error:0",
    "a.out[77]: segfault at 4cb420 ip 00000000004cb420 error 15",
    "echo 'BUG: KASAN: use-after-free in foo+0x1/0x2'",
    "Internal error: Could not resolve keysym",
    "panic: runtime error",
    "[    0.000000] Linux version 6.1.0 (gcc)\n[    9.000000] reboot: Restarting system\n[    0.000000] Linux version 6.1.0 (gcc)",
];

#[test]
fn every_kind_of_crash_has_its_words() {
    for (console, family, class, signature) in SAMPLES {
        let console = format!("boot\n{console}\n{TASK}\n");
        let crash = scan(console.as_bytes()).unwrap_or_else(|| panic!("not found: {console}"));
        let words = (
            crash.family.word(),
            crash.class.word(),
            crash.signature.as_str(),
        );
        assert_eq!(words, (*family, *class, *signature), "{console}");
    }
    for family in Family::ALL {
        assert!(
            SAMPLES.iter().any(|(_, word, ..)| *word == family.word()),
            "no sample of {family}"
        );
    }
}

#[test]
fn what_only_looks_like_a_crash_is_none() {
    for console in CLEAN {
        assert_eq!(scan(console.as_bytes()), None, "{console}");
    }
}

#[test]
fn the_first_crash_gives_the_name() {
    let console = "boot\nkernel BUG at a.c:1!\nRIP: 0010:first+0x1/0x2\nKernel panic - not syncing: Fatal exception\n";
    let crash = scan(console.as_bytes()).expect("a crash");
    assert_eq!(
        (crash.signature.as_str(), crash.line),
        ("kernel BUG in first", 2)
    );
    let console =
        "Out of memory: Killed process 1 (a)\nkernel BUG at a.c:1!\nRIP: 0010:first+0x1/0x2\n";
    let crash = scan(console.as_bytes()).expect("a crash");
    assert_eq!(
        (crash.signature.as_str(), crash.line),
        ("kernel BUG in first", 2)
    );
}

#[test]
fn threads_that_print_at_the_same_time_do_not_change_the_name() {
    let console = "[    1.0][   T7] WARNING: CPU: 1 PID: 7 at lib/refcount.c:28 refcount_warn_saturate+0x1/0x2\n\
                   [    1.1][   T8] Call Trace:\n[    1.1][   T8]  wrong+0x1/0x2\n\
                   [    1.2][   T7] Call Trace:\n[    1.2][   T7]  right+0x1/0x2\n";
    let crash = scan(console.as_bytes()).expect("a crash");
    assert_eq!(crash.signature, "WARNING: refcount bug in right");
}

#[test]
fn a_crash_is_settled_by_the_next_boot_or_by_its_limit() {
    let begin = b"kernel BUG at a.c:1!\nRIP: 0010:first+0x1/0x2\n";
    let mut scanner = Scanner::new();
    scanner.push(begin);
    assert_eq!(
        (scanner.begun(), scanner.found()),
        (Some(Family::Oops), None)
    );
    scanner.push(b"[    0.000000] Linux version 6.1.0\n");
    assert_eq!(
        scanner.found().map(|crash| crash.signature.as_str()),
        Some("kernel BUG in first")
    );

    let mut scanner = Scanner::new();
    scanner.push(b"kernel BUG at a.c:1!\n");
    scanner.push("noise\n".repeat(REPORT_LINES_MAX).as_bytes());
    scanner.push(b"RIP: 0010:late+0x1/0x2\n");
    assert_eq!(
        scanner.finish().map(|crash| crash.signature).as_deref(),
        Some("kernel BUG")
    );
}

#[test]
fn a_long_line_is_cut() {
    let mut console = vec![b'x'; LINE_BYTES_MAX];
    console.extend_from_slice(b" kernel BUG at a.c:1!\nplain\n");
    assert_eq!(scan(&console), None);
}
