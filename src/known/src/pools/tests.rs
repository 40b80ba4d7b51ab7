//! Tests of what is known of pools: boots, decisions, and whose machine a host is.

use fairlead_store::Version;

use super::*;

#[test]
fn boots_are_believed_once_some_were_measured() {
    let pool = PoolDoc {
        boot_s: 100,
        ..PoolDoc::unsaid()
    };
    let mut fleet = FleetDoc::default();
    for n in 0..5 {
        assert_eq!(fleet.boots_measured(), n);
        assert_eq!(fleet.boot_times(&pool).mean_ms, 100_000);
        fleet.note_boot(20_000);
    }
    let boots = fleet.boot_times(&pool);
    assert!(boots.mean_ms.abs_diff(20_000) < 2_000, "{boots:?}");
}

#[test]
fn a_boot_has_the_time_that_real_boots_take() {
    let pool = PoolDoc {
        boot_s: 5,
        ..PoolDoc::unsaid()
    };
    let mut fleet = FleetDoc::default();
    let deadline_s = |fleet: &FleetDoc| fleet.boot_times(&pool).deadline_ms / 1_000;
    assert_eq!(deadline_s(&fleet), 300);
    // Machines that hang may only be slow.
    for (hung, seconds) in [(1, 300), (2, 600), (3, 1_200), (9, 4_800)] {
        fleet.hung = hung;
        assert_eq!(deadline_s(&fleet), seconds);
    }
    fleet.note_boot(1_000_000);
    assert_eq!(fleet.hung, 0);
    assert!(deadline_s(&fleet).abs_diff(2_000) < 300, "{fleet:?}");
}

#[test]
fn a_boot_lasts_from_the_request_or_its_last_failure_to_the_first_question() {
    let machine = FleetMachine {
        asked_ms: 1_000,
        ..FleetMachine::default()
    };
    assert_eq!(machine.boot_ms(4_000), Some(3_000));
    // A machine that the provider had earlier has no boot time.
    assert_eq!(machine.boot_ms(900), None);
    let late = FleetMachine {
        failed_ms: 61_000,
        ..machine
    };
    assert_eq!(late.boot_ms(64_000), Some(3_000));
}

#[test]
fn a_machine_of_a_pool_is_known_by_its_group() {
    let pools = Pools::default();
    let version = Version {
        primary_term: 1,
        seq_no: 1,
    };
    pools.with(|docs| docs.wrote("vms", version, Some(PoolDoc::unsaid())));
    pools.job_over("vms--a", 7);
    pools.job_over("box--a", 8);
    assert_eq!(pools.used_last("vms--a", "vms"), Some(7));
    assert_eq!(pools.used_last("vms--b", "vms"), Some(0));
    assert_eq!(pools.used_last("box--a", "box"), None);
}

#[test]
fn the_newest_decision_comes_first() {
    assert!(decision_id("p", 2) < decision_id("p", 1));
    assert!(decision_id("p", 1_000_000) < decision_id("p", 999_999));
}
