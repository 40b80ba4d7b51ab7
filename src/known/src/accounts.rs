//! Accounts and their tokens, as last read.

use std::{
    collections::{BTreeMap, HashMap},
    sync::atomic::{AtomicU64, Ordering},
};

use blake3::Hash;
use fairlead_api::{AccountView, Limits};
use fairlead_job::CallbackEvents;
use fairlead_store::{JobState, StoreError, Version};
use parking_lot::{Mutex, RwLock};

use crate::{account_doc::AccountDoc, account_notify::AccountNotify, tokens::GoodToken};
use fairlead_base::{
    Access, Clock,
    errors::{JobError, PeopleError, excerpt},
    host_names::HostNames,
    names::HEALTH_CHECK,
    roles::Role,
    sealing::token_hash,
    storage::{doc_cache::DocCache, small_doc::SmallDocs},
};

/// Account that sends a request, with its rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// Name of the account. Empty: the operator of an open replica.
    pub name: String,
    pub role: Role,
    /// Hosts that a testbox account may act for.
    pub hosts: HostNames,
    /// Groups that the hosts of a testbox account may be in.
    pub groups: HostNames,
    pub vip: bool,
    open: bool,
}

impl Who {
    /// Returns the account of this name with the rights of its document.
    pub fn of(name: &str, doc: &AccountDoc) -> Self {
        Self {
            name: name.to_owned(),
            role: Role::of(&doc.role),
            hosts: HostNames::of(doc.hosts.as_deref()),
            groups: HostNames::of(doc.groups.as_deref()),
            vip: doc.vip,
            open: false,
        }
    }

    fn open(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            role: Role::Admin,
            hosts: HostNames::all(),
            groups: HostNames::all(),
            vip: true,
            open: true,
        }
    }

    /// Returns the account of the site's own health checks. It may use every queue.
    pub fn health_checks() -> Self {
        Self {
            name: HEALTH_CHECK.to_owned(),
            role: Role::User,
            hosts: HostNames::all(),
            groups: HostNames::all(),
            vip: true,
            open: false,
        }
    }

    /// Returns the name for people.
    pub fn shown(&self) -> &str {
        if self.name.is_empty() {
            "the operator"
        } else {
            &self.name
        }
    }

    /// Returns true if the account has the rights of an admin.
    pub fn is_admin(&self) -> bool {
        self.role == Role::Admin
    }

    /// Returns true if the account may use queue `vip`.
    pub fn may_use_vip(&self) -> bool {
        self.vip || self.role == Role::Admin
    }

    /// Returns true if the account may use every restricted queue except `vip`. In an open lab no account may.
    pub fn may_use_every_queue(&self) -> bool {
        !self.open && (self.is_admin() || self.name == HEALTH_CHECK)
    }

    /// Fails unless the account owns the job or is an admin.
    pub fn check_owns(&self, state: &JobState) -> Result<(), JobError> {
        if self.may_act_for(&state.account) {
            return Ok(());
        }
        Err(JobError::NotOwner {
            id: state.job_id,
            account: state.account.clone(),
            asker: self.name.clone(),
        })
    }

    /// Returns true if the account may act on jobs of `account`.
    pub fn may_act_for(&self, account: &str) -> bool {
        if self.open {
            self.name.is_empty() || self.name == account
        } else {
            self.is_admin() || (self.role != Role::Unknown && self.name == account)
        }
    }

    /// Returns true if the account may act on jobs of all accounts. In an open lab only the nameless operator may.
    pub fn acts_for_all(&self) -> bool {
        if self.open {
            self.name.is_empty()
        } else {
            self.is_admin()
        }
    }

    /// Fails unless the account is an admin.
    pub fn require_admin(&self) -> Result<(), PeopleError> {
        if self.is_admin() {
            return Ok(());
        }
        Err(PeopleError::NotAdmin(self.name.clone()))
    }

    /// Fails unless the account is a testbox or an admin.
    pub fn require_testbox(&self) -> Result<(), PeopleError> {
        if matches!(self.role, Role::Admin | Role::Testbox) {
            return Ok(());
        }
        Err(PeopleError::NotTestbox(self.name.clone()))
    }

    /// Fails unless the account is a testbox, because job requests return secrets of jobs. An open lab trusts
    /// everybody.
    pub fn require_worker(&self) -> Result<(), PeopleError> {
        if self.open || self.role == Role::Testbox {
            return Ok(());
        }
        Err(PeopleError::NotTestbox(self.name.clone()))
    }

    /// Returns true if the account may act for this host.
    pub fn may_be_host(&self, host: &str) -> bool {
        match self.role {
            Role::Admin => true,
            Role::Testbox => self.hosts.names(host),
            Role::User | Role::Unknown => false,
        }
    }

    /// Fails unless the account is an admin or a testbox account of this host.
    pub fn require_host(&self, host: &str) -> Result<(), PeopleError> {
        self.require_testbox()?;
        if self.may_be_host(host) {
            return Ok(());
        }
        Err(PeopleError::NotItsHost {
            account: self.name.clone(),
            host: excerpt(host),
        })
    }
}

