//! Puts and gets a gigabyte in a folder by the content store, and beside it by the object store alone, with the same fsync.
//!
//! It prints ratios, medians of three rounds in turns: the same chunks put singly, and one object. Beside them stands the
//! processor time, which a busy machine changes less. Run it with
//! `cargo run --release -p fairlead-content --example transfer_rates [-- FOLDER]` on a quiet machine; it needs 3 GB there, and 1 GB of memory.

#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::{
    path::Path as FsPath,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use fairlead_content::{
    CHUNK_BYTES_AVG, Chunk, Chunks, ContentStore, Digest, Entry, Kind, Location, Manifest, Pin,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, ObjectStoreExt, PutPayload, local::LocalFileSystem, path::Path};

const BYTES: usize = 1_000_000_000;
const ROUNDS: usize = 3;
/// Chunks that are on their way at a time, in the content store and in the object store alone.
const ABREAST: usize = 16;

type Failure = Box<dyn std::error::Error>;

/// Bytes without a pattern.
fn input() -> Vec<u8> {
    let mut out = vec![0; BYTES];
    blake3::Hasher::new_derive_key("fairlead rates")
        .finalize_xof()
        .fill(&mut out);
    out
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
async fn timed(work: impl Future<Output = Result<(), Failure>>) -> Result<Took, Failure> {
    let (begun, cpu_before) = (Instant::now(), cpu()?);
    work.await?;
    Ok(Took {
        wall: begun.elapsed(),
        cpu: cpu()?.saturating_sub(cpu_before),
    })
}

/// How long something took.
#[derive(Debug, Clone, Copy)]
struct Took {
    wall: Duration,
    /// Processor time of all threads.
    cpu: Duration,
}

/// Processor time of this process.
fn cpu() -> Result<Duration, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // Its name may hold blanks. User and system time stand behind eleven other numbers, in hundredths of a second.
    let (_, numbers) = stat.rsplit_once(") ").ok_or("no numbers")?;
    let ticks = numbers.split(' ').skip(11).take(2).map(str::parse::<u64>);
    let ticks: u64 = ticks.sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(ticks * 10))
}

fn open_alone(folder: &FsPath) -> Result<Arc<dyn ObjectStore>, Failure> {
    std::fs::create_dir_all(folder)?;
    Ok(Arc::new(
        LocalFileSystem::new_with_prefix(folder)?.with_fsync(true),
    ))
}

fn cut(all: &Bytes) -> Result<Vec<(Chunk, Bytes)>, Failure> {
    let cuts = Chunks::of(all.as_ref()).map(|cut| cut.map(|(chunk, _)| chunk));
    let chunks = cuts.collect::<Result<Vec<Chunk>, _>>()?;
    Ok(pieces(all, &chunks))
}

fn manifest_of(all: &Bytes, pieces: &[(Chunk, Bytes)]) -> Result<Bytes, Failure> {
    let kind = Kind::File {
        executable: false,
        size: u64::try_from(all.len())?,
        digest: Digest::of(all),
        chunks: pieces.iter().map(|(chunk, _)| *chunk).collect(),
    };
    let path = "file".to_owned();
    let manifest = Manifest::new(vec![Entry { path, kind }])?;
    Ok(manifest.encode()?.into())
}

/// What the store does for a put: pins, what is missing, chunks, and the manifest.
async fn put(
    store: &ContentStore,
    pieces: &[(Chunk, Bytes)],
    manifest: &Bytes,
) -> Result<(), Failure> {
    let digests: Vec<Digest> = pieces.iter().map(|(chunk, _)| chunk.digest).collect();
    let pin = Pin {
        put: "rates".to_owned(),
        until_ms: u64::MAX,
        digests: digests.iter().copied().collect(),
    };
    store.pin(&pin).await?;
    let missing = store.missing(&digests).await?;
    if missing.len() != digests.len() {
        return Err("the store was not empty".into());
    }
    let puts =
        stream::iter(pieces).map(|(chunk, bytes)| store.put_chunk(chunk.digest, bytes.clone()));
    puts.buffer_unordered(ABREAST).try_collect::<()>().await?;
    store.put_manifest(manifest.clone()).await?;
    Ok(())
}

async fn get(store: &ContentStore, id: Digest) -> Result<(), Failure> {
    let manifest = store.manifest(id).await?.ok_or("no manifest")?;
    let manifest = Manifest::decode(&manifest)?;
    let gets = stream::iter(manifest.chunks()).map(|chunk| store.chunk(chunk.digest));
    let mut gets = gets.buffered(ABREAST);
    let mut many = 0;
    while let Some(bytes) = gets.try_next().await? {
        many += bytes.ok_or("no chunk")?.len();
    }
    if many == BYTES {
        Ok(())
    } else {
        Err("too few bytes".into())
    }
}

