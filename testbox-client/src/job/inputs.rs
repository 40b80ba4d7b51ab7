//! Puts the inputs of a job into its folder, through the cache: files read-only, then links. Nothing leads out of the
//! folder, because no path of a manifest does, and no input can put something below a link of another one.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use fairlead_api::{Grant, GrantInput};
use fairlead_content::{
    Digest, Entry, Kind, Manifest,
    transfer::{GetOptions, Remote, TransferError, decoded, fetch_file},
};
use fairlead_job::Health;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    context::Context,
    end::{stopped, unrun},
    folder::JobFolder,
    journal::End,
};
use crate::{
    AgentEvent, JobLine,
    blocking::blocking,
    cache::{Cache, Fetch, GiveError, Hold, Source, Wanted, Way, file_of},
    event::Events,
    executor::Place,
};

/// Maximum number of a job's files that are fetched at a time.
const FILES_ABREAST: usize = 8;
/// Maximum number of one file's chunks that are fetched at a time.
const CHUNKS_ABREAST: usize = 8;
/// Interval of the progress messages in the log, bytes.
const PROGRESS_BYTES: u64 = 1 << 30;
/// Mode of folders among inputs.
const FOLDER_MODE: u32 = 0o755;

/// Inputs to put into a job's folder.
#[derive(Debug)]
struct Order {
    cache: Arc<Cache>,
    lab: Arc<dyn Remote>,
    events: Events,
    job_id: String,
    attempt: u16,
    inputs: Vec<GrantInput>,
    /// Folder to create. It does not exist yet.
    folder: PathBuf,
    way: Way,
    stop: CancellationToken,
}

/// Reason why a job has no inputs.
#[derive(Debug)]
enum NotGiven {
    Stopped,
    /// They cannot have the form that the job wants.
    Job(String),
    /// The lab does not have them, or this machine cannot store them.
    Lab(String),
}

/// An input with its manifest.
#[derive(Debug)]
struct Input {
    id: Digest,
    /// Path below the folder of inputs. Empty: that folder.
    folder: String,
    manifest: Arc<Manifest>,
    /// Bytes of the manifest, if the cache did not have it.
    fetched: Option<Vec<u8>>,
}

/// All inputs of a job, and their progress.
#[derive(Debug)]
struct Work {
    order: Order,
    source: Source,
    inputs: Vec<Input>,
    /// Files: the index of the input, and the index of its manifest's entry.
    files: Vec<(usize, usize)>,
    next: AtomicUsize,
    bytes: u64,
    given: AtomicU64,
}

/// Puts the inputs into the job's folder. The cache keeps them until the answer is dropped. `Ok(None)`: forget the job.
/// Errors are the end of a job that never ran.
pub(super) async fn give(
    context: &Context,
    grant: &Grant,
    folder: &JobFolder,
    place: &Place,
    line: &mut JobLine,
) -> Result<Option<Vec<Hold>>, End> {
    if grant.inputs.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let fault = |reason| unrun(Health::AbortProvider, reason);
    let lab = context.content_for(&grant.job_id, grant.attempt, &grant.job_token);
    let lab = lab.map_err(|error| fault(format!("its inputs cannot be fetched: {error}")))?;
    // A virtual machine gets its own copies.
    let is_apart = context.users.is_some() || matches!(place, Place::Machine(_));
    let stop = CancellationToken::new();
    let order = Order {
        cache: Arc::clone(&context.cache),
        lab: Arc::new(lab),
        events: context.events.clone(),
        job_id: grant.job_id.clone(),
        attempt: grant.attempt,
        inputs: grant.inputs.clone(),
        folder: folder.inputs(),
        way: if is_apart { Way::Link } else { Way::Copy },
        stop: stop.clone(),
    };
    let mut giving = std::pin::pin!(order.carry_out());
    let given = tokio::select! {
        biased;
        told = line.stopped() => {
            stop.cancel();
            // After it has noticed the stop, it writes no more.
            drop(giving.await);
            return stopped(told.why, None).map_or(Ok(None), Err);
        }
        given = &mut giving => given,
    };
    match given {
        Ok(holds) => Ok(Some(holds)),
        Err(NotGiven::Job(reason)) => Err(unrun(Health::AbortInvalid, reason)),
        Err(NotGiven::Lab(reason)) => Err(fault(reason)),
        Err(NotGiven::Stopped) => Err(fault("its inputs were not fetched".to_owned())),
    }
}

