//! Reservations: hosts that run only the jobs of some accounts until a time.
//!
//! Each reservation is its own small document. Every replica reads them every other second, and the first that sees an
//! expired one deletes it. With each offer, the engine is told whose jobs the host may run. A cordon takes precedence
//! over a reservation and leaves it unchanged.

use std::{collections::BTreeSet, future::ready};

use fairlead_api::HostReserve;
use fairlead_job::When;
use fairlead_store::{StoreError, Version};

use crate::hosts::HostFlow;
use fairlead_base::{
    clock::utc_text,
    errors::{HostError, Refusal, excerpt},
    names::check_name,
    storage::small_doc::{DocError, Stored},
};
use fairlead_known::{cordons::REASON_MAX, reservations::Reservation};

/// Most accounts that a host is kept for at one time.
const ACCOUNTS_MAX: usize = 100;
/// How far ahead a reservation may end, days.
const DAYS_MAX: u64 = 366;
/// The same, ms.
const AHEAD_MAX_MS: u64 = DAYS_MAX * 24 * 3_600_000;

/// Checks what is asked for, as seen at `now_ms`.
fn check(asked: &HostReserve, by: &str, now_ms: u64) -> Result<Reservation, Refusal> {
    let accounts: BTreeSet<&String> = asked.accounts.iter().collect();
    if !(1..=ACCOUNTS_MAX).contains(&accounts.len()) {
        let (given, max) = (accounts.len(), ACCOUNTS_MAX);
        return Err(HostError::ReservedFor { given, max }.into());
    }
    for account in &accounts {
        check_name("account", account)?;
    }
    let until = When::parse(&asked.until);
    let until = until.ok_or_else(|| HostError::BadTime(excerpt(&asked.until)))?;
    let until_ms = until.moment_ms(now_ms);
    if until_ms <= now_ms || until_ms > now_ms.saturating_add(AHEAD_MAX_MS) {
        let (until, days_max) = (utc_text(until_ms), DAYS_MAX);
        return Err(HostError::BadUntil { until, days_max }.into());
    }
    Ok(Reservation {
        accounts: accounts.into_iter().cloned().collect(),
        until_ms,
        reason: asked.reason.chars().take(REASON_MAX).collect(),
        by: by.to_owned(),
        at_ms: now_ms,
    })
}

impl HostFlow {
    /// Reads which hosts are kept for whom, and gives back those whose time is over.
    pub(crate) async fn reload_reservations(&self) -> Result<(), StoreError> {
        let read = self.ctx.docs.list::<Reservation>().await?;
        let now_ms = self.ctx.clock.wall_ms();
        let is_over = |stored: &Stored<Reservation>| stored.doc.until_ms <= now_ms;
        let over = read.iter().filter(|(_, stored)| is_over(stored));
        let over: Vec<_> = over.cloned().collect();
        let changed = self.lab.reservations.with(|known| known.listed(read));
        for (host, stored) in over {
            // Who was faster, or prolonged it, is right.
            match self.ctx.docs.put(&host, Some(&stored), None).await {
                Ok(version) => self.reservation_is(&host, version, None),
                Err(error) => {
                    tracing::debug!(host, %error, "a reservation that is over was not given back here");
                }
            }
        }
        if changed {
            self.jobs
                .waiters
                .hurry(|waiter| self.placement.is_outdated(waiter));
        }
        Ok(())
    }

    /// Keeps a host for some accounts. Reserving it again changes for whom and until when.
    pub(crate) async fn reserve_host(
        &self,
        host: &str,
        asked: &HostReserve,
        by: &str,
    ) -> Result<(), Refusal> {
        check_name("hostname", host)?;
        let reservation = check(asked, by, self.ctx.clock.wall_ms())?;
        let next = |_| ready(Ok::<_, DocError>(reservation.clone()));
        let stored = self.ctx.docs.change(host, next).await?;
        self.reservation_is(host, stored.version, Some(stored.doc));
        Ok(())
    }

    /// Gives a host back to everybody before its time.
    pub(crate) async fn unreserve_host(&self, host: &str) -> Result<(), Refusal> {
        check_name("hostname", host)?;
        let Some(version) = self.ctx.docs.delete::<Reservation>(host).await? else {
            return Err(HostError::NotReserved(host.to_owned()).into());
        };
        self.reservation_is(host, version, None);
        Ok(())
    }

