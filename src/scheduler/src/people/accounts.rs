//! Accounts: authentication, and the rights of each role.
//!
//! Tokens are 256 random bits, so a plain hash of them is stored. Hashes are compared in constant time.
//! [`Access::Open`] trusts names: a request with a name acts for that account, and a request without one comes from the
//! operator of the machine.

use fairlead_api::{AccountChange, AccountView};

use crate::people::PeopleFlow;
use fairlead_base::{
    errors::{PeopleError, Refusal, excerpt},
    host_names,
    names::check_name,
    roles::Role,
    sealing::{new_token, token_hash},
    storage::small_doc::{SmallDocs, Stored},
};
use fairlead_known::{
    account_doc::AccountDoc,
    account_notify::AccountNotify,
    accounts::Who,
    limits::changed,
    tokens::{OVERLAP_S, TokenChange},
};

/// Longest time for which a token stays good after a newer one was made, s: 30 days.
const OVERLAP_MAX_S: u64 = 30 * 86_400;
/// Shortest time for which a token is good, s: a minute.
const EXPIRES_MIN_S: u64 = 60;
/// Longest time for which a token is good that ends, s: ten years.
const EXPIRES_MAX_S: u64 = 3_650 * 86_400;
/// Accounts whose use of tokens is written in one round.
const USES_MAX: usize = 200;

/// Creates or changes an account in the store. Answers it for who asked, too. `with_token`: one that has none, or
/// `new_token`, gets a token, shown once. The one before it stays good for the overlap.
pub(crate) async fn set_account(
    docs: &SmallDocs,
    name: &str,
    change: &AccountChange,
    with_token: bool,
    now_ms: u64,
) -> Result<(AccountView, Stored<AccountDoc>), Refusal> {
    check_name("account", name)?;
    let of_tokens = token_change(change, now_ms)?;
    let token = new_token();
    let hash = token_hash(&token).to_hex().to_string();
    if change.role.is_some() {
        // Nothing of what cannot be read is worth keeping to who makes an account.
        docs.repair::<AccountDoc>(name, None).await?;
    }
    let next = async |present: Option<AccountDoc>| -> Result<AccountDoc, Refusal> {
        let mut doc = present.unwrap_or_default();
        if let Some(role) = &change.role {
            Role::check(role)?.clone_into(&mut doc.role);
        }
        doc.limits = changed(doc.limits, &change.limits)?;
        doc.vip = change.vip.unwrap_or(doc.vip);
        doc.share_results = change.share_results.unwrap_or(doc.share_results);
        if let Some(patterns) = &change.hosts {
            host_names::check(patterns, &doc.role)?;
            doc.hosts = Some(patterns.clone());
        }
        if let Some(patterns) = &change.groups {
            host_names::check(patterns, &doc.role)?;
            doc.groups = Some(patterns.clone());
        }
        // An open lab gives no tokens; who was named there first gets one here. An earlier try may have given it.
        let tokens = doc.tokens();
        let has_another = tokens.newest().is_some_and(|newest| *newest != hash);
        let gets_one = with_token && (!has_another || change.new_token);
        if let Some(expires_s) = change.expires_s.filter(|_| !gets_one) {
            return Err(PeopleError::NoNewToken(expires_s).into());
        }
        doc.set_tokens(if gets_one {
            tokens.with(&hash, of_tokens)
        } else {
            tokens.ended(of_tokens)
        });
        Ok(doc)
    };
    let stored = docs.change(name, next).await?;
    let is_given = stored.doc.token_hash.as_ref() == Some(&hash);
    let view = AccountView {
        my_token: is_given.then_some(token),
        ..view_of(name, &stored.doc)
    };
    Ok((view, stored))
}

/// What is asked of the tokens of an account.
fn token_change(change: &AccountChange, now_ms: u64) -> Result<TokenChange, PeopleError> {
    let ms = |what, given: Option<u64>, (min, max)| match given {
        Some(given) if !(min..=max).contains(&given) => Err(PeopleError::TokenTime {
            what,
            given,
            min,
            max,
        }),
        given => Ok(given.map(|s| s.saturating_mul(1_000))),
    };
    let unsaid = change.new_token.then_some(OVERLAP_S);
    let overlap_s = change.overlap_s.or(unsaid);
    Ok(TokenChange {
        now_ms,
        overlap_ms: ms("overlap_s", overlap_s, (0, OVERLAP_MAX_S))?,
        lives_ms: ms(
            "expires_s",
            change.expires_s,
            (EXPIRES_MIN_S, EXPIRES_MAX_S),
        )?,
    })
}

