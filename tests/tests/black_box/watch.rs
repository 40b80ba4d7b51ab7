//! Tests of `fairlead watch`: a live table that fits its terminal, gives it back, and stops nothing.

use fairlead_tests::{Person, Store, Terminal, eventually, on_both_stores};
use rustix::{process::Signal, termios::LocalModes};
use serde_json::Value;

on_both_stores!(
    a_table_follows_the_jobs_and_fits_its_terminal,
    a_table_outlives_its_scheduler,
    without_a_terminal_each_change_is_a_line,
);

/// Waits until the page shows all of these.
async fn shown(terminal: &Terminal, parts: &[&str]) {
    let mut last = String::new();
    let what = format!("the page shows {parts:?}");
    eventually(&what, async || {
        let page = last_page(&terminal.printed());
        let shown = page.join("\n");
        let found = parts.iter().all(|part| shown.contains(part));
        last = shown;
        found.then_some(())
    })
    .await;
}

/// Returns the last whole page, without colours.
fn last_page(printed: &str) -> Vec<String> {
    let pages: Vec<&str> = printed.split("\u{1b}[H").skip(1).collect();
    let whole = |page: &&&str| page.matches("\u{1b}[2K").count() >= 24;
    let page = pages.iter().rev().find(whole).copied();
    let page = page.unwrap_or_default();
    let page = page.split("\u{1b}[?7h").next().unwrap_or_default();
    let lines = plain(page);
    let lines = lines.split('\n');
    lines.map(|line| line.trim_end().to_owned()).collect()
}

/// Returns a text without sequences that act on a terminal.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            plain.push(letter);
            continue;
        }
        letters
            .by_ref()
            .take_while(|c| !c.is_ascii_alphabetic())
            .for_each(drop);
    }
    plain
}

async fn a_table_follows_the_jobs_and_fits_its_terminal(store: Store) {
    let lab = Person::new(store).await;
    let held = "suite: held\ntestbox: dc\nneed_memory: 16M\nscript: sleep 600\n";
    std::fs::write(lab.folder.path().join("held.yaml"), held).expect("a job file");
    let (submit, _) = lab.submit().await;
    let mut table = lab.terminal(&["watch", &submit], 80);
    shown(
        &table,
        &["0/4 ended", "4 waiting", "q leaves; the jobs go on"],
    )
    .await;
    assert!(
        !table
            .modes()
            .intersects(LocalModes::ECHO | LocalModes::ICANON)
    );
    assert!(
        table.modes().contains(LocalModes::ISIG),
        "Ctrl-C is a signal"
    );
    // A key without a meaning has no effect.
    table.type_keys("x");
    for columns in [200, 30, 80] {
        table.forget();
        table.resize(columns);
        shown(&table, &["0/4 ended", "4 waiting"]).await;
        let fits = |line: &String| line.chars().count() <= usize::from(columns);
        // A page may have been in transit.
        eventually("the page fits", async || {
            let page = last_page(&table.printed());
            (page.len() == 24 && page.iter().all(fits)).then_some(())
        })
        .await;
    }
    // Ctrl-Z returns the terminal; `fg` goes on.
    table.signal(Signal::TSTP);
    eventually("it is stopped", async || table.is_stopped().then_some(())).await;
    assert!(table.is_as_before(), "{:?}", table.modes());
    table.forget();
    table.signal(Signal::CONT);
    shown(&table, &["4 waiting"]).await;
    assert!(!table.is_as_before());
    // The table ends with the jobs of the submit.
    let _agent = lab.agent();
    let ended = table.end();
    let text = plain(ended.expect_code(0));
    for part in [
        "4/4 ended: 0 waiting, 0 on testboxes, 2 succeeded, 2 failed",
        &format!("all have ended; how: fairlead wait {submit}"),
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // A running job is shown with its host. Leaving the table stops no job.
    let ran = lab.run(&["submit", "--parsable", "held.yaml"]);
    let id = ran.expect_code(0).trim().to_owned();
    for (signal, code) in [
        (None, 0),
        (Some(Signal::INT), 130),
        (Some(Signal::TERM), 130),
    ] {
        let mut table = lab.terminal(&["watch", "--of", "alice", "--since", "1h"], 80);
        shown(
            &table,
            &[
                "4/5 ended",
                "1 on testboxes",
                &id,
                "server-1",
                "held",
                "2 failed",
                "nr_threads=2",
            ],
        )
        .await;
        match signal {
            None => table.type_keys("q"),
            Some(signal) => table.signal(signal),
        }
        let left = table.end();
        let again = "watch them again: fairlead watch --of alice --since 3600s";
        assert!(left.expect_code(code).contains(again), "{}", left.out);
        assert!(left.out.contains("\u{1b}[?1049l"), "{}", left.out);
        assert_eq!(lab.http.field(&id, "job_stage").await, "running");
    }
    let mut table = lab.terminal(&["watch", &id], 30);
    shown(&table, &[&id, "1 on testboxes"]).await;
    table.type_keys("q");
    table.end().expect_code(0);
    lab.run(&["terminate", &id]).expect_code(0);
}

async fn a_table_outlives_its_scheduler(store: Store) {
    let mut lab = Person::new(store).await;
    let (submit, _) = lab.submit().await;
    let mut table = lab.terminal(&["watch", "--submit-id", &submit], 200);
    shown(&table, &["4 waiting"]).await;
    lab.scheduler.kill();
    shown(
        &table,
        &["4 waiting", "trying again: no scheduler answers at"],
    )
    .await;
    lab.scheduler.restart().await;
    shown(&table, &["4 waiting", "connected again after"]).await;
    table.type_keys("q");
    table.end().expect_code(0);
}

async fn without_a_terminal_each_change_is_a_line(store: Store) {
    let lab = Person::new(store).await;
    let (submit, ids) = lab.submit().await;
    let _agent = lab.agent();
    let ran = lab.run(&["watch", &submit]);
    let text = ran.expect_code(0);
    assert!(!text.contains('\u{1b}'), "{text}");
    let last = text.lines().last().unwrap_or_default();
    assert_eq!(
        last,
        "4/4 ended: 0 waiting, 0 on testboxes, 2 succeeded, 2 failed"
    );
    for id in &ids[2..] {
        let line = format!("job {id} failed: fail on server-1");
        assert!(text.contains(&line), "{line}: {text}");
    }
    let again = format!("all have ended; how: fairlead wait {submit}");
    assert!(ran.err.contains(&again), "{}", ran.err);
    // Programs get objects, one a line; ids are jobs.
    let ran = lab.run(&["watch", "--json", &ids[0], &ids[3]]);
    let values: Vec<Value> = ran
        .expect_code(0)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(values[0]["failed"]["job_id"], ids[3].as_str(), "{values:?}");
    let counts = &values.last().expect("the counts")["counts"];
    assert_eq!((&counts["jobs"], &counts["failed"]), (&2.into(), &1.into()));
    let refused = lab.run(&["watch", "no-such-submit"]);
    refused.expect_code(2);
    assert!(refused.err.contains("names no job"), "{}", refused.err);
    let dumb = lab.on_terminal(&["watch", "--json", &ids[0]], 80, "");
    assert!(!dumb.expect_code(0).contains("\u{1b}["), "{}", dumb.out);
}
