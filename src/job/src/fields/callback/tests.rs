//! Tests of who is told.

use serde_json::json;

use super::*;

fn spec(fields: &Value) -> Spec {
    fields.as_object().cloned().unwrap_or_default()
}

fn read(callback: &Value) -> Result<Option<Callback>, String> {
    let job = json!({"callback": callback, "secrets": {"callback": "whsec_MfKQ9r8"}});
    Callback::of(&spec(&job)).map_err(|error| error.to_string())
}

fn notify(fields: &Value) -> Result<Notify, FieldError> {
    Notify::of(&spec(fields))
}

#[test]
fn an_address_or_a_map_says_who_is_told() {
    let plain = read(&json!("https://ci/hook")).unwrap().unwrap();
    assert_eq!(plain.on, CallbackEvents::ENDED);
    let all = ["ended", "failing", "failed", "passed_again"];
    let both = json!({"url": "http://ci:8080", "on": all});
    let both = read(&both).unwrap().unwrap();
    assert_eq!(
        (both.on.words(), both.kind),
        (all.to_vec(), CallbackKind::Fairlead)
    );
    let azure = json!({"url": "https://a", "kind": "azure", "job_id": "j", "task_id": "t"});
    let azure = read(&azure).unwrap().unwrap();
    assert_eq!(azure.kind.as_str(), "azure");
    assert_eq!(read(&json!(null)), Ok(None));
}

#[test]
fn events_are_stored_as_before() {
    let stored = json!({"ended": true, "failing": true});
    let events: CallbackEvents = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!(json!(events), stored);
    assert_eq!(json!(CallbackEvents::default()), json!({}));
    let only = CallbackEvents {
        failing: true,
        ..CallbackEvents::default()
    };
    assert!(!only.may_come_at_the_end() && events.may_come_at_the_end());
}

#[test]
fn a_notice_is_a_sentence_to_a_chat_unless_its_kind_says_otherwise() {
    let plain = notify(&json!({"notify": "https://chat/hooks/x"})).unwrap();
    let Notify::To(receiver) = plain else {
        panic!("{plain:?}");
    };
    assert_eq!(
        (receiver.on, receiver.kind),
        (CallbackEvents::ENDED, CallbackKind::Text)
    );
    let own = json!({"notify": {"url": "https://ci", "kind": "fairlead"}});
    let refused = notify(&own).unwrap_err();
    assert_eq!(refused.field, "secrets.notify");
    assert_eq!(notify(&json!({"notify": "none"})), Ok(Notify::Nobody));
    assert_eq!(notify(&json!({"suite": "x"})), Ok(Notify::AsAccount));
}

#[test]
fn the_address_of_a_chat_may_be_the_secret() {
    let hidden = json!({
        "notify": {"on": "failed"}, "secrets": {"notify": "https://chat/hooks/x"},
    });
    let receiver = notify(&hidden).unwrap().own().unwrap();
    assert_eq!(receiver.url, "https://chat/hooks/x");
    let sealed = json!({"notify": {"on": "failed"}, "secrets_sealed": "7f"});
    assert_eq!(notify(&sealed).unwrap().own().unwrap().url, "");
    let wrong = json!({"notify": {"on": "failed"}, "secrets": {"notify": "hush"}});
    let refused = notify(&wrong).unwrap_err();
    assert_eq!(refused.field, "secrets.notify");
    assert!(!refused.to_string().contains("hush"), "{refused}");
    assert_eq!(
        notify(&json!({"notify": {"on": "failed"}}))
            .unwrap_err()
            .field,
        "notify"
    );
}

#[test]
fn nonsense_is_refused_with_its_place() {
    for (callback, word) in [
        (json!(7), "is no address"),
        (json!("ftp://ci"), "is no address"),
        (json!("https://user@ci"), "is no address"),
        (json!("https:///x"), "is no address"),
        (json!("https://ci/a b"), "is no address"),
        (json!("none"), "is no address"),
        (json!({}), "url is missing"),
        (json!({"url": "https://ci", "om": "ended"}), "'om'"),
        (json!({"url": "https://ci", "on": "never"}), "callback.on"),
        (json!({"url": "https://ci", "kind": "x"}), "callback.kind"),
        (
            json!({"url": "https://ci", "kind": "azure"}),
            "callback.job_id",
        ),
        (
            json!({"url": "https://ci", "kind": "github"}),
            "callback.context",
        ),
    ] {
        let why = read(&callback).unwrap_err();
        assert!(why.contains(word), "{callback}: {why}");
    }
    for (fields, field) in [
        (json!({"notify": "nobody"}), "notify"),
        (json!({"notify": {"url": "x"}}), "notify.url"),
        (
            json!({"notify": {"url": "https://c", "on": ["x"]}}),
            "notify.on",
        ),
        (
            json!({"notify": {"url": "https://c", "kind": 7}}),
            "notify.kind",
        ),
        (
            json!({"notify": "https://c", "secrets": {"notify": "a b"}}),
            "secrets.notify",
        ),
    ] {
        let refused = notify(&fields).unwrap_err();
        assert_eq!(refused.field, field, "{fields}: {refused}");
    }
    let bare = spec(&json!({"callback": "https://ci"}));
    assert_eq!(Callback::of(&bare).unwrap_err().field, "secrets.callback");
}
