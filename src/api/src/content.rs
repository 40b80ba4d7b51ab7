//! Inputs and outputs by content. Digests are blake3, 64 hexadecimal digits in lower case; a manifest's digest is the id of
//! the input or output.

use serde::{Deserialize, Serialize};

/// Chunks that are about to be put, and kept from collection from now on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContentPin {
    /// Names this put: 1 to 64 letters, digits, `-` and `_`, by chance. The same one for all requests of a put.
    pub put: String,
    /// Digests of chunks, at most 10,000.
    pub chunks: Vec<String>,
}

/// Which of these chunks must be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContentMissing {
    /// The chunks that are not there, in the order of the request, without repeats.
    pub missing: Vec<MissingChunk>,
    /// Until when the put keeps its chunks, UTC epoch ms: the manifest must be in by then.
    pub until_ms: u64,
}

/// A chunk that is not there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MissingChunk {
    /// Its digest.
    pub digest: String,
    /// Where to send it by PUT, without any credentials. Absent: to `content/chunks/:digest` of a scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers that the PUT must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
}

/// Asks from where to read chunks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContentUrlsRequest {
    /// The input or output that they are of.
    pub id: String,
    /// Digests of chunks of it, at most 10,000.
    pub chunks: Vec<String>,
}

/// From where to read chunks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContentUrls {
    /// An address for each of them, in order, to be read by GET without any credentials. Empty: from
    /// `content/chunks/:digest` of a scheduler.
    pub urls: Vec<String>,
    /// Until when the addresses can be used, UTC epoch ms; 0: there are none.
    #[serde(default)]
    pub until_ms: u64,
}

/// What is known of an input or an output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContentView {
    /// Its id.
    pub id: String,
    /// What its owner calls it; empty: nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Whose it is.
    pub my_account: String,
    /// How many files, links and empty folders it has.
    pub files: u64,
    /// Bytes of all its files together.
    pub bytes: u64,
    /// How many different chunks it has.
    pub chunks: u64,
    /// When it was put, UTC epoch ms.
    pub put_ms: u64,
    /// The job that has it as its outputs; empty: somebody put it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub job_id: String,
    /// Until when it is kept whatever jobs do, UTC epoch ms; absent: as long as jobs name it, and for the grace period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_until_ms: Option<u64>,
}

/// How long an input or output is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContentKeep {
    /// Until when: `+14d` from now or a time such as `2026-11-22T05:00:00Z`, at most 366 days ahead; empty: no longer than
    /// jobs name it.
    #[serde(default)]
    pub until: String,
}

/// A page of inputs and outputs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContentList {
    /// They, sorted by id; those of all accounts by account, then by id.
    pub content: Vec<ContentView>,
    /// Give this as `after` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Asks for a collection, or for a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContentCareRequest {
    /// Only tells what would be done.
    #[serde(default)]
    pub dry_run: bool,
}

/// What a collection removed, or would remove.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContentCollected {
    /// Manifests that are there.
    pub manifests: u64,
    /// Manifests that were removed: no job names them, nobody keeps them, and the grace period is over.
    pub manifests_removed: u64,
    /// Chunks that are there.
    pub chunks: u64,
    /// Chunks that were removed.
    pub chunks_removed: u64,
    /// Bytes of the chunks that were removed.
    pub bytes_removed: u64,
    /// Bytes of the chunks that stay.
    pub bytes_kept: u64,
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContentChecked {
    /// Manifests that were read.
    pub manifests: u64,
    /// Chunks that were read.
    pub chunks: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// What is damaged or missing, a sentence each, the first 100.
    pub problems: Vec<String>,
    /// How many problems there are in all.
    pub problems_total: u64,
}

/// An input of a granted job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GrantInput {
    /// Its id.
    pub id: String,
    /// Where it goes below the job's `inputs` folder; empty: into that folder itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
}
