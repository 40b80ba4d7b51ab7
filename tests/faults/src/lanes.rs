//! The faults, drawn from a seed: one lane for each kind of victim, all at the same time.
//!
//! A lane draws kinds from a shuffled deck, so all kinds are equally frequent. With several replicas, only one is out
//! at a time. So a pause of dispatches measures the loss of one replica. A node of Elasticsearch is lost for long only
//! when all nodes are well. Until this is noticed, no other node hangs, because a cluster that loses two of three nodes
//! rightly stops.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{agent::Power, fleet::Fleet, history::History};
use fairlead_cluster::{
    clock::{pause, until},
    http,
    launch::{Cluster, Elastic, LaunchError, OwnElastic},
};
use fairlead_simulation::Chance;

/// How often a lane looks at what is due.
const TICK: Duration = Duration::from_millis(100);
/// How long Elasticsearch may take to be whole again before the next node is lost for long.
const WHOLE_TIME: Duration = Duration::from_mins(1);
/// How often Elasticsearch is asked how it is.
const LOOK_TIME: Duration = Duration::from_millis(250);
/// Looks in a row that show it well: 3 s, longer than one check of the fault detection.
const WELL_LOOKS: usize = 12;
/// How long a node hangs that is to be found out, ms: the detection takes 6 s. A master that hangs on is found out
/// a second time, by the one that follows it, and until then writes wait for it: that takes 13 s in all.
const NOTICED_MS: std::ops::RangeInclusive<u64> = 7_000..=8_000;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(super) enum Kind {
    /// A replica is killed (-9), and started again some seconds later
    ReplicaKill,
    /// A replica hangs (SIGSTOP), sometimes for longer than a lease
    ReplicaPause,
    /// A node of Elasticsearch is killed (-9), and started again at once
    NodeKill,
    /// A node of Elasticsearch hangs, sometimes for longer than it takes to notice
    NodePause,
    /// All nodes of Elasticsearch hang, for less than it takes to notice
    Outage,
    /// Up to three testboxes lose everything, and start anew
    AgentKill,
    /// Up to three testboxes hang with all that runs on them, sometimes for longer than a lease
    AgentPause,
}

impl Kind {
    /// All of them.
    pub(super) const ALL: [Self; 7] = [
        Self::ReplicaKill,
        Self::ReplicaPause,
        Self::NodeKill,
        Self::NodePause,
        Self::Outage,
        Self::AgentKill,
        Self::AgentPause,
    ];

    /// Its name in the report.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::ReplicaKill => "replica-kill",
            Self::ReplicaPause => "replica-pause",
            Self::NodeKill => "node-kill",
            Self::NodePause => "node-pause",
            Self::Outage => "outage",
            Self::AgentKill => "agent-kill",
            Self::AgentPause => "agent-pause",
        }
    }
}

/// What all lanes share.
#[derive(Debug, Clone)]
pub(super) struct Lanes {
    pub(super) kinds: BTreeSet<Kind>,
    pub(super) seed: u64,
    pub(super) history: Arc<History>,
    /// Cancelled when the faults end.
    pub(super) over: CancellationToken,
}

/// Kinds in a shuffled order, again and again.
#[derive(Debug)]
struct Deck {
    kinds: Vec<Kind>,
    left: Vec<Kind>,
}

impl Deck {
    fn next(&mut self, chance: &mut Chance) -> Option<Kind> {
        if self.left.is_empty() {
            self.left.clone_from(&self.kinds);
            for at in (1..self.left.len()).rev() {
                self.left.swap(at, chance.index(at + 1));
            }
        }
        self.left.pop()
    }
}

impl Lanes {
    fn deck(&self, kinds: &[Kind]) -> Deck {
        let kinds = kinds.iter().copied();
        Deck {
            kinds: kinds.filter(|kind| self.kinds.contains(kind)).collect(),
            left: Vec::new(),
        }
    }

    async fn rest(&self, chance: &mut Chance, ms: std::ops::RangeInclusive<u64>) {
        let time = Duration::from_millis(chance.within(ms));
        self.over.run_until_cancelled(pause(time)).await;
    }

    fn ended(&self) -> bool {
        self.over.is_cancelled()
    }

    fn note(&self, kind: Kind, what: String) {
        self.history.fault(kind.word(), what);
    }

