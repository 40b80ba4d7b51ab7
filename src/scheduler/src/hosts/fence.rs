//! Fencing: one request of one session of a host is served at a time.
//!
//! A host with one free slot asks replica A for work (request 7). Its connection breaks, so it asks replica B (request
//! 8). A does not know that the host is gone. If both replicas now claim a job, the host has two jobs for one slot. And
//! a job in an answer that nobody reads waits until its lease ends.
//!
//! So each host has one *session document* in the store, which names the request that is served. The document changes
//! by compare-and-set and is read in real time. A request takes its turn when it comes. Before jobs are handed out, it
//! writes the document once more, and that write fails if another request took the turn:
//!
//! ```text
//! replica A                         session document                  replica B
//! request 7 takes the turn     ->   request 7, no jobs
//!                                   request 8, no jobs           <-   request 8 takes the turn
//! claims job 41 for request 7
//! keeps the turn: refused
//! gives job 41 back                 request 8, jobs: 52          <-   keeps the turn, hands out job 52
//! ```
//!
//! Had A kept the turn first, the document would name job 41. Then B reads it there when it takes the turn. So B knows
//! of job 41, although no search of the store may show that claim yet.
//!
//! These requests take no turn:
//!
//! - A request with a smaller number than the present one of its session. A repeated request takes a new turn. If jobs
//!   were handed out for it before, it gets no others.
//! - A request of an earlier session. The last eight are remembered. The name of a session also says when it began, and
//!   that counts while the present session is alive.
//! - A request of a second agent of the same name, while the first one lives.
//! - A request of a machine that retires.
//!
//! Limits: the document may name a job too many, never one too few. It says nothing of leases, and another host is
//! another document. A hint tells A that the host moved, so that request 7 ends early. A lost hint costs time only.

use std::{future::ready, sync::Arc};

use fairlead_job::JobId;
use fairlead_store::Version;

use crate::hosts::HostFlow;
use fairlead_base::{
    errors::{HostError, Refusal},
    storage::small_doc::{DocError, Stored},
};
use fairlead_known::{
    host_turns::{HostTurn, TurnDoc},
    instances::Holder,
    open_requests::Requester,
    outbox::HintedHost,
    work_request::WorkRequest,
};

/// Earlier sessions that are remembered: a late request of theirs takes nobody's turn.
const PAST_MAX: usize = 8;

impl HostFlow {
    /// Takes the turn: from here on no earlier request of the host is given anything, by any replica.
    pub(crate) async fn take_turn(
        self: &Arc<Self>,
        ask: &WorkRequest,
    ) -> Result<HostTurn, Refusal> {
        let offerer = &ask.offerer;
        let host = &offerer.host;
        let turn = uuid::Uuid::new_v4().simple().to_string();
        let mut new_session = true;
        let next = |present: Option<TurnDoc>| {
            let session = present.as_ref().map(|present| &present.session);
            new_session = session != Some(&offerer.session);
            self.next_turn(present, ask, &turn)
        };
        let memory = &self.host_turns.0;
        let known = self.host_turns.known(host);
        let known = self
            .ctx
            .docs
            .change_known(host, known, Some(memory), next)
            .await?;
        let moved = HintedHost::of(host, known.version);
        self.ctx.outbox.host(&moved);
        self.turn_is_over(host, known.version);
        Ok(HostTurn {
            host: host.clone(),
            known,
            new_session,
        })
    }

    /// Whether the agent that asks may have the host after the one that has it; a refusal when that is another one
    /// and lives.
    async fn may_follow(&self, doc: &TurnDoc, ask: &WorkRequest) -> Result<(), Refusal> {
        let holder = Holder {
            instance: &doc.instance,
            session: &doc.session,
            is_here: doc.replica == self.ctx.replicas.run,
            asks_until_ms: doc.alive_ms.saturating_sub(self.ctx.config.lease_ms),
        };
        self.may_take_over(&ask.offerer.host, holder, &ask.host.instance)
            .await
    }

