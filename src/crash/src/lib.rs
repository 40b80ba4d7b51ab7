//! Recognizes kernel crashes in console text, and names them: equal crashes get equal signatures.
//!
//! ```
//! let mut scanner = fairlead_crash::Scanner::new();
//! scanner.push(b"[    9.1] Kernel panic - not syncing: Attempted to kill init! exitcode=0x0b\n");
//! let crash = scanner.finish().unwrap();
//! assert_eq!(crash.signature, "kernel panic: Attempted to kill init!");
//! assert_eq!((crash.family.word(), crash.class.word(), crash.line), ("panic", "DoS", 1));
//! ```

mod class;
mod culprit;
mod lines;
mod message;
mod names;
mod report;
mod rules;
mod scanner;
mod trace;
mod watch;

pub use class::{Class, Family};
pub use lines::LINE_BYTES_MAX;
pub use scanner::{Crash, REPORT_LINES_MAX, Scanner};
pub use watch::{LOOP_BOOTS, Seen, Watch};