/// Sender of a request, as the request names it.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// Token from `Authorization: Bearer`, `my_token` or `token=`.
    pub token: Option<String>,
    /// Account name from `my_account`.
    pub account: Option<String>,
    /// Name of an account that was identified earlier and asked for this in advance. Requests cannot set it.
    pub vouched: Option<String>,
    /// True if the request is reserved for people. A testbox runs untrusted code, so its token is good for its work
    /// only.
    pub is_for_people: bool,
}

impl Credentials {
    /// Returns the credentials of an account that was identified earlier.
    pub fn vouched(name: &str) -> Self {
        Self {
            vouched: Some(name.to_owned()),
            ..Self::default()
        }
    }
}

/// The accounts, as last read or written.
#[derive(Debug)]
pub struct Accounts {
    access: Access,
    known: Mutex<DocCache<AccountDoc>>,
    /// Rights and token by hash of the token, derived from `known`. The map hashes with a random key, and [`Hash`]
    /// compares in constant time. So the time of a lookup reveals nothing about stored tokens.
    by_hash: RwLock<HashMap<Hash, (Who, GoodToken)>>,
    built_in: Option<(Hash, Who)>,
    clock: Clock,
    /// Time before which logins of the built-in account have ended, UTC epoch ms. The store has no document of it.
    built_in_since_ms: AtomicU64,
}

impl Accounts {
    /// Returns true if an account names exactly this host as its own.
    pub fn name_host(&self, host: &str) -> bool {
        let known = self.known.lock();
        let mut hosts = known.iter().filter_map(|(_, doc)| doc.hosts.as_ref());
        hosts.any(|hosts| hosts.iter().any(|name| name == host))
    }

    /// Returns the time before which logins of the account have ended, UTC epoch ms.
    pub fn logins_since_ms(&self, name: &str) -> u64 {
        let known = self.known.lock();
        let stored = known.get(name).map(|doc| doc.logins_since_ms.unwrap_or(0));
        stored.unwrap_or_else(|| self.built_in_since_ms.load(Ordering::Relaxed))
    }

    /// Ends the logins of the built-in account before this time, UTC epoch ms.
    pub fn end_built_in_logins(&self, since_ms: u64) {
        self.built_in_since_ms.store(since_ms, Ordering::Relaxed);
    }

    /// Returns true if jobs of all accounts may reuse results of this account's jobs.
    pub fn shares_results(&self, name: &str) -> bool {
        let known = self.known.lock();
        known.get(name).is_some_and(|doc| doc.share_results)
    }

    /// Returns the events that the account's receiver is told of, for jobs without their own. `None`: no receiver.
    pub fn notify_of(&self, name: &str) -> Option<CallbackEvents> {
        let known = self.known.lock();
        Some(known.get(name)?.notify.as_ref()?.on)
    }

    /// Returns the accounts, with the built-in admin of the configuration if there is one.
    pub fn new(access: Access, admin: Option<&(String, String)>, clock: Clock) -> Self {
        let built_in = admin.map(|(name, token)| {
            let who = Who {
                open: false,
                ..Who::open(name)
            };
            (token_hash(token), who)
        });
        Self {
            access,
            known: Mutex::default(),
            by_hash: RwLock::default(),
            built_in,
            clock,
            built_in_since_ms: AtomicU64::new(0),
        }
    }

    /// Reads all accounts from the store.
    pub async fn reload(&self, docs: &SmallDocs) -> Result<(), StoreError> {
        let read = docs.list().await?;
        self.update(|known| known.listed(read));
        Ok(())
    }

    /// Returns the limits of one account.
    pub fn limits_of(&self, account: &str) -> Limits {
        let known = self.known.lock();
        known
            .get(account)
            .map(|known| known.limits)
            .unwrap_or_default()
    }

    /// Returns the limits of all accounts that have limits.
    pub fn limits(&self) -> BTreeMap<String, Limits> {
        let known = self.known.lock();
        let limits = known.iter().map(|(name, known)| (name, known.limits));
        let limits = limits.filter(|(_, limits)| !limits.is_none());
        limits
            .map(|(name, limits)| (name.clone(), limits))
            .collect()
    }

    /// Adopts an account that this replica wrote, without waiting for the next read.
    pub fn wrote(&self, name: &str, version: Version, doc: AccountDoc) {
        self.update(|all| all.wrote(name, version, Some(doc)));
    }

    /// Removes an account that this replica deleted.
    pub fn deleted(&self, name: &str, version: Version) {
        self.update(|all| all.wrote(name, version, None));
    }

    fn update<R>(&self, work: impl FnOnce(&mut DocCache<AccountDoc>) -> R) {
        let mut known = self.known.lock();
        work(&mut known);
        let mut by_hash = self.by_hash.write();
        let mut next = HashMap::with_capacity(by_hash.len());
        for (name, doc) in known.iter() {
            let tokens = doc.tokens();
            let before = |hash: &Hash| by_hash.get(hash).map(|(_, token)| token.clone());
            let good = tokens.good(before);
            next.extend(good.map(|(hash, token)| (hash, (Who::of(name, doc), token))));
        }
        *by_hash = next;
    }

