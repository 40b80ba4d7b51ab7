//! The names of the objects. Two digits of the digest come first below their kind, so that object stores spread them.
//!
//! | name | holds |
//! |---|---|
//! | `chunks/ab/DIGEST` | the bytes of a chunk |
//! | `manifests/ab/ID` | a manifest; it is written last |
//! | `about/ab/ID` | what is known of a manifest |
//! | `owners/ACCOUNT/ID` | what an account has under an id |
//! | `pins/PUT/DIGEST` | digests that a collection leaves alone |
//! | `collect/terms/N` | the collector number N |
//! | `collect/condemned/N-M` | what collector N is about to delete |
//! | `damaged/KIND/DIGEST` | an object that was moved aside |

use std::fmt;

use object_store::path::Path;

use crate::Digest;

pub(crate) const CHUNKS: &str = "chunks";
pub(crate) const MANIFESTS: &str = "manifests";
pub(crate) const ABOUT: &str = "about";
pub(crate) const OWNERS: &str = "owners";
pub(crate) const PINS: &str = "pins";
pub(crate) const DAMAGED: &str = "damaged";
const COLLECT: &str = "collect";

fn spread(kind: &str, digest: Digest) -> Path {
    let name = digest.to_string();
    Path::from_iter([kind, name.split_at(2).0, &name])
}

pub(crate) fn chunk_name(digest: Digest) -> Path {
    spread(CHUNKS, digest)
}

pub(crate) fn manifest_name(id: Digest) -> Path {
    spread(MANIFESTS, id)
}

pub(crate) fn about_name(id: Digest) -> Path {
    spread(ABOUT, id)
}

pub(crate) fn owner_name(account: &str, id: Digest) -> Path {
    Path::from_iter([OWNERS, account, &id.to_string()])
}

pub(crate) fn pin_name(put: &str, digest: Digest) -> Path {
    Path::from_iter([PINS, put, &digest.to_string()])
}

pub(crate) fn damaged_name(kind: &str, digest: Digest) -> Path {
    Path::from_iter([DAMAGED, kind, &digest.to_string()])
}

pub(crate) fn terms() -> Path {
    Path::from_iter([COLLECT, "terms"])
}

/// Numbers are written with all their digits, so that they sort as they count.
pub(crate) fn term_name(number: u64) -> Path {
    Path::from_iter([COLLECT, "terms", &Twenty(number).to_string()])
}

pub(crate) fn condemned() -> Path {
    Path::from_iter([COLLECT, "condemned"])
}

pub(crate) fn condemned_name(term: u64, batch: u64) -> Path {
    let name = format!("{}-{batch}", Twenty(term));
    Path::from_iter([COLLECT, "condemned", &name])
}

/// The digest that an object's name ends with; `None`: it is none of ours.
pub(crate) fn digest_of(name: &Path) -> Option<Digest> {
    name.filename()?.parse().ok()
}

struct Twenty(u64);

impl fmt::Display for Twenty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}", self.0)
    }
}
