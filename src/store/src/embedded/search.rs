//! Searches for people: filters, order, exact totals.

use fairlead_job::{Health, Stage};
use rusqlite::{Connection, params_from_iter, types::Value};

use super::{
    numbers::{signed, unsigned},
    read::read_job,
    waiting::rank,
};
use crate::{
    Group, GroupBy, Parts, Search, SearchOrder, SearchPage,
    groups::GROUPS_MAX,
    query::{ends, held},
};

/// SQL text with its values.
#[derive(Debug, Default)]
struct Filters {
    sql: String,
    values: Vec<Value>,
}

impl Filters {
    /// Returns the conditions of a search, without its page.
    fn of(search: &Search) -> Self {
        let mut filters = Self::default();
        filters.any_of("stage", search.stages.iter().map(|s| s.as_str()));
        filters.any_of("health", search.healths.iter().map(|h| h.as_str()));
        filters.in_queue(&search.queues, &search.queue_labels);
        for (field, list) in search.named() {
            filters.any_of(field, names(list));
        }
        for words in &search.keywords {
            filters.with_word(words);
        }
        if let Some(signature) = &search.crash_signature {
            filters.like("crash_signature", signature);
        }
        if let Some(ready) = search.ready {
            filters.compare("ready = ?", u64::from(ready));
        }
        match search.parts {
            Parts::All => {}
            Parts::NoShards => filters.and("shard_of = 0"),
            Parts::NoParents => filters.and("shards_n = 0"),
            Parts::OnlyShards => filters.and("shard_of > 0"),
        }
        if let Some(parent) = search.shards_of {
            filters.compare("shard_of = ?", parent.get());
            filters.and("shard_of > 0");
        }
        if let Some(since) = search.since_ms {
            filters.compare("submit_ms >= ?", since);
        }
        if let Some(until) = search.until_ms {
            filters.compare("submit_ms < ?", until);
        }
        if let Some((class, priority, job)) = search.before {
            filters.and("(rank, job_id) < (?, ?)");
            let place = [rank(class, priority), signed(job.get())];
            filters.values.extend(place.map(Value::Integer));
        }
        filters
    }

    fn and(&mut self, condition: &str) {
        self.sql.push_str(if self.sql.is_empty() {
            " WHERE "
        } else {
            " AND "
        });
        self.sql.push_str(condition);
    }

    /// Adds a filter: `column` is one of `wanted`. An empty `wanted` adds none.
    fn any_of<'a>(&mut self, column: &str, wanted: impl ExactSizeIterator<Item = &'a str>) {
        let many = wanted.len();
        let mut nameless = false;
        let mut marks = Vec::with_capacity(many);
        for name in wanted {
            nameless |= name.is_empty();
            self.values.push(Value::Text(name.to_owned()));
            marks.push("?");
        }
        if many == 0 {
            return;
        }
        self.and(&format!("{column} IN ({})", marks.join(",")));
        // Some indexes leave out empty names: say that they may be used.
        if !nameless {
            self.and(&format!("{column} <> ''"));
        }
    }

    /// Adds a filter: `column` is this name, or begins with it if it ends with `*`.
    fn like(&mut self, column: &str, name: &str) {
        let (least, most) = match name.strip_suffix('*') {
            // The last character of all.
            Some(begin) => (begin.to_owned(), format!("{begin}\u{10ffff}")),
            None => (name.to_owned(), name.to_owned()),
        };
        self.and(&format!("{column} BETWEEN ? AND ? AND {column} <> ''"));
        self.values.extend([least, most].map(Value::Text));
    }

    /// Adds a filter: the job is in one of these queues, or under one of these labels.
    fn in_queue(&mut self, queues: &[String], labels: &[String]) {
        let mut ways = Vec::new();
        for (column, wanted, more) in [
            ("queue", queues, "queue <> account"),
            ("account", queues, "queue = account"),
            ("queue_label", labels, "queue_label <> ''"),
        ] {
            if !wanted.is_empty() {
                let marks = vec!["?"; wanted.len()].join(",");
                ways.push(format!("({column} IN ({marks}) AND {more})"));
                self.values.extend(wanted.iter().cloned().map(Value::Text));
            }
        }
        if !ways.is_empty() {
            self.and(&format!("({})", ways.join(" OR ")));
        }
    }

    /// Adds a filter: the job has one of these words.
    fn with_word(&mut self, words: &[String]) {
        let each = vec!["instr(words, ?) > 0"; words.len()].join(" OR ");
        self.and(&format!("({each})"));
        let lines = words.iter().map(|word| Value::Text(format!("\n{word}\n")));
        self.values.extend(lines);
    }

    fn compare(&mut self, condition: &str, number: u64) {
        self.and(condition);
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        self.values.push(Value::Integer(number));
    }
}

