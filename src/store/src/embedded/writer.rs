//! The writer thread and its queue.
//!
//! All requests in the queue share one transaction and one fsync. No request waits for others, and while one group
//! commits the next one collects. The queue is bounded, and its callers wait.

use std::{
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::{
    apply::{Batch, Shapes},
    copies::mark_closed,
    log::Log,
    numbers::{signed, unsigned},
    pairs::count,
    statements::Statements,
    tally::{Change, Tally},
};
use crate::{ItemError, health::Watch};

/// Maximum number of items in one request. Larger batches are several requests.
pub(super) const CHUNK_ITEMS: usize = 500;
/// Approximate number of items in a transaction: 2,000 take some 100 ms.
const GROUP_ITEMS: usize = 2_000;
/// Maximum number of requests that wait for the writer.
pub(super) const QUEUE_REQUESTS: usize = 64;

/// Idle time after which the log may be shortened.
const IDLE: Duration = Duration::from_secs(1);

/// Wakes the writer's thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Results of a request, one per item.
pub(super) type Results<O> = Vec<Result<O, ItemError>>;

/// Request with items to write, whose sender waits for the results.
pub(super) trait Request: Send {
    /// Returns the number of its items.
    fn len(&self) -> usize;
    /// Writes its items, once.
    fn run(&mut self, batch: &mut Batch<'_>) -> rusqlite::Result<()>;
    /// Sends the results, or the error of all its items.
    fn answer(self: Box<Self>, error: Option<&ItemError>);
}

/// Items that are written in one way.
pub(super) struct Items<I, O, F> {
    len: usize,
    unwritten: Vec<I>,
    write: F,
    results: Results<O>,
    reply: oneshot::Sender<Results<O>>,
}

impl<I, O, F> Items<I, O, F> {
    pub(super) fn new(items: Vec<I>, write: F, reply: oneshot::Sender<Results<O>>) -> Self {
        Self {
            len: items.len(),
            unwritten: items,
            write,
            results: Vec::new(),
            reply,
        }
    }
}

impl<I, O, F> Request for Items<I, O, F>
where
    I: Send,
    O: Clone + Send,
    F: Fn(&mut Batch<'_>, I) -> rusqlite::Result<Result<O, ItemError>> + Send,
{
    fn len(&self) -> usize {
        self.len
    }

    fn run(&mut self, batch: &mut Batch<'_>) -> rusqlite::Result<()> {
        let items = std::mem::take(&mut self.unwritten).into_iter();
        let results: rusqlite::Result<_> = items.map(|item| (self.write)(batch, item)).collect();
        self.results = results?;
        Ok(())
    }

    fn answer(self: Box<Self>, error: Option<&ItemError>) {
        let results = match error {
            None => self.results,
            Some(error) => vec![Err(error.clone()); self.len],
        };
        // Nobody listens any more when the caller was cancelled; the write stands.
        let _ = self.reply.send(results);
    }
}

/// State that the writer shares.
#[derive(Debug)]
pub(super) struct Shared {
    /// Counts. `None`: they must be counted from the tables.
    pub(super) tally: Mutex<Option<Tally>>,
    /// Health of reads and transactions.
    pub(super) watch: Watch,
}

/// Reason why no item of a transaction is known to be written.
#[derive(Debug)]
enum Failure {
    /// Rolled back before the commit.
    NotTaken(String),
    /// The commit itself failed: after a crash it may turn out to be written.
    Unknown(String),
}

/// The writer. [`Writer::run`] ends when the queue is closed and empty.
pub(super) struct Writer {
    pub(super) conn: Connection,
    pub(super) log: Log,
    pub(super) seq: u64,
    pub(super) shared: Arc<Shared>,
    pub(super) queue: mpsc::Receiver<Box<dyn Request>>,
    /// Cached shapes.
    pub(super) shapes: Shapes,
}

impl Writer {
    /// Returns the last version number that was assigned, as stored.
    pub(super) fn last_seq(conn: &Connection) -> rusqlite::Result<u64> {
        conn.query_row("SELECT value FROM meta WHERE key = 'seq'", [], |row| {
            unsigned(row, 0)
        })
    }

    /// Works until the store is dropped.
    pub(super) fn run(mut self) {
        while let Some(first) = self.next() {
            let mut items = first.len();
            let mut group = vec![first];
            while items < GROUP_ITEMS {
                let Ok(next) = self.queue.try_recv() else {
                    break;
                };
                items += next.len();
                group.push(next);
            }
            self.commit(group);
        }
        if let Err(error) = mark_closed(&self.conn) {
            tracing::warn!(%error, "the embedded store could not be marked as closed; the next start needs its log (-wal)");
        }
    }

    /// Returns the next request. Shortens the log if none comes for a while.
    fn next(&mut self) -> Option<Box<dyn Request>> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut has_waited = false;
        loop {
            match self.queue.poll_recv(&mut context) {
                Poll::Ready(next) => return next,
                Poll::Pending if has_waited => {
                    self.log.shorten(&self.conn);
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

    fn commit(&mut self, mut group: Vec<Box<dyn Request>>) {
        let error = match self.write_group(&mut group) {
            Ok(changes) => {
                self.count(&changes);
                self.shared.watch.wrote();
                None
            }
            Err(failure) => Some(self.note(failure)),
        };
        for request in group {
            request.answer(error.as_ref());
        }
    }

    fn count(&self, changes: &[Change]) {
        let mut tally = self.shared.tally.lock();
        match tally.as_mut() {
            Some(tally) => tally.apply(changes),
            None => *tally = Tally::count(&self.conn).ok(),
        }
    }

    fn write_group(&mut self, group: &mut [Box<dyn Request>]) -> Result<Vec<Change>, Failure> {
        self.log.make_room(&self.conn).map_err(Failure::NotTaken)?;
        let not_taken = |error: rusqlite::Error| Failure::NotTaken(error.to_string());
        let tx = self
            .conn
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(not_taken)?;
        let mut batch = Batch {
            tx: &tx,
            statements: Statements::of(&tx).map_err(not_taken)?,
            seq: self.seq,
            changes: Vec::new(),
            shapes: &mut self.shapes,
        };
        for request in group {
            request.run(&mut batch).map_err(not_taken)?;
        }
        let (seq, changes) = batch.end();
        count(&tx, signed(seq)).map_err(not_taken)?;
        // Numbers of a failed commit are not given again: it may be in after all.
        self.seq = seq;
        tx.commit().map_err(|error| of_commit(&error))?;
        Ok(changes)
    }

    fn note(&mut self, failure: Failure) -> ItemError {
        // Numbers of shapes that it gave are given again.
        self.shapes = Shapes::default();
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

/// Classifies the failure of a commit. A full disk leaves no commit record behind; any other failure might.
fn of_commit(error: &rusqlite::Error) -> Failure {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy) => Failure::NotTaken(error.to_string()),
        _ => Failure::Unknown(error.to_string()),
    }
}
