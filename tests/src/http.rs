//! Plain HTTP like any client's, and assertions about the answers.

use std::time::Duration;

use fairlead_api::{ErrorBody, SubmitItem};
use reqwest::{Client, Method, header};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Timeout of a request, longer than any long poll of a test.
const REQUEST_LIMIT: Duration = Duration::from_mins(2);

/// Client of one scheduler, with an account.
#[derive(Debug, Clone)]
pub struct Http {
    client: Client,
    base: String,
    token: Option<String>,
}

/// An answer that was read completely.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Request, for messages.
    pub asked: String,
    /// Status of the answer.
    pub status: u16,
    /// Body. Bytes that are not UTF-8 are replaced.
    pub text: String,
}

impl Http {
    /// Returns a client of `base`, for example `http://127.0.0.1:3000`, without an account.
    pub fn new(base: &str) -> Self {
        let client = Client::builder()
            .no_proxy()
            .timeout(REQUEST_LIMIT)
            .build()
            .unwrap_or_else(|error| panic!("an HTTP client: {error}"));
        Self {
            client,
            base: base.to_owned(),
            token: None,
        }
    }

    /// Returns the client with a bearer token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self {
            token: Some(token.to_owned()),
            ..self.clone()
        }
    }

    /// Returns its bearer token, if it has one.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Returns its base URL.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Sends any request. Fails if there is no answer.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<Reply, String> {
        let mut request = self
            .client
            .request(method.clone(), format!("{}{path}", self.base));
        if !content_type.is_empty() {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let broken = |error: reqwest::Error| format!("{method} {path}: {error:?}");
        let response = request.body(body).send().await.map_err(broken)?;
        let status = response.status().as_u16();
        let bytes = response.bytes().await.map_err(broken)?;
        Ok(Reply {
            asked: format!("{method} {path}"),
            status,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }

    /// Sends any request.
    ///
    /// # Panics
    /// Panics if there is no answer.
    pub async fn send(&self, method: Method, path: &str, kind: &str, body: Vec<u8>) -> Reply {
        self.try_send(method, path, kind, body)
            .await
            .unwrap_or_else(|error| panic!("no answer: {error}"))
    }

    /// Sends these bytes on a new connection, and returns the answer until the connection is closed. Bytes that a
    /// client library would correct or refuse are sent unchanged.
    pub async fn raw(&self, bytes: &str) -> String {
        let address = self.base.trim_start_matches("http://");
        let mut answer = Vec::new();
        let exchange = async {
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(bytes.as_bytes()).await?;
            if !bytes.contains("Connection: close") {
                stream.shutdown().await?;
            }
            stream.read_to_end(&mut answer).await
        };
        // A server may cut a nonsensical connection short.
        let _ = tokio::time::timeout(REQUEST_LIMIT, exchange).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Sends a GET.
    pub async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, "", Vec::new()).await
    }

    /// Sends a GET with these headers. The answer is not read yet, and has no time limit.
    ///
    /// # Panics
    /// Panics if there is no answer.
    pub async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> reqwest::Response {
        let client = Client::builder().no_proxy().build();
        let client = client.unwrap_or_else(|error| panic!("an HTTP client: {error}"));
        let request = client.get(format!("{}{path}", self.base));
        let request = headers.iter().fold(request, |request, (name, value)| {
            request.header(*name, *value)
        });
        let answer = request.send().await;
        answer.unwrap_or_else(|error| panic!("no answer: {error:?}"))
    }

    /// Sends a POST of JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        let body = body.to_string().into_bytes();
        self.send(Method::POST, path, "application/json", body)
            .await
    }

    /// Submits jobs, and returns their ids.
    ///
    /// # Panics
    /// Panics if any of them is refused.
    pub async fn submit(&self, jobs: &Value) -> Vec<String> {
        let items = self.submit_items(jobs).await;
        for item in &items {
            assert!(item.job_id != "0", "refused: {item:?}");
        }
        items.into_iter().map(|item| item.job_id).collect()
    }

    /// Submits jobs, and returns the result of each. The status must match the results.
    pub async fn submit_items(&self, jobs: &Value) -> Vec<SubmitItem> {
        let reply = self.post("/scheduler/v1/jobs/submit", jobs).await;
        let items: Vec<SubmitItem> = serde_json::from_str(&reply.text)
            .unwrap_or_else(|error| panic!("{error} in {}: {}", reply.status, reply.text));
        let any = items.iter().any(|item| item.job_id != "0");
        assert_eq!(any, reply.status == 200, "{}: {}", reply.status, reply.text);
        assert!(
            any || (400..500).contains(&reply.status),
            "{}",
            reply.status
        );
        items
    }

    /// Returns one job, flat.
    pub async fn job(&self, id: &str) -> Value {
        self.get(&format!("/scheduler/v1/jobs/{id}")).await.json()
    }

    /// Returns one field of a job, as text.
    pub async fn field(&self, id: &str, field: &str) -> String {
        match &self.job(id).await[field] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

impl Reply {
    /// Returns the JSON of a 200.
    ///
    /// # Panics
    /// Panics if it is another answer.
    pub fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}: {}", self.asked, self.text);
        serde_json::from_str(&self.text)
            .unwrap_or_else(|error| panic!("{}: {error} in {}", self.asked, self.text))
    }

    /// Returns the refusal that the answer must be: this status, and a body with code, message and hint.
    ///
    /// # Panics
    /// Panics if it is another answer.
    pub fn refused(&self, status: u16) -> ErrorBody {
        assert_eq!(self.status, status, "{}: {}", self.asked, self.text);
        self.error_body()
    }

    /// Returns a refusal with any 4xx status. For a submit, all jobs must be refused, and the result is that of the
    /// first.
    ///
    /// # Panics
    /// Panics if it is another answer, or lacks a part.
    pub fn refusal(&self) -> ErrorBody {
        let refused = (400..500).contains(&self.status);
        assert!(refused, "{}: {} {}", self.asked, self.status, self.text);
        self.error_body()
    }

    fn error_body(&self) -> ErrorBody {
        let context = format!("{}: {} {}", self.asked, self.status, self.text);
        let value: Value =
            serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in {context}"));
        let bodies = match value {
            Value::Array(items) => items,
            other => vec![other],
        };
        let read = |value| -> ErrorBody {
            let body: ErrorBody = serde_json::from_value(value)
                .unwrap_or_else(|error| panic!("{error} in {context}"));
            assert!(
                !body.message.is_empty() && !body.hint.is_empty(),
                "{context}"
            );
            body
        };
        let bodies: Vec<_> = bodies.into_iter().map(read).collect();
        bodies
            .into_iter()
            .next()
            .unwrap_or_else(|| panic!("nothing said: {context}"))
    }
}

/// Returns a header of an answer that is not read yet. Empty: no such header.
///
/// # Panics
/// Panics if it is not text.
pub fn header(response: &reqwest::Response, name: &str) -> String {
    let value = response.headers().get(name);
    value.map_or_else(String::new, |value| {
        let text = value.to_str();
        text.unwrap_or_else(|error| panic!("{name}: {error}"))
            .to_owned()
    })
}
