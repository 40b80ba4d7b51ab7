//! Processor time: of a process of this machine, and of Elasticsearch.

use std::{fs, time::Duration};

use crate::Http;

/// Number of kernel ticks in a second in `/proc`, on every Linux.
const TICKS_S: u64 = 100;

/// Returns the processor time of a process so far, over all its threads.
pub fn of_process(id: u32) -> Duration {
    let path = format!("/proc/{id}/stat");
    let stat = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    // The process name may contain anything, so fields are counted after its closing bracket.
    let rest = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok());
    let (user, system) = (ticks(11), ticks(12));
    let ticks = user.zip(system).map(|(user, system)| user + system);
    let ticks = ticks.unwrap_or_else(|| panic!("{path}: {stat}"));
    Duration::from_millis(ticks * 1000 / TICKS_S)
}

/// Returns the processor time of all nodes of an Elasticsearch so far.
pub async fn of_elasticsearch(http: &Http) -> Duration {
    let path = "/_nodes/stats/process?filter_path=nodes.*.process.cpu.total_in_millis";
    let stats = http.get(path).await.json();
    let nodes = stats["nodes"].as_object().into_iter().flatten();
    let ms = nodes.filter_map(|(_, node)| node["process"]["cpu"]["total_in_millis"].as_u64());
    Duration::from_millis(ms.sum())
}
