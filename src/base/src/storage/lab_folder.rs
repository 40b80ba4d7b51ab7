//! The data folder of a lab on Elasticsearch: replicas share one, since results and logs are there.
//!
//! A file in the folder has a word that a document of the store has, too. A replica with another folder would answer that
//! there is no log. The file also says to whom the folder belongs, so that nobody takes it for that of an embedded store.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use fairlead_store::{DocKind, DocWrite, Expect, JobStore, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{Clock, Config, FilesIn, StartError, StoreChoice, storage::group_commit::only};

/// The file.
const FILE: &str = "lab.json";
/// The settings document.
const DOC: &str = "data-folder";
/// Looks, and the pause between two, ms: a file system on the network may show a new file late.
const LOOKS: u32 = 4;
const LOOK_MS: u64 = 1_000;

/// Content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LabFile {
    /// For people: the URLs and the index prefix of the lab.
    lab: String,
    word: String,
}

impl LabFile {
    /// Reads the file. `None`: there is none, or it cannot be read.
    fn read(data: &Path) -> Option<Self> {
        let bytes = fs::read(data.join(FILE)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Returns its path until it is complete.
    fn part(&self, data: &Path) -> PathBuf {
        data.join(format!("{FILE}.{}", self.word))
    }

    /// Writes it completely or not at all, unless there is one.
    fn create(&self, data: &Path) -> io::Result<()> {
        let part = self.part(data);
        let written = fs::write(&part, json!(self).to_string());
        let linked = written.and_then(|()| fs::hard_link(&part, data.join(FILE)));
        // A start that is killed here leaves a file that nobody reads.
        drop(fs::remove_file(part));
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    }
}

/// Refuses the folder of a lab on Elasticsearch for an embedded store.
pub fn refuse_embedded(data: &Path) -> Result<(), StartError> {
    match LabFile::read(data) {
        None => Ok(()),
        Some(LabFile { lab, .. }) => Err(StartError::LabFolder {
            path: data.display().to_string(),
            lab,
        }),
    }
}

/// Checks that the replica has the data folder of its lab. The first replica of a lab determines the folder.
pub async fn check_shared(
    config: &Config,
    store: &dyn JobStore,
    clock: &Clock,
) -> Result<(), StartError> {
    let StoreChoice::Elasticsearch(elastic) = &config.store else {
        return Ok(());
    };
    let data = &config.data_dir;
    let own = LabFile {
        lab: format!(
            "{} with the index prefix {}",
            elastic.shown_urls(),
            elastic.index_prefix
        ),
        word: uuid::Uuid::new_v4().simple().to_string(),
    };
    let create = || {
        own.create(data).map_err(|cause| StartError::Data {
            path: data.display().to_string(),
            cause,
        })
    };
    if config.files_in == FilesIn::Content {
        return create();
    }
    let mut stored = None;
    for look in 0..LOOKS {
        if look > 0 {
            clock.sleep(Duration::from_millis(LOOK_MS)).await;
        }
        stored = read_word(store).await?;
        if stored.is_none() {
            create()?;
        }
        // Another replica may be writing it.
        let Some(file) = LabFile::read(data) else {
            continue;
        };
        if stored.is_none() {
            stored = write_word(store, &file.word).await?;
        }
        if stored.as_ref() == Some(&file.word) {
            return Ok(());
        }
    }
    Err(StartError::OtherFolder {
        path: data.display().to_string(),
        file: json!(LabFile {
            word: stored.unwrap_or_default(),
            ..own
        })
        .to_string(),
    })
}

async fn read_word(store: &dyn JobStore) -> Result<Option<String>, StoreError> {
    let doc = store.get_doc(DocKind::Setting, DOC).await?;
    let word = doc.and_then(|doc| Some(doc.body.get("word")?.as_str()?.to_owned()));
    Ok(word)
}

/// Stores the word of the folder, unless another replica did. Returns the stored word.
async fn write_word(store: &dyn JobStore, word: &str) -> Result<Option<String>, StoreError> {
    let write = DocWrite {
        id: DOC.to_owned(),
        expect: Expect::Absent,
        body: Some(json!({ "word": word })),
    };
    // The following read tells if the write was taken.
    drop(only(store.put_docs(DocKind::Setting, vec![write]).await));
    read_word(store).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fairlead_store::ElasticConfig;

    use super::*;
    use fairlead_fixtures::embedded;

    fn config(data: &Path) -> Config {
        let elastic = ElasticConfig {
            urls: vec!["http://127.0.0.1:9".to_owned()],
            ..ElasticConfig::default()
        };
        Config {
            store: StoreChoice::Elasticsearch(Box::new(elastic)),
            ..Config::embedded(data.to_owned())
        }
    }

    /// A start on a full disk left an empty file, and each later start was refused.
    #[test]
    fn a_full_disk_leaves_no_file_that_says_nothing() {
        let data = tempfile::tempdir().unwrap();
        let file = LabFile {
            lab: "http://127.0.0.1:9".to_owned(),
            word: "a".to_owned(),
        };
        std::os::unix::fs::symlink("/dev/full", file.part(data.path())).unwrap();
        let full = file.create(data.path()).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_dir(data.path()).unwrap().count(), 0);
        for _ in 0..2 {
            file.create(data.path()).unwrap();
            assert_eq!(LabFile::read(data.path()).unwrap(), file);
        }
    }

    /// A replica with its own folder answered that logs are empty.
    #[tokio::test(start_paused = true)]
    async fn a_replica_with_another_folder_is_refused() {
        let [data, ours, others] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let store: Arc<dyn JobStore> = embedded(&data);
        let check =
            async |config: &Config| check_shared(config, store.as_ref(), &Clock::system()).await;
        for _ in 0..2 {
            check(&config(ours.path())).await.unwrap();
        }
        let refused = check(&config(others.path())).await.unwrap_err().to_string();
        assert!(
            refused.contains("--data") && refused.contains("lab.json"),
            "{refused}"
        );
        assert!(!others.path().join(FILE).exists());
        // The file content in the hint makes the folder that of the lab.
        let file = refused.split_once("echo '").unwrap().1;
        let file = file.split_once('\'').unwrap().0;
        fs::write(others.path().join(FILE), file).unwrap();
        check(&config(others.path())).await.unwrap();
        let by_content = Config {
            files_in: FilesIn::Content,
            ..config(data.path())
        };
        check(&by_content).await.unwrap();
        for folder in [&data, &ours] {
            let refused = refuse_embedded(folder.path()).unwrap_err().to_string();
            assert!(refused.contains("127.0.0.1:9"), "{refused}");
        }
    }
}
