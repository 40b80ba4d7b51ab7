//! Sends webhooks that are due: one replica at a time, again and again until the receiver takes it.

use std::sync::Arc;

use fairlead_store::{
    DocFind, DocKind, DocWrite, Expect, ItemError, JobState, StoreError, StoredJob,
};
use serde_json::json;

use crate::{
    views::answer::answer_of,
    webhooks::{
        WebhookFlow,
        decide::Decision,
        message::{Message, Told},
        receivers::NoReceiver,
        send::send,
    },
};
use fairlead_base::{
    errors::Refusal,
    storage::small_doc::{DocError, Stored},
};
use fairlead_known::{
    controllers::AHEAD_MS,
    webhook_places::WebhookPlace,
    webhooks::{CHECK_MS, Event, Field, Key, Standing, Webhook, id_of, key_of},
};

/// Most of them in one look.
const LOOK_MAX: u32 = 1_000;
/// For how long a replica has a webhook for itself while it tries it, ms.
const TRY_MS: u64 = 30_000;
/// How soon a webhook is looked at again when searches did not see the end of its job, ms: a refresh of the store.
const UNSEEN_MS: u64 = 1_000;
/// After how many tries a webhook is given up.
pub(super) const TRIES_MAX: u32 = 10;
/// Pauses after the first tries, ms; the last one holds for all further ones.
const PAUSES_MS: [u64; 6] = [5_000, 30_000, 120_000, 600_000, 3_600_000, 6 * 3_600_000];
/// How seldom somebody looks at a job whose end nobody told, ms.
const SELDOM_MS: u64 = 900_000;
/// The same where people are told: each job of an account may have such a one, and there may be a million jobs.
const SELDOM_FOR_PEOPLE_MS: u64 = 6 * 3_600_000;
/// How long a webhook that is over is kept, ms: a week.
const KEPT_MS: u64 = 7 * 86_400_000;
/// How long one is kept of which nobody was told, ms: an hour. Most notices of failures are such.
const SKIPPED_KEPT_MS: u64 = 3_600_000;
/// Webhooks that are read at a time.
const PAGE: u32 = 1_000;

/// A message that this replica is to send now.
struct Sending {
    key: Key,
    /// As it is tried.
    stored: Stored<Webhook>,
    /// Or why there is none.
    message: Result<Message, String>,
    place: WebhookPlace,
}

impl WebhookFlow {
    /// Sends what is due.
    pub(crate) async fn look_at_webhooks(
        self: Arc<Self>,
        due: Vec<(Key, ())>,
    ) -> Result<(), Refusal> {
        for (key, ()) in due {
            let Some(sending) = self.look_for_message(key).await? else {
                continue;
            };
            // Whoever waits for a receiver keeps nobody from looking.
            let flow = Arc::clone(&self);
            self.ctx.tasks.spawn(async move {
                if let Err(refusal) = flow.send_webhook(sending).await {
                    flow.known.looks.failed(key, (), &refusal);
                }
            });
        }
        Ok(())
    }

    /// Asks the store for the webhooks of the next seconds.
    pub(crate) async fn read_webhooks(&self) -> Result<(), StoreError> {
        let now_ms = self.ctx.clock.wall_ms();
        let before_ms = now_ms.saturating_add(AHEAD_MS);
        let due = self
            .ctx
            .store
            .due_docs(DocKind::Webhook, before_ms, LOOK_MAX);
        for due in due.await? {
            if let Some(key) = key_of(&due.id) {
                self.known.look_at(key, due.at_ms.saturating_sub(now_ms));
            }
        }
        Ok(())
    }

    /// Does what there is to do about a webhook.
    #[cfg(test)]
    pub(super) async fn see_to_webhook(self: &Arc<Self>, key: Key) -> Result<(), Refusal> {
        match self.look_for_message(key).await? {
            Some(sending) => self.send_webhook(sending).await,
            None => Ok(()),
        }
    }

