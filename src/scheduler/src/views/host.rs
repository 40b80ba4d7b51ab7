//! Renders hosts for people: state, jobs, and why a host is idle.

use fairlead_api::HostView;

use crate::{
    base::errors::{HostError, Refusal},
    core::Core,
    known::{cordons::Cordon, reservations::Reservation},
    views::explain::why_idle,
};

impl Core {
    /// One host for people.
    pub(crate) async fn host_view(&self, name: &str, explain: bool) -> Result<HostView, Refusal> {
        let Some(host) = self.lab.hosts.get(name) else {
            return Err(HostError::Unknown(name.to_owned()).into());
        };
        let jobs: Vec<_> = self
            .jobs
            .live
            .of_host(name)
            .iter()
            .map(|live| live.stored.state.job_id.to_string())
            .collect();
        let silent_ms = host
            .seen
            .map_or(u64::MAX, |seen| self.clock.now().0.saturating_sub(seen.0));
        let closure = self.lab.cordons.of(name);
        let state = if let Some(closure) = &closure {
            closure.state(jobs.len())
        } else if host.waiting > 0 {
            "waiting"
        } else if !jobs.is_empty() {
            "busy"
        } else if silent_ms > self.config.lease_ms {
            "silent"
        } else {
            "idle"
        };
        let mut idle: Vec<String> = closure.iter().map(Cordon::words).collect();
        if explain && jobs.is_empty() && closure.is_none() {
            idle = why_idle(self, name).await?;
        }
        Ok(HostView {
            hostname: name.to_owned(),
            kinds: host
                .kinds
                .iter()
                .map(|kind| kind.as_str().to_owned())
                .collect(),
            arch: host.arch,
            group: host.group,
            memory_mb: host.memory_mb,
            free_memory_mb: host.free_memory_mb,
            cpus: host.cpus,
            free_cpus: host.free_cpus,
            tags: host.tags,
            devices: host.devices,
            state: state.to_owned(),
            isolation: host.isolation,
            executors: host.executors,
            conflict: self.conflict(name),
            seen_ms: host.seen_ms,
            jobs,
            why_idle: idle,
            closed: closure.as_ref().map(Cordon::view),
            reserved: self.reserved(name).map(Reservation::view),
        })
    }

    /// All hosts for people.
    pub(crate) async fn host_views(&self) -> Result<Vec<HostView>, Refusal> {
        let mut views = Vec::new();
        for name in self.lab.hosts.names() {
            views.push(self.host_view(&name, false).await?);
        }
        Ok(views)
    }
}
