//! Machines that boot over the network: iPXE and grub scripts, native JSON, and the job as an initrd.
//!
//! Such a machine has no agent and no heartbeats, so each boot is its own session. A job that was only dispatched is
//! handed out again. A job that had begun is lost, because its machine has just booted without it.

use std::{net::IpAddr, sync::Arc};

use fairlead_api::{ConsumeRequest, Grant, UnknownMachine};
use fairlead_job::{JobId, Stage};
use fairlead_store::JobState;
use serde_json::json;

use crate::{
    hosts::{
        HostFlow,
        boot_script::{self, BootType, JobBoot, arch_of, line},
        initrd,
    },
    jobs::specs::hide_receivers,
};
use fairlead_base::{
    errors::{HostError, JobError, PeopleError, Refusal, RequestError},
    query::Query,
    sealing::{Sealer, is_boot_token},
};
use fairlead_known::{
    accounts::{Credentials, Who},
    hosts::{Host, UNKNOWN_MEMORY_MB, canonical_mac},
    work_request::{WAIT_S_MAX, WorkRequest},
};
use fairlead_lifecycle::{
    after_report::Speaker,
    attempt::{BOOT_SESSION, without_kernel},
    report::Report,
};

/// How long a box waits for a job when it does not say, seconds.
const WAIT_S: u32 = 30;

/// How a box reached us.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Came<'a> {
    /// The address that it used, `HOST:PORT`.
    pub(crate) host: &'a str,
    /// Its own address, if that is known.
    pub(crate) address: Option<IpAddr>,
}

/// The answer to a box: a script or JSON.
#[derive(Debug)]
pub(crate) struct BootAnswer {
    pub(crate) json: bool,
    pub(crate) text: String,
}

impl HostFlow {
    /// A box at this address asks what to boot; waits for a job.
    pub(crate) async fn boot(
        self: &Arc<Self>,
        boot_type: BootType,
        query: &Query,
        came: &Came<'_>,
        who: &Who,
    ) -> Result<BootAnswer, Refusal> {
        let sched = scheduler_address(query, came.host);
        let token = self.boot_token(query, who);
        let token = token.as_deref();
        let answer = |text| BootAnswer {
            json: boot_type == BootType::Native,
            text,
        };
        let wait_s = wait_of(query)?;
        let Some(name) = self.booting_host(query) else {
            self.note_unknown(query, came)?;
            return Ok(answer(boot_script::unknown(boot_type, &sched, token)));
        };
        who.require_host(&name)?;
        let ask = self.boot_ask(&name, query, wait_s)?.by(&who.name);
        let arch = ask.host.arch.clone();
        let mut granted = self.consume(ask).await?;
        let idle = || answer(boot_script::idle(boot_type, &sched, token, &name));
        let Some(grant) = granted.jobs.first_mut() else {
            return Ok(idle());
        };
        if !self.ctx.config.boot_secrets {
            Sealer::withhold(&mut grant.job);
        }
        let files = self.placement.boot_files(&grant.job, &arch).await;
        // Who boots it as it likes needs no kernel of ours.
        if let Some(problem) = files
            .problem
            .as_ref()
            .filter(|_| boot_type != BootType::Native)
        {
            self.wait_for_kernel(grant, problem).await;
            return Ok(idle());
        }
        let boot = JobBoot {
            grant,
            sched: &sched,
            arch: &arch,
            files,
            secrets_key: self.secrets_key(grant, came.address),
        };
        Ok(answer(boot.text(boot_type)))
    }

    /// Puts a job back that this box cannot boot: another kernel would give wrong results.
    async fn wait_for_kernel(self: &Arc<Self>, grant: &Grant, problem: &str) {
        let id = grant.job_id.parse().ok();
        if let Some(live) = id.and_then(|id| self.jobs.live.get(id)) {
            let next = |state: &JobState, now_ms| without_kernel(state, now_ms, problem);
            self.put_off(&live.stored.state, next).await;
        }
    }

