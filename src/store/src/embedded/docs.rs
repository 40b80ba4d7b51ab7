//! Small documents with compare-and-set, and the audit events.

use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use super::{
    apply::{Batch, Item},
    numbers::{unsigned, version},
};
use crate::{
    Doc, DocFind, DocKind, DocPage, DocWrite, DueDoc, EventRecord, Expect, ItemError, codec,
};

impl Batch<'_> {
    /// Writes or deletes one small document.
    pub(super) fn put_doc(&mut self, kind: DocKind, write: &DocWrite) -> rusqlite::Result<Item> {
        let text = match codec::encode_doc(write) {
            Ok(text) => text,
            Err(error) => return Ok(Err(error)),
        };
        let current = self
            .tx
            .prepare_cached("SELECT seq FROM docs WHERE kind = ?1 AND id = ?2")?
            .query_row(params![kind.as_str(), write.id], |row| unsigned(row, 0))
            .optional()?
            .map(version);
        let as_expected = match write.expect {
            Expect::Any => true,
            Expect::Absent => current.is_none(),
            Expect::Version(expected) => current == Some(expected),
        };
        if !as_expected {
            return Ok(Err(ItemError::Conflict { current }));
        }
        if text.is_none() && current.is_none() {
            return Ok(Err(ItemError::Missing));
        }
        let (seq, version) = self.next_seq();
        match text {
            Some(text) => self
                .tx
                .prepare_cached(
                    "INSERT OR REPLACE INTO docs (kind, id, seq, body, at_ms)
                        VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![
                    kind.as_str(),
                    write.id,
                    seq,
                    text,
                    i64::try_from(codec::doc_at_ms(write)).unwrap_or(i64::MAX)
                ])?,
            None => self
                .tx
                .prepare_cached("DELETE FROM docs WHERE kind = ?1 AND id = ?2")?
                .execute(params![kind.as_str(), write.id])?,
        };
        Ok(Ok(version))
    }

    /// Appends one event.
    pub(super) fn append(&mut self, event: &EventRecord) -> rusqlite::Result<Item> {
        self.tx
            .prepare_cached(
                "INSERT INTO events (at_ms, who, what, subject, detail) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                i64::try_from(event.at_ms).unwrap_or(i64::MAX),
                event.who,
                event.what,
                event.subject,
                event.detail.to_string()
            ])?;
        Ok(Ok(version(self.seq)))
    }
}

/// Reads small documents, in order.
pub(super) fn get(
    conn: &Connection,
    kind: DocKind,
    ids: &[String],
) -> rusqlite::Result<Vec<Option<Doc>>> {
    let mut read =
        conn.prepare_cached("SELECT id, seq, body FROM docs WHERE kind = ?1 AND id = ?2")?;
    ids.iter()
        .map(|id| {
            read.query_row(params![kind.as_str(), id], read_doc)
                .optional()
        })
        .collect()
}

/// Returns a page by id, and the number of documents with the prefix.
pub(super) fn page(conn: &Connection, kind: DocKind, find: &DocFind) -> rusqlite::Result<DocPage> {
    // Behind every id that begins so: this is no character that texts have.
    let end = format!("{}{}", find.prefix, char::MAX);
    let total = conn
        .prepare_cached("SELECT COUNT(*) FROM docs WHERE kind = ?1 AND id >= ?2 AND id < ?3")?
        .query_row(params![kind.as_str(), find.prefix, end], |row| {
            unsigned(row, 0)
        })?;
    let docs = conn
        .prepare_cached(
            "SELECT id, seq, body FROM docs
                WHERE kind = ?1 AND id >= ?2 AND id < ?3 AND id > ?4 ORDER BY id LIMIT ?5",
        )?
        .query_map(
            params![
                kind.as_str(),
                find.prefix,
                end,
                find.after,
                find.limit.clamp(1, 1_000)
            ],
            read_doc,
        )?
        .collect::<rusqlite::Result<_>>()?;
    Ok(DocPage { docs, total })
}

/// Returns documents that must be looked at before `before_ms`, earliest first.
pub(super) fn due(
    conn: &Connection,
    kind: DocKind,
    before_ms: u64,
    limit: u32,
) -> rusqlite::Result<Vec<DueDoc>> {
    let before_ms = i64::try_from(before_ms).unwrap_or(i64::MAX);
    conn.prepare_cached(
        "SELECT id, seq, at_ms FROM docs INDEXED BY docs_at
            WHERE kind = ?1 AND at_ms > 0 AND at_ms < ?2 ORDER BY at_ms, id LIMIT ?3",
    )?
    .query_map(
        params![kind.as_str(), before_ms, limit.clamp(1, 10_000)],
        |row| {
            Ok(DueDoc {
                id: row.get(0)?,
                version: version(unsigned(row, 1)?),
                at_ms: unsigned(row, 2)?,
            })
        },
    )?
    .collect()
}

/// Returns all documents of a kind, sorted by the bytes of their ids.
pub(super) fn list(conn: &Connection, kind: DocKind) -> rusqlite::Result<Vec<Doc>> {
    conn.prepare_cached("SELECT id, seq, body FROM docs WHERE kind = ?1 ORDER BY id")?
        .query_map([kind.as_str()], read_doc)?
        .collect()
}

fn read_doc(row: &rusqlite::Row<'_>) -> rusqlite::Result<Doc> {
    let text: String = row.get(2)?;
    let body: Value = serde_json::from_str(&text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(2, rusqlite::types::Type::Text, Box::new(error))
    })?;
    Ok(Doc {
        id: row.get(0)?,
        version: version(unsigned(row, 1)?),
        body,
    })
}