    fn reservation_is(&self, host: &str, version: Version, reservation: Option<Reservation>) {
        self.lab
            .reservations
            .with(|known| known.wrote(host, version, reservation));
        self.jobs
            .waiters
            .hurry(|waiter| self.placement.is_outdated(waiter));
    }
}

#[cfg(test)]
mod tests {
    use fairlead_api::ErrorCode;

    use super::*;
    use crate::testing::{flows, flows_beside};

    fn asked(accounts: &[&str], until: &str) -> HostReserve {
        HostReserve {
            accounts: accounts.iter().map(|name| (*name).to_owned()).collect(),
            until: until.to_owned(),
            reason: "bisecting".to_owned(),
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_value() {
        let now_ms = 1_795_323_600_000;
        for (accounts, until, word) in [
            (vec![], "+2h", "0 were given"),
            (vec!["a/b"], "+2h", "a/b"),
            (vec!["ann"], "soon", "'soon' is not a time"),
            (vec!["ann"], "2020-01-01", "in the past, or too far ahead"),
            (vec!["ann"], "+400d", "in the past, or too far ahead"),
        ] {
            let refusal = check(&asked(&accounts, until), "root", now_ms).unwrap_err();
            let message = refusal.to_string();
            assert!(message.contains(word), "{message}");
        }
        let made = check(&asked(&["bob", "ann", "bob"], "+2h"), "root", now_ms).unwrap();
        assert_eq!(made.accounts, ["ann", "bob"]);
        assert_eq!(made.until_ms, now_ms + 7_200_000);
        assert!(made.serves("ann") && !made.serves("eve"));
        let words = made.words();
        assert!(words.contains("ann, bob until") && words.ends_with("by root: bisecting"));
    }

    #[tokio::test]
    async fn a_reservation_is_known_beside_it_and_given_back() {
        let (_data, flows) = flows().await;
        let other = flows_beside(&flows);
        flows
            .hosts
            .reserve_host("h", &asked(&["ann"], "+2h"), "root")
            .await
            .unwrap();
        for replica in [&flows, &other] {
            replica.hosts.reload_reservations().await.unwrap();
            assert_eq!(replica.placement.served_accounts("h"), ["ann"]);
            assert!(replica.placement.served_accounts("other").is_empty());
        }
        other.hosts.unreserve_host("h").await.unwrap();
        flows.hosts.reload_reservations().await.unwrap();
        assert!(flows.placement.served_accounts("h").is_empty());
        let again = flows.hosts.unreserve_host("h").await.unwrap_err();
        assert_eq!(again.body().code, ErrorCode::NotFound);
    }

    #[tokio::test]
    async fn a_host_is_everybodys_again_when_its_time_is_over() {
        let (_data, flows) = flows().await;
        let now_ms = flows.ctx.clock.wall_ms();
        let over = Reservation {
            accounts: vec!["ann".to_owned()],
            until_ms: now_ms - 1,
            reason: String::new(),
            by: "root".to_owned(),
            at_ms: now_ms - 2,
        };
        let written = flows.ctx.docs.put("h", None, Some(&over)).await;
        flows
            .hosts
            .reservation_is("h", written.unwrap(), Some(over));
        assert!(
            flows.placement.served_accounts("h").is_empty(),
            "the moment it is over"
        );
        let stored = async || flows.ctx.docs.read::<Reservation>("h").await.unwrap();
        assert!(stored().await.is_some());
        flows.hosts.reload_reservations().await.unwrap();
        assert_eq!(stored().await, None, "somebody tidies up");
    }

    #[tokio::test]
    async fn a_request_that_waits_hears_of_it() {
        let (_data, flows) = flows().await;
        let (offer, _told) = flows.hosts.waiter_of("h");
        let is_outdated = || {
            flows
                .placement
                .is_outdated(&flows.jobs.waiters.get(offer).unwrap())
        };
        assert!(!is_outdated());
        flows
            .hosts
            .reserve_host("h", &asked(&["ann"], "+2h"), "root")
            .await
            .unwrap();
        assert!(is_outdated());
    }
}
