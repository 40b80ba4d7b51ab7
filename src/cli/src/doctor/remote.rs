//! Checks of the configured schedulers: their clocks, their limits, and problems for their admins.

use std::collections::BTreeMap;

use fairlead_api::{
    DataView, HealthView, StoreProblem, Version,
    client::{Client, ClientError},
};
use serde::Serialize;
use serde_json::Value;

use super::check::{Check, FILES_MIN, some};
use crate::{clock, exit::Failure, settings::Settings};

const SCHEDULER: &str = "scheduler";
const HEALTH: &str = "health";
const DATA: &str = "data folder";
const CLOCK: &str = "clocks";
const FILES: &str = "open files of the scheduler";
const TESTBOXES: &str = "testbox accounts";
const QUEUES: &str = "open queues";
const AGENTS: &str = "duplicate agents";

/// Maximum difference of clocks, ms. Times of jobs are then right to a second or two.
const SKEW_MAX_MS: i64 = 2_000;

/// A replica that answered, and the times of this machine's clock before and after.
#[derive(Debug, Clone)]
struct Sighting {
    url: String,
    version: Version,
    before_ms: u64,
    after_ms: u64,
}

impl Sighting {
    /// Returns the lead of its clock over this machine's, and the uncertainty, ms. `None`: it does not report its time.
    fn ahead_ms(&self) -> Option<(i64, i64)> {
        let ms = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
        let said = self.version.time_ms?;
        let middle = self.before_ms.midpoint(self.after_ms);
        let unsure = self.after_ms.saturating_sub(self.before_ms) / 2;
        Some((ms(said).saturating_sub(ms(middle)), ms(unsure)))
    }

    /// Returns true if it reports open queues and duplicate agents. Versions that report their time do.
    fn tells(&self) -> bool {
        self.version.time_ms.is_some()
    }

    fn name(&self) -> String {
        format!("{} ({})", self.version.replica, self.url)
    }
}

/// Runs all checks that need a scheduler.
pub(crate) async fn of_scheduler(settings: &Settings) -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    let mut seen = Vec::new();
    for url in &settings.server.value {
        let mut config = settings.client_config();
        config.urls = vec![url.clone()];
        let client = Client::new(config)?;
        let before_ms = clock::now_ms();
        let health = client.health().await;
        let data = health.as_ref().ok().and_then(|health| health.data.clone());
        checks.push(healthy(url, health));
        checks.push(data_folder(url, data));
        match client.version().await {
            Ok(version) => {
                checks.push(Check::ok(
                    SCHEDULER,
                    format!("{} answers, version {}", url, version.version),
                ));
                seen.push(Sighting {
                    url: url.clone(),
                    version,
                    before_ms,
                    after_ms: clock::now_ms(),
                });
            }
            Err(error) => checks.push(not_answering(url, error)),
        }
    }
    checks.push(clocks(&seen));
    checks.push(files(&seen));
    if seen.is_empty() {
        let why = "no scheduler answers";
        let todo = "set one with --server";
        checks.extend([TESTBOXES, QUEUES, AGENTS].map(|name| Check::not_made(name, why, todo)));
        return Ok(checks);
    }
    let client = Client::new(settings.client_config())?;
    let tells = seen.iter().all(Sighting::tells);
    checks.push(made(TESTBOXES, client.accounts().await, testboxes));
    let judge = |list: &[Value]| queues(list, tells);
    checks.push(made(QUEUES, client.queues().await, judge));
    let judge = |list: &[Value]| agents(list, tells);
    checks.push(made(AGENTS, client.hosts(&[]).await, judge));
    Ok(checks)
}

