//! Tests of the Elasticsearch store on a real server: the conformance suite, and cases that need a server.
//!
//! `ES_URL` (comma separated) names the server; without it every test fails. Each test has its own index prefix and
//! removes it.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests panic")]

#[path = "../conformance/mod.rs"]
mod conformance;
mod moving;
mod opening;
mod reads;
#[path = "../server/mod.rs"]
mod server;
mod writes;

use fairlead_store::{ElasticConfig, ElasticStore, JobStore};
use server::Server;

/// The one place that asks where Elasticsearch is.
#[expect(clippy::disallowed_methods, reason = "the one place that asks")]
fn the_server() -> Server {
    let urls = std::env::var("ES_URL").expect(
        "these tests need a real Elasticsearch: ES_URL=$(scripts/elasticsearch start) cargo test",
    );
    Server::new(&urls, None, None)
}

async fn with_store(case: impl AsyncFnOnce(&dyn JobStore)) {
    with_config(async |_: &Server, config: ElasticConfig| {
        case(&ElasticStore::open(config).await.unwrap()).await;
    })
    .await;
}

/// Clears away what a case made, however it ended.
async fn with_config(case: impl AsyncFnOnce(&Server, ElasticConfig)) {
    let server = the_server();
    server
        .with_config(async |config| case(&server, config).await)
        .await;
}

conformance!(with_store);
