//! Machines that boot over the network: iPXE and grub scripts, native JSON, and the job as an initrd.
//!
//! Such a machine has no agent and no heartbeats, so each boot is its own session. A job that was only dispatched is
//! handed out again. A job that had begun is lost, because its machine has just booted without it.

use fairlead_api::{ConsumeRequest, Grant};
use fairlead_job::{JobId, Spec, Stage};
use serde_json::{Value, json};

use crate::{
    base::{
        errors::{HostError, JobError, Refusal, RequestError, excerpt},
        query::Query,
    },
    core::Core,
    hosts::initrd,
    known::{
        accounts::Who,
        hosts::{Host, UNKNOWN_MEMORY_MB},
        work_request::{WAIT_S_MAX, WorkRequest},
    },
    lifecycle::{after_report::Speaker, attempt::BOOT_SESSION, report::Report},
};

/// How long a box waits for a job when it does not say, seconds.
const WAIT_S: u32 = 30;

/// How a box boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BootType {
    Ipxe,
    Grub,
    Native,
}

impl BootType {
    pub(crate) fn parse(text: &str) -> Result<Self, HostError> {
        match text {
            "ipxe" => Ok(Self::Ipxe),
            "grub" => Ok(Self::Grub),
            "native" => Ok(Self::Native),
            _ => Err(HostError::BadBootType(excerpt(text))),
        }
    }
}

/// The answer to a box: a status and a text (a script or JSON).
#[derive(Debug)]
pub(crate) struct BootAnswer {
    pub(crate) status: u16,
    pub(crate) json: bool,
    pub(crate) text: String,
}

impl Core {
    /// A box asks what to boot; waits for a job.
    pub(crate) async fn boot(
        self: &std::sync::Arc<Self>,
        boot_type: BootType,
        query: &Query,
        here: &str,
        who: &Who,
    ) -> Result<BootAnswer, Refusal> {
        let ask = self.boot_ask(query)?;
        let host = ask.offerer.host.clone();
        who.require_host(&host)?;
        let answer = self.consume(ask).await?;
        let sched = scheduler_address(query, here);
        Ok(match answer.jobs.first() {
            Some(grant) => BootAnswer {
                status: 200,
                json: boot_type == BootType::Native,
                text: job_script(boot_type, grant, &sched),
            },
            None => BootAnswer {
                status: 404,
                json: boot_type == BootType::Native,
                text: idle_script(boot_type, &sched, query, &host),
            },
        })
    }

    fn boot_ask(&self, query: &Query) -> Result<WorkRequest, Refusal> {
        let wait_s = wait_of(query)?;
        let by_mac = query.get("mac").and_then(|mac| self.lab.hosts.by_mac(mac));
        let named = query.get("hostname").filter(|name| !name.is_empty());
        let Some(name) = by_mac.or(named.map(str::to_owned)) else {
            return Err(HostError::NoName.into());
        };
        let known = self.lab.hosts.get(&name).unwrap_or_default();
        let arch = [query.get("arch"), Some(known.arch.as_str())]
            .into_iter()
            .flatten();
        let arch = arch
            .into_iter()
            .find(|arch| !arch.is_empty())
            .unwrap_or(&self.config.site.arch);
        let memory_mb = memory_of(query, &known)?;
        let request = ConsumeRequest {
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
        };
        WorkRequest::of(&name, request)
    }