/// Checks that a scheduler takes requests, and that its store reads and writes.
fn healthy(url: &str, health: Result<HealthView, ClientError>) -> Check {
    let health = match health {
        Ok(health) => health,
        Err(error) => {
            let failure = Failure::from(error);
            return Check::not_made(HEALTH, failure.message, failure.hint);
        }
    };
    if let Some(problem) = health.problem() {
        let todo = if health.reads.is_some() || health.writes.is_some() {
            "see docs/on-call.md, the store takes no writes"
        } else if health.clock_off_ms.is_some() {
            "correct the clock of its machine: chronyc tracking, timedatectl"
        } else {
            "wait for its successor, or ask another replica"
        };
        return Check::problem(HEALTH, format!("{url}: {problem}"), todo);
    }
    if let Some(lacks) = &health.undeletable {
        let problem =
            format!("{url}: old jobs are not deleted: the login of the store lacks {lacks}");
        let todo = "add that right to its role, or keep jobs for ever: keep_months 0";
        return Check::problem(HEALTH, problem, todo);
    }
    Check::ok(
        HEALTH,
        format!("{url} takes requests, and its store reads and writes"),
    )
}

/// Checks the room for results and logs.
fn data_folder(url: &str, data: Option<DataView>) -> Check {
    let Some(data) = data else {
        let why = "the scheduler does not report the room of its data folder";
        return Check::not_made(
            DATA,
            why,
            "upgrade the scheduler, or run `df -h` and `df -i`",
        );
    };
    if let Some(StoreProblem { problem, .. }) = data.problem {
        let todo = "see docs/on-call.md, a disk is full";
        return Check::problem(DATA, format!("{url}: {problem}"), todo);
    }
    let (free, all) = (data.free_bytes >> 20, data.bytes >> 20);
    let inodes = match data.inodes {
        0 => String::new(),
        inodes => format!(", {} of {inodes} inodes", data.free_inodes),
    };
    Check::ok(DATA, format!("{url} has {free} of {all} MB left{inodes}"))
}

fn not_answering(url: &str, error: ClientError) -> Check {
    let failure = Failure::from(error);
    let todo = if failure.hint.is_empty() {
        "start it, or remove it from --server".to_owned()
    } else {
        failure.hint
    };
    Check::problem(SCHEDULER, format!("{url}: {}", failure.message), todo)
}

/// Returns the check of a list, or the reason why there is none.
fn made<T: Serialize>(
    name: &'static str,
    list: Result<Vec<T>, ClientError>,
    judge: impl Fn(&[Value]) -> Check,
) -> Check {
    let list = match list {
        Ok(list) => list,
        Err(error) => {
            let failure = Failure::from(error);
            return Check::not_made(name, failure.message, failure.hint);
        }
    };
    let values: Vec<Value> = list
        .iter()
        .map(|item| serde_json::to_value(item).unwrap_or_default())
        .collect();
    judge(&values)
}

