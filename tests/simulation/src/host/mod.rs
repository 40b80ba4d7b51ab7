//! Simulated testboxes: they drive the real agent's protocol with whatever replica they reach. They die, return with a
//! new session, and lose the connection.

mod agent;
mod client;
mod course;
mod journal;
mod machine;

pub(super) use machine::{Machine, live};

use fairlead_testbox::protocol::Failure;

use crate::net::Answer;

fn refusal(answer: &Answer) -> Failure {
    let code = answer.code();
    let text = code.map_or("", fairlead_api::ErrorCode::as_str);
    Failure::refused(answer.status, code, format!("{} {text}", answer.status))
}
