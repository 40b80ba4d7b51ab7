//! Facts of the machine that the agent runs on, read from `/proc` and `/sys`.

use fairlead_job::cpu_model;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Values by family, as the scheduler takes them.
pub(crate) type Facts = BTreeMap<String, Vec<String>>;

/// Maximum length of a value that the scheduler accepts, bytes.
const VALUE_BYTES_MAX: usize = 95;
/// Maximum number of values of one family. Only four families (cpu, pci, usb, nic) have many, and the scheduler accepts
/// 1,000 in all.
const VALUES_MAX: usize = 240;
/// Prefixes of block devices that are not disks of the machine.
const NO_DISKS: [&str; 7] = ["loop", "ram", "zram", "dm-", "md", "sr", "fd"];

/// Reads the facts below `root`, which is `/` except in tests. Unreadable facts are left out. Blocks.
pub(crate) fn find(root: &Path) -> Facts {
    let mut facts = Facts::new();
    let mut say = |family: &str, values: BTreeSet<String>| {
        let values = values
            .into_iter()
            .filter(|value| (1..=VALUE_BYTES_MAX).contains(&value.len()));
        let values: Vec<String> = values.take(VALUES_MAX).collect();
        if !values.is_empty() {
            facts.insert(family.to_owned(), values);
        }
    };
    let cpuinfo = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
    let of_cpu = |names: [&str; 2]| {
        let mut pairs = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        pairs
            .find(|(name, _)| names.contains(&name.trim()))
            .map_or("", |(_, value)| value.trim())
    };
    let flags = of_cpu(["flags", "Features"]).split_whitespace();
    say("cpu", flags.map(str::to_owned).collect());
    say(
        "cpu-model",
        [cpu_model(of_cpu(["model name", "Model"]))].into(),
    );
    say(
        "kernel",
        [text_of(&root.join("proc/sys/kernel/osrelease"))].into(),
    );
    let firmware = ["bios_vendor", "bios_version", "bios_date"];
    let firmware = firmware.map(|file| text_of(&root.join("sys/class/dmi/id").join(file)));
    let firmware: Vec<&str> = firmware
        .iter()
        .flat_map(|text| text.split_whitespace())
        .collect();
    say("firmware", [firmware.join("-")].into());
    say("agent", [env!("CARGO_PKG_VERSION").to_owned()].into());
    say(
        "pci",
        ids(&root.join("sys/bus/pci/devices"), ["vendor", "device"]),
    );
    say(
        "usb",
        ids(&root.join("sys/bus/usb/devices"), ["idVendor", "idProduct"]),
    );
    let disks = disks(root);
    say("disks", [disks.len().to_string()].into());
    say("disk", disks.into_values().collect());
    let nics = nics(root);
    say("nics", [nics.len().to_string()].into());
    say("nic", nics.into_values().flatten().collect());
    let nodes = entries(&root.join("sys/devices/system/node"));
    let is_node = |path: &PathBuf| {
        let number = name_of(path).strip_prefix("node").unwrap_or_default();
        number.parse::<u32>().is_ok()
    };
    let nodes = nodes.iter().filter(|path| is_node(path)).count();
    say("nodes", [nodes.max(1).to_string()].into());
    facts
}

/// Returns `vendor:device` of each device of a bus, with four hexadecimal digits each.
fn ids(bus: &Path, files: [&str; 2]) -> BTreeSet<String> {
    let id = |path: &PathBuf| {
        let [vendor, device] = files.map(|file| text_of(&path.join(file)));
        let bare = |text: &str| text.trim_start_matches("0x").to_owned();
        (!vendor.is_empty() && !device.is_empty())
            .then(|| format!("{}:{}", bare(&vendor), bare(&device)))
    };
    entries(bus).iter().filter_map(id).collect()
}

/// Returns the disks by name, each with its type: `nvme`, `ssd`, `hdd` or `virtio`.
fn disks(root: &Path) -> BTreeMap<String, String> {
    let kind = |path: &PathBuf| {
        let name = name_of(path);
        let is_other = NO_DISKS.iter().any(|other| name.starts_with(other));
        let sectors = text_of(&path.join("size")).parse::<u64>().unwrap_or(0);
        if is_other || sectors == 0 || text_of(&path.join("removable")) == "1" {
            return None;
        }
        let kind = if name.starts_with("nvme") {
            "nvme"
        } else if name.starts_with("vd") {
            "virtio"
        } else if text_of(&path.join("queue/rotational")) == "0" {
            "ssd"
        } else {
            "hdd"
        };
        Some((name.to_owned(), kind.to_owned()))
    };
    entries(&root.join("sys/block"))
        .iter()
        .filter_map(kind)
        .collect()
}