    /// Who asks for the boot of a box: an account, or the script that the box got for it before.
    pub(crate) fn who_boots(&self, query: &Query, said: &Credentials) -> Result<Who, PeopleError> {
        let accounts = &self.people.accounts;
        let of_boot = query.get("token").filter(|token| is_boot_token(token));
        let who = match of_boot.filter(|_| accounts.tokens_needed()) {
            None => accounts.identify(said)?,
            Some(token) => {
                // What a machine got before somebody registered it is good for it still.
                let known = query
                    .get("mac")
                    .filter(|mac| self.lab.hosts.by_mac(mac).is_some());
                let mut boxes = [Some(self.booting_box(query)), known.map(of_mac)].into_iter();
                let account =
                    boxes.find_map(|whose| self.ctx.sealer.account_of_boot(token, &whose?));
                let named = account.and_then(|account| accounts.named(account));
                named.ok_or(PeopleError::UnknownToken)?
            }
        };
        who.require_worker()?;
        Ok(who)
    }

    /// What the script of a box says instead of the account's token, which is good for all of its hosts.
    fn boot_token(&self, query: &Query, who: &Who) -> Option<String> {
        let needs_one = self.people.accounts.tokens_needed() && query.get("token").is_some();
        needs_one.then(|| {
            self.ctx
                .sealer
                .boot_token(&who.name, &self.booting_box(query))
        })
    }

    /// Which box asks, by its name, or else by its MAC address.
    fn booting_box(&self, query: &Query) -> String {
        let of_host = self.booting_host(query).map(|name| format!("host/{name}"));
        of_host.unwrap_or_else(|| of_mac(query.get("mac").unwrap_or_default()))
    }

    /// The name of the box: that of its registered MAC address, else as it says.
    fn booting_host(&self, query: &Query) -> Option<String> {
        let by_mac = query.get("mac").and_then(|mac| self.lab.hosts.by_mac(mac));
        let named = query.get("hostname").filter(|name| !name.is_empty());
        by_mac.or(named.map(str::to_owned))
    }

    /// Remembers a machine that is not registered, for an admin.
    fn note_unknown(&self, query: &Query, came: &Came<'_>) -> Result<(), HostError> {
        let mac = query.get("mac").map(canonical_mac);
        let mac = mac.filter(|mac| is_mac(mac)).ok_or(HostError::NoName)?;
        let wall_ms = self.ctx.clock.wall_ms();
        let arch = query.get("arch").map(arch_of).unwrap_or_default();
        let machine = UnknownMachine {
            mac,
            arch: arch.chars().filter(|c| !c.is_control()).take(32).collect(),
            address: came.address.map_or_else(String::new, |ip| ip.to_string()),
            first_ms: wall_ms,
            last_ms: wall_ms,
        };
        self.unknown.note(self.ctx.clock.now(), machine);
        Ok(())
    }

    fn boot_ask(&self, name: &str, query: &Query, wait_s: u32) -> Result<WorkRequest, Refusal> {
        let known = self.lab.hosts.get(name).unwrap_or_default();
        // A registered architecture wins: firmware does not know better. An assumed one does not.
        let is_assumed = known.registered.as_ref().is_some_and(|by| !by.names_arch);
        let said = query.get("arch").map(arch_of).unwrap_or_default();
        let mut arch = [known.arch.as_str(), said, &self.ctx.config.site.arch];
        if is_assumed {
            arch.swap(0, 1);
        }
        let mut arch = arch.into_iter();
        let arch = arch.find(|arch| !arch.is_empty()).unwrap_or_default();
        let memory_mb = memory_of(query, &known)?;
        let request = ConsumeRequest {
            content: Vec::new(),
            load: None,
            session: format!("{BOOT_SESSION}{}", uuid::Uuid::new_v4().simple()),
            request: 1,
            seen: None,
            kinds: vec!["hw".to_owned()],
            arch: arch.to_owned(),
            group: known.group,
            memory_mb,
            free_memory_mb: memory_mb,
            cpus: known.cpus,
            free_cpus: None,
            tags: if query.get("tags").is_some() {
                query.list("tags")
            } else {
                known.tags
            },
            devices: known.devices,
            cache_dirs: known.cache_dirs,
            jobs_max: 1,
            wait_s,
            running: Vec::new(),
            instance: String::new(),
            isolation: String::new(),
            executors: Vec::new(),
            facts: known.facts,
        };
        WorkRequest::of(name, request)
    }

