//! The nodes of a run's Elasticsearch: which are lost, and whether all is well.

use std::{collections::BTreeSet, time::Duration};

use fairlead_cluster::{
    clock::until,
    launch::{Elastic, LaunchError, OwnElastic},
};
use fairlead_simulation::Chance;
use parking_lot::{Mutex, MutexGuard};
use reqwest::Method;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::indices::{Indices, ask};

/// Time for Elasticsearch to be whole again before the next node is lost for long.
const WHOLE_TIME: Duration = Duration::from_mins(1);
/// Timeout of a health query to a node.
const HEALTH_TIME: Duration = Duration::from_secs(2);
/// Interval between health queries.
const LOOK_TIME: Duration = Duration::from_millis(250);
/// Number of consecutive good checks that count as healthy: 3 s, longer than one check of the fault detection.
const WELL_LOOKS: usize = 12;

/// Nodes of the run's Elasticsearch.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) elastic: Elastic,
    pub(super) own: OwnElastic,
    pub(super) lab: Indices,
    /// Nodes that are lost for long now.
    lost: Mutex<BTreeSet<u16>>,
    /// Lock held while a loss is not detected, and while others hang for a moment.
    pub(super) turn: tokio::sync::Mutex<()>,
}

/// A node that is lost for long, until this is dropped.
pub(super) struct Lost<'a>(&'a Nodes, u16);

impl Drop for Lost<'_> {
    fn drop(&mut self) {
        self.0.lost().remove(&self.1);
    }
}

impl Nodes {
    pub(super) fn new(elastic: Elastic, own: OwnElastic, lab: Indices) -> Self {
        Self {
            elastic,
            own,
            lab,
            lost: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    fn lost(&self) -> MutexGuard<'_, BTreeSet<u16>> {
        self.lost.lock()
    }

    pub(super) fn take(&self, number: u16) -> Lost<'_> {
        self.lost().insert(number);
        Lost(self, number)
    }

    pub(super) fn free(&self) -> Vec<u16> {
        let lost = self.lost();
        (1..=self.own.nodes).filter(|n| !lost.contains(n)).collect()
    }

    pub(super) fn draw(&self, chance: &mut Chance) -> u16 {
        let number = chance.within(1..=u64::from(self.own.nodes));
        u16::try_from(number).unwrap_or(1)
    }

    /// Waits until every shard keeps all its copies, up to a limit. The check is repeated, because in the middle of an
    /// election a temporary master reports good health.
    pub(super) async fn whole(&self, over: &CancellationToken) {
        let is_whole = |health: &Value| {
            health["status"] == "green" && health["number_of_nodes"] == self.own.nodes
        };
        self.until_health(over, WELL_LOOKS, is_whole).await;
    }

    /// Waits until the other nodes, if there are any, continue without the killed one.
    pub(super) async fn noticed(&self, over: &CancellationToken) {
        if self.own.nodes == 1 {
            return;
        }
        let is_fewer = |health: &Value| health["number_of_nodes"] == self.own.nodes - 1;
        self.until_health(over, 1, is_fewer).await;
    }

    /// Waits until enough consecutive checks show this health.
    async fn until_health(
        &self,
        over: &CancellationToken,
        looks: usize,
        is_so: impl Fn(&Value) -> bool,
    ) {
        let mut in_a_row = 0;
        let look = async || {
            let path = "/_cluster/health?filter_path=status,number_of_nodes";
            let health = ask(self.own, HEALTH_TIME, (Method::GET, path), None).await;
            health.is_some_and(|health| is_so(&health))
        };
        let check = async || {
            in_a_row = if look().await { in_a_row + 1 } else { 0 };
            (in_a_row >= looks).then_some(())
        };
        let waited = until(LOOK_TIME, WHOLE_TIME, check);
        over.run_until_cancelled(waited).await;
    }

    /// Resumes and starts all nodes, with all shards.
    pub(super) async fn all_on(&self) -> Result<(), LaunchError> {
        self.lab.all_back().await;
        for number in 1..=self.own.nodes {
            // Errors of nodes that do not run or are not paused are ignored.
            let _ = self.elastic.node("resume", number).await;
        }
        self.elastic.start(self.own).await.map(drop)
    }
}
