//! Serves people's requests about timers: submit, show, change, pause, resume, delete.

use std::sync::Arc;

use fairlead_api::{TimerList, TimerRun, TimerView};
use fairlead_job::{
    Schedule, Spec, Use, fields,
    schedule::{CRON, EVERY, TIMEZONE},
};
use fairlead_store::{DocFind, DocKind, Expect, ItemError, NewJob};
use serde_json::{Value, json};

use crate::{
    submission::{build::SENSITIVE, cluster_nodes::only_one_node, idempotency::KEY},
    timers::TimerFlow,
    views::job as view,
};
use fairlead_base::{
    clock::utc_text,
    errors::{Refusal, TimerError},
    names::check_name,
    storage::group_commit::only,
};
use fairlead_known::{
    accounts::{Credentials, Who},
    timers::{Known, Run, Stored, Timer, id_of, text_of},
};

/// The field that names a timer.
const NAME: &str = "timer";
/// How often a change is tried again when somebody else was faster, or a run is due first.
const TRIES_MAX: usize = 8;

/// What a job file says, taken apart.
struct Parts {
    when: Spec,
    job: Spec,
}

impl Parts {
    fn of(mut spec: Spec) -> Self {
        let mut when = Spec::new();
        for field in fields(Use::Schedule) {
            if let Some(value) = spec.shift_remove(field) {
                when.insert(field.to_owned(), value);
            }
        }
        // A run is told apart by its id: a key would make all of them one.
        for field in [NAME, KEY].into_iter().chain(SENSITIVE) {
            spec.shift_remove(field);
        }
        Self { when, job: spec }
    }

    /// The schedule over what was said before: a new `every` or `cron` replaces the old one.
    fn over(&self, before: &Spec) -> Spec {
        let mut when = before.clone();
        if [EVERY, CRON]
            .iter()
            .any(|field| self.when.contains_key(*field))
        {
            for field in [EVERY, CRON] {
                when.shift_remove(field);
            }
            if self.when.contains_key(EVERY) {
                when.shift_remove(TIMEZONE);
            }
        }
        when.extend(self.when.clone());
        when
    }
}

impl TimerFlow {
    /// Submits a timer: a job with `timer`, its name, and `every` or `cron`.
    pub(crate) async fn submit_timer(
        self: &Arc<Self>,
        spec: Spec,
        said: &Credentials,
    ) -> Result<TimerView, Refusal> {
        let who = self.submission.submitter(&spec, said)?;
        let Some(name) = text_of(&spec, NAME).map(str::to_owned) else {
            return Err(TimerError::NoName.into());
        };
        check_name(NAME, &name)?;
        let now_ms = self.ctx.clock.wall_ms();
        let Parts { when, job } = Parts::of(spec);
        let (job, account, warning) = self.check_timer_job(job, &who).await?;
        let mut timer = Timer {
            account,
            name,
            submitter: who.name.clone(),
            when,
            job,
            from_ms: now_ms,
            ..Timer::default()
        };
        let schedule = self.check_schedule(&timer)?;
        timer.next_ms = timer.next_from(&schedule, now_ms);
        self.check_room(&timer.account).await?;
        let written = self.write_timer(Expect::Absent, timer).await;
        let stored = written.map_err(|error| match error {
            ItemError::Conflict { .. } => Refusal::from(TimerError::Exists),
            other => other.into(),
        })?;
        let id = stored.timer.id();
        self.ctx
            .audit(&who.name, "timer.submit", &id, json!(stored.timer.when));
        let mut view = view_of(&stored.timer);
        view.warning = warning.unwrap_or_default();
        Ok(view)
    }

    /// Checks a timer's job as a submit would; returns it as it is stored, its account, and what is to be said of it.
    async fn check_timer_job(
        &self,
        mut job: Spec,
        who: &Who,
    ) -> Result<(Spec, String, Option<String>), Refusal> {
        only_one_node(&job, "a timer makes one job at a time")?;
        let mut made: [Result<NewJob, Refusal>; 1] =
            [self
                .submission
                .make_job_of(job.clone(), who.clone(), self.peers.next_id())];
        let mut warnings = self.submission.warn(&mut made, false);
        self.submission
            .warn_of_queues(&mut made, &mut warnings, false);
        let warning = warnings.pop().flatten();
        self.submission.check_parents(&mut made).await?;
        self.submission.check_inputs(&mut made, false).await?;
        let [made] = made;
        let account = made?.state.account;
        job.insert("my_account".to_owned(), json!(account));
        self.ctx.sealer.seal(&mut job);
        Ok((job, account, warning))
    }