/// Returns a good result if the scheduler reports such problems, and otherwise that it is too old to know.
fn unsaid(name: &'static str, tells: bool, found: &str) -> Check {
    if tells {
        return Check::ok(name, found);
    }
    let why = "a scheduler is too old to report this";
    Check::not_made(name, why, "check again after an upgrade")
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn clocks(seen: &[Sighting]) -> Check {
    let said: Vec<(&Sighting, (i64, i64))> = seen
        .iter()
        .filter_map(|one| Some((one, one.ahead_ms()?)))
        .collect();
    if said.is_empty() {
        return Check::not_made(
            CLOCK,
            "no scheduler reports its time",
            "upgrade the scheduler, or compare `date` on both machines",
        );
    }
    let wrong: Vec<String> = said
        .iter()
        .filter(|(_, (ahead, unsure))| ahead.abs() - unsure > SKEW_MAX_MS)
        .map(|(one, (ahead, _))| {
            let side = if *ahead > 0 { "ahead of" } else { "behind" };
            format!("{} is {} ms {side} this machine", one.name(), ahead.abs())
        })
        .collect();
    if !wrong.is_empty() {
        return Check::problem(
            CLOCK,
            some(&wrong),
            "synchronize the clocks of all machines: chronyc tracking, timedatectl",
        );
    }
    let most = said.iter().map(|(_, (ahead, unsure))| ahead.abs() + unsure);
    let most = most.max().unwrap_or_default();
    let others = if seen.len() == 1 {
        "; set all replicas in --server to compare them"
    } else {
        ""
    };
    Check::ok(
        CLOCK,
        format!("the clocks agree with this machine within {most} ms{others}"),
    )
}

fn files(seen: &[Sighting]) -> Check {
    let said: Vec<(&Sighting, u64)> = seen
        .iter()
        .filter_map(|one| Some((one, one.version.files_max?)))
        .collect();
    if said.is_empty() {
        return Check::not_made(
            FILES,
            "no scheduler reports its limit of open files",
            "upgrade the scheduler, or look at /proc/PID/limits",
        );
    }
    let few: Vec<String> = said
        .iter()
        .filter(|(_, files_max)| *files_max < FILES_MIN)
        .map(|(one, files_max)| format!("{} may open {files_max}", one.name()))
        .collect();
    if few.is_empty() {
        return Check::ok(
            FILES,
            format!("each scheduler may open {FILES_MIN} or more"),
        );
    }
    Check::problem(
        FILES,
        format!(
            "{}; expected {FILES_MIN}, one for each testbox and client",
            some(&few)
        ),
        "set LimitNOFILE=65536 in the systemd unit, or run ulimit -n 65536 before the start",
    )
}

/// Checks for testbox accounts that act for every host.
fn testboxes(accounts: &[Value]) -> Check {
    let all: Vec<&Value> = accounts
        .iter()
        .filter(|account| text(account, "role") == "testbox")
        .collect();
    let hosts = |account: &Value| account.get("hosts").and_then(Value::as_array).cloned();
    if all.is_empty() {
        return Check::ok(TESTBOXES, "there are none");
    }
    if all.iter().all(|account| hosts(account).is_none()) {
        return Check::not_made(
            TESTBOXES,
            "the scheduler does not report the hosts of the accounts",
            "upgrade the scheduler",
        );
    }
    let every: Vec<String> = all
        .iter()
        .filter(|account| hosts(account).is_none_or(|hosts| hosts.iter().any(|host| host == "*")))
        .map(|account| text(account, "my_account").to_owned())
        .collect();
    if every.is_empty() {
        return Check::ok(TESTBOXES, "each account names its hosts");
    }
    Check::problem(
        TESTBOXES,
        format!("these accounts are valid for every host: {}", some(&every)),
        "set their hosts: fairlead account add NAME --hosts 'rack1-*'",
    )
}

/// Checks for queues that are open because their users were never set.
fn queues(queues: &[Value], tells: bool) -> Check {
    let open: Vec<String> = queues
        .iter()
        .filter(|queue| !text(queue, "warning").is_empty())
        .map(|queue| text(queue, "name").to_owned())
        .collect();
    if open.is_empty() {
        return unsaid(QUEUES, tells, "each queue names its users");
    }
    Check::problem(
        QUEUES,
        format!(
            "these queues name no users, so all accounts may use them: {}",
            some(&open)
        ),
        "set their users: fairlead queues set NAME --users a,b (or all)",
    )
}

/// Checks for hosts whose name two agents have.
fn agents(hosts: &[Value], tells: bool) -> Check {
    let mut twice: BTreeMap<String, String> = BTreeMap::new();
    for host in hosts {
        let conflict = host.get("conflict").filter(|conflict| !conflict.is_null());
        if conflict.is_some() {
            let name = text(host, "hostname");
            twice.insert(name.to_owned(), format!("{name} ({})", text(host, "state")));
        }
    }
    if twice.is_empty() {
        return unsaid(AGENTS, tells, "each host has one agent");
    }
    let names: Vec<String> = twice.into_values().collect();
    Check::problem(
        AGENTS,
        format!("two agents ask under one name: {}", some(&names)),
        "stop one of them, or give it another --host; `fairlead hosts NAME` shows both",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::doctor::check::Verdict;

    fn sighting(replica: &str, time_ms: u64, files_max: u64) -> Sighting {
        Sighting {
            url: format!("http://{replica}"),
            version: Version {
                name: "fairlead".into(),
                version: "1".into(),
                capabilities: Vec::new(),
                replica: replica.into(),
                store: "embedded".into(),
                time_ms: (time_ms > 0).then_some(time_ms),
                files_max: (files_max > 0).then_some(files_max),
            },
            before_ms: 100_000,
            after_ms: 100_200,
        }
    }

    #[test]
    fn a_clock_that_is_wrong_is_named_and_a_slow_answer_is_no_skew() {
        let good = sighting("a", 100_900, 65_536);
        assert_eq!(clocks(std::slice::from_ref(&good)).verdict, Verdict::Ok);
        let behind = clocks(&[good.clone(), sighting("b", 90_000, 65_536)]);
        assert_eq!(behind.verdict, Verdict::Problem);
        assert_eq!(behind.found, "b (http://b) is 10100 ms behind this machine");
        let slow = Sighting {
            after_ms: 110_000,
            ..good
        };
        assert_eq!(clocks(&[slow]).verdict, Verdict::Ok);
        assert_eq!(clocks(&[sighting("old", 0, 0)]).verdict, Verdict::NotMade);
    }

    #[test]
    fn a_full_data_folder_is_a_problem_and_room_is_told() {
        let room = DataView {
            free_bytes: 8 << 20,
            bytes: 48 << 20,
            free_inodes: 5,
            inodes: 9,
            problem: None,
        };
        let ok = data_folder("u", Some(room.clone()));
        assert_eq!(
            (ok.verdict, ok.found.as_str()),
            (Verdict::Ok, "u has 8 of 48 MB left, 5 of 9 inodes")
        );
        let problem = Some(StoreProblem {
            problem: "it is full".to_owned(),
            seconds: 3,
        });
        let full = data_folder("u", Some(DataView { problem, ..room }));
        assert_eq!(full.verdict, Verdict::Problem);
        assert!(full.found.contains("it is full"), "{full:?}");
        assert_eq!(data_folder("u", None).verdict, Verdict::NotMade);
    }

    #[test]
    fn a_scheduler_with_few_files_is_named() {
        assert_eq!(files(&[sighting("a", 1, 65_536)]).verdict, Verdict::Ok);
        let few = files(&[sighting("a", 1, 1024)]);
        assert!(
            few.verdict == Verdict::Problem && few.found.contains("may open 1024"),
            "{few:?}"
        );
        assert_eq!(files(&[]).verdict, Verdict::NotMade);
    }

    #[test]
    fn accounts_queues_and_hosts_are_judged_by_what_the_scheduler_says() {
        let account =
            |hosts: Value| json!({"my_account": "box", "role": "testbox", "hosts": hosts});
        assert_eq!(testboxes(&[json!({"role": "user"})]).verdict, Verdict::Ok);
        assert_eq!(
            testboxes(&[account(json!(["rack1-*"]))]).verdict,
            Verdict::Ok
        );
        assert_eq!(
            testboxes(&[account(json!(["*"]))]).verdict,
            Verdict::Problem
        );
        assert_eq!(
            testboxes(&[json!({"role": "testbox"})]).verdict,
            Verdict::NotMade
        );

        let open = json!({"name": "nightly", "warning": "open to all"});
        let silent = |tells| queues(&[json!({"name": "ann"})], tells).verdict;
        assert_eq!(
            (silent(true), silent(false)),
            (Verdict::Ok, Verdict::NotMade)
        );
        assert!(queues(&[open], true).found.ends_with("nightly"));

        let two = json!({"hostname": "h1", "state": "conflict", "conflict": {"instance": "x"}});
        let silent = |tells| agents(&[json!({"hostname": "h2"})], tells).verdict;
        assert_eq!(
            (silent(true), silent(false)),
            (Verdict::Ok, Verdict::NotMade)
        );
        assert!(agents(&[two], true).found.contains("h1"));
    }
}
