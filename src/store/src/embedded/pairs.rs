//! Tells whether a log continues the file beside it.
//!
//! While a store is open, its log begins anew again and again. A copy takes one file after the other. So its log may
//! begin behind the end of its file, or end before it. The commits in between are lost, and SQLite does not notice.
//! Therefore each commit writes the number of the commit before it, and a log is never empty for long.
//!
//! - The first commit of the log continues the file: the number before it is not above the file's.
//! - The file has nothing that the log lacks: its number is not above the one that both together have.
//!
//! A crash keeps both, because a log begins anew only when all of it is in the file. Files that cannot be read are not
//! refused here.

use std::{
    fs::File,
    io::{BufReader, Read},
    path::Path,
};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::folder::{as_uri, log_of};

/// Key in `meta` of the counter of versions before the last commit.
const BEFORE: &str = "before";
const NEWER: &str = "the file is newer than the log";
const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// Type of a leaf page of a table without rowids.
const LEAF: u8 = 0x0a;

/// Begins a log that was just emptied: from now on it names the file that it continues.
pub(super) fn begin_log(conn: &Connection) -> rusqlite::Result<()> {
    let begin = "INSERT INTO meta (key, value) SELECT ?1, value FROM meta WHERE key = 'seq'
        ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    conn.execute(begin, [BEFORE]).map(drop)
}

/// Sets the counter, and keeps its value before this commit. That is read from the file: the numbers of a commit that
/// failed are not in it.
pub(super) fn count(conn: &Connection, seq: i64) -> rusqlite::Result<()> {
    let keep =
        "UPDATE meta SET value = (SELECT value FROM meta WHERE key = 'seq') WHERE key = 'before'";
    conn.prepare_cached(keep)?.execute([])?;
    let set = "UPDATE meta SET value = ?1 WHERE key = 'seq'";
    conn.prepare_cached(set)?.execute([seq]).map(drop)
}

/// Returns the mismatch of a file and its log, if they do not belong together.
pub(super) fn mismatch(path: &Path) -> Option<&'static str> {
    let (root, in_file) = of_file(path)?;
    let begins = first_before(&log_of(path), root)?;
    if begins > in_file {
        return Some("the log begins behind the end of the file");
    }
    match together(path) {
        Ok(together) => (in_file > together).then_some(NEWER),
        // Each of them can be read alone.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => Some(NEWER),
        Err(_) => None,
    }
}

/// Returns the page of the numbers, and the counter in the file alone.
fn of_file(path: &Path) -> Option<(u32, i64)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(as_uri(path), flags).ok()?;
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'meta'";
    let root = conn.query_row(root, [], |row| row.get(0)).ok()?;
    Some((root, counter(&conn).ok()?))
}

/// Returns the counter in file and log together. A read-only connection leaves the log unchanged.
fn together(path: &Path) -> rusqlite::Result<i64> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    counter(&Connection::open_with_flags(path, flags)?)
}

fn counter(conn: &Connection) -> rusqlite::Result<i64> {
    conn.query_row("SELECT value FROM meta WHERE key = 'seq'", [], |row| {
        row.get(0)
    })
}

/// Returns the number before the first commit of a log that wrote this page.
fn first_before(log: &Path, root: u32) -> Option<i64> {
    let mut log = BufReader::new(File::open(log).ok()?);
    let mut header = [0; HEADER];
    log.read_exact(&mut header).ok()?;
    let page_bytes = usize::try_from(u32_at(&header, 8)?).ok()?;
    let salt = header.get(16..24)?.to_vec();
    let mut frame = [0; FRAME_HEADER];
    loop {
        log.read_exact(&mut frame).ok()?;
        // Frames of an earlier log follow the last one.
        if frame.get(8..16)? != salt {
            return None;
        }
        if u32_at(&frame, 0)? == root {
            let mut page = vec![0; page_bytes];
            log.read_exact(&mut page).ok()?;
            return number(&page, BEFORE);
        }
        let skipped = i64::try_from(page_bytes).ok()?;
        log.seek_relative(skipped).ok()?;
    }
}

/// Returns the value of a key on a leaf page of `meta`.
fn number(page: &[u8], key: &str) -> Option<i64> {
    if *page.first()? != LEAF {
        return None;
    }
    let cells = usize::from(u16_at(page, 3)?);
    (0..cells).find_map(|cell| {
        let at = usize::from(u16_at(page, 8 + 2 * cell)?);
        let (_, payload) = varint(page, at)?;
        let (header, types) = varint(page, payload)?;
        let (text, next) = varint(page, types)?;
        let (kind, _) = varint(page, next)?;
        let from = payload.checked_add(usize::try_from(header).ok()?)?;
        let until = from.checked_add(usize::try_from(text.checked_sub(13)? / 2).ok()?)?;
        (page.get(from..until)? == key.as_bytes())
            .then(|| integer(page, until, kind))
            .flatten()
    })
}

/// Returns an integer of a record, by its type.
fn integer(page: &[u8], at: usize, kind: u64) -> Option<i64> {
    let bytes = match kind {
        8 => return Some(0),
        9 => return Some(1),
        1..=4 => usize::try_from(kind).ok()?,
        5 => 6,
        6 => 8,
        _ => return None,
    };
    let bytes = page.get(at..at.checked_add(bytes)?)?;
    let negative = bytes.first()? & 0x80 != 0;
    let start = if negative { -1_i64 } else { 0 };
    Some(
        bytes
            .iter()
            .fold(start, |number, byte| (number << 8) | i64::from(*byte)),
    )
}

/// Returns SQLite's variable-length number, and the position behind it.
fn varint(page: &[u8], mut at: usize) -> Option<(u64, usize)> {
    let mut number = 0_u64;
    for n in 0..9 {
        let byte = u64::from(*page.get(at)?);
        at += 1;
        if n == 8 {
            return Some(((number << 8) | byte, at));
        }
        number = (number << 7) | (byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some((number, at))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes(two.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}
