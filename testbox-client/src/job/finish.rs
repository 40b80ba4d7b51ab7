//! Delivers a job's end and closes its folder, for this agent's jobs and for those of an earlier agent.

use std::sync::Arc;

use super::{
    context::Context,
    deliver::deliver,
    folder::JobFolder,
    journal::{End, Journal},
    log::LogShipper,
};
use crate::{AgentEvent, JobLine, blocking::blocking};

/// Reason for dropping a job if no other is known.
pub(super) const NOT_OURS: &str = "the job no longer belongs to this testbox";

/// Delivers an end and closes the folder. If there is only a reason instead of an end, it just closes the folder.
pub(super) async fn finish(
    context: &Context,
    folder: &JobFolder,
    mut journal: Journal,
    end: Result<End, String>,
    mut shipper: LogShipper,
    mut line: JobLine,
) {
    let refused = match &end {
        Err(reason) => Some(reason.clone()),
        // An order to forget the job does not count any more. It may have crossed the report of the end, and a late end
        // is accepted while no other attempt has started. The answer decides.
        Ok(end) => {
            let end = end.clone();
            let delivered =
                deliver(context, folder, &mut journal, end, &mut shipper, &mut line).await;
            delivered.err().map(|failure| failure.text().to_owned())
        }
    };
    let (job_id, attempt) = (journal.job_id.clone(), journal.attempt);
    journal.close();
    let remove = !context.config.keep;
    let closing = folder.clone();
    let closed = blocking(move || {
        if remove {
            // A folder that cannot be removed completely must not be delivered again.
            closing
                .remove()
                .inspect_err(|_| drop(closing.save(&journal)))
        } else if closing.path().exists() {
            closing.save(&journal)
        } else {
            Ok(())
        }
    });
    if let Err(error) = closed.await {
        tracing::warn!(job_id, %error, "the folder of a job cannot be closed");
    }
    if let Some(reason) = refused {
        tracing::warn!(job_id, attempt, reason, "the job was dropped");
        context.events.send(AgentEvent::Dropped {
            job_id,
            attempt,
            reason,
        });
    } else {
        let delivered = AgentEvent::Delivered { job_id, attempt };
        context.events.send(delivered);
    }
}

/// Delivers the end of a job that an earlier agent left open.
pub(crate) async fn deliver_leftover(
    context: Arc<Context>,
    folder: JobFolder,
    journal: Journal,
    line: JobLine,
) {
    let shipper = LogShipper::new(context.client.clone(), &journal, folder.output());
    let end = journal.end.clone().ok_or_else(|| NOT_OURS.to_owned());
    finish(&context, &folder, journal, end, shipper, line).await;
}
