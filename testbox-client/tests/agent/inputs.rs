//! Tests of jobs with inputs: what they get, what is fetched, and what is damaged.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use fairlead_api::{ConsumeRequest, Grant, GrantInput, StopOrder};
use fairlead_content::Digest;
use fairlead_testbox::AgentEvent;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    fake::{Fake, State},
    store::input,
    testbox::{DC, Testbox, config, folder, script},
};

fn with_inputs(job_id: &str, inputs: Vec<GrantInput>, text: &str) -> Grant {
    Grant {
        inputs,
        ..script(job_id, text)
    }
}

/// Returns the fetched and the total bytes of the next job that has its inputs.
async fn fetched(testbox: &mut Testbox) -> (u64, u64) {
    let inputs = |event| match event {
        AgentEvent::Inputs {
            fetched_bytes,
            bytes,
            ..
        } => Some((fetched_bytes, bytes)),
        AgentEvent::CacheDamaged { file, .. } => panic!("{file}"),
        _ => None,
    };
    testbox.event(inputs).await
}

/// Returns bytes without a pattern, always the same.
fn noise(many: usize) -> Vec<u8> {
    let mut word = Digest::of(b"noise");
    let mut bytes = Vec::new();
    while bytes.len() < many {
        bytes.extend(word.as_bytes());
        word = Digest::of(word.as_bytes());
    }
    bytes.truncate(many);
    bytes
}

/// Returns the file of the agent's cache with these bytes.
fn cached(work: &Path, bytes: &[u8]) -> PathBuf {
    let digest = Digest::of(bytes).to_string();
    work.join("cache/files").join(&digest[..2]).join(digest)
}

