//! What all jobs of an agent share: its configuration, its session, its ways out.

use std::sync::{Arc, atomic::AtomicU32};

use fairlead_api::Client;
use parking_lot::Mutex;

use crate::{AgentConfig, event::Events, isolation::users::Users};

/// What all jobs of an agent share.
#[derive(Debug)]
pub(crate) struct Context {
    session: Mutex<String>,
    /// Memory that jobs may take now, MB, as the agent's loop last counted.
    pub(crate) free_mb: AtomicU32,
    pub(crate) config: AgentConfig,
    /// Which agent it is: its work folder and the boot of its machine.
    pub(crate) instance: String,
    /// The users of its jobs; `None`: the agent's own.
    pub(crate) users: Option<Arc<Users>>,
    pub(crate) client: Client,
    pub(crate) events: Events,
}

impl Context {
    pub(crate) fn new(
        config: AgentConfig,
        instance: String,
        users: Option<Users>,
        client: Client,
        events: Events,
    ) -> Self {
        Self {
            instance,
            users: users.map(Arc::new),
            session: Mutex::new(new_session()),
            free_mb: AtomicU32::new(0),
            config,
            client,
            events,
        }
    }

    /// How jobs are kept apart, as the scheduler is told.
    pub(crate) fn isolation(&self) -> &'static str {
        if self.users.is_some() {
            "users"
        } else {
            "none"
        }
    }

    /// The agent's session.
    pub(crate) fn session(&self) -> String {
        self.session.lock().clone()
    }

    /// Begins another session.
    pub(crate) fn begin_session(&self) {
        let mut session = self.session.lock();
        *session = new_session();
    }
}

/// Says when it began: a request of an earlier session that was long on its way is known as such.
fn new_session() -> String {
    uuid::Uuid::now_v7().to_string()
}
