//! Whether a known host could run jobs that wait: the engine's predicate over what is known of both here.

use fairlead_dispatch::{CPUS_UNCHECKED, HostProperties, JobRequirements};
use fairlead_job::TboxType;
use fairlead_store::JobState;

use fairlead_known::{feasibility::Wants, hosts::Host};
use fairlead_lifecycle::engine_facts::alternatives;

/// What hosts look at in a job that waits, as it is now. Jobs of one shape can run on the same hosts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    wants: Wants,
    account: String,
    not_on: Vec<String>,
    /// Whether it shares its host with no other job.
    is_alone: bool,
}

impl Shape {
    pub(crate) fn of(state: &JobState) -> Self {
        Self {
            wants: Wants {
                // Its `else` comes later.
                any_of: alternatives(&state.any_of),
                ..Wants::of(state)
            },
            account: state.account.clone(),
            not_on: state.not_on.clone(),
            is_alone: state.tbox_type == TboxType::Hw,
        }
    }

    /// The host keys under which it waits.
    pub(crate) fn keys(&self) -> &[String] {
        &self.wants.keys
    }

    /// Whether it could start there.
    pub(crate) fn fits(&self, place: &Place) -> bool {
        let has_room = if self.is_alone {
            place.is_empty
        } else {
            place.is_shared
        };
        let required = JobRequirements {
            account: Some(&self.account),
            not_on: &self.not_on,
            ..self.wants.requirements()
        };
        has_room && required.first_unmet_by(&place.properties()).is_none()
    }
}

/// A host as jobs see it.
#[derive(Debug)]
pub(crate) struct Place {
    name: String,
    arch: String,
    keys: Vec<String>,
    tags: Vec<String>,
    devices: Vec<String>,
    accounts: Vec<String>,
    memory_mb: u32,
    cpus: u32,
    is_empty: bool,
    is_shared: bool,
}

impl Place {
    /// A host without jobs that serves these accounts; none: all.
    pub(crate) fn empty(name: &str, host: &Host, accounts: Vec<String>) -> Self {
        Self {
            name: name.to_owned(),
            arch: host.arch.clone(),
            keys: host.keys(name),
            tags: host.all_tags(),
            devices: host.all_devices(),
            accounts,
            memory_mb: host.memory_mb,
            cpus: host.cpus.unwrap_or(CPUS_UNCHECKED),
            is_empty: true,
            is_shared: true,
        }
    }

    /// The same host beside a job that it has.
    pub(crate) fn beside(self, job: &JobState) -> Self {
        Self {
            memory_mb: self.memory_mb.saturating_sub(job.memory_mb),
            cpus: match self.cpus {
                CPUS_UNCHECKED => CPUS_UNCHECKED,
                cpus => cpus.saturating_sub(job.cpus),
            },
            is_empty: false,
            is_shared: self.is_shared && job.tbox_type != TboxType::Hw,
            ..self
        }
    }

    /// The numbers of those of these shapes that do not fit, ascending.
    pub(crate) fn unfit(&self, shapes: &[Shape]) -> Vec<u32> {
        let numbered = (0..).zip(shapes);
        let unfit = numbered.filter(|(_, shape)| !shape.fits(self));
        unfit.map(|(number, _)| number).collect()
    }

    fn properties(&self) -> HostProperties<'_, String> {
        HostProperties {
            name: &self.name,
            arch: &self.arch,
            keys: &self.keys,
            tags: &self.tags,
            devices: &self.devices,
            accounts: &self.accounts,
            memory_mb: self.memory_mb,
            cpus: self.cpus,
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlead_job::Alternative;

    use super::*;
    use crate::testing::state;

    fn host() -> Host {
        Host {
            kinds: vec![TboxType::Dc],
            arch: "x86_64".to_owned(),
            memory_mb: 8_192,
            cpus: Some(8),
            tags: vec!["ssd".to_owned()],
            ..Host::default()
        }
    }

    #[test]
    fn a_host_runs_what_the_engine_would_let_it_run() {
        let (job, texts) = (state(1), |text: &str| vec![text.to_owned()]);
        let with = |change: fn(&mut JobState, Vec<String>), text: &str| {
            let mut job = job.clone();
            change(&mut job, texts(text));
            Shape::of(&job)
        };
        let open = Place::empty("h", &host(), Vec::new());
        let cases = [
            (with(|_, _| {}, ""), true),
            (with(|job, tags| job.tags = tags, "ssd"), true),
            (with(|job, tags| job.tags = tags, "gpu"), false),
            (with(|job, tags| job.not_tags = tags, "ssd"), false),
            (with(|job, devices| job.devices = devices, "nic"), false),
            (with(|job, _| job.memory_mb = 8_193, ""), false),
            (with(|job, _| job.cpus = 9, ""), false),
            (with(|job, arch| job.arch = arch.concat(), "riscv64"), false),
            (with(|job, keys| job.host_keys = keys, "vm.x86_64"), false),
            (with(|job, names| job.not_on = names, "h"), false),
        ];
        for (shape, fits) in cases {
            assert_eq!(shape.fits(&open), fits, "{shape:?}");
        }
        let kept = Place::empty("h", &host(), texts("ann"));
        let anns = with(|job, names| job.account = names.concat(), "ann");
        assert_eq!(kept.unfit(&[Shape::of(&job), anns]), [0]);
    }

    #[test]
    fn an_alternative_that_comes_later_does_not_count_yet() {
        let tag = |text: &str| Alternative {
            tags: vec![text.to_owned()],
            not_tags: Vec::new(),
        };
        let mut job = state(1);
        job.any_of = vec![tag("gpu")];
        job.otherwise = Some(Box::new(fairlead_store::Otherwise {
            tags: vec!["ssd".to_owned()],
            ..fairlead_store::Otherwise::default()
        }));
        let open = Place::empty("h", &host(), Vec::new());
        assert!(!Shape::of(&job).fits(&open));
    }

    #[test]
    fn jobs_on_a_host_leave_the_rest_of_it() {
        let place = || Place::empty("h", &host(), Vec::new());
        let of = |kind, memory_mb, cpus| JobState {
            tbox_type: kind,
            memory_mb,
            cpus,
            ..state(1)
        };
        let small = of(TboxType::Dc, 4_096, 4);
        let shape = |memory_mb, cpus| Shape::of(&of(TboxType::Dc, memory_mb, cpus));
        let beside = place().beside(&small);
        assert!(shape(4_096, 4).fits(&beside));
        assert!(!shape(4_097, 4).fits(&beside) && !shape(4_096, 5).fits(&beside));
        let whole = of(TboxType::Hw, 0, 0);
        assert!(!shape(1, 1).fits(&place().beside(&whole)));
        assert!(Shape::of(&whole).fits(&place()));
        assert!(!Shape::of(&whole).fits(&beside));
    }
}
