//! Tests of watches: crashes that end a job, crashes that are only noted, and the names of panics.

use fairlead_crash::{Crash, Family, LOOP_BOOTS, REPORT_LINES_MAX, Seen, Watch};

const WARNING: &str = "[    5.0] WARNING: CPU: 1 PID: 77 at drivers/frob.c:12 frob_check+0x1/0x2\n";
const OOPS: &str = "[    7.0] BUG: kernel NULL pointer dereference, address: 0000000000000008\n\
                    [    7.1] RIP: 0010:frob_get+0x1/0x2\n";
const FATAL: &str = "[    7.9] Kernel panic - not syncing: Fatal exception\n";
const BOOT: &str = "[    0.000000] Linux version 6.1.0 (builder@lab)\n";
const RESTART: &str = "[    9.0] reboot: Restarting system\n";

fn watched(end: &[Family], note: &[Family], console: &str) -> Seen {
    let mut watch = Watch::new(end, note);
    watch.push(console.as_bytes());
    watch.finish()
}

/// Returns family, signature and line.
fn told(crash: Option<&Crash>) -> Option<(&str, &str, u64)> {
    crash.map(|crash| (crash.family.word(), crash.signature.as_str(), crash.line))
}

#[test]
fn only_the_named_families_end_a_job_or_are_noted() {
    let console = format!("{WARNING}{OOPS}{FATAL}");
    let seen = watched(&[Family::Oops], &[Family::Warning], &console);
    let oops = "BUG: unable to handle kernel NULL pointer dereference in frob_get";
    assert_eq!(told(seen.ended.as_ref()), Some(("oops", oops, 2)));
    let warning = Some(("warning", "WARNING in frob_check", 1));
    assert_eq!(told(seen.noted.as_ref()), warning);
    let seen = watched(&[], &[Family::Lockup], &console);
    assert_eq!(seen, Seen::default());
    let both = [Family::Warning];
    let seen = watched(&both, &both, WARNING);
    assert_eq!((told(seen.ended.as_ref()), seen.noted), (warning, None));
    let killed = "Out of memory: Killed process 77 (test) total-vm:4kB\n";
    let seen = watched(&[Family::Oom], &[], killed);
    assert_eq!(told(seen.ended.as_ref()), Some(("oom", "out of memory", 1)));
}

#[test]
fn the_first_line_tells_that_a_job_ends() {
    let mut watch = Watch::new(&[Family::Panic], &[]);
    watch.push(OOPS.as_bytes());
    assert_eq!(watch.ends(), None);
    watch.push(FATAL.trim_end().as_bytes());
    assert_eq!(watch.ends(), None, "the line may go on");
    watch.push(b"\n");
    assert_eq!(watch.ends(), Some(Family::Panic));
}

#[test]
fn a_panic_has_the_name_of_the_crash_that_it_is_a_consequence_of() {
    let panic = |console: &str| {
        let seen = watched(&[Family::Panic], &[], console);
        let ended = seen.ended.expect("a panic");
        assert_eq!(ended.family, Family::Panic);
        (ended.signature, ended.line)
    };
    let oops = "BUG: unable to handle kernel NULL pointer dereference in frob_get";
    let of_oops = |line| (oops.to_owned(), line);
    let fatal = |line| ("kernel panic: Fatal exception".to_owned(), line);
    assert_eq!(panic(&format!("{OOPS}{FATAL}")), of_oops(1));
    // The graver crash is the cause. A panic with its own reason keeps its own name.
    assert_eq!(panic(&format!("{WARNING}{OOPS}{FATAL}")), of_oops(2));
    let own = "[    8.0] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\n";
    let (name, line) = panic(&format!("{OOPS}{own}"));
    assert!(name.starts_with("kernel panic: VFS: Unable"), "{name}");
    assert_eq!(line, 3);
    // A crash that is long ago, or of an earlier boot, is not the cause either.
    let noise = "[    8.0] noise\n".repeat(REPORT_LINES_MAX);
    let lines = REPORT_LINES_MAX as u64;
    assert_eq!(panic(&format!("{OOPS}{noise}{FATAL}")), fatal(lines + 3));
    let booted = format!("{OOPS}{RESTART}{BOOT}{FATAL}");
    assert_eq!(panic(&booted), fatal(5));
}

/// Checks that the cause of a panic does not matter: the kernel stopped, even if the reason is a lockup.
#[test]
fn every_panic_ends_a_job_that_ends_at_panics() {
    let hung = "[  250.0] INFO: task test:77 blocked for more than 143 seconds.\n\
                [  250.1] task:test state:D stack:0\n\
                [  250.2] Call Trace:\n[  250.3]  schedule+0x1/0x2\n[  250.4]  frob_close+0x1/0x2\n\
                [  250.5] Kernel panic - not syncing: hung_task: blocked tasks\n";
    let seen = watched(&[Family::Panic], &[], hung);
    let named = Some(("panic", "INFO: task hung in frob_close", 1));
    assert_eq!(told(seen.ended.as_ref()), named);
    // The kernel boots without a message about the restart.
    let seen = watched(&[Family::Panic], &[], &format!("{OOPS}{BOOT}"));
    let oops = "BUG: unable to handle kernel NULL pointer dereference in frob_get";
    assert_eq!(told(seen.ended.as_ref()), Some(("panic", oops, 1)));
    let seen = watched(&[Family::Panic], &[], &format!("{WARNING}{BOOT}"));
    let reboot = Some(("panic", "unexpected kernel reboot", 2));
    assert_eq!(told(seen.ended.as_ref()), reboot);
}

#[test]
fn boots_of_one_kernel_without_end_are_noted() {
    let boots = |count: u32| format!("{BOOT}{RESTART}").repeat(count as usize);
    assert_eq!(
        watched(&[Family::Panic], &[], &boots(LOOP_BOOTS - 1)),
        Seen::default()
    );
    let seen = watched(&[Family::Panic], &[], &boots(LOOP_BOOTS));
    assert_eq!(seen.ended, None);
    let noted = seen.noted.expect("a boot loop");
    assert_eq!((noted.class.word(), noted.line), ("boot_loop", 5));
    let other = BOOT.replace("6.1.0", "6.2.0");
    let kernels = format!("{BOOT}{RESTART}{other}{RESTART}").repeat(4);
    assert_eq!(watched(&[Family::Panic], &[], &kernels), Seen::default());
}
