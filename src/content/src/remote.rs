//! The HTTP of object stores: one client for all, with timeouts. It sees when a store asks for fewer requests.

use std::{error::Error, io, sync::Arc, time::Duration};

use async_trait::async_trait;
use http::StatusCode;
use http_body_util::BodyExt;
use object_store::{
    BackoffConfig, ClientConfigKey, ClientOptions, RetryConfig,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
        HttpResponseBody, HttpService,
    },
};

use crate::health::Health;

/// Timeout of a connection's set-up.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Longest time without a byte of an answer.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// Longest time of a request with its answer: the largest manifest at half a megabyte a second.
const REQUEST_WITHIN: Duration = Duration::from_mins(2);
/// Maximum number of repeats of a request that the store refused for its load, or that was cut.
const REPEATS_MAX: usize = 8;
/// Time after which a request is not repeated.
const REPEAT_WITHIN: Duration = Duration::from_mins(1);

/// Returns the repeats. Waits grow at random up to a bound, so that many clients do not come back together.
pub(crate) fn repeats() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(200),
            max_backoff: Duration::from_secs(10),
            base: 2.0,
        },
        max_retries: REPEATS_MAX,
        retry_timeout: REPEAT_WITHIN,
    }
}

/// Connector that makes the client.
#[derive(Debug)]
pub(crate) struct Connector {
    pub(crate) health: Arc<Health>,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_WITHIN)
            .read_timeout(SILENCE_MAX)
            .timeout(REQUEST_WITHIN)
            .https_only(allows_http.as_deref() != Some("true"))
            .redirect(reqwest::redirect::Policy::none())
            .user_agent("fairlead")
            .build()
            .map_err(|error| object_store::Error::Generic {
                store: "HTTP client",
                source: error.into(),
            })?;
        let health = Arc::clone(&self.health);
        Ok(HttpClient::new(Service { client, health }))
    }
}

#[derive(Debug)]
struct Service {
    client: reqwest::Client,
    health: Arc<Health>,
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let url = reqwest::Url::parse(&parts.uri.to_string())
            .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let mut sent = reqwest::Request::new(parts.method, url);
        *sent.headers_mut() = parts.headers;
        *sent.body_mut() = Some(match body.as_bytes() {
            Some(bytes) => bytes.clone().into(),
            None => reqwest::Body::wrap(body),
        });
        let answer = self.client.execute(sent).await.map_err(problem)?;
        if matches!(
            answer.status(),
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
        ) {
            self.health.throttled();
        }
        let answer: http::Response<reqwest::Body> = answer.into();
        Ok(answer.map(|body| HttpResponseBody::new(body.map_err(problem))))
    }
}

/// Classifies an error, which decides if the request is repeated. The address may be signed and is not shown.
fn problem(error: reqwest::Error) -> HttpError {
    let kind = if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_connect() {
        HttpErrorKind::Connect
    } else if error.is_decode() {
        HttpErrorKind::Decode
    } else if was_cut(&error) {
        HttpErrorKind::Interrupted
    } else {
        HttpErrorKind::Unknown
    };
    HttpError::new(kind, error.without_url())
}

/// Returns true if the connection ended in the middle. A server may close an idle one while a request is on its way.
fn was_cut(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return matches!(
                error.kind(),
                io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::UnexpectedEof
            );
        }
        if let Some(error) = error.downcast_ref::<hyper::Error>()
            && (error.is_incomplete_message() || error.is_closed() || error.is_body_write_aborted())
        {
            return true;
        }
        cause = error.source();
    }
    false
}
