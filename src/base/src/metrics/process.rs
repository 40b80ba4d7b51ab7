//! Figures of this process from the operating system, under the names that Prometheus' own clients use. Linux has them;
//! elsewhere there is nothing to say.

use std::fs;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};

/// Ticks of a second in `/proc/PID/stat`. Linux shows this number to programs, whatever its own tick is.
const TICKS_A_SECOND: f64 = 100.0;
/// Bytes of a kilobyte in `/proc/PID/status`.
const KB: u64 = 1024;

/// Collector that reads the figures for each scrape.
#[derive(Debug)]
pub(super) struct Process;

/// The figures.
#[derive(Debug, Default, PartialEq)]
struct Figures {
    cpu_seconds: f64,
    resident_bytes: u64,
    virtual_bytes: u64,
    threads: u64,
    /// Time from the start of the machine to that of the process, s.
    started_s: f64,
}

/// Returns the figures in the texts of `/proc/self/stat` and `/proc/self/status`.
fn figures(stat: &str, status: &str) -> Option<Figures> {
    // The name of the program, in brackets, may have blanks and brackets itself.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // The first one behind the name is field 3 of proc(5).
    let field = |n: usize| fields.get(n - 3)?.parse::<u64>().ok();
    #[expect(clippy::cast_precision_loss, reason = "seconds of a process")]
    let seconds = |ticks: u64| ticks as f64 / TICKS_A_SECOND;
    let kb = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let number = line.trim_start_matches(':').split_whitespace().next()?;
        Some(number.parse::<u64>().ok()?.saturating_mul(KB))
    };
    Some(Figures {
        cpu_seconds: seconds(field(14)?.saturating_add(field(15)?)),
        resident_bytes: kb("VmRSS")?,
        virtual_bytes: kb("VmSize")?,
        threads: field(20)?,
        started_s: seconds(field(22)?),
    })
}

/// Returns the start of the machine, UTC epoch seconds.
fn booted_s() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok()
}

/// Returns the number of open files, and its limit.
fn files() -> Option<(u64, Option<u64>)> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let most = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    Some((u64::try_from(open).ok()?, most))
}

fn gauge_of(
    to: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    unit: Option<&Unit>,
    value: u64,
) -> std::fmt::Result {
    let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    let encoder = to.encode_descriptor(name, help, unit, gauge.metric_type())?;
    gauge.encode(encoder)
}

fn seconds_of(
    to: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    value: f64,
) -> std::fmt::Result {
    let gauge = ConstGauge::new(value);
    let encoder = to.encode_descriptor(name, help, Some(&Unit::Seconds), gauge.metric_type())?;
    gauge.encode(encoder)
}

impl Collector for Process {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> std::fmt::Result {
        let read =
            |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        let Some(known) = figures(&read("stat"), &read("status")) else {
            return Ok(());
        };
        let cpu = ConstCounter::new(known.cpu_seconds);
        let help = "Processor time of this process, user and system.";
        let kind = cpu.metric_type();
        let encoder = to.encode_descriptor("process_cpu", help, Some(&Unit::Seconds), kind)?;
        cpu.encode(encoder)?;
        let named = ("process_resident_memory", "Memory of this process.");
        gauge_of(&mut to, named, Some(&Unit::Bytes), known.resident_bytes)?;
        let named = ("process_virtual_memory", "Address space of this process.");
        gauge_of(&mut to, named, Some(&Unit::Bytes), known.virtual_bytes)?;
        let named = ("process_threads", "Threads of this process.");
        gauge_of(&mut to, named, None, known.threads)?;
        if let Some(booted_s) = booted_s() {
            let named = (
                "process_start_time",
                "When this process started, UTC epoch seconds.",
            );
            seconds_of(&mut to, named, booted_s + known.started_s)?;
        }
        if let Some((open, most)) = files() {
            gauge_of(&mut to, ("process_open_fds", "Open files."), None, open)?;
            if let Some(most) = most {
                let named = ("process_max_fds", "Files that may be open.");
                gauge_of(&mut to, named, None, most)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_hides_no_figure() {
        let stat = "77 (a) b) R 1 77 77 0 -1 4194304 500 0 0 0 250 150 0 0 20 0 9 0 1000 2000 30 18446744073709551615";
        let status = "Name:\ta) b\nVmSize:\t    2000 kB\nVmRSS:\t     120 kB\n";
        let expected = Figures {
            cpu_seconds: 4.0,
            resident_bytes: 120 * 1024,
            virtual_bytes: 2000 * 1024,
            threads: 9,
            started_s: 10.0,
        };
        assert_eq!(figures(stat, status), Some(expected));
        assert_eq!(figures("", status), None);
    }
}