    /// The document after this request took its turn; a refusal when a later one did.
    async fn next_turn(
        &self,
        present: Option<TurnDoc>,
        ask: &WorkRequest,
        turn: &str,
    ) -> Result<TurnDoc, Refusal> {
        let offerer = &ask.offerer;
        let now_ms = self.ctx.clock.wall_ms();
        let mut doc = TurnDoc {
            session: offerer.session.clone(),
            request: offerer.request,
            turn: turn.to_owned(),
            replica: self.ctx.replicas.run.clone(),
            instance: ask.host.instance.clone(),
            alive_ms: now_ms
                .saturating_add(u64::from(ask.wait_s).saturating_mul(1_000))
                .saturating_add(self.ctx.config.lease_ms),
            ..TurnDoc::default()
        };
        let Some(present) = present else {
            return Ok(doc);
        };
        if present.retired {
            return Err(HostError::Retired(offerer.host.clone()).into());
        }
        self.may_follow(&present, ask).await?;
        if present.session == offerer.session && offerer.request < present.request {
            return Err(late(offerer, present.request));
        }
        // By their clocks; one that was set back is believed when nothing more is heard of the other.
        let begins = began(&offerer.session).zip(began(&present.session));
        let is_older = now_ms < present.alive_ms && begins.is_some_and(|(its, that)| its < that);
        if is_older || present.past.contains(&offerer.session) {
            return Err(HostError::SessionOver(offerer.host.clone()).into());
        }
        doc.past = present.past;
        doc.answered = present.answered
            && present.session == offerer.session
            && present.request == offerer.request;
        if present.session == offerer.session {
            doc.handed = present.handed;
        } else {
            doc.past.push(present.session);
            let over = doc.past.len().saturating_sub(PAST_MAX);
            doc.past.drain(..over);
        }
        doc.jobs = present.jobs;
        if present.replica == self.ctx.replicas.run {
            // What is known to be over need not be looked at again.
            doc.jobs.retain(|id| self.is_held_by(*id, &offerer.host));
        }
        Ok(doc)
    }

    fn is_held_by(&self, id: JobId, host: &str) -> bool {
        let live = self.jobs.live.get(id);
        live.is_some_and(|live| live.stored.state.host == host)
    }

    /// The last step before jobs are handed out: a refusal when another request took the turn meanwhile.
    pub(crate) async fn keep_turn(&self, turn: &HostTurn, jobs: &[JobId]) -> Result<(), Refusal> {
        let mut doc = turn.known.doc.clone();
        doc.answered = true;
        doc.handed = doc.request;
        // What it named before was looked at since.
        doc.jobs.retain(|id| self.is_held_by(*id, &turn.host));
        doc.jobs.extend(jobs);
        doc.jobs.sort_unstable();
        doc.jobs.dedup();
        self.rewrite_turn(turn, doc).await.map(drop)
    }

    /// Makes sure that no other request took the turn, by writing it once more: to read it proves nothing. A refusal
    /// when one did.
    pub(crate) async fn confirm_turn(&self, turn: &mut HostTurn) -> Result<(), Refusal> {
        let doc = turn.known.doc.clone();
        turn.known = self.rewrite_turn(turn, doc).await?;
        Ok(())
    }

    /// Writes the document of a turn; a refusal when it is another request's meanwhile.
    async fn rewrite_turn(
        &self,
        turn: &HostTurn,
        doc: TurnDoc,
    ) -> Result<Stored<TurnDoc>, Refusal> {
        let HostTurn { host, known, .. } = turn;
        // An earlier try may be in all the same, and only an acknowledged write decides.
        let next = |present: Option<TurnDoc>| {
            let is_its = present.is_some_and(|present| present.turn == doc.turn);
            ready(is_its.then(|| doc.clone()).ok_or(None::<DocError>))
        };
        let memory = &self.host_turns.0;
        let written = self
            .ctx
            .docs
            .change_known(host, Some(known.clone()), Some(memory), next);
        match written.await {
            Ok(known) => Ok(known),
            Err(Some(error)) => {
                tracing::warn!(host, %error, "the turn of a host could not be written to its session document");
                Err(error.into())
            }
            Err(None) => {
                self.ctx.metrics.turns_lost.inc();
                Err(HostError::TurnLost.into())
            }
        }
    }

