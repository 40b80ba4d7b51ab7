//! Texts that grow, such as logs of jobs: pieces, each named by the offset of its first byte.
//!
//! A piece is written once. Two writers at one offset cannot both succeed, so a text has one course.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use object_store::ObjectStoreExt;

use crate::{
    ContentError, ContentStore,
    names::{piece_name, text_name, unescaped},
};

/// Most pieces that one look lists. A text with more is read on with the next look.
const LISTED_MAX: usize = 10_000;

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

/// What became of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// The text has these bytes from the offset on; so many in all.
    Stored(u64),
    /// The text has fewer bytes than the offset says: so many.
    Gap(u64),
}

impl ContentStore {
    /// How many bytes a text has; 0: there is none.
    pub async fn text_size(&self, name: &str) -> Result<u64, ContentError> {
        Ok(self
            .pieces_of(name, 0)
            .await?
            .last()
            .map_or(0, |piece| piece.end()))
    }

    /// Appends to a text at `offset`. What is there already is left as it is. `known`: how many bytes the text had when it
    /// was last looked at; a wrong number costs one more look.
    pub async fn append_text(
        &self,
        name: &str,
        known: Option<u64>,
        offset: u64,
        bytes: &Bytes,
    ) -> Result<Appended, ContentError> {
        let mut size = match known {
            Some(size) => size,
            None => self.text_size(name).await?,
        };
        loop {
            if offset > size {
                let now = self.text_size(name).await?;
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
            size = self.text_size(name).await?;
        }
    }

    /// At most `limit` bytes of a text from `offset` on; empty: it has no more.
    pub async fn read_text(
        &self,
        name: &str,
        offset: u64,
        limit: usize,
    ) -> Result<Bytes, ContentError> {
        let end = offset.saturating_add(u64::try_from(limit).unwrap_or(u64::MAX));
        let mut read = BytesMut::new();
        for piece in self.pieces_of(name, offset).await? {
            if piece.offset >= end {
                break;
            }
            let within = |at: u64| at.clamp(piece.offset, piece.end()) - piece.offset;
            let part: Range<u64> = within(offset)..within(end);
            if part.is_empty() {
                continue;
            }
            let path = piece_name(name, piece.offset);
            read.extend_from_slice(&self.objects.get_range(&path, part).await?);
        }
        Ok(read.freeze())
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
        for piece in self.pieces_of(name, 0).await? {
            self.delete(&piece_name(name, piece.offset)).await?;
        }
        Ok(())
    }

    /// The pieces that follow each other from the one on that holds `offset`, in order.
    async fn pieces_of(&self, name: &str, offset: u64) -> Result<Vec<Piece>, ContentError> {
        let found = self.list(&text_name(name)).try_filter_map(async |meta| {
            let name = meta.location.filename().and_then(|name| name.parse().ok());
            let size = meta.size;
            Ok(name.map(|offset| Piece { offset, size }))
        });
        let mut pieces: Vec<Piece> = found.try_collect().await?;
        pieces.sort_unstable_by_key(|piece| piece.offset);
        pieces.retain(|piece| piece.end() > offset);
        pieces.truncate(LISTED_MAX);
        Ok(pieces)
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
        // What is known is old.
        assert_eq!(append(Some(6), 6, "world, all").await, Appended::Stored(16));
        assert_eq!(append(Some(0), 20, "y").await, Appended::Gap(16));
        let read = async |offset, limit| store.read_text("m/1.log", offset, limit).await.unwrap();
        assert_eq!(read(0, 100).await, "hello world, all");
        assert_eq!(read(4, 5).await, "o wor");
        assert_eq!(read(16, 5).await, "");
        assert_eq!(store.text_names().await.unwrap(), ["m/1.log"]);
        store.remove_text("m/1.log").await.unwrap();
        assert_eq!(store.text_size("m/1.log").await.unwrap(), 0);
    }
}
