//! Tests that each refusal has a message and a hint in short sentences, and that none quotes the store.

mod people;

use fairlead_job::{DataReadiness, Health, JobId};
use fairlead_store::{ItemError, StoreError};

use super::*;
use crate::base::{errors::PathProblem, sealing::NoKey};

/// Longest sentence, words.
const WORDS_MAX: usize = 25;
const ID: JobId = JobId::new(7);

fn of_the_store() -> Vec<Refusal> {
    use StoreFault as E;
    let all = [
        E::Unreadable,
        E::RefusedRequest,
        E::Missing,
        E::Conflict,
        E::RefusedDocument,
        E::NotTaken,
        E::Unknown,
    ];
    all.map(Refusal::from).into()
}

fn of_jobs() -> Vec<Refusal> {
    use JobError as E;
    let (id, stage, reason) = (ID, Stage::Submit, "its lease was lost".to_owned());
    let all = [
        E::Unknown(id),
        E::Contended(id),
        E::LeaseNotEnded(id),
        E::NotOwner {
            id,
            account: "ann".to_owned(),
            asker: "bob".to_owned(),
        },
        E::NotWaiting { id, stage },
        E::IsNode(ID),
        E::NotChangeable { id, stage },
        E::ShardsWait(ID),
        E::NotEditable("script".to_owned()),
        E::NoEdit,
        E::NotOver { id, stage },
        E::NothingFailed(ID),
        E::NoShardFailed(ID),
        E::NoneOfGroupFailed(ID),
        E::EmptyGroup(ID),
        E::NoPlan(ID),
        E::IsShard {
            id,
            n: 2,
            parent: id,
        },
        E::NotRunning { id, stage },
        E::NoToken,
        E::WrongToken(id),
        E::ClaimOver(id),
        E::AttemptOver {
            id,
            attempt: 1,
            present: 2,
        },
        E::BootOver,
        E::BadReport {
            name: "attempt".to_owned(),
            shown: "x".to_owned(),
            expected: "1 to 65535".to_owned(),
        },
        E::NoTestbox(id),
        E::NotForward {
            id,
            from: Stage::Running,
            to: stage,
        },
        E::PeersMissing { id, to: stage },
        E::Ended {
            id,
            stage,
            health: Health::Fail,
        },
        E::ReadinessBack {
            from: DataReadiness::Complete,
            to: DataReadiness::Uploaded,
        },
        E::NoKey(id),
        E::NoOutputs(id),
        E::NoPeers(id),
        E::EndedWaiting {
            id,
            reason: reason.clone(),
        },
        E::PutBack { id, reason },
        E::NotAtBarrier { id, stage },
    ];
    all.map(Refusal::from).into()
}

fn of_files() -> Vec<Refusal> {
    use FileError as E;
    let problems = [
        PathProblem::TooLong,
        PathProblem::OddByte,
        PathProblem::NameTooLong,
        PathProblem::Leaves,
    ];
    let paths = problems.map(|problem| E::BadPath {
        shown: "a/../b".to_owned(),
        problem,
    });
    let all = [
        E::Outside("/result/boot/7".to_owned()),
        E::Missing,
        E::Exists,
        E::WrongKind,
        E::BadName,
        E::DiskFull,
        E::TooManyBytes(5),
        E::OverQuota("ann".to_owned(), 5, 5),
        E::Unreachable,
        E::Damaged,
        E::Unusable,
        E::TooLarge(5),
        E::TooManyFiles(5),
        E::Gap { offset: 9, size: 5 },
        E::LogTooLarge { size: 9, max: 5 },
        E::Sealed {
            id: ID,
            readiness: DataReadiness::Complete,
        },
    ];
    paths.into_iter().chain(all).map(Refusal::from).collect()
}

fn of_content() -> Vec<Refusal> {
    use crate::base::errors::ContentFault as E;
    let (word, id) = (
        || "ann".to_owned(),
        fairlead_content::Digest::from_bytes([7; 32]),
    );
    let bad: Result<fairlead_content::Digest, _> = "ann".parse();
    let all = [
        E::Unknown(id),
        E::NoChunk(id),
        E::NotOfIt { chunk: id, id },
        E::BadPut(word()),
        E::TooManyChunks { given: 9, max: 5 },
        E::BadName { given: 9, max: 5 },
        E::BadTime(word()),
        E::BadUntil {
            until: word(),
            days_max: 9,
        },
        E::OverQuota {
            account: word(),
            present_mb: 7,
            more_mb: 2,
            most_mb: 8,
            when: " of the last 24 hours",
        },
        E::BadDigest(bad.unwrap_err()),
        E::Wrong(fairlead_content::ContentError::ChunkSize(0).to_string()),
        E::ChunksMissing(
            fairlead_content::ContentError::ChunksMissing {
                first: id,
                count: 2,
            }
            .to_string(),
        ),
        E::Damaged(word()),
        E::Collecting,
        E::CollectedByAnother(word()),
        E::Full,
        E::Unreachable,
    ];
    all.map(Refusal::from).into()
}

