//! Somebody who uses a lab from the command line.

use tempfile::TempDir;

use crate::{
    Agent, Http, Ran, Scheduler, Store, Terminal, eventually, fairlead, on_terminal, reaper,
};

/// A matrix of four jobs. Those with two threads fail.
const MATRIX: &str = "\
suite: matrix
testbox: dc
need_memory: 16M
nr_threads: [1, 2]
mode: [read, write]
script: |
  echo \"threads $nr_threads mode $mode\"
  test \"$nr_threads\" = 1
";

/// A user with a lab, who submits as `alice`.
#[derive(Debug)]
pub struct Person {
    /// Folder of the commands. It contains `matrix.yaml`.
    pub folder: TempDir,
    /// Scheduler of the lab.
    pub scheduler: Scheduler,
    /// HTTP client of the scheduler.
    pub http: Http,
}

impl Person {
    /// Creates a lab without hosts.
    pub async fn new(store: Store) -> Self {
        let folder = reaper::folder("fairlead-daily-");
        let scheduler = Scheduler::start(store).await;
        let http = scheduler.http();
        std::fs::write(folder.path().join("matrix.yaml"), MATRIX)
            .unwrap_or_else(|error| panic!("a job file: {error}"));
        Self {
            folder,
            scheduler,
            http,
        }
    }

    /// Starts the host `server-1`, which takes jobs from now on.
    pub fn agent(&self) -> Agent {
        let more = ["--kind", "dc", "--memory", "1g"];
        Agent::start(&self.scheduler.url(), "server-1", &more)
    }

    /// Runs a command to its end.
    pub fn run(&self, words: &[&str]) -> Ran {
        let url = self.scheduler.url();
        fairlead(self.folder.path(), &variables(&url), words)
    }

    /// Runs a command on a terminal to its end.
    pub fn on_terminal(&self, words: &[&str], columns: u16, typed: &str) -> Ran {
        let url = self.scheduler.url();
        on_terminal(self.folder.path(), &variables(&url), words, columns, typed)
    }

    /// Starts a command on a terminal.
    pub fn terminal(&self, words: &[&str], columns: u16) -> Terminal {
        let url = self.scheduler.url();
        Terminal::start(self.folder.path(), &variables(&url), words, columns)
    }

    /// Submits the matrix, and returns the submit and the ids.
    pub async fn submit(&self) -> (String, Vec<String>) {
        let ran = self.run(&["submit", "--parsable", "matrix.yaml"]);
        let ids: Vec<String> = ran.expect_code(0).lines().map(str::to_owned).collect();
        assert_eq!(ids.len(), 4, "{}", ran.out);
        let submit = self.http.field(&ids[0], "submit_id").await;
        // Waits until searches see the submit.
        eventually("the jobs are listed", async || {
            let listed = self.ids(&["jobs", "--submit-id", &submit]).len();
            (listed == 4).then_some(())
        })
        .await;
        (submit, ids)
    }

    /// Returns the ids in a list.
    pub fn ids(&self, words: &[&str]) -> Vec<String> {
        let mut all = words.to_vec();
        all.push("--parsable");
        let ran = self.run(&all);
        ran.expect_code(0).lines().map(str::to_owned).collect()
    }
}

fn variables(url: &str) -> [(&str, &str); 2] {
    [("FAIRLEAD_SERVER", url), ("FAIRLEAD_ACCOUNT", "alice")]
}
