//! Dashboards that are open while work is measured: each is a client of the live stream, as a browser has one.

use std::time::Duration;

use anyhow::{Context, ensure};
use fairlead_cluster::http;
use tokio::task::JoinSet;

/// Timeout of the first answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Duration longer than any measurement.
const OPEN_FOR: Duration = Duration::from_hours(1);
/// Encodings that a browser accepts.
const ENCODINGS: &str = "gzip, deflate, br, zstd";

/// Streams that are read until this is dropped.
pub(super) struct Dashboards(JoinSet<()>);

impl Dashboards {
    /// Opens `each` streams at each replica, and waits for the first event of each.
    pub(super) async fn open(urls: &[String], each: usize) -> anyhow::Result<Self> {
        let client = http::client(ANSWER_TIME)?;
        let mut streams = JoinSet::new();
        for url in urls {
            for _ in 0..each {
                let asked = client
                    .get(format!("{url}/scheduler/v1/live"))
                    .header("accept", "text/event-stream")
                    .header("accept-encoding", ENCODINGS)
                    .timeout(OPEN_FOR);
                let mut answer = asked.send().await?.error_for_status()?;
                let first = answer.chunk().await?.context("the stream ended")?;
                ensure!(!first.is_empty(), "the stream is empty");
                streams.spawn(async move { while let Ok(Some(_)) = answer.chunk().await {} });
            }
        }
        Ok(Self(streams))
    }

    /// Ends the streams. Fails if one ended before.
    pub(super) fn close(mut self) -> anyhow::Result<()> {
        ensure!(
            self.0.try_join_next().is_none(),
            "a stream ended during the measurement"
        );
        Ok(())
    }
}
