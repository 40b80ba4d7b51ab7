//! Tests of content with tokens: who may read, keep and list what.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use fairlead_api::{ContentKeep, ContentPin, ContentUrlsRequest, ErrorCode};
use fairlead_content::{Chunk, ContentStore, Digest, Entry, Kind, Location, Manifest, Marks};
use fairlead_store::{DocKind, DocWrite, Expect, JobState};
use serde_json::json;

use crate::{
    Access, Clock, Config,
    content::{care::JobMarks, holder::Holder},
    flows::Flows,
    testing::{embedded, flows_over, flows_with, state, store_job},
};
use fairlead_base::errors::{ContentFault, PeopleError, Refusal};
use fairlead_known::{account_doc::AccountDoc, accounts::Who};

fn flows_in(data: &tempfile::TempDir, content: ContentStore) -> Arc<Flows> {
    let config = Config {
        access: Access::Tokens,
        ..Config::embedded(data.path().to_owned())
    };
    flows_with(embedded(data), config, Clock::system(), content)
}

fn with_memory(data: &tempfile::TempDir) -> Arc<Flows> {
    flows_in(data, ContentStore::in_memory())
}

/// The same, with inputs and outputs in a folder of their own.
fn flows_with_objects(data: &tempfile::TempDir) -> (Arc<Flows>, PathBuf) {
    let folder = data.path().join("objects");
    let content = Location::Folder(folder.clone()).open().unwrap();
    (flows_in(data, content), folder)
}

fn user(name: &str) -> Holder {
    Holder::of_account(Who::of(name, &AccountDoc::default()))
}

fn admin() -> Holder {
    let doc = AccountDoc {
        role: "admin".to_owned(),
        ..AccountDoc::default()
    };
    Holder::of_account(Who::of("root", &doc))
}

/// Puts a file of these bytes; answers its id and its chunk.
async fn put(flows: &Flows, holder: &Holder, bytes: &[u8]) -> (String, String) {
    try_put(flows, holder, bytes).await.unwrap()
}

async fn try_put(
    flows: &Flows,
    holder: &Holder,
    bytes: &[u8],
) -> Result<(String, String), Refusal> {
    let digest = Digest::of(bytes);
    let pin = ContentPin {
        put: "p".to_owned(),
        chunks: vec![digest.to_string()],
    };
    flows.content.pin_chunks(holder, &pin).await?;
    let text = digest.to_string();
    flows
        .content
        .put_chunk(holder, "p", &text, Bytes::copy_from_slice(bytes))
        .await?;
    let kind = Kind::File {
        executable: false,
        size: u64::try_from(bytes.len()).unwrap(),
        digest,
        chunks: vec![Chunk::of(bytes)],
    };
    let path = "a".to_owned();
    let manifest = Manifest::new(vec![Entry { path, kind }]).unwrap();
    let manifest = manifest.encode().unwrap().into();
    let view = flows
        .content
        .put_manifest(holder, ("p", ""), manifest)
        .await?;
    Ok((view.id, text))
}

#[tokio::test]
async fn a_chunk_is_read_as_one_of_its_manifest_by_who_has_that() {
    let data = tempfile::tempdir().unwrap();
    let flows = with_memory(&data);
    let (ann, bob) = (user("ann"), user("bob"));
    let (id, chunk) = put(&flows, &ann, b"abc").await;
    let (others, _) = put(&flows, &bob, b"def").await;
    let read = flows.content.chunk_of(&ann, &id, &chunk).await.unwrap();
    assert_eq!(read, Bytes::from_static(b"abc"));
    assert!(flows.content.chunk_of(&admin(), &id, &chunk).await.is_ok());
    let unknown = Refusal::Content(ContentFault::Unknown(id.parse().unwrap()));
    assert_eq!(
        flows.content.chunk_of(&bob, &id, &chunk).await,
        Err(unknown.clone())
    );
    assert_eq!(flows.content.manifest_of(&bob, &id).await, Err(unknown));
    let not_of_it = Refusal::Content(ContentFault::NotOfIt {
        chunk: chunk.parse().unwrap(),
        id: others.parse().unwrap(),
    });
    let refused = flows.content.chunk_of(&bob, &others, &chunk).await;
    assert_eq!(refused, Err(not_of_it.clone()));
    let asked = ContentUrlsRequest {
        id: others,
        chunks: vec![chunk],
    };
    assert_eq!(flows.content.chunk_urls(&bob, &asked).await, Err(not_of_it));
}

