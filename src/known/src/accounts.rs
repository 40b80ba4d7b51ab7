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

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// The account's name; empty: the operator of an open replica.
    pub name: String,
    pub role: Role,
    /// Of a testbox: for which hosts it acts.
    pub hosts: HostNames,
    /// Of a testbox: in which groups its hosts may be.
    pub groups: HostNames,
    pub vip: bool,
    open: bool,
}

impl Who {
    /// Who the account of this name is.
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

    /// The account of health checks that the site itself submits, into any queue.
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

    /// The name for people.
    pub fn shown(&self) -> &str {
        if self.name.is_empty() {
            "the operator"
        } else {
            &self.name
        }
    }

    /// Whether the account may do what admins do.
    pub fn is_admin(&self) -> bool {
        self.role == Role::Admin
    }

    /// Whether the account may use queue `vip`.
    pub fn may_use_vip(&self) -> bool {
        self.vip || self.role == Role::Admin
    }

    /// Whether the account may use every queue that is for some, `vip` aside. In the open each account keeps to its own.
    pub fn may_use_every_queue(&self) -> bool {
        !self.open && (self.is_admin() || self.name == HEALTH_CHECK)
    }

    /// Refuses what only the owner of a job, or an admin, may do.
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

    /// Whether the account may act on jobs of `account`.
    pub fn may_act_for(&self, account: &str) -> bool {
        if self.open {
            self.name.is_empty() || self.name == account
        } else {
            self.is_admin() || (self.role != Role::Unknown && self.name == account)
        }
    }

    /// Whether the account may act on jobs of all accounts. In the open that is the operator without a name.
    pub fn acts_for_all(&self) -> bool {
        if self.open {
            self.name.is_empty()
        } else {
            self.is_admin()
        }
    }

    /// Refuses all but admins.
    pub fn require_admin(&self) -> Result<(), PeopleError> {
        if self.is_admin() {
            return Ok(());
        }
        Err(PeopleError::NotAdmin(self.name.clone()))
    }

    /// Refuses all but testboxes and admins.
    pub fn require_testbox(&self) -> Result<(), PeopleError> {
        if matches!(self.role, Role::Admin | Role::Testbox) {
            return Ok(());
        }
        Err(PeopleError::NotTestbox(self.name.clone()))
    }

    /// Refuses all but testboxes: whoever gets work reads the secrets of jobs. In an open lab everybody is trusted.
    pub fn require_worker(&self) -> Result<(), PeopleError> {
        if self.open || self.role == Role::Testbox {
            return Ok(());
        }
        Err(PeopleError::NotTestbox(self.name.clone()))
    }

    /// Whether the account may act for this host.
    pub fn may_be_host(&self, host: &str) -> bool {
        match self.role {
            Role::Admin => true,
            Role::Testbox => self.hosts.names(host),
            Role::User | Role::Unknown => false,
        }
    }

    /// Refuses all but admins and testboxes that name this host.
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

/// What a request says of its sender.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// From `Authorization: Bearer`, `my_token` or `token=`.
    pub token: Option<String>,
    /// From `my_account`.
    pub account: Option<String>,
    /// Nobody sends it: the account asked for this before, and was known then.
    pub vouched: Option<String>,
    /// What is asked is for people: a testbox runs code of others, and its token is good for nothing else than its work.
    pub is_for_people: bool,
}

impl Credentials {
    /// Of an account that asked for something before.
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
    /// By hash of the token, made of `known`. Its places are chosen with a random key, and [`Hash`] compares in constant
    /// time: how long a look takes says nothing of what is stored.
    by_hash: RwLock<HashMap<Hash, (Who, GoodToken)>>,
    built_in: Option<(Hash, Who)>,
    clock: Clock,
    /// As `logins_since_ms` of an account: of the built-in one, which is not stored.
    built_in_since_ms: AtomicU64,
}

impl Accounts {
    /// Whether an account names exactly this host as its own.
    pub fn name_host(&self, host: &str) -> bool {
        let known = self.known.lock();
        let mut hosts = known.iter().filter_map(|(_, doc)| doc.hosts.as_ref());
        hosts.any(|hosts| hosts.iter().any(|name| name == host))
    }

