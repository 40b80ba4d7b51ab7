//! Receivers that accounts name for their jobs: set by the account or an admin, and stored sealed.
//!
//! A job gets the events of its account when it is submitted. Its receiver is read when a message is sent, so a new address
//! acts on jobs that wait or run, too.

use fairlead_api::{NotifyChange, NotifyView};
use fairlead_job::{NOTIFY, Notify, Spec};
use serde_json::{Value, json};

use crate::people::PeopleFlow;
use fairlead_base::{
    errors::{PeopleError, Refusal, SubmitError},
    names::check_name,
    sealing::NoKey,
    text::without_path,
};
use fairlead_known::{account_doc::AccountDoc, account_notify::AccountNotify, accounts::Who};

impl PeopleFlow {
    /// Who is told of the jobs of an account.
    pub(crate) async fn notify_view(
        &self,
        who: &Who,
        account: &str,
    ) -> Result<NotifyView, Refusal> {
        check_tells_of(who, account)?;
        let known = self.ctx.docs.read::<AccountDoc>(account).await?;
        let notify = known.and_then(|known| known.doc.notify);
        let nobody = || PeopleError::NoNotify(account.to_owned());
        Ok(notify.ok_or_else(nobody)?.view())
    }

    /// Sets who is told of the jobs that an account submits from now on.
    pub(crate) async fn set_notify(
        &self,
        who: &Who,
        account: &str,
        change: &NotifyChange,
    ) -> Result<NotifyView, Refusal> {
        check_name("account", account)?;
        check_tells_of(who, account)?;
        let said = as_a_job_says(change);
        let receiver = Notify::of(&said)?.own().ok_or(Refusal::Bug)?;
        let shown = without_path(&receiver.url);
        if self.ctx.config.webhooks_to.refuse(&receiver.url) {
            let (field, receiver) = (NOTIFY, shown);
            return Err(SubmitError::NoReceiver { field, receiver }.into());
        }
        let told = (receiver.on, receiver.kind.as_str(), shown);
        let notify = AccountNotify::seal(told, &said, account, &self.ctx.sealer).ok_or(NoKey)?;
        let view = notify.view();
        self.write_notify(account, Some(&notify)).await?;
        self.ctx
            .audit(&who.name, "account.notify", account, json!(view));
        Ok(view)
    }

    /// Lets nobody be told of the jobs of an account, also of those that wait or run.
    pub(crate) async fn forget_notify(&self, who: &Who, account: &str) -> Result<(), Refusal> {
        check_tells_of(who, account)?;
        let known = self.ctx.docs.read::<AccountDoc>(account).await?;
        if known.is_none_or(|known| known.doc.notify.is_none()) {
            return Ok(());
        }
        self.write_notify(account, None).await?;
        self.ctx
            .audit(&who.name, "account.notify", account, Value::Null);
        Ok(())
    }

    async fn write_notify(
        &self,
        account: &str,
        notify: Option<&AccountNotify>,
    ) -> Result<(), Refusal> {
        // An open lab knows accounts by their names alone.
        let must_be_known = self.accounts.tokens_needed();
        let next = async |present: Option<AccountDoc>| -> Result<AccountDoc, Refusal> {
            if present.is_none() && must_be_known {
                return Err(PeopleError::UnknownAccount(account.to_owned()).into());
            }
            Ok(AccountDoc {
                notify: notify.cloned(),
                ..present.unwrap_or_default()
            })
        };
        let stored = self.ctx.docs.change(account, next).await?;
        self.accounts.wrote(account, stored.version, stored.doc);
        Ok(())
    }
}

/// Refuses all but admins and the account itself.
fn check_tells_of(who: &Who, account: &str) -> Result<(), PeopleError> {
    if who.may_act_for(account) {
        return Ok(());
    }
    Err(PeopleError::OthersNotify {
        asker: who.name.clone(),
        account: account.to_owned(),
    })
}

