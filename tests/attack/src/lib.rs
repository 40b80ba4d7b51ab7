//! Attack tools: what a stranger, a hostile account or a broken client sends to a real scheduler.
//!
//! Every tool is bounded in count and time and speaks to loopback only. The tests in `tests/attack` use
//! them; each test names the promise that the attack must not break.

#![expect(
    clippy::missing_panics_doc,
    reason = "a test's harness fails by panicking, everywhere"
)]

pub mod browser;
pub mod memory;
pub mod names;
pub mod page;
pub mod post;
pub mod silent;
pub mod unread;

pub use browser::Browser;
pub use page::Site;
pub use unread::Unread;
