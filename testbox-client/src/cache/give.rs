//! Gives a file to a job: out of the cache, or fetched into it first. Jobs that want the same file share one fetch.

use std::{collections::HashMap, fs::File, future::Future, io, path::Path, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{OwnedMutexGuard, Semaphore};
use tokio_util::sync::CancellationToken;

use super::{
    files::{Files, Hold},
    key::{FileKey, Wanted},
    manifests::Manifests,
    place::{Placed, Way, place},
    unfinished::Unfinished,
};
use crate::blocking::blocking;

/// Maximum number of lookups of a file: one after each fetch of it, by this job or another.
const TRIES_MAX: usize = 6;
/// Maximum number of fetches by one job of a file that turns out to be damaged.
const FETCHES_MAX: usize = 2;
/// Maximum number of chunks that all jobs together fetch at a time.
const ABREAST_MAX: usize = 16;
const NOT_ITSELF: &str = "what was fetched does not have its digest: its manifest is wrong, or the disk of this testbox damages files";

/// Cache of the machine's inputs.
#[derive(Debug)]
pub(crate) struct Cache {
    pub(crate) files: Arc<Files>,
    pub(crate) manifests: Manifests,
    flights: Arc<Flights>,
    /// Permits for the chunks that all jobs together fetch at a time. Each chunk is in memory.
    pub(super) abreast: Semaphore,
}

/// Source of files outside the cache.
pub(crate) trait Fetch: Sync {
    /// Writes the file to the empty file `into`. Each try begins anew.
    fn fetch(&self, into: File) -> impl Future<Output = Result<(), GiveError>> + Send;

    /// Notes that the cache had a damaged file, which was dropped.
    fn damaged(&self);
}

/// Reason why a job does not get a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GiveError {
    /// The job was stopped.
    #[error("stopped")]
    Stopped,
    /// The lab lacks the file, has a damaged one, or does not answer.
    #[error("{0}")]
    Lab(String),
    /// This machine cannot store it.
    #[error("{0}")]
    Disk(#[from] io::Error),
}

/// Files being fetched now.
#[derive(Debug, Default)]
struct Flights(Mutex<HashMap<FileKey, Arc<tokio::sync::Mutex<()>>>>);

/// Exclusive right to fetch a file, until dropped.
#[derive(Debug)]
struct Turn {
    flights: Arc<Flights>,
    key: FileKey,
    guard: OwnedMutexGuard<()>,
}

impl Flights {
    async fn turn(self: &Arc<Self>, key: FileKey) -> Turn {
        let flight = Arc::clone(self.0.lock().entry(key).or_default());
        Turn {
            flights: Arc::clone(self),
            key,
            guard: flight.lock_owned().await,
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        /// Reference count of a lock that only the map and the guard hold.
        const LAST: usize = 2;
        let mut flights = self.flights.0.lock();
        if Arc::strong_count(OwnedMutexGuard::mutex(&self.guard)) <= LAST {
            flights.remove(&self.key);
        }
    }
}

impl Cache {
    /// Opens the cache in `folder`. `bytes_max` of `None`: the default. Blocks.
    ///
    /// # Errors
    /// Fails if the folder is unusable, or in use by another agent.
    pub(crate) fn open(folder: &Path, bytes_max: Option<u64>) -> io::Result<Self> {
        let files = Files::open(folder, bytes_max)?;
        let manifests = Manifests::open(folder)?;
        manifests.refresh(&files);
        Ok(Self {
            files,
            manifests,
            flights: Arc::default(),
            abreast: Semaphore::new(ABREAST_MAX),
        })
    }

    /// Puts a file to the new path `to`. The cache keeps it until the returned hold is dropped. `None`: it did not fit
    /// into the cache.
    pub(crate) async fn give(
        &self,
        wanted: Wanted,
        to: &Path,
        way: Way,
        stop: &CancellationToken,
        from: &impl Fetch,
    ) -> Result<Option<Hold>, GiveError> {
        let mut fetches = 0;
        let mut held = None;
        for _ in 0..TRIES_MAX {
            let here = held.take().or_else(|| self.files.hold(wanted.key));
            if let Some(hold) = here {
                match self.placed(&hold, wanted, to, way, stop).await? {
                    Placed::Whole => return Ok(Some(hold)),
                    Placed::Stopped => return Err(GiveError::Stopped),
                    Placed::Damaged if fetches >= FETCHES_MAX => break,
                    Placed::Damaged => {
                        from.damaged();
                        let dropping = move || {
                            hold.drop_damaged();
                            Ok(())
                        };
                        blocking(dropping).await?;
                    }
                }
            }
            let turn = tokio::select! {
                biased;
                () = stop.cancelled() => return Err(GiveError::Stopped),
                turn = self.flights.turn(wanted.key) => turn,
            };
            if self.files.has(wanted.key) {
                // Another job fetched it meanwhile.
                continue;
            }
            let files = Arc::clone(&self.files);
            let room = blocking(move || Ok(files.room(wanted.bytes))).await?;
            let Some(room) = room else {
                return self.past_it(wanted, to, stop, from).await.map(|()| None);
            };
            let fetched = self.fetched(wanted, &room.path(), stop, from).await?;
            fetches += 1;
            held = Some(blocking(move || room.keep(wanted.key, fetched)).await?);
            drop(turn);
        }
        Err(GiveError::Lab(NOT_ITSELF.to_owned()))
    }

    async fn placed(
        &self,
        hold: &Hold,
        wanted: Wanted,
        to: &Path,
        way: Way,
        stop: &CancellationToken,
    ) -> io::Result<Placed> {
        let (files, stop) = (Arc::clone(&self.files), stop.clone());
        let (from, to) = (hold.path(), to.to_owned());
        let placing = move || {
            loop {
                match place(&from, &to, wanted, way, &stop) {
                    Err(error) if is_full(&error) && files.give_back(wanted.bytes) => {}
                    placed => return placed.map_err(|error| explained(error, wanted.bytes)),
                }
            }
        };
        blocking(placing).await
    }

    /// Fetches a file to a new path. If the disk is full, the cache evicts files.
    async fn fetched(
        &self,
        wanted: Wanted,
        to: &Path,
        stop: &CancellationToken,
        from: &impl Fetch,
    ) -> Result<Unfinished, GiveError> {
        loop {
            let path = to.to_owned();
            let (file, unfinished) = blocking(move || Unfinished::new(path)).await?;
            let got = tokio::select! {
                biased;
                () = stop.cancelled() => Err(GiveError::Stopped),
                got = from.fetch(file) => got,
            };
            let error = match got {
                Ok(()) => return Ok(unfinished),
                Err(GiveError::Disk(error)) => error,
                Err(other) => return Err(other),
            };
            drop(unfinished);
            let files = Arc::clone(&self.files);
            let has_room =
                is_full(&error) && blocking(move || Ok(files.give_back(wanted.bytes))).await?;
            if !has_room {
                return Err(explained(error, wanted.bytes).into());
            }
        }
    }

    /// Fetches a file that does not fit into the cache directly to `to`.
    async fn past_it(
        &self,
        wanted: Wanted,
        to: &Path,
        stop: &CancellationToken,
        from: &impl Fetch,
    ) -> Result<(), GiveError> {
        let fetched = self.fetched(wanted, to, stop, from).await?;
        let stop = stop.clone();
        let checking = move || {
            let found = fetched.hash(&stop)?;
            if found == Some(wanted.key.digest) {
                fetched.keep(wanted.key.mode())?;
            }
            Ok(found)
        };
        match blocking(checking).await? {
            None => Err(GiveError::Stopped),
            Some(found) if found == wanted.key.digest => Ok(()),
            Some(_) => Err(GiveError::Lab(NOT_ITSELF.to_owned())),
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Explains the error of a full disk.
fn explained(error: io::Error, bytes: u64) -> io::Error {
    if !is_full(&error) {
        return error;
    }
    let problem = format!(
        "the disk of this testbox has no room for its {bytes} bytes, and its cache of inputs has nothing to remove"
    );
    io::Error::new(error.kind(), problem)
}
