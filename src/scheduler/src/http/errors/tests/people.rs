//! Samples of all refusals of accounts and queues.

use super::*;

pub(super) fn of_people() -> Vec<Refusal> {
    use PeopleError as E;
    let word = || "ann".to_owned();
    let all = [
        E::NoToken,
        E::UnknownToken,
        E::OthersToken,
        E::NewRole(word()),
        E::NotAdmin(word()),
        E::NotTestbox(word()),
        E::TokenOver(word()),
        E::NotItsHost {
            account: word(),
            host: word(),
        },
        E::OnlyTestbox(word()),
        E::NotItsGroup {
            account: word(),
            group: word(),
        },
        E::UnknownRole(word()),
        E::OpenLab("vip: true".to_owned()),
        E::NamesNoHosts(word()),
        E::HostPatterns { given: 65, max: 64 },
        E::BadHostPattern(word()),
        E::LimitTooHigh {
            what: "hours",
            given: 9,
            max: 5,
        },
        E::LimitOfAccounts { what: "content_mb" },
        E::NoSoftLimit { what: "shards" },
        E::SoftOverHard {
            what: "hours",
            soft: 9,
            hard: 5,
        },
        E::NoChange,
        E::PriorityTooHigh { given: 10, max: 9 },
        E::BadWeight {
            given: 0,
            max: 1_000,
        },
        E::BackgroundTooHigh {
            given: 501,
            max: 500,
        },
        E::NoUsers,
        E::TooManyUsers { given: 9, max: 5 },
        E::DefaultPolicy(word()),
        E::UnknownQueue(word()),
        E::UnknownAccount(word()),
        E::OwnAccount(word()),
        E::OthersNotify {
            asker: word(),
            account: word(),
        },
        E::NoNotify(word()),
        E::NoNewToken(9),
        E::TokenTime {
            what: "overlap_s",
            given: 9,
            min: 1,
            max: 2,
        },
        E::MayNotDrop(word()),
        E::TooManyMonths {
            given: 1_001,
            max: 1_000,
        },
        E::BadReuse(word()),
        E::BadRule(fairlead_job::RuleError {
            message: "rule 'a': then: it sets nothing".to_owned(),
            hint: "name one of queue".to_owned(),
        }),
    ];
    all.map(Refusal::from).into()
}
