//! Checks the promises of each decision against the model: order, shares of dispatches, limits, claims.

use super::*;

impl World {
    pub(super) fn policy_of(&self, queue: &str) -> QueuePolicy {
        let queue = labels::queue_of(queue);
        self.policy.queues.get(queue).copied().unwrap_or_default()
    }

    /// Whether something but this host keeps a job off it: its gate, or the load of the host.
    fn waits_for_others(&self, key: JobKey, host: &str) -> bool {
        let explained = self.lab.engine.explain_job(Millis(self.lab.now), key);
        explained.is_none_or(|explained| {
            let of_host = explained.hosts.iter().filter(|known| known.host == host);
            let mut of_host = of_host.flat_map(|known| &known.reasons);
            let is_loaded = of_host.any(|reason| matches!(reason, Reason::Loaded { .. }));
            is_loaded || !explained.reasons.is_empty()
        })
    }

    /// I4, and order inside an account: nothing that still waits should have had this offer.
    pub(super) fn check_order(&self, taken: JobKey, offer: OfferKey) {
        if !self.complete {
            return;
        }
        let (host, taken) = (&self.offers[&offer].0, &self.jobs[&taken].facts);
        let class = |job: &JobFacts| self.policy_of(&job.queue).priority.min(9);
        for (key, known) in self
            .jobs
            .iter()
            .filter(|(_, known)| known.place == Place::Waiting)
        {
            let other = &known.facts;
            if !able(other, host) || self.waits_for_others(*key, &host.host) {
                continue;
            }
            let is_due = self.policy_of(&taken.queue).background_permille > 0;
            assert!(
                class(other) <= class(taken) || is_due,
                "{key:?} of a higher class waits, {:?} does not",
                taken.key
            );
            let same = (&other.account, &other.queue) == (&taken.account, &taken.queue);
            let before = (-other.priority, other.key) < (-taken.priority, taken.key);
            assert!(!same || !before, "{key:?} comes before {:?}", taken.key);
        }
    }

    /// A queue with a share of dispatches is not passed over more often than that leaves to others.
    pub(super) fn check_background(&mut self, taken: JobKey, offer: OfferKey) {
        if !self.complete {
            return;
        }
        let (host, taken) = (&self.offers[&offer].0, &self.jobs[&taken].facts);
        let class = self.policy_of(&taken.queue).priority.min(9);
        let mut passed: Vec<String> = vec![];
        for (key, known) in &self.jobs {
            let other = &known.facts;
            let policy = self.policy_of(&other.queue);
            let is_lower = policy.background_permille > 0 && policy.priority.min(9) < class;
            if known.place != Place::Waiting || !is_lower || !able(other, host) {
                continue;
            }
            if !self.waits_for_others(*key, &host.host) {
                passed.push(labels::queue_of(&other.queue).to_owned());
            }
        }
        passed.sort_unstable();
        passed.dedup();
        for queue in passed {
            let share = u32::from(self.policy_of(&queue).background_permille);
            let times = self.passed.entry(queue.clone()).or_default();
            *times += 1;
            assert!(
                *times * share < 1_000,
                "{queue} was passed over {times} times"
            );
        }
    }

    /// No job more of an account or a queue than is allowed.
    pub(super) fn check_limits(&self, job: &JobFacts) {
        let held = |is: &dyn Fn(&JobFacts) -> bool| {
            let held = self.jobs.values().filter(|known| is(&known.facts));
            let held = held.filter(|k| matches!(k.place, Place::InFlight(_) | Place::Held(_)));
            held.count() as u64
        };
        let queue = labels::queue_of(&job.queue);
        let same_queue = held(&|other| labels::queue_of(&other.queue) == queue);
        let same_account = held(&|other| other.account == job.account);
        for (allowance, held) in [
            (self.policy.queue_limits.get(queue), same_queue),
            (self.policy.account_limits.get(&job.account), same_account),
        ] {
            let allowance = allowance.copied().unwrap_or_default();
            assert!(!allowance.spent, "{job:?}");
            assert!(
                allowance.running_hard.is_none_or(|most| held < most),
                "{held} run already, {job:?} is one too many"
            );
        }
    }

    /// A loaded host gets only what has waited for long, and what no calm host could run. hw jobs do not care.
    fn check_load(&self, job: &JobFacts, host: &str) {
        if job.kind == Kind::Hw || !self.loaded.contains(host) {
            return;
        }
        let waited_ms = self.lab.now - job.submitted.0.min(self.lab.now);
        assert!(waited_ms >= LOADED_WAIT_MS, "{job:?} waited {waited_ms} ms");
        for offer in self.open.keys().map(|offer| &self.offers[offer].0) {
            let idle = Offer {
                free_memory_mb: offer.total_memory_mb,
                free_cpus: offer.total_cpus,
                ..offer.clone()
            };
            let is_calm = !self.loaded.contains(&idle.host) && !self.closed.contains(&idle.host);
            let newest = self.offers.values().map(|(other, _)| other);
            let newest = newest
                .filter(|other| other.host == idle.host)
                .map(|other| other.key);
            let is_newest = newest.max() == Some(idle.key);
            assert!(
                !is_calm || !is_newest || !able(job, &idle),
                "{job:?} on {host}, while {} is calm",
                idle.host
            );
        }
    }

    fn is_idle(&self, host: &str) -> bool {
        let has = |place: &Place| match place {
            Place::InFlight(offer) => self.offers[offer].0.host == host,
            Place::Held(name) => name == host,
            Place::Waiting | Place::Over => false,
        };
        !self.jobs.values().any(|known| has(&known.place))
    }

