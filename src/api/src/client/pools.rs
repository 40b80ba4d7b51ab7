//! Requests about pools of machines that come and go.

use super::{call::Call, error::ClientError, transport::Client};
use crate::{PoolChange, PoolDecision, PoolView, Route, ScalingSettings};

impl Client {
    /// Pools of machines that come and go.
    pub async fn pools(&self) -> Result<Vec<PoolView>, ClientError> {
        self.run(&Call::to(Route::Pools)?).await?.json()
    }

    /// One pool.
    pub async fn pool(&self, name: &str) -> Result<PoolView, ClientError> {
        self.run(&Call::to(Route::Pool { name })?).await?.json()
    }

    /// Sets what is given of a pool, and makes it.
    pub async fn set_pool(&self, name: &str, change: &PoolChange) -> Result<PoolView, ClientError> {
        let call = Call::to(Route::SetPool { name })?.json(change)?;
        self.run(&call).await?.json()
    }

    /// Deletes a pool that has no machines.
    pub async fn delete_pool(&self, name: &str) -> Result<(), ClientError> {
        self.run(&Call::to(Route::DeletePool { name })?)
            .await
            .map(drop)
    }

    /// Decisions of a pool, the newest first: at most `limit`, those before the one with the number `before` (0: all).
    pub async fn pool_decisions(
        &self,
        name: &str,
        before: u64,
        limit: u32,
    ) -> Result<Vec<PoolDecision>, ClientError> {
        let query = vec![("limit", limit.to_string()), ("before", before.to_string())];
        let call = Call::to(Route::PoolDecisions { name })?.query(query);
        self.run(&call).await?.json()
    }

    /// What holds for all pools together.
    pub async fn scaling(&self) -> Result<ScalingSettings, ClientError> {
        self.run(&Call::to(Route::Scaling)?).await?.json()
    }

    /// Replaces what holds for all pools together.
    pub async fn set_scaling(
        &self,
        settings: &ScalingSettings,
    ) -> Result<ScalingSettings, ClientError> {
        let call = Call::to(Route::SetScaling)?.json(settings)?;
        self.run(&call).await?.json()
    }
}
