//! Attacks by answers: pages of others, caches, and a copied cookie get nothing from them.

use fairlead_tests::{Guarded, Store, header, jobs};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_is_taken_for_another_kind_or_kept_for_others() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let id = lab.admin.submit(&jobs::dc("root")).await.remove(0);
    let bearer = format!("Bearer {}", lab.admin.token().unwrap_or_default());
    for path in [
        "/",
        "/scheduler/v1/health",
        "/metrics",
        "/openapi.json",
        "/ui/",
        "/scheduler/v1/jobs",
        &format!("/scheduler/v1/jobs/{id}"),
        &format!("/scheduler/v1/jobs/{id}/log"),
        &format!("/r/{id}"),
        "/scheduler/v1/jobs/1",
        "/scheduler/v1/overview",
        "/scheduler/v1/live",
        "/scheduler/v1/accounts",
        "/nothing",
    ] {
        let said = [("authorization", bearer.as_str())];
        let answer = lab.admin.get_with(path, &said).await;
        assert_eq!(
            header(&answer, "x-content-type-options"),
            "nosniff",
            "{path}"
        );
        let cache = header(&answer, "cache-control");
        let is_kept = !cache.contains("no-store") && !cache.contains("no-cache");
        assert!(!is_kept, "{path}: {cache}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logout_ends_a_copied_cookie() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let alice = lab.user("alice").await;
    let (base, nobody) = (lab.scheduler.url(), lab.nobody());
    let host = base.trim_start_matches("http://").to_owned();
    let post = async |path: &str, cookie: &str, body: String| {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {base}\r\nConnection: close\r\n"
        );
        let more = format!("{cookie}Content-Length: {}\r\n\r\n{body}", body.len());
        nobody.raw(&format!("{head}{more}")).await
    };
    let log_in = async || {
        let token = json!({"token": alice.token()}).to_string();
        let answer = post("/scheduler/v1/login", "", token).await;
        let cookie = answer.split("set-cookie: ").nth(1);
        let cookie = cookie.and_then(|text| text.split(';').next());
        cookie
            .unwrap_or_else(|| panic!("no cookie: {answer}"))
            .to_owned()
    };
    let whoami = async |cookie: &str| {
        let said = [("cookie", cookie)];
        let answer = nobody.get_with("/scheduler/v1/whoami", &said).await;
        answer.status().as_u16()
    };
    let (copied, other) = (log_in().await, log_in().await);
    assert_eq!((whoami(&copied).await, whoami(&other).await), (200, 200));
    let line = format!("Cookie: {other}\r\n");
    let out = post("/scheduler/v1/logout", &line, String::new()).await;
    assert!(out.starts_with("HTTP/1.1 200"), "{out}");
    assert_eq!((whoami(&copied).await, whoami(&other).await), (401, 401));
    // The token is still good.
    assert_eq!(alice.get("/scheduler/v1/whoami").await.status, 200);
    assert_eq!(whoami(&log_in().await).await, 200);
}
