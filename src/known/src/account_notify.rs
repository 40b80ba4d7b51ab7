//! The receiver that an account names for its jobs, sealed.

use fairlead_api::NotifyView;
use fairlead_job::{CallbackEvents, Spec};
use serde::{Deserialize, Serialize};

use fairlead_base::sealing::Sealer;

/// Who is told of the jobs of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountNotify {
    pub on: CallbackEvents,
    /// In which words, for people.
    pub kind: String,
    /// The address for people: no more of it than its host.
    pub shown: String,
    /// The receiver and its secret, as a job says them.
    sealed: String,
}

impl AccountNotify {
    /// Seals what a job would say. `None`: the lab has no key.
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

    /// What a job would say. `None`: it was sealed with a key that this lab does not have, or for another account.
    pub fn open(&self, account: &str, sealer: &Sealer) -> Option<Spec> {
        let text = sealer.open_text(&Self::purpose(account), &self.sealed)?;
        serde_json::from_str(&text).ok()
    }

    /// What its text is sealed for.
    pub fn purpose(account: &str) -> String {
        format!("notify/{account}")
    }

    /// For people.
    pub fn view(&self) -> NotifyView {
        NotifyView {
            url: self.shown.clone(),
            on: self.on.words().into_iter().map(str::to_owned).collect(),
            kind: self.kind.clone(),
        }
    }
}
