//! The machines of a pool beside what its provider lists. Pure.

use std::collections::BTreeMap;

use fairlead_scaler::Boots;

use fairlead_base::providers::ProviderMachine;
use fairlead_known::pools::{FleetDoc, FleetMachine};

/// A machine that was in so many lists no more is gone: lists of providers lag.
const MISSED_MAX: u32 = 2;
/// A machine that its provider never listed is given up after so long, ms, or when a boot would have to be over.
const NEVER_LISTED_MS: u64 = 600_000;
/// Longest name of a host, bytes.
const NAME_MAX: usize = 128;

/// What a list of the provider says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reconciled {
    /// Machines that are gone.
    pub(super) gone: Vec<String>,
    /// Machines that were asked for and are not listed yet: they are asked for again.
    pub(super) again: Vec<String>,
    /// Machines that are listed for the first time.
    pub(super) fresh: Vec<String>,
}

/// Brings the machines up to date with a list. `missed`: how many lists before lacked a machine that had been listed.
pub(super) fn reconcile(
    fleet: &mut FleetDoc,
    listed: &[ProviderMachine],
    missed: &mut BTreeMap<String, u32>,
    boots: Boots,
    now_ms: u64,
) -> Reconciled {
    let there: BTreeMap<&str, &ProviderMachine> = listed
        .iter()
        .filter(|machine| machine.is_there() && is_name(&machine.name))
        .map(|machine| (machine.token.as_str(), machine))
        .collect();
    let mut known: BTreeMap<String, FleetMachine> = BTreeMap::new();
    let mut result = Reconciled::default();
    for (name, mut machine) in std::mem::take(&mut fleet.machines) {
        if let Some(found) = there.get(machine.token.as_str()) {
            if machine.listed_ms == 0 {
                machine.listed_ms = now_ms;
                result.fresh.push(found.name.clone());
                // The cordon of one that is tried has the name that it was asked for under.
                let is_moved = machine.is_tried && found.name != name;
                result.gone.extend(is_moved.then_some(name));
            }
            missed.remove(&machine.token);
            known.insert(found.name.clone(), machine);
            continue;
        }
        let is_over = if machine.listed_ms == 0 {
            let patience_ms = NEVER_LISTED_MS.max(boots.deadline_ms);
            now_ms.saturating_sub(machine.asked_ms) > patience_ms
        } else {
            let misses = missed.entry(machine.token.clone()).or_default();
            *misses = misses.saturating_add(1);
            *misses >= MISSED_MAX
        };
        if is_over {
            missed.remove(&machine.token);
            result.gone.push(name);
            continue;
        }
        if machine.listed_ms == 0 && !machine.retires() {
            result.again.push(name.clone());
        }
        known.insert(name, machine);
    }
    for machine in there.into_values() {
        // One that nobody remembers: the store was restored, or an admin made it.
        known.entry(machine.name.clone()).or_insert_with(|| {
            result.fresh.push(machine.name.clone());
            FleetMachine {
                token: machine.token.clone(),
                asked_ms: now_ms,
                listed_ms: now_ms,
                ..FleetMachine::default()
            }
        });
    }
    fleet.machines = known;
    result
}

