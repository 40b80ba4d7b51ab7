//! Cards, disks and CPUs in host files of lkp-tests and compass-ci, as devices and facts.

use fairlead_job::cpu_model;
use serde_json::{Map, Value};

use fairlead_known::{facts::Facts, hosts::Registered};

/// The keys of disks, and the device that one of them is.
const DISKS: [(&str, &str); 3] = [
    ("hdd_partitions", "hdd"),
    ("ssd_partitions", "ssd"),
    ("nvme_partitions", "nvme"),
];

/// Adds what a host file says in its own words: `cards` and partitions become devices; `brand`, `nr_node`, `nr_nic` and
/// `nr_disk` become facts.
pub(super) fn describe(registered: &mut Registered, body: &Map<String, Value>) {
    let facts = &mut registered.facts;
    if let Some(model) = body.get("brand").and_then(Value::as_str).map(cpu_model) {
        set(facts, "cpu-model", [model]);
    }
    for (key, family) in [
        ("nr_node", "nodes"),
        ("nr_nic", "nics"),
        ("nr_disk", "disks"),
    ] {
        if let Some(number) = body.get(key).and_then(number) {
            set(facts, family, [number.to_string()]);
        }
    }
    let disks = DISKS.iter().filter(|(key, _)| has_some(body, key));
    let disks: Vec<String> = disks.map(|(_, kind)| (*kind).to_owned()).collect();
    set(facts, "disk", disks.iter().cloned());
    for device in names(body.get("cards")).into_iter().chain(disks) {
        if !registered.devices.contains(&device) {
            registered.devices.push(device);
        }
    }
}

/// Says a family's values, if there are any that fit.
fn set(facts: &mut Facts, family: &str, values: impl IntoIterator<Item = String>) {
    let fits = |value: &String| (1..=64).contains(&value.len());
    let values: Vec<String> = values.into_iter().filter(fits).collect();
    if !values.is_empty() {
        facts.insert(family.to_owned(), values);
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Whether there are such disks: by their number, else by their list.
fn has_some(body: &Map<String, Value>, key: &str) -> bool {
    let of_number = body.get(&format!("nr_{key}")).and_then(number);
    of_number.map_or_else(|| !names(body.get(key)).is_empty(), |number| number > 0)
}

/// The names in a text, a list, or the keys of a map; at most 64.
fn names(value: Option<&Value>) -> Vec<String> {
    let names: Vec<&str> = match value {
        Some(Value::String(text)) => text.split([',', ' ']).collect(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        Some(Value::Object(map)) => map.keys().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    let fits = |name: &&str| (1..=128).contains(&name.len());
    let names = names.into_iter().filter(fits).take(64);
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_words_of_a_host_file_are_devices_and_facts() {
        let body = json!({
            "nr_node": 2, "nr_nic": "4", "brand": "Intel(R) Flows(TM) i7-4770 CPU @ 3.40GHz",
            "cards": ["gpu-a100", "hi1822"],
            "nr_hdd_partitions": 0, "hdd_partitions": "/dev/sda",
            "ssd_partitions": ["/dev/disk/by-id/ata-INTEL-part2"], "nvme_partitions": null,
        });
        let mut registered = Registered {
            devices: vec!["ssd".to_owned()],
            ..Registered::default()
        };
        describe(&mut registered, body.as_object().unwrap());
        assert_eq!(registered.devices, ["ssd", "gpu-a100", "hi1822"]);
        let said = |family: &str| registered.facts.get(family).cloned().unwrap_or_default();
        assert_eq!(said("nodes"), ["2"]);
        assert_eq!(said("nics"), ["4"]);
        assert_eq!(said("disk"), ["ssd"]);
        assert_eq!(said("cpu-model"), ["intel-flows-i7-4770"]);
    }
}
