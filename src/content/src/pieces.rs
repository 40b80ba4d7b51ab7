//! Texts that grow, such as logs of jobs: pieces, each named by the offset of its first byte.
//!
//! A piece is written once. Two writers at one offset cannot both succeed, so a text has one course.

use std::ops::Range;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use object_store::ObjectStoreExt;

use crate::{
    ContentError, ContentStore,
    names::{piece_name, text_name, unescaped},
};

/// Number of pieces that are read ahead of the reader.
const READ_AHEAD: usize = 2;

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    offset: u64,
    size: u64,
}

impl Piece {
    const fn end(self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}

/// Text, as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    name: String,
    /// Pieces in order, each behind the one before it.
    pieces: Vec<Piece>,
}

impl Text {
    /// Returns its size, bytes; 0: there is none.
    pub fn size(&self) -> u64 {
        self.pieces.last().map_or(0, |piece| piece.end())
    }
}

/// Result of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// The text has these bytes from the offset on. Its new size, bytes.
    Stored(u64),
    /// The text is shorter than the offset. Its size, bytes.
    Gap(u64),
}

impl ContentStore {
    /// Reads the list of pieces of a text. It is empty if there is none.
    pub async fn text(&self, name: &str) -> Result<Text, ContentError> {
        let found = self.list(&text_name(name)).try_filter_map(async |meta| {
            let name = meta.location.filename().and_then(|name| name.parse().ok());
            let size = meta.size;
            Ok(name.map(|offset| Piece { offset, size }))
        });
        let mut pieces: Vec<Piece> = found.try_collect().await?;
        pieces.sort_unstable_by_key(|piece| piece.offset);
        let name = name.to_owned();
        Ok(Text { name, pieces })
    }

    /// Appends to a text at `offset`. Existing bytes stay as they are. `known`: the size of the text at the last
    /// look; a wrong number costs one more look.
    pub async fn append_text(
        &self,
        name: &str,
        known: Option<u64>,
        offset: u64,
        bytes: &Bytes,
    ) -> Result<Appended, ContentError> {
        let mut size = match known {
            Some(size) => size,
            None => self.text(name).await?.size(),
        };
        loop {
            if offset > size {
                let now = self.text(name).await?.size();
                if offset > now {
                    return Ok(Appended::Gap(now));
                }
                size = now;
            }
            let have = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
            let fresh = bytes.slice(have.min(bytes.len())..);
            let end = size.saturating_add(u64::try_from(fresh.len()).unwrap_or(u64::MAX));
            if fresh.is_empty() {
                return Ok(Appended::Stored(size));
            }
            if self.create(&piece_name(name, size), fresh).await? {
                return Ok(Appended::Stored(end));
            }
            // Somebody appended meanwhile, or this very append was sent twice.
            size = self.text(name).await?.size();
        }
    }

    /// The bytes of a text from `range`, piece by piece.
    pub fn read_text(
        &self,
        text: &Text,
        range: Range<u64>,
    ) -> impl Stream<Item = Result<Bytes, ContentError>> + Send + use<> {
        let (store, name) = (self.clone(), text.name.clone());
        let within = move |piece: Piece| {
            let cut = |at: u64| at.clamp(piece.offset, piece.end()) - piece.offset;
            (piece.offset, cut(range.start)..cut(range.end))
        };
        let parts: Vec<(u64, Range<u64>)> = text.pieces.iter().copied().map(within).collect();
        let parts = parts.into_iter().filter(|(_, part)| !part.is_empty());
        let reads = stream::iter(parts).map(move |(offset, part)| {
            let (store, path) = (store.clone(), piece_name(&name, offset));
            async move {
                let read = store.objects.get_range(&path, part).await;
                store.health.answered(&read);
                Ok(read?)
            }
        });
        reads.buffered(READ_AHEAD)
    }

    /// The names of all texts.
    pub async fn text_names(&self) -> Result<Vec<String>, ContentError> {
        let mut names = Vec::new();
        for folder in self.list_folder(&text_name("")).await?.common_prefixes {
            let texts = self.list_folder(&folder).await?.common_prefixes;
            let texts = texts.iter().filter_map(unescaped);
            names.extend(texts.filter_map(|text| Some(format!("{}/{text}", unescaped(&folder)?))));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Removes a text.
    pub async fn remove_text(&self, name: &str) -> Result<(), ContentError> {
        for piece in self.text(name).await?.pieces {
            self.delete(&piece_name(name, piece.offset)).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_text_grows_by_pieces_and_takes_each_byte_once() {
        let store = ContentStore::in_memory();
        let append = async |known, offset, text: &'static str| {
            let bytes = Bytes::from_static(text.as_bytes());
            store
                .append_text("m/1.log", known, offset, &bytes)
                .await
                .unwrap()
        };
        assert_eq!(append(None, 3, "x").await, Appended::Gap(0));
        assert_eq!(append(None, 0, "hello ").await, Appended::Stored(6));
        assert_eq!(append(Some(6), 0, "hello ").await, Appended::Stored(6));
        assert_eq!(append(Some(6), 3, "lo world").await, Appended::Stored(11));
        // The known size is old.
        assert_eq!(append(Some(6), 6, "world, all").await, Appended::Stored(16));
        assert_eq!(append(Some(0), 20, "y").await, Appended::Gap(16));
        let text = store.text("m/1.log").await.unwrap();
        let read = async |range| {
            let pieces = store.read_text(&text, range);
            let pieces: Vec<Bytes> = pieces.try_collect().await.unwrap();
            pieces.concat()
        };
        assert_eq!(read(0..100).await, b"hello world, all");
        assert_eq!(read(4..9).await, b"o wor");
        assert_eq!(read(16..21).await, b"");
        assert_eq!(store.text_names().await.unwrap(), ["m/1.log"]);
        store.remove_text("m/1.log").await.unwrap();
        assert_eq!(store.text("m/1.log").await.unwrap().size(), 0);
    }

    #[tokio::test]
    async fn a_text_of_many_pieces_grows_on_after_a_look() {
        let store = ContentStore::in_memory();
        let piece = Bytes::from_static(b"x");
        let many = 10_100;
        for offset in 0..many {
            let appended = store.append_text("m/1.log", Some(offset), offset, &piece);
            assert_eq!(appended.await.unwrap(), Appended::Stored(offset + 1));
        }
        let more = store.append_text("m/1.log", None, many, &piece);
        assert_eq!(more.await.unwrap(), Appended::Stored(many + 1));
    }
}
