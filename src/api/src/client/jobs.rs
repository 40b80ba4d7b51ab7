//! Requests about jobs.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::{
    call::Call,
    config::{JobQuery, JobUpdate, push},
    error::ClientError,
    reply::{ByteStream, Reply},
    transport::Client,
};
use crate::{
    CancelItem, CancelRequest, ChangeRequest, Explanation, JobAnswer, JobList, RerunRequest,
    ReuseExplanation, ReuseForgotten, Route, SubmitItem, TestHistory, UsageReport,
};

/// Longest time that the server holds `jobs/wait`.
const JOBS_WAIT: Duration = Duration::from_mins(1);

/// The items of an answer to a submit.
fn items_of(reply: Reply) -> Result<Vec<SubmitItem>, ClientError> {
    if let Some(items @ Value::Array(_)) = reply.value() {
        return serde_json::from_value(items).map_err(|error| reply.bad(&error.to_string()));
    }
    let reply = reply.checked()?;
    Err(reply.bad("expected an array, an item a job"))
}

impl Client {
    /// Submits one job (an object) or several (an array). The items come in the order of the jobs,
    /// refused ones with `job_id` `"0"`: look at each.
    ///
    /// Never sent again once it may have been done: [`ClientError::OutcomeUnknown`].
    pub async fn submit(&self, jobs: &Value) -> Result<Vec<SubmitItem>, ClientError> {
        let call = Call::to(Route::Submit)?.json(jobs)?;
        self.submit_call(call).await
    }

    /// Submits once, whatever is lost on the way: the key names this very submit, so it is sent again, to another
    /// replica too, until there is an answer. `strict`: jobs are refused that no known host could ever run.
    pub async fn submit_once(
        &self,
        jobs: &Value,
        key: &str,
        strict: bool,
    ) -> Result<Vec<SubmitItem>, ClientError> {
        let query = vec![
            ("idempotency_key", key.to_owned()),
            ("strict", strict.to_string()),
        ];
        let call = Call::to(Route::Submit)?.query(query).json(jobs)?;
        items_of(self.run(&call).await?)
    }

    /// What a submit of these jobs would answer: they are checked, meet the submit rules, and are not stored.
    pub async fn try_submit(
        &self,
        jobs: &Value,
        strict: bool,
    ) -> Result<Vec<SubmitItem>, ClientError> {
        let query = vec![
            ("dry_run", true.to_string()),
            ("strict", strict.to_string()),
        ];
        let call = Call::to(Route::Submit)?.query(query).json(jobs)?;
        items_of(self.run(&call).await?)
    }

    /// Submits a job file in YAML, which the server expands. Otherwise as [`Client::submit`].
    pub async fn submit_yaml(
        &self,
        yaml: impl Into<Bytes>,
    ) -> Result<Vec<SubmitItem>, ClientError> {
        let call = Call::to(Route::Submit)?.bytes("application/yaml", yaml.into());
        self.submit_call(call).await
    }

    async fn submit_call(&self, call: Call) -> Result<Vec<SubmitItem>, ClientError> {
        items_of(self.run(&call.once()).await?)
    }

    /// A page of jobs.
    pub async fn jobs(&self, query: &JobQuery) -> Result<JobList, ClientError> {
        let call = Call::to(Route::Jobs)?.query(query.pairs());
        self.run(&call).await?.json()
    }

    /// One job, spec and state flat in one object.
    pub async fn job(&self, job_id: &str) -> Result<Map<String, Value>, ClientError> {
        self.run(&Call::to(Route::Job { id: job_id })?)
            .await?
            .json()
    }

    /// Why a job waits, or where it is.
    pub async fn explain(&self, job_id: &str) -> Result<Explanation, ClientError> {
        let call = Call::to(Route::Explain { id: job_id })?;
        self.run(&call).await?.json()
    }

    /// Whether a job has the result of another one, and why or why not.
    pub async fn explain_reuse(&self, job_id: &str) -> Result<ReuseExplanation, ClientError> {
        let call = Call::to(Route::ExplainReuse { id: job_id })?;
        self.run(&call).await?.json()
    }

    /// Forgets the results of the key of a job.
    pub async fn forget_reuse(&self, job_id: &str) -> Result<ReuseForgotten, ClientError> {
        let mut call = Call::to(Route::ForgetReuse { id: job_id })?;
        call.method = reqwest::Method::DELETE;
        self.run(&call).await?.json()
    }

    /// What came of a job, and of each of its shards.
    pub async fn answer(&self, job_id: &str) -> Result<JobAnswer, ClientError> {
        let mut call = Call::to(Route::Answer { id: job_id })?;
        call.query.push(("format", "json".to_owned()));
        self.run(&call).await?.json()
    }

    /// Submits jobs again as one submit. Each item is a new job, or why one was refused, in the order of the request.
    /// Sent again only if the request has an idempotency key.
    pub async fn rerun_many(&self, request: &RerunRequest) -> Result<Vec<SubmitItem>, ClientError> {
        let call = Call::to(Route::RerunMany)?.json(request)?;
        let call = match &request.idempotency_key {
            Some(_) => call,
            None => call.once(),
        };
        items_of(self.run(&call).await?)
    }

