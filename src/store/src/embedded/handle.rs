//! [`EmbeddedStore`]: implements the trait with the writer's queue and the readers.

use std::{fs::File, path::Path, sync::Arc, thread::JoinHandle};

use async_trait::async_trait;
use fairlead_job::{JobId, Spec};
use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::{
    apply::{Batch, Shapes, Submit},
    check, docs, find, months, open, people, read, search,
    tally::Tally,
    writer::{CHUNK_ITEMS, Items, QUEUE_REQUESTS, Request, Results, Shared, Writer},
};
use crate::{
    ChangeMark, ChangePage, Changes, CountOf, Counts, Created, Doc, DocFind, DocKind, DocPage,
    DocWrite, DueDoc, EventFind, EventRecord, Find, Findings, Group, GroupBy, ItemError, JobStore,
    NewJob, OldMonth, Page, Patch, Pull, Search, SearchPage, StageCounts, StoreError, StoreHealth,
    StoredJob, Usage, Version, health::Watch,
};

/// Jobs in one SQLite file, for one process. Dropping it waits for the group being committed.
#[derive(Debug)]
pub struct EmbeddedStore {
    queue: Option<mpsc::Sender<Box<dyn Request>>>,
    writer: Option<JoinHandle<()>>,
    readers: Arc<Readers>,
    shared: Arc<Shared>,
    /// Lock, dropped last because fields drop in order. `None`: the store is only read.
    _lock: Option<File>,
}

/// Connections for reads. A permit is the right to take one.
#[derive(Debug)]
struct Readers {
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl EmbeddedStore {
    /// Opens or creates `fairlead.db` in `dir` (created if missing). Blocks while it counts the waiting jobs, some
    /// 100 ms a million.
    ///
    /// # Errors
    /// Fails with [`StoreError::Unusable`] and advice in these cases: another process holds the folder, or the folder
    /// cannot be written. The file is from a newer version or not a store.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::start(open::open(dir)?)
    }

    /// Opens a store only to read it, also while a scheduler has it open. `path`: its folder, or a file such as a backup.
    ///
    /// # Errors
    /// Fails with [`StoreError::Unusable`] and advice if there is no store, if it is of another version, or if it was
    /// copied without its log.
    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        let readers = open::open_to_read(path)?;
        let shared = Shared {
            tally: Mutex::new(None),
            watch: Watch::new(),
        };
        Ok(Self {
            queue: None,
            writer: None,
            readers: Arc::new(Readers {
                permits: Arc::new(Semaphore::new(readers.len())),
                idle: Mutex::new(readers),
            }),
            shared: Arc::new(shared),
            _lock: None,
        })
    }

    /// Looks for faults that only the tables can show, and adds them to the findings.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub async fn check_tables(&self, found: Findings) -> Result<Findings, StoreError> {
        self.read(move |conn| check::check(conn, found)).await
    }

    fn start(opened: open::Opened) -> Result<Self, StoreError> {
        let seq = Writer::last_seq(&opened.writer).map_err(|error| of_read(&error))?;
        let tally = Tally::count(&opened.writer).map_err(|error| of_read(&error))?;
        let shared = Arc::new(Shared {
            tally: Mutex::new(Some(tally)),
            watch: Watch::new(),
        });
        let (queue, receiver) = mpsc::channel(QUEUE_REQUESTS);
        let writer = Writer {
            conn: opened.writer,
            log: opened.log,
            seq,
            shared: Arc::clone(&shared),
            queue: receiver,
            shapes: Shapes::default(),
        };
        let writer = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(|error| StoreError::Unavailable {
                reason: format!("cannot start the writer thread: {error}"),
            })?;
        Ok(Self {
            queue: Some(queue),
            writer: Some(writer),
            readers: Arc::new(Readers {
                permits: Arc::new(Semaphore::new(opened.readers.len())),
                idle: Mutex::new(opened.readers),
            }),
            shared,
            _lock: Some(opened.lock),
        })
    }

    /// Writes items, each by `write`. Splits them into requests, so that a huge batch does not delay all others.
    async fn write<I, O, F>(
        &self,
        mut items: impl Iterator<Item = I> + Send,
        write: F,
    ) -> Results<O>
    where
        I: Send + 'static,
        O: Clone + Send + 'static,
        F: Fn(&mut Batch<'_>, I) -> rusqlite::Result<Result<O, ItemError>> + Copy + Send + 'static,
    {
        let mut results = Vec::new();
        let mut pending = Vec::new();
        loop {
            let chunk: Vec<I> = items.by_ref().take(CHUNK_ITEMS).collect();
            if chunk.is_empty() {
                break;
            }
            let (many, (reply, answer)) = (chunk.len(), oneshot::channel());
            let request = Box::new(Items::new(chunk, write, reply));
            let sent = match &self.queue {
                Some(queue) => queue.send(request).await.is_ok(),
                None => false,
            };
            pending.push((many, sent.then_some(answer)));
        }
        for (many, answer) in pending {
            results.extend(answered(many, answer).await);
        }
        results
    }

    /// Runs a read on a thread for blocking work, in its own transaction, so that it sees a consistent state.
    async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let stopped = |reason: String| StoreError::Unavailable { reason };
        let (readers, shared) = (Arc::clone(&self.readers), Arc::clone(&self.shared));
        let permit = Arc::clone(&readers.permits)
            .acquire_owned()
            .await
            .map_err(|error| stopped(error.to_string()))?;
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let taken = readers.idle.lock().pop();
            let Some(conn) = taken else {
                return Err(stopped("no connection is free".to_owned()));
            };
            let result = conn
                .unchecked_transaction()
                .and_then(|tx| work(&tx))
                .map_err(|error| of_read(&error));
            readers.idle.lock().push(conn);
            match &result {
                Ok(_) => shared.watch.read(),
                Err(error) => shared.watch.read_failed(&error.to_string()),
            }
            result
        })
        .await
        .map_err(|error| stopped(error.to_string()))?
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        // The writer's connection must close last: only it may bring the log back into the file.
        self.readers.idle.lock().clear();
        drop(self.queue.take());
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the writer thread of the embedded store panicked");
        }
    }
}

