//! What every command is given: where to write, and the settings, resolved when they are needed.

use fairlead_api::client::Client;

use crate::{
    exit::Failure,
    output::Output,
    settings::{Environment, Flags, Settings},
};

/// Shared by the whole command.
pub(crate) struct Context {
    pub(crate) output: Output,
    pub(crate) env: Environment,
    pub(crate) flags: Flags,
    /// Whether a program reads the result.
    pub(crate) json: bool,
}

impl Context {
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        Settings::resolve(&self.flags, &self.env)
    }

    /// A client for the scheduler that the settings name.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Ok(Client::new(self.settings()?.client_config())?)
    }

    /// Prints a value as JSON for programs, or what `text` makes of it for people.
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
