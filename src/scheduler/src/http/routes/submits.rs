//! Handlers of submits.

use std::{io, sync::Arc};

use bytes::Bytes;
use fairlead_api::{ErrorCode, JobEvent};
use futures_util::stream;
use serde_json::json;
use warp::reply::Response;

use crate::{
    flows::Flows,
    http::{request::Request, streams::event_stream},
    views::submit_events::{Follower, Told},
};
use fairlead_base::errors::{Refusal, excerpt};

/// A stream of the changes of a submit's jobs, until all have ended.
pub(super) async fn events(
    flows: Arc<Flows>,
    request: Request,
    submit_id: &str,
) -> Result<Response, Refusal> {
    let last = request.header("last-event-id");
    let last = last.or_else(|| request.query.get("after"));
    let told_ms = match last.filter(|last| !last.is_empty()) {
        None => 0,
        Some(last) => last.parse().map_err(|_| {
            let message = format!("Last-Event-ID: '{}' is none", excerpt(last));
            let hint = "send the id of the last event that came";
            Refusal::new(ErrorCode::BadQuery, message, hint)
        })?,
    };
    let draining = flows.ctx.tasks.draining.clone();
    let mut follower = Follower::new(
        Arc::clone(&flows.views),
        request.whose(),
        submit_id.to_owned(),
        told_ms,
    )?;
    let first = follower.next().await?;
    if !follower.is_known() {
        let message = format!("there is no submit '{}'", excerpt(submit_id));
        let hint = "each accepted job of a submit has its submit_id";
        return Err(Refusal::new(ErrorCode::NotFound, message, hint));
    }
    let begin = (Some(follower), Some(first));
    let pieces = stream::try_unfold(begin, move |(follower, told)| {
        let draining = draining.clone();
        async move {
            let Some(mut follower) = follower else {
                return Ok::<_, io::Error>(None);
            };
            let told = match told {
                Some(told) => told,
                None if draining.is_cancelled() => return Ok(None),
                // The client comes back with the id of the last event, to another replica if this one has its troubles.
                None => follower.next().await.map_err(io::Error::other)?,
            };
            let is_last = matches!(told, Told::Over { .. });
            let follower = Some(follower).filter(|_| !is_last);
            Ok(Some((piece_of(told), (follower, None))))
        }
    });
    Ok(event_stream(pieces))
}

/// A piece of the stream. A comment shows that the connection lives.
fn piece_of(told: Told) -> Bytes {
    let text = match told {
        Told::Changes(changes) if changes.is_empty() => ":\n\n".to_owned(),
        Told::Changes(changes) => changes.iter().map(job_event).collect(),
        Told::Over { jobs, failed } => {
            let data = json!({ "jobs": jobs, "failed": failed });
            format!("event: over\ndata: {data}\n\n")
        }
    };
    Bytes::from(text)
}

fn job_event(event: &JobEvent) -> String {
    format!(
        "id: {}\nevent: job\ndata: {}\n\n",
        event.at_ms,
        json!(event)
    )
}