    /// The history of the tests of a suite, or of one of them, by group of hosts.
    pub async fn test_history(
        &self,
        suite: &str,
        test: Option<&str>,
    ) -> Result<Vec<TestHistory>, ClientError> {
        let mut call = Call::to(Route::Tests)?;
        call.query.push(("suite", suite.to_owned()));
        call.query
            .extend(test.map(|test| ("test", test.to_owned())));
        self.run(&call).await?.json()
    }

    /// A job's output from `offset` (bytes); with `follow`, until the attempt ends. `attempt` `None` is
    /// the present one. To resume, ask again from the offset that was reached.
    pub async fn log(
        &self,
        job_id: &str,
        attempt: Option<u16>,
        offset: u64,
        follow: bool,
    ) -> Result<ByteStream, ClientError> {
        let mut pairs = vec![("offset", offset.to_string())];
        push(&mut pairs, "attempt", attempt);
        if follow {
            pairs.push(("follow", "true".to_owned()));
        }
        let mut call = Call::to(Route::ReadLog { id: job_id })?.query(pairs);
        call.stream = true;
        let pause_max = (!follow).then(|| self.request_timeout());
        self.run(&call).await?.stream(pause_max)
    }

    /// The end of a job's output: at most `bytes` of it, and whether there is more before. `attempt` `None` is the
    /// present one.
    pub async fn log_end(
        &self,
        job_id: &str,
        attempt: Option<u16>,
        bytes: u64,
    ) -> Result<(Bytes, bool), ClientError> {
        let mut call = Call::to(Route::ReadLog { id: job_id })?;
        push(&mut call.query, "attempt", attempt);
        call.last_bytes = Some(bytes);
        let reply = self.run(&call).await?;
        // An empty file has no last bytes.
        if reply.status == 416 {
            return Ok((Bytes::new(), false));
        }
        let is_part = reply.status == 206;
        Ok((reply.bytes()?, is_part))
    }

    /// Reports about a job. The answer is the server's text (a renewal's new deadline).
    ///
    /// Always sent again: a report that is in already is confirmed. Refusals: 409 `conflict`, another
    /// attempt is on; 423 `closed`, it has ended.
    pub async fn update(&self, job_id: &str, update: &JobUpdate) -> Result<String, ClientError> {
        let call = Call::to(Route::Update { id: job_id })?
            .query(update.pairs())
            .job_token(update.job_token.as_deref());
        self.run(&call).await?.text()
    }

    /// Cancels a job that waits. When a first try's answer was lost, `wrong_stage` may mean that it
    /// was done.
    pub async fn cancel(&self, job_id: &str) -> Result<(), ClientError> {
        let call = Call::to(Route::Cancel { id: job_id })?.json(&Map::new())?;
        self.run(&call).await?.checked().map(drop)
    }

    /// Cancels several waiting jobs; one report each, in their order.
    pub async fn cancel_many(&self, job_ids: &[String]) -> Result<Vec<CancelItem>, ClientError> {
        let request = CancelRequest {
            job_ids: job_ids.to_vec(),
            ..CancelRequest::default()
        };
        let call = Call::to(Route::CancelMany)?.json(&request)?;
        self.run(&call).await?.json_list("results")
    }

    /// Holds, releases or edits waiting jobs; one report each, in their order.
    pub async fn change(&self, request: &ChangeRequest) -> Result<Vec<CancelItem>, ClientError> {
        let call = Call::to(Route::ChangeJobs)?.json(request)?;
        self.run(&call).await?.json_list("results")
    }

    /// Who used the lab between two times, UTC epoch ms, by `account`, `queue`, `host` or `suite`.
    pub async fn usage(
        &self,
        by: &str,
        since_ms: u64,
        until_ms: u64,
    ) -> Result<UsageReport, ClientError> {
        let call = Call::to(Route::Usage)?.query(vec![
            ("by", by.to_owned()),
            ("since_ms", since_ms.to_string()),
            ("until_ms", until_ms.to_string()),
        ]);
        self.run(&call).await?.json()
    }

    /// Stops a job that a testbox has. Its script has `grace_s` seconds, 0 to 3600, after the polite signal;
    /// `None`: the usual 10.
    pub async fn terminate(&self, job_id: &str, grace_s: Option<u64>) -> Result<(), ClientError> {
        let grace = grace_s.map(|seconds| ("grace_s".to_owned(), Value::from(seconds)));
        let body: Map<String, Value> = grace.into_iter().collect();
        let call = Call::to(Route::Terminate { id: job_id })?.json(&body)?;
        self.run(&call).await?.checked().map(drop)
    }

    /// Waits until jobs reach what is waited for, or the server's own limit: call it again until
    /// nothing is open. Body and answer as compass-ci's (`wait_on`, `wait_options`, `waited_jobs`).
    pub async fn wait(&self, request: &Value) -> Result<Value, ClientError> {
        let call = Call::to(Route::Wait)?.json(request)?;
        self.run(&call.wait(JOBS_WAIT)).await?.json()
    }
}