#[tokio::test]
async fn a_chunk_with_wrong_bytes_is_moved_aside_by_its_reader_and_sent_again() {
    let data = tempfile::tempdir().unwrap();
    let (flows, folder) = flows_with_objects(&data);
    let (ann, bob) = (user("ann"), user("bob"));
    let (id, chunk) = put(&flows, &ann, b"abc").await;
    let stored = folder.join("chunks").join(&chunk[..2]).join(&chunk);
    std::fs::write(&stored, "poison").unwrap();
    let pin = ContentPin {
        put: "q".to_owned(),
        chunks: vec![chunk.clone()],
    };
    // Bob's put believes that the chunk is there, and his job finds that it is not.
    assert_eq!(
        flows
            .content
            .pin_chunks(&bob, &pin)
            .await
            .unwrap()
            .missing
            .len(),
        0
    );
    let refused = flows.content.chunk_of(&ann, &id, &chunk).await.unwrap_err();
    assert_eq!(refused.body().code, ErrorCode::NotFound);
    assert!(!refused.to_string().contains(&chunk), "{refused}");
    assert_eq!(
        flows
            .content
            .pin_chunks(&bob, &pin)
            .await
            .unwrap()
            .missing
            .len(),
        1
    );
    put(&flows, &bob, b"abc").await;
    let read = flows.content.chunk_of(&ann, &id, &chunk).await.unwrap();
    assert_eq!(read, Bytes::from_static(b"abc"));
}

#[tokio::test]
async fn only_a_manifest_tells_the_digests_of_chunks() {
    let data = tempfile::tempdir().unwrap();
    let flows = with_memory(&data);
    let ann = user("ann");
    let (id, chunk) = put(&flows, &ann, b"abc").await;
    let shown = json!([
        flows.content.content_view("ann", &id).await.unwrap(),
        flows.content.contents_of("ann", None, 10).await.unwrap(),
        flows.content.contents_of_all(None, 10).await.unwrap(),
        flows.ctx.content.about(id.parse().unwrap()).await.unwrap(),
    ]);
    assert!(shown.to_string().contains(&id), "{shown}");
    assert!(!shown.to_string().contains(&chunk), "{shown}");
    let manifest = flows.content.manifest_of(&ann, &id).await.unwrap();
    let manifest = String::from_utf8(manifest.to_vec()).unwrap();
    assert!(manifest.contains(&chunk), "{manifest}");
}

#[tokio::test]
async fn a_job_reads_what_its_account_has() {
    let data = tempfile::tempdir().unwrap();
    let flows = with_memory(&data);
    let (id, _) = put(&flows, &user("user1"), b"abc").await;
    let job = Holder::of_job(&state(7));
    assert!(flows.content.manifest_of(&job, &id).await.is_ok());
    let (output, _) = put(&flows, &job, b"def").await;
    let view = flows.content.content_view("user1", &output).await.unwrap();
    assert_eq!(view.job_id, state(7).job_id.to_string());
}

#[tokio::test]
async fn what_is_put_again_keeps_its_name_and_its_time() {
    let data = tempfile::tempdir().unwrap();
    let flows = with_memory(&data);
    let ann = user("ann");
    let (id, _) = put(&flows, &ann, b"abc").await;
    let manifest = flows.content.manifest_of(&ann, &id).await.unwrap();
    flows
        .content
        .put_manifest(&ann, ("", "kernel"), manifest)
        .await
        .unwrap();
    let keep = ContentKeep {
        until: "+14d".to_owned(),
    };
    let kept = flows.content.keep_content("ann", &id, &keep).await.unwrap();
    assert!(kept.keep_until_ms > Some(flows.ctx.clock.wall_ms()));
    put(&flows, &ann, b"abc").await;
    let view = flows.content.content_view("ann", &id).await.unwrap();
    assert_eq!(
        (view.name.as_str(), view.keep_until_ms),
        ("kernel", kept.keep_until_ms)
    );
    let no_longer = ContentKeep::default();
    let kept = flows
        .content
        .keep_content("ann", &id, &no_longer)
        .await
        .unwrap();
    assert_eq!(kept.keep_until_ms, None);
    flows.content.forget_content("ann", &id).await.unwrap();
    assert!(flows.content.content_view("ann", &id).await.is_err());
    assert!(flows.content.forget_content("ann", &id).await.is_err());
}

