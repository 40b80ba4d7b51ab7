//! Prints how many megabytes of console the scanner reads in a second.
//!
//! `cargo run --release -p fairlead-crash --example throughput -- [FILE…]`
//!
//! It scans 64 MB of console without a crash, and each file as often as makes 64 MB. It asserts the result, never a time.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a measurement: it may panic, prints, and asks the clock"
)]

use std::{fmt::Write, time::Instant};

use fairlead_crash::{Crash, Scanner};

const BYTES: usize = 64 << 20;
const CHUNK_BYTES: usize = 64 << 10;

fn scan(console: &[u8]) -> Option<Crash> {
    let mut scanner = Scanner::new();
    for chunk in console.chunks(CHUNK_BYTES) {
        scanner.push(chunk);
    }
    scanner.finish()
}

/// Returns the console output of a machine that boots and works.
fn healthy() -> String {
    let mut console = String::new();
    for line in 0.. {
        let at = line / 100;
        let text = match line % 5 {
            0 => "usb 1-1: new high-speed USB device number 2 using xhci_hcd",
            1 => "EXT4-fs (sda1): mounted filesystem with ordered data mode. Quota mode: none.",
            2 => {
                "audit: type=1400 audit(1700000000.1:2): apparmor=\"STATUS\" operation=\"profile_load\""
            }
            3 => "IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready",
            _ => "systemd[1]: Started Journal Service.",
        };
        writeln!(
            console,
            "[{at:5}.{:06}][  T{}] {text}",
            line % 1_000_000,
            line % 400
        )
        .unwrap();
        if console.len() >= BYTES {
            break;
        }
    }
    console
}

fn main() {
    let console = healthy();
    let begun = Instant::now();
    assert_eq!(scan(console.as_bytes()), None);
    report("healthy console", console.len(), begun);
    let files: Vec<Vec<u8>> = std::env::args()
        .skip(1)
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    let total: usize = files.iter().map(Vec::len).sum();
    if total == 0 {
        return;
    }
    let rounds = BYTES.div_ceil(total);
    let begun = Instant::now();
    let mut crashes = 0;
    for _ in 0..rounds {
        crashes += files.iter().filter(|file| scan(file).is_some()).count();
    }
    assert!(crashes <= rounds * files.len());
    report("the files", rounds * total, begun);
}

fn report(what: &str, bytes: usize, begun: Instant) {
    let megabytes = bytes as f64 / 1e6;
    println!(
        "{what}: {:.0} MB/s",
        megabytes / begun.elapsed().as_secs_f64()
    );
}
