//! Which files a put takes, and which it refuses or leaves out.

use std::{
    ffi::OsStr,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, symlink},
        net::UnixListener,
    },
};

use super::*;

#[tokio::test]
async fn what_cannot_be_put_is_listed_and_nothing_is_put() {
    let dir = tempfile::tempdir().unwrap();
    let _socket = UnixListener::bind(dir.path().join("socket")).unwrap();
    let pipe = dir.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    fs::write(dir.path().join(OsStr::from_bytes(b"\xff")), "").unwrap();
    fs::write(dir.path().join("good"), "good").unwrap();
    let store = ContentStore::in_memory();
    let refused = put_all(&store, dir.path()).await.unwrap_err();
    let TransferError::Unfit { problems, more } = &refused else {
        panic!("{refused}");
    };
    let paths: Vec<&str> = problems.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(
        (paths.as_slice(), *more),
        (["pipe", "socket", "\u{fffd}"].as_slice(), 0)
    );
    assert!(
        refused.to_string().contains("'socket': it is a socket"),
        "{refused}"
    );
    let good = Digest::of(b"good");
    assert_eq!(store.missing(&[good]).await.unwrap(), [good]);

    // Outputs are put all the same.
    let paths = [".".to_owned()];
    let options = PutOptions::default();
    let put = put_paths(&store, dir.path().to_owned(), &paths, &options, &|_| {}).await;
    let put = put.unwrap();
    assert_eq!((put.files, put.left_out.len()), (1, 3));
}

#[tokio::test]
async fn paths_are_put_with_all_below_them_and_no_link_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    let tree = Tree::from([
        ("out/a".to_owned(), file(b"a")),
        ("out/deep/b".to_owned(), file(b"b")),
        ("out-2".to_owned(), file(b"c")),
        ("other".to_owned(), file(b"d")),
        ("up".to_owned(), Node::Link("..".to_owned())),
        ("out/etc".to_owned(), Node::Link("/etc".to_owned())),
    ]);
    write(&root, &tree);
    fs::write(dir.path().join("secret"), "secret").unwrap();
    let asked = [
        "./out/",
        "out/deep",
        "out-2",
        "up",
        "gone",
        "gone/too",
        "up/secret",
        "../secret",
        "/etc/passwd",
        "other/x",
        "",
    ];
    let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
    let store = ContentStore::in_memory();
    let options = PutOptions::default();
    let put = put_paths(&store, root.clone(), &asked, &options, &|_| {}).await;
    let put = put.unwrap();
    assert_eq!(put.missing, ["gone"]);
    let left: Vec<&str> = put.left_out.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(
        left,
        ["../secret", "/etc/passwd", "", "other/x", "up/secret"]
    );
    let into = dir.path().join("into");
    get_all(&store, put.id, &into).await.unwrap();
    let mut expected = tree;
    expected.remove("other");
    assert_eq!(read(&into), expected);

    // The folder itself must not be a link.
    symlink(&root, dir.path().join("link")).unwrap();
    let link = dir.path().join("link");
    let refused = put_paths(&store, link, &asked, &options, &|_| {}).await;
    assert!(
        matches!(refused, Err(TransferError::File { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn files_of_others_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "a").unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    let me = fs::metadata(dir.path()).unwrap().uid();
    let store = ContentStore::in_memory();
    for (owner, files) in [(me, 2), (me + 1, 1)] {
        let options = PutOptions {
            owner: Some(owner),
            ..PutOptions::default()
        };
        let paths = [".".to_owned()];
        let put = put_paths(&store, dir.path().to_owned(), &paths, &options, &|_| {}).await;
        let put = put.unwrap();
        assert_eq!(put.files, files);
        let is_told = put
            .left_out
            .iter()
            .any(|one| one.problem.contains("another user"));
        assert_eq!(is_told, owner != me);
    }
}

#[tokio::test]
async fn too_many_bytes_are_refused_before_anything_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "12345").unwrap();
    let store = ContentStore::in_memory();
    let options = PutOptions {
        bytes_max: 4,
        ..PutOptions::default()
    };
    let refused = put(&store, dir.path().to_owned(), &options, &|_| {}).await;
    assert!(
        matches!(refused, Err(TransferError::TooLarge { max: 4 })),
        "{refused:?}"
    );
    let chunk = Digest::of(b"12345");
    assert_eq!(store.missing(&[chunk]).await.unwrap(), [chunk]);
}

#[tokio::test]
async fn a_path_that_is_not_there_is_named() {
    let store = ContentStore::in_memory();
    let refused = put_all(&store, Path::new("/no/such/folder"))
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("/no/such/folder"), "{refused}");
}
