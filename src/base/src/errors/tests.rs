//! Tests that each refusal has a message and a hint in short sentences, and that none quotes the store.

use super::*;
use crate::sealing::NoKey;

/// Longest sentence, words.
const WORDS_MAX: usize = 25;

#[test]
fn each_refusal_has_a_hint_and_short_sentences() {
    let of_variants = [
        StoreFault::WORDS,
        JobError::WORDS,
        FileError::WORDS,
        ContentFault::WORDS,
        SubmitError::WORDS,
        TimerError::WORDS,
        PeopleError::WORDS,
        PoolError::WORDS,
        HostError::WORDS,
        PeerError::WORDS,
        RequestError::WORDS,
    ];
    let others = [
        NoKey.into(),
        Refusal::Bug,
        Refusal::Stopping,
        Refusal::ClockOff { by_ms: -3_600_000 },
    ];
    let others = others.map(|refusal| (refusal.to_string(), refusal.told().hint));
    let of_variants = of_variants.concat().into_iter();
    let of_variants = of_variants.map(|(text, hint)| (text.to_owned(), hint.to_owned()));
    for (text, hint) in of_variants.chain(others) {
        assert!(!text.is_empty() && hint.len() > 2, "{text}: {hint}");
        // A hint is one literal, or code with several.
        for sentence in text.split(';').chain(hint.split([';', '"'])) {
            let words = sentence.split_whitespace().count();
            assert!(words <= WORDS_MAX, "{words} words: {sentence}");
        }
    }
}

#[test]
fn what_helps_is_told_with_its_code_and_status() {
    let told = |refusal: Refusal| {
        let (body, status) = (refusal.body(), refusal.status());
        (body.code, status, body.hint)
    };
    let (id, stage) = (fairlead_job::JobId::new(7), fairlead_job::Stage::Submit);
    assert_eq!(
        told(JobError::NotRunning { id, stage }.into()),
        (
            ErrorCode::WrongStage,
            403,
            "cancel a waiting job".to_owned()
        )
    );
    let stage = fairlead_job::Stage::Finish;
    let hint = "it has ended".to_owned();
    assert_eq!(
        told(JobError::NotWaiting { id, stage }.into()),
        (ErrorCode::WrongStage, 403, hint)
    );
    let hint = "give 1 to 5 accounts whose jobs the host gets".to_owned();
    assert_eq!(
        told(HostError::ReservedFor { given: 9, max: 5 }.into()),
        (ErrorCode::BadField, 400, hint)
    );
    let hint = told(PeopleError::TokenOver("ann".to_owned()).into()).2;
    assert!(
        hint.ends_with("fairlead account add ann --new-token"),
        "{hint}"
    );
}

#[test]
fn what_a_store_says_of_itself_stays_in_the_log() {
    let reason = || "http://node-3:9200 [mapper_parsing_exception]".to_owned();
    let reads = [
        StoreError::Unavailable { reason: reason() },
        StoreError::Refused { reason: reason() },
        StoreError::Unusable {
            reason: reason(),
            hint: reason(),
        },
    ];
    let writes = [
        ItemError::Refused { reason: reason() },
        ItemError::NotTaken { reason: reason() },
        ItemError::Unknown { reason: reason() },
    ];
    let all = reads.map(Refusal::from).into_iter();
    for refusal in all.chain(writes.map(Refusal::from)) {
        let told = format!("{:?}", refusal.body());
        assert!(
            !told.contains("node-3") && !told.contains("mapper"),
            "{told}"
        );
    }
}
