//! Images are part of what a result is of.

use super::*;

/// The host tells these images from now on.
fn images(flows: &Flows, family: &str, images: &[&str]) {
    let images: Vec<String> = images.iter().map(|&image| image.to_owned()).collect();
    let told = flows.hosts.lab.hosts.update("h1", |host| {
        host.facts.insert(family.to_owned(), images);
    });
    told.unwrap();
}

/// Runs a job in an image that holds this.
async fn run_in(flows: &Arc<Flows>, more: &Value, digest: &str) -> JobId {
    let id = accepted(flows, more).await;
    run_with(flows, id, |state| {
        state.reuse.as_deref_mut().unwrap().image_digest = digest.to_owned();
    })
    .await;
    id
}

#[tokio::test]
async fn a_result_counts_only_where_a_host_has_its_image_as_it_was() {
    let (_data, flows) = lab().await;
    let job = json!({"docker_image": "debian:12"});
    images(&flows, "image", &["debian:12=aa"]);
    let id = run_in(&flows, &job, "aa").await;
    assert_eq!(taken(&flows, &job).await, Ok(id));
    images(&flows, "image", &["debian:12=bb", "debian:13=aa"]);
    let answer = taken(&flows, &job).await;
    assert!(has(&answer, "as it was: debian:12=aa"), "{answer:?}");
    // Both results are kept side by side.
    let other = json!({"docker_image": "debian:12", "priority": 7});
    let again = run_in(&flows, &other, "bb").await;
    assert_eq!(taken(&flows, &job).await, Ok(again));
    images(&flows, "image", &["debian:12=aa"]);
    assert_eq!(taken(&flows, &job).await, Ok(id));
    // Its host did not say what the image held.
    let unsaid = json!({"docker_image": "debian:12", "n": 2});
    run_in(&flows, &unsaid, "").await;
    assert!(has(&taken(&flows, &unsaid).await, "no earlier job"));
}

#[tokio::test]
async fn the_image_of_jobs_that_name_none_is_of_the_class() {
    let (_data, flows) = lab().await;
    images(&flows, "default-image", &["dc:debian:12=aa"]);
    let id = run_in(&flows, &json!({}), "aa").await;
    assert_eq!(taken(&flows, &json!({})).await, Ok(id));
    images(&flows, "default-image", &["dc:debian:12=bb"]);
    let answer = taken(&flows, &json!({})).await;
    assert!(
        has(&answer, "default image 'dc:debian:12=aa' is now"),
        "{answer:?}"
    );
    // It changed while the job ran.
    run_in(&flows, &json!({"n": 2}), "aa").await;
    assert!(has(
        &taken(&flows, &json!({"n": 2})).await,
        "no earlier job"
    ));
}
