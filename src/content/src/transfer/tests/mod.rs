//! Tests of transfers over a store in memory, and of plain requests over a small server.

mod abreast;
mod addresses;
mod faults;
mod gets;
mod puts;
mod round_trips;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use super::*;
use crate::{ContentStore, Digest};

/// Object at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    File { executable: bool, bytes: Vec<u8> },
    Link(String),
    EmptyFolder,
}

type Tree = BTreeMap<String, Node>;

fn file(bytes: &[u8]) -> Node {
    Node::File {
        executable: false,
        bytes: bytes.to_vec(),
    }
}

/// Bytes without a pattern, the same each time for a name.
fn noise(name: &str, many: usize) -> Vec<u8> {
    let mut out = vec![0; many];
    let mut hasher = blake3::Hasher::new();
    hasher.update(name.as_bytes()).finalize_xof().fill(&mut out);
    out
}

fn write(root: &Path, tree: &Tree) {
    fs::create_dir_all(root).unwrap();
    for (path, node) in tree {
        let at = root.join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        match node {
            Node::EmptyFolder => fs::create_dir(at).unwrap(),
            Node::Link(target) => std::os::unix::fs::symlink(target, at).unwrap(),
            Node::File { executable, bytes } => {
                fs::write(&at, bytes).unwrap();
                let mode = if *executable { 0o755 } else { 0o644 };
                fs::set_permissions(&at, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
    }
}

fn read(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries: Vec<PathBuf> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        let name = |at: &Path| at.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        if entries.is_empty() && folder != root {
            tree.insert(name(&folder), Node::EmptyFolder);
        }
        for at in entries {
            let about = fs::symlink_metadata(&at).unwrap();
            if about.is_dir() {
                folders.push(at);
            } else if about.is_symlink() {
                let target = fs::read_link(&at).unwrap().to_str().unwrap().to_owned();
                tree.insert(name(&at), Node::Link(target));
            } else {
                let executable = about.permissions().mode() & 0o100 != 0;
                let bytes = fs::read(&at).unwrap();
                tree.insert(name(&at), Node::File { executable, bytes });
            }
        }
    }
    tree
}

async fn put_all(remote: &dyn Remote, root: &Path) -> Result<Put, TransferError> {
    put(remote, root.to_owned(), &PutOptions::default(), &|_| {}).await
}

async fn get_all(remote: &dyn Remote, id: Digest, into: &Path) -> Result<Got, TransferError> {
    get(remote, id, into.to_owned(), &GetOptions::default(), &|_| {}).await
}

fn is_send<T: Send>(_: &T) {}

/// An agent puts and gets in tasks of its own.
#[test]
fn transfers_may_move_between_threads() {
    let store = ContentStore::in_memory();
    let options = PutOptions::default();
    is_send(&put(&store, PathBuf::new(), &options, &|_| {}));
    is_send(&put_paths(&store, PathBuf::new(), &[], &options, &|_| {}));
    let (id, options) = (Digest::of(b""), GetOptions::default());
    is_send(&get(&store, id, PathBuf::new(), &options, &|_| {}));
}
