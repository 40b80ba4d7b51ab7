//! For whom a request about content speaks, and what they may read.

use fairlead_content::Digest;
use fairlead_store::JobState;

use crate::content::ContentFlow;
use fairlead_base::errors::{ContentFault, JobError, PeopleError, Refusal};
use fairlead_known::accounts::Who;

/// Whose content it is that an open lab's operator puts without a name.
const NOBODY: &str = "open";

/// For whom a request speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) account: String,
    /// Empty: a person asks.
    pub(crate) job_id: String,
    /// What the job has as its inputs.
    inputs: Vec<String>,
    /// Whether it is the content of all accounts.
    acts_for_all: bool,
    /// How the job has ended; `None`: it has not, or a person asks.
    ended: Option<JobError>,
}

impl Holder {
    /// An account.
    pub(crate) fn of_account(who: Who) -> Self {
        let acts_for_all = who.acts_for_all();
        let account = if who.name.is_empty() {
            NOBODY.to_owned()
        } else {
            who.name
        };
        Self {
            account,
            job_id: String::new(),
            inputs: Vec::new(),
            acts_for_all,
            ended: None,
        }
    }

    /// A job, by its token.
    pub(crate) fn of_job(state: &JobState) -> Self {
        Self {
            account: state.account.clone(),
            job_id: state.job_id.to_string(),
            inputs: state.inputs.clone(),
            acts_for_all: false,
            ended: state.stage.is_terminal().then_some(JobError::Ended {
                id: state.job_id,
                stage: state.stage,
                health: state.health,
            }),
        }
    }

    /// Why the job leaves nothing more.
    pub(crate) const fn ended(&self) -> Option<&JobError> {
        self.ended.as_ref()
    }

    /// Whether it is a person who may do everything.
    pub(crate) const fn acts_for_all(&self) -> bool {
        self.acts_for_all
    }

    /// The account whose content is meant: its own, or the one that it names. Refuses those of others.
    pub(crate) fn acts_for(&self, named: Option<&str>) -> Result<String, PeopleError> {
        match named.filter(|named| !named.is_empty()) {
            Some(named) if named != self.account && !self.acts_for_all => {
                Err(PeopleError::NotAdmin(self.account.clone()))
            }
            named => Ok(named.unwrap_or(&self.account).to_owned()),
        }
    }
}

impl ContentFlow {
    /// The account whose content is looked at. In an open lab everybody may look at all.
    pub(crate) fn looks_at(
        &self,
        holder: &Holder,
        named: Option<&str>,
    ) -> Result<String, PeopleError> {
        match named.filter(|named| !named.is_empty()) {
            Some(named) if !self.people.accounts.tokens_needed() => Ok(named.to_owned()),
            named => holder.acts_for(named),
        }
    }

    /// Refuses outputs that the account of their job has not put.
    pub(crate) async fn check_outputs(
        &self,
        state: &JobState,
        outputs: Digest,
    ) -> Result<(), Refusal> {
        let is_owned = self
            .ctx
            .content
            .owned(&state.account, outputs)
            .await?
            .is_some();
        if is_owned && self.ctx.content.about(outputs).await?.is_some() {
            return Ok(());
        }
        Err(JobError::NoOutputs(state.job_id).into())
    }

    /// Refuses whoever has nothing under this id as if there were nothing. In an open lab everybody has all, and a job has
    /// its inputs whatever its account gave up.
    pub(crate) async fn may_read_content(
        &self,
        holder: &Holder,
        id: Digest,
    ) -> Result<(), Refusal> {
        if !self.people.accounts.tokens_needed()
            || holder.acts_for_all
            || holder.inputs.contains(&id.to_string())
            || self.ctx.content.owned(&holder.account, id).await?.is_some()
        {
            return Ok(());
        }
        Err(ContentFault::Unknown(id).into())
    }
}
