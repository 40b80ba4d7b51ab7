//! Counts, pulls, finds, searches and changes over the visible state, in the simplest correct way.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fairlead_dispatch::{Alternative, CPUS_UNCHECKED, HostProperties, JobRequirements};
use fairlead_job::{JobId, Stage};
use fairlead_store::{
    AT_MS, ChangeMark, ChangePage, ChangeRanges, Changes, CountOf, Counts, Doc, DocFind, DocPage,
    DueDoc, FIND_BEST, Find, Group, GroupBy, JobState, Page, Pull, PullBy, Search, SearchOrder,
    SearchPage, StageCounts, Usage,
};

use serde_json::Value;

use super::truth::{Entry, View, place_of};

/// Returns true if counts, pulls and finds see the job.
pub(super) fn waits(state: &JobState) -> bool {
    state.stage == Stage::Submit && state.ready
}

/// Returns true if a host with this offer could take the job.
pub(super) fn fits(state: &JobState, offer: &Find) -> bool {
    let any_of: Vec<Alternative<String>> = state
        .any_of
        .iter()
        .map(|one| Alternative {
            tags: one.tags.clone().into(),
            not_tags: one.not_tags.clone().into(),
        })
        .collect();
    let required = JobRequirements {
        account: Some(&state.account),
        arch: &state.arch,
        keys: &state.host_keys,
        tags: &state.tags,
        not_tags: &state.not_tags,
        any_of: &any_of,
        devices: &state.devices,
        not_on: &state.not_on,
        memory_mb: state.memory_mb,
        cpus: state.cpus,
    };
    let has = HostProperties {
        name: &offer.host,
        arch: &offer.arch,
        keys: &offer.keys,
        tags: &offer.tags,
        devices: &offer.devices,
        accounts: &offer.accounts,
        memory_mb: offer.free_memory_mb,
        cpus: offer.free_cpus.unwrap_or(CPUS_UNCHECKED),
    };
    required.first_unmet_by(&has).is_none()
}

type Rank = (Reverse<u8>, Reverse<i16>, JobId);

fn rank(state: &JobState) -> Rank {
    (Reverse(state.class), Reverse(state.priority), state.job_id)
}

fn waiting(views: &[Arc<View>]) -> impl Iterator<Item = &Entry> {
    let all = views.iter().flat_map(|view| view.values());
    all.filter(|entry| waits(&entry.state))
}

pub(super) fn counts(views: &[Arc<View>], of: &CountOf) -> Counts {
    let mut total = 0;
    let (mut accounts, mut queues, mut keys) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut pairs: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let count = |counts: &mut BTreeMap<String, u64>, name: &String| {
        *counts.entry(name.clone()).or_default() += 1;
    };
    for entry in waiting(views) {
        total += 1;
        count(&mut accounts, &entry.state.account);
        count(&mut queues, &entry.state.queue);
        let pair = (&*entry.state.queue, &*entry.state.account);
        *pairs.entry(pair).or_default() += 1;
        for key in entry.state.host_keys.iter().collect::<BTreeSet<_>>() {
            count(&mut keys, key);
        }
    }
    let names_max = of.names_max.unwrap_or(usize::MAX);
    let partial = pairs.len() > names_max;
    if partial {
        pairs.clear();
    }
    if let Some(asked) = &of.host_keys {
        keys.retain(|key, _| asked.contains(key));
    }
    let most = |names: BTreeMap<String, u64>| {
        let mut names: Vec<(String, u64)> = names.into_iter().collect();
        names.sort_unstable_by_key(|(_, n)| Reverse(*n));
        names.truncate(names_max);
        names.sort_unstable();
        names
    };
    Counts {
        total,
        accounts: most(accounts),
        queues: most(queues),
        pairs: pairs
            .into_iter()
            .map(|((queue, account), n)| (queue.to_owned(), account.to_owned(), n))
            .collect(),
        host_keys: keys.into_iter().collect(),
        partial,
    }
}

fn size(limit: u32) -> usize {
    usize::try_from(limit.max(1)).unwrap_or(usize::MAX)
}

/// Returns the first jobs in the given order.
fn first_of(jobs: &[&Entry], limit: u32) -> Page {
    Page {
        more: jobs.len() > size(limit),
        jobs: jobs
            .iter()
            .take(size(limit))
            .map(|it| it.stored())
            .collect(),
        next: None,
    }
}