#[tokio::test]
async fn a_job_finds_its_inputs_and_a_second_one_fetches_nothing() {
    let (fake, folder) = (Fake::start(), folder());
    let tree = crate::testbox::folder();
    fs::create_dir_all(tree.path().join("empty")).unwrap();
    fs::create_dir_all(tree.path().join("bin")).unwrap();
    fs::write(tree.path().join("bin/tool"), "#!/bin/sh\necho tool runs\n").unwrap();
    let runs = fs::Permissions::from_mode(0o700);
    fs::set_permissions(tree.path().join("bin/tool"), runs).unwrap();
    symlink("bin/tool", tree.path().join("link")).unwrap();
    let id = fake.store().put_folder(&tree).await;
    let data = fake.store().put(&[("a", b"data"), ("none", b"")]).await;
    let text = r"cd $FAIRLEAD_INPUTS; ./link; cat kernel/x/a; ls -d empty; wc -c < kernel/x/none
        stat -c %a bin/tool kernel/x/a bin; readlink link; pwd | grep -o '[^/]*$'";
    let inputs = vec![input(id, ""), input(data, "kernel/x")];
    let mut testbox = Testbox::start(config(&fake, &folder, DC));
    for (job, expected) in [("7", 29), ("8", 0)] {
        fake.grant(with_inputs(job, inputs.clone(), text));
        let end = fake.end(job).await;
        let log = fake.with(|state| state.log(job));
        assert_eq!(end["job_health"], "success", "{end:?} {log}");
        assert_eq!(
            log,
            "tool runs\ndataempty\n0\n555\n444\n755\nbin/tool\ninputs\n"
        );
        assert_eq!(fetched(&mut testbox).await, (expected, 29));
    }
    assert_eq!(fake.store().reads(), 2);
    // The scheduler is told of it, also by the next agent.
    let words_of = |asked: Option<&ConsumeRequest>| {
        let words = asked.map(|asked| asked.content.iter().cloned().collect::<BTreeSet<_>>());
        words.filter(|words| words.len() == 2)
    };
    fake.grant(script("9", "exit 0"));
    fake.end("9").await;
    let words = fake
        .until("words", |state| words_of(state.asked.last()))
        .await;
    assert!(words.contains(&fairlead_content::words([Digest::of(b"data")])[0]));
    testbox.stopped().await.unwrap();
    fake.with(|state| state.asked.clear());
    let testbox = Testbox::start(config(&fake, &folder, DC));
    let asked = |state: &State| state.asked.first().map(|first| words_of(Some(first)));
    assert_eq!(fake.until("words", asked).await, Some(words));
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn only_chunks_that_changed_are_fetched() {
    let (fake, folder) = (Fake::start(), folder());
    let mut bytes = noise(4_000_000);
    let first = fake.store().put(&[("image", &bytes)]).await;
    bytes[2_000_000] ^= 1;
    let second = fake.store().put(&[("image", &bytes)]).await;
    let mut testbox = Testbox::start(config(&fake, &folder, DC));
    fake.grant(with_inputs("7", vec![input(first, "")], "exit 0"));
    assert_eq!(fetched(&mut testbox).await, (4_000_000, 4_000_000));
    let text = "sha256sum < inputs/image";
    fake.grant(with_inputs("8", vec![input(second, "")], text));
    let (some, all) = fetched(&mut testbox).await;
    assert!(some > 0 && some < 2_200_000 && all == 4_000_000, "{some}");
    assert_eq!(fake.end("8").await["job_health"], "success");
    let file = folder.path().join("expected");
    fs::write(&file, &bytes).unwrap();
    let sum = std::process::Command::new("sha256sum")
        .stdin(fs::File::open(file).unwrap())
        .output();
    let sum = String::from_utf8(sum.unwrap().stdout).unwrap();
    assert_eq!(fake.with(|state| state.log("8")), sum);
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn a_byte_that_flips_in_the_cache_is_told_and_never_delivered() {
    let (fake, folder) = (Fake::start(), folder());
    let id = fake.store().put(&[("a", b"right bytes")]).await;
    let job = |job_id| with_inputs(job_id, vec![input(id, "")], "cat inputs/a");
    let mut testbox = Testbox::start(config(&fake, &folder, DC));
    fake.grant(job("7"));
    fake.end("7").await;
    let file = cached(folder.path(), b"right bytes");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&file, b"wrong bytes").unwrap();
    fake.grant(job("8"));
    let damaged = |event| match event {
        AgentEvent::CacheDamaged { job_id, file, .. } => Some((job_id, file)),
        _ => None,
    };
    let told = testbox.event(damaged).await;
    assert_eq!(told, ("8".to_owned(), "a".to_owned()));
    assert_eq!(fetched(&mut testbox).await, (11, 11));
    assert_eq!(fake.end("8").await["job_health"], "success");
    assert_eq!(fake.with(|state| state.log("8")), "right bytes");
    assert_eq!(fs::read(&file).unwrap(), b"right bytes");
    testbox.stopped().await.unwrap();
}

/// The job runs as the agent's own user here, so it can change everything.
#[tokio::test]
async fn a_job_that_changes_its_input_or_the_cache_poisons_no_other_job() {
    let (fake, folder) = (Fake::start(), folder());
    let id = fake.store().put(&[("a", b"right bytes")]).await;
    let job = |job_id, text: &str| with_inputs(job_id, vec![input(id, "")], text);
    let mut testbox = Testbox::start(config(&fake, &folder, DC));
    let own = "chmod u+w inputs/a; printf 'wrong bytes' > inputs/a; cat inputs/a";
    fake.grant(job("7", own));
    fake.end("7").await;
    assert_eq!(fake.with(|state| state.log("7")), "wrong bytes");
    assert_eq!(fetched(&mut testbox).await, (11, 11));
    let cache = cached(folder.path(), b"right bytes");
    let cache = cache.display();
    let shared = format!("cat inputs/a; chmod u+w {cache}; printf 'wrong bytes' > {cache}");
    fake.grant(job("8", &shared));
    fake.end("8").await;
    // It was the job's own copy.
    assert_eq!(fetched(&mut testbox).await, (0, 11));
    fake.grant(job("9", "cat inputs/a"));
    fake.end("9").await;
    for job in ["8", "9"] {
        assert_eq!(fake.with(|state| state.log(job)), "right bytes", "{job}");
    }
    testbox.stopped().await.unwrap();
}

type Damage = fn(&Path);

#[tokio::test]
async fn a_job_does_not_run_on_what_the_store_has_damaged_or_lost() {
    let (fake, folder) = (Fake::start(), folder());
    let testbox = Testbox::start(config(&fake, &folder, DC));
    let damages: [(&str, Damage); 2] = [
        ("7", |chunk| fs::write(chunk, b"wrong bytes").unwrap()),
        ("8", |chunk| fs::remove_file(chunk).unwrap()),
    ];
    for (job, damage) in damages {
        let bytes = format!("right byte{job}").into_bytes();
        let id = fake
            .store()
            .put(&[("deep/a", &bytes), ("b", b"fine")])
            .await;
        damage(&fake.store().chunk_file(&bytes));
        fake.grant(with_inputs(
            job,
            vec![input(id, "lib")],
            "cat inputs/lib/deep/a",
        ));
        let end = fake.end(job).await;
        assert_eq!(end["job_health"], "abort_provider", "{end:?}");
        let reason = &end["reason"];
        assert!(
            reason.contains(&id.to_string()) && reason.contains("'lib/deep/a'"),
            "{reason}"
        );
        assert_eq!(fake.with(|state| state.log(job)), "");
    }
    let unknown = Digest::of(b"nothing");
    fake.grant(with_inputs("9", vec![input(unknown, "")], "exit 0"));
    let end = fake.end("9").await;
    assert_eq!(end["job_health"], "abort_provider");
    assert!(end["reason"].contains(&unknown.to_string()), "{end:?}");
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn inputs_that_do_not_fit_together_are_the_job_s_mistake() {
    let (fake, folder) = (Fake::start(), folder());
    let one = fake.store().put(&[("lib/a", b"1")]).await;
    let other = fake.store().put(&[("a", b"2")]).await;
    let links = crate::testbox::folder();
    symlink("/etc", links.path().join("lib")).unwrap();
    let links = fake.store().put_folder(&links).await;
    let testbox = Testbox::start(config(&fake, &folder, DC));
    for (job, inputs) in [
        ("7", vec![input(one, ""), input(other, "lib")]),
        ("8", vec![input(links, ""), input(other, "lib")]),
    ] {
        fake.grant(with_inputs(job, inputs, "exit 0"));
        let end = fake.end(job).await;
        assert_eq!(end["job_health"], "abort_invalid", "{end:?}");
        assert!(end["reason"].contains("'lib/a'"), "{end:?}");
    }
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn a_job_can_be_stopped_while_its_inputs_are_fetched() {
    let (fake, folder) = (Fake::start(), folder());
    let id = fake.store().put(&[("a", b"1"), ("b", b"2")]).await;
    fake.store().may.forget_permits(1_000_000);
    fake.grant(with_inputs("7", vec![input(id, "")], "exit 0"));
    let testbox = Testbox::start(config(&fake, &folder, DC));
    fake.stage("7", "setup").await;
    fake.with(|state| {
        state.stops.push(StopOrder {
            job_id: "7".to_owned(),
            attempt: 1,
            health: "terminate".to_owned(),
            reason: "somebody said so".to_owned(),
            grace_s: 60,
        });
    });
    let end = fake.end("7").await;
    assert_eq!(end["job_health"], "terminate", "{end:?}");
    testbox.stopped().await.unwrap();
}

/// Jobs with their own users share the files of the cache itself, and cannot change them.
#[tokio::test]
async fn jobs_with_users_of_their_own_share_files_that_they_cannot_change() {
    // Another agent's jobs are the same user, and get copies.
    let are_apart = rustix::process::geteuid().is_root();
    let (fake, folder) = (Fake::start(), folder());
    // The job's user comes to its own folder through it.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let id = fake.store().put(&[("lib/a", b"right bytes")]).await;
    let text = "id -u | grep -q ^6 && echo apart
        chmod u+w inputs/lib/a || echo x >> inputs/lib/a || rm -f inputs/lib/a || mv inputs other || echo kept
        stat -c '%h %U' inputs/lib/a; cat inputs/lib/a";
    let mut child = crate::program::start(&fake, &folder, &["--keep"]);
    for job in ["7", "8"] {
        fake.grant(with_inputs(job, vec![input(id, "")], text));
        assert_eq!(fake.end(job).await["job_health"], "success");
        let log = fake.with(|state| state.log(job));
        let links = match (are_apart, job) {
            (true, "7") => "2 root",
            (true, _) => "3 root",
            (false, _) => "1 ",
        };
        assert!(log.contains(links) && log.ends_with("right bytes"), "{log}");
        let kept = log.starts_with("apart\n") && log.contains("kept\n");
        assert_eq!(kept, are_apart, "{log}");
    }
    assert_eq!(fake.store().reads(), 1);
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    child.wait().await.unwrap();
}
