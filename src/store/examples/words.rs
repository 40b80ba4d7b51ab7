//! Measures what searchable words cost a submit into the embedded store, beside other places for them.
//!
//! `cargo run --release -p fairlead-store --example words -- [JOBS] [ROUNDS]`
//!
//! It writes jobs with the statements of the store, but without its queue and its JSON, so that the shares are those of
//! SQLite. All ways take turns within one run. It is no test: it asserts only work, never time.
//!
//! Results with two cores shared with other builds (load 5), and the file in memory, so that the disk adds nothing;
//! 20,000 jobs, medians of nine rounds. Submits are as fast as without words, times:
//!
//! | words | 1 a transaction | 64 | 500 | a search in 20,000 jobs, ms |
//! |---|---|---|---|---|
//! | in a table, a statement a job | 0.875 | 0.933 | 0.850 | 9.7 to 13.3 |
//! | in a table, a statement for 50 jobs | 0.884 | 0.897 | 0.787 | 9.7 to 10.5 |
//! | in a table without rowids | 0.902 | 0.847 | 0.752 | 8.5 to 13.5 |
//! | in a column of the row | 0.996 | 0.906 | 0.902 | 4.5 to 5.7 |
//!
//! Shares differ by about 0.05 from run to run. Statements cost little, so fewer of them gain nothing. A second tree
//! costs a page a transaction. The rest of the column's cost is its 100 bytes a job, which are written twice: into the
//! log, and from there into the file.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement: it may panic, prints, and asks the clock and its arguments"
)]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use fairlead_store::EmbeddedStore;
use rusqlite::{Connection, params};

/// Where the words are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nowhere: what the others are compared with.
    None,
    /// In a table of their own, a statement for each job: as the store had them.
    Table,
    /// In the same table, one statement for up to 50 jobs.
    Batch,
    /// In such a table without rowids.
    NoRowid,
    /// In a column of the row for searches: as the store has them.
    Column,
}

const PLACES: [Place; 5] = [
    Place::None,
    Place::Table,
    Place::Batch,
    Place::NoRowid,
    Place::Column,
];
/// Jobs of one transaction.
const GROUPS: [usize; 3] = [1, 64, 500];
/// Jobs of one statement, where one carries several.
const TOGETHER: usize = 50;
const FIRST_ID: usize = 2_611_210_236_110_000_000;
const WORDS: &str = "\nsuite=hackbench\nnr_threads=8\nmode=process\nipc=pipe\nos=openeuler\nos_version=22.03\narch=aarch64\n";

