//! How loaded a host is, in words.

use fairlead_api::{HostLoad, HostView};

/// Returns the word beside the state of a loaded host.
pub(super) fn word(host: &HostView) -> Option<String> {
    let loaded = host.load.is_some_and(|load| load.loaded);
    loaded.then(|| "loaded".to_owned())
}

/// Returns a line with the agent's measurements. `None`: not reported.
pub(super) fn line(host: &HostView) -> Option<String> {
    let load = host.load?;
    let HostLoad {
        memory_available_mb: available_mb,
        memory_total_mb: total_mb,
        ..
    } = load;
    let used = load.memory_used_percent();
    let pressures = [
        ("CPU", load.cpu_pressure_percent),
        ("memory", load.memory_pressure_percent),
    ];
    let pressures = pressures.into_iter().filter_map(|(what, percent)| {
        let percent = percent?;
        Some(format!("{what} pressure {percent} %"))
    });
    let memory = format!("{used} % of memory in use, {available_mb} of {total_mb} MB available");
    let parts: Vec<String> = std::iter::once(memory).chain(pressures).collect();
    Some(parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_says_what_it_measured() {
        let load = HostLoad {
            memory_total_mb: 1_000,
            memory_available_mb: 70,
            cpu_pressure_percent: Some(12),
            loaded: true,
            ..HostLoad::default()
        };
        let host = HostView {
            load: Some(load),
            ..HostView::default()
        };
        assert_eq!(
            line(&host).as_deref(),
            Some("93 % of memory in use, 70 of 1000 MB available; CPU pressure 12 %")
        );
        assert_eq!(word(&host).as_deref(), Some("loaded"));
        assert_eq!(
            (line(&HostView::default()), word(&HostView::default())),
            (None, None)
        );
    }
}
