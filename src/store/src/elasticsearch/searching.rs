//! Searches of any kind. An incomplete search is an error.

use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    call::{Call, Failure},
    cluster::{BUSY_TRIES, Cluster},
    reply::{self, Found, MultiFound},
};
use crate::StoreError;

/// Searches in one request.
const SEARCHES: usize = 50;

impl Cluster {
    /// Runs one search. The result is complete or an error.
    pub(super) async fn search_one<A>(
        &self,
        index: &str,
        body: &Value,
    ) -> Result<Found<A>, StoreError>
    where
        A: DeserializeOwned + Default + Send + 'static,
    {
        let path = format!(
            "/{index}/_search?allow_partial_search_results=false&ignore_unavailable=true&filter_path=-hits.hits.sort"
        );
        let call = Call::read(Method::POST, path).json(body);
        let body = self.call(&call).await.map_err(Failure::of_read)?;
        let found = reply::parse::<Found<A>>(body).await?;
        found
            .whole()
            .inspect_err(|error| self.watch.read_failed(&error.to_string()))
    }

    /// Runs searches in the same place. Each result is complete or an error.
    pub(super) async fn search_many<A>(
        &self,
        index: &str,
        bodies: Vec<Value>,
    ) -> Result<Vec<Found<A>>, StoreError>
    where
        A: DeserializeOwned + Default + Send + 'static,
    {
        let searches = bodies
            .into_iter()
            .map(|body| (json!({"index": index}), body));
        self.search_each(searches.collect()).await
    }

    /// Runs searches, each with its place (`index`, perhaps `preference`). Each result is complete or an error.
    pub(super) async fn search_each<A>(
        &self,
        searches: Vec<(Value, Value)>,
    ) -> Result<Vec<Found<A>>, StoreError>
    where
        A: DeserializeOwned + Default + Send + 'static,
    {
        let mut found = Vec::with_capacity(searches.len());
        for bodies in searches.chunks(SEARCHES) {
            let lines = bodies.iter().map(|(place, body)| {
                let mut header = place.clone();
                header["allow_partial_search_results"] = json!(false);
                header["ignore_unavailable"] = json!(true);
                format!("{header}\n{body}\n")
            });
            let call = Call::read(Method::POST, "/_msearch").lines(lines.collect());
            for one in self.multi_search(&call, bodies.len()).await? {
                let one = one.whole();
                found.push(one.inspect_err(|error| self.watch.read_failed(&error.to_string()))?);
            }
        }
        Ok(found)
    }

    /// Runs an `_msearch`, and again while one of its searches meets overload. In that case the answer itself is a
    /// success.
    async fn multi_search<A>(&self, call: &Call, many: usize) -> Result<Vec<Found<A>>, StoreError>
    where
        A: DeserializeOwned + Default + Send + 'static,
    {
        let mut tries = 0;
        loop {
            tries += 1;
            let body = self.call(call).await.map_err(Failure::of_read)?;
            let reply: MultiFound<A> = reply::parse(body).await?;
            if reply.responses.len() != many {
                return Err(StoreError::Refused {
                    reason: format!(
                        "{many} searches were sent, {} answered",
                        reply.responses.len()
                    ),
                });
            }
            if tries == BUSY_TRIES || reply.responses.iter().all(|one| one.status != 429) {
                return Ok(reply.responses);
            }
            self.wait_while_busy(tries, self.request_timeout).await;
        }
    }
}
