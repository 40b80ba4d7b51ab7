//! The writer thread and its queue.
//!
//! All requests in the queue share one transaction and one fsync. No request waits for others, and while one group
//! commits the next one collects. The queue is bounded, and its callers wait.

use std::{
    fs,
    path::PathBuf,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::{
    apply::{Batch, Item},
    copies::mark_closed,
    months::Old,
    numbers::unsigned,
    open::BUSY,
    tally::{Change, Tally},
};
use crate::{DocKind, DocWrite, EventRecord, ItemError, NewJob, Patch, health::Watch};

/// How many items one request carries at most; larger batches are several requests.
pub(super) const CHUNK_ITEMS: usize = 500;
/// How many items share a transaction, about: 2,000 take some 100 ms.
const GROUP_ITEMS: usize = 2_000;
/// How many requests may wait for the writer.
pub(super) const QUEUE_REQUESTS: usize = 64;

/// Nothing to write for so long: the log may be shortened.
const IDLE: Duration = Duration::from_secs(1);
/// A log up to this length stays as it is while there is nothing to write, bytes.
const LOG_IDLE_MAX: u64 = 1 << 20;
/// How long readers may delay that.
const LOG_PATIENCE: Duration = Duration::from_millis(50);

/// Wakes the writer's thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// What is to be written.
#[derive(Debug)]
pub(super) enum Write {
    Submit(Vec<NewJob>),
    Patch(Vec<Patch>),
    Docs(DocKind, Vec<DocWrite>),
    Events(Vec<EventRecord>),
    /// A part of each of these months.
    Drop(Vec<Old>),
}

impl Write {
    /// How many items it carries.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Submit(items) => items.len(),
            Self::Patch(items) => items.len(),
            Self::Docs(_, items) => items.len(),
            Self::Events(items) => items.len(),
            Self::Drop(items) => items.len(),
        }
    }

    fn run(&self, batch: &mut Batch<'_>) -> rusqlite::Result<Vec<Item>> {
        match self {
            Self::Submit(items) => items.iter().map(|job| batch.submit(job)).collect(),
            Self::Patch(items) => items.iter().map(|patch| batch.patch(patch)).collect(),
            Self::Docs(kind, items) => items.iter().map(|w| batch.put_doc(*kind, w)).collect(),
            Self::Events(items) => items.iter().map(|event| batch.append(event)).collect(),
            Self::Drop(items) => items.iter().map(|old| batch.drop_part(*old)).collect(),
        }
    }
}

/// A write and where its results go.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) write: Write,
    pub(super) reply: oneshot::Sender<Vec<Item>>,
}

/// What the writer lets others see.
#[derive(Debug)]
pub(super) struct Shared {
    /// `None`: must be counted from the tables.
    pub(super) tally: Mutex<Option<Tally>>,
    /// How reads and transactions went.
    pub(super) watch: Watch,
}

/// Why no item of a transaction is known to be in.
#[derive(Debug)]
enum Failure {
    /// Undone before it was committed.
    NotTaken(String),
    /// The commit itself failed: after a crash it may turn out to be in.
    Unknown(String),
}

/// The writer. [`Writer::run`] ends when the queue is closed and empty.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) conn: Connection,
    /// Its write-ahead log.
    pub(super) log: PathBuf,
    pub(super) seq: u64,
    pub(super) shared: Arc<Shared>,
    pub(super) queue: mpsc::Receiver<Request>,
}

impl Writer {
    /// The last version number that was given, as stored.
    pub(super) fn last_seq(conn: &Connection) -> rusqlite::Result<u64> {
        conn.query_row("SELECT value FROM meta WHERE key = 'seq'", [], |row| {
            unsigned(row, 0)
        })
    }

    /// Works until the store is dropped.
    pub(super) fn run(mut self) {
        while let Some(first) = self.next() {
            let mut items = first.write.len();
            let mut group = vec![first];
            while items < GROUP_ITEMS {
                let Ok(next) = self.queue.try_recv() else {
                    break;
                };
                items += next.write.len();
                group.push(next);
            }
            self.commit(group);
        }
        if let Err(error) = mark_closed(&self.conn) {
            tracing::warn!(%error, "the embedded store could not be marked as closed; the next start needs its log (-wal)");
        }
    }

