//! Requests about timers.

use serde_json::Value;

use super::{call::Call, config::push, error::ClientError, transport::Client};
use crate::{Route, TimerList, TimerView};

/// Whose timer is meant, if not one's own.
fn of(account: Option<&str>) -> Vec<(&'static str, String)> {
    let mut query = Vec::new();
    push(&mut query, "account", account);
    query
}

impl Client {
    /// Submits a timer: a job with `timer`, its name, and `every` or `cron`.
    ///
    /// Never sent again once it may have been done: [`ClientError::OutcomeUnknown`].
    pub async fn submit_timer(&self, job: &Value) -> Result<TimerView, ClientError> {
        let call = Call::to(Route::SubmitTimer)?.json(job)?;
        self.run(&call.once()).await?.json()
    }

    /// A page of timers, one's own or another account's. `after`: the `next` of the page before.
    pub async fn timers(
        &self,
        account: Option<&str>,
        after: Option<&str>,
    ) -> Result<TimerList, ClientError> {
        let mut query = of(account);
        push(&mut query, "after", after);
        let call = Call::to(Route::Timers)?.query(query);
        self.run(&call).await?.json()
    }

    /// One timer, with its job.
    pub async fn timer(&self, name: &str, account: Option<&str>) -> Result<TimerView, ClientError> {
        let call = Call::to(Route::Timer { timer: name })?.query(of(account));
        self.run(&call).await?.json()
    }

    /// Changes a timer: what is said of its schedule, and its whole job if there is one in it.
    pub async fn update_timer(
        &self,
        name: &str,
        account: Option<&str>,
        change: &Value,
    ) -> Result<TimerView, ClientError> {
        let call = Call::to(Route::UpdateTimer { timer: name })?.query(of(account));
        self.run(&call.json(change)?).await?.json()
    }

    /// Lets no run of a timer begin.
    pub async fn pause_timer(
        &self,
        name: &str,
        account: Option<&str>,
    ) -> Result<TimerView, ClientError> {
        let call = Call::to(Route::PauseTimer { timer: name })?.query(of(account));
        self.run(&call).await?.json()
    }

    /// Lets a paused timer go on.
    pub async fn resume_timer(
        &self,
        name: &str,
        account: Option<&str>,
    ) -> Result<TimerView, ClientError> {
        let call = Call::to(Route::ResumeTimer { timer: name })?.query(of(account));
        self.run(&call).await?.json()
    }

    /// Deletes a timer; its runs go on.
    pub async fn delete_timer(&self, name: &str, account: Option<&str>) -> Result<(), ClientError> {
        let call = Call::to(Route::DeleteTimer { timer: name })?.query(of(account));
        self.run(&call).await?.checked().map(drop)
    }
}
