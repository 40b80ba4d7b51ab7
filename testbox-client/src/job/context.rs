//! Context shared by all jobs of an agent: its configuration, its session, its channels.

use std::sync::Arc;

use fairlead_api::{AsJob, Client};
use fairlead_content::transfer::{LabRemote, TransferError};

use crate::{
    AgentConfig, cache::Cache, event::Events, executor::Executors, isolation::users::Users,
};

/// State that all jobs of an agent share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) config: AgentConfig,
    /// Users of its jobs. `None`: the agent's own.
    pub(crate) users: Option<Arc<Users>>,
    /// Executors of its jobs.
    pub(crate) executors: Executors,
    /// Cache of input files.
    pub(crate) cache: Arc<Cache>,
    pub(crate) client: Client,
    pub(crate) events: Events,
}

impl Context {
    /// Returns the lab's content storage, with the rights of a job.
    ///
    /// # Errors
    /// Fails if this machine cannot make HTTPS requests.
    pub(crate) fn content_for(
        &self,
        job_id: &str,
        attempt: u16,
        job_token: &str,
    ) -> Result<LabRemote, TransferError> {
        let job = AsJob {
            job_id: job_id.to_owned(),
            attempt,
            job_token: job_token.to_owned(),
        };
        LabRemote::new(self.client.clone(), Some(job))
    }
}
