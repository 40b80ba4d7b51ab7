//! The core: its state, its requests, and their times.

use std::{collections::VecDeque, time::Duration};

use fairlead_api::{ConsumeRequest, HeartbeatRequest, HostLoad};

use super::{
    backoff::{Backoff, draw},
    contact::Contact,
    event::{Action, Event},
    host::{Host, Key, Room, Time},
    load::{Load, Measured},
    roster::Roster,
};

/// A request for work that is open.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) call: u64,
    pub(super) request: ConsumeRequest,
    pub(super) room: Room,
    pub(super) sent: Time,
}

/// The pauses after bad answers.
#[derive(Debug)]
pub(super) struct Pauses {
    /// Before the next request for work.
    pub(super) ask: Backoff,
    /// The same, while another agent has the host.
    pub(super) conflict: Backoff,
    /// Before the next heartbeat.
    pub(super) beat: Backoff,
    /// Before the next request for work of a machine that could not begin a job.
    pub(super) fault: Backoff,
    /// Before the next request for work after an answer at once that told nothing new.
    pub(super) stale: Backoff,
}

impl Pauses {
    fn new(mut seed: impl FnMut() -> u64) -> Self {
        let mut pauses = |min_ms, max_s| {
            let (min, max) = (Duration::from_millis(min_ms), Duration::from_secs(max_s));
            Backoff::new(min, max, seed())
        };
        Self {
            ask: pauses(100, 5),
            conflict: pauses(1_000, 10),
            beat: pauses(100, 2),
            fault: pauses(1_000, 60),
            stale: pauses(100, 1),
        }
    }
}

/// How far an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It asks for work.
    Asking,
    /// It has the jobs that it was to do `once`.
    Served,
    /// It stops.
    Stopping,
}

/// One life of an agent, from its start to its end.
///
/// It asks for work as long as there is room. When there is more room than the open request says, a newer one
/// replaces it: the scheduler then answers the older at once, with what it had just granted, and that answer is
/// read. Hanging up instead would undo those grants. At most these two are open.
#[derive(Debug)]
pub struct Core {
    pub(super) host: Host,
    /// The time of the last event.
    pub(super) now: Time,
    /// `None`: a new one is asked for.
    pub(super) session: Option<String>,
    /// Of the last request of the session.
    pub(super) number: u64,
    calls: u64,
    chance: u64,
    pub(super) contact: Contact,
    pub(super) roster: Roster,
    load: Load,
    pub(super) pauses: Pauses,
    pub(super) ask: Option<Ask>,
    /// The request before it, replaced but not answered yet.
    pub(super) older: Option<Ask>,
    /// An answer was lost on the way: the next request says so, even if the room is the same.
    pub(super) ask_anew: bool,
    /// A request whose answer did not arrive: it is sent again as it was while the room is the same.
    pub(super) unanswered: Option<(ConsumeRequest, Room)>,
    pub(super) ask_at: Time,
    /// The heartbeat that is open, and when it was sent.
    pub(super) beat: Option<(u64, Time)>,
    pub(super) beat_at: Time,
    /// A job at its limit waits for the answer to the next heartbeat.
    pub(super) beat_now: bool,
    pub(super) phase: Phase,
    actions: VecDeque<Action>,
}

impl Core {
    /// An agent of this host that starts now; all chance comes from `seed`.
    pub fn new(host: Host, now: Time, seed: u64) -> Self {
        let mut chance = seed;
        let pauses = Pauses::new(|| {
            chance = draw(chance);
            chance
        });
        Self {
            session: Some(host.says.session.clone()),
            host,
            now,
            number: 0,
            calls: 0,
            chance,
            contact: Contact::new(),
            roster: Roster::default(),
            load: Load::default(),
            pauses,
            ask: None,
            older: None,
            ask_anew: false,
            unanswered: None,
            ask_at: now,
            beat: None,
            beat_at: now,
            beat_now: false,
            phase: Phase::Asking,
            actions: VecDeque::new(),
        }
    }

    /// The same, with the load of the machine, so that its first request tells it.
    #[must_use]
    pub fn with_load(mut self, measured: Option<Measured>) -> Self {
        self.measured(measured);
        self
    }

