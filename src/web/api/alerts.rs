//! The alerts: one instance for each rule, service and env.

use actix_web::{HttpRequest, web};
use serde::Serialize;

use crate::limits;
use crate::outcome::format_us;
use crate::store::AlertRow;
use crate::web::AppState;
use crate::web::error::{ApiError, ErrorBody};
use crate::web::query::Params;

/// States that an alert can be in.
const STATES: [&str; 3] = ["pending", "firing", "resolved"];

/// One instance of an alert.
#[derive(Serialize, utoipa::ToSchema)]
pub struct AlertView {
    /// Which rule.
    rule: String,
    /// Which service.
    service: String,
    /// Which env.
    env: String,
    /// `pending`, `firing` or `resolved`.
    state: String,
    /// `info`, `warning` or `critical`.
    severity: String,
    /// When it began.
    started_at: String,
    /// When it was over.
    ended_at: Option<String>,
}

/// All alerts that match.
#[derive(Serialize, utoipa::ToSchema)]
pub struct Alerts {
    /// Firing ones, pending ones, each worst and then newest first; then what is over, the last end
    /// first.
    alerts: Vec<AlertView>,
    /// Always null: one answer has all, since the collector keeps 4,800 at most.
    next: Option<String>,
}

/// The alerts: firing, pending, resolved.
#[utoipa::path(get, path = "/api/v1/alerts", tag = "alerts", params(
    ("state" = Option<String>, Query, description = "pending, firing or resolved"),
    ("service" = Option<String>, Query),
), responses(
    (status = 200, body = Alerts),
    (status = 400, description = "A parameter is wrong", body = ErrorBody),
    (status = 503, description = "The database does not answer", body = ErrorBody),
))]
pub(in crate::web) async fn list(
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<web::Json<Alerts>, ApiError> {
    let params = Params::parse(request.query_string(), &["state", "service"])?;
    let wanted = params.word("state", &STATES)?;
    let service = params.id("service")?;
    let limit = limits::ALERTS_MAX;
    let rows = state.store.alert_rows(wanted.as_deref(), service.as_deref(), limit).await?;
    Ok(web::Json(Alerts { alerts: rows.into_iter().map(view).collect(), next: None }))
}

fn view(row: AlertRow) -> AlertView {
    AlertView {
        rule: row.rule,
        service: row.service,
        env: row.env,
        state: row.state,
        severity: row.severity,
        started_at: format_us(row.started_us),
        ended_at: row.ended_us.map(format_us),
    }
}
