//! Incomplete uploads: each is a hidden file beside its target, and is always removed.
//!
//! The file is removed when the upload ends or breaks off. A note in the data folder names it, so that the next start
//! can remove it after a kill.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::files::FileFlow;
use fairlead_base::file_modes::PRIVATE_FOLDER;

/// Ends the names of such files.
const PART: &str = ".part";
/// The folder of the notes, below the data folder: one folder a replica.
const NOTES: &str = "uploads";
/// Digits of the number in such a name.
const NUMBER_CHARS: usize = 32;

/// Whether a file of this name is an upload that is not whole; a user's own `x.part` is none.
pub(crate) fn is_part(name: &str) -> bool {
    let number = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(PART));
    number.is_some_and(|number| {
        number.len() == NUMBER_CHARS && number.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// An upload that is not whole; dropped, it is gone.
#[derive(Debug)]
pub(crate) struct UploadPart {
    pub(crate) path: PathBuf,
    note: PathBuf,
}

impl Drop for UploadPart {
    fn drop(&mut self) {
        // Whoever hung up is not waited for: two names are removed, which takes no time to speak of.
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "an incomplete upload could not be removed; the next start tries again");
            }
            _ => drop(fs::remove_file(&self.note)),
        }
    }
}

impl FileFlow {
    fn notes(&self) -> PathBuf {
        let replica = self.ctx.config.replica.replace('/', "_");
        self.ctx.config.data_dir.join(NOTES).join(replica)
    }

    /// A place for an upload into `folder`, which exists; it is noted before anything is there.
    pub(crate) async fn new_part(&self, folder: &Path) -> io::Result<UploadPart> {
        let number = uuid::Uuid::new_v4().simple().to_string();
        let path = folder.join(format!(".{number}{PART}"));
        let notes = self.notes();
        let mut private = tokio::fs::DirBuilder::new();
        private.recursive(true).mode(PRIVATE_FOLDER);
        private.create(&notes).await?;
        let note = notes.join(number);
        // Dropped, it is gone: a full disk may have taken the name of the note, and not what it holds.
        let part = UploadPart { path, note };
        tokio::fs::write(&part.note, part.path.as_os_str().as_encoded_bytes()).await?;
        Ok(part)
    }

    /// Removes what an earlier run of this replica left when it was killed. Blocks.
    pub(crate) fn sweep_parts(&self) -> io::Result<()> {
        let notes = match fs::read_dir(self.notes()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            notes => notes?,
        };
        for note in notes {
            let note = note?.path();
            let path = PathBuf::from(String::from_utf8_lossy(&fs::read(&note)?).into_owned());
            let name = path.file_name().and_then(|name| name.to_str());
            if name.is_some_and(is_part) {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            fs::remove_file(&note)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::flows;

    #[test]
    fn a_user_s_own_part_is_none_of_ours() {
        let number = "0123456789abcdef".repeat(2);
        assert!(is_part(&format!(".{number}.part")));
        for name in ["x.part", ".part", ".x.part", "part"] {
            assert!(!is_part(name), "{name}");
        }
        assert!(!is_part(&format!("{number}.part")));
    }

    #[tokio::test]
    async fn a_part_goes_with_its_upload_or_with_the_next_start() {
        let (data, flows) = flows().await;
        let part = flows.files.new_part(data.path()).await.unwrap();
        fs::write(&part.path, "x").unwrap();
        let (path, note) = (part.path.clone(), part.note.clone());
        drop(part);
        assert!(!path.exists() && !note.exists());
        let part = flows.files.new_part(data.path()).await.unwrap();
        fs::write(&part.path, "x").unwrap();
        let (path, note) = (part.path.clone(), part.note.clone());
        // As a killed process would.
        std::mem::forget(part);
        flows.files.sweep_parts().unwrap();
        assert!(!path.exists() && !note.exists());
    }
}