    /// Kills and pauses replicas. One that ended by itself is started again, as a service manager does. At
    /// the end all of them run.
    pub(super) async fn replicas(self, cluster: &mut Cluster) -> Result<(), LaunchError> {
        let mut chance = Chance::new(self.seed, 101);
        let mut deck = self.deck(&[Kind::ReplicaKill, Kind::ReplicaPause]);
        let numbers: Vec<u16> = cluster.replicas().iter().map(|one| one.number).collect();
        // Which is out, until when, and how.
        let mut out: Option<(u16, Instant, Kind)> = None;
        let mut next = after_ms(&mut chance, 3_000..=8_000);
        while !self.ended() {
            pause(TICK).await;
            let now = Instant::now();
            if let Some((number, _, kind)) = out.take_if(|(_, until, _)| *until <= now)
                && kind == Kind::ReplicaPause
            {
                cluster.resume(number)?;
            }
            for number in &numbers {
                if out.is_none_or(|(its, _, _)| its != *number) {
                    start_again(cluster, *number)?;
                }
            }
            if now < next || out.is_some() {
                continue;
            }
            next = after_ms(&mut chance, 3_000..=8_000);
            let Some(kind) = deck.next(&mut chance) else {
                continue;
            };
            let number = chance.one_of(&numbers, 1);
            let down_ms = if kind == Kind::ReplicaKill {
                500..=6_000
            } else {
                1_000..=14_000
            };
            out = Some((number, after_ms(&mut chance, down_ms), kind));
            let done = if kind == Kind::ReplicaKill {
                cluster.kill(number).await
            } else {
                cluster.pause(number)
            };
            match done {
                Ok(()) => self.note(kind, format!("replica {number}")),
                // It had ended by itself: it is started again.
                Err(_) => out = None,
            }
        }
        for number in numbers {
            // Those that do not run, or are not paused, do not mind.
            let _ = cluster.resume(number);
            start_again(cluster, number)?;
        }
        Ok(())
    }

    /// Kills testboxes and lets them hang. At the end all of them work.
    pub(super) async fn agents(self, fleet: &Fleet) {
        let mut chance = Chance::new(self.seed, 102);
        let mut deck = self.deck(&[Kind::AgentKill, Kind::AgentPause]);
        let count = fleet.testboxes().len();
        let mut due: BTreeMap<usize, Instant> = BTreeMap::new();
        let mut next = after_ms(&mut chance, 1_000..=4_000);
        while !self.ended() {
            pause(TICK).await;
            let now = Instant::now();
            due.retain(|number, at| {
                let still = now < *at;
                if !still {
                    fleet.switch(*number, Power::On);
                }
                still
            });
            if now < next {
                continue;
            }
            next = after_ms(&mut chance, 2_000..=6_000);
            let Some(kind) = deck.next(&mut chance) else {
                continue;
            };
            let power = if kind == Kind::AgentKill {
                Power::Off
            } else {
                Power::Paused
            };
            let mut names = Vec::new();
            for _ in 0..chance.within(1..=3) {
                let number = chance.index(count);
                let back = after_ms(&mut chance, 500..=16_000);
                if let Entry::Vacant(free) = due.entry(number) {
                    free.insert(back);
                    names.push(fleet.switch(number, power));
                }
            }
            self.note(kind, names.join(", "));
        }
        fleet.all_on();
    }

    /// Loses one node of Elasticsearch after the other for long, each when all are well again.
    pub(super) async fn nodes(self, nodes: Arc<Nodes>) -> Result<(), LaunchError> {
        let mut chance = Chance::new(self.seed, 103);
        let mut deck = self.deck(&[
            Kind::NodeKill,
            Kind::NodeKill,
            Kind::NodeKill,
            Kind::NodePause,
        ]);
        while !self.ended() {
            self.rest(&mut chance, 500..=3_000).await;
            let Some(kind) = deck.next(&mut chance).filter(|_| !self.ended()) else {
                break;
            };
            nodes.whole(&self.over).await;
            if self.ended() {
                break;
            }
            let number = nodes.draw(&mut chance);
            let turn = nodes.turn.lock().await;
            let _mine = nodes.take(number);
            self.note(kind, format!("node {number}, for long"));
            if kind == Kind::NodeKill {
                nodes.elastic.node("kill", number).await?;
                nodes.noticed(&self.over).await;
                drop(turn);
                nodes.elastic.start(nodes.own).await?;
            } else {
                nodes.elastic.node("pause", number).await?;
                self.rest(&mut chance, NOTICED_MS).await;
                nodes.elastic.node("resume", number).await?;
            }
        }
        Ok(())
    }

    /// Lets one node or all of them hang for a moment.
    pub(super) async fn hiccups(self, nodes: Arc<Nodes>) -> Result<(), LaunchError> {
        let mut chance = Chance::new(self.seed, 104);
        let mut deck = self.deck(&[Kind::NodePause, Kind::Outage]);
        while !self.ended() {
            self.rest(&mut chance, 5_000..=12_000).await;
            let Some(kind) = deck.next(&mut chance).filter(|_| !self.ended()) else {
                break;
            };
            let _turn = nodes.turn.lock().await;
            let victims: Vec<u16> = if kind == Kind::Outage {
                nodes.free()
            } else {
                let free = nodes.free();
                free.get(chance.index(free.len()))
                    .copied()
                    .into_iter()
                    .collect()
            };
            // Those that are just starting cannot be paused, and need not.
            let mut paused = Vec::new();
            for number in victims {
                if nodes.elastic.node("pause", number).await.is_ok() {
                    paused.push(number);
                }
            }
            self.note(kind, format!("nodes {paused:?}, for a moment"));
            self.rest(&mut chance, 500..=2_500).await;
            for number in paused {
                // Killed meanwhile: nothing to resume.
                let _ = nodes.elastic.node("resume", number).await;
            }
        }
        Ok(())
    }
}

