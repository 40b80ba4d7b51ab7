//! The print of what a job left: names, sizes and times of its files, so that a change is seen without a read of them.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use fairlead_content::Named;
use fairlead_store::JobState;

use crate::{
    FilesIn,
    files::{FileFlow, parts::is_part, places::checked, read::blocking, stored::broken},
};
use fairlead_base::errors::FileError;

impl FileFlow {
    /// The print of the results and the log of a job as they are now, 64 hexadecimal digits.
    pub(crate) async fn print_of_files(&self, state: &JobState) -> Result<String, FileError> {
        if self.ctx.config.files_in == FilesIn::Content {
            return self.print_of_names(&state.result_root).await;
        }
        let folder = self.job_folder(&state.result_root)?;
        let log = self.log_path(state.job_id, state.attempt);
        blocking(move || print_of(&folder, &log)).await
    }

    /// Bytes of content are checked when they are read, so names are enough.
    async fn print_of_names(&self, root: &str) -> Result<String, FileError> {
        let name = root.strip_prefix("/result/").unwrap_or(root);
        checked(name)?;
        let named = self.ctx.content.named(name).await;
        let named = named.map_err(broken)?;
        let names = match named {
            Some(Named::Folder(names)) => names,
            Some(Named::File(_)) | None => Vec::new(),
        };
        Ok(hash(names.iter().map(String::as_str)))
    }
}

/// Blocks.
fn print_of(folder: &Path, log: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    list(folder, Path::new(""), &mut files)?;
    files.sort_unstable();
    let log = if_there(fs::symlink_metadata(log))?.map(|about| format!("log {}", about.len()));
    Ok(hash(files.iter().chain(&log).map(String::as_str)))
}

/// One line a file, with its size and its time.
fn list(root: &Path, below: &Path, files: &mut Vec<String>) -> io::Result<()> {
    for entry in if_there(fs::read_dir(root.join(below)))?
        .into_iter()
        .flatten()
    {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(is_part) {
            continue;
        }
        let path: PathBuf = below.join(name);
        let about = entry.metadata()?;
        if about.is_dir() {
            list(root, &path, files)?;
            continue;
        }
        let time = (about.mtime(), about.mtime_nsec());
        // Quoted: a name may have blanks and line ends.
        let name = path.as_os_str().as_encoded_bytes().escape_ascii();
        files.push(format!("\"{name}\" {} {time:?}", about.len()));
    }
    Ok(())
}

fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

fn hash<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    let mut hasher = blake3::Hasher::new();
    for line in lines {
        hasher.update(line.as_bytes());
        hasher.update(b"\n");
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_of_a_file_changes_the_print() {
        let data = tempfile::tempdir().unwrap();
        let (folder, log) = (data.path().join("r"), data.path().join("log"));
        let print = || print_of(&folder, &log).unwrap();
        let nothing = print();
        fs::create_dir_all(folder.join("deep")).unwrap();
        assert_eq!(print(), nothing, "a folder alone is nothing");
        fs::write(folder.join("a"), "1").unwrap();
        fs::write(folder.join("deep/b"), "2").unwrap();
        fs::write(&log, "out").unwrap();
        let whole = print();
        assert_eq!(print(), whole);
        let part = format!(".{}.part", "0".repeat(32));
        assert!(is_part(&part));
        fs::write(folder.join(part), "x").unwrap();
        assert_eq!(print(), whole, "an upload that goes on is not there yet");
        fs::write(folder.join("deep/b"), "22").unwrap();
        let longer = print();
        assert_ne!(longer, whole);
        fs::remove_file(folder.join("deep/b")).unwrap();
        assert_ne!(print(), longer);
        let shorter = print();
        fs::write(&log, "o").unwrap();
        assert_ne!(print(), shorter);
        fs::remove_dir_all(&folder).unwrap();
        fs::remove_file(&log).unwrap();
        assert_eq!(print(), nothing);
    }
}
