//! POSTs as scripts on a machine send them.

use fairlead_tests::{Http, Reply};
use reqwest::Method;

/// Sends a POST without a body.
pub async fn post(http: &Http, path: &str) -> Reply {
    http.send(Method::POST, path, "", Vec::new()).await
}

/// Sends a POST with a job's token in its header.
///
/// # Errors
/// Fails if there is no answer.
pub async fn post_with_job_token(
    base: &str,
    path: &str,
    token: &str,
) -> Result<(u16, String), reqwest::Error> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let request = client.post(format!("{base}{path}"));
    let answer = request.header("job-token", token).send().await?;
    Ok((answer.status().as_u16(), answer.text().await?))
}
