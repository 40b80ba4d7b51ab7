//! Files that describe a machine: one map, with the includes of job files, and nothing is expanded.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{
    error::JobFileError,
    load::Loader,
    merge,
    source::Source,
    tree::{Entry, Kind, Node},
};
use crate::Spec;

/// Reads a file of one map, such as a host file of lkp-tests or compass-ci. Files that `<<:` names come under its
/// keys; lists stay lists.
///
/// # Errors
/// Fails with the problem of the file and its place; `not_plain`: several documents, zipped keys or a template.
pub fn read_plain(
    path: &Path,
    include_dirs: &[PathBuf],
    source: &dyn Source,
) -> Result<Spec, JobFileError> {
    let mut loader = Loader::new(source, include_dirs);
    let mut documents = loader.file(path)?;
    let name = path.to_string_lossy();
    let refuse = |message: String| {
        let hint = "write one map with plain keys and values";
        Err(JobFileError::whole("not_plain", &name, message, hint))
    };
    let entries = match documents.len() {
        0 => Vec::new(),
        1 => documents.remove(0).entries,
        several => return refuse(format!("{several} documents where one was expected")),
    };
    let kept = entries
        .iter()
        .filter(|entry| merge::removed(entry).is_none());
    plain_map(kept).or_else(refuse)
}

fn plain_map<'e>(entries: impl Iterator<Item = &'e Entry>) -> Result<Map<String, Value>, String> {
    let mut map = Map::new();
    for entry in entries {
        let Entry::One(key, node) = entry else {
            return Err("zipped keys where plain ones were expected".to_owned());
        };
        let value = plain(node).map_err(|problem| format!("'{}' holds {problem}", key.text))?;
        map.insert(key.text.clone(), value);
    }
    Ok(map)
}

/// The parser bounds how deep nodes lie in each other.
fn plain(node: &Node) -> Result<Value, String> {
    match &node.kind {
        Kind::Scalar(value) => Ok(value.clone()),
        Kind::Template(_) => Err("a template".to_owned()),
        Kind::List(items) => {
            let items: Result<Vec<Value>, String> = items.iter().map(|item| plain(item)).collect();
            items.map(Value::Array)
        }
        Kind::Map(entries) => plain_map(entries.iter()).map(Value::Object),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::FsSource;

    #[test]
    fn a_machine_is_one_map_with_what_it_includes() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        put("taishan", "arch: aarch64\nmemory: 256G\nnr_cpu: 96\n");
        put(
            "taishan--a61",
            "<<: taishan\nmemory: 128G\nmac_addr: [a, b]\n",
        );
        put("two", "a: 1\n---\na: 2\n");
        put("zip", "a|b: [1|2]\n");
        put("empty", "# nothing\n");
        let read = |name: &str| read_plain(&folder.path().join(name), &[], &FsSource);
        let host = Value::Object(read("taishan--a61").unwrap());
        let expected = serde_json::json!({
            "arch": "aarch64", "memory": "128G", "nr_cpu": 96, "mac_addr": ["a", "b"],
        });
        assert_eq!(host, expected);
        assert!(read("empty").unwrap().is_empty());
        for name in ["two", "zip"] {
            assert_eq!(read(name).unwrap_err().code, "not_plain", "{name}");
        }
    }
}
