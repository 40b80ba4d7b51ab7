//! The context of every command: its output, and the settings, resolved on first use.

use std::sync::Once;

use fairlead_api::client::Client;

use crate::{
    exit::Failure,
    output::Output,
    serving::Resolved,
    settings::{Environment, Flags, Settings},
};

/// State shared by the whole command.
pub(crate) struct Context {
    pub(crate) output: Output,
    pub(crate) env: Environment,
    pub(crate) flags: Flags,
    /// True if the result is for programs.
    pub(crate) json: bool,
    /// Settings of `fairlead serve`. Empty for other commands.
    pub(crate) serving: Vec<Resolved>,
    /// Guard by which remarks on settings are printed once.
    pub(crate) told: Once,
}

impl Context {
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        let settings = Settings::resolve(&self.flags, &self.env)?;
        self.told.call_once(|| {
            for remark in &settings.remarks {
                self.output.remark(&format!("note: {remark}"));
            }
        });
        Ok(settings)
    }

    /// Returns a client for the scheduler in the settings.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Ok(Client::new(self.settings()?.client_config())?)
    }

    /// Returns the account of an option, or the user's own account.
    pub(crate) async fn account_of(
        &self,
        said: Option<&String>,
        client: &Client,
    ) -> Result<Option<String>, Failure> {
        match said {
            Some(account) => Ok(Some(account.clone())),
            None => self.own_account(&self.settings()?, client).await,
        }
    }

    /// Returns the submitting account for jobs without one: from the settings, else the token's, else the user of this
    /// machine.
    pub(crate) async fn own_account(
        &self,
        settings: &Settings,
        client: &Client,
    ) -> Result<Option<String>, Failure> {
        let said = settings.account.value.clone();
        if settings.token.value.is_none() || !settings.account_is_assumed() {
            return Ok(said);
        }
        match client.whoami().await {
            Ok(account) if !account.my_account.is_empty() => Ok(Some(account.my_account)),
            // The lab is open, or an older scheduler does not report the account.
            Ok(_) => Ok(said),
            Err(error) if error.status() == Some(404) => Ok(said),
            Err(error) => Err(error.into()),
        }
    }

    /// Prints a value as JSON for programs, or as the text that `text` returns for people.
    pub(crate) fn print<T: serde::Serialize>(
        &self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        if self.json {
            self.output.json(value)?;
        } else {
            self.output.line(&text(value));
        }
        Ok(())
    }
}
