//! Files by content: cut into chunks, named by manifests, kept in a folder or in an object store.
//!
//! A file is cut where its content says (`FastCDC`), so that files that are nearly equal share most of their chunks. A
//! manifest lists the files of an input or an output with their chunks, and its hash is its id. A manifest is written
//! after its chunks and is the only root: what no manifest names is removed after a grace period.
//!
//! Nothing here knows a job. The caller says who keeps a manifest.

mod beside;
mod check;
mod chunks;
mod clock;
mod collect;
mod condemned;
mod digest;
mod error;
mod health;
mod json;
mod location;
mod manifest;
mod named;
mod names;
mod owners;
mod pieces;
mod pin;
mod pins;
mod remote;
mod sketch;
mod store;
pub mod transfer;

pub use check::{CHECK_NAMED_MAX, Checked};
pub use chunks::{CHUNK_BYTES_AVG, CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, Chunk, Chunks};
pub use clock::Clock;
pub use collect::{CollectOptions, Collected, Marks};
pub use digest::{BadDigest, Digest};
pub use error::ContentError;
pub use health::{ContentHealth, ContentState};
pub use location::{BadLocation, Bucket, Location};
pub use manifest::{
    Entry, FILES_MAX, Kind, MANIFEST_BYTES_MAX, Manifest, ManifestError, PATH_BYTES_MAX,
};
pub use named::{Named, NamedFile};
pub use pieces::{Appended, Text};
pub use pin::{PIN_CHUNKS_MAX, PIN_LASTS_MAX, Pin};
pub use sketch::{SKETCH_MAX, sketch, words};
pub use store::{About, ContentStore, Owned};