fn of_submits() -> Vec<Refusal> {
    use SubmitError as E;
    let (word, present, most) = (|| "ann".to_owned(), 5, 5);
    let all = [
        E::NoWrites,
        E::NoAccount,
        E::ForOthers {
            asker: word(),
            account: word(),
        },
        E::NotVip(word()),
        E::OthersSubmit(word()),
        E::OthersQueue {
            account: word(),
            queue: word(),
        },
        E::SeveralNodes {
            nodes: 2,
            what: "a timer makes one job at a time",
        },
        E::UnknownParent(ID),
        E::UnknownInput("0".repeat(64), word()),
        E::SeveralOfName {
            name: word(),
            count: 2,
        },
        E::NoHost(word()),
        E::NoDevice(word()),
        E::OnlyLabel(word()),
        E::Misspelt(word()),
        E::SeveralKeys,
        E::KeyUsed,
        E::RefusedBefore,
        E::TooManyAlike { present, most },
        E::TooManyWait {
            whose: word(),
            present,
            most,
        },
        E::NoReceiver {
            field: "notify",
            receiver: word(),
        },
        E::Measures(word()),
        E::TooManyShards {
            whose: word(),
            more: 20,
            present,
            most,
        },
        E::GroupClosed {
            group: word(),
            parent: JobId::new(1),
        },
        E::GroupFull {
            group: word(),
            most: 1_000,
        },
        E::HoursSpent(word()),
    ];
    all.map(Refusal::from).into()
}

fn of_timers() -> Vec<Refusal> {
    use TimerError as E;
    let word = || "nightly".to_owned();
    let all = [
        E::NoName,
        E::Exists,
        E::Unknown {
            account: word(),
            name: word(),
        },
        E::NotOwner {
            name: word(),
            account: word(),
            asker: word(),
        },
        E::TooOften {
            field: "every",
            shortest_s: 5,
            least_s: 60,
        },
        E::TooMany {
            account: word(),
            there: 2,
            max: 2,
        },
        E::NoChange,
        E::RunDue(word()),
        E::NoSubmitter(word()),
    ];
    all.map(Refusal::from).into()
}

fn of_hosts() -> Vec<Refusal> {
    use HostError as E;
    let word = || "a66".to_owned();
    let hosts = [
        E::Unknown(word()),
        E::TooMany(5),
        E::TooManyOfAccount {
            account: word(),
            max: 5,
        },
        E::SaysTooMuch { given: 9, max: 5 },
        E::NotGone {
            name: "h".to_owned(),
            jobs: 2,
        },
        E::MacTaken(word()),
        E::BadRegistration {
            field: word(),
            expected: "a text of 1 to 128 bytes",
        },
        E::UnknownKind(word()),
        E::NoKinds,
        E::NotClosed(word()),
        E::NotReserved(word()),
        E::ReservedFor { given: 0, max: 5 },
        E::BadTime(word()),
        E::BadUntil {
            until: word(),
            days_max: 9,
        },
        E::BadRequest {
            field: "wait_s",
            shown: word(),
            expected: "0 to 600",
        },
        E::BadWord {
            field: "instance",
            bytes_max: 128,
        },
        E::TooManyHeld { given: 9, max: 5 },
        E::NoAnswer,
        E::DispatcherStopping,
        E::SessionOver(word()),
        E::Late {
            request: 1,
            present: 2,
        },
        E::TurnLost,
        E::OtherAgent(word()),
        E::Retired(word()),
        E::BadBootType(word()),
        E::NoName,
        E::BadMemory(word()),
        E::NotPacked,
    ];
    let peers = [PeerError::Stranger, PeerError::BadMessage(word())];
    let hosts = hosts.map(Refusal::from).into_iter();
    hosts.chain(peers.map(Refusal::from)).collect()
}

fn of_requests() -> Vec<Refusal> {
    use RequestError as E;
    let (name, shown) = ("limit".to_owned(), "x".to_owned());
    let all = [
        E::QueryTooLong { bytes: 9, max: 5 },
        E::NotInRange {
            name: name.clone(),
            shown: shown.clone(),
            least: 1,
            most: 5,
            default: 3,
        },
        E::NoSwitch { name, shown },
        E::NotUtf8,
        E::Nul,
    ];
    all.map(Refusal::from).into()
}

/// Each variant of a file, which has its text in `#[error]`, is among the samples.
fn all_of(source: &str, samples: Vec<Refusal>, nested: usize) -> Vec<Refusal> {
    let texts = source.matches("#[error(").count();
    assert_eq!(samples.len() + nested, texts, "a variant without a sample");
    samples
}

#[test]
fn each_refusal_has_a_hint_and_short_sentences() {
    let all = [
        all_of(
            include_str!("../../base/errors/store.rs"),
            of_the_store(),
            0,
        ),
        all_of(include_str!("../../base/errors/jobs.rs"), of_jobs(), 0),
        // The text of a path's problem is its own.
        all_of(include_str!("../../base/errors/files.rs"), of_files(), 1),
        all_of(
            include_str!("../../base/errors/content.rs"),
            of_content(),
            0,
        ),
        all_of(
            include_str!("../../base/errors/submissions.rs"),
            of_submits(),
            0,
        ),
        all_of(include_str!("../../base/errors/timers.rs"), of_timers(), 0),
        all_of(
            include_str!("../../base/errors/people.rs"),
            people::of_people(),
            0,
        ),
        all_of(
            include_str!("../../base/errors/pools.rs"),
            pools::samples(),
            0,
        ),
        all_of(include_str!("../../base/errors/hosts.rs"), of_hosts(), 0),
        all_of(
            include_str!("../../base/errors/requests.rs"),
            of_requests(),
            0,
        ),
        vec![NoKey.into(), Refusal::Bug, Refusal::Stopping],
    ];
    let off = [Refusal::ClockOff { by_ms: -3_600_000 }];
    for refusal in all.iter().flatten().chain(&off) {
        let body = refusal.body();
        assert!(
            !body.message.is_empty() && !body.hint.is_empty(),
            "{body:?}"
        );
        for sentence in body.message.split(';').chain(body.hint.split(';')) {
            let words = sentence.split_whitespace().count();
            assert!(words <= WORDS_MAX, "{words} words: {sentence}");
        }
    }
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
