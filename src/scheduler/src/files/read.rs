//! Reads files for downloads, whole or in part. One hop to a thread that may wait for the disk opens a file and reads its
//! first piece, which is all of most files.

use std::{
    fs::{self, File},
    io,
    ops::Range,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream::BoxStream};

use crate::files::parts::is_part;
use fairlead_base::errors::FileError;

/// Size of a piece, bytes.
const PIECE: u64 = 64 << 10;

/// File operations that may wait for a disk, beside the runtime.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, FileError> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.unwrap_or_else(|error| Err(io::Error::other(error)))?)
}

/// Which part of a file is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    #[default]
    All,
    /// What stands behind so many bytes; nothing if it has no more.
    Behind(u64),
    /// From the first byte to the last one, both counted; `None`: to its end.
    Bytes(u64, Option<u64>),
    /// So many bytes at its end.
    Last(u64),
}

/// What a request asks of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) part: Part,
    /// The tag of the file that the client has: it needs no other one.
    pub(crate) unless: Option<String>,
    /// The tag of the file that the client has a part of: a part of another one does not help.
    pub(crate) only_of: Option<String>,
}

/// A file that was opened.
#[derive(Debug)]
pub(crate) struct OpenFile {
    /// Bytes of all of it.
    pub(crate) size: u64,
    /// It is another one once the file changes.
    pub(crate) tag: String,
    /// The client has this very file.
    pub(crate) is_known: bool,
    /// The part that is read; `None`: it has no such part.
    pub(crate) part: Option<Range<u64>>,
    /// The first piece of that part.
    pub(crate) first: Bytes,
    source: Source,
}

/// Where the rest of a file comes from.
pub(super) enum Source {
    Disk(Arc<File>),
    /// Pieces of the part in order, behind the first one.
    Pieces(BoxStream<'static, Result<Bytes, FileError>>),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Disk(_) => "Disk",
            Self::Pieces(_) => "Pieces",
        })
    }
}

/// What a download found.
#[derive(Debug)]
pub(crate) enum Found {
    File(OpenFile),
    /// Names in a folder, sorted; folders end with `/`.
    Folder(Vec<String>),
}

impl Wanted {
    /// Whether the client has this very file, and which part of it is read.
    fn of(&self, size: u64, tag: &str) -> (bool, Option<Range<u64>>) {
        let unless = self.unless.as_ref();
        let is_known = unless.is_some_and(|known| names_tag(known, tag));
        let is_other = self.only_of.as_ref().is_some_and(|of| of != tag);
        let part = if is_other { Part::All } else { self.part };
        (is_known, part.of(size))
    }
}

impl Part {
    /// The bytes of a file of this size; `None`: there are none.
    fn of(self, size: u64) -> Option<Range<u64>> {
        match self {
            Self::All => Some(0..size),
            Self::Behind(offset) => Some(offset.min(size)..size),
            Self::Bytes(first, last) => {
                let end = last.map_or(size, |last| last.saturating_add(1).min(size));
                (first < end).then_some(first..end)
            }
            Self::Last(many) => (many > 0 && size > 0).then(|| size.saturating_sub(many)..size),
        }
    }
}

/// Opens a file and reads the beginning of the part, or lists a folder; links are not followed.
pub(super) async fn open(target: PathBuf, wanted: Wanted) -> Result<Found, FileError> {
    let found = blocking(move || {
        let meta = fs::symlink_metadata(&target)?;
        if meta.is_dir() {
            return Ok(Some(Found::Folder(list(&target)?)));
        }
        if !meta.is_file() {
            return Ok(None);
        }
        let file = File::open(&target)?;
        Ok(Some(Found::File(begin(file, &wanted)?)))
    });
    found.await?.ok_or(FileError::Missing)
}

fn list(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let mut name = entry.file_name().to_string_lossy().into_owned();
        if is_part(&name) {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            name.push('/');
        }
        names.push(name);
    }
    names.sort_unstable();
    Ok(names)
}

/// Whether an `If-None-Match` names this tag.
pub(crate) fn names_tag(known: &str, tag: &str) -> bool {
    let mut tags = known.split(',').map(str::trim);
    tags.any(|known| known == "*" || known.trim_start_matches("W/") == tag)
}

fn begin(file: File, wanted: &Wanted) -> io::Result<OpenFile> {
    let meta = file.metadata()?;
    let size = meta.len();
    let tag = format!("\"{:x}.{:x}-{size:x}\"", meta.mtime(), meta.mtime_nsec());
    let (is_known, part) = wanted.of(size, &tag);
    let first = match &part {
        Some(part) if !is_known => piece(&file, part.clone())?,
        _ => Bytes::new(),
    };
    Ok(OpenFile {
        size,
        tag,
        is_known,
        part,
        first,
        source: Source::Disk(Arc::new(file)),
    })
}