    /// The next request. Shortens the log when none comes for a while.
    fn next(&mut self) -> Option<Request> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut has_waited = false;
        loop {
            match self.queue.poll_recv(&mut context) {
                Poll::Ready(next) => return next,
                Poll::Pending if has_waited => {
                    self.shorten_log();
                    break;
                }
                Poll::Pending => {
                    thread::park_timeout(IDLE);
                    has_waited = true;
                }
            }
        }
        self.queue.blocking_recv()
    }

    /// Writes a long log back into the file, and empties it. Best effort: who reads just now may prevent it.
    fn shorten_log(&self) {
        let is_long = fs::metadata(&self.log).is_ok_and(|log| log.len() > LOG_IDLE_MAX);
        if !is_long {
            return;
        }
        let emptied = self
            .conn
            .busy_timeout(LOG_PATIENCE)
            .and_then(|()| {
                self.conn
                    .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            })
            .and_then(|()| self.conn.busy_timeout(BUSY));
        if let Err(error) = emptied {
            tracing::debug!(%error, "the log of the embedded store is emptied later");
        }
    }

    fn commit(&mut self, group: Vec<Request>) {
        match self.transact(&group) {
            Ok(results) => {
                self.shared.watch.wrote();
                for (request, items) in group.into_iter().zip(results) {
                    // Nobody listens any more when the caller was cancelled; the write stands.
                    let _ = request.reply.send(items);
                }
            }
            Err(failure) => {
                let error = self.note(failure);
                for request in group {
                    let items = vec![Err(error.clone()); request.write.len()];
                    let _ = request.reply.send(items);
                }
            }
        }
    }

    fn transact(&mut self, group: &[Request]) -> Result<Vec<Vec<Item>>, Failure> {
        let (results, changes) = self.write_group(group)?;
        let mut tally = self.shared.tally.lock();
        match tally.as_mut() {
            Some(tally) => tally.apply(&changes),
            None => *tally = Tally::count(&self.conn).ok(),
        }
        Ok(results)
    }

    fn write_group(&mut self, group: &[Request]) -> Result<(Vec<Vec<Item>>, Vec<Change>), Failure> {
        let not_taken = |error: rusqlite::Error| Failure::NotTaken(error.to_string());
        let tx = self
            .conn
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(not_taken)?;
        let mut batch = Batch {
            tx,
            seq: self.seq,
            changes: Vec::new(),
        };
        let results: Vec<Vec<Item>> = group
            .iter()
            .map(|request| request.write.run(&mut batch))
            .collect::<Result<_, _>>()
            .map_err(not_taken)?;
        let Batch { tx, seq, changes } = batch;
        tx.prepare_cached("UPDATE meta SET value = ?1 WHERE key = 'seq'")
            .and_then(|mut set| set.execute([i64::try_from(seq).unwrap_or(i64::MAX)]))
            .map_err(not_taken)?;
        // Numbers of a failed commit are not given again: it may be in after all.
        self.seq = seq;
        tx.commit().map_err(|error| of_commit(&error))?;
        Ok((results, changes))
    }

    fn note(&self, failure: Failure) -> ItemError {
        let (reason, error) = match failure {
            Failure::NotTaken(reason) => (reason.clone(), ItemError::NotTaken { reason }),
            Failure::Unknown(reason) => {
                *self.shared.tally.lock() = None;
                (reason.clone(), ItemError::Unknown { reason })
            }
        };
        tracing::error!(%reason, "a write to the embedded store failed");
        self.shared.watch.write_failed(&reason);
        error
    }
}

/// A full disk leaves no commit record behind; any other failure might.
fn of_commit(error: &rusqlite::Error) -> Failure {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy) => Failure::NotTaken(error.to_string()),
        _ => Failure::Unknown(error.to_string()),
    }
}