/// Returns the results of a request when its group is committed. `None`: it was not sent.
async fn answered<O: Clone>(
    many: usize,
    answer: Option<oneshot::Receiver<Results<O>>>,
) -> Results<O> {
    let error = match answer {
        None => ItemError::NotTaken {
            reason: "the store is stopped".to_owned(),
        },
        Some(answer) => match answer.await {
            Ok(results) => return results,
            Err(_) => ItemError::Unknown {
                reason: "the store's writer stopped".to_owned(),
            },
        },
    };
    vec![Err(error); many]
}

fn of_read(error: &rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Unusable {
            reason: format!("the database is damaged: {error}"),
            hint: "stop the scheduler, and restore a backup".to_owned(),
        },
        _ => StoreError::Unavailable {
            reason: error.to_string(),
        },
    }
}

#[async_trait]
impl JobStore for EmbeddedStore {
    async fn submit(&self, jobs: Vec<NewJob>) -> Vec<Result<Created, ItemError>> {
        let submits = jobs.into_iter().map(Submit::of);
        let written = self.write(submits, |batch, submit| batch.submit(&submit));
        let created = |version| Created {
            version,
            body: None,
        };
        let written = written.await.into_iter();
        written.map(|version| version.map(created)).collect()
    }

    async fn get(&self, ids: &[JobId]) -> Result<Vec<Option<StoredJob>>, StoreError> {
        let ids = ids.to_vec();
        let read = self.read(move |conn| read::states(conn, &ids)).await?;
        read.into_iter()
            .map(|job| {
                job.transpose().map_err(|reason| StoreError::Refused {
                    reason: format!("a job cannot be read: {reason}"),
                })
            })
            .collect()
    }

    async fn get_bodies(&self, ids: &[JobId]) -> Result<Vec<Option<Spec>>, StoreError> {
        let ids = ids.to_vec();
        self.read(move |conn| read::bodies(conn, &ids)).await
    }

    async fn patch(&self, patches: Vec<Patch>) -> Vec<Result<Version, ItemError>> {
        let written = self.patch_and_get(patches).await.into_iter();
        written.map(|job| job.map(|job| job.version)).collect()
    }

    async fn patch_and_get(&self, patches: Vec<Patch>) -> Vec<Result<StoredJob, ItemError>> {
        self.write(patches.into_iter(), |batch, patch| batch.patch(&patch))
            .await
    }

    async fn count(&self, of: &CountOf) -> Result<Counts, StoreError> {
        let to_counts = |tally: &Tally| tally.to_counts(of);
        let kept = self.shared.tally.lock().as_ref().map(to_counts);
        let of = of.clone();
        match kept {
            Some(counts) => Ok(counts),
            None => {
                self.read(move |conn| Ok(Tally::count(conn)?.to_counts(&of)))
                    .await
            }
        }
    }

    async fn pull(&self, requests: &[Pull]) -> Result<Vec<Page>, StoreError> {
        let requests = requests.to_vec();
        self.read(move |conn| requests.iter().map(|one| read::pull(conn, one)).collect())
            .await
    }

    async fn find(&self, requests: &[Find]) -> Result<Vec<Page>, StoreError> {
        let requests = requests.to_vec();
        self.read(move |conn| find::find(conn, &requests)).await
    }

