//! Where content lies: a folder, a bucket of S3, or a container of Azure Blob.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use object_store::local::LocalFileSystem;

use crate::{ContentError, ContentStore};

/// Where content lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A folder of this machine, or one that all replicas share.
    Folder(PathBuf),
}

/// A text is no place of content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{value}' is no place of content: {problem}")]
pub struct BadLocation {
    value: String,
    problem: &'static str,
}

impl FromStr for Location {
    type Err = BadLocation;

    fn from_str(text: &str) -> Result<Self, BadLocation> {
        if text.is_empty() {
            let problem = "a folder was expected";
            return Err(BadLocation {
                value: text.to_owned(),
                problem,
            });
        }
        Ok(Self::Folder(PathBuf::from(text)))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Location {
    /// Opens the store there. Makes a folder that is missing.
    ///
    /// # Errors
    /// It cannot be reached with what is configured.
    pub fn open(&self) -> Result<ContentStore, ContentError> {
        match self {
            Self::Folder(path) => open_folder(path),
        }
    }
}

fn open_folder(path: &Path) -> Result<ContentStore, ContentError> {
    let made = std::fs::create_dir_all(path);
    made.map_err(|error| ContentError::Damaged {
        what: format!("the folder {}", path.display()),
        problem: error.to_string(),
    })?;
    let folder = LocalFileSystem::new_with_prefix(path)?.with_fsync(true);
    Ok(ContentStore::over(Arc::new(folder), None))
}