    /// Does what there is to do about a webhook, up to its message, if one is to be sent now.
    async fn look_for_message(self: &Arc<Self>, key: Key) -> Result<Option<Sending>, Refusal> {
        let now_ms = self.ctx.clock.wall_ms();
        let id = id_of(key);
        let Some(known) = self.ctx.docs.read::<Webhook>(&id).await? else {
            return self.begin_webhook(key).await.map(|()| None);
        };
        if known.doc.standing.is_over() || known.doc.tried_until_ms > now_ms {
            return Ok(None);
        }
        let is_paused = known.doc.standing == Standing::Trying && known.doc.at_ms > now_ms;
        if is_paused {
            self.known
                .look_at(key, known.doc.at_ms.saturating_sub(now_ms));
            return Ok(None);
        }
        let Some(job) = self.ctx.store.get(&[key.job]).await?.pop().flatten() else {
            // Its job was not stored, or is long gone.
            let dropped = self.drop_webhook(&id, &known, now_ms).await;
            return dropped.map(|()| None);
        };
        if key.event == Event::Ended && !job.state.stage.is_terminal() {
            let later = self.check_later(key, &known, now_ms).await;
            return later.map(|()| None);
        }
        let is_fresh = known.doc.tries == 0;
        let places = &self.known.places;
        if let Err(after_ms) = places.has_room(&known.doc.account, is_fresh) {
            self.known.look_at(key, after_ms);
            return Ok(None);
        }
        self.begin_try(key, known, job).await
    }

