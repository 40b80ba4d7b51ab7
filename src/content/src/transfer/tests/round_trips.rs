//! A folder that was put and got is the same folder.

use std::sync::Mutex;

use proptest::prelude::*;

use super::*;

/// Puts a tree and gets it. Returns the resulting tree.
async fn there_and_back(tree: &Tree) -> (Tree, Put, Got) {
    let dir = tempfile::tempdir().unwrap();
    let (from, into) = (dir.path().join("from"), dir.path().join("a/into"));
    write(&from, tree);
    let store = ContentStore::in_memory();
    let put = put_all(&store, &from).await.unwrap();
    let got = get_all(&store, put.id, &into).await.unwrap();
    (read(&into), put, got)
}

fn node() -> impl Strategy<Value = Node> {
    let file = (any::<bool>(), prop::collection::vec(any::<u8>(), 0..300));
    prop_oneof![
        5 => file.prop_map(|(executable, bytes)| Node::File { executable, bytes }),
        1 => "[a-z./]{1,9}".prop_map(Node::Link),
        1 => Just(Node::EmptyFolder),
    ]
}

/// Trees without a file where another entry needs a folder.
fn tree() -> impl Strategy<Value = Tree> {
    let entries = prop::collection::btree_map("[ab .é-]{1,2}(/[ab é-]{1,2}){0,3}", node(), 0..12);
    entries.prop_map(|entries| {
        let mut tree = Tree::new();
        for (path, node) in entries {
            let below = |other: &String| path.starts_with(&format!("{other}/"));
            let dots = |name: &str| matches!(name, "." | "..");
            if !path.split('/').any(dots) && !tree.keys().any(below) {
                let inside = format!("{path}/");
                if !tree.keys().any(|other| other.starts_with(&inside)) {
                    tree.insert(path, node);
                }
            }
        }
        tree
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn small_trees_come_back_as_they_were(tree in tree()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (back, put, got) = runtime.block_on(there_and_back(&tree));
        prop_assert_eq!(&back, &tree);
        let many = u64::try_from(tree.len()).unwrap();
        prop_assert_eq!((put.files, got.files), (many, many));
        prop_assert_eq!(put.bytes, got.bytes);
    }
}

#[tokio::test]
async fn large_files_come_back_as_they_were() {
    let large = noise("large", 9_000_000);
    let mut twin = large.clone();
    twin[4_500_000] ^= 1;
    let mut tree = Tree::new();
    for n in 0..300 {
        let name = format!("small/{}/{n}", n % 7);
        tree.insert(name.clone(), file(&noise(&name, n)));
    }
    tree.insert("large".to_owned(), file(&large));
    tree.insert("same".to_owned(), file(&large));
    tree.insert("twin".to_owned(), file(&twin));
    tree.insert("zeros".to_owned(), file(&vec![0; 10_000_000]));
    let (back, put, got) = there_and_back(&tree).await;
    assert!(back == tree);
    assert_eq!(put.bytes, got.bytes);
    // The changed chunks of the large files, and a chunk or two of zeros.
    assert!(
        put.sent_bytes < 9_000_000 + 3 * 2_100_000 + 50_000,
        "{put:?}"
    );
    // The same file comes once, and zeros come once.
    assert!(got.fetched_bytes < 18_000_000 + 4_200_000, "{got:?}");
}

#[tokio::test]
async fn progress_grows_to_all_that_was_sent() {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::from([("a".to_owned(), file(&noise("a", 5_000_000)))]);
    write(dir.path(), &tree);
    let store = ContentStore::in_memory();
    let seen = Mutex::new(Vec::new());
    let told = |now| seen.lock().unwrap().push(now);
    let options = PutOptions::default();
    let put = put(&store, dir.path().to_owned(), &options, &told).await;
    let put = put.unwrap();
    let seen = seen.into_inner().unwrap();
    let sent: Vec<u64> = seen
        .iter()
        .map(|now: &PutProgress| now.sent_bytes)
        .collect();
    assert!(sent.is_sorted(), "{sent:?}");
    let last = seen.last().unwrap();
    assert_eq!((last.bytes, last.read_bytes), (5_000_000, 5_000_000));
    assert_eq!(
        (last.missing_bytes, last.sent_bytes),
        (5_000_000, 5_000_000)
    );
    assert_eq!(
        (last.sent_chunks, put.sent_chunks),
        (put.chunks, put.chunks)
    );

    let shown = Mutex::new(Vec::new());
    let told = |now: GetProgress| shown.lock().unwrap().push(now.fetched_bytes);
    let into = dir.path().join("into");
    let got = get(&store, put.id, into, &GetOptions::default(), &told).await;
    let shown = shown.into_inner().unwrap();
    assert!(shown.is_sorted(), "{shown:?}");
    assert_eq!(shown.last(), Some(&got.unwrap().fetched_bytes));
}

#[tokio::test]
async fn one_file_is_put_under_its_name_and_a_link_to_it_under_its_own() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("image-7"), "abc").unwrap();
    std::os::unix::fs::symlink("image-7", dir.path().join("latest")).unwrap();
    let store = ContentStore::in_memory();
    for name in ["image-7", "latest"] {
        let put = put_all(&store, &dir.path().join(name)).await.unwrap();
        let into = dir.path().join(format!("{name}-back"));
        get_all(&store, put.id, &into).await.unwrap();
        assert_eq!(read(&into), Tree::from([(name.to_owned(), file(b"abc"))]));
    }
}

#[tokio::test]
async fn one_file_of_many_is_fetched_alone() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = noise("b", 3_000_000);
    let tree = Tree::from([
        ("a".to_owned(), file(b"a")),
        ("b".to_owned(), file(&bytes)),
        ("zeros".to_owned(), file(&vec![0; 20_000_000])),
    ]);
    write(&dir.path().join("from"), &tree);
    let store = ContentStore::in_memory();
    let id = put_all(&store, &dir.path().join("from")).await.unwrap().id;
    let manifest = Remote::manifest(&store, id).await.unwrap();
    let manifest = crate::Manifest::decode(&manifest).unwrap();
    for (entry, most) in manifest.entries().iter().zip([1, 3_000_000, 5_000_000]) {
        let path = dir.path().join("out");
        let mut out = fs::File::create(&path).unwrap();
        let options = GetOptions::default();
        let fetched = fetch_file(&store, id, entry, &mut out, &options).await;
        assert!(fetched.unwrap() <= most, "{}", entry.path);
        assert!(file(&fs::read(&path).unwrap()) == tree[&entry.path]);
    }
}
