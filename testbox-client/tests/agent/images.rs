//! Which image a job gets, by a stand-in for podman that notes what it is asked.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use fairlead_api::Grant;
use fairlead_testbox::{AgentConfig, ExecutorChoice};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    fake::Fake,
    testbox::{DC, Testbox, config, folder, job},
};

/// Id of the image that a pull brings. The name means another image right afterwards.
const PULLED: &str = "abababababababababababababababababababababababababababababababab";

/// Stand-in for podman that has no image before it pulls one.
const PODMAN: &str = r#"#!/bin/sh
echo "$*" >> "$0.asked"
case "$*" in
--version) echo podman version 4.3.1 ;;
info*) echo {} ;;
*.Size*) [ -e "$0.pulled" ] || exit 125; echo 1000 ;;
image*) echo cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd ;;
pull*) : > "$0.pulled"; echo PULLED ;;
esac
"#;

/// Creates the stand-in and its runtime, which is never called.
fn podman(folder: &TempDir) -> std::path::PathBuf {
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    for (name, text) in [
        ("podman", PODMAN.replace("PULLED", PULLED)),
        ("runc", String::new()),
    ] {
        fs::write(bin.join(name), text).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    bin
}

/// Returns the calls that begin with a word.
fn asked(bin: &Path, word: &str) -> Vec<String> {
    let all = fs::read_to_string(bin.join("podman.asked")).unwrap();
    let of_word = all
        .lines()
        .filter(|line| line.split(' ').next() == Some(word));
    of_word.map(str::to_owned).collect()
}

fn named(id: &str, image: &str) -> Grant {
    let spec = json!({"suite": "s", "testbox": "dc", "script": "true"});
    let mut grant = job(id, spec);
    let image = Value::from(image);
    grant.job.insert("docker_image".to_owned(), image);
    grant
}

fn start(fake: &Fake, work: &TempDir, bin: &Path, registries: &[&str]) -> Testbox {
    Testbox::start(AgentConfig {
        executor: ExecutorChoice::Auto,
        path: format!("{}:/usr/bin:/bin", bin.display()),
        registries: registries.iter().map(|&place| place.to_owned()).collect(),
        ..config(fake, work, DC)
    })
}

#[tokio::test]
async fn a_container_is_started_from_what_was_pulled_from_a_registry() {
    let (fake, work, tools) = (Fake::start(), folder(), folder());
    let bin = podman(&tools);
    fake.grant(named("7", "debian:12"));
    let testbox = start(&fake, &work, &bin, &[]);
    let end = fake.end("7").await;
    let full = "docker.io/library/debian:12";
    let pulls = asked(&bin, "pull");
    assert_eq!(pulls, [format!("pull --quiet docker://{full}")], "{end:?}");
    let [run] = asked(&bin, "run").try_into().unwrap();
    assert!(run.contains(&format!(" {PULLED} ")), "{run}");
    assert!(!run.contains("debian"), "{run}");
    assert_eq!(end["image_digest"], PULLED[..32]);
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn what_the_engine_would_read_elsewhere_never_reaches_it() {
    let (fake, work, tools) = (Fake::start(), folder(), folder());
    let bin = podman(&tools);
    let images = [
        "docker-archive:/etc/hostname",
        "oci:layout",
        "dir:/srv/image",
        "containers-storage:debian:12",
        "/etc/hostname",
    ];
    for (n, image) in images.iter().enumerate() {
        fake.grant(named(&n.to_string(), image));
    }
    let testbox = start(&fake, &work, &bin, &[]);
    for n in 0..images.len() {
        let end = fake.end(&n.to_string()).await;
        assert_eq!(end["job_health"], "abort_invalid", "{end:?}");
        assert!(end["reason"].contains("registry"), "{end:?}");
    }
    for word in ["pull", "image", "run"] {
        assert_eq!(asked(&bin, word), [""; 0]);
    }
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn a_site_may_allow_some_registries_only() {
    let (fake, work, tools) = (Fake::start(), folder(), folder());
    let bin = podman(&tools);
    fake.grant(named("7", "registry.example/team/image:1"));
    fake.grant(named("8", "registry.example/other/image:1"));
    fake.grant(named("9", "debian:12"));
    let testbox = start(&fake, &work, &bin, &["registry.example/team"]);
    for id in ["8", "9"] {
        let end = fake.end(id).await;
        assert_eq!(end["job_health"], "abort_invalid", "{end:?}");
        assert!(end["reason"].contains("registry.example/team"), "{end:?}");
    }
    fake.end("7").await;
    let pull = "pull --quiet docker://registry.example/team/image:1";
    assert_eq!(asked(&bin, "pull"), [pull]);
    testbox.stopped().await.unwrap();
}
