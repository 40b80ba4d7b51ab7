//! The two disks between a job and its virtual machine: one brings its files, one takes its results back.
//!
//! Both hold plain tar archives. A guest may write what it likes to the second. So the host takes only regular files and
//! folders below `result` from it, and no more than it allows. The guest's outputs are in a folder of its results, so that
//! any image brings them back.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
};

use super::super::entry::{Entry, INPUTS, Note, OUTPUTS};

/// Mark that a guest writes at the start of its second disk before the job starts.
const BEGUN: &[u8] = b"begun";
/// Maximum length of a small file of a guest that is read, bytes.
const SMALL_BYTES_MAX: u64 = 4096;
/// Room for the archive's headers in addition to the results, bytes.
const HEADERS_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum length of a header for a long name, bytes. It is read into memory as a whole.
const LONG_NAME_BYTES_MAX: u64 = 64 * 1024;
/// Size of a disk sector, bytes.
const SECTOR_BYTES: u64 = 512;

/// Folder of a guest's outputs, below its results.
const GUEST_OUTPUTS: &str = ".outputs";

/// Limits of the results that a guest may return.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResultLimits {
    pub(crate) files: usize,
    pub(crate) bytes: u64,
}

/// Results of a guest.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Returned {
    /// True if the job started.
    pub(crate) has_begun: bool,
    /// Exit code. `None`: not reported.
    pub(crate) code: Option<i32>,
    pub(crate) note: Note,
    /// Reason why a part of its results is missing.
    pub(crate) missing: Option<String>,
}

/// Disks of one guest.
#[derive(Debug, Clone)]
pub(crate) struct Disks {
    pub(crate) inside: PathBuf,
    pub(crate) outside: PathBuf,
}

impl Disks {
    pub(crate) fn of(entry: &Entry) -> Self {
        Self {
            inside: entry.folder().join("in.tar"),
            outside: entry.folder().join("out.img"),
        }
    }

    /// Writes the first disk with the guest's files and those of `shared`. Creates the second disk, which is still
    /// empty.
    pub(crate) fn make(
        &self,
        entry: &Entry,
        shared: &[(PathBuf, String, bool)],
        limits: ResultLimits,
    ) -> io::Result<()> {
        let mut archive = tar::Builder::new(File::create_new(&self.inside)?);
        for name in ["entry", "env", "command"] {
            archive.append_path_with_name(entry.folder().join(name), format!(".guest/{name}"))?;
        }
        for (from, name, _) in shared {
            if name == INPUTS && from.is_dir() {
                archive.follow_symlinks(false);
                archive.append_dir_all(name, from)?;
            } else if name == OUTPUTS && from.is_dir() {
                make_outputs(&mut archive)?;
            } else if from.is_dir() {
                archive.append_dir(name, from)?;
            } else if from.is_file() {
                archive.append_path_with_name(from, name)?;
            }
        }
        let mut file = archive.into_inner()?;
        let length = file.metadata()?.len();
        file.flush()?;
        file.set_len(length.next_multiple_of(SECTOR_BYTES))?;
        let room = limits.bytes.saturating_add(HEADERS_BYTES);
        File::create_new(&self.outside)?.set_len(room.next_multiple_of(SECTOR_BYTES))
    }

    /// Extracts the results from the second disk into the job's folder, without replacing files. Then both disks are
    /// removed.
    pub(crate) fn take(&self, job: &Path, limits: ResultLimits) -> Returned {
        let returned = self.read(job, limits).unwrap_or_else(|error| Returned {
            has_begun: true,
            missing: Some(format!("its results cannot be read: {error}")),
            ..Returned::default()
        });
        for disk in [&self.inside, &self.outside] {
            if let Err(error) = fs::remove_file(disk) {
                tracing::warn!(disk = %disk.display(), %error, "cannot remove the disk of a job");
            }
        }
        returned
    }