impl Order {
    /// Carries out the order. The files stay in the cache until the answer is dropped.
    async fn carry_out(self) -> Result<Vec<Hold>, NotGiven> {
        let source = Source::new(Arc::clone(&self.cache), Arc::clone(&self.lab));
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            let found = tokio::select! {
                biased;
                () = self.stop.cancelled() => return Err(NotGiven::Stopped),
                found = manifest_of(&self.cache, &source, input) => found?,
            };
            inputs.push(found);
        }
        let merged = merged(&inputs)?;
        let files = inputs.iter().enumerate().flat_map(|(nth, input)| {
            let entries = input.manifest.entries().iter().enumerate();
            let files = entries.filter(|(_, entry)| file_of(entry).is_some());
            files.map(move |(entry, _)| (nth, entry))
        });
        let work = Arc::new(Work {
            files: files.collect(),
            next: AtomicUsize::new(0),
            bytes: merged.bytes(),
            given: AtomicU64::new(0),
            source,
            inputs,
            order: self,
        });
        work.give_all(&Arc::new(merged)).await
    }
}

impl Work {
    async fn give_all(self: &Arc<Self>, merged: &Arc<Manifest>) -> Result<Vec<Hold>, NotGiven> {
        let (job_id, bytes) = (&self.order.job_id, self.bytes);
        let files = merged.entries().len();
        tracing::info!(job_id, files, bytes, "getting the inputs of a job");
        let disk = |error: io::Error| NotGiven::Lab(format!("its inputs cannot be kept: {error}"));
        let (top, all) = (self.order.folder.clone(), Arc::clone(merged));
        blocking(move || make_folders(&top, &all))
            .await
            .map_err(disk)?;
        let given = self.give_files().await;
        let (work, whole) = (Arc::clone(self), given.is_ok());
        let noting = move || {
            work.note(whole);
            Ok(())
        };
        blocking(noting).await.map_err(disk)?;
        let holds = given?;
        let (top, all) = (self.order.folder.clone(), Arc::clone(merged));
        blocking(move || make_links(&top, &all))
            .await
            .map_err(disk)?;
        let fetched_bytes = self.source.fetched_bytes();
        tracing::info!(job_id, files, bytes, fetched_bytes, "a job has its inputs");
        self.order.events.send(AgentEvent::Inputs {
            job_id: job_id.clone(),
            attempt: self.order.attempt,
            files: u64::try_from(files).unwrap_or(u64::MAX),
            bytes,
            fetched_bytes,
        });
        Ok(holds)
    }

    /// Puts all files. The first failure stops the others.
    async fn give_files(self: &Arc<Self>) -> Result<Vec<Hold>, NotGiven> {
        let stop = self.order.stop.child_token();
        let mut abreast = JoinSet::new();
        for _ in 0..FILES_ABREAST.min(self.files.len()) {
            let (work, stop) = (Arc::clone(self), stop.clone());
            abreast.spawn(async move { work.give_some(&stop).await });
        }
        let mut holds = Vec::new();
        let mut failed = None;
        // All tasks must end, even when they are stopped, so that nothing is written after the job's end.
        while let Some(done) = abreast.join_next().await {
            let done = done.unwrap_or_else(|error| Err(NotGiven::Lab(error.to_string())));
            match done {
                Ok(some) => holds.extend(some),
                Err(error) => {
                    stop.cancel();
                    if !matches!(failed, Some(NotGiven::Lab(_) | NotGiven::Job(_))) {
                        failed = Some(error);
                    }
                }
            }
        }
        failed.map_or(Ok(holds), Err)
    }

