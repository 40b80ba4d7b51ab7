//! A few words that tell how much of an input somebody has.
//!
//! A chunk's word depends on its digest and its size alone. An input's sketch is the words of those of its chunks that come
//! first in an order by chance. Large chunks come earlier in it, in proportion to their size (bottom-k sampling by weight).
//! Two inputs that share most of their bytes share most of their words.

use crate::{Chunk, Digest};

/// Most words of a sketch.
pub const SKETCH_MAX: usize = 16;
/// Number of bytes of a digest in its word.
const WORD_BYTES: usize = 6;

/// The sketch of an input with these chunks: at most [`SKETCH_MAX`] words, sorted, without repeats.
pub fn sketch(chunks: impl IntoIterator<Item = Chunk>) -> Vec<String> {
    let mut ranked: Vec<(f64, Digest)> = chunks
        .into_iter()
        .map(|chunk| (rank(chunk), chunk.digest))
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    ranked.dedup();
    ranked.truncate(SKETCH_MAX);
    words(ranked.into_iter().map(|(_, digest)| digest))
}

/// The words of these chunks, sorted, without repeats.
pub fn words(chunks: impl IntoIterator<Item = Digest>) -> Vec<String> {
    let word = |digest: Digest| digest.to_string().split_at(WORD_BYTES * 2).0.to_owned();
    let mut words: Vec<String> = chunks.into_iter().map(word).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Returns a chunk's rank: an exponential variable with its size as the rate, derived from its digest.
fn rank(chunk: Chunk) -> f64 {
    let mut eight = [0; 8];
    for (to, from) in eight.iter_mut().zip(chunk.digest.as_bytes().iter().skip(8)) {
        *to = *from;
    }
    // 53 bits fit a float as they are.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are not cut")]
    let even = ((u64::from_le_bytes(eight) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    -even.ln() / f64::from(chunk.size.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(n: u32, size: u32) -> Chunk {
        Chunk {
            digest: Digest::of(&n.to_le_bytes()),
            size,
        }
    }

    #[test]
    fn inputs_that_share_bytes_share_words() {
        let large: Vec<Chunk> = (0..200).map(|n| chunk(n, 500_000)).collect();
        let changed = large
            .iter()
            .copied()
            .skip(2)
            .chain((900..902).map(|n| chunk(n, 500_000)));
        let (before, after) = (sketch(large.clone()), sketch(changed));
        let same = after.iter().filter(|word| before.contains(word)).count();
        assert_eq!((before.len(), after.len()), (16, 16));
        assert!(same >= 14, "{same}");
        let other = sketch((2_000..2_200).map(|n| chunk(n, 500_000)));
        assert!(other.iter().all(|word| !before.contains(word)));
        // Small files beside them do not count as much.
        let small = large
            .iter()
            .copied()
            .chain((5_000..5_400).map(|n| chunk(n, 100)));
        let same = sketch(small)
            .iter()
            .filter(|word| before.contains(word))
            .count();
        assert!(same >= 14, "{same}");
    }

    #[test]
    fn a_sketch_is_short_and_has_no_repeats() {
        assert_eq!(sketch([]), [""; 0]);
        let one = sketch([chunk(1, 5), chunk(1, 5)]);
        assert_eq!((one.len(), one.first().map(String::len)), (1, Some(12)));
    }
}
