//! Finds for offers: the best jobs of each pair of queue and account.
//!
//! A find walks the cells (key, queue, account, shape) and never the jobs, so its cost does not grow with their number.
//! If more pairs exist than were asked for, it reads some of them and the best jobs of all. The next find continues.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::{Connection, OptionalExtension, params, types::Value};

use super::{read::read_job, waiting::Shape};
use crate::{FIND_BEST, Find, Page};

/// Minimum number of pairs that one find looks at under a key. Some may have no job that fits.
const PAIRS_LOOKED_AT: usize = 4_096;

/// Jobs that are looked at for the best of all.
const BEST_LOOKED_AT: u32 = 1_024;

/// Jobs of one pair, best first: rank and id.
type Best = BTreeSet<(i64, i64)>;

/// A queue and an account.
type Pair = (String, String);

/// Pair in the order in which a find looks at them: pairs behind the begin come first.
type Turn = (bool, Pair);

/// Known shapes by number.
type Shapes = HashMap<i64, Shape>;

/// Finds jobs for many offers, which share the shapes that were read.
pub(super) fn find(conn: &Connection, requests: &[Find]) -> rusqlite::Result<Vec<Page>> {
    let mut shapes = HashMap::new();
    requests
        .iter()
        .map(|offer| find_one(conn, offer, &mut shapes))
        .collect()
}

fn find_one(conn: &Connection, offer: &Find, shapes: &mut Shapes) -> rusqlite::Result<Page> {
    let pairs_max = usize::try_from(offer.pairs_max.max(1)).unwrap_or(usize::MAX);
    let limit = usize::try_from(offer.limit.max(1)).unwrap_or(usize::MAX);
    let mut walk = Walk {
        conn,
        offer,
        shapes,
        pairs_max,
        cells: BTreeMap::new(),
        stopped: None,
    };
    for key in offer.keys.iter().collect::<BTreeSet<_>>() {
        walk.under(key)?;
    }
    let Walk {
        mut cells, stopped, ..
    } = walk;
    // If the walk of a key stopped early, pairs of the key behind that place are unknown.
    if let Some(stopped) = &stopped {
        cells.retain(|turn, _| turn <= stopped);
    }
    let left_out = cells.keys().nth(pairs_max).cloned();
    if let Some(left_out) = &left_out {
        cells.split_off(left_out);
    }
    let last = cells.keys().next_back().cloned();
    let next = if left_out.is_some() { last } else { stopped };
    let mut ranked: Best = cells
        .values()
        .flat_map(|best| best.iter().take(limit).copied())
        .collect();
    if next.is_some() {
        best_of_all(conn, offer, shapes, &mut ranked)?;
    }
    let more = next.is_some() || cells.values().any(|best| best.len() > limit);
    let mut one = conn.prepare_cached("SELECT job_id, seq, state FROM states WHERE job_id = ?1")?;
    let mut jobs = Vec::with_capacity(ranked.len());
    for (_, id) in ranked {
        jobs.extend(one.query_row([Value::Integer(id)], read_job)?);
    }
    Ok(Page {
        jobs,
        more,
        next: next.map(|(_, pair)| pair),
    })
}

/// A walk through the cells under an offer's keys.
struct Walk<'a> {
    conn: &'a Connection,
    offer: &'a Find,
    shapes: &'a mut Shapes,
    pairs_max: usize,
    cells: BTreeMap<Turn, Best>,
    /// First place at which the walk of a key stopped although there are more.
    stopped: Option<Turn>,
}

