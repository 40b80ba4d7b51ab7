//! Testboxes that say far more of themselves than a machine is: they are refused, and lists of hosts come in pages.

use std::collections::BTreeSet;

use fairlead_attack::memory::now_bytes;
use fairlead_tests::{Guarded, Http, Store, Testbox, header, jobs};
use serde_json::Value;

const HOSTS: usize = 180;
/// Memory limit of the hosts, bytes.
const HOSTS_BYTES: u64 = 120 << 20;
/// Maximum size of one page, bytes: 8 MiB, and one host.
const PAGE_BYTES: usize = (8 << 20) + (80 << 10);

/// Returns `many` different texts of this length, bytes.
fn texts(many: usize, bytes: usize) -> Vec<String> {
    (0..many).map(|n| format!("{n:0bytes$}")).collect()
}

async fn ask(http: &Http, host: &str, lists: [Vec<String>; 3]) -> (u16, Testbox) {
    let mut testbox = Testbox::dc(http, host, 8 << 10);
    [
        testbox.offer.tags,
        testbox.offer.devices,
        testbox.offer.cache_dirs,
    ] = lists;
    testbox.next_request(0);
    (testbox.send().await.status, testbox)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_hosts_say_costs_little_and_is_read_in_pages() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let boxes = lab.testbox("boxes", &["host-*"]).await;
    let long = || texts(1_000, 250);
    let (status, _) = ask(&boxes, "host-huge", [long(), long(), long()]).await;
    assert_eq!(status, 413);
    // Cache folders only show where jobs run faster, so no host is refused because of them.
    let (status, mut cached) = ask(&boxes, "host-cached", [vec![], vec![], long()]).await;
    assert_eq!(status, 200);
    let alice = lab.user("alice").await;
    alice.submit(&jobs::dc("alice")).await;
    let grant = cached.take().await;
    cached.finish(&grant).await;

    let before = now_bytes(lab.scheduler.id());
    for n in 0..HOSTS {
        let lists = [texts(200, 250), vec![], vec![]];
        let (status, _) = ask(&boxes, &format!("host-{n}"), lists).await;
        assert_eq!(status, 200);
    }
    let grew = now_bytes(lab.scheduler.id()).saturating_sub(before);
    assert!(grew < HOSTS_BYTES, "{HOSTS} hosts cost {} MiB", grew >> 20);

    let bearer = format!("Bearer {}", lab.admin.token().unwrap_or_default());
    let (mut seen, mut pages) = (BTreeSet::new(), 0);
    let mut path = "/scheduler/v1/hosts".to_owned();
    while !path.is_empty() {
        let answer = lab
            .admin
            .get_with(&path, &[("authorization", &bearer)])
            .await;
        path = header(&answer, "link")
            .split_once(">; rel=\"next\"")
            .map(|(link, _)| link.trim_start_matches('<').to_owned())
            .unwrap_or_default();
        let bytes = answer.bytes().await.unwrap();
        assert!(bytes.len() < PAGE_BYTES, "{} bytes", bytes.len());
        let page: Vec<Value> = serde_json::from_slice(&bytes).unwrap();
        for host in &page {
            let name = host["hostname"].as_str().unwrap_or_default();
            assert!(seen.insert(name.to_owned()), "{name} is there twice");
        }
        pages += 1;
    }
    assert_eq!((seen.len(), pages), (HOSTS + 1, 2), "{seen:?}");
}
