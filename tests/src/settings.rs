//! Settings of the tests from their environment. Only this module reads it.

use std::{env, path::PathBuf};

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the tests read their environment"
)]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns a binary of the workspace, from the folder that this test was built into.
pub fn binary(name: &str) -> PathBuf {
    let this = env::current_exe().unwrap_or_else(|error| panic!("own path: {error}"));
    let path = this
        .ancestors()
        .skip(1)
        .find(|folder| !folder.ends_with("deps"))
        .unwrap_or_else(|| panic!("{} is in no folder", this.display()))
        .join(name);
    assert!(
        path.exists(),
        "{} is not there\n  hint: cargo build --workspace --bins (scripts/test does it)",
        path.display()
    );
    path
}

/// Returns the URLs of the Elasticsearch for tests.
pub fn elasticsearch() -> Vec<String> {
    let urls = variable("ES_URL").unwrap_or_else(|| {
        panic!(
            "no Elasticsearch to test on: ES_URL is not set\n  hint: scripts/test starts one; \
             or scripts/elasticsearch start, and ES_URL=$(scripts/elasticsearch url)"
        )
    });
    let urls: Vec<_> = urls
        .split([',', ' ', '\n'])
        .filter(|url| !url.is_empty())
        .collect();
    urls.iter()
        .map(|url| url.trim_end_matches('/').to_owned())
        .collect()
}

/// Returns the folder of real job files, if there is one.
pub fn corpus() -> Option<PathBuf> {
    variable("FAIRLEAD_CORPUS").map(PathBuf::from)
}

/// Returns the workspace's root.
pub fn project() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.clone(), PathBuf::from)
}

/// Returns the folders of the search path.
pub fn search_path() -> Vec<PathBuf> {
    variable("PATH").map_or_else(Vec::new, |path| env::split_paths(&path).collect())
}