    /// A host asks another replica now: its older request here is answered, empty.
    pub(crate) fn host_moved(&self, moved: &HintedHost) {
        let turns = &self.host_turns.0;
        turns.remove_if(&moved.host, |_, known| known.version < moved.turn());
        self.turn_is_over(&moved.host, moved.turn());
    }

    /// Whether no later turn of the host is known.
    pub(crate) fn has_turn(&self, offerer: &Requester) -> bool {
        let known = self.host_turns.0.get(&offerer.host);
        known.is_some_and(|known| known.version == offerer.turn)
    }

    /// A host's requests with an earlier turn than this can be given nothing: they need not wait.
    fn turn_is_over(&self, host: &str, turn: Version) {
        self.jobs
            .waiters
            .hurry_host(host, |offerer| offerer.turn < turn);
    }
}

/// When a session began, UTC epoch ms, if its name says it: a uuid of version 7.
fn began(session: &str) -> Option<u64> {
    let id = uuid::Uuid::parse_str(session).ok()?;
    let began = id.get_timestamp().filter(|_| id.get_version_num() == 7)?;
    let (s, ns) = began.to_unix();
    Some(
        s.saturating_mul(1_000)
            .saturating_add(u64::from(ns / 1_000_000)),
    )
}

fn late(offerer: &Requester, present: u64) -> Refusal {
    let request = offerer.request;
    HostError::Late { request, present }.into()
}

#[cfg(test)]
mod tests {
    use fairlead_fault_store::{Fault, FaultStore, On, Step};
    use fairlead_store::JobState;
    use serde_json::json;

    use fairlead_api::ErrorCode;

    use super::*;
    use crate::{
        Clock, Config,
        testing::{embedded, flows, flows_beside, flows_over, held, store_job, until},
    };

    fn ask(session: &str, request: u64) -> WorkRequest {
        let request = json!({
            "session": session, "request": request, "kinds": ["dc"], "arch": "x86_64",
            "memory_mb": 1024, "free_memory_mb": 1024,
        });
        WorkRequest::of("h", serde_json::from_value(request).unwrap()).unwrap()
    }

    /// A lab has thousands of hosts, and each asks or beats every few seconds.
    #[tokio::test]
    async fn a_request_and_a_heartbeat_of_a_known_host_write_once_and_read_nothing() {
        let data = tempfile::tempdir().unwrap();
        let store = Arc::new(FaultStore::new(embedded(&data), []));
        let config = Config::embedded(data.path().to_owned());
        let flows = flows_over(Arc::clone(&store) as _, config, Clock::system());
        let job = [(JobId::new(7), "claim".to_owned())];
        flows.hosts.take_turn(&ask("s", 1)).await.unwrap();
        flows.hosts.renew("h", &job).await.unwrap();
        let step = |on, fault| Step {
            on,
            fault,
            times: 9,
        };
        let reads = step(On::Get, Fault::Refused);
        store.then(reads);
        // It changes no write, and counts them.
        store.then(step(On::PutDocs, Fault::Stale));
        flows.hosts.take_turn(&ask("s", 2)).await.unwrap();
        flows.hosts.renew("h", &job).await.unwrap();
        let left = store.left();
        assert_eq!((left[0], left[1].times), (reads, 7));
    }

    #[tokio::test]
    async fn a_later_request_elsewhere_takes_the_turn_of_an_earlier_one() {
        let (_data, a) = flows().await;
        let b = flows_beside(&a);
        let first = a.hosts.take_turn(&ask("s", 1)).await.unwrap();
        assert!(first.new_session);
        a.hosts.keep_turn(&first, &[JobId::new(7)]).await.unwrap();
        let second = b.hosts.take_turn(&ask("s", 2)).await.unwrap();
        assert!(!second.new_session);
        assert_eq!(second.jobs(), [JobId::new(7)]);
        assert!(a.hosts.keep_turn(&first, &[JobId::new(8)]).await.is_err());
        b.hosts.keep_turn(&second, &[]).await.unwrap();
        let refused = a.hosts.take_turn(&ask("s", 1)).await.unwrap_err();
        assert_eq!(refused.body().code, ErrorCode::Conflict);
    }

