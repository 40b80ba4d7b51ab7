//! The boot store: kernels and initrds that the operator put below `srv/boot` in the data folder, by architecture and
//! system.

use std::collections::{BTreeSet, HashMap};

use fairlead_job::{Spec, TboxType};
use fairlead_store::NewJob;
use serde_json::Value;

use crate::placement::{PlacementFlow, feasibility::fits_template};
use fairlead_base::{
    errors::{Refusal, SubmitError},
    names::check_name,
    text::joined,
};
use fairlead_known::feasibility::Wants;

/// Systems that are looked up for one submit.
const LOOKS_MAX: usize = 64;

/// Files of the boot store for a job's system, as paths below `/srv/boot`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BootFiles {
    pub(crate) kernel: Option<String>,
    pub(crate) initrd: Option<String>,
    pub(crate) modules: Option<String>,
    /// Why a machine cannot boot the job by iPXE or grub.
    pub(crate) problem: Option<String>,
}

/// A text field of a job.
fn text<'a>(job: &'a Spec, field: &str) -> Option<&'a str> {
    job.get(field).and_then(Value::as_str)
}

/// The system that a job names, and its version.
fn system(job: &Spec) -> Option<(&str, &str)> {
    let both = text(job, "osv").and_then(|osv| osv.split_once('@'));
    let os = text(job, "os").or(both.map(|(os, _)| os))?;
    let version = text(job, "os_version").or(both.map(|(_, version)| version))?;
    Some((os, version))
}

impl PlacementFlow {
    /// What the boot store has for the system that the job names.
    pub(crate) async fn boot_files(&self, job: &Spec, arch: &str) -> BootFiles {
        let Some((os, version)) = system(job) else {
            return BootFiles::default();
        };
        let arch = text(job, "os_arch").unwrap_or(arch);
        let folder = [arch, os, version].join("/");
        let suffix = text(job, "kernel_version").map(|version| format!("-{version}"));
        let suffix = suffix.unwrap_or_default();
        let store = self.ctx.config.data_dir.join("srv/boot");
        let there = async |name: String| {
            let path = format!("{folder}/{name}");
            let is_plain = path
                .split('/')
                .all(|part| check_name("os", part).is_ok() && part != "..");
            let found = is_plain
                && tokio::fs::try_exists(store.join(&path))
                    .await
                    .unwrap_or(false);
            found.then_some(path)
        };
        let mut files = BootFiles {
            kernel: there(format!("vmlinuz{suffix}")).await,
            initrd: there("initrd.cgz".to_owned()).await,
            modules: there(format!("modules{suffix}.cgz")).await,
            problem: None,
        };
        if files.kernel.is_none() && !names_kernel(job) {
            files.problem = Some(format!(
                "the boot store has no kernel for os {os} {version} {arch} (srv/boot/{folder}/vmlinuz{suffix}); the job names no kernel_uri"
            ));
        }
        files
    }

    /// Says of jobs for machines that boot over the network which kernel is missing; if `strict`, refuses them.
    pub(crate) async fn warn_of_boot(
        &self,
        made: &mut [Result<NewJob, Refusal>],
        warnings: &mut [Option<String>],
        strict: bool,
    ) {
        let mut looked = HashMap::new();
        for (outcome, warning) in made.iter_mut().zip(warnings) {
            let Ok(job) = outcome else { continue };
            let is_asked = job.state.tbox_type == TboxType::Hw && system(&job.body).is_some();
            if !is_asked || names_kernel(&job.body) {
                continue;
            }
            let words = ["os", "os_version", "osv", "os_arch", "kernel_version"];
            let words = words.map(|field| text(&job.body, field).map(str::to_owned));
            let key = (words, Wants::of(&job.state));
            if !looked.contains_key(&key) {
                if looked.len() >= LOOKS_MAX {
                    return;
                }
                looked.insert(key.clone(), self.missing_kernel(job).await);
            }
            let Some(words) = looked.get(&key).cloned().flatten() else {
                continue;
            };
            if strict {
                *outcome = Err(SubmitError::NoHost(words).into());
            } else {
                *warning = Some(joined(warning.take(), words));
            }
        }
    }

    /// What keeps each of the registered machines that may run the job from booting it, if they all boot over the network.
    async fn missing_kernel(&self, job: &NewJob) -> Option<String> {
        let (mut archs, mut has_agent) = (BTreeSet::new(), false);
        self.lab.hosts.each(|name, host| {
            if host.kinds.contains(&TboxType::Hw) && fits_template(&job.state, name, host) {
                archs.insert(host.arch.clone());
                has_agent |= host.macs.is_empty() || !host.instance.is_empty();
            }
        });
        if has_agent {
            return None;
        }
        let mut problem = None;
        for arch in archs {
            problem = self.boot_files(&job.body, &arch).await.problem;
            problem.as_ref()?;
        }
        problem
    }
}

/// Whether a job brings its own kernel.
fn names_kernel(job: &Spec) -> bool {
    let names = |field| job.get(field).is_some_and(|value| !value.is_null());
    names("kernel_uri") || names("custom_ipxe")
}
