//! Refuses jobs that ask for devices which no host has: they would wait for ever.

use std::collections::BTreeSet;

use fairlead_store::{NewJob, StoreError};

use crate::submission::SubmissionFlow;
use fairlead_base::errors::{Refusal, SubmitError};

impl SubmissionFlow {
    /// Refuses jobs with a device that no known host has, unless the site lets them wait for it.
    pub(crate) async fn check_devices(
        &self,
        made: &mut [Result<NewJob, Refusal>],
    ) -> Result<(), StoreError> {
        if self.ctx.config.devices_later {
            return Ok(());
        }
        let asked = made.iter().flatten().flat_map(|job| &job.state.devices);
        let mut missing: BTreeSet<String> = asked.cloned().collect();
        self.leave_missing(&mut missing);
        if missing.is_empty() {
            return Ok(());
        }
        // Another replica may have heard of the host a moment ago.
        self.placement.load_hosts().await?;
        self.leave_missing(&mut missing);
        for outcome in made.iter_mut() {
            let Ok(job) = outcome else { continue };
            let devices = &job.state.devices;
            if let Some(device) = devices.iter().find(|device| missing.contains(*device)) {
                *outcome = Err(SubmitError::NoDevice(device.clone()).into());
            }
        }
        Ok(())
    }

    /// Keeps the devices that no known host has.
    fn leave_missing(&self, devices: &mut BTreeSet<String>) {
        if devices.is_empty() {
            return;
        }
        self.lab.hosts.each(|_, host| {
            for device in host.all_devices() {
                devices.remove(&device);
            }
        });
    }
}
