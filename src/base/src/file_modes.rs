//! File permissions: only fairlead's own user may read files of a replica, except the results of a lab that shares
//! them.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt, chown},
    path::{Component, Path},
};

/// Mode of a private file.
pub const PRIVATE_FILE: u32 = 0o600;
/// Mode of a private folder.
pub const PRIVATE_FOLDER: u32 = 0o700;
/// Mode bits that let others enter a folder, but not read it.
const PASS: u32 = 0o011;

/// Access rights of result files. Default: the user of the scheduler alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultFiles {
    /// Mode of files. Folders can be entered by all who may read these.
    pub mode: u32,
    /// Group of the files; `None`: the process's own.
    pub group: Option<u32>,
}

impl Default for ResultFiles {
    fn default() -> Self {
        Self {
            mode: PRIVATE_FILE,
            group: None,
        }
    }
}

impl ResultFiles {
    /// Returns true if users other than the scheduler's may read them.
    fn is_shared(self) -> bool {
        self.mode & 0o077 != 0
    }

    fn folder_mode(self) -> u32 {
        self.mode | ((self.mode & 0o444) >> 2)
    }

    /// Sets the mode and the group of a new file.
    pub fn give_file(self, path: &Path) -> io::Result<()> {
        give(path, self.mode, PRIVATE_FILE, self.group)
    }

    /// Makes the folders between the existing `base` and `folder` below it. Existing folders stay as they are.
    pub fn make_folders(self, base: &Path, folder: &Path) -> io::Result<()> {
        let below = folder.strip_prefix(base).map_err(io::Error::other)?;
        private_folders(base)?;
        let mut path = base.to_owned();
        for part in below.components() {
            let Component::Normal(name) = part else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            path.push(name);
            match DirBuilder::new().mode(PRIVATE_FOLDER).create(&path) {
                Ok(()) => give(&path, self.folder_mode(), PRIVATE_FOLDER, self.group)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Prepares a replica's data folder. Others can enter it only if results are shared.
    pub fn prepare(self, data: &Path) -> io::Result<()> {
        let results = data.join("result");
        let is_new = !results.exists();
        self.make_folders(data, &results)?;
        if self.is_shared() {
            give(&results, self.folder_mode(), 0, self.group)?;
            let mode = fs::metadata(data)?.permissions().mode();
            if mode & PASS != PASS {
                fs::set_permissions(data, Permissions::from_mode(mode | PASS))?;
            }
        } else if !is_new && fs::metadata(&results)?.permissions().mode() & 0o077 != 0 {
            tracing::warn!(
                folder = %results.display(),
                "other users of this machine can read old results, and cannot read new ones (hint: labs that share results say --results-mode 0640 --results-group NAME; others: chmod -R go= FOLDER)"
            );
        }
        Ok(())
    }
}

fn give(path: &Path, mode: u32, has: u32, group: Option<u32>) -> io::Result<()> {
    if group.is_some() {
        chown(path, None, group)?;
    }
    if mode != has {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Makes private folders. Existing ones stay as they are.
pub fn private_folders(path: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE_FOLDER)
        .create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn results_are_private_unless_a_lab_shares_them() {
        let folder = tempfile::tempdir().unwrap();
        let private = folder.path().join("private");
        ResultFiles::default().prepare(&private).unwrap();
        assert_eq!(
            (mode(&private), mode(&private.join("result"))),
            (0o700, 0o700)
        );

        let shared = folder.path().join("shared");
        let files = ResultFiles {
            mode: 0o640,
            group: Some(group_of(&private)),
        };
        files.prepare(&shared).unwrap();
        assert_eq!(
            (mode(&shared), mode(&shared.join("result"))),
            (0o711, 0o750)
        );
        let deep = shared.join("result/a/b");
        files.make_folders(&shared, &deep).unwrap();
        assert_eq!(mode(&deep), 0o750);
        let file = deep.join("f");
        fs::write(&file, "").unwrap();
        files.give_file(&file).unwrap();
        assert_eq!(mode(&file), 0o640);
        assert!(files.make_folders(&shared, folder.path()).is_err());
    }

    fn group_of(path: &Path) -> u32 {
        std::os::unix::fs::MetadataExt::gid(&fs::metadata(path).unwrap())
    }
}
