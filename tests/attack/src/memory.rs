//! Memory use of a process, and bodies that need much memory.

use std::fs;

/// Returns a value of `/proc/PID/status`, bytes.
fn status_bytes(pid: u32, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or_else(|| panic!("no {name} of process {pid}")) << 10
}

/// Returns the present memory use, bytes.
pub fn now_bytes(pid: u32) -> u64 {
    status_bytes(pid, "VmRSS:")
}

/// Returns the peak memory use, bytes.
pub fn peak_bytes(pid: u32) -> u64 {
    status_bytes(pid, "VmHWM:")
}

/// Returns a job file of 50 KB, most of it a script, that expands to this number of jobs: 100 to 10,000.
pub fn yaml_bomb(jobs: usize) -> Vec<u8> {
    let script = "x".repeat(50 << 10);
    let list = |n: usize| {
        (1..=n)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    format!(
        "suite: bomb\ntestbox: dc\nscript: {script}\na: [{}]\nb: [{}]\n",
        list(jobs / 100),
        list(100)
    )
    .into_bytes()
}

/// Returns sixteen megabytes of JSON with eight million values.
pub fn wide_array() -> Vec<u8> {
    let mut body = b"[".to_vec();
    body.extend(b"0,".repeat((8 << 20) - 2));
    body.extend(b"0]");
    body
}

/// Returns sixteen megabytes of JSON with jobs that are small as text and large as values.
pub fn wide_jobs() -> Vec<u8> {
    let job = format!("{{\"suite\":\"x\",\"wide\":[{}0]}}", "0,".repeat(800));
    let jobs = vec![job; 9_000];
    format!("[{}]", jobs.join(",")).into_bytes()
}
