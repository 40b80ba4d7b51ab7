//! Removes a tree that a job made: any depth, any modes, and never through a link.
//!
//! An inner folder is first moved to the top, then emptied there. So two folders are open at any time, no path grows,
//! and the depth costs neither stack nor files.

use std::{ffi::CString, io, os::fd::OwnedFd, path::Path};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fchmod, openat, renameat, statat, unlinkat},
    io::Errno,
};

/// Flags for opening a folder without following a link.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Removes a file, or a folder with its contents. A missing path is no error. It continues after errors, and returns
/// the first one. Blocks.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    let top = match openat(CWD, path, FOLDER, Mode::empty()) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => return std::fs::remove_file(path),
        Err(_) => {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
            openat(CWD, path, FOLDER, Mode::empty())?
        }
    };
    let mut remover = Remover {
        top,
        folders: Vec::new(),
        made: 0,
        first_error: None,
    };
    remover.empty(None);
    while let Some(name) = remover.folders.pop() {
        match remover.open(&name) {
            Ok(folder) => {
                remover.empty(Some(&folder));
                let removed = unlinkat(&remover.top, &name, AtFlags::REMOVEDIR);
                remover.note(removed);
            }
            Err(Errno::NOENT) => {}
            Err(error) => remover.note(Err(error)),
        }
    }
    match remover.first_error {
        None => std::fs::remove_dir(path),
        Some(error) => Err(error.into()),
    }
}

struct Remover {
    top: OwnedFd,
    /// Folders directly below the top that must be emptied.
    folders: Vec<CString>,
    /// Number of folders that were moved up.
    made: u64,
    first_error: Option<Errno>,
}

impl Remover {
    fn note(&mut self, outcome: rustix::io::Result<()>) {
        if let Err(error) = outcome {
            self.first_error.get_or_insert(error);
        }
    }

    /// Opens a folder directly below the top, after making it accessible.
    fn open(&self, name: &CString) -> rustix::io::Result<OwnedFd> {
        let opened = openat(&self.top, name, FOLDER, Mode::empty());
        if !matches!(opened, Err(Errno::ACCESS)) {
            return opened;
        }
        rustix::fs::chmodat(&self.top, name, Mode::RWXU, AtFlags::empty())?;
        openat(&self.top, name, FOLDER, Mode::empty())
    }

    /// Removes everything but folders from this one (`None`: the top), and moves its folders up.
    fn empty(&mut self, folder: Option<&OwnedFd>) {
        let entries = match Dir::read_from(folder.unwrap_or(&self.top)) {
            Ok(entries) => entries,
            Err(error) => return self.note(Err(error)),
        };
        // The entries are read one at a time, because a job may leave millions.
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return self.note(Err(error)),
            };
            let (name, kind) = (entry.file_name(), entry.file_type());
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let mut outcome = self.remove_entry(folder, name, kind);
            if outcome == Err(Errno::ACCESS) {
                // The owner may have removed the write permission.
                let here = folder.unwrap_or(&self.top);
                outcome = fchmod(here, Mode::RWXU);
                outcome = outcome.and_then(|()| self.remove_entry(folder, name, kind));
            }
            self.note(outcome);
        }
    }

    fn remove_entry(
        &mut self,
        folder: Option<&OwnedFd>,
        name: &std::ffi::CStr,
        kind: FileType,
    ) -> rustix::io::Result<()> {
        let here = folder.unwrap_or(&self.top);
        let is_folder = match kind {
            FileType::Directory => true,
            FileType::Unknown => {
                let about = statat(here, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(about.st_mode) == FileType::Directory
            }
            _ => false,
        };
        if !is_folder {
            return unlinkat(here, name, AtFlags::empty());
        }
        if folder.is_none() {
            self.folders.push(name.to_owned());
            return Ok(());
        }
        loop {
            self.made += 1;
            let up = CString::new(format!(".removed-{}", self.made)).map_err(|_| Errno::INVAL)?;
            // A move changes the folder itself, so it must be writable.
            let moved = renameat(here, name, &self.top, &up).or_else(|error| match error {
                Errno::ACCESS | Errno::PERM => {
                    rustix::fs::chmodat(here, name, Mode::RWXU, AtFlags::empty())?;
                    renameat(here, name, &self.top, &up)
                }
                other => Err(other),
            });
            match moved {
                // The job has a folder of that name.
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    self.folders.push(up);
                    return Ok(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use super::*;

    /// Regression: trees were removed by recursion, so the stack overflowed and the agent crashed.
    #[test]
    fn a_tree_of_twenty_thousand_levels_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        fs::create_dir(&top).unwrap();
        let mut here = openat(CWD, &top, FOLDER, Mode::empty()).unwrap();
        for _ in 0..20_000 {
            rustix::fs::mkdirat(&here, "d", Mode::RWXU).unwrap();
            here = openat(&here, "d", FOLDER, Mode::empty()).unwrap();
        }
        drop(here);
        remove_tree(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn a_folder_that_is_read_in_many_parts_is_emptied_whole() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        for folder in [top.clone(), top.join("inner")] {
            fs::create_dir_all(&folder).unwrap();
            for n in 0..2_000 {
                let name = format!("{n}-{}", "x".repeat(100));
                fs::write(folder.join(&name), "").unwrap();
                fs::create_dir(folder.join(format!("folder-{name}"))).unwrap();
            }
        }
        remove_tree(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn modes_and_odd_names_do_not_stop_it_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (top, kept) = (dir.path().join("top"), dir.path().join("kept"));
        fs::create_dir_all(top.join("a/.removed-1/x")).unwrap();
        fs::create_dir_all(top.join(".removed-1/y")).unwrap();
        fs::write(top.join("a/.removed-1/x/file"), "").unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "").unwrap();
        symlink(&kept, top.join("a/link")).unwrap();
        for folder in ["a/.removed-1/x", "a/.removed-1", "a", ""] {
            let mode = fs::Permissions::from_mode(0o000);
            fs::set_permissions(top.join(folder), mode).unwrap();
        }
        remove_tree(&top).unwrap();
        assert!(!top.exists() && kept.join("file").exists());
        remove_tree(&top).unwrap();
        symlink(&kept, &top).unwrap();
        remove_tree(&top).unwrap();
        assert!(fs::symlink_metadata(&top).is_err() && kept.join("file").exists());
    }
}
