//! Tests of transfers over a store in memory.

use std::path::PathBuf;

use super::*;
use crate::{ContentStore, Digest};

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
