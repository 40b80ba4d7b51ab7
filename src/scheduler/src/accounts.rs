//! Who asks, and what they may do.
//!
//! Tokens are 256 random bits, so a plain hash of them is stored; hashes are compared in constant time. With [`Access::Open`] names are taken as
//! given: who names an account acts for it alone, who names none is the operator of the machine.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError, RwLock},
};

use blake3::Hash;
use fairlead_api::{AccountChange, AccountView, ErrorCode, Limits};
use fairlead_store::{DocKind, DocWrite, Expect, JobStore, StoreError, Version};
use serde_json::{Value, json};

use crate::{
    Access,
    core::Core,
    fresh::Fresh,
    health_checks::HEALTH_CHECK,
    host_names::{self, HostNames},
    limits::{changed, limits_from},
    refusal::{Refusal, excerpt},
    roles::{Role, role_of},
    secrets::{new_token, token_hash},
};

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Who {
    /// The account's name; empty: the operator of an open replica.
    pub(crate) name: String,
    role: Role,
    /// Of a testbox: for which hosts it acts.
    hosts: HostNames,
    vip: bool,
    open: bool,
}

impl Who {
    fn open(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            role: Role::Admin,
            hosts: HostNames::all(),
            vip: true,
            open: true,
        }
    }

    /// The account of health checks that the site itself submits, into any queue.
    pub(crate) fn health_checks() -> Self {
        Self {
            name: HEALTH_CHECK.to_owned(),
            role: Role::User,
            hosts: HostNames::all(),
            vip: true,
            open: false,
        }
    }

    /// The name for people.
    pub(crate) fn shown(&self) -> &str {
        if self.name.is_empty() {
            "the operator"
        } else {
            &self.name
        }
    }

    /// Whether the account may do what admins do.
    pub(crate) fn is_admin(&self) -> bool {
        self.role == Role::Admin
    }

    /// Whether the account may use queue `vip`.
    pub(crate) fn may_use_vip(&self) -> bool {
        self.vip || self.role == Role::Admin
    }

    /// Whether the account may use every queue that is for some, `vip` aside. In the open each account keeps to its own.
    pub(crate) fn may_use_every_queue(&self) -> bool {
        !self.open && (self.is_admin() || self.name == HEALTH_CHECK)
    }

    /// Whether the account may act on jobs of `account`.
    pub(crate) fn may_act_for(&self, account: &str) -> bool {
        if self.open {
            self.name.is_empty() || self.name == account
        } else {
            self.is_admin() || (self.role != Role::Unknown && self.name == account)
        }
    }

    /// Refuses all but admins.
    pub(crate) fn require_admin(&self) -> Result<(), Refusal> {
        if self.is_admin() {
            return Ok(());
        }
        Err(Refusal::new(
            ErrorCode::Forbidden,
            format!("account '{}' is not an admin", self.name),
            "ask an admin, or use an admin's token",
        ))
    }

    /// Refuses all but testboxes and admins.
    pub(crate) fn require_testbox(&self) -> Result<(), Refusal> {
        if matches!(self.role, Role::Admin | Role::Testbox) {
            return Ok(());
        }
        Err(Refusal::new(
            ErrorCode::Forbidden,
            format!("account '{}' is not a testbox", self.name),
            "make one with: fairlead account add NAME --role testbox --hosts 'PATTERN'",
        ))
    }

    /// Whether the account may act for this host.
    pub(crate) fn may_be_host(&self, host: &str) -> bool {
        match self.role {
            Role::Admin => true,
            Role::Testbox => self.hosts.names(host),
            Role::User | Role::Unknown => false,
        }
    }

    /// Refuses all but admins and testboxes that name this host.
    pub(crate) fn require_host(&self, host: &str) -> Result<(), Refusal> {
        self.require_testbox()?;
        if self.may_be_host(host) {
            return Ok(());
        }
        let (name, shown) = (&self.name, excerpt(host));
        Err(Refusal::new(
            ErrorCode::Forbidden,
            format!("account '{name}' does not name host '{shown}'"),
            format!(
                "an admin names all its hosts: fairlead account add {name} --hosts 'PATTERN,PATTERN'"
            ),
        ))
    }
}

