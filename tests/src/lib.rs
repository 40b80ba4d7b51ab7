//! Shared by the black-box tests: real processes of the built binaries, plain HTTP, testboxes that a test plays, and
//! waits for conditions with a deadline.
//!
//! It never looks inside fairlead: it uses only command lines, HTTP and files. A missing binary or Elasticsearch fails
//! the test with a hint. No test is skipped.

#![expect(
    clippy::missing_panics_doc,
    reason = "a test's harness fails by panicking, everywhere"
)]

pub mod agent;
pub mod browser;
pub mod clock;
pub mod cluster;
pub mod command;
pub mod content;
pub mod cpu;
pub mod gate;
pub mod guarded;
pub mod history;
pub mod http;
pub mod imports;
pub mod jobs;
pub mod lab;
pub mod metrics;
pub mod person;
pub mod reaper;
pub mod receiver;
pub mod recorded;
pub mod scheduler;
pub mod secured;
pub mod server;
pub mod settings;
pub mod site;
pub mod sources;
pub mod terminal;
pub mod testbox;

pub use agent::Agent;
pub use clock::{eventually, until};
pub use cluster::Replicas;
pub use command::{Ran, fairlead};
pub use gate::Gate;
pub use guarded::Guarded;
pub use http::{Http, Reply, header};
pub use lab::Lab;
pub use metrics::Metrics;
pub use person::Person;
pub use receiver::Receiver;
pub use recorded::Recorded;
pub use scheduler::{Scheduler, Store};
pub use secured::Secured;
pub use server::Server;
pub use site::Site;
pub use terminal::{Terminal, on_terminal};
pub use testbox::Testbox;

/// Creates two tests from one `async fn name(store: Store)`: `name::embedded` and `name::elasticsearch`.
#[macro_export]
macro_rules! on_both_stores {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            #[tokio::test(flavor = "multi_thread")]
            async fn embedded() {
                super::$name($crate::Store::Embedded).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn elasticsearch() {
                super::$name($crate::Store::Elasticsearch).await;
            }
        }
    )+};
}
