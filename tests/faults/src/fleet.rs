//! All testboxes, and the switch of each.

use std::{sync::Arc, time::Duration};

use fairlead_api::{Client, ClientConfig, ClientError};
use tokio::{sync::watch, task::JoinSet};

use super::{
    agent::{Lines, Power, Testbox, live},
    history::History,
};

/// Timeout of a replica's answer, in addition to a long poll.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// Timeout of a heartbeat's answer.
const BEAT_TIME: Duration = Duration::from_secs(2);
/// Every third testbox is a hw machine. The next constant is the memory of the other hosts, MB.
const HW_EVERY: usize = 3;
const HOST_MB: u32 = 4096;
/// Memory of a hw machine, MB.
const HW_MB: u32 = 16_384;

/// Testboxes of a run.
#[derive(Debug)]
pub(super) struct Fleet {
    about: Vec<Testbox>,
    switches: Vec<watch::Sender<Power>>,
    lives: JoinSet<()>,
}

impl Fleet {
    /// Starts `count` testboxes. Each begins with another one of `urls`.
    pub(super) fn start(
        count: usize,
        urls: &[String],
        history: &Arc<History>,
    ) -> Result<Self, ClientError> {
        let mut fleet = Self {
            about: testboxes(count),
            switches: Vec::new(),
            lives: JoinSet::new(),
        };
        for (number, about) in fleet.about.iter().enumerate() {
            let mut urls = urls.to_vec();
            let first = number % urls.len().max(1);
            urls.rotate_left(first);
            let line = |request_timeout| {
                Client::new(ClientConfig {
                    connect_timeout: BEAT_TIME,
                    request_timeout,
                    retry_for: Duration::ZERO,
                    ..ClientConfig::new(urls.clone())
                })
            };
            let lines = Lines {
                client: line(ANSWER_TIME)?,
                beater: line(BEAT_TIME)?,
            };
            let (switch, power) = watch::channel(Power::On);
            fleet.switches.push(switch);
            let history = Arc::clone(history);
            fleet
                .lives
                .spawn(live(about.clone(), lines, history, power));
        }
        Ok(fleet)
    }

    /// Returns the testboxes.
    pub(super) fn testboxes(&self) -> &[Testbox] {
        &self.about
    }

    /// Switches one testbox, and returns its name.
    pub(super) fn switch(&self, number: usize, power: Power) -> String {
        if let Some(switch) = self.switches.get(number) {
            switch.send_replace(power);
        }
        let about = self.about.get(number);
        about.map_or_else(String::new, |about| about.host.clone())
    }

    /// Switches all testboxes on.
    pub(super) fn all_on(&self) {
        for switch in &self.switches {
            switch.send_replace(Power::On);
        }
    }

    /// Ends all testboxes.
    pub(super) async fn end(mut self) {
        self.switches.clear();
        self.lives.shutdown().await;
    }
}

/// Returns the properties of `count` testboxes.
pub(super) fn testboxes(count: usize) -> Vec<Testbox> {
    let one = |number: usize| {
        let hw = number.is_multiple_of(HW_EVERY);
        Testbox {
            host: format!("{}-{number:02}", if hw { "box" } else { "host" }),
            hw,
            memory_mb: if hw { HW_MB } else { HOST_MB },
        }
    };
    (0..count).map(one).collect()
}
