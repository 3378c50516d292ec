//! The log, as it was written: every record, in the order of its position.

use actix_web::{HttpRequest, web};
use serde::Serialize;

use super::text;
use crate::outcome::{Body, Position, Record, format_us};
use crate::web::AppState;
use crate::web::error::{ApiError, ErrorBody};
use crate::web::query::Params;

/// One entry of the log.
#[derive(Serialize, utoipa::ToSchema)]
pub struct RecordView {
    /// Its place: collector and number; goes into `after`.
    position: String,
    /// When the collector wrote it.
    received_at: String,
    /// `event`, `refused`, `conflict`, `heartbeat`, `silent`, `given_up`, `closed`, `tick`,
    /// `transition` or `transition_conflict`.
    kind: &'static str,
    /// What it says; an event in the form in which it is pushed, numbers as strings.
    #[schema(value_type = Object)]
    body: serde_json::Value,
}

/// A part of the log.
#[derive(Serialize, utoipa::ToSchema)]
pub struct Outcomes {
    /// In the order of the log.
    outcomes: Vec<RecordView>,
    /// For `after`; null at the end. To follow the log, go on with the newest `position`.
    next: Option<String>,
}

/// The log from a position on.
#[utoipa::path(get, path = "/api/v1/outcomes", tag = "outcomes", params(
    ("after" = Option<String>, Query, description = "A `position`, or `next` of the answer before"),
    ("limit" = Option<u32>, Query, description = "1 to 1,000; 100 by default"),
), responses(
    (status = 200, body = Outcomes),
    (status = 400, description = "A parameter is wrong", body = ErrorBody),
    (status = 503, description = "The database does not answer", body = ErrorBody),
))]
pub(in crate::web) async fn list(
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<web::Json<Outcomes>, ApiError> {
    let params = Params::parse(request.query_string(), &["after", "limit"])?;
    let limit = params.limit(100)?;
    let start = Position { collector: state.store.collector(), n: 0 };
    let after = params.after(parse_position)?.unwrap_or(start);
    let records = state.store.read_records(after, limit).await?;
    let full = records.len() >= limit as usize;
    let next = records.last().filter(|_| full).map(|last| format_position(last.position));
    Ok(web::Json(Outcomes { outcomes: records.iter().map(view).collect(), next }))
}

/// A position outside.
pub(in crate::web) fn format_position(position: Position) -> String {
    format!("{}.{}", position.collector, position.n)
}

/// Reads [`format_position`] back.
pub(in crate::web) fn parse_position(text: &str) -> Option<Position> {
    let (collector, n) = text.split_once('.')?;
    Some(Position { collector: collector.parse().ok()?, n: n.parse().ok()? })
}

/// A record outside.
pub(super) fn view(record: &Record) -> RecordView {
    let (kind, body) = match &record.body {
        Body::Event(event) => ("event", text::of(event)),
        Body::Refused(refused) => ("refused", text::of(refused)),
        Body::Conflict(event) => ("conflict", text::of(event)),
        Body::Heartbeat(heartbeat) => ("heartbeat", text::of(heartbeat)),
        Body::Silent(silent) => ("silent", text::of(silent)),
        Body::GivenUp(given_up) => ("given_up", text::of(given_up)),
        Body::Closed(closed) => ("closed", text::of(closed)),
        Body::Tick => ("tick", None),
        Body::Transition(transition) => ("transition", text::of(transition)),
        Body::TransitionConflict(transition) => ("transition_conflict", text::of(transition)),
        Body::Settings(settings) => ("settings", text::of(settings)),
    };
    RecordView {
        position: format_position(record.position),
        received_at: format_us(record.received_us),
        kind,
        body: body.unwrap_or_else(|| serde_json::json!({})),
    }
}
