//! A person closes a finding: the decision becomes a record of the log, and the judge follows it
//! like any other record. So a rebuild keeps it.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};

use super::findings::absent;
use crate::audit::State;
use crate::outcome::{Closed, Id};
use crate::web::error::{ApiError, ErrorBody, Problem};
use crate::web::{AppState, origin};

/// Longest note, in bytes: a page of text.
const NOTE_BYTES_MAX: usize = 4_096;

/// A person's decision.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CloseRequest {
    /// Why, in a word or two: 1 to 256 bytes.
    reason: String,
    /// In words: up to 4,096 bytes.
    #[serde(default)]
    note: String,
}

/// The decision is on disk; the audit follows within moments.
#[derive(Serialize, utoipa::ToSchema)]
pub struct CloseAnswer {
    /// Which finding.
    closing: String,
}

/// Closes a finding. A new occurrence opens a new one.
#[utoipa::path(post, path = "/api/v1/findings/{id}/close", tag = "findings",
    params(("id" = String, Path)), request_body = CloseRequest, responses(
    (status = 202, description = "The decision is on disk", body = CloseAnswer),
    (status = 400, description = "The decision can't be read", body = ErrorBody),
    (status = 403, description = "Sent by a page of another site", body = ErrorBody),
    (status = 404, description = "There is no such finding", body = ErrorBody),
    (status = 409, description = "It is closed already", body = ErrorBody),
    (status = 415, description = "Not JSON", body = ErrorBody),
    (status = 429, description = "The collector is behind", body = ErrorBody),
    (status = 503, description = "The collector can't write", body = ErrorBody),
))]
pub(in crate::web) async fn close(
    request: HttpRequest,
    id: web::Path<String>,
    body: web::Json<CloseRequest>,
    state: web::Data<AppState>,
) -> Result<HttpResponse, ApiError> {
    let id = id.into_inner();
    write(&request, &id, body.into_inner(), &state).await?;
    Ok(HttpResponse::Accepted().json(CloseAnswer { closing: id }))
}

/// Checks a decision and writes it into the log; the form of the page does the same.
pub(in crate::web) async fn write(
    request: &HttpRequest,
    id: &str,
    decision: CloseRequest,
    state: &AppState,
) -> Result<(), Problem> {
    origin::check(request)?;
    let closed = read(id, &decision)?;
    let row = state.store.finding(id).await?.ok_or_else(|| absent(id))?;
    if row.finding.state == State::Closed {
        let told = "This finding is closed already; a closed one is never changed.";
        return Err(Problem::new(StatusCode::CONFLICT, "closed_already", told));
    }
    Ok(state.ingest.close_finding(closed).await?)
}

fn read(id: &str, decision: &CloseRequest) -> Result<Closed, Problem> {
    let told = |message: String| Problem::bad_request("bad_decision", message);
    let reason = decision.reason.trim();
    Id::parse(reason).map_err(|error| told(format!("`reason`: {error}")))?;
    let note = decision.note.trim();
    if note.len() > NOTE_BYTES_MAX {
        let message = format!("`note`: has {} bytes; at most 4,096 are taken", note.len());
        return Err(told(message));
    }
    Ok(Closed { finding: id.to_owned(), reason: reason.to_owned(), note: note.to_owned() })
}