/// Refuses a change of more than limits.
fn refuse_rights(change: &AccountChange) -> Result<(), PeopleError> {
    let role = change
        .role
        .as_ref()
        .map(|role| format!("role: '{}'", excerpt(role)));
    let vip = change.vip.map(|vip| format!("vip: {vip}"));
    let shares = change
        .share_results
        .map(|shares| format!("share_results: {shares}"));
    let token = change.new_token.then(|| "new_token: true".to_owned());
    let overlap = change.overlap_s.map(|s| format!("overlap_s: {s}"));
    let expires = change.expires_s.map(|s| format!("expires_s: {s}"));
    let token = token.or(overlap).or(expires);
    let hosts = change
        .hosts
        .as_ref()
        .map(|hosts| format!("hosts: '{}'", excerpt(&hosts.join(","))));
    let groups = change
        .groups
        .as_ref()
        .map(|groups| format!("groups: '{}'", excerpt(&groups.join(","))));
    let Some(right) = role.or(hosts).or(groups).or(vip).or(shares).or(token) else {
        return Ok(());
    };
    Err(PeopleError::OpenLab(right))
}

impl PeopleFlow {
    /// Creates or changes an account. It acts at once. An open lab sets limits only: a role or a token would outlive it,
    /// whoever asked for it.
    pub(crate) async fn set_account(
        &self,
        name: &str,
        change: &AccountChange,
    ) -> Result<AccountView, Refusal> {
        let with_token = self.accounts.tokens_needed();
        if !with_token {
            refuse_rights(change)?;
        }
        let (view, stored) = set_account(
            &self.ctx.docs,
            name,
            change,
            with_token,
            self.ctx.clock.wall_ms(),
        )
        .await?;
        self.accounts.wrote(name, stored.version, stored.doc);
        self.tell_policy();
        Ok(view)
    }
}

impl PeopleFlow {
    /// Ends all logins of browsers of an account, also those of a copied cookie.
    pub(crate) async fn end_logins(&self, name: &str) -> Result<(), Refusal> {
        let since_ms = self.ctx.clock.wall_ms().saturating_add(1);
        let gone = || Refusal::from(PeopleError::UnknownAccount(name.to_owned()));
        let next = async |present: Option<AccountDoc>| -> Result<AccountDoc, Refusal> {
            Ok(AccountDoc {
                logins_since_ms: Some(since_ms),
                ..present.ok_or_else(gone)?
            })
        };
        match self.ctx.docs.change(name, next).await {
            Ok(stored) => self.accounts.wrote(name, stored.version, stored.doc),
            Err(Refusal::People(PeopleError::UnknownAccount(_))) => {
                self.accounts.end_built_in_logins(since_ms);
            }
            Err(refusal) => return Err(refusal),
        }
        Ok(())
    }

    /// Deletes an account: its token is good for nothing from then on, and its jobs go on. Nobody deletes the own one.
    pub(crate) async fn delete_account(&self, name: &str, who: &Who) -> Result<(), Refusal> {
        if who.name == name {
            return Err(PeopleError::OwnAccount(name.to_owned()).into());
        }
        let Some(version) = self.ctx.docs.delete::<AccountDoc>(name).await? else {
            return Err(PeopleError::UnknownAccount(name.to_owned()).into());
        };
        self.accounts.deleted(name, version);
        self.tell_policy();
        Ok(())
    }
}

impl PeopleFlow {
    /// All accounts, without tokens.
    pub(crate) async fn account_views(&self) -> Result<Vec<AccountView>, Refusal> {
        let accounts = &self.accounts;
        let known = self.ctx.docs.list::<AccountDoc>().await?;
        let views = known.iter().map(|(name, known)| AccountView {
            tokens: known
                .doc
                .tokens()
                .used(|token| accounts.used_ms(token))
                .views(),
            ..view_of(name, &known.doc)
        });
        Ok(views.collect())
    }

    /// Writes when tokens were used, of accounts of which that was written long ago.
    pub(crate) async fn write_token_use(&self) {
        let accounts = &self.accounts;
        for name in accounts.used_since_written().into_iter().take(USES_MAX) {
            let gone = || Refusal::from(PeopleError::UnknownAccount(name.clone()));
            let next = async |present: Option<AccountDoc>| -> Result<AccountDoc, Refusal> {
                let mut doc = present.ok_or_else(gone)?;
                doc.set_tokens(doc.tokens().used(|token| accounts.used_ms(token)));
                Ok(doc)
            };
            match self.ctx.docs.change(&name, next).await {
                Ok(stored) => accounts.wrote(&name, stored.version, stored.doc),
                Err(error) => {
                    tracing::debug!(account = name, %error, "the use of its tokens was not written");
                }
            }
        }
    }
}