    fn read(&self, job: &Path, limits: ResultLimits) -> io::Result<Returned> {
        let mut start = [0; BEGUN.len()];
        File::open(&self.outside)?.read_exact(&mut start)?;
        if start == [0; BEGUN.len()] {
            return Ok(Returned::default());
        }
        let mut returned = Returned {
            has_begun: true,
            ..Returned::default()
        };
        if start == BEGUN {
            return Ok(returned);
        }
        self.check_headers()?;
        let mut left = limits;
        let mut archive = tar::Archive::new(File::open(&self.outside)?);
        for item in archive.entries()? {
            let mut item = item?;
            let path = item.path()?.into_owned();
            match plain(&path).as_deref() {
                Some([guest, name]) if guest == ".guest" => {
                    let mut text = String::new();
                    item.by_ref()
                        .take(SMALL_BYTES_MAX)
                        .read_to_string(&mut text)?;
                    match name.as_str() {
                        "code" => returned.code = text.trim().parse().ok(),
                        "note" => returned.note = Note::of(&text),
                        _ => {}
                    }
                }
                Some([first, below @ ..]) if first == "result" => {
                    let (top, below) = place_of(job, below);
                    let is_output = top.ends_with(OUTPUTS);
                    let to = below.iter().fold(top, |to, name| to.join(name));
                    if is_output && item.header().entry_type().is_symlink() {
                        let problem = "the links among its outputs stayed in its machine";
                        returned.missing = Some(problem.to_owned());
                    } else if item.header().entry_type().is_dir() {
                        fs::create_dir_all(to)?;
                    } else if item.header().entry_type().is_file() && !below.is_empty() {
                        let bytes = item.size();
                        if left.files == 0 || left.bytes < bytes {
                            let problem = "its results were cut at the limit of this host";
                            returned.missing = Some(problem.to_owned());
                            continue;
                        }
                        left.files -= 1;
                        left.bytes -= bytes;
                        let runs = item.header().mode()? & 0o111 != 0;
                        write_new(&mut item, &to, is_output && runs)?;
                    }
                }
                _ => {}
            }
        }
        Ok(returned)
    }
}

impl Disks {
    /// Fails if reading would need too much memory: long headers, and maps of holes.
    fn check_headers(&self) -> io::Result<()> {
        let mut archive = tar::Archive::new(File::open(&self.outside)?);
        for item in archive.entries_with_seek()?.raw(true) {
            let item = item?;
            let kind = item.header().entry_type();
            let is_long = kind.is_gnu_longname()
                || kind.is_gnu_longlink()
                || kind.is_pax_local_extensions()
                || kind.is_pax_global_extensions();
            if kind.is_gnu_sparse() || (is_long && item.size() > LONG_NAME_BYTES_MAX) {
                let problem = format!("its archive has a header of {} bytes", item.size());
                return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
            }
        }
        Ok(())
    }
}

/// Adds an empty folder for outputs at the place where a job expects it.
fn make_outputs(archive: &mut tar::Builder<File>) -> io::Result<()> {
    let there = format!("result/{GUEST_OUTPUTS}");
    let mut folder = tar::Header::new_gnu();
    folder.set_entry_type(tar::EntryType::Directory);
    folder.set_mode(0o755);
    folder.set_size(0);
    archive.append_data(&mut folder, &there, io::empty())?;
    let mut link = tar::Header::new_gnu();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_mode(0o777);
    link.set_size(0);
    archive.append_link(&mut link, OUTPUTS, &there)
}

/// Returns the job folder for an entry below a guest's results, and the entry's names below that folder.
fn place_of<'a>(job: &Path, below: &'a [String]) -> (PathBuf, &'a [String]) {
    let outputs = job.join(OUTPUTS);
    match below {
        [first, rest @ ..] if first == GUEST_OUTPUTS && outputs.is_dir() => (outputs, rest),
        _ => (job.join("result"), below),
    }
}

/// Returns the names of a path without tricks such as `..`. `None`: it has some.
fn plain(path: &Path) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => names.push(name.to_str()?.to_owned()),
            _ => return None,
        }
    }
    Some(names)
}

