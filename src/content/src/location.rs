//! Where content lies: a folder, a bucket of S3, or a container of Azure Blob.

use std::{
    fmt,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use object_store::{
    ObjectStore,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    azure::{AzureConfigKey, MicrosoftAzureBuilder},
    limit::LimitStore,
    local::LocalFileSystem,
    prefix::PrefixStore,
    signer::Signer,
};

use crate::{
    ContentError, ContentStore,
    clock::{Clock, MachineClock},
    health::Health,
    remote::{Connector, repeats},
};

/// Maximum number of simultaneous requests of one process to a bucket or a container.
const REQUESTS_MAX: usize = 64;
/// Maximum number of simultaneous reads and writes of one process in a folder. Each blocks a thread.
const FILES_MAX: usize = 32;
const S3: &str = "s3://";
const AZURE: &str = "az://";

/// Location of content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A folder of this machine, or one that all replicas share.
    Folder(PathBuf),
    /// A bucket of S3: `s3://BUCKET` or `s3://BUCKET/PREFIX`.
    S3(Bucket),
    /// A container of Azure Blob: `az://CONTAINER` or `az://CONTAINER/PREFIX`.
    Azure(Bucket),
}

/// Bucket or container, and the part of it that is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// Its name.
    pub name: String,
    /// Prefix of all names in it; empty: none.
    pub prefix: String,
}

/// Error: a text is no location of content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{value}' is no place of content: {problem}")]
pub struct BadLocation {
    value: String,
    problem: &'static str,
}

impl FromStr for Location {
    type Err = BadLocation;

    fn from_str(text: &str) -> Result<Self, BadLocation> {
        let bad = |problem| BadLocation {
            value: text.to_owned(),
            problem,
        };
        if text.is_empty() {
            return Err(bad("a folder, s3://BUCKET or az://CONTAINER was expected"));
        }
        if let Some(rest) = text.strip_prefix(S3) {
            return bucket(rest).map(Self::S3).map_err(bad);
        }
        if let Some(rest) = text.strip_prefix(AZURE) {
            return bucket(rest).map(Self::Azure).map_err(bad);
        }
        if text.contains("://") {
            return Err(bad(
                "only s3:// and az:// are known; anything else is a folder",
            ));
        }
        Ok(Self::Folder(PathBuf::from(text)))
    }
}

fn bucket(text: &str) -> Result<Bucket, &'static str> {
    let (name, prefix) = text.split_once('/').unwrap_or((text, ""));
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
    if name.is_empty() || !name.chars().all(is_name) {
        return Err("its name has lower-case letters, digits, '-', '.' and '_' only");
    }
    let is_part = |part: &str| !["", ".", ".."].contains(&part) && part.chars().all(is_part_char);
    if !prefix.is_empty() && !prefix.split('/').all(is_part) {
        return Err("the parts of its prefix have letters, digits, '-', '.' and '_' only");
    }
    Ok(Bucket {
        name: name.to_owned(),
        prefix: prefix.to_owned(),
    })
}

fn is_part_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._".contains(c)
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::S3(bucket) => write!(f, "{S3}{bucket}"),
            Self::Azure(bucket) => write!(f, "{AZURE}{bucket}"),
        }
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if !self.prefix.is_empty() {
            write!(f, "/{}", self.prefix)?;
        }
        Ok(())
    }
}

impl Location {
    /// Opens the store there. Creates a missing folder. Credentials and endpoints of object stores come from the
    /// environment variables that begin with `AWS_` or `AZURE_`.
    ///
    /// # Errors
    /// Fails if the store cannot be reached with this configuration.
    pub fn open(&self) -> Result<ContentStore, ContentError> {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        self.open_with(variables)
    }

