//! Makes jobs and offers of random histories from numbers.

use crate::lab::*;
use fairlead_dispatch::*;

/// So many hosts there are.
pub(crate) const HOSTS: u8 = 5;
pub(crate) const ACCOUNTS: [&str; 4] = ["a", "b", "c", "d"];
const QUEUES: [&str; 4] = ["vip", "idle", "shared", "own"];

/// A job made of numbers, at the lab's time.
pub(crate) fn random_job(
    key: u64,
    (who, what, needs, priority): (u8, u8, u8, i16),
    now: u64,
) -> JobFacts {
    let account = ACCOUNTS[usize::from(who % 4)];
    let queue = match QUEUES[usize::from(who / 4 % 8).min(3)] {
        // Some of them under labels.
        "own" if who >= 128 => labels::slot_of(account, who / 32 % 3),
        "own" => account.to_owned(),
        named => named.to_owned(),
    };
    let host = format!("h{}", what / 8 % HOSTS);
    let kind = [Kind::Vm, Kind::Dc, Kind::Vm, Kind::Hw][usize::from(what % 4)];
    let host_keys = match (kind, what / 64) {
        (Kind::Hw, 0) => vec![format!("hw@{host}")],
        (Kind::Hw, _) => names("hw.x86_64"),
        (Kind::Dc, _) => names("dc.x86_64"),
        (Kind::Vm, 0) => vec![format!("vm.x86_64@{host}"), "vm.x86_64@nowhere".to_owned()],
        (Kind::Vm, _) => names("vm.x86_64"),
    };
    JobFacts {
        kind,
        host_keys,
        priority,
        memory_mb: 1_000 * (1 + u32::from(needs % 24)),
        cpus: 1 + u32::from(needs / 8 % 4),
        tags: if needs / 32 == 1 { names("t1") } else { vec![] },
        not_tags: match needs / 32 {
            7 if needs % 4 == 0 => names("t1"),
            _ => vec![],
        },
        any_of: match (needs / 32, needs % 4) {
            (7, 1) => vec![alternative("t1", "")],
            (7, 2) => vec![alternative("t2", ""), alternative("t1", "t2")],
            (7, 3) => vec![alternative("t1 t2", ""), alternative("", "t1")],
            _ => vec![],
        },
        devices: if needs / 32 == 2 { names("d1") } else { vec![] },
        // To be tried elsewhere.
        not_on: if needs / 32 == 6 {
            vec![format!("h{}", needs % HOSTS), "h0".to_owned()]
        } else {
            vec![]
        },
        cache_dirs: if needs / 32 == 3 {
            names("c1 c2")
        } else {
            vec![]
        },
        arch: if needs / 32 == 4 {
            "x86_64".to_owned()
        } else {
            String::new()
        },
        suite: format!("s{}", needs % 3),
        submitted: Millis(now),
        not_before: Millis(if needs / 32 == 5 { now + 300 } else { 0 }),
        ..queued(&queue, job(key, account))
    }
}

/// A load made of a number.
pub(crate) fn random_load(how: u8) -> HostLoad {
    HostLoad {
        loaded: (how / 8).is_multiple_of(3),
        memory_used_percent: 60 + how / 8,
        cpu_pressure_percent: how % 100,
    }
}

/// An offer made of numbers, at the lab's time.
pub(crate) fn random_offer(host: u8, how: u8, now: u64) -> Offer {
    let host = host % HOSTS;
    let name = format!("h{host}");
    let keys = match how % 4 {
        0 => vec!["hw.x86_64".to_owned(), format!("hw@{name}")],
        1 => names("hw.x86_64 vm.x86_64 dc.x86_64"),
        _ => vec![
            "vm.x86_64".to_owned(),
            "dc.x86_64".to_owned(),
            format!("vm.x86_64@{name}"),
        ],
    };
    // Some do not say.
    let (free_cpus, total_cpus) = match host % 3 {
        0 => (CPUS_UNCHECKED, CPUS_UNCHECKED),
        _ => (8 - u32::from(how / 32), 8),
    };
    Offer {
        // Some do not say, and no change of that is told in between.
        load: (host != 0).then(|| random_load(how)),
        // Some are machines of a pool.
        used_last: (host > 1).then(|| u64::from(how % 7)),
        free_cpus,
        total_cpus,
        free_memory_mb: 20_000 - 1_000 * u32::from(how / 16),
        jobs_max: 1 + u32::from(how / 4 % 4),
        waits_until: Millis(now + 500 * u64::from(how % 8)),
        ..saying(vm_host(&name), |about| {
            about.keys = keys;
            about.tags = if host.is_multiple_of(2) {
                names("t1 t2")
            } else {
                vec![]
            };
            about.devices = if host.is_multiple_of(3) {
                names("d1")
            } else {
                vec![]
            };
            // Kept for some, for a while.
            about.accounts = match (host, how / 64) {
                (3, 1..) => names("b a"),
                (4, 2..) => names("c"),
                _ => vec![],
            };
            about.cache_dirs = if host == 1 { names("c1") } else { vec![] };
        })
    }
}
