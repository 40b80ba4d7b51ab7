//! The receiver that an account names for its jobs, sealed.

use fairlead_api::NotifyView;
use fairlead_job::{CallbackEvents, Spec};
use serde::{Deserialize, Serialize};

use fairlead_base::sealing::Sealer;

/// Receiver of messages about the jobs of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountNotify {
    pub on: CallbackEvents,
    /// Kind of the receiver, for people. It decides the format of the messages.
    pub kind: String,
    /// Address for people. It shows only the host.
    pub shown: String,
    /// Receiver and its secret, in the form of a job field, sealed.
    sealed: String,
}

impl AccountNotify {
    /// Seals the receiver as a job names it. `None`: the lab has no key.
    pub fn seal(
        (on, kind, shown): (CallbackEvents, &str, String),
        said: &Spec,
        account: &str,
        sealer: &Sealer,
    ) -> Option<Self> {
        let text = serde_json::to_string(said).ok()?;
        Some(Self {
            on,
            kind: kind.to_owned(),
            shown,
            sealed: sealer.seal_text(&Self::purpose(account), &text)?,
        })
    }

    /// Returns the receiver as a job names it. `None`: it was sealed with an unknown key, or for another account.
    pub fn open(&self, account: &str, sealer: &Sealer) -> Option<Spec> {
        let text = sealer.open_text(&Self::purpose(account), &self.sealed)?;
        serde_json::from_str(&text).ok()
    }

    /// Returns the purpose with which the receiver of this account is sealed.
    pub fn purpose(account: &str) -> String {
        format!("notify/{account}")
    }

    /// Returns the view for people.
    pub fn view(&self) -> NotifyView {
        NotifyView {
            url: self.shown.clone(),
            on: self.on.words().into_iter().map(str::to_owned).collect(),
            kind: self.kind.clone(),
        }
    }
}