impl Walk<'_> {
    fn turn(&self, pair: &Pair) -> Turn {
        let is_behind = self.offer.after.as_ref().is_none_or(|after| pair > after);
        (!is_behind, pair.clone())
    }

    /// Walks from the begin of the find to the last pair, then from the first one on.
    fn under(&mut self, key: &str) -> rusqlite::Result<()> {
        let mut seen = WalkedPairs::default();
        let from = self.offer.after.clone();
        let from = from.map(|(queue, account)| (queue, account, i64::MAX));
        let whole = self.walk(key, from, None, &mut seen)?;
        if whole && self.offer.after.is_some() {
            self.walk(key, None, self.offer.after.as_ref(), &mut seen)?;
        }
        Ok(())
    }

    /// Walks from behind a cell up to and including a pair. Returns false if it has looked at enough and there are
    /// more.
    fn walk(
        &mut self,
        key: &str,
        from: Option<(String, String, i64)>,
        up_to: Option<&Pair>,
        seen: &mut WalkedPairs,
    ) -> rusqlite::Result<bool> {
        let mut next_cell = self.conn.prepare_cached(
            "SELECT queue, account, shape FROM wait_keys INDEXED BY wait_cells
             WHERE host_key = ?1 AND (queue, account, shape) > (?2, ?3, ?4)
             ORDER BY queue, account, shape LIMIT 1",
        )?;
        let mut at = from.unwrap_or((String::new(), String::new(), -1));
        let mut last: Option<Pair> = None;
        while let Some((queue, account, shape)) = next_cell
            .query_row(params![key, at.0, at.1, at.2], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?
        {
            let pair: Pair = (queue, account);
            if up_to.is_some_and(|up_to| pair > *up_to) {
                return Ok(true);
            }
            if last.as_ref() != Some(&pair) {
                if seen.is_enough(self.pairs_max) {
                    let stopped = last.or(seen.last.take());
                    let stopped = stopped.map(|pair| self.turn(&pair));
                    let first = self.stopped.take().into_iter().chain(stopped).min();
                    self.stopped = first;
                    return Ok(false);
                }
                seen.pairs += 1;
                last = Some(pair.clone());
            }
            seen.fitting += usize::from(self.look_at(key, &pair, shape)?);
            at = (pair.0, pair.1, shape);
        }
        seen.last = last.or(seen.last.take());
        Ok(true)
    }

    /// Takes the best jobs of a cell, if they fit. Returns true if the pair is new.
    fn look_at(&mut self, key: &str, pair: &Pair, number: i64) -> rusqlite::Result<bool> {
        let offer = self.offer;
        let is_served = offer.accounts.is_empty() || offer.accounts.contains(&pair.1);
        if !is_served || !shape(self.conn, number, self.shapes)?.fits(offer) {
            return Ok(false);
        }
        let limit = usize::try_from(offer.limit.max(1)).unwrap_or(usize::MAX);
        let one_more = i64::from(offer.limit.max(1)) + 1;
        let turn = self.turn(pair);
        let is_new = !self.cells.contains_key(&turn);
        let best = self.cells.entry(turn).or_default();
        let mut of_cell = self.conn.prepare_cached(
            "SELECT rank, job_id FROM wait_keys INDEXED BY wait_cells
             WHERE host_key = ?1 AND queue = ?2 AND account = ?3 AND shape = ?4
             ORDER BY rank, job_id LIMIT ?5",
        )?;
        let rows = of_cell.query_map(params![key, pair.0, pair.1, number, one_more], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        for job in rows {
            best.insert(job?);
        }
        // One too many is kept: it tells that there is more.
        while best.len() > limit.saturating_add(1) {
            best.pop_last();
        }
        Ok(is_new)
    }
}

/// Pairs that a walk under one key has looked at.
#[derive(Debug, Default)]
struct WalkedPairs {
    pairs: usize,
    fitting: usize,
    last: Option<Pair>,
}

impl WalkedPairs {
    fn is_enough(&self, pairs_max: usize) -> bool {
        self.fitting >= pairs_max || self.pairs >= pairs_max.max(PAIRS_LOOKED_AT)
    }
}

/// Adds the best jobs of all that fit, of the first ones under each key. So a high class does not wait for its turn.
fn best_of_all(
    conn: &Connection,
    offer: &Find,
    shapes: &mut Shapes,
    ranked: &mut Best,
) -> rusqlite::Result<()> {
    let mut first = conn.prepare_cached(
        "SELECT rank, job_id, account, shape FROM wait_keys
         WHERE host_key = ?1 ORDER BY rank, job_id LIMIT ?2",
    )?;
    let most = usize::try_from(FIND_BEST).unwrap_or(usize::MAX);
    let mut best = Best::new();
    for key in &offer.keys {
        let mut rows = first.query(params![key, BEST_LOOKED_AT])?;
        while let Some(row) = rows.next()? {
            let account: String = row.get(2)?;
            let is_served = offer.accounts.is_empty() || offer.accounts.contains(&account);
            if is_served && shape(conn, row.get(3)?, shapes)?.fits(offer) {
                best.insert((row.get(0)?, row.get(1)?));
            }
        }
    }
    ranked.extend(best.into_iter().take(most));
    Ok(())
}

fn shape<'s>(
    conn: &Connection,
    number: i64,
    known: &'s mut HashMap<i64, Shape>,
) -> rusqlite::Result<&'s Shape> {
    match known.entry(number) {
        std::collections::hash_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
        std::collections::hash_map::Entry::Vacant(entry) => {
            let text: String = conn
                .prepare_cached("SELECT text FROM shapes WHERE shape = ?1")?
                .query_row([number], |row| row.get(0))?;
            let shape = serde_json::from_str(&text).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(
                    0,
                    rusqlite::types::Type::Text,
                    Box::new(error),
                )
            })?;
            Ok(entry.insert(shape))
        }
    }
}
