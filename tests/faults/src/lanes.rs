//! The faults, drawn from a seed: one lane for each kind of victim, all at the same time.
//!
//! A lane draws kinds from a shuffled deck, so all kinds are equally frequent. With several replicas, only one is out
//! at a time. So a pause of dispatches measures the loss of one replica. A node of Elasticsearch is lost for long only
//! when all nodes are well. Until this is noticed, no other node hangs, because a cluster that loses two of three nodes
//! rightly stops.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fmt::Write as _,
    io,
    sync::Arc,
    time::Duration,
};

use tokio::{task::block_in_place, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    agent::Power, clocks::Clocks, disk::Disk, fleet::Fleet, history::History, indices::Indices,
    nodes::Nodes,
};
use fairlead_cluster::{
    clock::pause,
    launch::{Cluster, LaunchError},
};
use fairlead_simulation::Chance;

/// Interval at which a lane checks for due events.
const TICK: Duration = Duration::from_millis(100);
/// Time for which a node hangs so that its loss is detected, ms. The detection takes 6 s. A master that hangs longer is
/// detected again by its successor, and until then writes wait for it; that takes 13 s in total.
const NOTICED_MS: std::ops::RangeInclusive<u64> = 7_000..=8_000;

/// Leads of a wrong clock, seconds.
const AHEAD_S: [i64; 6] = [-3_600, -90, -8, 8, 90, 3_600];
/// Time for which an index has no shards, ms. Nothing is dispatched meanwhile, and a gap may last 10 s in total.
const RED_MS: std::ops::RangeInclusive<u64> = 3_000..=7_000;
/// Time for which the data folder is full, ms.
const FULL_MS: std::ops::RangeInclusive<u64> = 4_000..=15_000;
/// Pages left free at first in a full data folder. Some files are cut in the middle.
const PAGES_LEFT: std::ops::RangeInclusive<u64> = 0..=3;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(super) enum Kind {
    /// A replica is killed (-9), and started again some seconds later
    ReplicaKill,
    /// A replica hangs (SIGSTOP), sometimes for longer than a lease
    ReplicaPause,
    /// A replica's clock is minutes or hours off for some seconds
    ReplicaClock,
    /// A node of Elasticsearch is killed (-9), and started again at once
    NodeKill,
    /// A node of Elasticsearch hangs, sometimes for longer than it takes to notice
    NodePause,
    /// All nodes of Elasticsearch hang, for less than it takes to notice
    Outage,
    /// An index of the lab has no shard for some seconds
    IndexRed,
    /// The data folder of all replicas has no room for some seconds
    FolderFull,
    /// Up to three testboxes lose everything, and start anew
    AgentKill,
    /// Up to three testboxes hang with all that runs on them, sometimes for longer than a lease
    AgentPause,
}

impl Kind {
    /// All kinds.
    pub(super) const ALL: [Self; 10] = [
        Self::ReplicaKill,
        Self::ReplicaPause,
        Self::ReplicaClock,
        Self::NodeKill,
        Self::NodePause,
        Self::Outage,
        Self::IndexRed,
        Self::FolderFull,
        Self::AgentKill,
        Self::AgentPause,
    ];

    /// Returns its name in the report.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::ReplicaKill => "replica-kill",
            Self::ReplicaPause => "replica-pause",
            Self::ReplicaClock => "replica-clock",
            Self::NodeKill => "node-kill",
            Self::NodePause => "node-pause",
            Self::Outage => "outage",
            Self::IndexRed => "index-red",
            Self::FolderFull => "folder-full",
            Self::AgentKill => "agent-kill",
            Self::AgentPause => "agent-pause",
        }
    }
}

/// State shared by all lanes.
#[derive(Debug, Clone)]
pub(super) struct Lanes {
    pub(super) kinds: BTreeSet<Kind>,
    pub(super) seed: u64,
    pub(super) history: Arc<History>,
    /// Cancelled when the faults end.
    pub(super) over: CancellationToken,
}

