//! The audit's settings in force: what a verdict was reached by, and how long one has to wait
//! for it.

use std::collections::BTreeMap;

use actix_web::web;
use serde::Serialize;

use crate::audit::Settings;
use crate::web::AppState;

/// The configuration in force, without secrets.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ConfigView {
    /// `[audit]`.
    audit: AuditView,
}

/// `[audit]`; times in microseconds, as strings.
#[derive(Serialize, utoipa::ToSchema)]
pub struct AuditView {
    /// How long a live eviction waits for the acceptance that pushed it out.
    eviction_grace_us: String,
    /// How long a block waits for the acceptance that makes it right.
    block_grace_us: String,
    /// How long a missing number is waited for.
    gap_grace_us: String,
    /// How long a new ledger is blind.
    warmup_us: String,
    /// How long a message can come back.
    horizon_us: String,
    /// How many of a player's newest games are live.
    live_games: u32,
    /// How long an opaque key is live.
    live_for_us: String,
    /// How long after its use a signature may come again as a new one.
    reuse_after_us: String,
    /// The same for ledgers of which something else was said.
    reuse_after_of_us: BTreeMap<String, String>,
}

/// The audit's settings in force.
#[utoipa::path(get, path = "/api/v1/config", tag = "config",
    responses((status = 200, body = ConfigView)))]
pub(in crate::web) async fn show(state: web::Data<AppState>) -> web::Json<ConfigView> {
    web::Json(ConfigView { audit: view(&state.config.audit) })
}

fn view(settings: &Settings) -> AuditView {
    AuditView {
        eviction_grace_us: settings.eviction_grace_us.to_string(),
        block_grace_us: settings.block_grace_us.to_string(),
        gap_grace_us: settings.gap_grace_us.to_string(),
        warmup_us: settings.warmup_us.to_string(),
        horizon_us: settings.horizon_us.to_string(),
        live_games: settings.live_games,
        live_for_us: settings.live_for_us.to_string(),
        reuse_after_us: settings.reuse_after.default_us.to_string(),
        reuse_after_of_us: settings
            .reuse_after
            .of_us
            .iter()
            .map(|(ledger, us)| (ledger.clone(), us.to_string()))
            .collect(),
    }
}