/// Writes a file only if it does not exist, because the output is the host's own. `runs`: it is executable.
fn write_new(from: &mut impl Read, to: &Path, runs: bool) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    match OpenOptions::new().write(true).create_new(true).open(to) {
        Ok(mut file) => {
            if runs {
                file.set_permissions(fs::Permissions::from_mode(0o755))?;
            }
            io::copy(from, &mut file).map(drop)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::super::entry::Task, *};

    const LIMITS: ResultLimits = ResultLimits {
        files: 5,
        bytes: 100,
    };

    fn disks(dir: &Path) -> (Disks, PathBuf) {
        let entry = Entry::of(dir);
        let task = Task {
            program: "sh".into(),
            args: Vec::new(),
            env: Vec::new(),
            folder: dir.to_owned(),
            run: String::new(),
        };
        entry.write(&task).unwrap();
        let disks = Disks::of(&entry);
        disks.make(&entry, &[], LIMITS).unwrap();
        let result = dir.join("result");
        fs::create_dir(&result).unwrap();
        (disks, result)
    }

    fn put(archive: &mut tar::Builder<File>, name: &str, kind: tar::EntryType, text: &str) {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(text.len() as u64);
        header.set_mode(0o4777);
        if kind.is_symlink() {
            header.set_link_name("/etc").unwrap();
        }
        // A hostile guest writes the header without the library's checks.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        archive.append(&header, text.as_bytes()).unwrap();
    }

    #[test]
    fn a_guest_that_never_began_or_never_ended_is_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let (disks, _) = disks(dir.path());
        assert_eq!(disks.read(dir.path(), LIMITS).unwrap(), Returned::default());
        let mut out = OpenOptions::new().write(true).open(&disks.outside).unwrap();
        out.write_all(BEGUN).unwrap();
        let returned = disks.take(dir.path(), LIMITS);
        assert!(returned.has_begun && returned.code.is_none());
        assert!(!disks.inside.exists() && !disks.outside.exists());
    }

    #[test]
    fn a_header_that_is_large_in_memory_is_refused() {
        let name = "n".repeat(usize::try_from(LONG_NAME_BYTES_MAX).unwrap() + 1);
        for (kind, text, is_taken) in [
            (tar::EntryType::GNULongName, &name[..200], true),
            (tar::EntryType::GNULongName, &name[..], false),
            (tar::EntryType::XHeader, &name[..], false),
            (tar::EntryType::GNUSparse, "", false),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let (disks, _) = disks(dir.path());
            let out = OpenOptions::new().write(true).open(&disks.outside).unwrap();
            let mut archive = tar::Builder::new(out);
            put(&mut archive, "././@LongLink", kind, text);
            put(&mut archive, ".guest/code", tar::EntryType::Regular, "3");
            archive.finish().unwrap();
            drop(archive);
            let returned = disks.take(dir.path(), LIMITS);
            assert_eq!(
                returned.missing.is_none(),
                is_taken,
                "{kind:?} {returned:?}"
            );
        }
    }

    #[test]
    fn only_plain_files_below_result_are_taken_and_no_more_than_allowed() {
        let dir = tempfile::tempdir().unwrap();
        let (disks, result) = disks(dir.path());
        fs::write(result.join("output"), "ours").unwrap();
        let outputs = dir.path().join("outputs");
        fs::create_dir(&outputs).unwrap();
        let out = OpenOptions::new().write(true).open(&disks.outside).unwrap();
        let mut archive = tar::Builder::new(out);
        let (file, link) = (tar::EntryType::Regular, tar::EntryType::Symlink);
        for (name, kind, text) in [
            (".guest/code", file, "3\n"),
            (".guest/note", file, "begun\nmemory_bytes 7\n"),
            ("result/a", file, "a"),
            ("result/.outputs/lib/x", file, "out"),
            ("result/.outputs/link", link, ""),
            ("result/.outputs/link/y", file, "y"),
            ("result/deep/b", file, "b"),
            ("result/output", file, "theirs"),
            ("result/link", link, ""),
            ("result/link/x", file, "x"),
            ("result/../../evil", file, "x"),
            ("/etc/evil", file, "x"),
            (
                "result/big",
                file,
                "more than a hundred bytes: ................................................................................",
            ),
        ] {
            put(&mut archive, name, kind, text);
        }
        archive.finish().unwrap();
        drop(archive);
        let returned = disks.take(dir.path(), LIMITS);
        assert_eq!(returned.code, Some(3));
        assert_eq!(returned.note.memory_bytes, Some(7));
        assert!(returned.missing.unwrap().contains("limit"));
        assert_eq!(fs::read_to_string(result.join("a")).unwrap(), "a");
        assert_eq!(fs::read_to_string(result.join("deep/b")).unwrap(), "b");
        assert_eq!(fs::read_to_string(result.join("output")).unwrap(), "ours");
        assert_eq!(fs::read_to_string(outputs.join("lib/x")).unwrap(), "out");
        let about = fs::metadata(outputs.join("lib/x")).unwrap();
        assert_eq!(about.permissions().mode() & 0o7777, 0o755);
        assert!(!fs::symlink_metadata(outputs.join("link")).is_ok_and(|about| about.is_symlink()));
        assert!(!result.join("big").exists() && !dir.path().join("evil").exists());
        assert!(!fs::symlink_metadata(result.join("link")).is_ok_and(|about| about.is_symlink()));
    }
}