/// Notes the machines that retire (names, and why), and those that are asked for (names and tokens). The first of these take
/// the places of machines that were suspect when they retired.
pub(super) fn apply(
    fleet: &mut FleetDoc,
    added: &[(String, String)],
    retired: &[(String, String)],
    is_suspect: impl Fn(&str) -> bool,
    now_ms: u64,
) {
    for (machine, why) in retired {
        let known = fleet.machines.get_mut(machine);
        if let Some(known) = known.filter(|known| !known.retires()) {
            known.retired_ms = now_ms;
            known.why.clone_from(why);
            let more = u32::from(is_suspect(machine));
            fleet.suspects = fleet.suspects.saturating_add(more);
        }
    }
    for (machine, token) in added {
        let asked = FleetMachine {
            token: token.clone(),
            asked_ms: now_ms,
            is_tried: fleet.suspects > 0,
            ..FleetMachine::default()
        };
        fleet.suspects = fleet.suspects.saturating_sub(1);
        fleet.machines.insert(machine.clone(), asked);
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@+~:".contains(&byte);
    !name.is_empty() && name.len() <= NAME_MAX && name.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOTS: Boots = Boots {
        mean_ms: 100_000,
        deadline_ms: 300_000,
    };

    fn listed(token: &str, name: &str) -> ProviderMachine {
        ProviderMachine {
            token: token.to_owned(),
            name: name.to_owned(),
            state: String::new(),
        }
    }

    fn asked(token: &str, asked_ms: u64) -> FleetMachine {
        FleetMachine {
            token: token.to_owned(),
            asked_ms,
            ..FleetMachine::default()
        }
    }

    fn fleet(machines: &[(&str, FleetMachine)]) -> FleetDoc {
        let machines = machines.iter();
        FleetDoc {
            machines: machines
                .map(|(name, one)| ((*name).to_owned(), one.clone()))
                .collect(),
            ..FleetDoc::default()
        }
    }

    #[test]
    fn a_machine_is_asked_for_again_until_it_is_listed_or_given_up() {
        let mut all = fleet(&[("p--a", asked("a", 1_000))]);
        let mut missed = BTreeMap::new();
        let first = reconcile(&mut all, &[], &mut missed, BOOTS, 20_000);
        assert_eq!(
            (first.again, first.gone.len()),
            (vec!["p--a".to_owned()], 0)
        );
        let seen = reconcile(&mut all, &[listed("a", "p--a")], &mut missed, BOOTS, 30_000);
        assert_eq!(seen.fresh, ["p--a"]);
        assert!(seen.gone.is_empty() && seen.again.is_empty());
        assert_eq!(all.machines["p--a"].listed_ms, 30_000);
        let mut never = fleet(&[("p--b", asked("b", 1_000))]);
        let late = reconcile(&mut never, &[], &mut missed, BOOTS, 601_001);
        assert_eq!(late.gone, ["p--b"]);
        assert!(never.machines.is_empty());
    }

    #[test]
    fn a_list_that_lags_once_loses_no_machine() {
        let mut all = fleet(&[("p--a", asked("a", 1_000))]);
        let mut missed = BTreeMap::new();
        let list = [listed("a", "p--a")];
        reconcile(&mut all, &list, &mut missed, BOOTS, 2_000);
        for _ in 0..3 {
            let lags = reconcile(&mut all, &[], &mut missed, BOOTS, 3_000);
            assert_eq!(lags, Reconciled::default());
            reconcile(&mut all, &list, &mut missed, BOOTS, 4_000);
        }
        reconcile(&mut all, &[], &mut missed, BOOTS, 5_000);
        let gone = reconcile(&mut all, &[], &mut missed, BOOTS, 6_000);
        assert_eq!(gone.gone, ["p--a"]);
    }

    #[test]
    fn who_takes_the_place_of_a_suspect_machine_is_tried() {
        let named = |names: &[&str]| -> Vec<(String, String)> {
            let pair = |name: &&str| ((*name).to_owned(), (*name).to_owned());
            names.iter().map(pair).collect()
        };
        let mut all = fleet(&[("ill", asked("i", 1)), ("old", asked("o", 1))]);
        let is_suspect = |name: &str| name == "ill";
        for _ in 0..2 {
            apply(&mut all, &[], &named(&["ill", "old"]), is_suspect, 1_000);
        }
        assert_eq!(all.suspects, 1, "each counts once");
        apply(&mut all, &named(&["a", "b"]), &[], is_suspect, 2_000);
        let tried: Vec<bool> = ["a", "b"]
            .iter()
            .map(|name| all.machines[*name].is_tried)
            .collect();
        assert_eq!((tried, all.suspects), (vec![true, false], 0));
        // Under another name its cordon is another's.
        let list = [listed("a", "vm-1"), listed("b", "vm-2")];
        let found = reconcile(&mut all, &list, &mut BTreeMap::new(), BOOTS, 3_000);
        assert_eq!(
            (found.fresh, found.gone),
            (
                vec!["vm-1".to_owned(), "vm-2".to_owned()],
                vec!["a".to_owned()],
            )
        );
        assert!(all.machines["vm-1"].is_tried);
    }

    #[test]
    fn a_provider_may_name_machines_itself_and_have_some_that_nobody_remembers() {
        let mut all = fleet(&[("p--a", asked("a", 1_000))]);
        let mut missed = BTreeMap::new();
        let ended = ProviderMachine {
            state: "terminated".to_owned(),
            ..listed("x", "p--x")
        };
        let list = [
            listed("a", "vm-17"),
            listed("z", "vm-18"),
            ended,
            listed("y", "no name"),
        ];
        reconcile(&mut all, &list, &mut missed, BOOTS, 2_000);
        let names: Vec<&str> = all.machines.keys().map(String::as_str).collect();
        assert_eq!(names, ["vm-17", "vm-18"]);
        assert_eq!(all.machines["vm-17"].asked_ms, 1_000);
    }
}
