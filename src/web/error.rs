//! What goes wrong between a request and its answer, and who is told what.
//!
//! A [`Problem`] is what the outside may know: a status, a code for programs, and a sentence that
//! says what is wrong, where, and what to do. [`ApiError`] shows it as JSON, [`PageError`] as a
//! page like the others. What only the inside may know (the database's own words) goes to the
//! log and never into an answer.

use actix_web::error::JsonPayloadError;
use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, ResponseError, web};
use serde::Serialize;

use super::pages;
use crate::store::StoreError;

/// A decision about a finding, percent-encoded at worst: 3 times its 4 KiB, and some.
const SMALL_BODY_BYTES_MAX: usize = 16 << 10;

/// What the outside is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The HTTP status.
    pub status: StatusCode,
    /// For programs; never changes.
    pub code: &'static str,
    /// For people: what, where, what to do.
    pub message: String,
    /// When it may be worth another try, in seconds.
    pub retry_after_s: Option<u64>,
}

impl Problem {
    /// A problem with this status.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), retry_after_s: None }
    }

    /// The request is wrong.
    pub fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// Not now.
    pub fn busy(status: StatusCode, code: &'static str, message: &str, retry_after_s: u64) -> Self {
        Self { retry_after_s: Some(retry_after_s), ..Self::new(status, code, message) }
    }
}

/// A database that does not answer is overload or an outage, never a 500; a value that can't be
/// read back is ours.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "a request failed in the database");
        match error {
            StoreError::Unreadable { .. } => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "A stored value can't be read. The collector's log says which one.",
            ),
            _ => Self::busy(
                StatusCode::SERVICE_UNAVAILABLE,
                "database_away",
                "The database does not answer. Try again; if it goes on, see the collector's log.",
                2,
            ),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// A problem of the API: `{"error":{"code","message"}}`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ApiError(pub Problem);

/// A problem of a page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PageError(pub Problem);

impl<T: Into<Problem>> From<T> for ApiError {
    fn from(problem: T) -> Self {
        Self(problem.into())
    }
}

impl<T: Into<Problem>> From<T> for PageError {
    fn from(problem: T) -> Self {
        Self(problem.into())
    }
}

/// The body of every error of the API.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ErrorBody {
    /// What went wrong.
    pub error: ErrorText,
}

/// What went wrong.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ErrorText {
    /// For programs; never changes.
    pub code: String,
    /// For people: what, where, what to do.
    pub message: String,
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.0.status
    }

    fn error_response(&self) -> HttpResponse {
        let Problem { code, message, .. } = self.0.clone();
        start(&self.0).json(ErrorBody { error: ErrorText { code: code.into(), message } })
    }
}

impl ResponseError for PageError {
    fn status_code(&self) -> StatusCode {
        self.0.status
    }

    fn error_response(&self) -> HttpResponse {
        start(&self.0).content_type(pages::HTML).body(pages::error::render(&self.0))
    }
}

/// Bodies of the read API are small; what does not fit is told as all errors are.
pub(super) fn json_config() -> web::JsonConfig {
    web::JsonConfig::default().limit(SMALL_BODY_BYTES_MAX).error_handler(|error, _| {
        if matches!(error, JsonPayloadError::ContentType) {
            let message = "Send JSON, and say so: Content-Type: application/json.";
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return ApiError(Problem::new(status, "unknown_content_type", message)).into();
        }
        let message =
            format!("The body can't be read: {error}. Send JSON as /openapi.json has it.");
        ApiError(Problem::new(error.status_code(), "bad_body", message)).into()
    })
}

/// As [`json_config`], for the forms of the pages.
pub(super) fn form_config() -> web::FormConfig {
    web::FormConfig::default().limit(SMALL_BODY_BYTES_MAX).error_handler(|error, _| {
        let message = format!("The form can't be read: {error}. Go back and send it again.");
        PageError(Problem::new(error.status_code(), "bad_body", message)).into()
    })
}

/// The answer where no route is.
pub(super) async fn not_found(request: HttpRequest) -> HttpResponse {
    let path = request.path();
    answer(
        &request,
        match is_api(path) {
            true => Problem::not_found(format!("There is nothing at {path}. {API_TOLD}")),
            false => Problem::not_found(format!("There is no page at {path}.")),
        },
    )
}

/// The answer where a route is, but not for this method.
pub(super) async fn wrong_method(request: HttpRequest) -> HttpResponse {
    let (method, path) = (request.method(), request.path());
    let told = format!("{path} does not take {method}. {API_TOLD}");
    answer(&request, Problem::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", told))
}

const API_TOLD: &str = "/openapi.json lists what there is.";

/// A problem that no handler has met: JSON for the API, a page for people.
fn answer(request: &HttpRequest, problem: Problem) -> HttpResponse {
    match is_api(request.path()) {
        true => ApiError(problem).error_response(),
        false => PageError(problem).error_response(),
    }
}

/// Whether an address is for programs.
pub(super) fn is_api(path: &str) -> bool {
    path.starts_with("/api/") || path.starts_with("/-/") || path == "/metrics"
}

fn start(problem: &Problem) -> actix_web::HttpResponseBuilder {
    let mut response = HttpResponse::build(problem.status);
    if let Some(seconds) = problem.retry_after_s {
        response.insert_header((header::RETRY_AFTER, seconds.to_string()));
    }
    response
}