    /// The hint of the earlier turn may come after the later turn was taken here. The request was answered empty then.
    #[tokio::test]
    async fn a_late_hint_of_an_earlier_turn_ends_no_later_one() {
        let (_data, a) = flows().await;
        let b = flows_beside(&a);
        let first = a.hosts.take_turn(&ask("s", 1)).await.unwrap();
        let second = b.hosts.take_turn(&ask("s", 2)).await.unwrap();
        let mut offerer = ask("s", 2).offerer;
        offerer.turn = second.version();
        b.hosts.host_moved(&HintedHost::of("h", first.version()));
        assert!(b.hosts.has_turn(&offerer));
        let third = a.hosts.take_turn(&ask("s", 3)).await.unwrap();
        b.hosts.host_moved(&HintedHost::of("h", third.version()));
        assert!(!b.hosts.has_turn(&offerer));
    }

    #[tokio::test]
    async fn a_turn_knows_of_jobs_in_an_answer_that_was_not_read() {
        let (_data, a) = flows().await;
        let b = flows_beside(&a);
        let first = a.hosts.take_turn(&ask("s", 1)).await.unwrap();
        assert!(!first.has_unread(0));
        a.hosts.keep_turn(&first, &[JobId::new(7)]).await.unwrap();
        for n in 2..=3 {
            let later = b.hosts.take_turn(&ask("s", n)).await.unwrap();
            assert!(later.has_unread(0) && !later.has_unread(1), "{n}");
        }
        let another = a.hosts.take_turn(&ask("t", 1)).await.unwrap();
        assert!(!another.has_unread(0));
    }

    /// The document named all that the host ever had, and each request read all of it.
    #[tokio::test]
    async fn what_is_over_is_not_named_any_more_though_each_request_comes_to_another_replica() {
        let (_data, a) = flows().await;
        let b = flows_beside(&a);
        let first = a.hosts.take_turn(&ask("s", 1)).await.unwrap();
        a.hosts.keep_turn(&first, &[JobId::new(7)]).await.unwrap();
        let second = b.hosts.take_turn(&ask("s", 2)).await.unwrap();
        assert_eq!(second.jobs(), [JobId::new(7)]);
        // It was looked at, and is over.
        b.hosts.keep_turn(&second, &[JobId::new(8)]).await.unwrap();
        let third = a.hosts.take_turn(&ask("s", 3)).await.unwrap();
        assert_eq!(third.jobs(), [JobId::new(8)]);
    }

    #[tokio::test]
    async fn a_repeated_request_takes_over_and_the_first_call_hands_nothing_out() {
        let (_data, a) = flows().await;
        let b = flows_beside(&a);
        let first = a.hosts.take_turn(&ask("s", 1)).await.unwrap();
        let again = b.hosts.take_turn(&ask("s", 1)).await.unwrap();
        assert!(a.hosts.keep_turn(&first, &[JobId::new(7)]).await.is_err());
        b.hosts.keep_turn(&again, &[JobId::new(7)]).await.unwrap();
    }

    /// Each took the host from the other, and with it the jobs of both.
    #[tokio::test]
    async fn a_second_agent_of_the_same_name_takes_no_turn() {
        let of = |instance: &str, session: &str, request| {
            let mut ask = ask(session, request);
            instance.clone_into(&mut ask.host.instance);
            ask
        };
        let (_data, a) = flows().await;
        let b = flows_beside(&a);
        a.hosts.take_turn(&of("x", "s", 1)).await.unwrap();
        for flows in [&a, &b] {
            let refused = flows.hosts.take_turn(&of("y", "t", 1)).await.unwrap_err();
            assert_eq!(refused.body().code, ErrorCode::HostConflict);
        }
        assert!(
            !a.hosts
                .take_turn(&of("x", "s", 2))
                .await
                .unwrap()
                .new_session
        );
        let again = b.hosts.take_turn(&of("x", "u", 1)).await.unwrap();
        assert!(again.new_session, "an agent that started anew");
        // What was known here is old by now.
        a.hosts.take_turn(&of("x", "u", 2)).await.unwrap();
        assert!(
            a.hosts.take_turn(&ask("v", 1)).await.is_ok(),
            "an older agent"
        );
        assert!(b.hosts.take_turn(&of("y", "w", 1)).await.is_ok());
    }

