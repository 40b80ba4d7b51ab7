//! Authenticates a sender before its body is read. With tokens, the body of an unidentified sender is not read.
//!
//! A token in the head decides. compass-ci's clients put their token into the body instead. So a small JSON body is
//! searched for it, before anything is built from the body.

use std::fmt;

use bytes::Bytes;
use fairlead_api::ErrorCode;
use serde::{
    Deserialize,
    de::{
        DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
    },
};
use serde_json::{Map, Value};

use super::request::{Request, to_object};
use crate::flows::Flows;
use fairlead_base::{
    budget::{Charge, Identity},
    errors::Refusal,
};
use fairlead_known::accounts::{Credentials, Who};

/// Reads the body of a request whose sender may be named in it.
pub(super) async fn read_signed(
    flows: &Flows,
    request: &mut Request,
    limit: usize,
) -> Result<Bytes, Refusal> {
    if !flows.people.accounts.tokens_needed()
        || flows
            .people
            .accounts
            .known(&request.credentials(None))
            .is_some()
    {
        return request.read_body(limit).await;
    }
    let head = Credentials {
        account: None,
        ..request.credentials(None)
    };
    if head.token.is_some() {
        flows.people.accounts.identify(&head)?;
    }
    let most = flows.ctx.config.limits.stranger_body_bytes_max;
    let read = request.read_body(limit.min(most)).await;
    let body = read.map_err(|refusal| match refusal.body().code {
        ErrorCode::TooLarge => unsigned(most),
        _ => refusal,
    })?;
    let Some(token) = token_in(&body) else {
        return Err(unsigned(most));
    };
    let who = flows.people.accounts.identify(&Credentials {
        token: Some(token),
        ..Credentials::default()
    })?;
    request.identified();
    request.belongs_to(Identity::Account(who.name));
    Ok(body)
}

/// A body that may name its sender, as long as it is charged.
pub(super) struct Signed {
    object: Map<String, Value>,
    _charge: Charge,
}

impl Signed {
    /// Reads it, and finds its sender.
    pub(super) async fn read(flows: &Flows, request: &mut Request) -> Result<(Who, Self), Refusal> {
        let bytes = read_signed(flows, request, flows.ctx.config.limits.body_bytes_max).await?;
        request.charge_built(&bytes)?;
        let object = to_object(&bytes)?;
        let said = request.credentials(Some(&object));
        let who = flows.people.accounts.identify(&said)?;
        let none = request.another_charge();
        let signed = Self {
            object,
            _charge: std::mem::replace(&mut request.charge, none),
        };
        Ok((who, signed))
    }

    pub(super) const fn object(&self) -> &Map<String, Value> {
        &self.object
    }

    /// Makes a `T` of it. `hint`: what such a body looks like.
    pub(super) fn take_as<T: DeserializeOwned>(
        &mut self,
        hint: &'static str,
    ) -> Result<T, Refusal> {
        parsed(std::mem::take(&mut self.object), hint)
    }
}

/// An object as a `T`. `hint`: what such an object looks like.
pub(super) fn parsed<T: DeserializeOwned>(
    object: Map<String, Value>,
    hint: &'static str,
) -> Result<T, Refusal> {
    serde_json::from_value(Value::Object(object)).map_err(|error| {
        let message = format!("the body cannot be read: {error}");
        Refusal::new(ErrorCode::BadField, message, hint)
    })
}

fn unsigned(most: usize) -> Refusal {
    Refusal::new(
        ErrorCode::Unauthorized,
        format!(
            "no token was sent, neither in the head nor as my_token in a JSON body of at most {most} bytes"
        ),
        "send 'Authorization: Bearer TOKEN' with a token from: fairlead account add NAME",
    )
}

/// `my_token` of an object, or of the first object of an array that has one. Whatever else is there is skipped.
fn token_in(body: &[u8]) -> Option<String> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let found = reader.deserialize_any(Top).ok()?;
    reader.end().ok()?;
    found
}

/// A JSON value of which only `my_token` is wanted.
struct Top;

impl<'de> Visitor<'de> for Top {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        in_map(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        loop {
            if found.is_some() {
                if seq.next_element::<IgnoredAny>()?.is_none() {
                    return Ok(found);
                }
            } else {
                match seq.next_element_seed(Item)? {
                    Some(token) => found = token,
                    None => return Ok(None),
                }
            }
        }
    }
}

/// One item of an array.
struct Item;

impl<'de> DeserializeSeed<'de> for Item {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Item {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a job")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        in_map(map)
    }
}

/// The name of a field, of which only one matters.
#[derive(Deserialize)]
enum Field {
    #[serde(rename = "my_token")]
    Token,
    #[serde(other)]
    Other,
}

fn in_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<String>, A::Error> {
    let mut token = None;
    while let Some(field) = map.next_key::<Field>()? {
        match field {
            Field::Token => token = map.next_value::<Option<String>>()?,
            Field::Other => {
                map.next_value::<IgnoredAny>()?;
            }
        }
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_found_and_nothing_else_is_looked_at() {
        let token = |body: &str| token_in(body.as_bytes());
        let good = r#"{"suite": "x", "a": [1, {"my_token": "no"}], "my_token": "yes"}"#;
        assert_eq!(token(good).as_deref(), Some("yes"));
        let list = format!("[{{}}, {good}, {good}]");
        assert_eq!(token(&list).as_deref(), Some("yes"));
        let beside = r#"[7, "x", null, [1], {"my_token": "yes"}, 8]"#;
        assert_eq!(token(beside).as_deref(), Some("yes"));
        for bad in [
            "",
            "null",
            "[]",
            "suite: x\nmy_token: yes\n",
            r#"{"my_token": 7}"#,
            r#"{"my_token": "yes""#,
            r#"{"suite": {"my_token": "yes"}}"#,
        ] {
            assert_eq!(token(bad), None, "{bad}");
        }
    }
}
