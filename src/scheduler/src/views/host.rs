//! Renders hosts for people: state, jobs, and why a host is idle.

use std::collections::BTreeSet;

use fairlead_api::{HostView, RegisteredView};
use fairlead_store::JobState;

use crate::views::{ViewFlow, explain_idle::why_idle};
use fairlead_base::errors::{HostError, Refusal};
use fairlead_known::{cordons::Cordon, hosts::Host, reservations::Reservation};

impl ViewFlow {
    /// One host for people.
    pub(crate) async fn host_view(&self, name: &str, explain: bool) -> Result<HostView, Refusal> {
        let closure = self.lab.cordons.of(name);
        // One that is forgotten may be closed by its name.
        let forgotten = || closure.is_some().then(Host::default);
        let Some(host) = self.lab.hosts.get(name).or_else(forgotten) else {
            return Err(HostError::Unknown(name.to_owned()).into());
        };
        let held = self.jobs.live.of_host(name);
        let held: Vec<JobState> = held.iter().map(|live| live.stored.state.clone()).collect();
        let jobs: Vec<String> = held.iter().map(|job| job.job_id.to_string()).collect();
        let state = self.host_state(&host, jobs.len(), closure.as_ref());
        let mut idle: Vec<String> = closure.iter().map(Cordon::words).collect();
        if explain && jobs.is_empty() && closure.is_none() {
            idle = why_idle(self, name).await?;
        }
        let empties = if explain && closure.is_some() {
            self.empties(&held).await?
        } else {
            None
        };
        let (tags, devices, facts) = (host.given_tags(), host.all_devices(), host.all_facts());
        let registered = host.registered.as_ref().map(|said| RegisteredView {
            tags: said.tags.clone(),
            devices: said.devices.clone(),
        });
        Ok(HostView {
            registered,
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
            tags,
            devices,
            facts,
            state: state.to_owned(),
            isolation: host.isolation,
            executors: host.executors,
            load: host.load,
            conflict: self.hosts.conflict(name),
            seen_ms: host.seen_ms,
            jobs,
            why_idle: idle,
            empties,
            closed: closure.as_ref().map(Cordon::view),
            reserved: self.placement.reserved(name).map(Reservation::view),
        })
    }

    /// The state of a host with so many jobs, in one word.
    pub(crate) fn host_state(
        &self,
        host: &Host,
        jobs: usize,
        closure: Option<&Cordon>,
    ) -> &'static str {
        let silent_ms = host.seen.map_or(u64::MAX, |seen| {
            self.ctx.clock.now().0.saturating_sub(seen.0)
        });
        if let Some(closure) = closure {
            closure.state(jobs)
        } else if host.waiting > 0 {
            "waiting"
        } else if jobs > 0 {
            "busy"
        } else if silent_ms > self.ctx.config.lease_ms {
            if host.registered.is_some() {
                "off"
            } else {
                "silent"
            }
        } else {
            "idle"
        }
    }

    /// The names of hosts with all of these tags.
    pub(crate) fn host_names(&self, tags: &[String]) -> BTreeSet<String> {
        let has_all = |name: &String| {
            tags.is_empty()
                || self.lab.hosts.get(name).is_some_and(|host| {
                    let its = host.all_tags();
                    tags.iter().all(|tag| its.contains(tag))
                })
        };
        let mut names: BTreeSet<String> = self.lab.hosts.names().into_iter().collect();
        names.extend(self.lab.cordons.shut());
        names.retain(has_all);
        names
    }
}
