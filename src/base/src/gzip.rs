//! Compression by gzip: of whole answers, and of streams whose pieces are shared by all who read them.
//!
//! Each piece of a stream is compressed on its own and ends at a whole byte. So a piece that is compressed once fits
//! behind any other. RFC 1951 has blocks without a window, and RFC 1952 has the head.

use std::io::{Read as _, Write as _};

use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress, Status, read::GzDecoder, write::GzEncoder};

/// The head of a gzip stream: deflate, no name, no time, an unknown system.
pub const HEAD: Bytes = Bytes::from_static(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
/// Room for the bytes that a flush adds.
const ROOM: usize = 1024;

/// Returns a piece of a stream. It may stand behind [`HEAD`] or any other piece.
pub fn piece(text: &[u8]) -> Bytes {
    let mut packer = Compress::new(Compression::fast(), false);
    let mut packed = Vec::with_capacity(text.len() / 4 + ROOM);
    loop {
        let taken = usize::try_from(packer.total_in()).unwrap_or(text.len());
        let rest = text.get(taken..).unwrap_or_default();
        let status = packer.compress_vec(rest, &mut packed, FlushCompress::Full);
        // It is flushed once it leaves room.
        let is_done = packed.len() < packed.capacity() || !matches!(status, Ok(Status::Ok));
        if is_done {
            return packed.into();
        }
        packed.reserve(ROOM + rest.len() / 4);
    }
}

/// Returns a whole answer. `None`: it cannot be compressed, which never happens in memory.
pub fn whole(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

/// Undoes [`whole`], for bytes embedded in a program. Returns nothing if the bytes are no gzip.
pub fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let read = GzDecoder::new(bytes).read_to_end(&mut text);
    read.map(|_| text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_back(packed: &[u8], many: usize) -> Vec<u8> {
        let mut text = vec![0; many];
        GzDecoder::new(packed).read_exact(&mut text).unwrap();
        text
    }

    proptest! {
        #[test]
        fn pieces_stand_behind_each_other_in_any_order(
            texts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..5_000), 1..5),
            again in 0..40_usize,
        ) {
            let long = vec![b'a'; again * 10_000];
            let all = texts.iter().chain([&long]);
            let packed: Vec<Bytes> = all.clone().map(|text| piece(text)).collect();
            for order in [false, true] {
                let mut stream = HEAD.to_vec();
                let mut expected = Vec::new();
                let mut pairs: Vec<_> = all.clone().zip(&packed).collect();
                if order {
                    pairs.reverse();
                }
                for (text, packed) in pairs {
                    stream.extend_from_slice(packed);
                    expected.extend_from_slice(text);
                }
                prop_assert_eq!(read_back(&stream, expected.len()), expected);
            }
        }
    }

    #[test]
    fn a_whole_answer_is_read_back() {
        let text = b"{\"a\":1}".repeat(1_000);
        let packed = whole(&text).unwrap();
        assert!(packed.len() < text.len() / 10);
        assert_eq!(unpacked(&packed), text);
    }
}