/// Returns the first jobs by rank.
fn page(mut jobs: Vec<&Entry>, limit: u32) -> Page {
    jobs.sort_unstable_by_key(|entry| rank(&entry.state));
    first_of(&jobs, limit)
}

pub(super) fn pull(views: &[Arc<View>], request: &Pull) -> Page {
    let behind = request
        .after
        .map(|(class, priority, id)| (Reverse(class), Reverse(priority), id));
    let asked = |state: &JobState| match &request.by {
        PullBy::All => true,
        PullBy::Account(name) => state.account == *name,
        PullBy::Queue(name) => state.queue == *name,
        PullBy::HostKey(name) => state.host_keys.contains(name),
    };
    let jobs = waiting(views)
        .filter(|entry| asked(&entry.state))
        .filter(|entry| behind.is_none_or(|behind| rank(&entry.state) > behind));
    page(jobs.collect(), request.limit)
}

pub(super) fn find(views: &[Arc<View>], offer: &Find) -> Page {
    let mut cells: BTreeMap<(&str, &str), Vec<&Entry>> = BTreeMap::new();
    for entry in waiting(views).filter(|entry| fits(&entry.state, offer)) {
        let cell = (entry.state.queue.as_str(), entry.state.account.as_str());
        cells.entry(cell).or_default().push(entry);
    }
    let mut found = Page::default();
    // The pairs after the start come first, then the others.
    let after = offer.after.as_ref();
    let is_before = |(queue, account): &(&str, &str)| {
        after.is_some_and(|after| (*queue, *account) <= (&*after.0, &*after.1))
    };
    let mut turns: Vec<_> = cells.into_iter().collect();
    turns.sort_by_key(|(cell, _)| is_before(cell));
    if turns.len() > size(offer.pairs_max) {
        let all = turns.iter().flat_map(|(_, jobs)| jobs.iter().copied());
        found.jobs = page(all.collect(), FIND_BEST).jobs;
        found.more = true;
        turns.truncate(size(offer.pairs_max));
        let last = turns.last().map(|(cell, _)| *cell);
        found.next = last.map(|(queue, account)| (queue.to_owned(), account.to_owned()));
    }
    for (_, jobs) in turns {
        let best = page(jobs, offer.limit);
        found.more |= best.more;
        found.jobs.extend(best.jobs);
    }
    found.jobs.sort_unstable_by_key(|job| rank(&job.state));
    found.jobs.dedup_by_key(|job| job.state.job_id);
    found
}

fn place_name(number: usize) -> String {
    format!("jobs/{number}")
}

/// Returns the place of a job. Three places are like shards of one index: a version does not name its shard.
pub(super) fn known_place(id: JobId, places: usize) -> Option<Arc<str>> {
    (places < 3).then(|| place_name(place_of(id, places)).into())
}

pub(super) fn change_mark(views: &[Arc<View>]) -> ChangeMark {
    let marks = views.iter().enumerate().filter_map(|(number, view)| {
        let last = view.values().map(|entry| entry.version.seq_no).max()?;
        Some((place_name(number), last))
    });
    ChangeMark(marks.collect())
}

fn is_within(within: &ChangeRanges, place: &str, number: u64) -> bool {
    let ranges = within.get(place).map_or(&[][..], Vec::as_slice);
    let is_in = |(first, last): &(u64, u64)| (*first..=*last).contains(&number);
    within.is_empty() || ranges.iter().any(is_in)
}

pub(super) fn changes(views: &[Arc<View>], requests: &[Changes]) -> Vec<ChangePage> {
    requests.iter().map(|it| changes_of(views, it)).collect()
}

fn changes_of(views: &[Arc<View>], request: &Changes) -> ChangePage {
    let mut found = ChangePage {
        mark: request.since.clone(),
        ..ChangePage::default()
    };
    for (number, view) in views.iter().enumerate() {
        let name = place_name(number);
        let since = request.since.0.get(&name).copied();
        let mut jobs: Vec<&Entry> = view
            .values()
            .filter(|entry| since.is_none_or(|since| entry.version.seq_no > since))
            .filter(|entry| is_within(&request.within, &name, entry.version.seq_no))
            .filter(|entry| waits(&entry.state) == request.waiting)
            .collect();
        jobs.sort_unstable_by_key(|entry| entry.version.seq_no);
        found.more |= jobs.len() > size(request.limit);
        jobs.truncate(size(request.limit));
        if let Some(last) = jobs.last() {
            found.mark.0.insert(name, last.version.seq_no);
        }
        let jobs = jobs.into_iter();
        found
            .jobs
            .extend(jobs.map(|entry| (entry.state.job_id, entry.version)));
    }
    found
}