    fn check_schedule(&self, timer: &Timer) -> Result<Schedule, Refusal> {
        let schedule = timer.schedule()?;
        let least_s = self.ctx.config.limits.timer_period_min_s;
        let shortest_s = schedule.shortest_ms(self.ctx.clock.wall_ms()) / 1_000;
        if shortest_s < least_s {
            let field = if timer.when.contains_key(EVERY) {
                EVERY
            } else {
                CRON
            };
            return Err(TimerError::TooOften {
                field,
                shortest_s,
                least_s,
            }
            .into());
        }
        Ok(schedule)
    }

    async fn check_room(&self, account: &str) -> Result<(), Refusal> {
        let find = DocFind {
            prefix: id_of(account, ""),
            limit: 1,
            ..DocFind::default()
        };
        let there = self.ctx.store.page_docs(DocKind::Timer, &find).await?.total;
        let max = self.ctx.config.limits.timers_max;
        if there < max {
            return Ok(());
        }
        let account = account.to_owned();
        Err(TimerError::TooMany {
            account,
            there,
            max,
        }
        .into())
    }

    async fn write_timer(&self, expect: Expect, timer: Timer) -> Result<Stored, ItemError> {
        let write = timer.to_write(expect);
        let version = only(self.ctx.store.put_docs(DocKind::Timer, vec![write]).await)?;
        self.timer_written(version, timer.clone());
        Ok(Stored { version, timer })
    }

    async fn stored_timer(&self, account: &str, name: &str) -> Result<Stored, Refusal> {
        check_name("account", account)?;
        check_name(NAME, name)?;
        let id = id_of(account, name);
        let doc = self.ctx.store.get_doc(DocKind::Timer, &id).await?;
        let stored = doc.and_then(Stored::of);
        Ok(stored.ok_or_else(|| TimerError::Unknown {
            account: account.to_owned(),
            name: name.to_owned(),
        })?)
    }

    /// One timer, with its job.
    pub(crate) async fn timer_view(&self, account: &str, name: &str) -> Result<TimerView, Refusal> {
        let stored = self.stored_timer(account, name).await?;
        let mut view = view_of(&stored.timer);
        view.job = Some(Value::Object(view::shown_spec(stored.timer.job)));
        Ok(view)
    }

    /// A page of timers, by account and name. An empty account: everybody's.
    pub(crate) async fn timer_views(
        &self,
        account: &str,
        after: &str,
        limit: u32,
    ) -> Result<TimerList, Refusal> {
        let find = DocFind {
            prefix: if account.is_empty() {
                String::new()
            } else {
                id_of(account, "")
            },
            after: after.to_owned(),
            limit,
        };
        let page = self.ctx.store.page_docs(DocKind::Timer, &find).await?;
        let is_full = page.docs.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        let next = page.docs.last().filter(|_| is_full);
        let next = next.map(|doc| doc.id.clone());
        let timers = page.docs.into_iter().filter_map(Stored::of);
        Ok(TimerList {
            timers: timers.map(|stored| view_of(&stored.timer)).collect(),
            total: page.total,
            next,
        })
    }

    /// Changes a timer: what is said of its schedule replaces what was said before, a job replaces the whole job.
    pub(crate) async fn update_timer(
        self: &Arc<Self>,
        who: &Who,
        (account, name): (&str, &str),
        spec: Spec,
    ) -> Result<TimerView, Refusal> {
        let mut parts = Parts::of(spec);
        // Whose it is cannot change.
        parts.job.shift_remove("my_account");
        if parts.job.is_empty() && parts.when.is_empty() {
            return Err(TimerError::NoChange.into());
        }
        let (job, warning) = if parts.job.is_empty() {
            (None, None)
        } else {
            let mut job = parts.job.clone();
            job.insert("my_account".to_owned(), json!(account));
            let (job, _, warning) = self.check_timer_job(job, who).await?;
            (Some(job), warning)
        };
        let change = |flow: &Self, timer: &mut Timer| {
            let now_ms = flow.ctx.clock.wall_ms();
            timer.when = parts.over(&timer.when);
            let schedule = flow.check_schedule(timer)?;
            let other_times = [EVERY, CRON, TIMEZONE];
            if other_times
                .iter()
                .any(|field| parts.when.contains_key(*field))
            {
                timer.from_ms = now_ms;
                timer.next_ms = timer.next_from(&schedule, now_ms);
            }
            if let Some(job) = &job {
                timer.job.clone_from(job);
                timer.submitter.clone_from(&who.name);
            }
            Ok(())
        };
        let timer = self.change_timer(who, (account, name), change).await?;
        self.ctx
            .audit(&who.name, "timer.update", &timer.id(), json!(timer.when));
        let mut view = view_of(&timer);
        view.warning = warning.unwrap_or_default();
        Ok(view)
    }

