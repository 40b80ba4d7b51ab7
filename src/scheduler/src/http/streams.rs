//! Bodies of files, whole or in part, and of logs that grow.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use fairlead_job::JobId;
use futures_util::{Stream, stream};
use parking_lot::Mutex;
use tokio::sync::broadcast;
use warp::{
    Reply,
    http::{HeaderValue, StatusCode},
    reply::Response,
};

use super::content_type::TEXT;

use crate::{files::read::OpenFile, flows::Flows};
use fairlead_base::{
    budget::Charge,
    errors::{JobError, Refusal},
};

/// Size of a piece, bytes.
pub(super) const PIECE: u64 = 64 << 10;
/// A quiet log is looked at this often all the same, ms (another replica may append).
const LOOK_MS: u64 = 5_000;

/// A file, or the part of it that was asked for, as a body of this type.
pub(super) fn file(file: OpenFile, content_type: &'static str) -> Response {
    let (size, tag) = (file.size, HeaderValue::from_str(&file.tag));
    let (is_known, part, length) = (file.is_known, file.part.clone(), file.len());
    let mut response = match &part {
        _ if is_known => StatusCode::NOT_MODIFIED.into_response(),
        None => StatusCode::RANGE_NOT_SATISFIABLE.into_response(),
        Some(_) => body(file, content_type, length),
    };
    let headers = response.headers_mut();
    if let Ok(tag) = tag {
        headers.insert("etag", tag);
    }
    headers.insert("accept-ranges", HeaderValue::from_static("bytes"));
    let place = match part {
        _ if is_known => None,
        None => Some(format!("bytes */{size}")),
        Some(part) if length < size && length > 0 => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            let last = part.end.saturating_sub(1);
            Some(format!("bytes {}-{last}/{size}", part.start))
        }
        Some(_) => None,
    };
    if let Some(Ok(place)) = place.map(|place| HeaderValue::from_str(&place)) {
        response.headers_mut().insert("content-range", place);
    }
    response
}

fn body(file: OpenFile, content_type: &'static str, length: u64) -> Response {
    let mut response = if u64::try_from(file.first.len()).is_ok_and(|first| first == length) {
        Response::new(file.first.into())
    } else {
        let pieces = stream::try_unfold(file, |mut file| async move {
            let piece = file.next().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>(piece.map(|piece| (piece, file)))
        });
        warp::reply::stream(shareable(pieces)).into_response()
    };
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static(content_type));
    headers.insert("content-length", HeaderValue::from(length));
    // A browser must not take what a job wrote for a page.
    headers.insert(
        "content-security-policy",
        HeaderValue::from_static("sandbox"),
    );
    response
}

struct Follower {
    flows: Arc<Flows>,
    id: JobId,
    attempt: u16,
    offset: u64,
    changes: broadcast::Receiver<JobId>,
    _place: Charge,
}

impl Follower {
    /// The next piece; `None` at the end.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            // Look whether it is over before reading: what was appended before the end is then read.
            let over = self.over().await;
            let piece = self
                .flows
                .files
                .read_log(self.id, self.attempt, self.offset, PIECE)
                .await;
            let piece = piece.map_err(io::Error::other)?;
            if !piece.is_empty() {
                self.offset = self
                    .offset
                    .saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
                return Ok(Some(piece));
            }
            if over || self.flows.ctx.tasks.draining.is_cancelled() {
                return Ok(None);
            }
            self.changed().await;
        }
    }

    async fn over(&self) -> bool {
        match self.flows.jobs.job(self.id).await {
            Ok(job) => job.state.stage.is_terminal() || job.state.attempt > self.attempt,
            Err(refusal) => matches!(refusal, Refusal::Job(JobError::Unknown(_))),
        }
    }

    async fn changed(&mut self) {
        loop {
            tokio::select! {
                biased;
                change = self.changes.recv() => match change {
                    Ok(id) if id != self.id => {}
                    _ => return,
                },
                () = self.flows.ctx.clock.sleep(Duration::from_millis(LOOK_MS)) => return,
                () = self.flows.ctx.tasks.draining.cancelled() => return,
            }
        }
    }
}

/// A log from `offset` to the end of the attempt as a body.
pub(super) fn follow(
    flows: Arc<Flows>,
    (id, attempt): (JobId, u16),
    offset: u64,
    place: Charge,
) -> Response {
    let changes = flows.jobs.changes.listen();
    let follower = Follower {
        flows,
        id,
        attempt,
        offset,
        changes,
        _place: place,
    };
    let pieces = stream::try_unfold(follower, |mut follower| async move {
        Ok::<_, io::Error>(follower.next().await?.map(|piece| (piece, follower)))
    });
    let mut response = warp::reply::stream(shareable(pieces)).into_response();
    response
        .headers_mut()
        .insert("content-type", HeaderValue::from_static(TEXT));
    response
}

/// Server-sent events as a body.
pub(super) fn event_stream(
    pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> Response {
    let mut response = warp::reply::stream(shareable(pieces)).into_response();
    let headers = response.headers_mut();
    headers.insert(
        "content-type",
        HeaderValue::from_static("text/event-stream"),
    );
    response
}

/// The same stream, shareable as a body must be; only its one reader ever touches it.
fn shareable<T: 'static>(
    stream: impl Stream<Item = T> + Send + 'static,
) -> impl Stream<Item = T> + Send + Sync + 'static {
    let mut stream = Mutex::new(Box::pin(stream));
    stream::poll_fn(move |context| stream.get_mut().as_mut().poll_next(context))
}