    /// Logins of the account before this time have ended, UTC epoch ms.
    pub fn logins_since_ms(&self, name: &str) -> u64 {
        let known = self.known.lock();
        let stored = known.get(name).map(|doc| doc.logins_since_ms.unwrap_or(0));
        stored.unwrap_or_else(|| self.built_in_since_ms.load(Ordering::Relaxed))
    }

    /// Ends the logins of the account of the configuration before this time.
    pub fn end_built_in_logins(&self, since_ms: u64) {
        self.built_in_since_ms.store(since_ms, Ordering::Relaxed);
    }

    /// Whether jobs of all accounts may take results of this account's jobs.
    pub fn shares_results(&self, name: &str) -> bool {
        let known = self.known.lock();
        known.get(name).is_some_and(|doc| doc.share_results)
    }

    /// Of which events of its jobs the account lets somebody be told, where they do not say so themselves.
    pub fn notify_of(&self, name: &str) -> Option<CallbackEvents> {
        let known = self.known.lock();
        Some(known.get(name)?.notify.as_ref()?.on)
    }

    /// With the built-in admin of the configuration, if it has one.
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

    /// Reads all accounts anew.
    pub async fn reload(&self, docs: &SmallDocs) -> Result<(), StoreError> {
        let read = docs.list().await?;
        self.update(|known| known.listed(read));
        Ok(())
    }

    /// The limits of one.
    pub fn limits_of(&self, account: &str) -> Limits {
        let known = self.known.lock();
        known
            .get(account)
            .map(|known| known.limits)
            .unwrap_or_default()
    }

    /// The limits of those that have any.
    pub fn limits(&self) -> BTreeMap<String, Limits> {
        let known = self.known.lock();
        let limits = known.iter().map(|(name, known)| (name, known.limits));
        let limits = limits.filter(|(_, limits)| !limits.is_none());
        limits
            .map(|(name, limits)| (name.clone(), limits))
            .collect()
    }

    /// Takes over what this replica wrote, at once.
    pub fn wrote(&self, name: &str, version: Version, doc: AccountDoc) {
        self.update(|all| all.wrote(name, version, Some(doc)));
    }

    /// The same of an account that this replica deleted.
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

    /// Who sent this.
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

    /// Whose token this is, now that somebody uses it.
    fn holder_of(&self, hash: &Hash) -> Result<Who, PeopleError> {
        let by_hash = self.by_hash.read();
        let (who, token) = by_hash.get(hash).ok_or(PeopleError::UnknownToken)?;
        if token.note_use(self.clock.wall_ms()) {
            return Ok(who.clone());
        }
        Err(PeopleError::TokenOver(who.name.clone()))
    }

    /// When a token was used last here, UTC epoch ms; 0: not since this replica began.
    pub fn used_ms(&self, token: &Hash) -> u64 {
        let by_hash = self.by_hash.read();
        by_hash.get(token).map_or(0, |(_, token)| token.used_ms())
    }

    /// The accounts of whose tokens it is to be written that they were used.
    pub fn used_since_written(&self) -> Vec<String> {
        let known = self.known.lock();
        let due = known.iter().filter(|(_, doc)| {
            let stored = doc.tokens();
            let now = stored.clone().used(|hash| self.used_ms(hash));
            now.is_use_due(&stored)
        });
        due.map(|(name, _)| name.clone()).collect()
    }

    /// Whose token these credentials have; in an open lab all are the operator's.
    pub fn known(&self, credentials: &Credentials) -> Option<Who> {
        let token = Credentials {
            token: credentials.token.clone(),
            ..Credentials::default()
        };
        self.identify(&token).ok()
    }

    /// Whether who asks may see names of queues and groups of hosts: anybody in an open lab, else who has a token.
    pub fn sees_names(&self, credentials: &Credentials) -> bool {
        self.access == Access::Open || self.known(credentials).is_some()
    }

    /// Who an account is, as it is now; for what it asked for before. `None`: there is no such account any more.
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

    /// Says of each testbox account that names no hosts what that means.
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

    /// What is known of who asks, for itself.
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

    /// Whether tokens are needed.
    pub fn tokens_needed(&self) -> bool {
        self.access == Access::Tokens
    }
}
