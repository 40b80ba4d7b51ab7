//! This replica's number, which is part of its job ids: takes it, checks it, and replaces it after a loss.
//!
//! If a replica is stopped for a minute, the others consider it gone. They free its number, and the next replica takes
//! it. So each beat checks that the number still belongs to this run. After a pause, no id is made before that check.

use fairlead_job::IdMaker;
use fairlead_store::{DocKind, DocWrite, Expect, ItemError, StoreError, Version};
use serde_json::{Value, json};

use crate::peers::PeerFlow;
use fairlead_base::storage::group_commit::only;
use fairlead_known::replicas::{Number, document};

/// Numbers that replicas can have.
const NUMBERS: u16 = 100;

fn unavailable(error: &ItemError) -> StoreError {
    StoreError::Unavailable {
        reason: error.to_string(),
    }
}

impl PeerFlow {
    /// Makes sure before ids are made that this replica still has its number, or takes another one. Nothing to do
    /// when that was seen in the last ten seconds.
    pub(crate) async fn sure_of_number(&self) -> Result<(), StoreError> {
        let known = self.ctx.replicas.numbered();
        if known.is_none_or(|known| known.is_sure(self.ctx.clock.now(), self.ctx.clock.wall_ms())) {
            return Ok(());
        }
        let _one = self.numbering.lock().await;
        let known = self.ctx.replicas.numbered();
        match known {
            Some(known) if !known.is_sure(self.ctx.clock.now(), self.ctx.clock.wall_ms()) => {
                self.touch_number(known).await
            }
            _ => Ok(()),
        }
    }

    /// Looks whether the number is this replica's, and takes another one if not.
    pub(crate) async fn look_at_number(&self) -> Result<(), StoreError> {
        let _one = self.numbering.lock().await;
        let Some(known) = self.ctx.replicas.numbered() else {
            return Ok(());
        };
        if !known.is_sure(self.ctx.clock.now(), self.ctx.clock.wall_ms()) {
            return self.touch_number(known).await;
        }
        let (at, wall_ms) = (self.ctx.clock.now(), self.ctx.clock.wall_ms());
        match self.owned(known.value).await? {
            Some(version) => {
                self.ctx.replicas.set_number(Number {
                    version,
                    at,
                    wall_ms,
                    ..known
                });
                Ok(())
            }
            None => self.take_another(known.value).await,
        }
    }

    /// Writes the number's document once more: whoever is about to free it fails, or was faster.
    async fn touch_number(&self, known: Number) -> Result<(), StoreError> {
        let mut expected = known.version;
        // What was written unheard is read, and written over.
        for _ in 0..2 {
            let (at, wall_ms) = (self.ctx.clock.now(), self.ctx.clock.wall_ms());
            match self
                .write_number(known.value, Expect::Version(expected))
                .await
            {
                Ok(version) => {
                    self.ctx.replicas.set_number(Number {
                        version,
                        at,
                        wall_ms,
                        ..known
                    });
                    return Ok(());
                }
                Err(ItemError::Conflict { .. } | ItemError::Missing) => {}
                Err(error) => return Err(unavailable(&error)),
            }
            match self.owned(known.value).await? {
                Some(version) => expected = version,
                None => return self.take_another(known.value).await,
            }
        }
        Err(StoreError::Unavailable {
            reason: format!(
                "number {} of this replica changes all the time",
                known.value
            ),
        })
    }

    async fn take_another(&self, lost: u16) -> Result<(), StoreError> {
        self.take_a_number().await?;
        let number = self.ctx.replicas.number();
        tracing::warn!(
            lost,
            number,
            "this replica lost its number while it was stopped, and took a new one"
        );
        Ok(())
    }

    /// Takes a number that nobody has.
    pub(crate) async fn take_a_number(&self) -> Result<(), StoreError> {
        let hash = blake3::hash(self.ctx.replicas.run.as_bytes());
        let first = u16::from(hash.as_bytes().first().copied().unwrap_or(0));
        for step in 0..NUMBERS {
            let number = (first + step) % NUMBERS;
            let (at, wall_ms) = (self.ctx.clock.now(), self.ctx.clock.wall_ms());
            match self.write_number(number, Expect::Absent).await {
                Ok(version) => {
                    self.ctx.replicas.set_number(Number {
                        value: number,
                        version,
                        at,
                        wall_ms,
                    });
                    let number = u8::try_from(number).unwrap_or(0);
                    self.number_ids(IdMaker::new(number, wall_ms / 1000));
                    return Ok(());
                }
                Err(ItemError::Conflict { .. }) => {}
                Err(error) => return Err(unavailable(&error)),
            }
        }
        Err(StoreError::Unusable {
            reason: format!("all {NUMBERS} numbers of replicas are taken"),
            hint: "those of replicas that are gone are free again after a minute".to_owned(),
        })
    }

    async fn write_number(&self, number: u16, expect: Expect) -> Result<Version, ItemError> {
        let write = DocWrite {
            id: document(number),
            expect,
            body: Some(json!({ "owner": self.ctx.replicas.run })),
        };
        only(self.ctx.store.put_docs(DocKind::Replica, vec![write]).await)
    }