    /// A job that comes goes to the idle machine of a pool that was used last.
    pub(super) fn check_packing(&self, key: JobKey, offer: OfferKey) {
        let (job, host) = (&self.jobs[&key].facts, &self.offers[&offer].0);
        let likes = !job.cache_dirs.is_empty() || !job.prefer.is_empty();
        let Some(used) = host.used_last.filter(|_| !likes && self.complete) else {
            return;
        };
        if self.loaded.contains(&host.host) || !self.is_idle(&host.host) {
            return;
        }
        for other in self.open.keys().map(|offer| &self.offers[offer].0) {
            let is_better = other.used_last > Some(used) && other.waits_until.0 > self.lab.now;
            let is_free = !self.loaded.contains(&other.host) && self.is_idle(&other.host);
            assert!(
                !is_better || !is_free || !able(job, other),
                "{key:?} on {} that was used at {used}, while {other:?} waits",
                host.host
            );
        }
    }

    /// I3, hw alone, memory never more than there is, each job claimed once and at its present version.
    pub(super) fn check_claim(&mut self, key: JobKey, version: Version, offer: OfferKey) {
        let known = self
            .jobs
            .get(&key)
            .expect("only known jobs are claimed")
            .clone();
        assert_eq!(
            known.place,
            Place::Waiting,
            "{key:?} is claimed although it is not waiting"
        );
        assert_eq!(known.facts.version, version);
        let paused = self.policy_of(&known.facts.queue).paused;
        assert!(!paused, "{key:?} of a paused queue");
        self.check_limits(&known.facts);
        self.passed.remove(labels::queue_of(&known.facts.queue));
        let (host, claims) = self
            .offers
            .get_mut(&offer)
            .expect("only known offers are served");
        *claims += 1;
        let host = host.clone();
        let committed = self.open.get(&offer).expect("a claim for an open offer");
        let here = |job: &&KnownJob| job.place == Place::InFlight(offer);
        let in_flight = self.jobs.values().filter(here).count();
        assert!(
            committed.len() + in_flight < host.jobs_max as usize,
            "a job too many"
        );
        assert!(able(&known.facts, &host), "{:?} on {host:?}", known.facts);
        self.check_load(&known.facts, &host.host);
        let there: Vec<&KnownJob> = self
            .jobs
            .values()
            .filter(|other| match &other.place {
                Place::InFlight(offer) => self.offers[offer].0.host == host.host,
                Place::Held(name) => *name == host.host,
                Place::Waiting | Place::Over => false,
            })
            .collect();
        assert!(
            known.facts.kind != Kind::Hw || there.is_empty(),
            "hw {key:?} with {there:?}"
        );
        assert!(
            there.iter().all(|other| other.facts.kind != Kind::Hw),
            "{key:?} beside hw"
        );
        let used: u32 = there.iter().map(|other| other.facts.memory_mb).sum();
        assert!(
            used + known.facts.memory_mb <= host.total_memory_mb,
            "{key:?}: {used} MB used on {}",
            host.host
        );
        let used: u32 = there.iter().map(|other| other.facts.cpus).sum();
        assert!(
            used + known.facts.cpus <= host.total_cpus,
            "{key:?}: {used} CPUs used on {}",
            host.host
        );
        if there.is_empty() && host.jobs_max == 1 {
            self.alone.push((key, offer));
        }
        self.jobs.get_mut(&key).expect("a known job").place = Place::InFlight(offer);
    }

    /// No open, untouched offer is left that a ready job in memory could use; and what the engine takes for the
    /// order of classes is what the policy says (I4).
    pub(super) fn check_quiet(&mut self) {
        let mut lab_jobs: Vec<(JobKey, &KnownJob)> = vec![];
        for (key, known) in &self.jobs {
            let explained = self.lab.engine.explain_job(Millis(self.lab.now), *key);
            let Some(explained) = explained.filter(|e| e.state == JobState::Waiting) else {
                continue;
            };
            assert_eq!(known.place, Place::Waiting, "{key:?}");
            assert!(explained.hosts.len() <= EXPLAIN_LIST_MAX);
            let ready = explained.reasons.is_empty();
            for verdict in &explained.hosts {
                let asking = self
                    .lab
                    .engine
                    .hosts()
                    .into_iter()
                    .find(|host| host.name == verdict.host);
                let offer = asking
                    .and_then(|host| host.asking)
                    .filter(|offer| self.open.contains_key(offer));
                let Some(offer) = offer.filter(|offer| self.offers[offer].1 == 0) else {
                    continue;
                };
                let fits = verdict.reasons.is_empty() && ready;
                assert!(
                    !fits || !self.complete,
                    "{key:?} waits although {offer:?} of {} does",
                    verdict.host
                );
            }
            lab_jobs.push((*key, known));
        }
        if self.complete {
            let waiting = self
                .jobs
                .values()
                .filter(|known| known.place == Place::Waiting)
                .count();
            assert_eq!(lab_jobs.len(), waiting, "a job was lost");
        }
        for queue in self.lab.engine.queues(Millis(self.lab.now)) {
            let policy = self.policy_of(&queue.name);
            assert_eq!(
                (queue.class, queue.paused),
                (policy.priority.min(9), policy.paused)
            );
            let of_queue = |known: &&KnownJob| labels::queue_of(&known.facts.queue) == queue.name;
            let held = self
                .jobs
                .values()
                .filter(of_queue)
                .filter(|known| matches!(known.place, Place::InFlight(_) | Place::Held(_)));
            assert_eq!(
                queue.in_flight + queue.running,
                held.count() as u64,
                "{}",
                queue.name
            );
        }
    }
}