    /// Puts files until none is left.
    async fn give_some(&self, stop: &CancellationToken) -> Result<Vec<Hold>, NotGiven> {
        let mut holds = Vec::new();
        loop {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((input, entry)) = self.files.get(next) else {
                return Ok(holds);
            };
            let Some(input) = self.inputs.get(*input) else {
                return Ok(holds);
            };
            if let Some(entry) = input.manifest.entries().get(*entry) {
                holds.extend(self.give_one(input, entry, stop).await?);
            }
        }
    }

    async fn give_one(
        &self,
        input: &Input,
        entry: &Entry,
        stop: &CancellationToken,
    ) -> Result<Option<Hold>, NotGiven> {
        let (Some((key, _)), Kind::File { size, .. }) = (file_of(entry), &entry.kind) else {
            return Ok(None);
        };
        let path = below(&input.folder, &entry.path);
        let wanted = Wanted { key, bytes: *size };
        let to = self.order.folder.join(&path);
        let one = One {
            work: self,
            id: input.id,
            entry,
            path: &path,
        };
        let given = self
            .order
            .cache
            .give(wanted, &to, self.order.way, stop, &one)
            .await;
        let hold = given.map_err(|error| match error {
            GiveError::Stopped => NotGiven::Stopped,
            GiveError::Lab(problem) => {
                let job_id = &self.order.job_id;
                tracing::warn!(job_id, input = %input.id, file = path, problem, "an input of a job cannot be had");
                NotGiven::Lab(format!(
                    "its input '{}' cannot be had: file '{path}': {problem}",
                    input.id
                ))
            }
            GiveError::Disk(error) => NotGiven::Lab(format!(
                "its input '{}' cannot be kept: file '{path}': {error}",
                input.id
            )),
        })?;
        let before = self.given.fetch_add(*size, Ordering::Relaxed);
        let now = before.saturating_add(*size);
        if before / PROGRESS_BYTES < now / PROGRESS_BYTES {
            let (job_id, bytes) = (&self.order.job_id, self.bytes);
            tracing::info!(job_id, given = now, bytes, "a job gets its inputs");
        }
        Ok(hold)
    }

    /// Tells the cache the inputs of its files, the first input last, because it is the most important one. Blocks.
    fn note(&self, whole: bool) {
        let manifests = &self.order.cache.manifests;
        for input in self.inputs.iter().rev().filter(|_| whole) {
            let noted = manifests.note(input.id, &input.manifest, input.fetched.as_deref());
            if let Err(error) = noted {
                tracing::warn!(input = %input.id, %error, "the manifest of an input cannot be kept");
            }
        }
        manifests.refresh(&self.order.cache.files);
    }
}

/// A file of an input, fetched from the lab.
struct One<'a> {
    work: &'a Work,
    id: Digest,
    entry: &'a Entry,
    path: &'a str,
}

impl Fetch for One<'_> {
    async fn fetch(&self, mut into: File) -> Result<(), GiveError> {
        let options = GetOptions {
            parallel: CHUNKS_ABREAST,
        };
        let source = &self.work.source;
        let fetched = fetch_file(source, self.id, self.entry, &mut into, &options).await;
        fetched.map(drop).map_err(not_fetched)
    }

    fn damaged(&self) {
        let order = &self.work.order;
        tracing::warn!(
            job_id = order.job_id,
            file = self.path,
            "the cache of inputs has a damaged file; it is fetched anew"
        );
        order.events.send(AgentEvent::CacheDamaged {
            job_id: order.job_id.clone(),
            attempt: order.attempt,
            file: self.path.to_owned(),
        });
    }
}

