//! Content on the wire: digests and words of a request, and views of what accounts have.

use std::time::Duration;

use fairlead_api::ContentView;
use fairlead_content::{About, Digest, Owned, PIN_CHUNKS_MAX};

use fairlead_base::errors::{ContentFault, excerpt};

/// How long an address of a chunk can be used, to put it or to read it.
pub(super) const URL_LASTS: Duration = Duration::from_hours(6);
/// Longest word of a put, bytes.
const PUT_BYTES_MAX: usize = 64;
/// Longest name of an input, bytes.
const NAME_BYTES_MAX: usize = 128;

/// Digests of a request.
pub(super) fn digests(texts: &[String]) -> Result<Vec<Digest>, ContentFault> {
    if texts.len() > PIN_CHUNKS_MAX {
        let (given, max) = (texts.len(), PIN_CHUNKS_MAX);
        return Err(ContentFault::TooManyChunks { given, max });
    }
    let read: Result<Vec<Digest>, _> = texts.iter().map(|text| text.parse()).collect();
    Ok(read?)
}

/// Refuses what is no word of a put: it becomes part of paths.
pub(crate) fn check_put(put: &str) -> Result<(), ContentFault> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if (1..=PUT_BYTES_MAX).contains(&put.len()) && put.bytes().all(is_plain) {
        return Ok(());
    }
    Err(ContentFault::BadPut(excerpt(put)))
}

/// Refuses what is no name of an input.
pub(super) fn check_name(name: &str) -> Result<(), ContentFault> {
    if name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let (given, max) = (name.len(), NAME_BYTES_MAX);
    Err(ContentFault::BadName { given, max })
}

/// What an account has under an id.
pub(super) fn view(id: Digest, account: &str, owned: Owned, about: &About) -> ContentView {
    ContentView {
        id: id.to_string(),
        name: owned.name,
        my_account: account.to_owned(),
        files: about.files,
        bytes: about.bytes,
        chunks: about.chunks,
        put_ms: owned.put_ms,
        job_id: owned.job_id,
        keep_until_ms: Some(owned.keep_until_ms).filter(|ms| *ms > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_put_has_a_plain_word() {
        for good in ["a", "A-9_z", &"x".repeat(64)] {
            assert_eq!(check_put(good), Ok(()), "{good}");
        }
        for bad in ["", "a/b", "..", "a b", "é", &"x".repeat(65)] {
            assert!(
                matches!(check_put(bad), Err(ContentFault::BadPut(_))),
                "{bad}"
            );
        }
    }
}
