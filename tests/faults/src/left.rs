//! Evidence that a run leaves behind: jobs in the store, files, and the replicas' logs.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use anyhow::Context;
use fairlead_api::{Client, ClientError, JobQuery};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::{
    check::Final,
    grants::{self, GrantLine},
    history::{History, Upload},
};

/// Number of jobs or files read at one time.
const READERS: usize = 8;
/// Number of jobs on a page of the list.
const PAGE: u32 = 1_000;

/// Data left after a run.
#[derive(Debug)]
pub(super) struct Left {
    /// Grants of the run's jobs, in order of time.
    pub(super) grants: Vec<GrantLine>,
    /// Final states by job, each read in real time.
    pub(super) finals: BTreeMap<String, Final>,
    /// Confirmed files that exist, by path, with true if the file is whole.
    pub(super) files: BTreeMap<String, bool>,
}

impl Left {
    /// Reads the data when nothing changes any more.
    ///
    /// # Errors
    /// Fails if the replicas do not answer, or if a log cannot be read.
    pub(super) async fn read(
        client: &Client,
        logs: &[(u16, PathBuf)],
        history: &History,
    ) -> anyhow::Result<Self> {
        let finals = finals(client, history).await?;
        let files = files(client, history).await?;
        let mut grants = grants::read(logs, history).context("the replicas' logs")?;
        grants.retain(|grant| finals.contains_key(&grant.job));
        Ok(Self {
            grants,
            finals,
            files,
        })
    }
}

async fn finals(
    client: &Client,
    history: &History,
) -> Result<BTreeMap<String, Final>, ClientError> {
    let mut ids: BTreeSet<String> = history
        .facts()
        .acked
        .iter()
        .map(|one| one.job.clone())
        .collect();
    let mut query = JobQuery {
        limit: Some(PAGE),
        ..JobQuery::default()
    };
    loop {
        let page = client.jobs(&query).await?;
        ids.extend(page.jobs.into_iter().map(|job| job.job_id));
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    let reading = ids.into_iter().map(async |id| {
        let job = there(client.job(&id).await)?;
        Ok(job.map(|job| (id, final_of(&Value::Object(job)))))
    });
    all(reading).await
}

async fn files(client: &Client, history: &History) -> Result<BTreeMap<String, bool>, ClientError> {
    let uploads = history.facts().uploads.clone();
    let acked = uploads.into_iter().filter(|file| file.acked);
    let reading = acked.map(async |file| {
        let is_whole = there(is_whole(client, &file).await)?;
        Ok(is_whole.map(|is_whole| (file.path, is_whole)))
    });
    all(reading).await
}

async fn is_whole(client: &Client, file: &Upload) -> Result<bool, ClientError> {
    let mut body = client.download(&file.path).await?;
    let mut content = Vec::new();
    while let Some(piece) = body.chunk().await? {
        content.extend_from_slice(&piece);
    }
    Ok(content == file.content())
}

/// Returns the value. `None`: it does not exist.
fn there<T>(read: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match read {
        Err(error) if error.status() == Some(404) => Ok(None),
        read => read.map(Some),
    }
}

/// Reads some items at a time.
async fn all<T, R>(reading: impl Iterator<Item = R>) -> Result<BTreeMap<String, T>, ClientError>
where
    R: Future<Output = Result<Option<(String, T)>, ClientError>>,
{
    let read = stream::iter(reading).buffer_unordered(READERS);
    let found = read.try_filter_map(async |one| Ok(one));
    found.try_collect().await
}

fn final_of(job: &Value) -> Final {
    let text = |name: &str| job[name].as_str().unwrap_or_default().to_owned();
    Final {
        number: job["load_number"].as_u64().unwrap_or(0),
        stage: text("job_stage"),
        health: text("job_health"),
        readiness: text("job_data_readiness"),
        attempt: job["attempt"]
            .as_u64()
            .and_then(|n| n.try_into().ok())
            .unwrap_or(0),
    }
}
