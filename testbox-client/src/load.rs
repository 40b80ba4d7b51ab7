//! Reads how loaded the machine is: its memory, its pressure, and the control group that bounds the agent.
//!
//! The kernel's texts are read below a root, which is `/` but for tests. A missing file says nothing.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use crate::protocol::Measured;

/// Maximum length of a text that is read, bytes. The kernel's texts are shorter.
const TEXT_BYTES_MAX: u64 = 64 * 1024;
/// Maximum nesting depth of control groups.
const GROUPS_DEEP_MAX: usize = 32;

/// Memory in bytes: the total, and the part available to programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Memory {
    total: u64,
    available: u64,
}

/// File names of one version of control groups.
struct Names {
    limit: &'static str,
    usage: &'static str,
    /// Field of `memory.stat` for inactive file cache, which the kernel drops first.
    inactive: &'static str,
}

const VERSION_2: Names = Names {
    limit: "memory.max",
    usage: "memory.current",
    inactive: "inactive_file",
};

const VERSION_1: Names = Names {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    inactive: "total_inactive_file",
};

/// Measures the machine below `root`. `None`: its memory is unknown. Blocks for a moment.
pub(crate) fn measure(root: &Path) -> Option<Measured> {
    let machine = of_machine(&text_of(&root.join("proc/meminfo"))?)?;
    let groups = groups(&text_of(&root.join("proc/self/cgroup")).unwrap_or_default());
    let bounds = groups.iter().flat_map(|(top, group, names)| {
        let within = group.ancestors().take(GROUPS_DEEP_MAX);
        let top = root.join(top);
        within.filter_map(move |group| of_group(&top.join(group), names))
    });
    // Either the machine or a control group may be the tighter limit.
    let tightest =
        bounds
            .filter(|bound| bound.total < machine.total)
            .fold(machine, |one, other| Memory {
                total: one.total.min(other.total),
                available: one.available.min(other.available),
            });
    let pressure = |what: &str| pressure_percent(&text_of(&root.join("proc/pressure").join(what))?);
    Some(Measured {
        total_mb: mb(tightest.total),
        available_mb: mb(tightest.available),
        cpu_pressure_percent: pressure("cpu"),
        memory_pressure_percent: pressure("memory"),
    })
}

fn mb(bytes: u64) -> u32 {
    u32::try_from(bytes >> 20).unwrap_or(u32::MAX)
}

