//! Requests about the site: health, version, queues, hosts, accounts.

use serde_json::{Map, Value};

use super::{call::Call, error::ClientError, transport::Client};
use crate::{
    AccountChange, AccountView, HealthView, HostClose, HostReserve, HostReset, HostView,
    NotifyChange, NotifyView, QueueChange, QueueView, RetentionChange, RetentionView,
    ReuseSettings, Route, SubmitRules, UnknownMachine, Version,
};

impl Client {
    /// Version and capabilities of a replica.
    pub async fn version(&self) -> Result<Version, ClientError> {
        self.run(&Call::to(Route::Version)?).await?.json()
    }

    /// How the scheduler is; also when it is not well.
    pub async fn health(&self) -> Result<HealthView, ClientError> {
        let mut call = Call::to(Route::Health)?;
        call.accepts_json = true;
        self.run(&call).await?.json_of_any_status()
    }

    /// All queues with work or a policy of their own.
    pub async fn queues(&self) -> Result<Vec<QueueView>, ClientError> {
        let call = Call::to(Route::Queues)?;
        self.run(&call).await?.json_list("queues")
    }

    /// Changes a queue's policy: only what is given changes.
    pub async fn set_queue(&self, name: &str, change: &QueueChange) -> Result<(), ClientError> {
        let call = Call::to(Route::SetQueue { name })?.json(change)?;
        self.run(&call).await?.checked().map(drop)
    }

    /// Gives a queue the default policy again.
    pub async fn delete_queue(&self, name: &str) -> Result<(), ClientError> {
        let call = Call::to(Route::DeleteQueue { name })?;
        self.run(&call).await?.checked().map(drop)
    }

    /// For how long jobs are kept.
    pub async fn retention(&self) -> Result<RetentionView, ClientError> {
        self.run(&Call::to(Route::Retention)?).await?.json()
    }

    /// Sets for how long jobs are kept.
    pub async fn set_retention(
        &self,
        change: &RetentionChange,
    ) -> Result<RetentionView, ClientError> {
        let call = Call::to(Route::SetRetention)?.json(change)?;
        self.run(&call).await?.json()
    }

    /// How the lab reuses results.
    pub async fn reuse(&self) -> Result<ReuseSettings, ClientError> {
        self.run(&Call::to(Route::ReuseRules)?).await?.json()
    }

    /// Replaces how the lab reuses results.
    pub async fn set_reuse(&self, settings: &ReuseSettings) -> Result<ReuseSettings, ClientError> {
        let call = Call::to(Route::SetReuseRules)?.json(settings)?;
        self.run(&call).await?.json()
    }

    /// The submit rules.
    pub async fn rules(&self) -> Result<SubmitRules, ClientError> {
        self.run(&Call::to(Route::Rules)?).await?.json()
    }

    /// Replaces all submit rules.
    pub async fn set_rules(&self, rules: &SubmitRules) -> Result<SubmitRules, ClientError> {
        let call = Call::to(Route::SetRules)?.json(rules)?;
        self.run(&call).await?.json()
    }

    /// Hosts that have all of these tags, also those of their facts; without tags all hosts. Reads page after page.
    pub async fn hosts(&self, tags: &[String]) -> Result<Vec<HostView>, ClientError> {
        let mut hosts: Vec<HostView> = Vec::new();
        loop {
            let mut query = Vec::new();
            if !tags.is_empty() {
                query.push(("tags", tags.join(",")));
            }
            if let Some(last) = hosts.last() {
                query.push(("after", last.hostname.clone()));
            }
            let call = Call::to(Route::Hosts)?.query(query);
            let reply = self.run(&call).await?;
            let is_part = reply.is_part;
            let page = reply.json_list("hosts")?;
            let is_over = !is_part || page.is_empty();
            hosts.extend(page);
            if is_over {
                return Ok(hosts);
            }
        }
    }

    /// Registers a host, or updates what is registered of it. `body` is host JSON, ours or compass-ci's.
    pub async fn register_host(
        &self,
        hostname: &str,
        body: &Map<String, Value>,
    ) -> Result<(), ClientError> {
        let call = Call::to(Route::RegisterHost { hostname })?.json(body)?;
        self.run(&call).await?.checked().map(drop)
    }

