//! Merges keys over keys: documents over document 1, includes under a document, settings over all.

use std::sync::Arc;

use super::{
    at::At,
    error::{Files, JobFileError},
    limits::PATH_SEGMENTS_MAX,
    tree::{Entry, Key, Kind, Node, Zip},
};

/// Puts every entry of `over` over `under`: whole values first, then dotted keys, which set one path.
pub(crate) fn put_all(
    under: &mut Vec<Entry>,
    over: &[Entry],
    files: &Files,
) -> Result<(), JobFileError> {
    let (dotted, whole): (Vec<&Entry>, Vec<&Entry>) = over
        .iter()
        .partition(|e| matches!(e, Entry::One(key, _) if is_path(&key.text)));
    for entry in whole {
        put_top(under, entry.clone());
    }
    for entry in dotted {
        if let Entry::One(key, value) = entry {
            put_path(under, key, value, files)?;
        }
    }
    Ok(())
}

/// Puts one top-level entry. `key-:` takes `key` away, until something sets it again.
pub(crate) fn put_top(entries: &mut Vec<Entry>, entry: Entry) {
    if let Some(key) = removed(&entry) {
        take_out(entries, key);
    } else {
        entries.retain(|e| removed(e).is_none_or(|key| !entry.sets(key)));
    }
    put(entries, entry);
}

/// The key that an entry takes away: `kmsg` for `kmsg-:`.
pub(crate) fn removed(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::One(key, node) if matches!(node.kind, Kind::Scalar(serde_json::Value::Null)) => {
            key.text.strip_suffix('-').filter(|key| !key.is_empty())
        }
        Entry::One(..) | Entry::Zip(_) => None,
    }
}

/// Puts one entry, in the place of what it replaces.
pub(crate) fn put(entries: &mut Vec<Entry>, entry: Entry) {
    let mut place = entries.len();
    for key in entry.keys() {
        if let Some(found) = take_out(entries, &key.text) {
            place = place.min(found);
        }
    }
    entries.insert(place.min(entries.len()), entry);
}

/// Removes `key`; from zipped keys only its column. Returns where it was.
fn take_out(entries: &mut Vec<Entry>, key: &str) -> Option<usize> {
    let place = entries.iter().position(|e| e.sets(key))?;
    let left = match entries.get_mut(place) {
        Some(Entry::Zip(zip)) => without_column(zip, key),
        _ => None,
    };
    match left {
        Some(entry) => {
            if let Some(slot) = entries.get_mut(place) {
                *slot = entry;
            }
        }
        None => {
            entries.remove(place);
        }
    }
    Some(place)
}

/// The zip without the column of `key`: a plain list when one column is left, nothing when none is.
fn without_column(zip: &Zip, key: &str) -> Option<Entry> {
    let column = zip.keys.iter().position(|k| k.text == key)?;
    let mut left = zip.clone();
    left.keys.remove(column);
    for row in &mut left.rows {
        row.remove(column);
    }
    if left.keys.len() > 1 {
        return Some(Entry::Zip(left));
    }
    let key = left.keys.pop()?;
    let at = key.at;
    let item = |value| {
        Arc::new(Node {
            at,
            kind: Kind::Scalar(value),
        })
    };
    let items = left.rows.into_iter().flatten().map(item).collect();
    Some(Entry::One(
        key,
        Arc::new(Node {
            at,
            kind: Kind::List(items),
        }),
    ))
}

/// Returns true if a top-level key is a path: names joined by dots. `v5.4` and `if role a.b` are plain keys.
pub(crate) fn is_path(key: &str) -> bool {
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    key.contains('.') && key.split('.').all(is_name)
}

/// Sets the path `key`. Keys that hold dots themselves (`cgroup2: {memory.high: ..}`) are found first.
pub(crate) fn put_path(
    entries: &mut Vec<Entry>,
    key: &Key,
    value: &Arc<Node>,
    files: &Files,
) -> Result<(), JobFileError> {
    let segments: Vec<&str> = key.text.split('.').collect();
    if segments.len() > PATH_SEGMENTS_MAX {
        let message = format!(
            "a path of {} keys; at most {PATH_SEGMENTS_MAX} are read",
            segments.len()
        );
        return Err(files.error(key.at, "path_too_long", message, "nest the keys"));
    }
    put_segments(entries, &segments, key, value, files)
}

fn put_segments(
    entries: &mut Vec<Entry>,
    segments: &[&str],
    key: &Key,
    value: &Arc<Node>,
    files: &Files,
) -> Result<(), JobFileError> {
    let (name, rest) = head(entries, segments);
    let named = Key {
        text: name.clone(),
        at: key.at,
    };
    if rest.is_empty() {
        put(entries, Entry::One(named, Arc::clone(value)));
        return Ok(());
    }
    let empty = || {
        Arc::new(Node {
            at: key.at,
            kind: Kind::Map(Vec::new()),
        })
    };
    let found = entries.iter().position(|e| e.sets(&name));
    let place = found.unwrap_or(entries.len());
    if found.is_none() {
        entries.push(Entry::One(named, empty()));
    }
    let refuse = |at: At, word: &str| {
        let message = format!(
            "'{}' sets a key inside '{name}', which is {word} ({})",
            key.text,
            files.place(at, key.at)
        );
        Err(files.error(key.at, "not_a_map", message, "set the whole value instead"))
    };
    match entries.get_mut(place) {
        Some(Entry::One(_, node)) => {
            if matches!(node.kind, Kind::Scalar(serde_json::Value::Null)) {
                *node = empty();
            }
            let at = node.at;
            match &mut Arc::make_mut(node).kind {
                Kind::Map(inner) => put_segments(inner, rest, key, value, files),
                other => refuse(at, other.word()),
            }
        }
        _ => refuse(key.at, "zipped"),
    }
}

/// The first key of a path as it is in `entries` (the longest that is there), and the segments after it.
fn head<'s, 'a>(entries: &[Entry], segments: &'s [&'a str]) -> (String, &'s [&'a str]) {
    for length in (1..=segments.len()).rev() {
        let Some((first, rest)) = segments.split_at_checked(length) else {
            continue;
        };
        let name = first.join(".");
        if length == 1 || entries.iter().any(|e| e.sets(&name)) {
            return (name, rest);
        }
    }
    (String::new(), &[])
}

/// Returns true if anything is set at `key`, taken as a path. A null on the way sets nothing.
pub(crate) fn has_path(entries: &[Entry], key: &str) -> bool {
    let segments: Vec<&str> = key.split('.').collect();
    let mut entries = entries;
    let mut segments = segments.as_slice();
    loop {
        let (name, rest) = head(entries, segments);
        let Some(found) = entries.iter().find(|e| e.sets(&name)) else {
            return false;
        };
        if rest.is_empty() {
            return true;
        }
        match found {
            Entry::One(_, node) => match &node.kind {
                Kind::Map(inner) => (entries, segments) = (inner, rest),
                Kind::Scalar(serde_json::Value::Null) => return false,
                // Text, a list or a template: the file said something else here, and it wins.
                Kind::Scalar(_) | Kind::Template(_) | Kind::List(_) => return true,
            },
            Entry::Zip(_) => return true,
        }
    }
}