fn text_of(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    file.take(TEXT_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Returns the machine's memory from `/proc/meminfo`.
fn of_machine(text: &str) -> Option<Memory> {
    let field = |name: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kb = rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
        Some(kb.saturating_mul(1024))
    };
    let total = field("MemTotal:").filter(|total| *total > 0)?;
    let available = field("MemAvailable:")?.min(total);
    Some(Memory { total, available })
}

/// Returns the control groups of the agent from `/proc/self/cgroup`: mount point, path and file names.
fn groups(text: &str) -> Vec<(&'static str, PathBuf, Names)> {
    let group = |line: &str| {
        let mut parts = line.splitn(3, ':');
        let (number, parts_of, path) = (parts.next()?, parts.next()?, parts.next()?);
        // The path must stay below the mount.
        let path: PathBuf = path
            .split('/')
            .filter(|part| !matches!(*part, "" | "." | ".."))
            .collect();
        if parts_of.split(',').any(|part| part == "memory") {
            Some(("sys/fs/cgroup/memory", path, VERSION_1))
        } else if number == "0" && parts_of.is_empty() {
            Some(("sys/fs/cgroup", path, VERSION_2))
        } else {
            None
        }
    };
    text.lines().filter_map(group).collect()
}

/// Returns the memory limit of a control group. `None`: no limit.
fn of_group(folder: &Path, names: &Names) -> Option<Memory> {
    let number = |file: &str| text_of(&folder.join(file))?.trim().parse::<u64>().ok();
    let total = number(names.limit).filter(|total| *total > 0)?;
    let usage = number(names.usage)?;
    let stat = text_of(&folder.join("memory.stat")).unwrap_or_default();
    let mut fields = stat.lines().filter_map(|line| line.split_once(' '));
    let inactive = fields.find(|(name, _)| *name == names.inactive);
    let inactive = inactive
        .and_then(|(_, bytes)| bytes.trim().parse().ok())
        .unwrap_or(0);
    let available = total
        .saturating_sub(usage.saturating_sub(inactive))
        .min(total);
    Some(Memory { total, available })
}

/// Returns `some avg10` of a file below `/proc/pressure`, in whole percent.
fn pressure_percent(text: &str) -> Option<u8> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let average = some
        .split_whitespace()
        .find_map(|field| field.strip_prefix("avg10="))?;
    let (whole, rest) = average.split_once('.').unwrap_or((average, ""));
    let half = rest.bytes().next().is_some_and(|digit| digit >= b'5');
    let percent = whole.parse::<u8>().ok()?.saturating_add(u8::from(half));
    Some(percent.min(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const MEMINFO: (&str, &str) = (
        "proc/meminfo",
        "MemTotal:       16777216 kB\nMemFree:          102400 kB\nMemAvailable:    8388608 kB\n",
    );

    fn memory(files: &[(&str, &str)]) -> Option<(u32, u32)> {
        let measured = measure(machine(files).path())?;
        Some((measured.total_mb, measured.available_mb))
    }

    #[test]
    fn the_machine_s_memory_is_read() {
        assert_eq!(memory(&[MEMINFO]), Some((16_384, 8_192)));
        assert_eq!(memory(&[]), None);
        for text in [
            "",
            "MemTotal: 5 kB\n",
            "MemTotal: x kB\nMemAvailable: 1 kB\n",
            "MemTotal: 0 kB\nMemAvailable: 0 kB",
        ] {
            assert_eq!(memory(&[("proc/meminfo", text)]), None, "{text:?}");
        }
    }

    #[test]
    fn pressure_is_read_and_rounded() {
        let of = |avg10: &str| {
            pressure_percent(&format!(
                "some avg10={avg10} avg60=1.00 avg300=2.00 total=7\nfull avg10=3.00 avg60=0.00 avg300=0.00 total=0\n"
            ))
        };
        assert_eq!(
            [of("0.00"), of("12.49"), of("94.50"), of("100.00")],
            [Some(0), Some(12), Some(95), Some(100)]
        );
        assert_eq!(
            [of("x"), of(""), pressure_percent("full avg10=1.00")],
            [None; 3]
        );
        let read = |files: &[(&str, &str)]| {
            let measured = measure(machine(files).path()).unwrap();
            (
                measured.cpu_pressure_percent,
                measured.memory_pressure_percent,
            )
        };
        assert_eq!(
            read(&[MEMINFO]),
            (None, None),
            "an old kernel does not tell"
        );
        let some = "some avg10=7.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(
            read(&[MEMINFO, ("proc/pressure/cpu", some)]),
            (Some(7), None)
        );
        assert_eq!(
            read(&[MEMINFO, ("proc/pressure/memory", some)]),
            (None, Some(7))
        );
    }

    #[test]
    fn a_control_group_bounds_the_memory() {
        let gb = |n: u64| (n << 30).to_string();
        let (four, three, one) = (gb(4), gb(3), gb(1));
        let inactive = format!("anon 5\ninactive_file {one}\nactive_file 9\n");
        let inner: &[(&str, &str)] = &[
            MEMINFO,
            ("proc/self/cgroup", "0::/lab/agent\n"),
            ("sys/fs/cgroup/lab/memory.max", &four),
            ("sys/fs/cgroup/lab/memory.current", &three),
            ("sys/fs/cgroup/lab/memory.stat", &inactive),
            ("sys/fs/cgroup/lab/agent/memory.max", "max\n"),
            ("sys/fs/cgroup/lab/agent/memory.current", &one),
        ];
        assert_eq!(
            memory(inner),
            Some((4_096, 2_048)),
            "what can be dropped is available"
        );
        let container: &[(&str, &str)] = &[
            MEMINFO,
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", &four),
            ("sys/fs/cgroup/memory.current", &three),
        ];
        assert_eq!(memory(container), Some((4_096, 1_024)));
        let old_inactive = format!("inactive_file 1\ntotal_inactive_file {one}\n");
        let old: &[(&str, &str)] = &[
            MEMINFO,
            (
                "proc/self/cgroup",
                "9:name=systemd:/\n4:cpu,memory:/lab\n0::/\n",
            ),
            ("sys/fs/cgroup/memory/lab/memory.limit_in_bytes", &four),
            ("sys/fs/cgroup/memory/lab/memory.usage_in_bytes", &three),
            ("sys/fs/cgroup/memory/lab/memory.stat", &old_inactive),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", &one),
        ];
        assert_eq!(memory(old), Some((4_096, 2_048)));
    }

    #[test]
    fn a_group_that_is_wider_than_the_machine_bounds_nothing() {
        let wide = (64_u64 << 30).to_string();
        let files: &[(&str, &str)] = &[
            MEMINFO,
            ("proc/self/cgroup", "0::/../../x\n"),
            ("sys/fs/cgroup/x/memory.max", &wide),
            ("sys/fs/cgroup/x/memory.current", &wide),
        ];
        assert_eq!(memory(files), Some((16_384, 8_192)));
    }
}