fn names(list: &[String]) -> impl ExactSizeIterator<Item = &str> {
    list.iter().map(String::as_str)
}

/// Returns the number of jobs that match a search except for its words, and have none stored.
fn wordless(conn: &Connection, search: &Search) -> rusqlite::Result<u64> {
    if search.keywords.is_empty() {
        return Ok(0);
    }
    let mut filters = Filters::of(&Search {
        keywords: Vec::new(),
        ..search.clone()
    });
    filters.and("words IS NULL");
    let sql = format!("SELECT COUNT(*) FROM jobs{}", filters.sql);
    conn.query_row(&sql, params_from_iter(&filters.values), |row| {
        unsigned(row, 0)
    })
}

/// Runs one search. It runs inside a read transaction, so that page and total agree.
pub(super) fn search(conn: &Connection, search: &Search) -> rusqlite::Result<SearchPage> {
    let mut filters = Filters::of(search);
    let total = conn.query_row(
        &format!("SELECT COUNT(*) FROM jobs{}", filters.sql),
        params_from_iter(&filters.values),
        |row| unsigned(row, 0),
    )?;
    let limit = search.limit.min(1_000);
    let mut page = SearchPage {
        total,
        wordless: wordless(conn, search)?,
        ..SearchPage::default()
    };
    if limit == 0 {
        return Ok(page);
    }
    let (beyond, order) = match search.order {
        SearchOrder::NewestFirst => ("job_id < ?", "DESC"),
        SearchOrder::OldestFirst => ("job_id > ?", "ASC"),
    };
    if let Some(after) = search.after {
        filters.compare(beyond, after.get());
    }
    let sql = format!(
        "SELECT s.job_id, s.seq, s.state FROM
            (SELECT job_id AS id FROM jobs{} ORDER BY job_id {order} LIMIT {}) p
            CROSS JOIN states s ON s.job_id = p.id ORDER BY p.id {order}",
        filters.sql,
        limit + 1
    );
    let mut statement = conn.prepare(&sql)?;
    let mut rows = statement.query(params_from_iter(&filters.values))?;
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        if seen == limit {
            page.more = true;
            break;
        }
        seen += 1;
        page.jobs.extend(read_job(row)?);
    }
    Ok(page)
}

/// Counts by the values of a field.
pub(super) fn groups(
    conn: &Connection,
    search: &Search,
    by: GroupBy,
) -> rusqlite::Result<Vec<Group>> {
    let filters = Filters::of(search);
    let quoted = |stages: &[&str]| {
        let each = stages.iter().map(|stage| format!("'{stage}'"));
        each.collect::<Vec<_>>().join(",")
    };
    let held: Vec<&str> = held().map(Stage::as_str).collect();
    let sql = format!(
        "SELECT {by}, COUNT(*) AS many, SUM(stage = 'submit'), SUM(stage IN ({held})),
            SUM(health = 'success' AND stage IN ({ends})), SUM(health IN ({stopped}) AND stage IN ({ends})),
            MIN(submit_ms) AS since_ms, CASE WHEN MIN(suite) = MAX(suite) THEN MIN(suite) ELSE '' END
         FROM jobs{conditions} GROUP BY {by} ORDER BY {order} DESC, {by} LIMIT {GROUPS_MAX}",
        by = by.as_str(),
        held = quoted(&held),
        ends = quoted(&ends()),
        stopped = quoted(&Health::STOPPED.map(Health::as_str)),
        order = if by.is_by_time() { "since_ms" } else { "many" },
        conditions = filters.sql,
    );
    let mut statement = conn.prepare(&sql)?;
    let rows = statement.query_map(params_from_iter(&filters.values), |row| {
        Ok(Group {
            value: row.get(0)?,
            jobs: unsigned(row, 1)?,
            waiting: unsigned(row, 2)?,
            running: unsigned(row, 3)?,
            succeeded: unsigned(row, 4)?,
            stopped: unsigned(row, 5)?,
            since_ms: unsigned(row, 6)?,
            suite: row.get(7)?,
        })
    })?;
    rows.collect()
}

/// Tells for each of these ids if any job names it as an input or as its outputs.
pub(super) fn named(conn: &Connection, content: &[String]) -> rusqlite::Result<Vec<bool>> {
    let mut is_named =
        conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM content WHERE id = ?1)")?;
    let each = content.iter();
    each.map(|id| is_named.query_row([id], |row| row.get(0)))
        .collect()
}
