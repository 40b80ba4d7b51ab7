//! Tests of copies of the embedded store: backups of a busy lab, restores, and copies that are refused.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use fairlead_api::Grant;
use fairlead_tests::{Http, Ran, Scheduler, Store, Testbox, eventually, fairlead, jobs, settings};
use reqwest::Method;
use tempfile::TempDir;
use tokio::task::JoinSet;

/// Acknowledged ids, each with a word about it.
type Ids = Arc<Mutex<BTreeSet<String>>>;

fn folder() -> TempDir {
    TempDir::with_prefix("fairlead-backup-").expect("a folder")
}

fn data(scheduler: &Scheduler) -> PathBuf {
    scheduler.data()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of letters")
}

fn backup(scheduler: &Scheduler, to: &Path) -> Ran {
    let data = data(scheduler);
    let words = ["backup", text(to), "--data", text(&data)];
    fairlead(scheduler.folder(), &[], &words)
}

fn restore(scheduler: &Scheduler, from: &Path, more: &[&str]) -> Ran {
    let data = data(scheduler);
    let mut words = vec!["restore", text(from), "--data", text(&data)];
    words.extend(more);
    fairlead(scheduler.folder(), &[], &words)
}

/// Returns the stages of all jobs of the lab, by id. Each job must be listed once.
async fn all_jobs(http: &Http) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut after = String::new();
    loop {
        let page = http
            .get(&format!("/scheduler/v1/jobs?limit=500{after}"))
            .await
            .json();
        let jobs = page["jobs"].as_array().expect("a page of jobs");
        for job in jobs {
            let field = |name: &str| job[name].as_str().expect(name).to_owned();
            let known = all.insert(field("job_id"), field("job_stage"));
            assert_eq!(known, None, "listed twice: {job}");
        }
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return all,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_of_a_running_lab_alone_starts_no_second_one() {
    let mut scheduler = Scheduler::start(Store::Embedded).await;
    let ids = scheduler
        .http()
        .submit(&jobs::times(3, &jobs::dc("alice")))
        .await;
    let second = folder();
    fs::copy(
        data(&scheduler).join("fairlead.db"),
        second.path().join("fairlead.db"),
    )
    .expect("a copy");
    let serve = ["serve", "--data", ".", "--listen", "127.0.0.1:0"];
    for _ in 0..2 {
        let refused = fairlead(second.path(), &[], &serve);
        refused.expect_code(5);
        for said in [
            "without its log",
            "fairlead.db-wal",
            "fairlead backup",
            "restore --as-it-is",
        ] {
            assert!(refused.err.contains(said), "{}", refused.err);
        }
    }
    // A crash needs no repair: the files are intact.
    for _ in 0..3 {
        scheduler.kill();
        scheduler.restart().await;
    }
    for id in ids {
        assert_eq!(scheduler.http().field(&id, "job_stage").await, "submit");
    }
}

/// People who submit and a testbox that runs their jobs, until they are told to stop.
struct Load {
    stop: Arc<AtomicBool>,
    acknowledged: Ids,
    ran: Arc<AtomicUsize>,
    tasks: JoinSet<()>,
}

impl Load {
    fn on(http: &Http) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let acknowledged = Ids::default();
        let ran = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for account in ["alice", "bob"] {
            let (http, stop, ids) = (http.clone(), Arc::clone(&stop), Arc::clone(&acknowledged));
            tasks.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let new = http.submit(&jobs::times(5, &jobs::dc(account))).await;
                    ids.lock().expect("a lock").extend(new);
                }
            });
        }
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&ran));
        let mut testbox = Testbox::dc(http, "server-1", 8 << 10);
        tasks.spawn(async move {
            while !stopped.load(Ordering::Relaxed) {
                for grant in testbox.ask(0).await {
                    testbox.finish(&grant).await;
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self {
            stop,
            acknowledged,
            ran,
            tasks,
        }
    }

    fn acknowledged(&self) -> BTreeSet<String> {
        self.acknowledged.lock().expect("a lock").clone()
    }

    fn ran(&self) -> usize {
        self.ran.load(Ordering::Relaxed)
    }

    async fn end(mut self) -> BTreeSet<String> {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(task) = self.tasks.join_next().await {
            task.expect("the load goes on to its end");
        }
        self.acknowledged.lock().expect("a lock").clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_lab_goes_on_while_it_is_copied_and_nothing_acknowledged_is_lost() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let load = Load::on(&http);
    eventually("jobs run", async || {
        (load.acknowledged().len() > 50 && load.ran() > 5).then_some(())
    })
    .await;
    let mut copy = (PathBuf::new(), BTreeSet::new());
    // Repeats until jobs ran while a copy was made.
    for n in 0.. {
        assert!(n < 50, "no job ran during {n} backups");
        let (file, ran) = (scheduler.folder().join(format!("copy-{n}.db")), load.ran());
        copy = (file.clone(), load.acknowledged());
        backup(&scheduler, &file).expect_code(0);
        if load.ran() > ran + 1 {
            break;
        }
    }
    let all = load.end().await;
    let (copy, before) = copy;
    let there = all_jobs(&http).await;
    assert!(all.iter().all(|id| there.contains_key(id)));

    // Neither a running lab nor one with data is overwritten.
    let mut other = Scheduler::start(Store::Embedded).await;
    let own = other.http().submit(&jobs::dc("carol")).await.remove(0);
    let refused = restore(&other, &copy, &["--replace"]);
    refused.expect_code(5);
    assert!(refused.err.contains("locked by process"), "{}", refused.err);
    other.stop().await;
    let refused = restore(&other, &copy, &[]);
    refused.expect_code(5);
    assert!(
        refused.err.contains("already has a store"),
        "{}",
        refused.err
    );
    assert!(refused.err.contains("--replace"), "{}", refused.err);
    let done = restore(&other, &copy, &["--replace"]);
    assert!(done.expect_code(0).contains("fairlead.db.replaced-1"));
    other.restart().await;
    let restored = all_jobs(&other.http()).await;
    assert!(!restored.contains_key(&own));
    let lost: Vec<_> = before
        .iter()
        .filter(|id| !restored.contains_key(*id))
        .collect();
    assert!(lost.is_empty(), "acknowledged before the backup: {lost:?}");
    assert!(restored.keys().all(|id| all.contains(id)), "{restored:?}");
    // All of the copy is of one moment, so its jobs can be finished.
    let mut testbox = Testbox::dc(&other.http(), "server-2", 64 << 10);
    let waiting = restored.values().filter(|stage| *stage == "submit").count();
    let ran: BTreeSet<String> = testbox.run_all(2).await.into_iter().collect();
    assert!(ran.len() >= waiting, "{} of {waiting}", ran.len());
}

async fn begin(testbox: &Testbox, grant: &Grant) {
    let reply = testbox.report(grant, "job_stage=running").await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}

async fn append(http: &Http, grant: &Grant, words: &str) -> u64 {
    let path = format!(
        "/scheduler/v1/jobs/{}/log?attempt={}&offset=0&job_token={}",
        grant.job_id, grant.attempt, grant.job_token
    );
    let kind = "application/octet-stream";
    let body = words.as_bytes().to_vec();
    let reply = http.send(Method::POST, &path, kind, body).await;
    reply.json()["size"].as_u64().expect("a size")
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_ran_since_the_backup_run_again_and_their_hosts_are_told() {
    let mut scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let mut testbox = Testbox::dc(&http, "server-1", 8 << 10);
    let one = async || http.submit(&jobs::dc("alice")).await.remove(0);
    let ended = one().await;
    let grant = testbox.take().await;
    testbox.finish(&grant).await;
    let running = one().await;
    let run = testbox.take().await;
    begin(&testbox, &run).await;
    let still = one().await;
    let goes_on = testbox.take().await;
    begin(&testbox, &goes_on).await;
    let waiting = one().await;
    let copy = scheduler.folder().join("copy.db");
    backup(&scheduler, &copy).expect_code(0);
    // After the copy one job starts, one ends, and a new one starts.
    let begun = testbox.take().await;
    assert_eq!(begun.job_id, waiting);
    begin(&testbox, &begun).await;
    append(&http, &begun, "the first time\n").await;
    testbox.finish_running(&run).await;
    let new = one().await;
    let unknown = testbox.take().await;
    begin(&testbox, &unknown).await;
    scheduler.kill();
    let done = restore(&scheduler, &copy, &["--replace"]);
    assert!(
        done.expect_code(0).contains("1 folder or log"),
        "{}",
        done.out
    );
    scheduler.restart().await;

    // The host is told which jobs are no longer its own; the one that has run since before the copy goes on.
    let mut told = testbox.heartbeat().await;
    told.sort();
    let mut expected = vec![waiting.clone(), new.clone()];
    expected.sort();
    assert_eq!(told, expected);
    testbox
        .report(&begun, "job_stage=finish&job_health=success")
        .await
        .refusal();
    assert_eq!(
        http.get(&format!("/scheduler/v1/jobs/{new}")).await.status,
        404
    );
    testbox.drop_job(&waiting);
    testbox.drop_job(&new);
    testbox.finish_running(&goes_on).await;
    assert_eq!(http.field(&still, "job_health").await, "success");
    // The others run again, each once.
    let mut again = BTreeMap::new();
    eventually("both run again", async || {
        for grant in testbox.ask(1).await {
            begin(&testbox, &grant).await;
            let size = append(&http, &grant, "again\n").await;
            testbox.finish_running(&grant).await;
            assert_eq!(again.insert(grant.job_id, (grant.attempt, size)), None);
        }
        (again.len() == 2).then_some(())
    })
    .await;
    let expected = [(running, (2, 6)), (waiting.clone(), (1, 6))];
    assert_eq!(again, BTreeMap::from(expected));
    assert_eq!(testbox.ask(0).await, []);
    let log = http.get(&format!("/scheduler/v1/jobs/{waiting}/log")).await;
    assert_eq!(log.text, "again\n");
    assert_eq!(http.field(&ended, "job_health").await, "success");
}

/// Runs a command with a limit on the size of files, as on a full disk.
fn limited(kb: u32, words: &[&str]) -> std::process::Output {
    let script = format!("trap '' XFSZ; ulimit -f {kb}; exec \"$@\"");
    Command::new("bash")
        .args(["-c", &script, "bash"])
        .arg(settings::binary("fairlead"))
        .args(words)
        .output()
        .expect("bash runs")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_cannot_be_written_leaves_no_file() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let job = jobs::with(
        jobs::dc("alice"),
        &serde_json::json!({"note": "x".repeat(20_000)}),
    );
    scheduler.http().submit(&jobs::times(20, &job)).await;
    let (folder, data) = (folder(), data(&scheduler));
    let file = folder.path().join("copy.db");
    let words = ["backup", text(&file), "--data", text(&data)];
    let failed = limited(100, &words);
    assert_eq!(failed.status.code(), Some(5), "{failed:?}");
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(
        said.contains("cannot write") && said.contains("copy.db"),
        "{said}"
    );
    let left: Vec<_> = fs::read_dir(folder.path())
        .expect("the folder")
        .flatten()
        .collect();
    assert!(left.is_empty(), "{left:?}");
    // The same command works with enough room.
    backup(&scheduler, &file).expect_code(0);
    let left = fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(left, 1);
}