    /// The document's version, if the number is this run's.
    async fn owned(&self, number: u16) -> Result<Option<Version>, StoreError> {
        let id = document(number);
        let found = self.ctx.store.get_doc(DocKind::Replica, &id).await?;
        let ours = found.filter(|doc| {
            doc.body.get("owner").and_then(Value::as_str) == Some(&self.ctx.replicas.run)
        });
        Ok(ours.map(|doc| doc.version))
    }

    /// Frees this replica's number, unless it is another's by now.
    pub(crate) async fn free_number(&self) {
        let Some(known) = self.ctx.replicas.numbered() else {
            return;
        };
        let Ok(Some(version)) = self.owned(known.value).await else {
            return;
        };
        let write = DocWrite {
            id: document(known.value),
            expect: Expect::Version(version),
            body: None,
        };
        if let Err(error) = only(self.ctx.store.put_docs(DocKind::Replica, vec![write]).await) {
            tracing::debug!(%error, "this replica's number is free in a minute");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc, time::Duration};

    use fairlead_job::JobId;
    use fairlead_store::JobStore;

    use crate::{
        Clock, Config, Pause,
        flows::Flows,
        testing::{embedded, flows_over},
    };

    const START_MS: u64 = 1_795_228_560_000;

    async fn step(ms: u64) {
        tokio::time::advance(Duration::from_millis(ms)).await;
    }

    async fn joined(data: &tempfile::TempDir, store: &Arc<dyn JobStore>, name: &str) -> Arc<Flows> {
        let config = Config {
            replica: name.to_owned(),
            ..Config::embedded(data.path().to_owned())
        };
        let clock = Clock::simulated(START_MS, Arc::new(Pause::default()));
        let flows = flows_over(Arc::clone(store), config, clock);
        flows.peers.join().await.unwrap();
        flows
    }

    /// `a` is stopped for 75 s while `b` goes on, and others come until one has its number. Its number before that.
    async fn stopped_for_75_s(data: &tempfile::TempDir) -> (Arc<Flows>, Vec<Arc<Flows>>, u16) {
        let store = embedded(data);
        let (a, b) = (
            joined(data, &store, "a").await,
            joined(data, &store, "b").await,
        );
        let number = a.ctx.replicas.number().unwrap();
        b.peers.be_known().await.unwrap();
        step(75_000).await;
        b.peers.be_known().await.unwrap();
        let mut others = vec![b];
        while others
            .iter()
            .all(|other| other.ctx.replicas.number() != Some(number))
        {
            // Else all numbers may be taken before `a` needs another.
            if others.len() == 50 {
                others.remove(1).peers.leave().await;
            }
            others.push(joined(data, &store, "c").await);
        }
        (a, others, number)
    }

    fn ids(cores: &[&Flows]) -> Vec<JobId> {
        let all = (0..50).flat_map(|_| cores.iter().map(|flows| flows.peers.next_id()));
        all.collect()
    }

    fn are_distinct(ids: &[JobId]) -> bool {
        ids.iter().collect::<BTreeSet<_>>().len() == ids.len()
    }

    #[tokio::test(start_paused = true)]
    async fn a_replica_that_was_stopped_takes_another_number_before_the_next_id() {
        let data = tempfile::tempdir().unwrap();
        let (a, others, number) = stopped_for_75_s(&data).await;
        step(1_000).await;
        a.peers.sure_of_number().await.unwrap();
        assert_ne!(a.ctx.replicas.number(), Some(number));
        step(1_000).await;
        let last = others.last().unwrap();
        assert!(are_distinct(&ids(&[&a, last])));
        // Who stops frees what is its own, and nothing else.
        a.peers.leave().await;
        last.peers.sure_of_number().await.unwrap();
        assert_eq!(last.ctx.replicas.number(), Some(number));
    }

    #[tokio::test(start_paused = true)]
    async fn a_beat_finds_out_that_the_number_is_lost() {
        let data = tempfile::tempdir().unwrap();
        let (a, _others, number) = stopped_for_75_s(&data).await;
        a.peers.be_known().await.unwrap();
        assert_ne!(a.ctx.replicas.number(), Some(number));
    }

    /// It is stopped between the look and the id: no clock tells it in time.
    #[tokio::test(start_paused = true)]
    async fn ids_that_are_made_before_the_number_is_sure_meet_no_others() {
        let data = tempfile::tempdir().unwrap();
        let (a, others, number) = stopped_for_75_s(&data).await;
        assert_eq!(a.ctx.replicas.number(), Some(number));
        step(5_000).await;
        assert!(are_distinct(&ids(&[&a, others.last().unwrap()])));
    }

    #[tokio::test(start_paused = true)]
    async fn a_number_that_nobody_took_is_kept() {
        let data = tempfile::tempdir().unwrap();
        let store = embedded(&data);
        let a = joined(&data, &store, "a").await;
        let number = a.ctx.replicas.number();
        step(75_000).await;
        a.peers.sure_of_number().await.unwrap();
        a.peers.be_known().await.unwrap();
        assert_eq!(a.ctx.replicas.number(), number);
    }
}
