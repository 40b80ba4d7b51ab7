//! Reads the filters of a list of jobs.

use std::{collections::BTreeMap, str::FromStr};

use fairlead_api::ErrorCode;
use fairlead_job::{Health, JobId, KEYWORDS_MAX, Stage, stage::UnknownWord};
use fairlead_store::{Parts, Search, SearchOrder};

use crate::submission::queue_use::search_in;
use fairlead_base::{
    errors::{Refusal, excerpt},
    query::Query,
};

/// The id of a job; `None`: nothing is said.
fn id_of(query: &Query, name: &str) -> Result<Option<JobId>, Refusal> {
    let bad = |error: fairlead_job::ParseJobIdError| {
        let hint = match name {
            "after" => "use 'next' of the page before",
            _ => "use the id of a job",
        };
        Refusal::new(ErrorCode::BadQuery, format!("{name}: {error}"), hint)
    };
    match query.get(name) {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(bad),
    }
}

/// The values of a list that has two names.
fn either(query: &Query, name: &str, other: &str) -> Vec<String> {
    let mut list = query.list(name);
    list.extend(query.list(other));
    list
}

/// Words of a list; with `!` before each of them all others.
fn words<W>(list: &[String], all: &[W]) -> Result<Vec<W>, Refusal>
where
    W: FromStr<Err = UnknownWord> + PartialEq + Copy,
{
    let bad = |message: String| {
        Refusal::new(
            ErrorCode::BadQuery,
            message,
            "separate several values by commas; '!' before each means all others",
        )
    };
    let negated = list.iter().filter(|word| word.starts_with('!')).count();
    if negated > 0 && negated < list.len() {
        return Err(bad(format!(
            "'{}': only some of the words begin with '!'",
            excerpt(&list.join(","))
        )));
    }
    let words = list.iter().map(|word| word.trim_start_matches('!').parse());
    let words: Result<Vec<W>, UnknownWord> = words.collect();
    let words = words.map_err(|error| bad(error.to_string()))?;
    if negated == 0 {
        return Ok(words);
    }
    let others = all.iter().filter(|word| !words.contains(word));
    let others: Vec<W> = others.copied().collect();
    if others.is_empty() {
        return Err(bad("no word is left".to_owned()));
    }
    Ok(others)
}

/// The words `key=value` that are wanted: for each key one list of values.
fn keywords(query: &Query) -> Result<Vec<Vec<String>>, Refusal> {
    let mut by_key: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for word in query.all("kv") {
        let Some((key, _)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            let message = format!("kv: '{}' is no key=value", excerpt(word));
            let hint = "for example kv=nr_threads=4, once for each parameter";
            return Err(Refusal::new(ErrorCode::BadQuery, message, hint));
        };
        by_key.entry(key).or_default().push(word.to_owned());
    }
    let many = by_key.values().map(Vec::len).sum::<usize>();
    if many > KEYWORDS_MAX {
        let message = format!("kv: {many} words; at most {KEYWORDS_MAX} are allowed");
        let hint = "search by fewer parameters";
        return Err(Refusal::new(ErrorCode::BadQuery, message, hint));
    }
    Ok(by_key.into_values().collect())
}

fn order_of(query: &Query) -> Result<SearchOrder, Refusal> {
    match query.get("order") {
        None | Some("newest") => Ok(SearchOrder::NewestFirst),
        Some("oldest") => Ok(SearchOrder::OldestFirst),
        Some(other) => {
            let message = format!("order: '{}' is none", excerpt(other));
            let hint = "newest or oldest";
            Err(Refusal::new(ErrorCode::BadQuery, message, hint))
        }
    }
}

/// A crash signature, or the begin of one and `*`.
fn signature_of(query: &Query) -> Result<Option<String>, Refusal> {
    let said = query.get("signature").filter(|said| !said.is_empty());
    let is_good = |said: &str| !said.strip_suffix('*').unwrap_or(said).contains('*');
    match said {
        Some(said) if !is_good(said) => {
            let message = format!("signature: '{}' has '*' before its end", excerpt(said));
            let hint = "write '*' only at the end: KASAN: use-after-free*";
            Err(Refusal::new(ErrorCode::BadQuery, message, hint))
        }
        said => Ok(said.map(str::to_owned)),
    }
}

/// Parents, shards, or both. If nothing is said, shards are listed only where somebody asks for what testboxes do.
fn parts_of(query: &Query) -> Result<Parts, Refusal> {
    const ABOUT_TESTBOXES: [&str; 7] = [
        "stage",
        "job_stage",
        "health",
        "job_health",
        "host",
        "host_machine",
        "shards_of",
    ];
    let asks_testboxes = ABOUT_TESTBOXES
        .iter()
        .any(|name| !query.list(name).is_empty());
    match query.get("parts") {
        None | Some("") if !asks_testboxes => Ok(Parts::NoShards),
        None | Some("" | "all") => Ok(Parts::All),
        Some("no_shards") => Ok(Parts::NoShards),
        Some("no_parents") => Ok(Parts::NoParents),
        Some("only_shards") => Ok(Parts::OnlyShards),
        Some(other) => {
            let message = format!("parts: '{}' is none", excerpt(other));
            let hint = "all, no_shards, no_parents or only_shards";
            Err(Refusal::new(ErrorCode::BadQuery, message, hint))
        }
    }
}

pub(super) fn read_search(query: &Query) -> Result<Search, Refusal> {
    let limit = query.number("limit", 0..=1000, 100)?;
    let bound = |name: &str| {
        let is_said = query.get(name).is_some();
        let number = is_said.then(|| query.number(name, 0..=u64::MAX, 0));
        number.transpose()
    };
    let mut search = Search {
        stages: words(&either(query, "stage", "job_stage"), Stage::ALL)?,
        healths: words(&either(query, "health", "job_health"), Health::ALL)?,
        accounts: either(query, "account", "my_account"),
        hosts: either(query, "host", "host_machine"),
        suites: query.list("suite"),
        submit_ids: query.list("submit_id"),
        sequences: query.list("sequence"),
        group_ids: query.list("group_id"),
        tbox_groups: query.list("tbox_group"),
        keywords: keywords(query)?,
        crash_signature: signature_of(query)?,
        parts: parts_of(query)?,
        shards_of: id_of(query, "shards_of")?,
        since_ms: bound("since_ms")?,
        until_ms: bound("until_ms")?,
        order: order_of(query)?,
        after: id_of(query, "after")?,
        limit: u32::try_from(limit).unwrap_or(100),
        ..Search::default()
    };
    search_in(&mut search, &query.list("queue"));
    Ok(search)
}