    /// The job as an initrd. Its first download means that the box boots. `here` is how the box reaches us.
    pub(crate) async fn job_initrd(
        self: &std::sync::Arc<Self>,
        id: JobId,
        token: &str,
        here: &str,
    ) -> Result<Vec<u8>, Refusal> {
        let job = self.job_of_token(id, Some(token)).await?;
        let speaker = self.speaker(&job.state, Some(token), None, None)?;
        if speaker != Speaker::Present {
            return Err(JobError::BootOver.into());
        }
        let mut bodies = self.store.get_bodies(&[id]).await?;
        let Some(mut spec) = bodies.pop().flatten() else {
            return Err(JobError::Unknown(id).into());
        };
        self.sealer.open_secrets(&mut spec)?;
        if job.state.stage == Stage::Dispatch {
            let boot = Report {
                stage: Some(Stage::Boot),
                token: Some(token.to_owned()),
                ..Report::default()
            };
            self.report(id, &boot, None).await?;
        }
        let about = initrd::About {
            state: &job.state,
            token,
            here,
            schedulers: initrd::schedulers(
                here,
                &self.others.url,
                &self.others.replicas.peers(self.clock.now()),
            ),
        };
        let packed = initrd::archive(spec, &about);
        packed.map_err(|error| {
            tracing::error!(job_id = %id, %error, "the initrd of a job could not be built");
            HostError::NotPacked.into()
        })
    }
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

/// A text that cannot break out of its line in a script.
fn line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

fn texts(spec: &Spec, name: &str) -> Vec<String> {
    match spec.get(name) {
        Some(Value::String(text)) => vec![line(text)],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(line).collect(),
        _ => Vec::new(),
    }
}

fn initrds(grant: &Grant, sched: &str) -> Vec<String> {
    let mut urls: Vec<String> = ["initrds_uri", "modules_uri"]
        .iter()
        .flat_map(|name| texts(&grant.job, name))
        .collect();
    urls.push(format!(
        "http://{sched}/srv/scheduler/pending-jobs/{}/job.cgz?job_token={}",
        grant.job_id, grant.job_token
    ));
    urls
}

fn kernel_uri(grant: &Grant, sched: &str) -> String {
    texts(&grant.job, "kernel_uri").pop().unwrap_or_else(|| {
        let arch = texts(&grant.job, "arch")
            .pop()
            .unwrap_or_else(|| "default".to_owned());
        format!("http://{sched}/srv/boot/{arch}/vmlinuz")
    })
}

fn kernel_params(grant: &Grant) -> String {
    let mut params = "user=lkp job=/lkp/scheduled/job.yaml ip=dhcp rootovl ro".to_owned();
    for name in ["boot_params", "kernel_custom_params", "ipxe_kernel_params"] {
        for text in texts(&grant.job, name) {
            params.push(' ');
            params.push_str(&text);
        }
    }
    params.push_str(" console=tty0 console=ttyS0,115200");
    params
}

/// The name under which iPXE keeps what it fetched.
fn file_name(url: &str) -> &str {
    let path = url.split('?').next().unwrap_or(url);
    path.rsplit('/').next().unwrap_or(path)
}

fn job_script(boot_type: BootType, grant: &Grant, sched: &str) -> String {
    let (id, root) = (&grant.job_id, line(&grant.result_root));
    let (initrds, kernel, params) = (
        initrds(grant, sched),
        kernel_uri(grant, sched),
        kernel_params(grant),
    );
    match boot_type {
        BootType::Ipxe => {
            let mut lines = vec!["#!ipxe".to_owned(), String::new()];
            for name in ["nr_nic", "nr_disk", "disk_size"] {
                lines.extend(texts(&grant.job, name).into_iter().map(|text| format!("# {name}={text}")));
            }
            lines.extend(initrds.iter().map(|url| format!("initrd {url}")));
            let names: Vec<String> = initrds.iter().map(|url| format!("initrd={}", file_name(url))).collect();
            lines.push(format!("kernel {kernel} {params} {}", names.join(" ")));
            lines.push(format!("echo ipxe will boot job id={id}, ip=${{ip}}, mac=${{mac}}"));
            lines.push(format!("echo result_root={root}"));
            lines.extend([String::new(), "boot".to_owned(), String::new()]);
            lines.join("\n")
        }
        BootType::Grub => {
            let grub = |url: &str| match url.strip_prefix("http://").and_then(|rest| rest.split_once('/')) {
                Some((server, path)) => format!("(http,{server})/{path}"),
                None => url.to_owned(),
            };
            let files: Vec<String> = initrds.iter().map(|url| grub(url)).collect();
            format!(
                "#!grub\n\nlinux {} {params}\ninitrd {}\necho grub will boot job id={id}\necho result_root={root}\nboot\n",
                grub(&kernel),
                files.join(" ")
            )
        }
        BootType::Native => json!({
            "job_id": id, "attempt": grant.attempt, "job_token": grant.job_token, "claim_token": grant.claim_token,
            "initrds": initrds, "kernel_uri": kernel, "kernel_params": params, "result_root": root, "job": grant.job,
        })
        .to_string(),
    }
}

fn idle_script(boot_type: BootType, sched: &str, query: &Query, host: &str) -> String {
    let token = query
        .get("token")
        .map(|token| format!("&token={}", line(token)))
        .unwrap_or_default();
    match boot_type {
        BootType::Ipxe => format!(
            "#!ipxe\n\necho ...\necho No job available at the moment\necho ...\n\
             chain http://{sched}/boot.ipxe/mac/${{mac:hexhyp}}?arch=${{buildarch}}&hostname=${{hostname}}&ip=${{net0/ip}}{token}\n"
        ),
        BootType::Grub => format!(
            "#!grub\n\necho No job available at the moment\nconfigfile (http,{sched})/boot.grub/host/{}\n",
            line(host)
        ),
        BootType::Native => json!({ "code": "no_job", "message": "No job available at the moment", "hint": "ask again" })
            .to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant() -> Grant {
        let Value::Object(job) = json!({
            "suite": "x", "initrds_uri": ["http://i/a.cgz", "http://i/b.cgz\nreboot"], "kernel_uri": "http://k/vmlinuz-6.1",
            "boot_params": ["quiet"],
        }) else {
            unreachable!()
        };
        Grant {
            job_id: "2611210236110700000".into(),
            attempt: 1,
            claim_token: "c".into(),
            job_token: "t".into(),
            tbox_type: "hw".into(),
            memory_mb: 0,
            cpus: 0,
            timeout_s: 60,
            result_root: "/result/x".into(),
            stop_when_cut_off: false,
            job,
        }
    }

    #[test]
    fn an_ipxe_script_ends_with_the_job_and_boots_once() {
        let script = job_script(BootType::Ipxe, &grant(), "s:3000");
        assert!(script.starts_with("#!ipxe\n"));
        assert!(script.contains("initrd http://i/a.cgz\n"));
        assert!(script.contains("kernel http://k/vmlinuz-6.1 user=lkp"));
        assert!(script.contains("initrd=a.cgz initrd=b.cgzreboot initrd=job.cgz"));
        assert!(script.ends_with("\n\nboot\n"));
        assert_eq!(
            script.matches("\nreboot").count(),
            0,
            "a job must not add lines of its own"
        );
    }

    #[test]
    fn a_grub_script_names_servers_grub_s_way() {
        let script = job_script(BootType::Grub, &grant(), "s:3000");
        assert!(
            script.contains("linux (http,k)/vmlinuz-6.1 user=lkp"),
            "{script}"
        );
        assert!(script.contains(
            "(http,s:3000)/srv/scheduler/pending-jobs/2611210236110700000/job.cgz?job_token=t"
        ));
    }
}
