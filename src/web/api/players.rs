//! One player of one ledger: deliveries in order, newest first.

use actix_web::{HttpRequest, web};
use serde::Serialize;

use super::outcomes::{RecordView, parse_position, view};
use crate::outcome::format_us;
use crate::store::{Delivery, DeliveryKey};
use crate::web::AppState;
use crate::web::error::{ApiError, ErrorBody};
use crate::web::query::Params;

/// One delivery.
#[derive(Serialize, utoipa::ToSchema)]
pub struct DeliveryView {
    /// When, by the source's clock.
    occurred_at: String,
    /// The record; null if the log no longer has it.
    record: Option<RecordView>,
}

/// A part of a player's deliveries.
#[derive(Serialize, utoipa::ToSchema)]
pub struct Deliveries {
    /// Newest first. Empty for a player who was never heard of.
    deliveries: Vec<DeliveryView>,
    /// For `after`; null at the end.
    next: Option<String>,
}

/// A player's deliveries as the audit has them, the newest first.
#[utoipa::path(get, path = "/api/v1/players/{ledger}/{player}", tag = "players", params(
    ("ledger" = String, Path), ("player" = String, Path),
    ("limit" = Option<u32>, Query, description = "1 to 1,000; 100 by default"),
    ("after" = Option<String>, Query, description = "`next` of the answer before"),
), responses(
    (status = 200, body = Deliveries),
    (status = 400, description = "A parameter is wrong", body = ErrorBody),
    (status = 503, description = "The database does not answer", body = ErrorBody),
))]
pub(in crate::web) async fn one(
    request: HttpRequest,
    path: web::Path<(String, String)>,
    state: web::Data<AppState>,
) -> Result<web::Json<Deliveries>, ApiError> {
    let (ledger, player) = path.into_inner();
    let params = Params::parse(request.query_string(), &["limit", "after"])?;
    let limit = params.limit(100)?;
    let after = params.after(parse_key)?;
    let rows = state.store.deliveries(&ledger, &player, after, limit).await?;
    let next = rows.last().filter(|_| rows.len() >= limit as usize);
    let next = next.map(|row| format_key(row.key));
    Ok(web::Json(Deliveries { deliveries: rows.iter().map(view_delivery).collect(), next }))
}

/// The place of a delivery among a player's, for `after`.
pub(in crate::web) fn format_key(key: DeliveryKey) -> String {
    format!("{}.{}", key.occurred_us, super::outcomes::format_position(key.position))
}

/// Reads [`format_key`] back.
pub(in crate::web) fn parse_key(text: &str) -> Option<DeliveryKey> {
    let (occurred_us, position) = text.split_once('.')?;
    let occurred_us = occurred_us.parse().ok()?;
    Some(DeliveryKey { occurred_us, position: parse_position(position)? })
}

fn view_delivery(delivery: &Delivery) -> DeliveryView {
    DeliveryView {
        occurred_at: format_us(delivery.key.occurred_us),
        record: delivery.record.as_ref().map(view),
    }
}
