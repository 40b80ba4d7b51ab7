//! Where a get writes, and where it does not.

use std::os::unix::fs::symlink;

use super::*;

async fn stored(tree: &Tree) -> (ContentStore, Digest) {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), tree);
    let store = ContentStore::in_memory();
    let put = put_all(&store, dir.path()).await.unwrap();
    (store, put.id)
}

#[tokio::test]
async fn a_folder_with_something_in_it_is_left_alone() {
    let (store, id) = stored(&Tree::from([("a".to_owned(), file(b"new"))])).await;
    let dir = tempfile::tempdir().unwrap();
    let full = dir.path().join("full");
    write(&full, &Tree::from([("mine".to_owned(), file(b"old"))]));
    let plain = full.join("mine");
    let link = dir.path().join("link");
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    symlink(&empty, &link).unwrap();
    for into in [&full, &plain, &link] {
        let refused = get_all(&store, id, into).await.unwrap_err();
        assert!(matches!(refused, TransferError::NotEmpty(_)), "{refused}");
    }
    assert_eq!(read(&full), Tree::from([("mine".to_owned(), file(b"old"))]));
    assert_eq!(read(&empty), Tree::new());
    get_all(&store, id, &empty).await.unwrap();
    assert_eq!(read(&empty), Tree::from([("a".to_owned(), file(b"new"))]));
}

#[tokio::test]
async fn an_unknown_id_makes_no_folder() {
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join("into");
    let unknown = Digest::of(b"unknown");
    let refused = get_all(&ContentStore::in_memory(), unknown, &into).await;
    assert!(
        matches!(refused, Err(TransferError::Unknown(id)) if id == unknown),
        "{refused:?}"
    );
    assert!(!into.exists());
}

/// A link that a tree brings is never walked through, and somebody else's neither.
#[tokio::test]
async fn nothing_is_written_through_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let (store, id) = stored(&Tree::from([
        ("a/x".to_owned(), file(b"x")),
        ("b/y".to_owned(), file(&noise("y", 3_000_000))),
    ]))
    .await;
    let into = dir.path().join("into");
    // While the files come, somebody puts a link in the place of a folder.
    let remote = faults::Hooked::new(store, {
        let (into, outside) = (into.clone(), outside.clone());
        move |call| {
            if call == faults::Call::Chunk && !into.join("b").exists() {
                symlink(&outside, into.join("b")).unwrap();
            }
            Ok(())
        }
    });
    let refused = get_all(&remote, id, &into).await.unwrap_err();
    assert!(matches!(refused, TransferError::File { .. }), "{refused}");
    assert_eq!(read(&outside), Tree::new());
}