fn name_of(chunk: Chunk) -> Path {
    let digits = chunk.digest.to_string();
    Path::from_iter([digits.split_at(2).0, &digits])
}

async fn put_alone(alone: &dyn ObjectStore, pieces: &[(Chunk, Bytes)]) -> Result<(), Failure> {
    let puts = stream::iter(pieces).map(async |(chunk, bytes)| {
        let payload = PutPayload::from_bytes(bytes.clone());
        alone.put(&name_of(*chunk), payload).await.map(|_| ())
    });
    Ok(puts.buffer_unordered(ABREAST).try_collect::<()>().await?)
}

async fn get_alone(alone: &dyn ObjectStore, pieces: &[(Chunk, Bytes)]) -> Result<(), Failure> {
    let gets = stream::iter(pieces)
        .map(async |(chunk, _)| alone.get(&name_of(*chunk)).await?.bytes().await);
    let mut gets = gets.buffered(ABREAST);
    let mut many = 0;
    while let Some(bytes) = gets.try_next().await? {
        many += bytes.len();
    }
    if many == BYTES {
        Ok(())
    } else {
        Err("too few bytes".into())
    }
}

async fn put_one(alone: &dyn ObjectStore, all: &Bytes) -> Result<(), Failure> {
    alone
        .put(&Path::from("one"), PutPayload::from_bytes(all.clone()))
        .await?;
    Ok(())
}

async fn get_one(alone: &dyn ObjectStore) -> Result<(), Failure> {
    let mut many = 0;
    let mut parts = alone.get(&Path::from("one")).await?.into_stream();
    while let Some(bytes) = parts.try_next().await? {
        many += bytes.len();
    }
    if many == BYTES {
        Ok(())
    } else {
        Err("too few bytes".into())
    }
}

fn pieces(all: &Bytes, chunks: &[Chunk]) -> Vec<(Chunk, Bytes)> {
    let mut rest = all.clone();
    let piece = |chunk: &Chunk| {
        let size = usize::try_from(chunk.size).unwrap_or(CHUNK_BYTES_AVG);
        (*chunk, rest.split_to(size))
    };
    chunks.iter().map(piece).collect()
}

const NAMES: [&str; 6] = [
    "put: content store",
    "put: the same chunks alone",
    "put: one object",
    "get: content store",
    "get: the same chunks alone",
    "get: one object",
];

async fn round(
    folder: &FsPath,
    all: &Bytes,
    pieces: &[(Chunk, Bytes)],
    manifest: &Bytes,
) -> Result<[Took; 6], Failure> {
    let id = Digest::of(manifest);
    let path = |name: &str| folder.join(name);
    let store = Location::Folder(path("content")).open()?;
    let (alone, one) = (open_alone(&path("alone"))?, open_alone(&path("one"))?);
    let put_alone = timed(put_alone(&*alone, pieces)).await?;
    let put_content = timed(put(&store, pieces, manifest)).await?;
    let put_one = timed(put_one(&*one, all)).await?;
    let get_alone = timed(get_alone(&*alone, pieces)).await?;
    let get_content = timed(get(&store, id)).await?;
    let get_one = timed(get_one(&*one)).await?;
    // Removed at the end only: a removal slows down the writes behind it.
    for name in ["content", "alone", "one"] {
        std::fs::remove_dir_all(path(name))?;
    }
    Ok([
        put_content,
        put_alone,
        put_one,
        get_content,
        get_alone,
        get_one,
    ])
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times
        .get(times.len() / 2)
        .map_or(0.0, Duration::as_secs_f64)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let base = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let folder = tempfile::tempdir_in(base)?;
    let all = Bytes::from(input());
    let pieces = cut(&all)?;
    let manifest = manifest_of(&all, &pieces)?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(round(folder.path(), &all, &pieces, &manifest).await?);
    }
    let medians = |of: fn(&Took) -> Duration| -> Vec<f64> {
        let each = (0..NAMES.len()).map(|what| {
            let times = rounds.iter().filter_map(|took| took.get(what).map(of));
            median(times.collect())
        });
        each.collect()
    };
    let (cpu, medians) = (medians(|took| took.cpu), medians(|took| took.wall));
    println!("{BYTES} bytes, {} chunks, {ROUNDS} rounds", pieces.len());
    for ((name, time), cpu) in NAMES.iter().zip(&medians).zip(&cpu) {
        println!("{name:30} {time:7.2} s, processor {cpu:6.2} s");
    }
    if let [put, put_alone, put_one, get, get_alone, get_one] = medians.as_slice() {
        println!(
            "put: {:.2} x the same chunks, {:.2} x one object",
            put / put_alone,
            put / put_one
        );
        println!(
            "get: {:.2} x the same chunks, {:.2} x one object",
            get / get_alone,
            get / get_one
        );
    }
    Ok(())
}
