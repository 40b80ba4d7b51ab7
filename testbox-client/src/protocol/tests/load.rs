//! Tests of what a loaded host says, and when.

use fairlead_api::HostLoad;

use super::*;

/// Returns a measurement with this percentage of 10,000 MB in use.
fn used(percent: u32) -> Event {
    pressed(percent, 40)
}

fn pressed(percent: u32, cpu_pressure: u8) -> Event {
    Event::Measured(Some(Measured {
        total_mb: 10_000,
        available_mb: 100 * (100 - percent),
        cpu_pressure_percent: Some(cpu_pressure),
        memory_pressure_percent: None,
    }))
}

fn told(request: &ConsumeRequest) -> (u64, u32, bool) {
    let load = request.load.unwrap();
    (request.request, request.free_memory_mb, load.loaded)
}

fn crossings(bench: &mut Bench) -> Vec<bool> {
    let crossed = |action: &Action| match action {
        Action::Loaded(load) => load.map(|load| load.loaded),
        _ => None,
    };
    std::iter::from_fn(|| bench.take(crossed)).collect()
}

#[test]
fn a_mark_that_is_crossed_is_told_by_a_request_that_replaces_the_open_one() {
    let mut bench = Bench::new(DC);
    let (first, request) = bench.asks().unwrap();
    assert_eq!(
        (request.request, request.load),
        (1, None),
        "nothing is known yet"
    );
    bench.feed(used(50));
    assert_eq!(bench.asks(), None, "all of its memory is still there");
    bench.feed(used(95));
    let (second, request) = bench.asks().unwrap();
    assert_eq!(told(&request), (2, 0, true));
    assert_eq!(request.seen, Some(0), "the answer to 1 is not read yet");
    let load = HostLoad {
        memory_total_mb: 10_000,
        memory_available_mb: 500,
        unpromised_memory_mb: 1_000,
        cpu_pressure_percent: Some(40),
        memory_pressure_percent: None,
        jobs: 0,
        loaded: true,
    };
    assert_eq!(request.load, Some(load));
    // The older request is answered first.
    bench.grants(first, Vec::new());
    bench.pass(SECOND);
    bench.feed(used(50));
    assert_eq!(bench.asks(), None, "it must be so for a while");
    bench.pass(LOADED_REST);
    bench.feed(used(50));
    assert_eq!(told(&bench.asks().unwrap().1), (3, 1_000, false));
    bench.grants(second, Vec::new());
    assert_eq!(crossings(&mut bench), [true, false]);
}

#[test]
fn a_loaded_host_asks_on_and_takes_what_it_gets_all_the_same() {
    let mut bench = Bench::new(DC);
    let (first, _) = bench.asks().unwrap();
    bench.feed(used(95));
    bench.grants(first, Vec::new());
    let (second, request) = bench.asks().unwrap();
    assert_eq!(told(&request), (2, 0, true));
    bench.grants(second, vec![job("1")]);
    assert_eq!(bench.starts(), Some(1));
    let (_, request) = bench.asks().unwrap();
    let load = request.load.unwrap();
    assert_eq!((load.unpromised_memory_mb, load.jobs), (900, 1));
    // Heartbeats report the same load.
    let (_, beat) = bench.beats().unwrap();
    assert_eq!((beat.free_memory_mb, beat.load), (0, Some(load)));
}

#[test]
fn a_host_that_is_full_tells_by_a_heartbeat_at_once() {
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    let whole = Grant {
        memory_mb: 1_000,
        ..job("1")
    };
    bench.grants(call, vec![whole]);
    assert_eq!(bench.asks(), None);
    assert!(bench.beats().is_some());
    bench.feed(used(95));
    assert!(bench.beats().unwrap().1.load.unwrap().loaded);
}

#[test]
fn another_pressure_is_told_by_a_heartbeat_and_not_by_a_new_request() {
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    bench.grants(call, Vec::new());
    assert!(bench.asks().is_some() && bench.beats().is_none());
    let mut told = Vec::new();
    for pressure in [0, 9, 35, 41, 44, 60, 55, 0] {
        bench.feed(pressed(20, pressure));
        let beat = bench.beats();
        told.extend(beat.and_then(|(_, beat)| beat.load?.cpu_pressure_percent));
    }
    assert_eq!(told, [35, 60, 0]);
    assert_eq!(bench.asks(), None);
}

#[test]
fn what_is_really_free_is_offered_and_told_anew_when_it_has_changed_much() {
    let mut bench = Bench::new(DC);
    let (first, _) = bench.asks().unwrap();
    bench.feed(used(86));
    let (second, request) = bench.asks().unwrap();
    assert_eq!(told(&request), (2, 400, false));
    bench.grants(first, Vec::new());
    bench.feed(used(84));
    assert_eq!(bench.asks(), None, "a small change can wait");
    bench.grants(second, Vec::new());
    let (third, request) = bench.asks().unwrap();
    assert_eq!(told(&request), (3, 600, false), "for the next request");
    bench.feed(used(20));
    assert_eq!(told(&bench.asks().unwrap().1), (4, 1_000, false));
    bench.grants(third, Vec::new());
}

#[test]
fn a_lost_request_is_not_repeated_as_it_was_by_a_host_that_is_loaded_since() {
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    bench.fails(call, Failure::lost("line cut"));
    bench.feed(used(95));
    bench.pass(SECOND);
    assert_eq!(told(&bench.asks().unwrap().1), (2, 0, true));
}

#[test]
fn a_whole_machine_has_no_marks() {
    let mut bench = Bench::new(Kinds::Hw);
    let (call, _) = bench.asks().unwrap();
    bench.feed(used(99));
    assert_eq!(bench.asks(), None);
    bench.grants(call, Vec::new());
    let (_, request) = bench.asks().unwrap();
    assert_eq!(told(&request), (2, 1_000, false));
    assert_eq!(request.load.unwrap().memory_available_mb, 100);
}

#[test]
fn a_machine_that_tells_nothing_is_as_before() {
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    bench.feed(Event::Measured(None));
    bench.grants(call, Vec::new());
    let (_, request) = bench.asks().unwrap();
    assert_eq!((request.free_memory_mb, request.load), (1_000, None));
}