/// What a request says of its sender.
#[derive(Debug, Clone, Default)]
pub(crate) struct Credentials {
    /// From `Authorization: Bearer`, `my_token` or `token=`.
    pub(crate) token: Option<String>,
    /// From `my_account`.
    pub(crate) account: Option<String>,
}

/// An account as it is stored.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    hash: Option<Hash>,
    who: Who,
    limits: Limits,
}

impl Known {
    fn of(name: &str, body: &Value) -> Self {
        let hash = body.get("token_hash").and_then(Value::as_str);
        Self {
            hash: hash.and_then(|text| Hash::from_hex(text).ok()),
            who: who_of(name, body),
            limits: limits_from(body),
        }
    }
}

/// The accounts, as last read or written.
#[derive(Debug)]
pub(crate) struct Accounts {
    access: Access,
    known: Mutex<Fresh<Known>>,
    /// By hash of the token, made of `known`. Its places are chosen with a random key, and [`Hash`] compares in constant
    /// time: how long a look takes says nothing of what is stored.
    by_hash: RwLock<HashMap<Hash, Who>>,
    built_in: Option<(Hash, Who)>,
}

impl Accounts {
    /// With the built-in admin of the configuration, if it has one.
    pub(crate) fn new(access: Access, admin: Option<&(String, String)>) -> Self {
        let built_in = admin.map(|(name, token)| {
            (
                token_hash(token),
                Who {
                    name: name.clone(),
                    role: Role::Admin,
                    hosts: HostNames::all(),
                    vip: true,
                    open: false,
                },
            )
        });
        Self {
            access,
            known: Mutex::default(),
            by_hash: RwLock::default(),
            built_in,
        }
    }

    /// Reads all accounts anew.
    pub(crate) async fn reload(&self, store: &dyn JobStore) -> Result<(), StoreError> {
        let docs = store.list_docs(DocKind::Account).await?;
        let read = docs.into_iter().map(|doc| {
            let known = Known::of(&doc.id, &doc.body);
            (doc.id, doc.version, known)
        });
        self.update(|known| known.listed(read.collect()));
        Ok(())
    }

    /// The limits of one.
    pub(crate) fn limits_of(&self, account: &str) -> Limits {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .get(account)
            .map(|known| known.limits)
            .unwrap_or_default()
    }

