//! Tests of the one form of manifests, and of what they refuse.

use proptest::prelude::*;

use super::*;

fn file(path: &str, bytes: &[u8]) -> Entry {
    let chunks = if bytes.is_empty() {
        Vec::new()
    } else {
        vec![Chunk::of(bytes)]
    };
    Entry {
        path: path.to_owned(),
        kind: Kind::File {
            executable: bytes.len() % 2 == 1,
            size: u64::try_from(bytes.len()).unwrap(),
            digest: Digest::of(bytes),
            chunks,
        },
    }
}

fn link(path: &str, target: &str) -> Entry {
    Entry {
        path: path.to_owned(),
        kind: Kind::Link {
            target: target.to_owned(),
        },
    }
}

fn folder(path: &str) -> Entry {
    Entry {
        path: path.to_owned(),
        kind: Kind::EmptyFolder,
    }
}

/// The form of a known manifest. It must never change: its hash is the id of what is stored.
#[test]
fn the_form_stays_as_it_is() {
    let entries = vec![
        file("b/x", b"abc"),
        file("a", b""),
        link("b/l", "../a"),
        folder("c"),
    ];
    let manifest = Manifest::new(entries).unwrap();
    let bytes = manifest.encode().unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    let abc = Digest::of(b"abc");
    let none = Digest::of(b"");
    assert_eq!(
        text,
        format!(
            "{{\"format\":1,\"files\":[{{\"path\":\"a\",\"mode\":\"0644\",\"size\":0,\"digest\":\"{none}\",\"chunks\":[]}},\
         {{\"path\":\"b/l\",\"link\":\"../a\"}},\
         {{\"path\":\"b/x\",\"mode\":\"0755\",\"size\":3,\"digest\":\"{abc}\",\"chunks\":[[\"{abc}\",3]]}},{{\"path\":\"c\"}}]}}"
        )
    );
    assert_eq!(Manifest::decode(&bytes), Ok(manifest.clone()));
    assert_eq!((manifest.bytes(), manifest.chunks().count()), (3, 1));
}

#[test]
fn what_cannot_be_is_refused() {
    for path in [
        "",
        "/a",
        "a//b",
        "a/",
        ".",
        "a/../b",
        "./a",
        "a\0b",
        &"x".repeat(256),
        &"x/".repeat(3_000),
    ] {
        assert!(Manifest::new(vec![file(path, b"x")]).is_err(), "{path:?}");
    }
    for pair in [
        [file("a", b"x"), file("a", b"y")],
        [file("a", b"x"), file("a/b", b"y")],
        [link("a", "/etc"), file("a/passwd", b"y")],
        [folder("a"), file("a/b/c", b"y")],
    ] {
        assert!(Manifest::new(pair.to_vec()).is_err(), "{pair:?}");
    }
    // A name between them in the order of bytes does not hide it.
    let hidden = vec![link("a", "/etc"), file("a-b", b"x"), file("a/b", b"y")];
    assert!(Manifest::new(hidden).is_err());
    let mut wrong = file("a", b"abc");
    if let Kind::File { size, .. } = &mut wrong.kind {
        *size = 4;
    }
    assert!(matches!(
        Manifest::new(vec![wrong]),
        Err(ManifestError::Size(_))
    ));
}

#[test]
fn other_forms_are_refused() {
    let manifest = Manifest::new(vec![file("a", b"x"), file("b", b"")]).unwrap();
    let text = String::from_utf8(manifest.encode().unwrap()).unwrap();
    let blank = text.replace(":1,", ": 1,");
    assert_eq!(
        Manifest::decode(blank.as_bytes()),
        Err(ManifestError::NotCanonical)
    );
    let newer = text.replace("\"format\":1", "\"format\":2");
    assert_eq!(
        Manifest::decode(newer.as_bytes()),
        Err(ManifestError::Format(2))
    );
    for other in [
        "",
        "{}",
        "[]",
        &text.replace("\"mode\":\"0644\",", ""),
        &text.replace("0644", "0777"),
    ] {
        assert!(Manifest::decode(other.as_bytes()).is_err(), "{other}");
    }
}

proptest! {
    #[test]
    fn each_manifest_is_read_as_it_was_written(names in prop::collection::btree_set("[a-c]{1,2}(/[a-c]{1,2}){0,2}", 0..8), bytes in prop::collection::vec(any::<u8>(), 0..20)) {
        let entries = names.iter().map(|name| file(name, &bytes)).collect();
        if let Ok(manifest) = Manifest::new(entries) {
            let written = manifest.encode().unwrap();
            prop_assert_eq!(Manifest::decode(&written), Ok(manifest));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Manifest::decode(&bytes);
    }
}
