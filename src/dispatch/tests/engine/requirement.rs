//! The rules between a job and a host: each requirement by itself, and the same answers from strings as from the
//! engine's interned names.

use crate::lab::*;
use crate::random::{random_job, random_offer};
use fairlead_dispatch::*;
use proptest::prelude::*;

/// What the host does not meet, by its strings.
fn unmet(job: &JobFacts, host: &Offer) -> Vec<Requirement> {
    let required = JobRequirements {
        account: Some(&job.account),
        arch: &job.arch,
        keys: &job.host_keys,
        tags: &job.tags,
        not_tags: &job.not_tags,
        any_of: &job.any_of,
        devices: &job.devices,
        not_on: &job.not_on,
        memory_mb: job.memory_mb,
        cpus: job.cpus,
    };
    let about = &host.about;
    let has = HostProperties {
        name: &host.host,
        arch: &about.arch,
        keys: &about.keys,
        tags: &about.tags,
        devices: &about.devices,
        accounts: &about.accounts,
        memory_mb: match job.kind {
            Kind::Hw => host.total_memory_mb,
            Kind::Vm | Kind::Dc => host.free_memory_mb,
        },
        cpus: match job.kind {
            Kind::Hw => host.total_cpus,
            Kind::Vm | Kind::Dc => host.free_cpus,
        },
    };
    let unmet: Vec<Requirement> = required.unmet_by(&has).collect();
    assert_eq!(required.first_unmet_by(&has), unmet.first().copied());
    unmet
}

/// The same, as the engine explains it.
fn explained(job: &JobFacts, host: &Offer) -> Vec<Requirement> {
    let mut lab = Lab::new();
    lab.offer(Offer {
        waits_until: Millis(u64::MAX),
        ..host.clone()
    });
    let explained = lab.engine.explain_facts(Millis(lab.now), job);
    let verdict = explained.hosts.into_iter().next().expect("a known host");
    let requirement = |reason| match reason {
        Reason::KeptFor { .. } => Requirement::Account,
        Reason::Arch { .. } => Requirement::Architecture,
        Reason::Tags { .. } => Requirement::Tags,
        Reason::AvoidedTags { .. } => Requirement::NotTags,
        Reason::NoAlternative { .. } => Requirement::AnyOf,
        Reason::Devices { .. } => Requirement::Devices,
        Reason::MissingKey { .. } => Requirement::HostKey,
        Reason::FailedThere => Requirement::OtherHost,
        Reason::Memory { .. } => Requirement::Memory,
        Reason::Cpus { .. } => Requirement::Cpus,
        other => panic!("{other:?} on a host that has nothing to do"),
    };
    verdict.reasons.into_iter().map(requirement).collect()
}

#[test]
fn each_requirement_fails_by_itself() {
    let job = JobFacts {
        arch: "x86_64".to_owned(),
        tags: names("rt ssd"),
        not_tags: names("old"),
        any_of: vec![alternative("x", "wet"), alternative("y", "")],
        devices: names("gpu"),
        not_on: names("bad"),
        memory_mb: 20_000,
        cpus: 4,
        ..job(1, "ann")
    };
    let host = saying(vm_host("good"), |about| {
        about.tags = names("ssd x rt");
        about.devices = names("nic gpu");
        about.accounts = names("bob ann");
    });
    assert_eq!(unmet(&job, &host), []);
    let changed = |change: fn(&mut About)| saying(host.clone(), change);
    let cases = [
        (
            Requirement::Account,
            changed(|it| it.accounts = names("bob")),
        ),
        (
            Requirement::Architecture,
            changed(|it| it.arch = "aarch64".to_owned()),
        ),
        (
            Requirement::Tags,
            changed(|it| it.tags = names("ssd x y wet")),
        ),
        (Requirement::Devices, changed(|it| it.devices = vec![])),
        (
            Requirement::NotTags,
            changed(|it| it.tags = names("ssd x rt old")),
        ),
        (
            Requirement::AnyOf,
            changed(|it| it.tags = names("ssd x rt wet")),
        ),
        (
            Requirement::HostKey,
            changed(|it| it.keys = names("dc.x86_64")),
        ),
        (
            Requirement::OtherHost,
            Offer {
                host: "bad".to_owned(),
                ..host.clone()
            },
        ),
        (
            Requirement::Memory,
            Offer {
                free_memory_mb: 19_999,
                ..host.clone()
            },
        ),
        (
            Requirement::Cpus,
            Offer {
                free_cpus: 3,
                total_cpus: 4,
                ..host.clone()
            },
        ),
    ];
    for (requirement, host) in cases {
        assert_eq!(unmet(&job, &host), [requirement]);
        assert_eq!(explained(&job, &host), [requirement]);
    }
    // What the job does not ask for, the host need not have.
    let modest = JobFacts {
        arch: String::new(),
        tags: vec![],
        any_of: vec![],
        devices: vec![],
        ..job
    };
    assert_eq!(unmet(&modest, &vm_host("good")), []);
}

proptest! {
    #[test]
    fn strings_and_interned_names_give_the_same_answers(
        numbers in any::<(u8, u8, u8, i16)>(),
        other_arch in any::<bool>(),
        (host, how) in any::<(u8, u8)>(),
    ) {
        let mut job = random_job(1, numbers, 0);
        if other_arch {
            job.arch = "aarch64".to_owned();
        }
        let host = random_offer(host, how, 1);
        let unmet = unmet(&job, &host);
        prop_assert_eq!(unmet.is_empty(), able(&job, &host));
        prop_assert_eq!(explained(&job, &host), unmet);
    }
}
