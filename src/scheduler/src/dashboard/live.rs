//! Snapshots each second while streams are open, and what a stream is sent.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use fairlead_api::{ChangedTables, DELTA_JOBS_MAX, Delta, Snapshot};
use fairlead_job::JobId;
use serde::Serialize;
use tokio::sync::broadcast::{self, error::TryRecvError};

use crate::dashboard::DashboardFlow;
use fairlead_base::{
    budget::{Charge, Identity},
    errors::Refusal,
    gzip,
};
use fairlead_known::board::Frame;

/// Between two snapshots, ms.
const EVERY_MS: u64 = 1_000;
/// A snapshot that is not older is shown to whoever asks once, ms.
const FRESH_MS: u64 = 1_000;
/// A stream without news says that it lives after this time, ms.
const QUIET_MS: u64 = 15_000;
/// A comment of a stream: its connection lives.
const ALIVE: Bytes = Bytes::from_static(b":\n\n");

impl DashboardFlow {
    /// Makes snapshots while streams are open, until the replica stops.
    pub(crate) async fn watch_board(self: Arc<Self>) {
        let mut changes: Option<broadcast::Receiver<JobId>> = None;
        loop {
            if !self.lab.board.is_watched() {
                changes = None;
                let looked = self.lab.board.looked.notified();
                if self.ctx.tasks.until_draining(looked).await.is_none() {
                    return;
                }
            }
            let listener = changes.get_or_insert_with(|| self.jobs.changes.listen());
            let (jobs, more) = changed_jobs(listener);
            let one = self.lab.board.making.lock().await;
            if let Err(error) = self.next_snapshot(jobs, more).await {
                tracing::debug!(%error, "no snapshot could be made; the next second tries again");
            }
            drop(one);
            let every = Duration::from_millis(EVERY_MS);
            let pause = self.ctx.tasks.until_draining(self.ctx.clock.sleep(every));
            if pause.await.is_none() {
                return;
            }
        }
    }

    /// The lab as it is, at most a second old.
    pub(crate) async fn overview(&self) -> Result<Arc<Snapshot>, Refusal> {
        let since = self.ctx.clock.now().0.saturating_sub(FRESH_MS);
        if let Some(fresh) = self.lab.board.since(since) {
            return Ok(fresh);
        }
        let _one = self.lab.board.making.lock().await;
        // Somebody else may have made one in between: those who come together share it.
        match self.lab.board.since(since) {
            Some(fresh) => Ok(fresh),
            None => self.next_snapshot(Vec::new(), 0).await,
        }
    }

    /// Makes a snapshot, and tells what changed. The caller is the one who makes it.
    async fn next_snapshot(&self, jobs: Vec<String>, more: u64) -> Result<Arc<Snapshot>, Refusal> {
        let now = self.ctx.clock.now().0;
        let tables = self.tables().await?;
        let before = self.lab.board.since(0);
        let snapshot = Arc::new(Snapshot {
            run: self.ctx.replicas.run.clone(),
            seq: self.lab.board.next_seq(),
            at_ms: self.ctx.clock.wall_ms(),
            tables,
        });
        let changed = before.map(|before| ChangedTables::between(&before.tables, &snapshot.tables));
        let frame = changed.map(|tables| {
            let delta = Delta {
                run: snapshot.run.clone(),
                seq: snapshot.seq,
                at_ms: snapshot.at_ms,
                tables,
                jobs,
                jobs_more: more,
            };
            let text = event("delta", &snapshot.run, snapshot.seq, &delta);
            Frame::new(snapshot.seq, text)
        });
        self.lab.board.keep(now, Arc::clone(&snapshot), frame);
        Ok(snapshot)
    }

    /// A stream that goes on behind the event of this id, or begins.
    /// `is_packed`: as a gzip stream.
    pub(crate) fn watch(
        self: &Arc<Self>,
        whose: Identity,
        last: Option<&str>,
        is_packed: bool,
    ) -> Result<Watcher, Refusal> {
        let place = self.ctx.wait_place(whose)?;
        let news = self.lab.board.listen();
        let behind = last.and_then(|last| {
            let (run, seq) = last.rsplit_once('/')?;
            let seq = seq.parse().ok().filter(|_| run == self.ctx.replicas.run)?;
            Some((seq, self.lab.board.behind(seq)?))
        });
        let (has, ready) = match behind {
            Some((seq, frames)) => (Some(seq), frames),
            None => (None, Vec::new()),
        };
        Ok(Watcher {
            flow: Arc::clone(self),
            news,
            has,
            ready: ready.into_iter().collect(),
            is_packed,
            has_begun: false,
            _place: place,
        })
    }
}

/// Which jobs changed since the last look, and how many more.
fn changed_jobs(changes: &mut broadcast::Receiver<JobId>) -> (Vec<String>, u64) {
    let (mut ids, mut more) = (BTreeSet::new(), 0);
    loop {
        match changes.try_recv() {
            Ok(id) if ids.len() < DELTA_JOBS_MAX || ids.contains(&id) => {
                ids.insert(id);
            }
            Ok(_) => more += 1,
            Err(TryRecvError::Lagged(missed)) => more += missed,
            Err(TryRecvError::Empty | TryRecvError::Closed) => break,
        }
    }
    (ids.iter().map(ToString::to_string).collect(), more)
}

/// One who looks at the lab.
pub(crate) struct Watcher {
    flow: Arc<DashboardFlow>,
    news: broadcast::Receiver<Frame>,
    /// The number of what it has; `None`: nothing, a snapshot comes first.
    has: Option<u64>,
    ready: std::collections::VecDeque<Frame>,
    is_packed: bool,
    /// Whether the head of a gzip stream was sent.
    has_begun: bool,
    _place: Charge,
}

impl Watcher {
    /// What says that the connection lives.
    fn alive(&self) -> Bytes {
        if self.is_packed {
            gzip::piece(&ALIVE)
        } else {
            ALIVE
        }
    }

    /// The next piece of the stream; `None`: the replica stops.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        if self.is_packed && !std::mem::replace(&mut self.has_begun, true) {
            return Ok(Some(gzip::HEAD));
        }
        let Some(has) = self.has else {
            let snapshot = self.flow.overview().await?;
            self.has = Some(snapshot.seq);
            let frame = self.flow.lab.board.whole(&snapshot, || {
                event("snapshot", &snapshot.run, snapshot.seq, &*snapshot)
            });
            return Ok(Some(frame.bytes(self.is_packed)));
        };
        loop {
            let frame = if let Some(frame) = self.ready.pop_front() {
                frame
            } else {
                tokio::select! {
                    biased;
                    () = self.flow.ctx.tasks.draining.cancelled() => return Ok(None),
                    news = self.news.recv() => {
                        let Ok(frame) = news else {
                            // It fell behind, and begins again.
                            self.has = None;
                            return Ok(Some(self.alive()));
                        };
                        frame
                    }
                    () = self.flow.ctx.clock.sleep(Duration::from_millis(QUIET_MS)) => return Ok(Some(self.alive())),
                }
            };
            if frame.seq > has {
                self.has = Some(frame.seq);
                return Ok(Some(frame.bytes(self.is_packed)));
            }
        }
    }
}

/// A server-sent event.
fn event<T: Serialize>(name: &str, run: &str, seq: u64, data: &T) -> Bytes {
    let data = serde_json::to_string(data).unwrap_or_default();
    Bytes::from(format!("id: {run}/{seq}\nevent: {name}\ndata: {data}\n\n"))
}
