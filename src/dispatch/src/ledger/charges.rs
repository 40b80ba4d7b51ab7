//! Charges jobs: at the claim with the expected duration, and later with the real one.
//!
//! The charge is the job's share of its host × time × the rate of the host group. A hw job has the whole host. Part of
//! [`Ledger`]: the meters of a job's queue and account always change by the same amounts (I5).

use crate::ids::{JobKey, Owner};
use crate::ledger::charge::Charge;
use crate::ledger::state::Ledger;
use crate::meter::times;

impl Ledger {
    /// Charges a job that is claimed now. `since`: start of its run, or in flight.
    pub(crate) fn begin(&mut self, job: JobKey, charge: &Charge, now: u64) {
        let owner = charge.owner;
        if let (Some(queue), Some(member)) = (
            self.queues.get_mut(owner.queue),
            self.members.get_mut(owner.member),
        ) {
            let (pass, class) = (queue.meter.pass(now), usize::from(queue.class()));
            queue.last = member.meter.pass(now);
            let cost = times(charge.price, i128::from(charge.expected_ms));
            queue.step = queue.meter.cost(cost).max(queue.step.saturating_mul(7) / 8);
            if let Some(last) = self.last.get_mut(class) {
                *last = pass;
            }
        }
        self.tally(owner, |tally| {
            tally.in_flight = tally.in_flight.saturating_add(1);
        });
        let in_flight = Charge {
            since: None,
            overrun: false,
            ..charge.clone()
        };
        self.add(&in_flight);
        self.charges.insert(job, in_flight);
        self.note_held(owner, now);
        if let Some(since) = charge.since {
            self.start(job, since, now);
        }
    }

    /// Notes that a job in flight runs since `since`.
    pub(crate) fn start(&mut self, job: JobKey, since: u64, now: u64) {
        let Some(charge) = self
            .charges
            .get(&job)
            .filter(|charge| charge.since.is_none())
        else {
            return;
        };
        let (owner, share) = (charge.owner, i128::from(charge.share));
        let due = since.saturating_add(charge.expected_ms);
        self.tally(owner, |tally| {
            tally.in_flight = tally.in_flight.saturating_sub(1);
            tally.running = tally.running.saturating_add(1);
        });
        self.busy(owner, -times(share, i128::from(since)), share);
        self.retime(job, |charge| {
            charge.since = Some(since);
            charge.overrun = due <= now;
        });
        if due > now {
            self.overruns.insert((due, job));
        }
    }

    /// Takes back the charge of a job in flight.
    pub(crate) fn cancel(&mut self, job: JobKey, now: u64) -> Option<Charge> {
        let charge = self
            .charges
            .get(&job)
            .filter(|charge| charge.since.is_none())?
            .clone();
        self.charges.swap_remove(&job);
        self.take(&charge);
        self.tally(charge.owner, |tally| {
            tally.in_flight = tally.in_flight.saturating_sub(1);
        });
        self.note_held(charge.owner, now);
        Some(charge)
    }

    /// Ends a running job: it is charged for its actual time. Returns that time, ms.
    pub(crate) fn end(&mut self, job: JobKey, at: u64, now: u64) -> Option<u64> {
        let charge = self.charges.get(&job)?.clone();
        let since = charge.since?;
        self.charges.swap_remove(&job);
        self.overruns
            .remove(&(since.saturating_add(charge.expected_ms), job));
        self.take(&charge);
        let at = at.clamp(since, now.max(since));
        let took = at - since;
        let cost = times(charge.price, i128::from(took));
        if let Some(queue) = self.queues.get_mut(charge.owner.queue) {
            queue.meter.settle(cost);
            queue.step = queue.step.max(queue.meter.cost(cost));
        }
        if let Some(member) = self.members.get_mut(charge.owner.member) {
            member.meter.settle(cost);
        }
        self.tally(charge.owner, |tally| {
            tally.running = tally.running.saturating_sub(1);
        });
        let share = i128::from(charge.share);
        self.busy(charge.owner, times(share, i128::from(at)), -share);
        self.note_held(charge.owner, now);
        Some(took)
    }

    fn busy(&mut self, owner: Owner, flat: i128, rate: i128) {
        if let Some(queue) = self.queues.get_mut(owner.queue) {
            queue.busy = (
                queue.busy.0.saturating_add(flat),
                queue.busy.1.saturating_add(rate),
            );
        }
    }

    pub(crate) fn retime(&mut self, job: JobKey, change: impl Fn(&mut Charge)) {
        let Some(charge) = self.charges.get_mut(&job) else {
            return;
        };
        let before = charge.clone();
        change(charge);
        let after = charge.clone();
        self.take(&before);
        self.add(&after);
    }

    fn add(&mut self, charge: &Charge) {
        self.meter(charge.owner, charge.terms(), charge.used());
    }

    fn take(&mut self, charge: &Charge) {
        let minus = |(flat, rate): (i128, i128)| (-flat, -rate);
        self.meter(charge.owner, minus(charge.terms()), minus(charge.used()));
    }

    fn meter(&mut self, owner: Owner, charged: (i128, i128), used: (i128, i128)) {
        if let Some(queue) = self.queues.get_mut(owner.queue) {
            queue.meter.add(charged, used);
        }
        if let Some(member) = self.members.get_mut(owner.member) {
            member.meter.add(charged, used);
        }
    }

    /// Panics if a sum disagrees with its parts. For tests and simulation.
    pub(crate) fn sanity_check(&self) {
        self.check_limits();
        self.check_idle();
        for (id, queue) in &self.queues {
            assert_eq!(self.by_name.get(&queue.name), Some(&id));
            let of = |charge: &&Charge| charge.owner.queue == id;
            let sum = |of_one: fn(&Charge) -> (i128, i128)| {
                let each = self.charges.values().filter(of).map(of_one);
                each.fold((0, 0), |(flat, rate), more| (flat + more.0, rate + more.1))
            };
            assert_eq!(
                queue.meter.running(),
                (sum(Charge::terms), sum(Charge::used))
            );
            let running = self
                .charges
                .values()
                .filter(of)
                .filter(|charge| charge.since.is_some())
                .count() as u64;
            assert_eq!(running, queue.tally.running);
            assert_eq!(
                self.charges.values().filter(of).count() as u64,
                queue.tally.held()
            );
            let members = queue
                .members
                .values()
                .filter_map(|member| self.members.get(*member));
            let waiting: u64 = members.clone().map(|member| member.tally.waiting).sum();
            let held: u64 = members.map(|member| member.tally.held()).sum();
            assert_eq!(
                (waiting, held),
                (queue.tally.waiting, queue.tally.held()),
                "{}",
                queue.name
            );
        }
        let due = self
            .charges
            .values()
            .filter(|charge| charge.since.is_some() && !charge.overrun)
            .count();
        assert_eq!(due, self.overruns.len());
    }
}