fn not_fetched(error: TransferError) -> GiveError {
    match error {
        TransferError::File { source, .. } => source.into(),
        // The caller adds the file's name.
        TransferError::FileOf { source, .. } => not_fetched(*source),
        // All people of the lab can read the reason of a failure, but only those who may read a chunk may know its
        // digest.
        TransferError::ChunkGone(_) | TransferError::Damaged { .. } => GiveError::Lab(
            "a part of it is missing or damaged in the lab (hint: put the files again)".to_owned(),
        ),
        other => GiveError::Lab(other.to_string()),
    }
}

/// Returns the manifest of an input, from the cache or the lab.
async fn manifest_of(
    cache: &Cache,
    source: &Source,
    input: &GrantInput,
) -> Result<Input, NotGiven> {
    let GrantInput { id: shown, folder } = input;
    let id: Digest = shown
        .parse()
        .map_err(|error| NotGiven::Job(format!("its input cannot be had: {error}")))?;
    let folder = folder.clone();
    if let Some(manifest) = cache.manifests.get(id) {
        let fetched = None;
        return Ok(Input {
            id,
            folder,
            manifest,
            fetched,
        });
    }
    let lost =
        |problem: String| NotGiven::Lab(format!("its input '{id}' cannot be had: {problem}"));
    let bytes = source.manifest(id).await;
    let bytes = bytes.map_err(|error| lost(error.to_string()))?;
    let reading = move || {
        let manifest = decoded(id, &bytes);
        Ok(manifest.map(|manifest| (manifest, bytes.to_vec())))
    };
    let read = blocking(reading)
        .await
        .map_err(|error| lost(error.to_string()))?;
    let (manifest, bytes) = read.map_err(|error| lost(error.to_string()))?;
    Ok(Input {
        id,
        folder,
        manifest: Arc::new(manifest),
        fetched: Some(bytes),
    })
}

/// Merges all inputs into one manifest.
fn merged(inputs: &[Input]) -> Result<Manifest, NotGiven> {
    let all = inputs.iter().flat_map(|input| {
        let entries = input.manifest.entries().iter();
        entries.map(|entry| Entry {
            path: below(&input.folder, &entry.path),
            kind: entry.kind.clone(),
        })
    });
    Manifest::new(all.collect())
        .map_err(|error| NotGiven::Job(format!("its inputs do not fit together: {error}")))
}

fn below(folder: &str, path: &str) -> String {
    if folder.is_empty() {
        path.to_owned()
    } else {
        format!("{folder}/{path}")
    }
}

/// Creates the top and all folders. Blocks.
fn make_folders(top: &Path, all: &Manifest) -> io::Result<()> {
    let mut folders = BTreeSet::new();
    for entry in all.entries() {
        let slashes = entry.path.match_indices('/');
        folders.extend(slashes.map(|(at, _)| entry.path.split_at(at).0));
        if entry.kind == Kind::EmptyFolder {
            folders.insert(&entry.path);
        }
    }
    // Each folder comes after its parents.
    for folder in std::iter::once("").chain(folders) {
        let path = top.join(folder);
        fs::create_dir(&path)?;
        // The mask of the agent may hide it from the job's user.
        fs::set_permissions(&path, fs::Permissions::from_mode(FOLDER_MODE))?;
    }
    Ok(())
}

/// Creates all links last, so that nothing follows them. Blocks.
fn make_links(top: &Path, all: &Manifest) -> io::Result<()> {
    for entry in all.entries() {
        if let Kind::Link { target } = &entry.kind {
            symlink(target, top.join(&entry.path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_job_tells_no_digest_of_a_chunk() {
        let digest = Digest::of(b"chunk");
        let is = Digest::of(b"other");
        for error in [
            TransferError::ChunkGone(digest),
            TransferError::Damaged { digest, is },
        ] {
            let error = TransferError::FileOf {
                path: "kernel".to_owned(),
                source: Box::new(error),
            };
            let GiveError::Lab(told) = not_fetched(error) else {
                panic!("the lab is to blame");
            };
            assert!(told.contains("put the files again"), "{told}");
            for digest in [digest, is] {
                assert!(!told.contains(&digest.to_string()), "{told}");
            }
        }
    }
}
