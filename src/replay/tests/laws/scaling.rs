//! The scaler's laws on a day of bursts.

use fairlead_replay::{Law, Scaled, Scaling, arrivals, scale};

use super::day::day;

fn rules(law: Law) -> Scaling {
    Scaling {
        law,
        boot_ms: (120_000, 300_000),
        quota: 2_000,
        min: 0,
        target_ms: 180_000,
        estimate_factor: 1.0,
        seed: 7,
    }
}

#[test]
fn waits_are_short_and_machines_few() {
    let day = day(1);
    let new = scale(&day, &rules(Law::QueueTime));
    let seed = scale(&day, &rules(Law::Seed));
    assert_eq!(new.jobs, day.len());
    assert_eq!(seed.jobs, day.len());
    assert!(new.p95_s <= 260.0, "{new:?}");
    assert!(new.machine_hours <= 1.65 * new.busy_hours, "{new:?}");
    assert!(
        new.machine_hours <= 0.8 * seed.machine_hours,
        "{new:?} {seed:?}"
    );
    assert!(new.p95_s <= 0.6 * seed.p95_s, "{new:?} {seed:?}");
}

#[test]
fn wrong_estimates_are_corrected_by_how_they_turned_out() {
    let day = day(2);
    for estimate_factor in [0.33, 3.0] {
        let wrong = Scaling {
            estimate_factor,
            ..rules(Law::QueueTime)
        };
        let scaled = scale(&day, &wrong);
        assert!(scaled.p95_s <= 320.0, "{estimate_factor} {scaled:?}");
    }
}

#[test]
fn the_quota_and_the_floor_hold_and_all_runs() {
    let text =
        "submit_s,group,suite,run_s\n0,a,s,600\n0,a,s,600\n0,b,s,600\n0,b,s,600\n0,b,s,600\n";
    let few = arrivals::read(text.as_bytes()).unwrap();
    let tight = Scaling {
        quota: 2,
        ..rules(Law::QueueTime)
    };
    let scaled: Scaled = scale(&few, &tight);
    assert_eq!(scaled.jobs, 5);
    // Five shards of ten minutes run on at most two machines.
    assert!(scaled.launches >= 2 && scaled.p99_s >= 600.0, "{scaled:?}");
    let floor = Scaling {
        min: 2,
        ..rules(Law::QueueTime)
    };
    assert!(scale(&few, &floor).launches >= 5);
    assert_eq!(scale(&few, &tight), scaled);
}
