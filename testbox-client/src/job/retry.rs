//! Asking until there is an answer that stands.

use std::future::Future;

use fairlead_api::ClientError;

use crate::{
    protocol::{Backoff, Failure},
    timer::{pause, seed},
};

/// Asks until there is an answer that stands, a refusal included.
pub(crate) async fn until_answered<T, F>(
    job_id: &str,
    what: &'static str,
    mut ask: impl FnMut() -> F,
) -> Result<T, ClientError>
where
    F: Future<Output = Result<T, ClientError>>,
{
    let mut backoff = Backoff::patient(seed());
    loop {
        match ask().await {
            Err(error) if !Failure::from(&error).is_final() => {
                tracing::warn!(job_id, what, %error, "no answer yet; retrying");
                pause(backoff.step()).await;
            }
            answer => return answer,
        }
    }
}
