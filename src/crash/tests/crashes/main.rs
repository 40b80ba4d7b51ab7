//! Crashes are found and named: in samples of every kind, in real logs, and whatever else a console says.

mod logs;
mod properties;
mod samples;
mod watches;

use fairlead_crash::{Crash, Scanner};

/// Returns the crash of a console that arrives in one piece.
fn scan(console: &[u8]) -> Option<Crash> {
    let mut scanner = Scanner::new();
    scanner.push(console);
    scanner.finish()
}
