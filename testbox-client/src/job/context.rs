//! Context shared by all jobs of an agent: its configuration, its session, its channels.

use std::sync::Arc;

use fairlead_api::Client;

use crate::{AgentConfig, event::Events, executor::Executors, isolation::users::Users};

/// What all jobs of an agent share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) config: AgentConfig,
    /// The users of its jobs; `None`: the agent's own.
    pub(crate) users: Option<Arc<Users>>,
    /// What its jobs can run in.
    pub(crate) executors: Executors,
    pub(crate) client: Client,
    pub(crate) events: Events,
}