    /// Opens the secrets of this attempt to a box at this address; empty: they stay here.
    fn secrets_key(&self, grant: &Grant, address: Option<IpAddr>) -> String {
        let is_given = self.ctx.config.boot_secrets && grant.job.contains_key("secrets");
        let address = address.filter(|_| is_given);
        address.map_or_else(String::new, |address| {
            self.ctx.sealer.secrets_key(&grant.job_token, address)
        })
    }

    /// The job as an initrd. Its first download means that the box boots. `here` is how the box reaches us.
    pub(crate) async fn job_initrd(
        self: &Arc<Self>,
        id: JobId,
        token: &str,
        secrets_key: Option<&str>,
        came: &Came<'_>,
    ) -> Result<Vec<u8>, Refusal> {
        let job = self.jobs.job_of_token(id, Some(token)).await?;
        let speaker = self.jobs.speaker(&job.state, Some(token), None, None)?;
        if speaker != Speaker::Present {
            return Err(JobError::BootOver.into());
        }
        let mut bodies = self.jobs.specs(&[&job.state]).await?;
        let Some(mut spec) = bodies.pop().flatten() else {
            return Err(JobError::Unknown(id).into());
        };
        // Each box that was booted to the job may read its secrets, until it says that it runs.
        let is_booting = matches!(job.state.stage, Stage::Dispatch | Stage::Boot);
        let may_read = secrets_key.zip(came.address).is_some_and(|(key, address)| {
            self.ctx.config.boot_secrets && self.ctx.sealer.is_secrets_key(key, token, address)
        });
        if is_booting && may_read {
            self.ctx.sealer.open_secrets(&mut spec)?;
        } else {
            Sealer::withhold(&mut spec);
        }
        hide_receivers(&mut spec);
        let here = came.host;
        if job.state.stage == Stage::Dispatch {
            let boot = Report {
                stage: Some(Stage::Boot),
                token: Some(token.to_owned()),
                ..Report::default()
            };
            self.jobs.report(id, &boot, None).await?;
        }
        let about = initrd::About {
            state: &job.state,
            token,
            here,
            schedulers: initrd::schedulers(
                here,
                &self.ctx.replicas.url,
                &self.ctx.replicas.peers(self.ctx.clock.now()),
            ),
        };
        let packed = initrd::archive(spec, &about);
        packed.map_err(|error| {
            tracing::error!(job_id = %id, %error, "the initrd of a job could not be built");
            HostError::NotPacked.into()
        })
    }
}

fn of_mac(mac: &str) -> String {
    format!("mac/{}", canonical_mac(mac))
}

/// Whether a text is a MAC address in the usual spelling.
fn is_mac(text: &str) -> bool {
    let is_byte = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
    text.split(':').count() == 6 && text.split(':').all(is_byte)
}

/// How long the box waits, seconds.
fn wait_of(query: &Query) -> Result<u32, RequestError> {
    let wait = query.number("wait", 0..=u64::from(WAIT_S_MAX), u64::from(WAIT_S))?;
    Ok(u32::try_from(wait).unwrap_or(WAIT_S_MAX))
}

/// Memory of the box: as it says, else as it is registered, MB.
fn memory_of(query: &Query, known: &Host) -> Result<u32, HostError> {
    match query.get("memory") {
        Some(text) => fairlead_job::units::memory_mb(&json!(text))
            .map_err(|error| HostError::BadMemory(error.to_string())),
        None if known.memory_mb > 0 => Ok(known.memory_mb),
        None => Ok(UNKNOWN_MEMORY_MB),
    }
}

/// How the box reaches us: as it says, else as it just did.
fn scheduler_address(query: &Query, here: &str) -> String {
    match (query.get("sched_host"), query.get("sched_port")) {
        (Some(host), Some(port)) => format!("{}:{}", line(host), line(port)),
        (Some(host), None) => line(host),
        _ => here.to_owned(),
    }
}
