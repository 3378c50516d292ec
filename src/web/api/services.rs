//! What is known of each service.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, Responder, web};
use serde::Serialize;

use super::windows::WindowView;
use crate::audit::{Advice, Measured};
use crate::outcome::{Amounts, format_us};
use crate::web::AppState;
use crate::web::api::findings::AS_OF;
use crate::web::error::{ApiError, ErrorBody, Problem};
use crate::web::query::Params;
use crate::web::summary::{self, ServiceSummary, Summary};

/// One service in one env. 64-bit numbers and amounts are strings.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ServiceView {
    /// Which service.
    service: String,
    /// Which env.
    env: String,
    /// Outcomes of the last 60 minutes by name; a name that is not there was not heard.
    outcomes_last_hour: BTreeMap<String, String>,
    /// Sources by state: `open`, `quiet` (sends no heartbeats, and no outcome for an hour),
    /// `silent`, `gone` (silent for over a day), `closed`.
    sources: BTreeMap<String, String>,
    /// When any of its sources was last heard.
    last_push_at: Option<String>,
    /// Open findings by kind.
    open_findings: BTreeMap<String, OpenCount>,
    /// What the confirmed and open ones come to, by ledger. Never added across ledgers.
    ledgers: BTreeMap<String, AmountsView>,
    /// What the window advisor says; null while nothing was measured.
    window: Option<WindowView>,
}

/// Open findings of one kind.
#[derive(Serialize, utoipa::ToSchema)]
pub struct OpenCount {
    /// That stand.
    confirmed: String,
    /// That something may still disprove.
    suspected: String,
}

/// What wrong bookings come to, in the ledger's minor unit. The four are never netted.
#[derive(Serialize, utoipa::ToSchema)]
pub struct AmountsView {
    /// Paid to players more often than once.
    overpaid: String,
    /// Taken from players more often than once.
    overcharged: String,
    /// Owed to players and never paid.
    underpaid: String,
    /// Owed by players and never taken.
    undercharged: String,
    /// What a further mistake could move.
    exposure: String,
}

/// All services.
#[derive(Serialize, utoipa::ToSchema)]
pub struct Services {
    /// By service and env.
    services: Vec<ServiceView>,
    /// Always null: services are few.
    next: Option<String>,
    /// There only if true: of more than 10,000 sums of open findings, the rest is not counted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

/// All services, by name and env.
#[utoipa::path(get, path = "/api/v1/services", tag = "services", responses(
    (status = 200, body = Services),
    (status = 400, description = "A parameter is wrong", body = ErrorBody),
    (status = 503, description = "The database does not answer", body = ErrorBody),
))]
pub(in crate::web) async fn list(
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<impl Responder, ApiError> {
    Params::parse(request.query_string(), &[])?;
    let summary = summary::read(&state.store, state.clock.now_us(), None).await?;
    let windows = windows(summary::advice(&state.store, None, None).await?, false);
    Ok(view_all(summary, windows))
}

/// One service, in all its envs.
#[utoipa::path(get, path = "/api/v1/services/{name}", tag = "services",
    params(("name" = String, Path)), responses(
    (status = 200, body = Services),
    (status = 404, description = "Nothing was heard of such a service", body = ErrorBody),
    (status = 503, description = "The database does not answer", body = ErrorBody),
))]
pub(in crate::web) async fn one(
    name: web::Path<String>,
    state: web::Data<AppState>,
) -> Result<impl Responder, ApiError> {
    let now_us = state.clock.now_us();
    let summary = summary::read(&state.store, now_us, Some(&name)).await?;
    if summary.services.is_empty() {
        let told = format!("Nothing was heard of service {name}. /api/v1/services lists them.");
        return Err(Problem::not_found(told).into());
    }
    let windows = windows(summary::advice(&state.store, Some(&name), Some(now_us)).await?, true);
    Ok(view_all(summary, windows))
}

type Windows = BTreeMap<(String, String), WindowView>;

fn windows(all: Vec<(Advice, Measured)>, with_measured: bool) -> Windows {
    let view = |(advice, measured): (Advice, Measured)| {
        let view = WindowView::new(&advice, with_measured.then_some(&measured));
        ((advice.service, advice.env), view)
    };
    all.into_iter().map(view).collect()
}

fn view_all(
    Summary { services, is_cut, as_of }: Summary,
    mut windows: Windows,
) -> impl Responder + use<> {
    let view = |((service, env), summary): ((String, String), ServiceSummary)| {
        let window = windows.remove(&(service.clone(), env.clone()));
        ServiceView { window, ..view(service, env, summary) }
    };
    let services = services.into_iter().map(view).collect();
    let services = Services { services, next: None, truncated: is_cut };
    web::Json(services).customize().insert_header((AS_OF, as_of))
}

fn view(service: String, env: String, summary: ServiceSummary) -> ServiceView {
    let counts = |counts: BTreeMap<String, i64>| {
        counts.into_iter().map(|(name, count)| (name, count.to_string())).collect()
    };
    let open = |(kind, (confirmed, suspected)): (String, (i64, i64))| {
        let count =
            OpenCount { confirmed: confirmed.to_string(), suspected: suspected.to_string() };
        (kind, count)
    };
    ServiceView {
        service,
        env,
        outcomes_last_hour: counts(summary.outcomes),
        sources: counts(summary.sources),
        last_push_at: summary.last_push_us.map(format_us),
        open_findings: summary.findings.into_iter().map(open).collect(),
        ledgers: summary.ledgers.into_iter().map(|(ledger, sum)| (ledger, amounts(sum))).collect(),
        window: None,
    }
}

fn amounts(sum: Amounts) -> AmountsView {
    AmountsView {
        overpaid: sum.overpaid.to_string(),
        overcharged: sum.overcharged.to_string(),
        underpaid: sum.underpaid.to_string(),
        undercharged: sum.undercharged.to_string(),
        exposure: sum.exposure.to_string(),
    }
}