    /// Takes in what happened, and decides what is to be done by now.
    pub fn handle(&mut self, now: Time, event: Event) {
        self.now = now;
        match event {
            Event::Wake => {}
            Event::Measured(measured) => self.measured(measured),
            Event::Adopted(left) => self.adopt(left),
            Event::Session(name) => self.session = Some(name),
            Event::Work { call, answer } => self.work_answered(call, answer),
            Event::Beat { call, answer } => self.beaten(call, answer),
            Event::Reported { key, call, answer } => self.reported(&key, call, answer),
            Event::Stage { key, stage, more } => {
                if let Some(job) = self.roster.get_mut(&key) {
                    job.reports.add(now, stage, *more);
                }
            }
            Event::Refused { key, reason } => self.forget(&key, &reason, self.host.grace),
            Event::AtLimit { key } => self.at_limit(&key),
            Event::Over { key, faulty } => self.over(&key, faulty),
            Event::Gone { key } => self.gone(&key),
            Event::Stop => self.stop_all(),
        }
        self.go_on();
    }

    /// What is to be done next.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When time alone brings something new; `None`: never.
    pub fn wakes_at(&self) -> Option<Time> {
        let patience = self.contact.cut_off_patience();
        let cut_off = self.roster.cut_off_at(self.contact.last, patience);
        let asks = self.ask_at > self.now && self.may_ask();
        let beats = self.beat.is_none() && self.session.is_some() && self.needs_beats();
        let of_jobs = self.roster.all().flat_map(|job| {
            let limit = job.limit_until;
            job.reports.wakes_at().into_iter().chain(limit)
        });
        let of_all = [
            cut_off.filter(|_| self.phase != Phase::Stopping),
            self.roster.hold_ends_at(self.now),
            asks.then_some(self.ask_at),
            beats.then_some(self.beat_at),
        ];
        of_all.into_iter().flatten().chain(of_jobs).min()
    }

