//! Groups: jobs that are submitted one by one and have one result.

use super::{call::Call, error::ClientError, transport::Client};
use crate::{JobAnswer, Route};

impl Client {
    /// The answer of a group of an account; `None`: of the client's own.
    ///
    /// # Errors
    /// [`ClientError`], among them `not_found`: there is none of this name.
    pub async fn group(
        &self,
        group: &str,
        account: Option<&str>,
    ) -> Result<JobAnswer, ClientError> {
        self.ask_of_group(Route::Group { group }, account).await
    }

    /// Lets no job join a group any more. It is idempotent.
    ///
    /// # Errors
    /// [`ClientError`], among them `not_found`: there is none of this name.
    pub async fn close_group(
        &self,
        group: &str,
        account: Option<&str>,
    ) -> Result<JobAnswer, ClientError> {
        self.ask_of_group(Route::CloseGroup { group }, account)
            .await
    }

    async fn ask_of_group(
        &self,
        route: Route<'_>,
        account: Option<&str>,
    ) -> Result<JobAnswer, ClientError> {
        let mut call = Call::to(route)?;
        call.query
            .extend(account.map(|account| ("account", account.to_owned())));
        self.run(&call).await?.json()
    }
}
