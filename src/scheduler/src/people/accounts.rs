//! Accounts: authentication, and the rights of each role.
//!
//! Tokens are 256 random bits, so a plain hash of them is stored. Hashes are compared in constant time.
//! [`Access::Open`] trusts names: a request with a name acts for that account, and a request without one comes from the
//! operator of the machine.

use fairlead_api::{AccountChange, AccountView, ErrorCode};
use fairlead_store::{DocKind, DocWrite, Expect, JobStore, Version};
use serde_json::{Value, json};

use crate::{
    base::{
        errors::{Refusal, excerpt},
        host_names,
        names::check_name,
        roles::{Role, role_of},
        sealing::{new_token, token_hash},
    },
    core::Core,
    known::{
        accounts::{Written, who_of},
        limits::{changed, limits_from},
    },
};

/// Creates or changes an account in the store. `with_token`: one that has none, or `new_token`, gets a token, shown once.
pub(crate) async fn set_account(
    store: &dyn JobStore,
    name: &str,
    change: &AccountChange,
    with_token: bool,
) -> Result<Written, Refusal> {
    check_name("account", name)?;
    let known = store.get_doc(DocKind::Account, name).await?;
    let before = known
        .as_ref()
        .map_or_else(|| json!({}), |doc| doc.body.clone());
    let role = match &change.role {
        Some(role) => Role::check(role)?.to_owned(),
        None => role_of(&before),
    };
    let limits = changed(limits_from(&before), &change.limits)?;
    let vip = change.vip.unwrap_or_else(|| who_of(name, &before).vip);
    // An open lab gives no tokens; who was named there first gets one here.
    let has_token = before.get("token_hash").is_some_and(Value::is_string);
    let token = (with_token && (!has_token || change.new_token)).then(new_token);
    let hash = match &token {
        Some(token) => Value::String(token_hash(token).to_hex().to_string()),
        None => before.get("token_hash").cloned().unwrap_or(Value::Null),
    };
    let mut body = before;
    if let Some(fields) = body.as_object_mut() {
        fields.insert("role".to_owned(), json!(role));
        fields.insert("vip".to_owned(), json!(vip));
        fields.insert("token_hash".to_owned(), hash);
        fields.insert("limits".to_owned(), json!(limits));
        if let Some(patterns) = &change.hosts {
            host_names::set(fields, patterns, &role)?;
        }
    }
    let expect = known.map_or(Expect::Absent, |doc| Expect::Version(doc.version));
    let write = DocWrite {
        id: name.to_owned(),
        expect,
        body: Some(body.clone()),
    };
    let outcome = store.put_docs(DocKind::Account, vec![write]).await.pop();
    let version = outcome.unwrap_or(Ok(Version::default()))?;
    let view = AccountView {
        my_token: token,
        ..view_of(name, &body)
    };
    Ok(Written {
        view,
        version,
        body,
    })
}

/// Refuses a change of more than limits.
fn refuse_rights(change: &AccountChange) -> Result<(), Refusal> {
    let role = change
        .role
        .as_ref()
        .map(|role| format!("role: '{}'", excerpt(role)));
    let vip = change.vip.map(|vip| format!("vip: {vip}"));
    let token = change.new_token.then(|| "new_token: true".to_owned());
    let hosts = change
        .hosts
        .as_ref()
        .map(|hosts| format!("hosts: '{}'", excerpt(&hosts.join(","))));
    let Some(right) = role.or(hosts).or(vip).or(token) else {
        return Ok(());
    };
    Err(Refusal::new(
        ErrorCode::Forbidden,
        format!("{right} cannot be set in an open lab, only limits can"),
        "start with --auth; make the first admin in the store: fairlead account add NAME --role admin --data DIR",
    ))
}