    /// Opens the store there with these variables, as if they were in the environment.
    ///
    /// # Errors
    /// Fails if the store cannot be reached with this configuration.
    pub fn open_with(
        &self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<ContentStore, ContentError> {
        let clock: Arc<dyn Clock> = Arc::new(MachineClock::new());
        let health = Arc::new(Health::new(Arc::clone(&clock)));
        let connector = Connector {
            health: Arc::clone(&health),
        };
        let store = match self {
            Self::Folder(path) => open_folder(path)?,
            Self::S3(bucket) => {
                let mut builder = AmazonS3Builder::new();
                for (name, value) in with_beginning(variables, "aws_") {
                    if let Ok(key) = name.parse::<AmazonS3ConfigKey>() {
                        builder = builder.with_config(key, value);
                    }
                }
                let opened = builder
                    .with_bucket_name(&bucket.name)
                    .with_retry(repeats())
                    .with_http_connector(connector)
                    .build()?;
                with_prefix(opened, &bucket.prefix)
            }
            Self::Azure(bucket) => {
                let mut builder = MicrosoftAzureBuilder::new();
                for (name, value) in with_beginning(variables, "azure_") {
                    if let Ok(key) = name.parse::<AzureConfigKey>() {
                        builder = builder.with_config(key, value);
                    }
                }
                let opened = builder
                    .with_container_name(&bucket.name)
                    .with_retry(repeats())
                    .with_http_connector(connector)
                    .build()?;
                with_prefix(opened, &bucket.prefix)
                    .with_headers_to_put(&[("x-ms-blob-type", "BlockBlob")])
            }
        };
        Ok(store.with_clock_and_health(clock, health))
    }
}

fn with_beginning(
    variables: impl IntoIterator<Item = (String, String)>,
    beginning: &str,
) -> impl Iterator<Item = (String, String)> {
    let lower = variables
        .into_iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value));
    lower.filter(move |(name, _)| name.starts_with(beginning))
}

fn with_prefix<T: ObjectStore + Signer + Clone>(opened: T, prefix: &str) -> ContentStore {
    let prefixed = PrefixStore::new(opened.clone(), prefix);
    let signer = Arc::new(PrefixStore::new(opened, prefix));
    let limited = LimitStore::new(prefixed, REQUESTS_MAX);
    ContentStore::over(Arc::new(limited), Some(signer))
}

fn open_folder(path: &Path) -> Result<ContentStore, ContentError> {
    // The scheduler alone decides who gets this content.
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path);
    made.map_err(|error| ContentError::Damaged {
        what: format!("the folder {}", path.display()),
        problem: error.to_string(),
    })?;
    let folder = LocalFileSystem::new_with_prefix(path)?
        .with_fsync(true)
        .with_automatic_cleanup(true);
    let limited = LimitStore::new(folder, FILES_MAX);
    Ok(ContentStore::over(Arc::new(limited), None).in_folder(path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn places_are_read_and_written() {
        for text in [
            "/var/lib/fairlead/content",
            "content",
            "s3://lab",
            "s3://lab/a/b",
            "az://lab-1/a",
        ] {
            let read: Location = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
        }
        let slash: Location = "s3://lab/a/".parse().unwrap();
        assert_eq!(slash.to_string(), "s3://lab/a");
        for bad in [
            "",
            "s3://",
            "s3:///a",
            "s3://Lab",
            "s3://lab//a",
            "s3://lab/../a",
            "s3://lab/a?b",
            "gs://lab",
            "https://lab",
        ] {
            assert!(bad.parse::<Location>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_new_folder_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/content");
        let store = Location::Folder(path.clone()).open().unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!((mode & 0o777, store.presigns()), (0o700, false));
    }

    #[test]
    fn addresses_have_the_prefix() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let variables = [
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_ENDPOINT", "https://s3.example"),
            ("AWS_REGION", "eu-west-1"),
            ("AZURE_STORAGE_ACCOUNT_NAME", "lab"),
            ("AZURE_STORAGE_ACCOUNT_KEY", "c2VjcmV0"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        for (place, beginning) in [
            ("s3://lab/a/b", "https://s3.example/lab/a/b/chunks/"),
            (
                "az://lab/a",
                "https://lab.blob.core.windows.net/lab/a/chunks/",
            ),
        ] {
            let location: Location = place.parse().unwrap();
            let store = location.open_with(variables.clone()).unwrap();
            let lasts = std::time::Duration::from_mins(1);
            let digest = crate::Digest::of(b"x");
            let url = runtime.block_on(store.url_to_get(digest, lasts)).unwrap();
            let url = url.unwrap();
            assert!(store.presigns() && url.starts_with(beginning), "{url}");
        }
    }
}
