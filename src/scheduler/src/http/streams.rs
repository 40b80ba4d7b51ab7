//! Streamed bodies: files, and logs that grow.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use fairlead_job::JobId;
use futures_util::{Stream, stream};
use parking_lot::Mutex;
use tokio::{io::AsyncReadExt, sync::broadcast};
use warp::{Reply, http::HeaderValue, reply::Response};

use crate::{
    base::errors::{JobError, Refusal},
    core::Core,
};

/// Size of a piece, bytes.
const PIECE: usize = 64 << 10;
/// A quiet log is looked at this often all the same, ms (another replica may append).
const LOOK_MS: u64 = 5_000;

/// A file as a body.
pub(super) fn file(file: tokio::fs::File, size: u64) -> Response {
    let pieces = stream::try_unfold(file, |mut file| async move {
        let mut piece = vec![0; PIECE];
        let read = file.read(&mut piece).await?;
        piece.truncate(read);
        Ok::<_, io::Error>((read > 0).then(|| (Bytes::from(piece), file)))
    });
    let mut response = warp::reply::stream(pieces).into_response();
    let headers = response.headers_mut();
    headers.insert(
        "content-type",
        HeaderValue::from_static("application/octet-stream"),
    );
    headers.insert("content-length", HeaderValue::from(size));
    response
}

struct Follower {
    core: Arc<Core>,
    id: JobId,
    attempt: u16,
    offset: u64,
    changes: broadcast::Receiver<JobId>,
    follow: bool,
}

impl Follower {
    /// The next piece; `None` at the end.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            // Look whether it is over before reading: what was appended before the end is then read.
            let over = !self.follow || self.over().await;
            let piece = self
                .core
                .read_log(self.id, self.attempt, self.offset, PIECE)
                .await;
            let piece = piece.map_err(io::Error::other)?;
            if !piece.is_empty() {
                self.offset = self
                    .offset
                    .saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
                return Ok(Some(piece));
            }
            if over || self.core.draining.is_cancelled() {
                return Ok(None);
            }
            self.changed().await;
        }
    }

    async fn over(&self) -> bool {
        match self.core.job(self.id).await {
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
                () = self.core.clock.sleep(Duration::from_millis(LOOK_MS)) => return,
                () = self.core.draining.cancelled() => return,
            }
        }
    }
}

/// A log from `offset` as a body; with `follow`, to the end of the attempt.
pub(super) fn log(core: Arc<Core>, id: JobId, attempt: u16, offset: u64, follow: bool) -> Response {
    let changes = core.jobs.changes.listen();
    let follower = Follower {
        core,
        id,
        attempt,
        offset,
        changes,
        follow,
    };
    let pieces = stream::try_unfold(follower, |mut follower| async move {
        Ok::<_, io::Error>(follower.next().await?.map(|piece| (piece, follower)))
    });
    let mut response = warp::reply::stream(shareable(pieces)).into_response();
    response.headers_mut().insert(
        "content-type",
        HeaderValue::from_static("text/plain; charset=utf-8"),
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
