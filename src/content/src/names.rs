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
//! | `files/NAME.note` | a file that has a name of its own |
//! | `texts/NAME/N` | the piece of a text that begins at byte N |
//! | `damaged/KIND/DIGEST` | an object that was moved aside |

use std::fmt;

use object_store::path::Path;
use percent_encoding::percent_decode_str;

use crate::Digest;

pub(crate) const CHUNKS: &str = "chunks";
pub(crate) const MANIFESTS: &str = "manifests";
pub(crate) const ABOUT: &str = "about";
pub(crate) const OWNERS: &str = "owners";
pub(crate) const PINS: &str = "pins";
pub(crate) const DAMAGED: &str = "damaged";
pub(crate) const FILES: &str = "files";
const TEXTS: &str = "texts";
/// Suffix of the notes of files, so that no folder of a name is in their way.
pub(crate) const NOTE: &str = ".note";
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

/// Returns the name of a term. Numbers have all their digits, so that they sort by value.
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

/// The note of a file.
pub(crate) fn note_name(name: &str) -> Path {
    let mut parts: Vec<String> = name.split('/').map(str::to_owned).collect();
    if let Some(last) = parts.last_mut() {
        last.push_str(NOTE);
    }
    std::iter::once(FILES.to_owned()).chain(parts).collect()
}

/// The folder of the notes of files below a name; empty: of all.
pub(crate) fn folder_name(name: &str) -> Path {
    below(FILES, name)
}

/// The folder of the pieces of a text; of an empty name: of all texts.
pub(crate) fn text_name(name: &str) -> Path {
    below(TEXTS, name)
}

/// The piece of a text that begins at an offset.
pub(crate) fn piece_name(name: &str, offset: u64) -> Path {
    text_name(name).join(Twenty(offset).to_string())
}

fn below(kind: &str, name: &str) -> Path {
    let parts = name.split('/').filter(|part| !part.is_empty());
    std::iter::once(kind).chain(parts).collect()
}

/// Returns the last part of an object's name without escapes.
pub(crate) fn unescaped(name: &Path) -> Option<String> {
    let name = percent_decode_str(name.filename()?);
    Some(name.decode_utf8_lossy().into_owned())
}

/// Returns the digest at the end of an object's name; `None`: it is not one of ours.
pub(crate) fn digest_of(name: &Path) -> Option<Digest> {
    name.filename()?.parse().ok()
}

struct Twenty(u64);

impl fmt::Display for Twenty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}", self.0)
    }
}