    /// A webhook of which there is no document yet: that of the first failure is made when it comes.
    async fn begin_webhook(self: &Arc<Self>, key: Key) -> Result<(), Refusal> {
        if key.event == Event::Ended {
            return Ok(());
        }
        let Some(job) = self.ctx.store.get(&[key.job]).await?.pop().flatten() else {
            return Ok(());
        };
        let events = key.field.events(&job.state);
        if events.is_none_or(|events| !events.failing) {
            return Ok(());
        }
        let webhook = Webhook::new(&job.state, key, self.ctx.clock.wall_ms());
        match self.ctx.docs.put(&id_of(key), None, Some(&webhook)).await {
            Ok(_) | Err(ItemError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.known.look_at(key, 0);
        Ok(())
    }

    async fn drop_webhook(
        &self,
        id: &str,
        known: &Stored<Webhook>,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        if known.doc.since_ms.saturating_add(CHECK_MS) > now_ms {
            // It may be on its way.
            return Ok(());
        }
        match self.ctx.docs.put::<Webhook>(id, Some(known), None).await {
            Ok(_) | Err(ItemError::Conflict { .. } | ItemError::Missing) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Its job goes on: whoever ends it tells so. If nobody does, somebody looks again, ever less often.
    async fn check_later(
        &self,
        key: Key,
        known: &Stored<Webhook>,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        if known.doc.at_ms > now_ms {
            return Ok(());
        }
        let age_ms = now_ms.saturating_sub(known.doc.since_ms);
        let seldom_ms = match key.field {
            Field::Callback => SELDOM_MS,
            Field::Notify => SELDOM_FOR_PEOPLE_MS,
        };
        let pause_ms = age_ms.clamp(CHECK_MS, seldom_ms);
        let later = Webhook {
            at_ms: now_ms.saturating_add(pause_ms),
            ..known.doc.clone()
        };
        match self
            .ctx
            .docs
            .put(&id_of(key), Some(known), Some(&later))
            .await
        {
            Ok(_) | Err(ItemError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Begins to try it once, if no other replica does, and if its account and its receiver have a place left.
    async fn begin_try(
        self: &Arc<Self>,
        key: Key,
        known: Stored<Webhook>,
        job: StoredJob,
    ) -> Result<Option<Sending>, Refusal> {
        let (id, now_ms) = (id_of(key), self.ctx.clock.wall_ms());
        let Some(decision) = self.decision(key, &known, &job.state).await? else {
            self.known.look_at(key, UNSEEN_MS);
            return Ok(None);
        };
        // What is read may vanish, and with it the end.
        if !self.jobs.confirm(job).await?.1 {
            self.known.look_at(key, 0);
            return Ok(None);
        }
        let skip = async |why: String| {
            let skipped = self.skip_webhook(&id, &known, &why).await;
            skipped.map(|()| None)
        };
        let event = match decision {
            Decision::Tell(event) => event,
            Decision::Skip(why) => return skip(why).await,
        };
        let account = known.doc.account.clone();
        let message = match self.message_of(key, event, &account).await? {
            Ok(message) => Ok(message),
            Err(NoReceiver::Problem(problem)) => Err(problem),
            Err(NoReceiver::Gone(why)) => return skip(why).await,
        };
        let receiver = message.as_ref().map(Message::receiver).unwrap_or_default();
        let (is_fresh, now) = (known.doc.tries == 0, self.ctx.clock.now());
        let places = &self.known.places;
        let place = match places.take(&account, &receiver, is_fresh, now) {
            Ok(place) => place,
            Err(after_ms) => {
                self.known.look_at(key, after_ms);
                return Ok(None);
            }
        };
        let trying = Webhook {
            standing: Standing::Trying,
            tells: Some(event),
            tries: known.doc.tries.saturating_add(1),
            tried_until_ms: now_ms.saturating_add(TRY_MS),
            at_ms: now_ms.saturating_add(TRY_MS),
            ..known.doc.clone()
        };
        match self.ctx.docs.put(&id, Some(&known), Some(&trying)).await {
            Ok(taken) => Ok(Some(Sending {
                key,
                stored: known.written(taken, trying),
                message,
                place,
            })),
            // Another replica was faster, or the store did not say: whoever tries says so.
            Err(ItemError::Conflict { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a message, and notes what became of it.
    async fn send_webhook(self: &Arc<Self>, sending: Sending) -> Result<(), Refusal> {
        let Sending {
            key,
            stored,
            message,
            place,
        } = sending;
        let id = id_of(key);
        let sent = match message {
            Ok(message) => {
                let sent = send(&message, &self.ctx.config.webhooks_to).await;
                let is_slow = sent.as_ref().is_err_and(|not_taken| not_taken.is_slow);
                place.answered(!is_slow, self.ctx.clock.now());
                sent.map_err(|not_taken| not_taken.problem)
            }
            Err(problem) => Err(problem),
        };
        drop(place);
        let now_ms = self.ctx.clock.wall_ms();
        let after = after_try(&stored.doc, sent, now_ms);
        tracing::info!(webhook = id, tries = after.tries, standing = ?after.standing, problem = after.problem, "tried a webhook");
        match self.ctx.docs.put(&id, Some(&stored), Some(&after)).await {
            Ok(_) if after.standing == Standing::Dead => {
                let detail = json!({ "problem": after.problem, "tries": after.tries });
                self.ctx
                    .audit(&self.ctx.config.replica, "webhook.dead", &id, detail);
            }
            Ok(_) | Err(ItemError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        if after.at_ms > 0 {
            self.known.look_at(key, after.at_ms.saturating_sub(now_ms));
        }
        Ok(())
    }

    /// What a webhook tells, by what was decided or is decided now. `None`: it cannot be decided yet.
    async fn decision(
        self: &Arc<Self>,
        key: Key,
        known: &Stored<Webhook>,
        state: &JobState,
    ) -> Result<Option<Decision>, Refusal> {
        match (key.event, known.doc.tells) {
            (Event::Failing, _) => Ok(Some(Decision::Tell(Event::Failing))),
            (_, Some(event)) => Ok(Some(Decision::Tell(event))),
            (_, None) => self.decide(known.doc.on, state).await,
        }
    }

    /// Notes that nobody is told, and why.
    async fn skip_webhook(
        &self,
        id: &str,
        known: &Stored<Webhook>,
        why: &str,
    ) -> Result<(), Refusal> {
        let skipped = Webhook {
            standing: Standing::Skipped,
            at_ms: 0,
            since_ms: self.ctx.clock.wall_ms(),
            tried_until_ms: 0,
            problem: why.to_owned(),
            ..known.doc.clone()
        };
        tracing::debug!(webhook = id, why, "a webhook was skipped");
        match self.ctx.docs.put(id, Some(known), Some(&skipped)).await {
            Ok(_) | Err(ItemError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The message of a webhook; the inner error says why there can be none.
    async fn message_of(
        &self,
        key: Key,
        event: Event,
        account: &str,
    ) -> Result<Result<Message, NoReceiver>, Refusal> {
        let answer = answer_of(&self.views, key.job).await?;
        let receiver = match self.receiver_of(key, account).await? {
            Ok(receiver) => receiver,
            Err(none) => return Ok(Err(none)),
        };
        let told = Told {
            id: &id_of(key),
            event,
            answer: &answer,
            page: &format!("{}/r/{}", self.ctx.replicas.url, key.job),
            now_ms: self.ctx.clock.wall_ms(),
        };
        Ok(Ok(Message::to(&receiver.callback, &told, &receiver.secret)))
    }

    /// A page of webhooks by id, behind this one. Empty: there are no more.
    pub(super) async fn webhooks_after(
        &self,
        after: &str,
    ) -> Result<Vec<(String, Stored<Webhook>)>, StoreError> {
        let find = DocFind {
            after: after.to_owned(),
            limit: PAGE,
            ..DocFind::default()
        };
        self.ctx.docs.page(&find).await
    }

    /// Forgets webhooks that are over since long.
    pub(crate) async fn sweep_webhooks(&self) -> Result<(), DocError> {
        let (now_ms, mut after) = (self.ctx.clock.wall_ms(), String::new());
        loop {
            let page = self.webhooks_after(&after).await?;
            let Some((last, _)) = page.last() else {
                return Ok(());
            };
            after.clone_from(last);
            let old = page
                .into_iter()
                .filter(|(_, known)| is_old(&known.doc, now_ms));
            let deletes: Vec<DocWrite> = old
                .map(|(id, known)| DocWrite {
                    id,
                    expect: Expect::Version(known.version),
                    body: None,
                })
                .collect();
            if !deletes.is_empty() {
                // Another replica may have been faster.
                drop(self.ctx.store.put_docs(DocKind::Webhook, deletes).await);
            }
        }
    }
}

/// Whether nobody will ask for a webhook any more.
fn is_old(webhook: &Webhook, now_ms: u64) -> bool {
    let kept_ms = if webhook.standing == Standing::Skipped {
        SKIPPED_KEPT_MS
    } else {
        KEPT_MS
    };
    webhook.standing.is_over() && webhook.since_ms.saturating_add(kept_ms) < now_ms
}

/// A webhook after a try.
fn after_try(trying: &Webhook, sent: Result<(), String>, now_ms: u64) -> Webhook {
    let mut after = Webhook {
        tried_until_ms: 0,
        ..trying.clone()
    };
    match sent {
        Ok(()) => {
            after.problem.clear();
            after.standing = Standing::Sent;
        }
        Err(problem) => {
            after.problem = problem;
            if trying.tries < TRIES_MAX {
                let place = usize::try_from(trying.tries.saturating_sub(1)).unwrap_or(0);
                let pause_ms = PAUSES_MS.get(place).or(PAUSES_MS.last());
                after.at_ms = now_ms.saturating_add(pause_ms.copied().unwrap_or(0));
                return after;
            }
            after.standing = Standing::Dead;
        }
    }
    (after.at_ms, after.since_ms) = (0, now_ms);
    after
}