    /// The limits of those that have any.
    pub(crate) fn limits(&self) -> BTreeMap<String, Limits> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let limits = known.iter().map(|(name, known)| (name, known.limits));
        let limits = limits.filter(|(_, limits)| !limits.is_none());
        limits
            .map(|(name, limits)| (name.clone(), limits))
            .collect()
    }

    /// Takes over what this replica wrote, at once.
    fn wrote(&self, written: &Written) {
        let known = Known::of(&written.view.my_account, &written.body);
        self.update(|all| all.wrote(&written.view.my_account, written.version, Some(known)));
    }

    fn update<R>(&self, work: impl FnOnce(&mut Fresh<Known>) -> R) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut known);
        let by_hash = known
            .iter()
            .filter_map(|(_, known)| Some((known.hash?, known.who.clone())));
        *self.by_hash.write().unwrap_or_else(PoisonError::into_inner) = by_hash.collect();
    }

    /// Who sent this.
    pub(crate) fn identify(&self, credentials: &Credentials) -> Result<Who, Refusal> {
        if self.access == Access::Open {
            return Ok(Who::open(
                credentials.account.as_deref().unwrap_or_default(),
            ));
        }
        let refuse = |message: &str| {
            Err(Refusal::new(
                ErrorCode::Unauthorized,
                message,
                "send 'Authorization: Bearer TOKEN' with a token from: fairlead account add NAME",
            ))
        };
        let Some(token) = &credentials.token else {
            return refuse("no token was sent");
        };
        let hash = token_hash(token);
        let built_in = self
            .built_in
            .as_ref()
            .filter(|(known, _)| *known == hash)
            .map(|(_, who)| who.clone());
        let stored = || {
            let by_hash = self.by_hash.read().unwrap_or_else(PoisonError::into_inner);
            by_hash.get(&hash).cloned()
        };
        let Some(who) = built_in.or_else(stored) else {
            return refuse("the token is not known");
        };
        if who.role == Role::Unknown {
            return Err(Refusal::new(
                ErrorCode::Forbidden,
                format!(
                    "account '{}' has a role that this replica does not know",
                    who.name
                ),
                "a newer version gave it: upgrade all replicas, or ask an admin for another role",
            ));
        }
        match &credentials.account {
            Some(account) if *account != who.name && !who.is_admin() => {
                refuse("the token belongs to another account than my_account says")
            }
            _ => Ok(who),
        }
    }

    /// Whether these are the credentials of somebody; in an open lab everybody's are.
    pub(crate) fn knows(&self, credentials: &Credentials) -> bool {
        let token = Credentials {
            token: credentials.token.clone(),
            account: None,
        };
        self.identify(&token).is_ok()
    }

    /// Who an account is, as it is now; for what it asked for before. `None`: there is no such account any more.
    pub(crate) fn named(&self, name: &str) -> Option<Who> {
        if self.access == Access::Open {
            return Some(Who::open(name));
        }
        let built_in = self.built_in.as_ref().map(|(_, who)| who);
        let built_in = built_in.filter(|who| who.name == name).cloned();
        let known = || {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.get(name).map(|known| known.who.clone())
        };
        built_in.or_else(known)
    }

    /// Says of each testbox account that names no hosts what that means.
    pub(crate) fn warn_of_unnamed_hosts(&self) {
        if !self.tokens_needed() {
            return;
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (account, Known { who, .. }) in known.iter() {
            if who.role == Role::Testbox && who.hosts.is_unsaid() {
                tracing::warn!(
                    account,
                    "this testbox account names no hosts, so its token is good for every host (hint: fairlead account add NAME --hosts 'PATTERN')"
                );
            }
        }
    }

    /// What is known of who asks, for itself.
    pub(crate) fn view_of(&self, who: &Who) -> AccountView {
        AccountView {
            my_account: who.name.clone(),
            role: who.role.as_str().to_owned(),
            vip: who.may_use_vip(),
            limits: self.limits_of(&who.name),
            ..AccountView::default()
        }
    }

    /// Whether tokens are needed.
    pub(crate) fn tokens_needed(&self) -> bool {
        self.access == Access::Tokens
    }
}

fn who_of(name: &str, body: &Value) -> Who {
    Who {
        name: name.to_owned(),
        role: Role::of(&role_of(body)),
        hosts: HostNames::of(body),
        vip: body.get("vip").and_then(Value::as_bool).unwrap_or(false),
        open: false,
    }
}

/// Checks an account's name: 1 to 128 bytes of what is safe in paths and tables.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), Refusal> {
    let good = |c: char| c.is_alphanumeric() || "._-@+~:".contains(c);
    if (1..=128).contains(&name.len()) && name.chars().all(good) && name != "." && name != ".." {
        return Ok(());
    }
    let shown = excerpt(name);
    Err(Refusal::new(
        ErrorCode::BadName,
        format!("{what}: '{shown}' is not a name"),
        "1 to 128 bytes of letters, digits and ._-@+~:",
    ))
}

/// An account that was just stored.
pub(crate) struct Written {
    /// For who asked.
    pub(crate) view: AccountView,
    version: Version,
    body: Value,
}

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
        let with_token = self.accounts.tokens_needed();
        if !with_token {
            refuse_rights(change)?;
        }
        let written = set_account(self.store.as_ref(), name, change, with_token).await?;
        self.accounts.wrote(&written);
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