pub(super) fn alarms(views: &[Arc<View>], before_ms: u64, limit: u32) -> Page {
    let is_due =
        |state: &JobState| state.stage == Stage::Submit && (1..before_ms).contains(&state.alarm_ms);
    let all = views.iter().flat_map(|view| view.values());
    let mut jobs: Vec<&Entry> = all.filter(|entry| is_due(&entry.state)).collect();
    jobs.sort_unstable_by_key(|entry| (entry.state.alarm_ms, entry.state.job_id));
    first_of(&jobs, limit)
}

pub(super) fn usage(views: &[Arc<View>], usage: &Usage) -> Vec<u64> {
    let sum = |is: &dyn Fn(&JobState) -> bool| {
        let all = views.iter().flat_map(|view| view.values());
        let late = all.filter(|entry| entry.state.used_at_ms >= usage.since_ms.max(1));
        let its = late.filter(|entry| is(&entry.state));
        its.map(|entry| entry.state.used_ms).sum()
    };
    let of_account = |name: &String| sum(&|state| state.account == *name);
    let of_queue = |name: &String| sum(&|state| state.queue == *name);
    let accounts = usage.accounts.iter().map(of_account);
    let uploads = usage.uploads_of.iter().map(|name| {
        let all = views.iter().flat_map(|view| view.values());
        let its = all.filter(|entry| entry.state.account == *name);
        its.map(|entry| entry.state.result_bytes).sum()
    });
    let times = accounts.chain(usage.queues.iter().map(of_queue));
    times.chain(uploads).collect()
}

pub(super) fn stage_counts(views: &[Arc<View>], since_ms: u64) -> StageCounts {
    let mut counts = StageCounts::default();
    let all = views.iter().flat_map(|view| view.values());
    for state in all
        .map(|entry| &entry.state)
        .filter(|it| it.shards.is_none())
    {
        if !state.stage.is_terminal() {
            *counts.open.entry(state.stage).or_default() += 1;
        } else if state.submit_ms >= since_ms {
            *counts.ended.entry(state.health).or_default() += 1;
        }
        counts.not_ready += u64::from(state.stage == Stage::Submit && !state.ready);
        if waits(state) && state.ready_ms > 0 {
            let oldest = counts.oldest_ready_ms.entry(state.queue.clone());
            let oldest = oldest.or_insert(state.ready_ms);
            *oldest = state.ready_ms.min(*oldest);
        }
    }
    counts
}

pub(super) fn search(views: &[Arc<View>], search: &Search) -> SearchPage {
    let mut jobs: Vec<&Entry> = views
        .iter()
        .flat_map(|view| view.values())
        .filter(|entry| matches(&entry.state, search))
        .collect();
    jobs.sort_unstable_by_key(|entry| entry.state.job_id);
    let total = u64::try_from(jobs.len()).unwrap_or(u64::MAX);
    if search.order == SearchOrder::NewestFirst {
        jobs.reverse();
    }
    if let Some(after) = search.after {
        jobs.retain(|entry| match search.order {
            SearchOrder::NewestFirst => entry.state.job_id < after,
            SearchOrder::OldestFirst => entry.state.job_id > after,
        });
    }
    let limit = usize::try_from(search.limit).unwrap_or(usize::MAX);
    SearchPage {
        more: limit > 0 && jobs.len() > limit,
        jobs: jobs.iter().take(limit).map(|it| it.stored()).collect(),
        total,
        wordless: 0,
    }
}

pub(super) fn named(views: &[Arc<View>], content: &[String]) -> Vec<bool> {
    let all = views.iter().flat_map(|view| view.values());
    let named: BTreeSet<&str> = all.flat_map(|entry| entry.state.content()).collect();
    content
        .iter()
        .map(|id| named.contains(id.as_str()))
        .collect()
}

