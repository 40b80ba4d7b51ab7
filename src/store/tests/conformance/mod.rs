//! One suite for every store: tests the promises of `JobStore` from outside.
//!
//! Each function takes an empty store. `conformance!` makes one test of each, for the store that the given function
//! opens and later removes.

pub(crate) mod changes;
pub(crate) mod documents;
pub(crate) mod finds;
pub(crate) mod jobs;
pub(crate) mod model;
pub(crate) mod months;
pub(crate) mod names;
pub(crate) mod people;
pub(crate) mod reads;
pub(crate) mod searches;

use fairlead_job::{JobId, Spec, Stage, TboxType};
use fairlead_store::{
    ChangePage, ItemError, JobState, JobStore, NewJob, Patch, StatePatch, StoredJob, Version,
};
use serde_json::json;

/// Makes a test of each case, opened by `$with`: `async fn(case: impl AsyncFnOnce(&dyn JobStore))`.
#[macro_export]
macro_rules! conformance {
    ($with:path) => {
        $crate::conformance!(@ $with;
            jobs: create_then_read, a_repeated_submit_is_ours, an_id_is_taken_once,
                one_bad_item_does_not_hurt_the_others, one_of_many_races_wins,
                a_patch_names_fields_and_nulls_clear, a_stale_or_unknown_patch_is_told_apart,
                nested_values_are_replaced_whole, ids_of_several_months_live_together,
                five_thousand_at_once, odd_bodies_come_back_equal, an_empty_batch_is_nothing;
            reads: counts_are_exact, counts_follow_every_change, pulls_come_in_order_and_in_pages,
                pulls_slice_by_dimension, a_queue_is_shared_beside_its_own_account;
            finds: finds_hold_every_predicate, finds_by_random_tags_equal_a_naive_model, finds_give_each_queue_its_best,
                finds_limit_a_queue_and_account;
            names: counts_name_no_more_than_is_asked_for, what_is_few_is_counted_beside_what_is_many,
                finds_take_turns_through_many_accounts, the_best_of_all_is_found_at_every_turn,
                what_does_not_fit_hides_nothing;
            changes: an_empty_store_has_no_changes, changes_come_once_as_they_are_now,
                changes_are_read_in_pages, changes_are_found_by_their_numbers, changes_of_several_months_are_read_together;
            searches: filters_hold_together, pages_and_totals, alarms_come_by_time_while_a_job_waits,
                usage_is_summed_up, jobs_of_one_fingerprint_are_found, jobs_are_found_by_their_crash,
                jobs_are_found_by_their_words, content_that_jobs_name_is_known,
                parents_and_shards_are_told_apart;
            people: jobs_are_counted_by_stage, what_is_found_is_counted_by_a_field;
            documents: documents_compare_and_set, documents_are_listed_in_order,
                bad_documents_are_refused, documents_are_read_together_and_in_pages,
                documents_come_by_their_time, events_are_read_newest_first;
            months: old_months_go_whole_once_all_their_jobs_have_ended, what_is_young_stays;
            model: random_histories_equal_a_naive_model);
    };
    (@ $with:path; $($module:ident: $($case:ident),+);+) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $with(async |store: &dyn fairlead_store::JobStore| {
                    conformance::$module::$case(store).await;
                })
                .await;
            }
        )+)+
    };
}

/// An id of November 2026 with number `n`.
pub(crate) fn id(n: u64) -> JobId {
    JobId::new(2_611_210_236_110_000_000 + n)
}

/// A waiting job with number `n`, which tests then change.
pub(crate) fn state(n: u64) -> JobState {
    JobState {
        ready: true,
        ready_ms: 1_795_228_571_000 + n,
        account: "ann".into(),
        queue: "ann".into(),
        class: 3,
        submit_ms: 1_795_228_571_000 + n,
        suite: "hackbench".into(),
        testbox: "dc-1g".into(),
        tbox_group: "dc-1g".into(),
        host_keys: vec!["dc.x86_64".into()],
        memory_mb: 1024,
        cpus: 1,
        timeout_s: 3600,
        retry_lost_left: 1,
        ..JobState::blank(id(n), TboxType::Dc)
    }
}

/// [`state`], changed.
pub(crate) fn state_with(n: u64, change: impl FnOnce(&mut JobState)) -> JobState {
    let mut state = state(n);
    change(&mut state);
    state.tags_n = u16::try_from(state.tags.len()).unwrap();
    state.devices_n = u16::try_from(state.devices.len()).unwrap();
    state
}

/// A job to submit with a small body.
pub(crate) fn job(state: JobState) -> NewJob {
    let mut body = Spec::new();
    body.insert("suite".into(), json!(state.suite));
    body.insert("n".into(), json!(state.job_id.to_string()));
    let body = body.into();
    NewJob { state, body }
}

/// Submits states that must all be taken.
pub(crate) async fn submit_all(store: &dyn JobStore, states: Vec<JobState>) -> Vec<Version> {
    let jobs = states.into_iter().map(job).collect();
    let results = store.submit(jobs).await;
    results.into_iter().map(|r| r.unwrap().version).collect()
}

/// The one job, which must be there.
pub(crate) async fn read_one(store: &dyn JobStore, id: JobId) -> StoredJob {
    store.get(&[id]).await.unwrap().remove(0).unwrap()
}

/// Changes a job as it is stored now.
pub(crate) async fn change(
    store: &dyn JobStore,
    id: JobId,
    change: impl FnOnce(&mut JobState),
) -> Result<Version, ItemError> {
    let before = read_one(store, id).await;
    let mut after = before.state.clone();
    change(&mut after);
    let set = StatePatch::between(&before.state, &after);
    let expect = before.version;
    store.patch(vec![Patch { id, expect, set }]).await.remove(0)
}

/// Ids of jobs as short numbers, for comparing.
pub(crate) fn numbers(jobs: &[StoredJob]) -> Vec<u64> {
    jobs.iter()
        .map(|j| j.state.job_id.get() - id(0).get())
        .collect()
}

/// The same of what changed.
pub(crate) fn changed(page: &ChangePage) -> Vec<u64> {
    let jobs = page.jobs.iter();
    jobs.map(|(job, _)| job.get() - id(0).get()).collect()
}

/// The change that a claim makes.
pub(crate) fn claim(before: &JobState, token: &str) -> StatePatch {
    let mut after = before.clone();
    after.stage = Stage::Dispatch;
    after.claim_token = token.into();
    after.host = "h1".into();
    StatePatch::between(before, &after)
}
