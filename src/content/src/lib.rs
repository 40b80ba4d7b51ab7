//! Files by content: cut into chunks, named by manifests, kept in a folder or in an object store.
//!
//! A file is cut where its content says (`FastCDC`), so that files that are nearly equal share most of their chunks. A
//! manifest lists the files of an input or an output with their chunks, and its hash is its id. A manifest is written
//! after its chunks and is the only root: what no manifest names is removed after a grace period.
//!
//! Nothing here knows a job. Who keeps a manifest is for the caller to say.

mod chunks;
mod digest;
mod error;
mod location;
mod manifest;
mod owners;
mod sketch;
mod store;

pub use chunks::{CHUNK_BYTES_AVG, CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, Chunk, Chunks};
pub use digest::{BadDigest, Digest};
pub use error::ContentError;
pub use location::{BadLocation, Location};
pub use manifest::{
    Entry, FILES_MAX, Kind, MANIFEST_BYTES_MAX, Manifest, ManifestError, PATH_BYTES_MAX,
};
pub use sketch::{SKETCH_MAX, sketch, words};
pub use store::{About, ContentStore, Owned, PIN_CHUNKS_MAX, Pin};
