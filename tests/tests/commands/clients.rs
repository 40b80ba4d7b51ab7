//! The clients of other languages, by their own checks, against a lab.

use std::process::Command;

use fairlead_tests::{Agent, Scheduler, Store, settings};

/// Checks the description of the interface, the types and calls of the client, and the server's own answers.
#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_passes_its_checks() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let more = ["--kind", "dc", "--memory", "4g"];
    let _agent = Agent::start(&scheduler.url(), "server-1", &more);
    let output = Command::new(settings::project().join("clients/python/check"))
        .env("FAIRLEAD_SERVER", scheduler.url())
        .env(
            "FAIRLEAD_VENV",
            concat!(env!("CARGO_TARGET_TMPDIR"), "/python-client"),
        )
        .output()
        .expect("bash");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
}