/// The fields of a job that say the same.
fn as_a_job_says(change: &NotifyChange) -> Spec {
    let mut notify = json!({ "url": change.url });
    if !change.on.is_empty() {
        notify["on"] = json!(change.on);
    }
    if let Some(kind) = &change.kind {
        notify["kind"] = json!(kind);
    }
    let mut said = Spec::from_iter([(NOTIFY.to_owned(), notify)]);
    if let Some(secret) = &change.secret {
        said.insert("secrets".to_owned(), json!({ NOTIFY: secret }));
    }
    said
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        Access, Clock, Config,
        flows::Flows,
        testing::{embedded, flows_over},
    };
    use fairlead_known::accounts::Credentials;

    fn lab_in(data: &tempfile::TempDir, access: Access) -> Arc<Flows> {
        let config = Config {
            access,
            webhooks_to: "chat.example.com".parse().unwrap(),
            ..Config::embedded(data.path().to_owned())
        };
        flows_over(embedded(data), config, Clock::system())
    }

    fn change(url: &str) -> NotifyChange {
        NotifyChange {
            url: url.to_owned(),
            on: vec!["failed".to_owned(), "passed_again".to_owned()],
            ..NotifyChange::default()
        }
    }

    const URL: &str = "https://chat.example.com/hooks/T0KEN";

    #[tokio::test]
    async fn nobody_is_shown_more_of_an_address_than_its_host() {
        let data = tempfile::tempdir().unwrap();
        let flows = lab_in(&data, Access::Open);
        let said = Credentials {
            account: Some("ann".to_owned()),
            ..Credentials::default()
        };
        let ann = flows.people.accounts.identify(&said).unwrap();
        let view = flows
            .people
            .set_notify(&ann, "ann", &change(URL))
            .await
            .unwrap();
        assert_eq!(view.url, "https://chat.example.com/…");
        assert_eq!(view.on, ["failed", "passed_again"]);
        assert_eq!(flows.people.notify_view(&ann, "ann").await.unwrap(), view);
        let stored = flows
            .ctx
            .docs
            .read::<AccountDoc>("ann")
            .await
            .unwrap()
            .unwrap();
        let text = serde_json::to_string(&stored.doc).unwrap();
        assert!(!text.contains("T0KEN"), "{text}");
        let notify = stored.doc.notify.unwrap();
        let opened = notify.open("ann", &flows.ctx.sealer).unwrap();
        assert_eq!(opened[NOTIFY]["url"], URL);
        assert_eq!(notify.open("bob", &flows.ctx.sealer), None, "it is ann's");
        flows.people.forget_notify(&ann, "ann").await.unwrap();
        assert_eq!(flows.people.accounts.notify_of("ann"), None);
        let refused = flows.people.notify_view(&ann, "ann").await.unwrap_err();
        assert_eq!(refused.status(), 404);
    }

    #[tokio::test]
    async fn an_account_says_it_for_itself_and_an_admin_for_all_that_are_known() {
        let data = tempfile::tempdir().unwrap();
        let flows = lab_in(&data, Access::Tokens);
        let doc = AccountDoc::default();
        flows.ctx.docs.put("ann", None, Some(&doc)).await.unwrap();
        let (ann, bob) = (Who::of("ann", &doc), Who::of("bob", &doc));
        let admin = AccountDoc {
            role: "admin".to_owned(),
            ..AccountDoc::default()
        };
        let admin = Who::of("root", &admin);
        flows
            .people
            .set_notify(&ann, "ann", &change(URL))
            .await
            .unwrap();
        flows
            .people
            .set_notify(&admin, "ann", &change(URL))
            .await
            .unwrap();
        for (who, account, status) in [(&bob, "ann", 403), (&admin, "nobody", 404)] {
            let refused = flows.people.set_notify(who, account, &change(URL)).await;
            assert_eq!(refused.unwrap_err().status(), status, "{account}");
        }
        assert_eq!(
            flows
                .people
                .notify_view(&bob, "ann")
                .await
                .unwrap_err()
                .status(),
            403
        );
        assert_eq!(
            flows
                .people
                .forget_notify(&bob, "ann")
                .await
                .unwrap_err()
                .status(),
            403
        );
    }

    #[tokio::test]
    async fn a_receiver_that_would_never_be_told_is_refused() {
        let data = tempfile::tempdir().unwrap();
        let flows = lab_in(&data, Access::Open);
        let operator = flows
            .people
            .accounts
            .identify(&Credentials::default())
            .unwrap();
        let with = |more: fn(&mut NotifyChange)| {
            let mut change = change(URL);
            more(&mut change);
            change
        };
        for (change, word) in [
            (change("https://evil.example.com/T0KEN"), "does not allow"),
            (change("none"), "notify.url"),
            (with(|it| it.on = vec!["never".to_owned()]), "notify.on"),
            (with(|it| it.kind = Some("smoke".to_owned())), "notify.kind"),
            (
                with(|it| it.kind = Some("fairlead".to_owned())),
                "secrets.notify",
            ),
        ] {
            let refused = flows.people.set_notify(&operator, "ann", &change).await;
            let text = refused.unwrap_err().to_string();
            assert!(text.contains(word) && !text.contains("T0KEN"), "{text}");
        }
        assert_eq!(flows.people.accounts.notify_of("ann"), None);
    }
}
