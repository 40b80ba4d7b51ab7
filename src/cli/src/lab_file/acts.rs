//! Reads the lab, and carries out what was planned, a request each.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use fairlead_api::{AccountView, Client};

use super::{
    difference::{Change, Request},
    plan::Present,
    read::WantedLab,
};
use crate::exit::Failure;

/// Destination of new accounts' tokens: shown, or written into this folder.
#[derive(Debug, Default)]
pub(crate) struct Tokens(pub(crate) Option<PathBuf>);

impl Tokens {
    fn path(&self, account: &str) -> Option<PathBuf> {
        Some(self.0.as_ref()?.join(format!("{account}.token")))
    }

    /// Fails if the tokens could not be written, before an account gets one.
    pub(crate) fn check(&self, changes: &[Change]) -> Result<(), Failure> {
        let Some(folder) = &self.0 else {
            return Ok(());
        };
        let hint = "create the folder, and move old token files away";
        if !folder.is_dir() {
            let message = format!("--tokens {}: there is no such folder", folder.display());
            return Err(Failure::usage(message, hint));
        }
        for change in changes.iter().filter(|change| change.is_new_account()) {
            let path = self.path(&change.name).filter(|path| path.exists());
            if let Some(path) = path {
                let message = format!("--tokens: {} exists", path.display());
                return Err(Failure::usage(message, hint));
            }
        }
        Ok(())
    }

    /// Stores or shows a new token. Returns the remark for people.
    fn keep(&self, account: &AccountView) -> Result<Option<String>, Failure> {
        let Some(token) = &account.my_token else {
            return Ok(None);
        };
        let Some(path) = self.path(&account.my_account) else {
            return Ok(Some(format!("token, shown only now: {token}")));
        };
        write_new(&path, token).map_err(|error| {
            let message = format!("cannot write {}: {error}", path.display());
            let hint = format!(
                "the token is lost; make a new one: fairlead account add {} --new-token",
                account.my_account
            );
            Failure::local(message, hint)
        })?;
        Ok(Some(format!("token in {}", path.display())))
    }
}

fn write_new(path: &Path, token: &str) -> io::Result<()> {
    let mut open = fs::OpenOptions::new();
    let mut file = open.write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{token}")?;
    file.sync_all()
}

impl Present {
    /// Reads the parts of the lab that the file's sections are compared with.
    pub(crate) async fn read(lab: &WantedLab, client: &Client) -> Result<Self, Failure> {
        let mut present = Self::default();
        if !lab.queues.is_empty() || lab.is_complete("queues").is_some() {
            present.queues = client.queues().await?;
        }
        if lab.has_accounts() {
            present.accounts = client.accounts().await?;
        }
        if lab.retention.is_some() {
            present.keep_months = client.retention().await?.keep_months;
        }
        if lab.rules.is_some() {
            present.rules = client.rules().await?.rules;
        }
        if lab.reuse.is_some() {
            present.reuse = client.reuse().await?;
        }
        if !lab.hosts.is_empty() {
            present.hosts = client.hosts(&[]).await?;
        }
        Ok(present)
    }
}

/// Carries out a change. Returns a remark for people, if there is one.
pub(crate) async fn carry_out(
    change: &Change,
    tokens: &Tokens,
    client: &Client,
) -> Result<Option<String>, Failure> {
    let name = change.name.as_str();
    match &change.request {
        Request::SetQueue(set) => client.set_queue(name, set).await?,
        Request::DeleteQueue => client.delete_queue(name).await?,
        Request::SetAccount(set) => {
            let account = client.set_account(name, set).await?;
            return tokens.keep(&account);
        }
        Request::DeleteAccount => client.delete_account(name).await?,
        Request::RegisterHost(body) => client.register_host(name, body).await?,
        Request::Cordon(close) => drop(client.cordon(name, close).await?),
        Request::Uncordon => drop(client.uncordon(name).await?),
        Request::SetRetention(change) => {
            client.set_retention(change).await?;
        }
        Request::SetRules(Some(rules)) => drop(client.set_rules(rules).await?),
        Request::SetRules(None) => {}
        Request::SetReuse(settings) => drop(client.set_reuse(settings).await?),
    }
    Ok(None)
}
