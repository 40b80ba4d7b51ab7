//! The site's health check: the job that tests a suspect host.

use fairlead_job::{FieldError, JobFields, SiteDefaults, Spec, TboxType, Use, fields};
use serde_json::json;

use crate::names::HEALTH_CHECK;

/// Number of the latest jobs passed on a host among which a recently begun one is looked for.
pub const PASSED_MAX: u32 = 100;

/// Job with which a site tests suspect hosts.
#[derive(Debug, Clone)]
pub struct HealthCheck {
    job: Spec,
    /// Testbox that it names, and its kind, for hosts that offer that kind.
    testbox: (String, TboxType),
}

impl HealthCheck {
    /// Creates a health check of this job. Of its place, only a testbox such as `vm-2p8g` counts, on hosts that offer
    /// its kind.
    ///
    /// # Errors
    /// Fails if the job could not be submitted as it is.
    pub fn of(job: Spec, site: &SiteDefaults) -> Result<Self, FieldError> {
        let plan = JobFields::parse(&job, site)?;
        let is_size = plan.tbox_type != TboxType::Hw && !plan.testbox.contains("--");
        let testbox = if is_size {
            plan.testbox
        } else {
            plan.tbox_type.as_str().to_owned()
        };
        Ok(Self {
            job,
            testbox: (testbox, plan.tbox_type),
        })
    }

    /// Returns the job for a host of this name, these kinds and this architecture; `None`: it offers nothing.
    pub fn on(&self, name: &str, kinds: &[TboxType], arch: &str) -> Option<Spec> {
        let (testbox, kind) = &self.testbox;
        let testbox = if kinds.contains(kind) {
            testbox.as_str()
        } else {
            kinds.first()?.as_str()
        };
        let mut job = self.job.clone();
        // Its system is that of the host, too.
        for field in fields(Use::Place).chain(["os_arch"]) {
            job.shift_remove(field);
        }
        job.insert("testbox".to_owned(), json!(testbox));
        job.insert("arch".to_owned(), json!(arch));
        job.insert("target_machines".to_owned(), json!([name]));
        job.insert("my_account".to_owned(), json!(HEALTH_CHECK));
        Some(job)
    }
}
