//! Applies reports of testboxes to their jobs.

use std::sync::Arc;

use fairlead_job::JobId;

use crate::jobs::JobFlow;
use fairlead_base::errors::Refusal;
use fairlead_known::accounts::Who;
use fairlead_lifecycle::{after_report::after_report, changed::Changed, report::Report};

impl JobFlow {
    /// A testbox (or an admin) reports. Answers the text for the reporter.
    pub(crate) async fn report(
        self: &Arc<Self>,
        id: JobId,
        report: &Report,
        who: Option<&Who>,
    ) -> Result<Changed, Refusal> {
        let now_ms = self.ctx.clock.wall_ms();
        let token = report.token.as_deref();
        let uploaded = self.uploads.of(id).filter(|_| report.ends());
        let uploaded = uploaded.map_or(0, |amount| amount.bytes);
        let changed = self
            .change(id, |state| {
                let speaker = self.speaker(state, token, report.attempt, who)?;
                let mut next = after_report(state, speaker, report, now_ms)?;
                if let Some(next) = &mut next {
                    next.result_bytes = next.result_bytes.max(uploaded);
                }
                Ok(next)
            })
            .await
            .map_err(|refusal| self.to_stranger(id, token, refusal))?;
        self.live.renew(id, self.ctx.clock.now());
        Ok(changed)
    }
}