    /// Whether all is done that was to be done `once`.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Served && self.roster.is_empty()
    }

    /// What its jobs leave, whether or not it is offered.
    pub fn free(&self) -> Room {
        self.roster.free(&self.host)
    }

    /// Whether it is loaded: others get the jobs, where there are others.
    pub fn is_loaded(&self) -> bool {
        self.load.is_loaded()
    }

    /// What of this is really there. A whole machine is one job's, whatever it does with it.
    fn really(&self, room: Room) -> Room {
        if self.host.is_hw() {
            room
        } else {
            self.load.limit(room)
        }
    }

    /// What is offered now; `None`: nothing.
    fn offered(&self) -> Option<Room> {
        let room = self.roster.room(&self.host, self.now)?;
        Some(self.really(room))
    }

    /// The load, to be told.
    fn told_load(&mut self) -> Option<HostLoad> {
        let (unpromised_mb, jobs) = (self.free().free_mb, self.roster.running().count());
        self.load.told(unpromised_mb, jobs)
    }

    /// A mark that is crossed is told at once, also by a request that takes the place of an open one.
    fn measured(&mut self, measured: Option<Measured>) {
        let before = self.offered();
        let rest = self.host.loaded_rest;
        let crossed = if self.host.is_hw() {
            self.load.note_hw(measured)
        } else {
            self.load.note(self.now, measured, rest)
        };
        if crossed {
            let load = self.told_load();
            self.act(Action::Loaded(load));
            self.beat_now |= !self.roster.is_empty();
        }
        // It only orders hosts: a heartbeat costs less than a new request.
        self.beat_now |= self.contact.ever && self.load.has_other_pressure();
        if crossed || before != self.offered() {
            self.ask_anew |= self.ask.is_some();
        }
    }

    /// The jobs that it has.
    pub fn jobs(&self) -> impl Iterator<Item = &Key> {
        self.roster.keys()
    }

    /// Whether something of its jobs runs, or may.
    pub fn is_busy(&self) -> bool {
        self.roster.running().next().is_some()
    }

    pub(super) fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    pub(super) fn next_call(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    pub(super) fn next_seed(&mut self) -> u64 {
        self.chance = draw(self.chance);
        self.chance
    }

    /// Does what is due.
    fn go_on(&mut self) {
        if self.phase != Phase::Stopping {
            self.cut_off();
        }
        self.tell_jobs();
        self.keep_asking();
        self.keep_beating();
    }

    /// Stops the jobs that asked for it, when there was no contact for too long. They end unreported: the
    /// scheduler gives them to somebody else.
    fn cut_off(&mut self) {
        let grace = self.contact.cut_off_grace(self.host.grace);
        let patience = self.contact.cut_off_patience();
        let cut = self.roster.cut_off(self.now, self.contact.last, patience);
        for key in cut {
            self.forget(&key, "cut off from every scheduler", grace);
        }
    }

    fn may_ask(&self) -> bool {
        self.phase == Phase::Asking && self.session.is_some()
    }

    /// Opens a request where there is room and none is open, or the open one says too little. One that
    /// says too much stays: the scheduler knows what it granted since.
    fn keep_asking(&mut self) {
        if !self.may_ask() || self.ask_at > self.now {
            return;
        }
        let Some(room) = self.offered() else {
            return;
        };
        let says_enough = self.ask.as_ref().is_some_and(|open| open.room.covers(room));
        // While an older one is open its answer is on its way: then a newer one takes its place.
        if (says_enough && !self.ask_anew) || self.older.is_some() {
            return;
        }
        self.load.refresh();
        let room = self.offered().unwrap_or(room);
        self.older = self.ask.take();
        self.ask_anew = false;
        let request = match self.unanswered.take() {
            Some((request, asked))
                if self.older.is_none() && self.says_same(&request, (asked, room)) =>
            {
                request
            }
            _ => self.next_request(room),
        };
        let call = self.next_call();
        self.act(Action::AskForWork {
            call,
            request: request.clone(),
        });
        self.ask = Some(Ask {
            call,
            request,
            room,
            sent: self.now,
        });
    }

    /// Whether a request that was not answered may be sent again as it was.
    fn says_same(&self, request: &ConsumeRequest, (asked, room): (Room, Room)) -> bool {
        let was_loaded = request.load.is_some_and(|load| load.loaded);
        asked == room && was_loaded == self.load.is_loaded()
    }

    fn next_request(&mut self, room: Room) -> ConsumeRequest {
        self.number += 1;
        let session = self.session.clone().unwrap_or_default();
        let load = self.told_load();
        let older = self.older.as_ref().map(|older| &older.request);
        ConsumeRequest {
            request: self.number,
            // Whatever was granted up to here and is not named was not read, and is dropped.
            seen: older
                .filter(|older| older.session == session)
                .map(|older| older.request.saturating_sub(1)),
            session,
            free_memory_mb: room.free_mb,
            free_cpus: room.free_cpus,
            jobs_max: room.slots,
            running: self.roster.named(),
            load,
            ..self.host.says.clone()
        }
    }

    /// Heartbeats are for leases; an idle agent is heard of by its requests, unless these wait long, or it rests.
    fn needs_beats(&self) -> bool {
        let wait = Duration::from_secs(u64::from(self.host.says.wait_s));
        let waits_long = wait > self.contact.lease / 2;
        let rests = self.ask_at > self.now + self.contact.heartbeat;
        !self.roster.is_empty() || (self.contact.ever && (waits_long || rests))
    }

    fn keep_beating(&mut self) {
        let is_due = self.beat.is_none() && self.beat_at <= self.now && self.needs_beats();
        if !is_due && !self.beat_now {
            return;
        }
        let Some(session) = self.session.clone() else {
            return;
        };
        self.beat_now = false;
        let (call, load) = (self.next_call(), self.told_load());
        self.beat = Some((call, self.now));
        self.act(Action::Heartbeat {
            call,
            request: HeartbeatRequest {
                session,
                running: self.roster.named(),
                free_memory_mb: self.really(self.free()).free_mb,
                free_cpus: self.free().free_cpus,
                load,
            },
        });
    }

    /// No more work is asked for.
    pub(super) fn hang_up(&mut self, phase: Phase) {
        self.phase = phase;
        (self.ask, self.older) = (None, None);
        self.act(Action::HangUp);
    }

    fn stop_all(&mut self) {
        self.hang_up(Phase::Stopping);
        self.order_all();
    }
}