#[tokio::test]
async fn an_account_keeps_and_puts_no_more_than_its_limits() {
    let data = tempfile::tempdir().unwrap();
    let flows = with_memory(&data);
    let limited = |kept, day| {
        let bounds = |hard| fairlead_api::Bounds { hard, soft: None };
        AccountDoc {
            limits: fairlead_api::Limits {
                content_mb: bounds(kept),
                content_day_mb: bounds(day),
                ..fairlead_api::Limits::default()
            },
            ..AccountDoc::default()
        }
    };
    let version = |seq_no| fairlead_store::Version {
        primary_term: 1,
        seq_no,
    };
    let ann = user("ann");
    flows
        .people
        .accounts
        .wrote("ann", version(1), limited(Some(1), None));
    let large = |byte: u8| vec![byte; 700 << 10];
    let (first, _) = try_put(&flows, &ann, &large(1)).await.unwrap();
    // The same once more is nothing more.
    try_put(&flows, &ann, &large(1)).await.unwrap();
    let over = try_put(&flows, &ann, &large(2)).await.unwrap_err();
    let ErrorCode::Quota = over.body().code else {
        panic!("{over:?}");
    };
    assert!(flows.content.content_view("bob", &first).await.is_err());
    flows.content.forget_content("ann", &first).await.unwrap();
    let (second, _) = try_put(&flows, &ann, &large(2)).await.unwrap();
    flows
        .people
        .accounts
        .wrote("ann", version(2), limited(None, Some(0)));
    let over = try_put(&flows, &ann, b"x").await.unwrap_err();
    assert!(over.to_string().contains("within 24 hours"), "{over}");
    // What was put before is there.
    assert!(flows.content.manifest_of(&ann, &second).await.is_ok());
}

/// How many pins there are.
fn pins(folder: &std::path::Path) -> usize {
    let mut many = 0;
    for put in std::fs::read_dir(folder.join("pins")).into_iter().flatten() {
        let pins = std::fs::read_dir(put.unwrap().path()).unwrap();
        many += pins.count();
    }
    many
}

#[tokio::test]
async fn chunks_that_no_manifest_names_count_and_words_of_puts_are_the_account_s_own() {
    let data = tempfile::tempdir().unwrap();
    let (flows, folder) = flows_with_objects(&data);
    let (ann, bob) = (user("ann"), user("bob"));
    let hard = |hard| fairlead_api::Bounds {
        hard: Some(hard),
        soft: None,
    };
    let limits = fairlead_api::Limits {
        content_mb: hard(1),
        ..fairlead_api::Limits::default()
    };
    let doc = AccountDoc {
        limits,
        ..AccountDoc::default()
    };
    let version = fairlead_store::Version {
        primary_term: 1,
        seq_no: 1,
    };
    flows.people.accounts.wrote("ann", version, doc);
    let send = async |put: &str, byte: u8| {
        let bytes = Bytes::from(vec![byte; 400 << 10]);
        let digest = Digest::of(&bytes).to_string();
        flows.content.put_chunk(&ann, put, &digest, bytes).await
    };
    send("one", 1).await.unwrap();
    send("two", 2).await.unwrap();
    // It is there, and costs nothing more.
    send("two", 1).await.unwrap();
    let over = send("three", 3).await.unwrap_err();
    assert_eq!(over.body().code, ErrorCode::Quota, "{over}");

    let chunks = vec![Digest::of(b"x").to_string()];
    let put = "p".to_owned();
    flows
        .content
        .pin_chunks(&bob, &ContentPin { put, chunks })
        .await
        .unwrap();
    let before = pins(&folder);
    let manifest = format!(
        r#"{{"format":1,"files":[{{"path":"a","mode":"0644","size":1,"digest":"{0}","chunks":[["{0}",1]]}}]}}"#,
        Digest::of(b"y"),
    );
    for _ in 0..3 {
        let refused = flows
            .content
            .put_manifest(&ann, ("p", ""), manifest.clone().into())
            .await;
        assert!(refused.is_err(), "its chunk is missing");
    }
    assert_eq!(pins(&folder), before, "a refused manifest leaves pins");
    let link = r#"{"format":1,"files":[{"path":"a","link":"b"}]}"#;
    flows
        .content
        .put_manifest(&ann, ("p", ""), link.into())
        .await
        .unwrap();
    assert!(pins(&folder) >= before, "another's put ended a pin");
}