    async fn change_mark(&self) -> Result<ChangeMark, StoreError> {
        self.read(read::change_mark).await
    }

    fn place_of(&self, _id: JobId) -> Option<Arc<str>> {
        Some(read::PLACE.into())
    }

    async fn changes(&self, requests: &[Changes]) -> Result<Vec<ChangePage>, StoreError> {
        let requests = requests.to_vec();
        self.read(move |conn| {
            requests
                .iter()
                .map(|one| read::changes(conn, one))
                .collect()
        })
        .await
    }

    async fn alarms(&self, before_ms: u64, limit: u32) -> Result<Page, StoreError> {
        self.read(move |conn| read::alarms(conn, before_ms, limit))
            .await
    }

    async fn usage(&self, usage: &Usage) -> Result<Vec<u64>, StoreError> {
        let usage = usage.clone();
        self.read(move |conn| read::usage(conn, &usage)).await
    }

    async fn search(&self, search: &Search) -> Result<SearchPage, StoreError> {
        let search = search.clone();
        self.read(move |conn| search::search(conn, &search)).await
    }

    async fn groups(&self, search: &Search, by: GroupBy) -> Result<Vec<Group>, StoreError> {
        let search = search.clone();
        self.read(move |conn| search::groups(conn, &search, by))
            .await
    }

    async fn named(&self, content: &[String]) -> Result<Vec<bool>, StoreError> {
        let content = content.to_vec();
        self.read(move |conn| search::named(conn, &content)).await
    }

    async fn get_docs(
        &self,
        kind: DocKind,
        ids: &[String],
    ) -> Result<Vec<Option<Doc>>, StoreError> {
        let ids = ids.to_vec();
        self.read(move |conn| docs::get(conn, kind, &ids)).await
    }

    async fn put_docs(
        &self,
        kind: DocKind,
        writes: Vec<DocWrite>,
    ) -> Vec<Result<Version, ItemError>> {
        self.write(writes.into_iter(), move |batch, write| {
            batch.put_doc(kind, &write)
        })
        .await
    }

    async fn list_docs(&self, kind: DocKind) -> Result<Vec<Doc>, StoreError> {
        self.read(move |conn| docs::list(conn, kind)).await
    }

    async fn page_docs(&self, kind: DocKind, find: &DocFind) -> Result<DocPage, StoreError> {
        let find = find.clone();
        self.read(move |conn| docs::page(conn, kind, &find)).await
    }

    async fn due_docs(
        &self,
        kind: DocKind,
        before_ms: u64,
        limit: u32,
    ) -> Result<Vec<DueDoc>, StoreError> {
        self.read(move |conn| docs::due(conn, kind, before_ms, limit))
            .await
    }

    async fn append_events(&self, events: Vec<EventRecord>) -> Result<(), StoreError> {
        let append = |batch: &mut Batch<'_>, event: EventRecord| batch.append(&event);
        let results = self.write(events.into_iter(), append).await;
        match results.into_iter().find_map(Result::err) {
            None => Ok(()),
            Some(error) => Err(StoreError::Unavailable {
                reason: error.to_string(),
            }),
        }
    }

    async fn read_events(&self, find: &EventFind) -> Result<Vec<EventRecord>, StoreError> {
        let find = find.clone();
        self.read(move |conn| people::events(conn, &find)).await
    }

    async fn stage_counts(&self, since_ms: u64) -> Result<StageCounts, StoreError> {
        self.read(move |conn| people::stage_counts(conn, since_ms))
            .await
    }

    async fn drop_oldest(&self, before: JobId) -> Result<Vec<OldMonth>, StoreError> {
        let looked_at = self.read(move |conn| months::look(conn, before)).await?;
        let dropped = looked_at.last().filter(|last| last.unfinished == 0);
        if let Some(old) = dropped.and_then(|old| months::Old::of(&old.month)) {
            // A part at a time: others write in between.
            while self.read(move |conn| old.is_there(conn)).await? {
                let drop_part = |batch: &mut Batch<'_>, old| batch.drop_part(old);
                let results = self.write([old].into_iter(), drop_part).await;
                if let Some(error) = results.into_iter().find_map(Result::err) {
                    let reason = error.to_string();
                    return Err(StoreError::Unavailable { reason });
                }
            }
        }
        Ok(looked_at)
    }

    async fn refresh(&self) -> Result<(), StoreError> {
        // Readers see every commit at once.
        Ok(())
    }

    fn health(&self) -> StoreHealth {
        let name = format!("embedded (SQLite {})", rusqlite::version());
        self.shared.watch.report(name)
    }
}

#[cfg(test)]
mod tests;