/// A file whose bytes `pieces` gives, for the part that is read of it.
pub(super) async fn open_pieces(
    (size, tag): (u64, String),
    wanted: &Wanted,
    pieces: impl FnOnce(Range<u64>) -> BoxStream<'static, Result<Bytes, FileError>>,
) -> Result<OpenFile, FileError> {
    let (is_known, part) = wanted.of(size, &tag);
    let mut pieces = pieces(part.clone().filter(|_| !is_known).unwrap_or(0..0));
    let first = pieces.next().await.transpose()?.unwrap_or_default();
    Ok(OpenFile {
        size,
        tag,
        is_known,
        part,
        first,
        source: Source::Pieces(pieces),
    })
}

/// At most one piece of this part. Empty: the file has become shorter.
fn piece(file: &File, part: Range<u64>) -> io::Result<Bytes> {
    let most = part.end.saturating_sub(part.start).min(PIECE);
    let mut bytes = vec![0; usize::try_from(most).unwrap_or(0)];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let at = part
            .start
            .saturating_add(u64::try_from(filled).unwrap_or(0));
        match file.read_at(rest, at) {
            Ok(0) => break,
            Ok(read) => filled = filled.saturating_add(read),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes.into())
}

impl OpenFile {
    /// How many bytes the part has.
    pub(crate) fn len(&self) -> u64 {
        let part = self.part.as_ref();
        part.map_or(0, |part| part.end.saturating_sub(part.start))
    }

    /// The next piece of the part, never empty; `None` at its end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, FileError> {
        let Some(part) = self.part.clone() else {
            return Ok(None);
        };
        let mut piece_read = std::mem::take(&mut self.first);
        if piece_read.is_empty() && !part.is_empty() {
            piece_read = match &mut self.source {
                Source::Disk(file) => {
                    let (file, part) = (Arc::clone(file), part.clone());
                    blocking(move || piece(&file, part)).await?
                }
                Source::Pieces(pieces) => pieces.next().await.transpose()?.unwrap_or_default(),
            };
        }
        if piece_read.is_empty() {
            return Ok(None);
        }
        let read = u64::try_from(piece_read.len()).unwrap_or(0);
        self.part = Some(part.start.saturating_add(read)..part.end);
        Ok(Some(piece_read))
    }

    /// All of the part.
    pub(crate) async fn read_all(mut self) -> Result<Vec<u8>, FileError> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.len()).unwrap_or(0));
        while let Some(piece) = self.next().await? {
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_file() {
        for (part, range) in [
            (Part::All, Some(0..10)),
            (Part::Behind(4), Some(4..10)),
            (Part::Behind(40), Some(10..10)),
            (Part::Bytes(0, Some(0)), Some(0..1)),
            (Part::Bytes(3, None), Some(3..10)),
            (Part::Bytes(3, Some(99)), Some(3..10)),
            (Part::Bytes(10, None), None),
            (Part::Bytes(5, Some(4)), None),
            (Part::Last(3), Some(7..10)),
            (Part::Last(30), Some(0..10)),
            (Part::Last(0), None),
        ] {
            assert_eq!(part.of(10), range, "{part:?}");
        }
        assert_eq!((Part::All.of(0), Part::Last(1).of(0)), (Some(0..0), None));
    }

    #[tokio::test]
    async fn a_file_is_read_piece_by_piece_to_the_end_of_the_part() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let all: Vec<u8> = (0..200_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        fs::write(&path, &all).unwrap();
        let open_as = async |part, unless: Option<&str>| {
            let wanted = Wanted {
                part,
                unless: unless.map(str::to_owned),
                only_of: None,
            };
            match open(path.clone(), wanted).await.unwrap() {
                Found::File(file) => file,
                Found::Folder(_) => panic!("no folder"),
            }
        };
        let file = open_as(Part::Bytes(1_000, Some(150_000)), None).await;
        assert_eq!(file.len(), 149_001);
        let tag = file.tag.clone();
        assert_eq!(file.read_all().await.unwrap(), all[1_000..=150_000]);
        assert_eq!(
            open_as(Part::All, None).await.read_all().await.unwrap(),
            all
        );
        let known = open_as(Part::All, Some(&format!("\"x\", W/{tag}"))).await;
        assert!(known.is_known && known.first.is_empty());
        fs::write(&path, "other").unwrap();
        assert!(!open_as(Part::All, Some(&tag)).await.is_known);
        let missing = open(folder.path().join("none"), Wanted::default()).await;
        assert!(matches!(missing, Err(FileError::Missing)), "{missing:?}");
    }
}
