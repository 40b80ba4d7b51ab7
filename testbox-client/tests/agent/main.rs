//! Tests of the agent with a fake scheduler: real processes, real HTTP, no fixed waits.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod containers;
mod ends;
mod fake;
mod hooks;
mod images;
mod inputs;
mod machines;
mod outputs;
mod program;
mod reports;
mod requests;
mod store;
mod survival;
mod testbox;
#[path = "../../src/testing.rs"]
mod testing;

use fairlead_testbox::{AgentConfig, AgentEvent, Kinds};
