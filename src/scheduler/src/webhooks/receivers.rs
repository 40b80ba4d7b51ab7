//! Finds who is to be told: whom the job names, or its account.

use fairlead_job::{Callback, JobId, Notify, Spec, receiver_secret};

use crate::webhooks::WebhookFlow;
use fairlead_base::errors::Refusal;
use fairlead_known::{
    account_doc::AccountDoc,
    webhooks::{Field, Key},
};

/// Who is told.
pub(super) struct Receiver {
    pub(super) callback: Callback,
    /// The key of signatures, or the token that the receiver asks for; empty: none.
    pub(super) secret: String,
}

/// Why nobody can be told.
pub(super) enum NoReceiver {
    /// Somebody should see to it; it may be better later.
    Problem(String),
    /// Nobody wants to be told any more.
    Gone(String),
}

impl WebhookFlow {
    /// The receiver of a webhook; the inner error says why there is none.
    pub(super) async fn receiver_of(
        &self,
        key: Key,
        account: &str,
    ) -> Result<Result<Receiver, NoReceiver>, Refusal> {
        let spec = match self.opened_body(key.job).await? {
            Ok(spec) => spec,
            Err(problem) => return Ok(Err(NoReceiver::Problem(problem))),
        };
        let said = match key.field {
            Field::Callback => Callback::of(&spec),
            Field::Notify => match Notify::of(&spec) {
                Ok(Notify::AsAccount) => return self.receiver_of_account(account).await,
                said => said.map(Notify::own),
            },
        };
        Ok(receiver(said, &spec, key.field))
    }

    /// The body of a job with its secrets; the inner error says why it cannot be read.
    async fn opened_body(&self, job: JobId) -> Result<Result<Spec, String>, Refusal> {
        let Some(mut spec) = self.ctx.store.get_bodies(&[job]).await?.pop().flatten() else {
            return Ok(Err("the body of its job is not in the store".to_owned()));
        };
        if self.ctx.sealer.open_secrets(&mut spec).is_err() {
            return Ok(Err(NO_KEY.to_owned()));
        }
        Ok(Ok(spec))
    }

    async fn receiver_of_account(
        &self,
        account: &str,
    ) -> Result<Result<Receiver, NoReceiver>, Refusal> {
        let known = self.ctx.docs.read::<AccountDoc>(account).await?;
        let Some(notify) = known.and_then(|known| known.doc.notify) else {
            let gone = "its account lets nobody be told any more".to_owned();
            return Ok(Err(NoReceiver::Gone(gone)));
        };
        let Some(spec) = notify.open(account, &self.ctx.sealer) else {
            return Ok(Err(NoReceiver::Problem(NO_KEY.to_owned())));
        };
        let said = Notify::of(&spec).map(Notify::own);
        Ok(receiver(said, &spec, Field::Notify))
    }
}

const NO_KEY: &str = "its secret cannot be opened: this lab does not have the key";

fn receiver(
    said: Result<Option<Callback>, fairlead_job::FieldError>,
    spec: &Spec,
    field: Field,
) -> Result<Receiver, NoReceiver> {
    match said {
        Ok(Some(callback)) => Ok(Receiver {
            callback,
            secret: receiver_secret(spec, field.as_str()).to_owned(),
        }),
        Ok(None) => Err(NoReceiver::Problem("its job names no receiver".to_owned())),
        Err(error) => Err(NoReceiver::Problem(error.to_string())),
    }
}