fn main() {
    let mut args = std::env::args().skip(1);
    let mut number = |or: usize| args.next().map_or(or, |text| text.parse().unwrap());
    let (jobs, rounds) = (number(20_000), number(5));
    println!("{jobs} jobs, {rounds} rounds, medians; of the time without words");
    for group in GROUPS {
        // A transaction a job takes its time.
        let jobs = if group == 1 { jobs / 10 } else { jobs };
        let mut times: Vec<Vec<Figures>> = vec![Vec::new(); PLACES.len()];
        for round in 0..rounds {
            for turn in 0..PLACES.len() {
                let at = (turn + round) % PLACES.len();
                times[at].push(measure(PLACES[at], jobs, group));
            }
        }
        let median = |figures: &[Figures], of: fn(&Figures) -> Duration| {
            let mut all: Vec<Duration> = figures.iter().map(of).collect();
            all.sort_unstable();
            all[all.len() / 2]
        };
        println!("{group} a transaction:");
        let none = median(&times[0], |figures| figures.submit);
        for (place, figures) in PLACES.iter().zip(&times) {
            let submit = median(figures, |figures| figures.submit);
            let ratio = none.as_secs_f64() / submit.as_secs_f64();
            let each = submit / u32::try_from(jobs).unwrap();
            let claim = median(figures, |figures| figures.claim) / u32::try_from(jobs).unwrap();
            let search = median(figures, |figures| figures.search);
            println!(
                "  {place:?}: {ratio:.3} as fast, {each:.1?} a submit, {claim:.1?} a claim, a search {search:.1?}"
            );
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Figures {
    submit: Duration,
    claim: Duration,
    search: Duration,
}

/// A new file of the present layout, with the words in this place.
fn open(dir: &Path, place: Place) -> Connection {
    drop(EmbeddedStore::open(dir).unwrap());
    let conn = Connection::open(dir.join("fairlead.db")).unwrap();
    let set =
        "PRAGMA journal_mode = wal; PRAGMA synchronous = full; PRAGMA wal_autocheckpoint = 8000;
        PRAGMA cache_size = -65536; PRAGMA temp_store = memory;";
    conn.execute_batch(set).unwrap();
    let change = match place {
        Place::None | Place::Column => "",
        Place::Table | Place::Batch => {
            "CREATE TABLE words (job_id INTEGER PRIMARY KEY, words TEXT NOT NULL);"
        }
        Place::NoRowid => {
            "CREATE TABLE words (job_id INTEGER PRIMARY KEY, words TEXT NOT NULL) WITHOUT ROWID;"
        }
    };
    conn.execute_batch(change).unwrap();
    conn
}

fn measure(place: Place, jobs: usize, group: usize) -> Figures {
    let dir = tempfile::tempdir().unwrap();
    let conn = open(dir.path(), place);
    let ids: Vec<usize> = (FIRST_ID..FIRST_ID + jobs).collect();
    let start = Instant::now();
    for ids in ids.chunks(group) {
        submit(&conn, place, ids);
    }
    let submit = start.elapsed();
    let start = Instant::now();
    for ids in ids.chunks(group) {
        let tx = conn.unchecked_transaction().unwrap();
        claim(&tx, ids);
        tx.commit().unwrap();
    }
    let claim = start.elapsed();
    let start = Instant::now();
    let found: i64 = conn
        .query_row(search(place), ["\nnr_threads=9\n"], |row| row.get(0))
        .unwrap();
    assert_eq!(found, 0);
    Figures {
        submit,
        claim,
        search: start.elapsed(),
    }
}

fn search(place: Place) -> &'static str {
    match place {
        Place::None | Place::Column => "SELECT COUNT(*) FROM jobs WHERE instr(words, ?1) > 0",
        Place::Table | Place::Batch | Place::NoRowid => {
            "SELECT COUNT(*) FROM jobs WHERE EXISTS
                (SELECT 1 FROM words w WHERE w.job_id = jobs.job_id AND instr(w.words, ?1) > 0)"
        }
    }
}

fn submit(conn: &Connection, place: Place, ids: &[usize]) {
    let tx = conn.unchecked_transaction().unwrap();
    {
        let prepare = |sql: &str| tx.prepare_cached(sql).unwrap();
        let mut state =
            prepare("INSERT OR IGNORE INTO states (job_id, seq, state) VALUES (?1, ?2, ?3)");
        let mut body = prepare("INSERT INTO bodies (job_id, body) VALUES (?1, ?2)");
        let (more, value) = match place {
            Place::Column => (", words", ", ?6"),
            _ => ("", ""),
        };
        let mut row = prepare(&format!(
            "INSERT INTO jobs (job_id, waiting, ready, stage, health, host, rank, account, queue, suite, submit_id,
                group_id, tbox_group, submit_ms, fingerprint{more})
             VALUES (?1, 1, 1, 'submit', '', '', 1, ?2, ?2, 'hackbench', ?3, ?3, 'vm-2p8g', ?4, ?5{value})"
        ));
        let mut key = prepare(
            "INSERT INTO wait_keys (host_key, rank, job_id, queue, account, shape) VALUES (?1, 1, ?2, ?3, ?3, ?4)",
        );
        for &n in ids {
            let id = i64::try_from(n).unwrap();
            let account = format!("account-{}", n % 300);
            let submit = format!("s-{}", n / 100);
            let text = format!(
                "{{\"job_id\":\"{n}\",\"account\":\"{account}\",\"filler\":\"{}\"}}",
                "x".repeat(540)
            );
            state.execute(params![id, id, text]).unwrap();
            body.execute(params![id, "echo 0123456789abcdef\n".repeat(90)])
                .unwrap();
            let fingerprint = format!("{:032x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            if place == Place::Column {
                row.execute(params![id, account, submit, id, fingerprint, WORDS])
                    .unwrap();
            } else {
                row.execute(params![id, account, submit, id, fingerprint])
                    .unwrap();
            }
            if matches!(place, Place::Table | Place::NoRowid) {
                let mut words = prepare("INSERT INTO words (job_id, words) VALUES (?1, ?2)");
                words.execute(params![id, WORDS]).unwrap();
            }
            for host_key in ["vm.x86_64".to_owned(), format!("vm@{}", n % 99)] {
                key.execute(params![host_key, id, account, id % 20])
                    .unwrap();
            }
        }
        if place == Place::Batch {
            for ids in ids.chunks(TOGETHER) {
                together(&tx, ids);
            }
        }
        prepare("UPDATE meta SET value = ?1 WHERE key = 'seq'")
            .execute([i64::try_from(ids[0]).unwrap()])
            .unwrap();
    }
    tx.commit().unwrap();
}

/// Words of several jobs in one statement.
fn together(conn: &Connection, ids: &[usize]) {
    let rows = vec!["(?, ?)"; ids.len()].join(",");
    let mut words = conn
        .prepare_cached(&format!("INSERT INTO words (job_id, words) VALUES {rows}"))
        .unwrap();
    for (n, id) in ids.iter().enumerate() {
        words
            .raw_bind_parameter(2 * n + 1, i64::try_from(*id).unwrap())
            .unwrap();
        words.raw_bind_parameter(2 * n + 2, WORDS).unwrap();
    }
    words.raw_execute().unwrap();
}

/// As a claim changes the row of a job.
fn claim(conn: &Connection, ids: &[usize]) {
    let mut row = conn
        .prepare_cached(
            "UPDATE jobs SET waiting = 0, ready = 1, stage = 'dispatch', health = '', host = 'host-1', alarm_ms = 0
             WHERE job_id = ?1",
        )
        .unwrap();
    let mut key = conn
        .prepare_cached("DELETE FROM wait_keys WHERE host_key = ?1 AND rank = 1 AND job_id = ?2")
        .unwrap();
    for &n in ids {
        let id = i64::try_from(n).unwrap();
        row.execute([id]).unwrap();
        for host_key in ["vm.x86_64".to_owned(), format!("vm@{}", n % 99)] {
            key.execute(params![host_key, id]).unwrap();
        }
    }
}