fn matches(state: &JobState, search: &Search) -> bool {
    // The fields are named one by one, so that no condition of a search is forgotten here.
    let Search {
        ready,
        stages,
        healths,
        accounts,
        queues,
        queue_labels,
        hosts,
        suites,
        submit_ids,
        group_ids,
        sequences,
        tbox_groups,
        fingerprints,
        keywords,
        crash_signature: _,
        parts,
        shards_of,
        since_ms,
        until_ms,
        before,
        order: _,
        after: _,
        limit: _,
    } = search;
    let texts = [
        (accounts, &state.account),
        (hosts, &state.host),
        (suites, &state.suite),
        (submit_ids, &state.submit_id),
        (group_ids, &state.group_id),
        (sequences, &state.sequence),
        (tbox_groups, &state.tbox_group),
        (fingerprints, &state.fingerprint),
    ];
    let any = |(wanted, is): (&Vec<String>, &String)| wanted.is_empty() || wanted.contains(is);
    let no_queue = queues.is_empty() && queue_labels.is_empty();
    let in_queue = no_queue
        || queues.contains(&state.queue)
        || (!state.queue_label.is_empty() && queue_labels.contains(&state.queue_label));
    in_queue
        && ready.is_none_or(|ready| ready == state.ready)
        && (stages.is_empty() || stages.contains(&state.stage))
        && (healths.is_empty() || healths.contains(&state.health))
        && texts.into_iter().all(any)
        && parts.finds(state)
        && shards_of.is_none_or(|of| state.shard.is_some_and(|shard| shard.of == of))
        && keywords
            .iter()
            .all(|words| words.iter().any(|word| state.kv.contains(word)))
        && search.finds_crash(&state.crash_signature)
        && since_ms.is_none_or(|since| state.submit_ms >= since)
        && until_ms.is_none_or(|until| state.submit_ms < until)
        && before.is_none_or(|(class, priority, id)| {
            rank(state) < (Reverse(class), Reverse(priority), id)
        })
}

/// Returns counts by the values of a field, most jobs first. Submits come newest first.
pub(super) fn groups(views: &[Arc<View>], search: &Search, by: GroupBy) -> Vec<Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    let all = views.iter().flat_map(|view| view.values());
    for state in all.map(|entry| &entry.state) {
        if !matches(state, search) {
            continue;
        }
        let value = match by {
            GroupBy::Stage => state.stage.as_str(),
            GroupBy::Health => state.health.as_str(),
            GroupBy::Suite => &state.suite,
            GroupBy::Account => &state.account,
            GroupBy::Queue => &state.queue,
            GroupBy::Host => &state.host,
            GroupBy::TboxGroup => &state.tbox_group,
            GroupBy::SubmitId => &state.submit_id,
        };
        let group = groups.entry(value.to_owned()).or_default();
        value.clone_into(&mut group.value);
        group.count(state);
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    let rank = |group: &Group| {
        if by.is_by_time() {
            group.since_ms
        } else {
            group.jobs
        }
    };
    groups.sort_by(|a, b| rank(b).cmp(&rank(a)).then(a.value.cmp(&b.value)));
    groups
}

/// Returns a page of small documents by id.
pub(super) fn page_docs(mut docs: Vec<Doc>, find: &DocFind) -> DocPage {
    docs.retain(|doc| doc.id.starts_with(&find.prefix));
    let total = docs.len() as u64;
    docs.retain(|doc| doc.id > find.after);
    docs.truncate(find.limit.clamp(1, 1_000) as usize);
    DocPage { docs, total }
}

/// Returns small documents that are due, earliest first.
pub(super) fn due_docs(docs: Vec<Doc>, before_ms: u64, limit: u32) -> Vec<DueDoc> {
    let due = docs.into_iter().map(|doc| DueDoc {
        at_ms: doc.body.get(AT_MS).and_then(Value::as_u64).unwrap_or(0),
        id: doc.id,
        version: doc.version,
    });
    let mut due: Vec<DueDoc> = due
        .filter(|doc| (1..before_ms).contains(&doc.at_ms))
        .collect();
    due.sort_by(|a, b| (a.at_ms, &a.id).cmp(&(b.at_ms, &b.id)));
    due.truncate(limit.clamp(1, 10_000) as usize);
    due
}
