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

/// An open request for work.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) call: u64,
    pub(super) request: ConsumeRequest,
    pub(super) room: Room,
    pub(super) sent: Time,
}

/// Pauses after failed requests.
#[derive(Debug)]
pub(super) struct Pauses {
    /// Pause before the next request for work.
    pub(super) ask: Backoff,
    /// Pause before the next request for work while another agent has the host.
    pub(super) conflict: Backoff,
    /// Pause before the next heartbeat.
    pub(super) beat: Backoff,
    /// Pause before the next request for work of a machine that could not start a job.
    pub(super) fault: Backoff,
    /// Pause before the next request for work after an immediate answer without news.
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

/// Phase of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It asks for work.
    Asking,
    /// With `once`: it has got its jobs.
    Served,
    /// It stops.
    Stopping,
}

/// State of an agent, from its start to its end.
///
/// It asks for work as long as there is room. When there is more room than the open request offers, a newer request
/// replaces it. The scheduler then answers the older one at once with the jobs that it has just granted, and the agent
/// reads that answer. Hanging up instead would undo those grants. At most two requests are open.
#[derive(Debug)]
pub struct Core {
    pub(super) host: Host,
    /// Time of the last event.
    pub(super) now: Time,
    /// Name of the session. `None`: a new one is requested.
    pub(super) session: Option<String>,
    /// Number of the session's last request.
    pub(super) number: u64,
    calls: u64,
    chance: u64,
    pub(super) contact: Contact,
    pub(super) roster: Roster,
    load: Load,
    pub(super) pauses: Pauses,
    pub(super) ask: Option<Ask>,
    /// Previous request, which is replaced but not answered yet.
    pub(super) older: Option<Ask>,
    /// True if an answer was lost. The next request reports that, even if the room is unchanged.
    pub(super) ask_anew: bool,
    /// Request whose answer did not arrive. It is repeated unchanged while the room is the same.
    pub(super) unanswered: Option<(ConsumeRequest, Room)>,
    pub(super) ask_at: Time,
    /// Number and send time of the open heartbeat.
    pub(super) beat: Option<(u64, Time)>,
    pub(super) beat_at: Time,
    /// True if a job at its limit waits for the answer to the next heartbeat.
    pub(super) beat_now: bool,
    pub(super) phase: Phase,
    actions: VecDeque<Action>,
}

impl Core {
    /// Creates the core of an agent on this host. All random numbers come from `seed`.
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

    /// Returns the core with the load of the machine, so that its first request reports it.
    #[must_use]
    pub fn with_load(mut self, measured: Option<Measured>) -> Self {
        self.measured(measured);
        self
    }

    /// Takes in an event, and decides on the next actions.
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

    /// Returns the next action.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Returns the time at which something happens without an event. `None`: never.
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

    /// Returns true if all work of `once` is done.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Served && self.roster.is_empty()
    }

    /// Returns the room that its jobs leave, offered or not.
    pub fn free(&self) -> Room {
        self.roster.free(&self.host)
    }

    /// Returns true if it is loaded. Jobs then prefer other hosts.
    pub fn is_loaded(&self) -> bool {
        self.load.is_loaded()
    }

    /// Returns the part of this room that is really free. For a whole machine it is all, because one job has the
    /// machine.
    fn really(&self, room: Room) -> Room {
        if self.host.is_hw() {
            room
        } else {
            self.load.limit(room)
        }
    }

    /// Returns the offered room. `None`: nothing is offered.
    fn offered(&self) -> Option<Room> {
        let room = self.roster.room(&self.host, self.now)?;
        Some(self.really(room))
    }

    /// Returns the load to report.
    fn told_load(&mut self) -> Option<HostLoad> {
        let (unpromised_mb, jobs) = (self.free().free_mb, self.roster.running().count());
        self.load.told(unpromised_mb, jobs)
    }

    /// Takes in a measurement. Crossing a mark is reported at once, if necessary by a request that replaces an open
    /// one.
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
        // The pressure only ranks hosts: a heartbeat costs less than a new request.
        self.beat_now |= self.contact.ever && self.load.has_other_pressure();
        if crossed || before != self.offered() {
            self.ask_anew |= self.ask.is_some();
        }
    }

    /// Returns its jobs.
    pub fn jobs(&self) -> impl Iterator<Item = &Key> {
        self.roster.keys()
    }

    /// Returns true if processes of its jobs run, or may run.
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

    /// Performs everything that is due.
    fn go_on(&mut self) {
        if self.phase != Phase::Stopping {
            self.cut_off();
        }
        self.tell_jobs();
        self.keep_asking();
        self.keep_beating();
    }

    /// Stops the jobs that asked for it, after too long a time without contact. They end unreported, and the scheduler
    /// gives them to another host.
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

    /// Opens a request if there is room and none is open, or if the open one offers too little. A request that offers
    /// too much stays, because the scheduler knows its later grants.
    fn keep_asking(&mut self) {
        if !self.may_ask() || self.ask_at > self.now {
            return;
        }
        let Some(room) = self.offered() else {
            return;
        };
        let says_enough = self.ask.as_ref().is_some_and(|open| open.room.covers(room));
        // While an older request is open, its answer is in transit. Then a newer one replaces the open one.
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

    /// Returns true if an unanswered request may be repeated unchanged.
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
            // Jobs that were granted up to here and are not named were not read, and are dropped.
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

    /// Returns true if heartbeats are needed for leases. The requests of an idle agent are enough, unless they wait
    /// long or it rests.
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

    /// Stops asking for work.
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