/// An account for people, without its token.
fn view_of(name: &str, doc: &AccountDoc) -> AccountView {
    let who = Who::of(name, doc);
    let mut view = AccountView {
        my_account: name.to_owned(),
        role: doc.role.clone(),
        vip: doc.vip,
        share_results: doc.share_results,
        limits: doc.limits,
        notify: doc.notify.as_ref().map(AccountNotify::view),
        tokens: doc.tokens().views(),
        ..AccountView::default()
    };
    if who.role == Role::Testbox {
        view.hosts = who.hosts.shown();
        view.groups = doc.groups.clone().unwrap_or_default();
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
    use std::sync::Arc;

    use fairlead_store::{DocKind, DocWrite, Expect, JobStore};
    use serde_json::{Value, json};

    use super::*;
    use crate::{Access, Clock};
    use fairlead_base::metrics::Counters;
    use fairlead_known::accounts::{Accounts, Credentials};

    fn said(token: Option<&str>, account: Option<&str>) -> Credentials {
        Credentials {
            token: token.map(str::to_owned),
            account: account.map(str::to_owned),
            ..Credentials::default()
        }
    }

    #[test]
    fn an_open_replica_takes_names_as_given_and_keeps_accounts_apart() {
        let accounts = Accounts::new(Access::Open, None, Clock::system());
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
        let accounts = Accounts::new(Access::Tokens, Some(&admin), Clock::system());
        let refused = |token, account| accounts.identify(&said(token, account)).unwrap_err();
        assert_eq!(refused(None, Some("root")), PeopleError::NoToken);
        assert_eq!(refused(Some("guess"), None), PeopleError::UnknownToken);
        let who = accounts
            .identify(&said(Some("secret"), Some("user1")))
            .unwrap();
        assert!(who.may_act_for("user1"));
    }

    /// Small documents of a new store, and the store.
    fn docs(data: &tempfile::TempDir) -> (SmallDocs, Arc<dyn JobStore>) {
        let store = crate::testing::embedded(data);
        let docs = SmallDocs::new(Arc::clone(&store), None, Counters::default());
        (docs, store)
    }

    async fn put(store: &dyn JobStore, body: Value) {
        let write = DocWrite {
            id: "ann".to_owned(),
            expect: Expect::Any,
            body: Some(body),
        };
        store.put_docs(DocKind::Account, vec![write]).await;
    }

    #[tokio::test]
    async fn a_document_without_hosts_names_all_and_one_that_cannot_be_read_none() {
        let data = tempfile::tempdir().unwrap();
        let (docs, store) = docs(&data);
        let accounts = Accounts::new(Access::Tokens, None, Clock::system());
        for (hosts, names_x) in [
            (None, Some(true)),
            (Some(json!(["x", "y-*"])), Some(true)),
            (Some(json!(["y-*"])), Some(false)),
            (Some(json!("x")), None),
            (Some(json!(["x", 7])), None),
            (Some(Value::Null), None),
        ] {
            let mut body = json!({"role": "testbox"});
            if let Some(hosts) = hosts {
                body["hosts"] = hosts;
            }
            put(store.as_ref(), body.clone()).await;
            accounts.reload(&docs).await.unwrap();
            let named = accounts.named("ann").map(|who| who.may_be_host("x"));
            assert_eq!(named, names_x, "{body}");
        }
    }

    /// A newer version may have roles that mean less than a user's.
    #[tokio::test]
    async fn an_unknown_role_may_do_nothing_and_stays_what_it_is() {
        let data = tempfile::tempdir().unwrap();
        let (docs, store) = docs(&data);
        let body = json!({"role": "auditor", "token_hash": token_hash("t").to_hex().to_string()});
        put(store.as_ref(), body).await;
        let accounts = Accounts::new(Access::Tokens, None, Clock::system());
        accounts.reload(&docs).await.unwrap();
        let refused = accounts.identify(&said(Some("t"), None)).unwrap_err();
        assert_eq!(refused, PeopleError::NewRole("ann".to_owned()));
        assert!(!accounts.named("ann").unwrap().may_act_for("ann"));
        let change = AccountChange {
            vip: Some(true),
            ..AccountChange::default()
        };
        let (view, _) = set_account(&docs, "ann", &change, true, 1).await.unwrap();
        assert_eq!(view.role, "auditor");
    }

    #[tokio::test]
    async fn a_malformed_account_is_replaced_by_who_names_its_role() {
        let data = tempfile::tempdir().unwrap();
        let (docs, store) = docs(&data);
        put(store.as_ref(), json!({"vip": "very"})).await;
        let mut change = AccountChange {
            vip: Some(true),
            ..AccountChange::default()
        };
        let refused = set_account(&docs, "ann", &change, true, 1)
            .await
            .unwrap_err();
        assert!(refused.body().hint.contains("fairlead account add ann"));
        change.role = Some("user".to_owned());
        let (view, _) = set_account(&docs, "ann", &change, true, 1).await.unwrap();
        assert!(view.vip && view.my_token.is_some());
    }

    #[test]
    fn names_are_checked() {
        for bad in ["", "a/b", "a b", "x\0", "..", &"x".repeat(129)] {
            assert!(check_name("account", bad).is_err(), "{bad:?}");
        }
        assert!(check_name("account", "user1@example.org").is_ok());
    }
}