    /// Returns the account that sent the request.
    pub fn identify(&self, credentials: &Credentials) -> Result<Who, PeopleError> {
        let who = self.find(credentials)?;
        if credentials.is_for_people && who.role == Role::Testbox {
            return Err(PeopleError::OnlyTestbox(who.name));
        }
        Ok(who)
    }

    fn find(&self, credentials: &Credentials) -> Result<Who, PeopleError> {
        if self.access == Access::Open {
            let name = credentials
                .account
                .as_ref()
                .or(credentials.vouched.as_ref());
            return Ok(Who::open(name.map_or("", String::as_str)));
        }
        if let Some(name) = &credentials.vouched {
            let who = self.named(name).ok_or(PeopleError::UnknownToken)?;
            return match &credentials.account {
                Some(account) if *account != who.name && !who.is_admin() => {
                    Err(PeopleError::OthersToken)
                }
                _ => Ok(who),
            };
        }
        let Some(token) = &credentials.token else {
            return Err(PeopleError::NoToken);
        };
        let hash = token_hash(token);
        let built_in = self
            .built_in
            .as_ref()
            .filter(|(known, _)| *known == hash)
            .map(|(_, who)| who.clone());
        let who = match built_in {
            Some(who) => who,
            None => self.holder_of(&hash)?,
        };
        if who.role == Role::Unknown {
            return Err(PeopleError::NewRole(who.name));
        }
        match &credentials.account {
            Some(account) if *account != who.name && !who.is_admin() => {
                Err(PeopleError::OthersToken)
            }
            _ => Ok(who),
        }
    }

    /// Returns the holder of a token, and notes that the token was used.
    fn holder_of(&self, hash: &Hash) -> Result<Who, PeopleError> {
        let by_hash = self.by_hash.read();
        let (who, token) = by_hash.get(hash).ok_or(PeopleError::UnknownToken)?;
        if token.note_use(self.clock.wall_ms()) {
            return Ok(who.clone());
        }
        Err(PeopleError::TokenOver(who.name.clone()))
    }

    /// Returns the time of a token's last use on this replica, UTC epoch ms. 0: unused since the replica started.
    pub fn used_ms(&self, token: &Hash) -> u64 {
        let by_hash = self.by_hash.read();
        by_hash.get(token).map_or(0, |(_, token)| token.used_ms())
    }

    /// Returns the accounts with token uses that are not yet stored.
    pub fn used_since_written(&self) -> Vec<String> {
        let known = self.known.lock();
        let due = known.iter().filter(|(_, doc)| {
            let stored = doc.tokens();
            let now = stored.clone().used(|hash| self.used_ms(hash));
            now.is_use_due(&stored)
        });
        due.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the account of the token. In an open lab every request has the operator's rights.
    pub fn known(&self, credentials: &Credentials) -> Option<Who> {
        let token = Credentials {
            token: credentials.token.clone(),
            ..Credentials::default()
        };
        self.identify(&token).ok()
    }

    /// Returns true if the sender may see names of queues and host groups: in an open lab, or with a valid token.
    pub fn sees_names(&self, credentials: &Credentials) -> bool {
        self.access == Access::Open || self.known(credentials).is_some()
    }

    /// Returns the present rights of an account, for requests that it made earlier. `None`: the account is gone.
    pub fn named(&self, name: &str) -> Option<Who> {
        if self.access == Access::Open {
            return Some(Who::open(name));
        }
        let built_in = self.built_in.as_ref().map(|(_, who)| who);
        let built_in = built_in.filter(|who| who.name == name).cloned();
        let known = || {
            let known = self.known.lock();
            known.get(name).map(|known| Who::of(name, known))
        };
        built_in.or_else(known)
    }

    /// Warns about each testbox account that names no hosts.
    pub fn warn_of_unnamed_hosts(&self) {
        if !self.tokens_needed() {
            return;
        }
        let known = self.known.lock();
        for (account, known) in known.iter() {
            if Role::of(&known.role) == Role::Testbox && known.hosts.is_none() {
                tracing::warn!(
                    account,
                    "this testbox account names no hosts, so its token acts for every host (hint: fairlead account add NAME --hosts 'PATTERN')"
                );
            }
        }
    }

    /// Returns the view that an account gets of itself.
    pub fn view_of(&self, who: &Who) -> AccountView {
        let notify = {
            let known = self.known.lock();
            let notify = known.get(&who.name).and_then(|doc| doc.notify.as_ref());
            notify.map(AccountNotify::view)
        };
        AccountView {
            my_account: who.name.clone(),
            role: who.role.as_str().to_owned(),
            vip: who.may_use_vip(),
            limits: self.limits_of(&who.name),
            notify,
            ..AccountView::default()
        }
    }

    /// Returns true if requests need a token.
    pub fn tokens_needed(&self) -> bool {
        self.access == Access::Tokens
    }
}
