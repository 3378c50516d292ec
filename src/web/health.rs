//! Is the process alive, and can it do its work?

use actix_web::http::{StatusCode, header::CONTENT_TYPE};
use actix_web::{HttpResponse, web};
use serde::Serialize;

use super::AppState;
use super::error::{ApiError, ErrorBody, Problem};
use crate::metrics;

/// Whether the collector does its work.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct Ready {
    /// Whether outcomes are taken and audited.
    pub ready: bool,
    /// Why not, each with a code and a sentence; empty when ready.
    pub reasons: Vec<ReadyReason>,
    /// How far the audit is behind the log, in microseconds.
    pub audit_lag_us: i64,
}

/// One reason not to be ready.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct ReadyReason {
    /// `closing`, `database_away` or `audit_behind`.
    pub code: &'static str,
    /// In words.
    pub message: &'static str,
}

/// The process answers.
#[utoipa::path(get, path = "/-/healthy", tag = "health", responses(
    (status = 200, description = "It answers", body = String, content_type = "text/plain"),
))]
pub(super) async fn healthy() -> &'static str {
    "healthy\n"
}

/// The process does its work: outcomes are taken and audited.
#[utoipa::path(get, path = "/-/ready", tag = "health", responses(
    (status = 200, description = "Outcomes are taken and audited", body = Ready),
    (status = 503, description = "They are not; the reasons say why", body = Ready),
))]
pub(super) async fn ready(state: web::Data<AppState>) -> HttpResponse {
    let answer = state_of(&state).await;
    if answer.ready {
        HttpResponse::Ok().json(answer)
    } else {
        HttpResponse::ServiceUnavailable().insert_header(("Retry-After", "2")).json(answer)
    }
}

/// What Prometheus scrapes.
#[utoipa::path(get, path = "/metrics", tag = "health", responses(
    (status = 200, description = "Text format 0.0.4", body = String, content_type = "text/plain"),
    (status = 500, description = "The counters contradict each other", body = ErrorBody),
))]
pub(super) async fn metrics(state: web::Data<AppState>) -> Result<HttpResponse, ApiError> {
    let text = state.metrics.render().await.map_err(|error| {
        tracing::error!(%error, "the metrics can't be rendered");
        let told = "The metrics can't be rendered. The collector's log says why.";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", told)
    })?;
    Ok(HttpResponse::Ok().insert_header((CONTENT_TYPE, metrics::CONTENT_TYPE)).body(text))
}

async fn state_of(state: &AppState) -> Ready {
    let vitals = &state.vitals;
    let audit_lag_us = vitals.audit_lag_us();
    let mut reasons = Vec::new();
    if vitals.closing() {
        reasons.push(ReadyReason { code: "closing", message: "The collector is shutting down." });
    }
    if vitals.database_away() || state.store.ping().await.is_err() {
        reasons.push(ReadyReason {
            code: "database_away",
            message: "The database does not answer; see the collector's log.",
        });
    }
    if vitals.is_audit_behind() {
        reasons.push(ReadyReason {
            code: "audit_behind",
            message: "The audit is over 5 s behind; outcomes are refused until it has caught up.",
        });
    }
    Ready { ready: reasons.is_empty(), reasons, audit_lag_us }
}
