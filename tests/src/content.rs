//! Inputs put by hand over plain HTTP: one file of one chunk each.

use reqwest::Method;
use serde_json::json;

use crate::Http;

/// An input of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Id of the input.
    pub id: String,
    /// Digest of its only chunk.
    pub chunk: String,
    /// Bytes of the chunk.
    pub bytes: Vec<u8>,
    /// Manifest of the input.
    pub manifest: Vec<u8>,
}

impl Input {
    /// Returns an input of one file with this text.
    pub fn of(text: &str) -> Self {
        let bytes = text.as_bytes().to_vec();
        let chunk = digest(&bytes);
        // A manifest has one valid form: its keys have a fixed order.
        let file = format!(
            r#"{{"path":"a","mode":"0644","size":{0},"digest":"{chunk}","chunks":[["{chunk}",{0}]]}}"#,
            bytes.len()
        );
        let manifest = format!(r#"{{"format":1,"files":[{file}]}}"#).into_bytes();
        Self {
            id: digest(&manifest),
            chunk,
            bytes,
            manifest,
        }
    }

    /// Puts the input. `of` names the job that asks, as `&job_id=7&job_token=…`. Empty: the account asks.
    ///
    /// # Panics
    /// Panics if any part of it is refused.
    pub async fn put(&self, http: &Http, of: &str) {
        self.send_chunk(http, of).await;
        let put = self.end(http, of).await;
        assert_eq!(put.json()["id"], json!(self.id), "{}", put.text);
    }

    /// Pins and sends its chunk.
    ///
    /// # Panics
    /// Panics if it is refused.
    pub async fn send_chunk(&self, http: &Http, of: &str) {
        let pin = json!({"put": "by-hand", "chunks": [self.chunk]});
        let pinned = http
            .post(&format!("/scheduler/v1/content/pin?{}", said(of)), &pin)
            .await;
        assert_eq!(pinned.status, 200, "{}", pinned.text);
        let path = format!(
            "/scheduler/v1/content/chunks/{}?put=by-hand{of}",
            self.chunk
        );
        let sent = http
            .send(
                Method::PUT,
                &path,
                "application/octet-stream",
                self.bytes.clone(),
            )
            .await;
        assert_eq!(sent.status, 200, "{}", sent.text);
    }

    /// Sends its manifest, which ends the put.
    pub async fn end(&self, http: &Http, of: &str) -> crate::Reply {
        let path = format!("/scheduler/v1/content/manifests?put=by-hand{of}");
        let kind = "application/octet-stream";
        http.send(Method::POST, &path, kind, self.manifest.clone())
            .await
    }
}

fn said(of: &str) -> &str {
    of.trim_start_matches('&')
}

/// Returns the hash that names these bytes.
pub fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