    /// Machines that asked the replica what to boot and are not registered.
    pub async fn unknown_machines(&self) -> Result<Vec<UnknownMachine>, ClientError> {
        let call = Call::to(Route::UnknownMachines)?;
        self.run(&call).await?.json_list("machines")
    }

    /// One host, and why it is idle.
    pub async fn host(&self, hostname: &str) -> Result<HostView, ClientError> {
        let call = Call::to(Route::Host { hostname })?;
        self.run(&call).await?.json()
    }

    /// Gives a host no new job.
    pub async fn cordon(&self, hostname: &str, close: &HostClose) -> Result<HostView, ClientError> {
        let call = Call::to(Route::Cordon { hostname })?.json(close)?;
        self.run(&call).await?.json()
    }

    /// Gives a closed host jobs again.
    pub async fn uncordon(&self, hostname: &str) -> Result<HostView, ClientError> {
        let call = Call::to(Route::Uncordon { hostname })?;
        self.run(&call).await?.json()
    }

    /// Keeps a host for some accounts.
    pub async fn reserve(
        &self,
        hostname: &str,
        asked: &HostReserve,
    ) -> Result<HostView, ClientError> {
        let call = Call::to(Route::Reserve { hostname })?.json(asked)?;
        self.run(&call).await?.json()
    }

    /// Gives a reserved host back to everybody.
    pub async fn unreserve(&self, hostname: &str) -> Result<HostView, ClientError> {
        let call = Call::to(Route::Unreserve { hostname })?;
        self.run(&call).await?.json()
    }

    /// Forgets a host that is gone.
    pub async fn forget_host(&self, host: &str) -> Result<(), ClientError> {
        let call = Call::to(Route::ForgetHost { hostname: host })?;
        self.run(&call).await?.checked().map(drop)
    }

    /// Deletes an account. Its jobs go on.
    pub async fn delete_account(&self, name: &str) -> Result<(), ClientError> {
        let call = Call::to(Route::DeleteAccount { my_account: name })?;
        self.run(&call).await?.checked().map(drop)
    }

    /// Repairs malformed documents of a host.
    pub async fn reset_host(&self, hostname: &str) -> Result<HostReset, ClientError> {
        let call = Call::to(Route::ResetHost { hostname })?;
        self.run(&call).await?.json()
    }

    /// The account that this client's token is of; without a name in an open lab.
    pub async fn whoami(&self) -> Result<AccountView, ClientError> {
        self.run(&Call::to(Route::Whoami)?).await?.json()
    }

    /// All accounts.
    pub async fn accounts(&self) -> Result<Vec<AccountView>, ClientError> {
        let call = Call::to(Route::Accounts)?;
        self.run(&call).await?.json_list("accounts")
    }

    /// Who is told of the jobs of an account that do not say so themselves.
    ///
    /// # Errors
    /// `not_found` also when nobody is.
    pub async fn notify(&self, account: &str) -> Result<NotifyView, ClientError> {
        let call = Call::to(Route::Notify {
            my_account: account,
        })?;
        self.run(&call).await?.json()
    }

    /// Sets who is told.
    pub async fn set_notify(
        &self,
        account: &str,
        change: &NotifyChange,
    ) -> Result<NotifyView, ClientError> {
        let call = Call::to(Route::SetNotify {
            my_account: account,
        })?;
        self.run(&call.json(change)?).await?.json()
    }

    /// Lets nobody be told.
    pub async fn forget_notify(&self, account: &str) -> Result<(), ClientError> {
        let call = Call::to(Route::ForgetNotify {
            my_account: account,
        })?;
        self.run(&call).await?.checked().map(drop)
    }

    /// Creates or changes an account. A new token is in the answer, once; so it is never sent again
    /// once it may have been done.
    pub async fn set_account(
        &self,
        name: &str,
        change: &AccountChange,
    ) -> Result<AccountView, ClientError> {
        let call = Call::to(Route::SetAccount { my_account: name })?.json(change)?;
        self.run(&call.once()).await?.json()
    }
}
