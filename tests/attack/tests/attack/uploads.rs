//! Uploads of a testbox: sealed results, complete files, and names that a disk accepts.

use std::{
    fs,
    path::{Path, PathBuf},
};

use fairlead_tests::{Http, Reply, Scheduler, Store, Testbox, eventually, jobs};
use reqwest::Method;
use tokio::{io::AsyncWriteExt, net::TcpStream};

/// One job that a testbox runs, and its scheduler.
struct Running {
    scheduler: Scheduler,
    http: Http,
    testbox: Testbox,
    grant: fairlead_api::Grant,
}

async fn running() -> Running {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let mut testbox = Testbox::dc(&http, "box", 4096);
    http.submit(&jobs::dc("alice")).await;
    let grant = testbox.take().await;
    let reply = testbox.report(&grant, "job_stage=running").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    Running {
        scheduler,
        http,
        testbox,
        grant,
    }
}

impl Running {
    fn path(&self, name: &str) -> String {
        let (id, token) = (&self.grant.job_id, &self.grant.job_token);
        let root = &self.grant.result_root;
        format!("{root}/{name}?job_id={id}&job_token={token}")
    }

    async fn upload(&self, name: &str) -> Reply {
        let path = self.path(name);
        self.http.send(Method::PUT, &path, "", b"x".to_vec()).await
    }

    async fn append(&self, offset: u64) -> Reply {
        let (id, token) = (&self.grant.job_id, &self.grant.job_token);
        let path =
            format!("/scheduler/v1/jobs/{id}/log?attempt=1&job_token={token}&offset={offset}");
        self.http.send(Method::POST, &path, "", b"x".to_vec()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_sealed_when_the_job_has_ended_and_they_are_in() {
    let lab = running().await;
    assert_eq!(lab.upload("early").await.status, 200);
    assert_eq!(lab.append(0).await.status, 200);
    let end = "job_stage=finish&job_health=success&job_data_readiness=uploaded";
    assert_eq!(lab.testbox.report(&lab.grant, end).await.status, 200);
    lab.upload("late").await.refused(423);
    lab.append(1).await.refused(423);
    let names = lab.http.get(&lab.grant.result_root).await.json();
    assert_eq!(names, serde_json::json!(["early"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_no_disk_takes_is_the_sender_s_mistake_and_a_part_is_a_name() {
    let lab = running().await;
    lab.upload(&"y".repeat(256)).await.refused(400);
    lab.upload(&format!("{}/a", "y".repeat(256)))
        .await
        .refused(400);
    for name in ["notes.part", &"y".repeat(255)] {
        assert_eq!(lab.upload(name).await.status, 200, "{name}");
    }
    let names = lab.http.get(&lab.grant.result_root).await.json();
    let names = names.as_array().expect("a listing");
    assert!(names.iter().any(|name| name == "notes.part"), "{names:?}");
    assert_eq!(names.len(), 2, "{names:?}");
}

/// Returns the partial files below a folder.
fn parts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "part")
            {
                found.push(path);
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_broken_off_leaves_nothing() {
    let mut lab = running().await;
    let data = lab.scheduler.store_arguments().remove(1);
    let data = PathBuf::from(data);
    let address = lab.http.base().trim_start_matches("http://").to_owned();
    let head = format!(
        "PUT {} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 1000\r\n\r\nhalf",
        lab.path("half")
    );
    for kill in [false, true] {
        let mut connection = TcpStream::connect(&address).await.expect("a connection");
        connection
            .write_all(head.as_bytes())
            .await
            .expect("half a body");
        eventually("the upload has begun", async || {
            (!parts(&data).is_empty()).then_some(())
        })
        .await;
        if kill {
            lab.scheduler.kill();
            lab.scheduler.restart().await;
        } else {
            drop(connection);
        }
        eventually("nothing is left of it", async || {
            parts(&data).is_empty().then_some(())
        })
        .await;
    }
}