    /// Pauses a timer, or lets it go on. What comes due meanwhile is not missed: nobody asked for it.
    pub(crate) async fn pause_timer(
        self: &Arc<Self>,
        who: &Who,
        (account, name): (&str, &str),
        paused: bool,
    ) -> Result<TimerView, Refusal> {
        let change = |flow: &Self, timer: &mut Timer| {
            if timer.paused != paused {
                timer.paused = paused;
                let schedule = timer.schedule()?;
                timer.next_ms = timer.next_from(&schedule, flow.ctx.clock.wall_ms());
            }
            Ok(())
        };
        let timer = self.change_timer(who, (account, name), change).await?;
        let what = if paused {
            "timer.pause"
        } else {
            "timer.resume"
        };
        self.ctx.audit(&who.name, what, &timer.id(), Value::Null);
        Ok(view_of(&timer))
    }

    /// Deletes a timer. Its runs go on.
    pub(crate) async fn delete_timer(
        self: &Arc<Self>,
        who: &Who,
        (account, name): (&str, &str),
    ) -> Result<(), Refusal> {
        for _ in 0..TRIES_MAX {
            let stored = self.timer_to_change(who, account, name).await?;
            let mut write = stored.timer.to_write(Expect::Version(stored.version));
            write.body = None;
            match only(self.ctx.store.put_docs(DocKind::Timer, vec![write]).await) {
                Ok(version) => {
                    let id = stored.timer.id();
                    self.known.book.forget(&id, version);
                    self.ctx.audit(&who.name, "timer.delete", &id, Value::Null);
                    return Ok(());
                }
                Err(ItemError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ItemError::Conflict { current: None }.into())
    }

    async fn change_timer(
        self: &Arc<Self>,
        who: &Who,
        (account, name): (&str, &str),
        change: impl Fn(&Self, &mut Timer) -> Result<(), Refusal>,
    ) -> Result<Timer, Refusal> {
        for _ in 0..TRIES_MAX {
            let stored = self.timer_to_change(who, account, name).await?;
            let mut timer = stored.timer;
            change(self, &mut timer)?;
            match self
                .write_timer(Expect::Version(stored.version), timer)
                .await
            {
                Ok(stored) => return Ok(stored.timer),
                Err(ItemError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ItemError::Conflict { current: None }.into())
    }

    /// A timer that this account may change. What was due before is begun before.
    async fn timer_to_change(
        self: &Arc<Self>,
        who: &Who,
        account: &str,
        name: &str,
    ) -> Result<Stored, Refusal> {
        if !who.may_act_for(account) {
            return Err(TimerError::NotOwner {
                name: name.to_owned(),
                account: account.to_owned(),
                asker: who.name.clone(),
            }
            .into());
        }
        for _ in 0..TRIES_MAX {
            let stored = self.stored_timer(account, name).await?;
            if !stored.timer.is_due(self.ctx.clock.wall_ms()) {
                return Ok(stored);
            }
            self.fire(vec![Known::Written(Box::new(stored))]).await;
        }
        Err(TimerError::RunDue(name.to_owned()).into())
    }
}

fn run_view(run: Run) -> TimerRun {
    TimerRun {
        due_time: utc_text(run.due_ms),
        due_ms: run.due_ms,
        job_id: run.job_id.to_string(),
    }
}

/// A timer as people see it, without its job.
fn view_of(timer: &Timer) -> TimerView {
    let said = |field: &str| {
        let value = timer.when.get(field).filter(|value| !value.is_null());
        value.map(|value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        })
    };
    let schedule = timer.schedule().ok();
    let word = |value: Option<Value>| value.and_then(|v| v.as_str().map(str::to_owned));
    TimerView {
        timer: timer.name.clone(),
        my_account: timer.account.clone(),
        suite: text_of(&timer.job, "suite").unwrap_or_default().to_owned(),
        every: said(EVERY),
        timezone: said(CRON).map(|_| said(TIMEZONE).unwrap_or_else(|| "UTC".to_owned())),
        cron: said(CRON),
        overlap: word(schedule.as_ref().map(|s| json!(s.overlap))).unwrap_or_default(),
        missed: word(schedule.as_ref().map(|s| json!(s.missed))).unwrap_or_default(),
        paused: timer.paused,
        next_run: (timer.next_ms > 0).then(|| utc_text(timer.next_ms)),
        last_run: timer.last.map(run_view),
        runs: timer.runs,
        skipped_runs: timer.skipped,
        missed_runs: timer.missed,
        refused_runs: timer.refused,
        why: timer.why.clone(),
        warning: String::new(),
        job: None,
    }
}
