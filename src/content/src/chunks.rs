//! Cuts a file where its content says.
//!
//! The parameters are those of `FastCdc2020Params` of the Remote Execution API (v2): an average of 512 KiB, a quarter of
//! it at least, four times as much at most, normalization level 2, seed 0. So other stores of that interface cut alike.

use std::io::{self, Read};

use fastcdc::v2020::{Error, Normalization, StreamCDC};

use crate::Digest;

/// Average size of a chunk, bytes.
pub const CHUNK_BYTES_AVG: usize = 512 * 1024;
/// Smallest chunk except for the last one of a file, bytes.
pub const CHUNK_BYTES_MIN: usize = CHUNK_BYTES_AVG / 4;
/// Largest chunk, bytes.
pub const CHUNK_BYTES_MAX: usize = CHUNK_BYTES_AVG * 4;

/// Piece of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chunk {
    /// The hash of its bytes.
    pub digest: Digest,
    /// Size, bytes, 1 to [`CHUNK_BYTES_MAX`].
    pub size: u32,
}

impl Chunk {
    /// Returns the chunk of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self {
            digest: Digest::of(bytes),
            size: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        }
    }
}

/// The chunks of a file one after the other, each with its bytes. Holds at most one chunk and one of the next. Blocks.
pub struct Chunks<R: Read> {
    cuts: StreamCDC<R>,
}

impl<R: Read> std::fmt::Debug for Chunks<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chunks").finish_non_exhaustive()
    }
}

impl<R: Read> Chunks<R> {
    /// Reads from the beginning of `source`.
    pub fn of(source: R) -> Self {
        let (min, avg, max) = (CHUNK_BYTES_MIN, CHUNK_BYTES_AVG, CHUNK_BYTES_MAX);
        Self {
            cuts: StreamCDC::with_level(source, min, avg, max, Normalization::Level2),
        }
    }
}

impl<R: Read> Iterator for Chunks<R> {
    type Item = io::Result<(Chunk, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.cuts.next()? {
            Ok(cut) => Some(Ok((Chunk::of(&cut.data), cut.data))),
            Err(Error::Empty) => None,
            Err(Error::IoError(error)) => Some(Err(error)),
            Err(error) => Some(Err(io::Error::other(error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes without a pattern, the same each time.
    fn bytes(many: usize) -> Vec<u8> {
        let mut out = vec![0; many];
        blake3::Hasher::new_derive_key("fairlead chunks")
            .finalize_xof()
            .fill(&mut out);
        out
    }

    fn cut(bytes: &[u8]) -> Vec<Chunk> {
        Chunks::of(bytes).map(|cut| cut.unwrap().0).collect()
    }

    #[test]
    fn chunks_join_to_the_file() {
        for many in [0, 1, CHUNK_BYTES_MIN, 5_000_000] {
            let all = bytes(many);
            let mut joined = Vec::new();
            for cut in Chunks::of(all.as_slice()) {
                let (chunk, data) = cut.unwrap();
                assert_eq!(chunk, Chunk::of(&data));
                assert!(!data.is_empty() && data.len() <= CHUNK_BYTES_MAX);
                joined.extend(data);
            }
            assert!(joined == all, "{many}");
        }
    }

    #[test]
    fn bytes_in_the_middle_change_few_chunks() {
        let all = bytes(16_000_000);
        let before = cut(&all);
        let mut changed = all;
        changed.splice(8_000_000..8_000_000, *b"some bytes more");
        let after = cut(&changed);
        let fresh = after.iter().filter(|chunk| !before.contains(chunk)).count();
        assert!(
            before.len() > 20 && (1..=2).contains(&fresh),
            "{fresh} of {}",
            before.len()
        );
    }

    /// The cuts of a known file. They must never change, because all stored content was cut so.
    #[test]
    fn cuts_stay_where_they_are() {
        let sizes: Vec<u32> = cut(&bytes(3_000_000))
            .iter()
            .map(|chunk| chunk.size)
            .collect();
        assert_eq!(
            sizes,
            [217_993, 619_811, 844_870, 211_028, 775_025, 331_273]
        );
    }
}