impl Core {
    /// Creates or changes an account. It acts at once. An open lab sets limits only: a role or a token would outlive it,
    /// whoever asked for it.
    pub(crate) async fn set_account(
        &self,
        name: &str,
        change: &AccountChange,
    ) -> Result<AccountView, Refusal> {
        let with_token = self.people.accounts.tokens_needed();
        if !with_token {
            refuse_rights(change)?;
        }
        let written = set_account(self.store.as_ref(), name, change, with_token).await?;
        self.people.accounts.wrote(&written);
        self.tell_policy();
        Ok(written.view)
    }
}

/// All accounts, without tokens.
pub(crate) async fn list_accounts(store: &dyn JobStore) -> Result<Vec<AccountView>, Refusal> {
    let docs = store.list_docs(DocKind::Account).await?;
    Ok(docs.iter().map(|doc| view_of(&doc.id, &doc.body)).collect())
}

/// An account for people, without its token.
fn view_of(name: &str, body: &Value) -> AccountView {
    let who = who_of(name, body);
    let mut view = AccountView {
        my_account: name.to_owned(),
        role: role_of(body),
        vip: who.vip,
        limits: limits_from(body),
        ..AccountView::default()
    };
    if who.role == Role::Testbox {
        view.hosts = who.hosts.shown();
        if who.hosts.is_unsaid() {
            view.hint = format!(
                "account '{name}' names no hosts, so its token is good for every host: fairlead account add {name} --hosts 'PATTERN,PATTERN'"
            );
        }
    }
    view
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Access,
        known::accounts::{Accounts, Credentials},
    };

    fn said(token: Option<&str>, account: Option<&str>) -> Credentials {
        Credentials {
            token: token.map(str::to_owned),
            account: account.map(str::to_owned),
        }
    }

    #[test]
    fn an_open_replica_takes_names_as_given_and_keeps_accounts_apart() {
        let accounts = Accounts::new(Access::Open, None);
        let user = accounts.identify(&said(None, Some("user1"))).unwrap();
        assert!(user.may_act_for("user1") && !user.may_act_for("user2"));
        assert!(
            accounts
                .identify(&said(None, None))
                .unwrap()
                .may_act_for("user2")
        );
    }

    #[test]
    fn a_replica_with_tokens_wants_the_right_one() {
        let admin = ("root".to_owned(), "secret".to_owned());
        let accounts = Accounts::new(Access::Tokens, Some(&admin));
        assert_eq!(
            accounts
                .identify(&said(None, Some("root")))
                .unwrap_err()
                .status,
            401
        );
        assert_eq!(
            accounts
                .identify(&said(Some("guess"), None))
                .unwrap_err()
                .status,
            401
        );
        let who = accounts
            .identify(&said(Some("secret"), Some("user1")))
            .unwrap();
        assert!(who.may_act_for("user1"));
    }

    /// A newer version may have roles that mean less than a user's.
    #[tokio::test]
    async fn an_unknown_role_may_do_nothing_and_stays_what_it_is() {
        let data = tempfile::tempdir().unwrap();
        let store = crate::testing::embedded(&data);
        let body = json!({"role": "auditor", "token_hash": token_hash("t").to_hex().to_string()});
        let write = DocWrite {
            id: "ann".to_owned(),
            expect: Expect::Any,
            body: Some(body),
        };
        store.put_docs(DocKind::Account, vec![write]).await;
        let accounts = Accounts::new(Access::Tokens, None);
        accounts.reload(store.as_ref()).await.unwrap();
        let refused = accounts.identify(&said(Some("t"), None)).unwrap_err();
        assert_eq!(refused.status, 403);
        assert!(!accounts.named("ann").unwrap().may_act_for("ann"));
        let change = AccountChange {
            vip: Some(true),
            ..AccountChange::default()
        };
        let written = set_account(store.as_ref(), "ann", &change, true)
            .await
            .ok()
            .unwrap();
        assert_eq!(written.view.role, "auditor");
    }

    #[test]
    fn names_are_checked() {
        for bad in ["", "a/b", "a b", "x\0", "..", &"x".repeat(129)] {
            assert!(check_name("account", bad).is_err(), "{bad:?}");
        }
        assert!(check_name("account", "user1@example.org").is_ok());
    }
}