#[tokio::test]
async fn what_jobs_and_timers_name_and_accounts_keep_is_not_collected() {
    let data = tempfile::tempdir().unwrap();
    let config = Config {
        content_grace_ms: 0,
        ..Config::embedded(data.path().to_owned())
    };
    let flows = flows_over(embedded(&data), config, Clock::system());
    let ann = user("ann");
    let mut ids = Vec::new();
    for bytes in [b"1", b"2", b"3", b"4", b"5"] {
        ids.push(put(&flows, &ann, bytes).await.0);
    }
    let input = JobState {
        inputs: vec![ids[0].clone()],
        ..state(1)
    };
    let output = JobState {
        outputs: ids[1].clone(),
        ..state(2)
    };
    store_job(&flows, input).await;
    store_job(&flows, output).await;
    let keep = ContentKeep {
        until: "+1d".to_owned(),
    };
    flows
        .content
        .keep_content("ann", &ids[2], &keep)
        .await
        .unwrap();
    let timer = DocWrite {
        id: "ann/nightly".to_owned(),
        expect: Expect::Any,
        body: Some(json!({"job": {"inputs": [{"id": ids[3], "folder": "a"}]}})),
    };
    flows
        .ctx
        .store
        .put_docs(DocKind::Timer, vec![timer])
        .await
        .remove(0)
        .unwrap();
    let marks = JobMarks(&flows.content);
    let digests: Vec<Digest> = ids.iter().map(|id| id.parse().unwrap()).collect();
    let named = marks.named(&digests).await.unwrap();
    assert_eq!(named, [true, true, false, true, false]);
    let told = flows.content.collect_content(true).await.unwrap();
    assert_eq!((told.manifests, told.chunks), (5, 5));
    let checked = flows.content.check_content().await.unwrap();
    assert_eq!((checked.manifests, checked.problems_total), (5, 0));
    assert_eq!(flows.content.content_problem(), None);
}

#[tokio::test]
async fn an_admin_sees_the_content_of_all_accounts_page_by_page() {
    let data = tempfile::tempdir().unwrap();
    let flows = with_memory(&data);
    let (ann, bob) = (user("ann"), user("bob"));
    for bytes in [b"1", b"2", b"3"] {
        put(&flows, &ann, bytes).await;
        put(&flows, &bob, bytes).await;
    }
    assert_eq!(admin().acts_for(Some("bob")), Ok("bob".to_owned()));
    assert_eq!(ann.acts_for(None), Ok("ann".to_owned()));
    let refused = PeopleError::NotAdmin("ann".to_owned());
    assert_eq!(flows.content.looks_at(&ann, Some("bob")), Err(refused));
    for limit in [1, 2, 3, 5, 6, 7] {
        let (mut seen, mut after) = (Vec::new(), None::<String>);
        loop {
            let page = flows
                .content
                .contents_of_all(after.as_deref(), limit)
                .await
                .unwrap();
            assert!(page.content.len() <= limit);
            seen.extend(page.content.into_iter().map(|one| (one.my_account, one.id)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert!(seen.is_sorted(), "{limit}: {seen:?}");
        assert_eq!(seen.len(), 6, "{limit}: {seen:?}");
    }
}