fn after_ms(chance: &mut Chance, ms: std::ops::RangeInclusive<u64>) -> Instant {
    Instant::now() + Duration::from_millis(chance.within(ms))
}

/// Starts a replica that does not run.
fn start_again(cluster: &mut Cluster, number: u16) -> Result<(), LaunchError> {
    let runs = cluster
        .replicas()
        .iter()
        .any(|one| one.number == number && one.is_running());
    if runs { Ok(()) } else { cluster.start(number) }
}

/// The nodes of the run's Elasticsearch.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) elastic: Elastic,
    pub(super) own: OwnElastic,
    /// Lost for long now.
    lost: Mutex<BTreeSet<u16>>,
    /// Held while a loss is not noticed, and while others hang for a moment.
    turn: tokio::sync::Mutex<()>,
}

/// A node that is lost for long, until this is dropped.
struct Lost<'a>(&'a Nodes, u16);

impl Drop for Lost<'_> {
    fn drop(&mut self) {
        self.0.lost().remove(&self.1);
    }
}

impl Nodes {
    pub(super) fn new(elastic: Elastic, own: OwnElastic) -> Self {
        Self {
            elastic,
            own,
            lost: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    fn lost(&self) -> MutexGuard<'_, BTreeSet<u16>> {
        self.lost.lock()
    }

    fn take(&self, number: u16) -> Lost<'_> {
        self.lost().insert(number);
        Lost(self, number)
    }

    fn free(&self) -> Vec<u16> {
        let lost = self.lost();
        (1..=self.own.nodes).filter(|n| !lost.contains(n)).collect()
    }

    fn draw(&self, chance: &mut Chance) -> u16 {
        let number = chance.within(1..=u64::from(self.own.nodes));
        u16::try_from(number).unwrap_or(1)
    }

    /// Waits until every shard has all its copies and keeps them; for so long at most. In the middle of an election
    /// a node that is master for a moment says that all is well.
    async fn whole(&self, over: &CancellationToken) {
        let all = format!("\"number_of_nodes\":{}", self.own.nodes);
        let is_whole = |health: &str| health.contains("green") && health.contains(&all);
        self.until_health(over, WELL_LOOKS, is_whole).await;
    }

    /// Waits until the others, if there are any, go on without the one that was killed.
    async fn noticed(&self, over: &CancellationToken) {
        if self.own.nodes == 1 {
            return;
        }
        let fewer = format!("\"number_of_nodes\":{}", self.own.nodes - 1);
        self.until_health(over, 1, |health| health.contains(&fewer))
            .await;
    }

    /// Waits until so many looks in a row show it.
    async fn until_health(
        &self,
        over: &CancellationToken,
        looks: usize,
        is_so: impl Fn(&str) -> bool,
    ) {
        let Ok(client) = http::client(Duration::from_secs(2)) else {
            return;
        };
        let mut in_a_row = 0;
        let look = async || {
            for number in 1..=self.own.nodes {
                let url = format!(
                    "http://127.0.0.1:{}/_cluster/health?filter_path=status,number_of_nodes",
                    self.own.port + number - 1
                );
                let Ok(answer) = client.get(url).send().await else {
                    continue;
                };
                return is_so(&answer.text().await.unwrap_or_default());
            }
            false
        };
        let check = async || {
            in_a_row = if look().await { in_a_row + 1 } else { 0 };
            (in_a_row >= looks).then_some(())
        };
        let waited = until(LOOK_TIME, WHOLE_TIME, check);
        over.run_until_cancelled(waited).await;
    }

    /// Resumes and starts all of them.
    pub(super) async fn all_on(&self) -> Result<(), LaunchError> {
        for number in 1..=self.own.nodes {
            // Those that do not run, or are not paused, do not mind.
            let _ = self.elastic.node("resume", number).await;
        }
        self.elastic.start(self.own).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_comes_as_often_as_the_others() {
        let mut chance = Chance::new(3, 1);
        let mut deck = Deck {
            kinds: Kind::ALL.to_vec(),
            left: Vec::new(),
        };
        let mut drawn = BTreeMap::new();
        for _ in 0..70 {
            *drawn.entry(deck.next(&mut chance).unwrap()).or_insert(0) += 1;
        }
        assert_eq!(drawn.len(), 7);
        assert!(drawn.values().all(|&n| n == 10), "{drawn:?}");
        let mut none = Deck {
            kinds: Vec::new(),
            left: Vec::new(),
        };
        assert_eq!(none.next(&mut chance), None);
    }
}