/// Returns the network cards by name, each with its driver and, if a cable is connected, its speed such as
/// `10000-mbps`.
fn nics(root: &Path) -> BTreeMap<String, Vec<String>> {
    let nic = |path: &PathBuf| {
        let driver = fs::read_link(path.join("device/driver")).ok();
        if !path.join("device").exists() {
            // Skips bridges, tunnels and the loopback.
            return None;
        }
        let driver = driver.map(|driver| name_of(&driver).to_owned());
        let speed = text_of(&path.join("speed")).parse::<u32>().ok();
        let speed = speed.filter(|mbps| (1..1_000_000).contains(mbps));
        let speed = speed.map(|mbps| format!("{mbps}-mbps"));
        Some((
            name_of(path).to_owned(),
            driver.into_iter().chain(speed).collect(),
        ))
    };
    entries(&root.join("sys/class/net"))
        .iter()
        .filter_map(nic)
        .collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}

fn name_of(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

fn text_of(path: &Path) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn a_machine_tells_what_it_is() {
        let root = tempfile::tempdir().unwrap();
        put(
            root.path(),
            &[
                (
                    "proc/cpuinfo",
                    "model name\t: Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz\nflags\t\t: sse4_2 avx2\n",
                ),
                ("proc/sys/kernel/osrelease", "6.1.0-cloud\n"),
                ("sys/class/dmi/id/bios_vendor", "American Megatrends\n"),
                ("sys/class/dmi/id/bios_version", "5.1\n"),
                ("sys/bus/pci/devices/0000:00:1f.0/vendor", "0x8086\n"),
                ("sys/bus/pci/devices/0000:00:1f.0/device", "0x1521\n"),
                ("sys/bus/usb/devices/1-1/idVendor", "046d\n"),
                ("sys/bus/usb/devices/1-1/idProduct", "c52b\n"),
                ("sys/bus/usb/devices/1-1:1.0/other", ""),
                ("sys/block/sda/size", "1000\n"),
                ("sys/block/sda/queue/rotational", "1\n"),
                ("sys/block/sdb/size", "1000\n"),
                ("sys/block/sdb/queue/rotational", "0\n"),
                ("sys/block/sdc/size", "1000\n"),
                ("sys/block/sdc/removable", "1\n"),
                ("sys/block/nvme0n1/size", "1000\n"),
                ("sys/block/loop0/size", "1000\n"),
                ("sys/class/net/eth0/device/x", ""),
                ("sys/class/net/eth0/speed", "10000\n"),
                ("sys/class/net/lo/speed", "1\n"),
                ("sys/devices/system/node/node0/x", ""),
                ("sys/devices/system/node/node1/x", ""),
                ("sys/devices/system/node/possible", "0-1\n"),
            ],
        );
        let facts = find(root.path());
        let said = |family: &str| facts.get(family).cloned().unwrap_or_default();
        assert_eq!(said("cpu"), ["avx2", "sse4_2"]);
        assert_eq!(said("cpu-model"), ["intel-xeon-gold-6248"]);
        assert_eq!(said("kernel"), ["6.1.0-cloud"]);
        assert_eq!(said("firmware"), ["American-Megatrends-5.1"]);
        assert_eq!(said("agent"), [env!("CARGO_PKG_VERSION")]);
        assert_eq!(said("pci"), ["8086:1521"]);
        assert_eq!(said("usb"), ["046d:c52b"]);
        assert_eq!(said("disk"), ["hdd", "nvme", "ssd"]);
        assert_eq!(said("disks"), ["3"]);
        assert_eq!(said("nic"), ["10000-mbps"]);
        assert_eq!(said("nics"), ["1"]);
        assert_eq!(said("nodes"), ["2"]);
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let facts = find(tempfile::tempdir().unwrap().path());
        let said: Vec<_> = facts
            .iter()
            .map(|(family, values)| (family.as_str(), values.join(",")))
            .collect();
        let number = |n: &str| n.to_owned();
        assert_eq!(
            said,
            [
                ("agent", number(env!("CARGO_PKG_VERSION"))),
                ("disks", number("0")),
                ("nics", number("0")),
                ("nodes", number("1"))
            ]
        );
    }
}
