//! Asking until there is an answer that stands.

use std::{future::Future, time::Duration};

use fairlead_api::ClientError;
use tokio::time::Instant;

use crate::{
    protocol::{Backoff, Failure},
    timer::{pause, seed},
};

/// Repeats a request until there is a final answer, which may be a refusal.
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

/// Time for which a job waits for a lab that cannot store its files. Such a problem may last for days, so the job then
/// ends without them.
#[derive(Debug)]
pub struct Patience {
    most: Duration,
    /// End of the wait, counted from the first refusal on.
    until: Option<Instant>,
}

impl Patience {
    /// Returns a patience of `most` from the first refusal on.
    pub fn new(most: Duration) -> Self {
        Self { most, until: None }
    }

    /// Returns true if a refusal at this moment must not be retried.
    pub(crate) fn is_over(&mut self) -> bool {
        let now = Instant::now();
        let most = self.most;
        *self.until.get_or_insert_with(|| now + most) <= now
    }
}

/// Returns true if the lab answers, but has no room for the data or cannot write it.
pub(crate) fn stores_nothing(error: &ClientError) -> bool {
    matches!(error.status(), Some(500 | 507))
}

/// Repeats a request until there is a final answer, which may be a refusal. An unreachable lab is retried forever. A
/// lab that cannot store data (statuses 500 and 507) is retried only as long as `patience` lasts.
///
/// # Errors
/// Returns the refusal.
pub async fn until_stored<T, F>(
    job_id: &str,
    what: &'static str,
    patience: &mut Patience,
    mut ask: impl FnMut() -> F,
) -> Result<T, ClientError>
where
    F: Future<Output = Result<T, ClientError>>,
{
    let mut backoff = Backoff::new(PAUSE_MIN, PAUSE_MAX, seed());
    loop {
        let error = match until_answered(job_id, what, || settled(ask())).await? {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if patience.is_over() {
            return Err(error);
        }
        tracing::warn!(job_id, what, %error, "the lab cannot store it; retrying for a while");
        pause(backoff.step()).await;
    }
}

/// First and longest pause before the next request to a lab that cannot store data.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Treats a failure to store as a final answer.
async fn settled<T>(
    asked: impl Future<Output = Result<T, ClientError>>,
) -> Result<Result<T, ClientError>, ClientError> {
    match asked.await {
        Err(error) if stores_nothing(&error) => Ok(Err(error)),
        answer => answer.map(Ok),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use fairlead_api::{ErrorBody, ErrorCode};

    use super::*;

    fn refused(code: ErrorCode) -> ClientError {
        ClientError::Refused {
            status: code.status(),
            body: ErrorBody::new(code, "no", ""),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lab_without_room_is_asked_for_a_while_and_one_that_is_away_for_ever() {
        let mut patience = Patience::new(Duration::from_secs(20));
        let began = Instant::now();
        let asked = Cell::new(0_u32);
        let ask = |code: ErrorCode| {
            asked.set(asked.get() + 1);
            async move { Err::<(), _>(refused(code)) }
        };
        let error = until_stored("7", "upload", &mut patience, || ask(ErrorCode::DataFull)).await;
        assert_eq!(error.unwrap_err().code(), Some(ErrorCode::DataFull));
        let took = began.elapsed().as_secs();
        assert!((20..22).contains(&took) && asked.get() > 15, "{took} s");
        // All files of a job share the patience.
        asked.set(0);
        let error = until_stored("7", "upload", &mut patience, || ask(ErrorCode::Internal)).await;
        assert_eq!(error.unwrap_err().code(), Some(ErrorCode::Internal));
        assert_eq!(asked.get(), 1);
        let away = || async {
            let times = asked.get();
            asked.set(times + 1);
            if times < 1_000 {
                return Err(refused(ErrorCode::Unavailable));
            }
            Ok(times)
        };
        let stored = until_stored("7", "upload", &mut patience, away).await;
        assert_eq!(stored.unwrap(), 1_000);
    }
}