/// Kinds in a shuffled order, repeated forever.
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

    /// Kills and pauses replicas, and sets their clocks. A replica that ended by itself is restarted, as a service
    /// manager does. At the end all of them run.
    pub(super) async fn replicas(
        self,
        cluster: &mut Cluster,
        clocks: Option<&Clocks>,
    ) -> Result<(), LaunchError> {
        let mut chance = Chance::new(self.seed, 101);
        let mut deck = self.deck(&[Kind::ReplicaKill, Kind::ReplicaPause, Kind::ReplicaClock]);
        let numbers: Vec<u16> = cluster.replicas().iter().map(|one| one.number).collect();
        // The affected replica, the end of its fault, and the kind.
        let mut out: Option<(u16, Instant, Kind)> = None;
        let mut next = after_ms(&mut chance, 3_000..=8_000);
        while !self.ended() {
            pause(TICK).await;
            let now = Instant::now();
            if let Some((number, _, kind)) = out.take_if(|(_, until, _)| *until <= now) {
                match kind {
                    Kind::ReplicaPause => cluster.resume(number)?,
                    _ => set_clock(clocks, number, 0),
                }
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
            let down_ms = match kind {
                Kind::ReplicaKill => 500..=6_000,
                Kind::ReplicaClock => 5_000..=30_000,
                _ => 1_000..=14_000,
            };
            out = Some((number, after_ms(&mut chance, down_ms), kind));
            match hit(kind, number, (cluster, clocks), &mut chance).await {
                Ok(what) => self.note(kind, what),
                // The replica had ended by itself, so it is restarted.
                Err(_) => out = None,
            }
        }
        for number in numbers {
            set_clock(clocks, number, 0);
            // Errors of replicas that do not run or are not paused are ignored.
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

    /// Stops one node of Elasticsearch after the other for long, each when all are healthy again.
    pub(super) async fn nodes(self, nodes: Arc<Nodes>) -> Result<(), LaunchError> {
        let mut chance = Chance::new(self.seed, 103);
        let mut deck = self.deck(&[
            Kind::NodeKill,
            Kind::NodeKill,
            Kind::NodeKill,
            Kind::NodePause,
            Kind::IndexRed,
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
            if kind == Kind::IndexRed {
                self.lose_index(&mut chance, &nodes.lab).await;
                continue;
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

    /// Leaves one index without shards for some seconds, most of the time.
    async fn lose_index(&self, chance: &mut Chance, lab: &Indices) {
        let Some(index) = lab.draw(chance).await else {
            return;
        };
        let back = after_ms(chance, RED_MS);
        self.note(Kind::IndexRed, index.clone());
        while Instant::now() < back && !self.ended() {
            lab.lose(&index).await;
            pause(TICK).await;
        }
        lab.all_back().await;
    }

    /// Fills the data folder for a while, repeatedly. At the end it has room.
    pub(super) async fn folder(self, disk: Option<&Disk>) -> io::Result<()> {
        let Some(disk) = disk else {
            return Ok(());
        };
        let mut chance = Chance::new(self.seed, 105);
        loop {
            self.rest(&mut chance, 3_000..=10_000).await;
            if self.ended() {
                return Ok(());
            }
            let (until, left) = (after_ms(&mut chance, FULL_MS), chance.within(PAGES_LEFT));
            self.note(Kind::FolderFull, format!("{left} pages are left"));
            while Instant::now() < until && !self.ended() {
                block_in_place(|| disk.fill(left))?;
                pause(TICK).await;
            }
            block_in_place(|| disk.free())?;
        }
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
            // Nodes that are just starting cannot be paused, which is fine.
            let mut paused = Vec::new();
            for number in victims {
                if nodes.elastic.node("pause", number).await.is_ok() {
                    paused.push(number);
                }
            }
            self.note(kind, format!("nodes {paused:?}, for a moment"));
            self.rest(&mut chance, 500..=2_500).await;
            for number in paused {
                // A node that was killed meanwhile has nothing to resume.
                let _ = nodes.elastic.node("resume", number).await;
            }
        }
        Ok(())
    }
}

/// Applies this fault to a replica, and returns a description.
async fn hit(
    kind: Kind,
    number: u16,
    (cluster, clocks): (&mut Cluster, Option<&Clocks>),
    chance: &mut Chance,
) -> Result<String, LaunchError> {
    let mut what = format!("replica {number}");
    match kind {
        Kind::ReplicaKill => cluster.kill(number).await?,
        Kind::ReplicaClock => {
            let ahead_s = chance.one_of(&AHEAD_S, 3_600);
            set_clock(clocks, number, ahead_s);
            let _ = write!(what, ", {ahead_s:+} s");
        }
        _ => cluster.pause(number)?,
    }
    Ok(what)
}

/// Sets the clock of a replica, if clocks can be set. A file that cannot be written leaves the clock unchanged.
fn set_clock(clocks: Option<&Clocks>, number: u16, ahead_s: i64) {
    if let Some(clocks) = clocks {
        let _ = clocks.set(number, ahead_s);
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
        for _ in 0..10 * Kind::ALL.len() {
            *drawn.entry(deck.next(&mut chance).unwrap()).or_insert(0) += 1;
        }
        assert_eq!(drawn.len(), Kind::ALL.len());
        assert!(drawn.values().all(|&n| n == 10), "{drawn:?}");
        let mut none = Deck {
            kinds: Vec::new(),
            left: Vec::new(),
        };
        assert_eq!(none.next(&mut chance), None);
    }
}