    /// It waited to its end, was given jobs meanwhile, and they went back.
    #[tokio::test]
    async fn a_request_that_is_repeated_elsewhere_waits_no_longer() {
        let (_data, a) = flows().await;
        let b = flows_beside(&a);
        let mut long = ask("s", 1);
        long.wait_s = 600;
        let at_a = Arc::clone(&a);
        let waits = a
            .ctx
            .tasks
            .spawn(async move { at_a.hosts.consume(long).await });
        until(&a, "a request that waits", || a.jobs.waiters.count() == 1).await;
        let again = b.hosts.take_turn(&ask("s", 1)).await.unwrap();
        a.hosts.host_moved(&HintedHost::of("h", again.version()));
        assert!(waits.await.unwrap().unwrap().jobs.is_empty());
        assert_eq!(a.jobs.waiters.count(), 0);
    }

    #[tokio::test]
    async fn a_late_request_of_an_earlier_session_is_refused() {
        let (_data, a) = flows().await;
        a.hosts.take_turn(&ask("old", 5)).await.unwrap();
        assert!(a.hosts.take_turn(&ask("new", 1)).await.unwrap().new_session);
        let refused = a.hosts.take_turn(&ask("old", 6)).await.unwrap_err();
        assert_eq!(refused.body().code, ErrorCode::SessionOver);
        a.hosts.take_turn(&ask("new", 2)).await.unwrap();
    }

    /// Its turn was long in writing, and meanwhile the next session had got a job. Seed 7710.
    #[tokio::test]
    async fn a_late_request_of_an_earlier_session_takes_no_job_from_the_present_one() {
        let (_data, a) = flows().await;
        let b = flows_beside(&a);
        let mut late = ask("old", 5);
        let mut turn = a.hosts.take_turn(&late).await.unwrap();
        b.hosts.take_turn(&ask("new", 1)).await.unwrap();
        let its = JobState {
            host: "h".to_owned(),
            session: "new".to_owned(),
            ..held()
        };
        let job = store_job(&b, its).await;
        a.jobs.observe(&job);
        let refused = a.hosts.reconcile(&mut late, &mut turn).await.unwrap_err();
        assert_eq!(refused.body().code, ErrorCode::Conflict);
        assert_eq!(b.jobs.stored_job(job.state.job_id).await.unwrap(), job);
    }

    /// A request of an earlier start that was long on its way, and that nobody had heard of.
    #[tokio::test]
    async fn a_session_that_began_before_the_present_one_takes_nothing_while_that_lives() {
        let (_data, flows) = flows().await;
        let began = |ms| uuid::Builder::from_unix_timestamp_millis(ms, &[7; 10]).into_uuid();
        let (old, new) = (began(5_000).to_string(), began(9_000).to_string());
        flows.hosts.take_turn(&ask(&new, 1)).await.unwrap();
        let refused = flows.hosts.take_turn(&ask(&old, 1)).await.unwrap_err();
        assert_eq!(refused.body().code, ErrorCode::SessionOver);
        assert!(
            !flows
                .hosts
                .take_turn(&ask(&new, 2))
                .await
                .unwrap()
                .new_session
        );
        // A clock that was set back.
        let silent = |present: Option<TurnDoc>| {
            let alive_ms = flows.ctx.clock.wall_ms();
            let doc = present.map(|present| TurnDoc {
                alive_ms,
                ..present
            });
            ready(doc.ok_or(None::<DocError>))
        };
        flows.ctx.docs.change("h", silent).await.unwrap();
        flows.hosts.host_turns.0.remove("h");
        assert!(
            flows
                .hosts
                .take_turn(&ask(&old, 1))
                .await
                .unwrap()
                .new_session
        );
    }
}
