//! How the deliveries of a service moved, minute by minute.

use actix_web::{HttpRequest, web};
use serde::Serialize;

use crate::limits::MINUTE_US;
use crate::outcome::format_us;
use crate::store::transitions::TransitionCount;
use crate::store::{Store, StoreError};
use crate::web::AppState;
use crate::web::error::{ApiError, ErrorBody, Problem};
use crate::web::query::Params;
use crate::web::summary::{self, RATE_MINUTES};

/// Moves of one sort in one minute.
#[derive(Serialize, utoipa::ToSchema)]
pub struct MoveView {
    /// The minute in which they happened.
    minute: String,
    /// Where.
    env: String,
    /// The state before.
    from: &'static str,
    /// The state after.
    to: &'static str,
    /// Whether a delivery may move so.
    legal: bool,
    /// How many.
    count: String,
}

/// The moves of the last 60 minutes.
#[derive(Serialize, utoipa::ToSchema)]
pub struct Transitions {
    /// Newest first; what is not there was not heard.
    transitions: Vec<MoveView>,
    /// Always null: an hour has few.
    next: Option<String>,
}

/// Moves of a service's deliveries by minute, the last 60.
#[utoipa::path(get, path = "/api/v1/services/{name}/transitions", tag = "services",
    params(("name" = String, Path)), responses(
    (status = 200, body = Transitions),
    (status = 400, description = "A parameter is wrong", body = ErrorBody),
    (status = 404, description = "Nothing was heard of such a service", body = ErrorBody),
    (status = 503, description = "The database does not answer", body = ErrorBody),
))]
pub(in crate::web) async fn list(
    request: HttpRequest,
    name: web::Path<String>,
    state: web::Data<AppState>,
) -> Result<web::Json<Transitions>, ApiError> {
    Params::parse(request.query_string(), &[])?;
    let now_us = state.clock.now_us();
    let counts = read(&state.store, &name, now_us).await?;
    if counts.is_empty()
        && summary::read(&state.store, now_us, Some(&name)).await?.services.is_empty()
    {
        let told = format!("Nothing was heard of service {name}. /api/v1/services lists them.");
        return Err(Problem::not_found(told).into());
    }
    Ok(web::Json(Transitions { transitions: counts.iter().map(view).collect(), next: None }))
}

/// The moves of the last [`RATE_MINUTES`].
pub(in crate::web) async fn read(
    store: &Store,
    service: &str,
    now_us: i64,
) -> Result<Vec<TransitionCount>, StoreError> {
    let last = now_us.div_euclid(MINUTE_US);
    store.transitions_by_minute(service, last - RATE_MINUTES + 1, last).await
}

fn view(count: &TransitionCount) -> MoveView {
    MoveView {
        minute: format_us(count.minute.saturating_mul(MINUTE_US)),
        env: count.env.to_string(),
        from: count.left.as_str(),
        to: count.entered.as_str(),
        legal: count.left.leads_to(count.entered),
        count: count.count.to_string(),
    }
}
