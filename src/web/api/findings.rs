//! What the audit says: the list, and one of it.

use actix_web::{HttpRequest, Responder, web};
use serde::Serialize;

use crate::audit::{Kind, Severity, State, Witness};
use crate::outcome::format_us;
use crate::store::{FindingFilter, FindingKey, FindingRow};
use crate::web::AppState;
use crate::web::error::{ApiError, ErrorBody, Problem};
use crate::web::query::Params;

/// The header that tells the instant of an answer: the number of the last change to any finding.
/// Confirmed findings and the sums of services add up where it is the same.
pub(in crate::web) const AS_OF: &str = "X-Dedupwatch-As-Of";

/// A verdict of the audit. Amounts and 64-bit numbers are strings.
#[derive(Serialize, utoipa::ToSchema)]
pub struct FindingView {
    /// The same after a rebuild.
    id: String,
    /// The rule.
    kind: &'static str,
    /// `info`, `warning` or `critical`.
    severity: &'static str,
    /// `suspected`, `confirmed` or `closed`.
    state: &'static str,
    /// Why it is closed.
    closed_because: Option<String>,
    /// How it came about.
    cause: String,
    /// How the order of the witnesses is known: `proven`, `assumed` or `unproven`.
    order: &'static str,
    /// Whether all guards were heard: `full`, `assumed` or `blind`.
    coverage: &'static str,
    /// The service of the newest witness.
    service: String,
    /// Its env.
    env: String,
    /// The book.
    ledger: Option<String>,
    /// The source, where it is about one.
    source: Option<String>,
    /// The player, where it is about one.
    player: Option<String>,
    /// The settlement, where it is about one: room, round, net, final, or key.
    #[schema(value_type = Option<Object>)]
    signature: Option<serde_json::Value>,
    /// Occurrences.
    count: String,
    /// Distinct players, where it is about several.
    players: String,
    /// Time of the first witness, by the source's clock.
    first_at: String,
    /// Time of the newest witness.
    last_at: String,
    /// When the audit first said it.
    opened_at: String,
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
    /// The proof, in the order of the log.
    witnesses: Vec<WitnessView>,
    /// The runbook: what it means, how it comes about, what to do, what it never means.
    help_url: String,
}

/// One piece of evidence.
#[derive(Serialize, utoipa::ToSchema)]
pub struct WitnessView {
    /// What it shows.
    role: String,
    /// Its place in the log, as `/api/v1/outcomes` has it.
    position: String,
    /// When, by the source's clock.
    occurred_at: String,
    /// Who said it: the service.
    service: String,
    /// Its env.
    env: String,
    /// Its source.
    source: String,
    /// The run of the source.
    boot: Option<String>,
    /// The number in the run.
    seq: Option<String>,
    /// What the guard did.
    outcome: Option<&'static str>,
    /// Whose money, where the finding does not say it.
    player: Option<String>,
    /// Which settlement, where the finding does not say it.
    #[schema(value_type = Option<Object>)]
    signature: Option<serde_json::Value>,
    /// The intended booking.
    r#ref: Option<String>,
    /// The trace.
    trace_id: Option<String>,
    /// The window after it.
    #[schema(value_type = Option<Object>)]
    window: Option<serde_json::Value>,
    /// The reason given.
    reason: Option<&'static str>,
    /// Whether the money moved.
    #[schema(value_type = Option<String>)]
    effect: Option<serde_json::Value>,
    /// Whose memory the guard decided by.
    #[schema(value_type = Option<String>)]
    guard_mode: Option<serde_json::Value>,
    /// In words, where the fields don't say it.
    text: Option<String>,
}

/// A part of the list.
#[derive(Serialize, utoipa::ToSchema)]
pub struct Findings {
    /// Newest occurrence first.
    findings: Vec<FindingView>,
    /// For `after`; null at the end. May be there although few matched: a request looks at a
    /// bounded number of rows, and this is how far it got.
    next: Option<String>,
}

/// The findings that match, newest occurrence first. A finding that gains an occurrence while you
/// page moves to the front; parts with the same header `X-Dedupwatch-As-Of` are of one instant.
#[utoipa::path(get, path = "/api/v1/findings", tag = "findings", params(
    ("kind" = Option<String>, Query, description = "The rule"),
    ("service" = Option<String>, Query),
    ("env" = Option<String>, Query),
    ("ledger" = Option<String>, Query),
    ("player" = Option<String>, Query),
    ("state" = Option<String>, Query, description = "suspected, confirmed or closed"),
    ("severity" = Option<String>, Query, description = "info, warning or critical"),
    ("from" = Option<String>, Query, description = "RFC 3339; occurrences at or after"),
    ("to" = Option<String>, Query, description = "RFC 3339; occurrences at or before"),
    ("limit" = Option<u32>, Query, description = "1 to 1,000; 100 by default"),
    ("after" = Option<String>, Query, description = "`next` of the answer before"),
), responses(
    (status = 200, body = Findings),
    (status = 400, description = "A parameter is wrong", body = ErrorBody),
    (status = 503, description = "The database does not answer", body = ErrorBody),
))]
pub(in crate::web) async fn list(
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<impl Responder, ApiError> {
    let params = Params::parse(request.query_string(), &FILTERS)?;
    let filter = filter(&params)?;
    let limit = params.limit(100)?;
    let after = params.after(parse_key)?;
    let page = state.store.findings(&filter, after.as_ref(), limit).await?;
    let findings = page.rows.into_iter().map(|row| view(row, &state)).collect();
    let findings = Findings { findings, next: page.next.as_ref().map(format_key) };
    Ok(web::Json(findings).customize().insert_header((AS_OF, page.as_of)))
}

/// One finding.
#[utoipa::path(get, path = "/api/v1/findings/{id}", tag = "findings",
    params(("id" = String, Path)), responses(
    (status = 200, body = FindingView),
    (status = 404, description = "There is no such finding", body = ErrorBody),
    (status = 503, description = "The database does not answer", body = ErrorBody),
))]
pub(in crate::web) async fn one(
    id: web::Path<String>,
    state: web::Data<AppState>,
) -> Result<web::Json<FindingView>, ApiError> {
    match state.store.finding(&id).await? {
        Some(row) => Ok(web::Json(view(row, &state))),
        None => Err(absent(&id).into()),
    }
}

/// Parameters of the list.
pub(in crate::web) const FILTERS: [&str; 11] = [
    "kind", "service", "env", "ledger", "player", "state", "severity", "from", "to", "limit",
    "after",
];

/// The filter that the parameters ask for; the page of findings has the same.
pub(in crate::web) fn filter(params: &Params) -> Result<FindingFilter, Problem> {
    let states = [State::Suspected, State::Confirmed, State::Closed].map(State::as_str);
    let severities = [Severity::Critical, Severity::Warning, Severity::Info].map(Severity::as_str);
    Ok(FindingFilter {
        kind: params.word("kind", &Kind::ALL.map(Kind::as_str))?,
        service: params.id("service")?,
        env: params.id("env")?,
        ledger: params.raw("ledger").map(str::to_owned),
        player: params.id("player")?,
        state: params.word("state", &states)?,
        severity: params.word("severity", &severities)?,
        from_us: params.time_us("from")?,
        to_us: params.time_us("to")?,
    })
}

/// The place of a finding, for `after`.
pub(in crate::web) fn format_key(key: &FindingKey) -> String {
    format!("{}.{}", key.last_us, key.id)
}

/// Reads [`format_key`] back.
pub(in crate::web) fn parse_key(text: &str) -> Option<FindingKey> {
    let (last_us, id) = text.split_once('.')?;
    Some(FindingKey { last_us: last_us.parse().ok()?, id: id.to_owned() })
}

/// What is told about an id that names no finding.
pub(in crate::web) fn absent(id: &str) -> Problem {
    let id: String = id.chars().take(64).collect();
    Problem::not_found(format!("There is no finding {id}. /findings lists those there are."))
}

fn view(row: FindingRow, state: &AppState) -> FindingView {
    let finding = row.finding;
    let amounts = finding.amounts;
    FindingView {
        help_url: format!("{}/help/{}", state.config.external_url, finding.kind.as_str()),
        id: finding.id,
        kind: finding.kind.as_str(),
        severity: finding.severity.as_str(),
        state: finding.state.as_str(),
        closed_because: finding.closed_because,
        cause: finding.cause,
        order: finding.order.as_str(),
        coverage: finding.coverage.as_str(),
        service: finding.service,
        env: finding.env,
        ledger: finding.ledger,
        source: finding.source.map(|id| id.to_string()),
        player: finding.player.map(|id| id.to_string()),
        signature: super::text::of(&finding.signature),
        count: finding.count.to_string(),
        players: finding.players.to_string(),
        first_at: format_us(finding.first_us),
        last_at: format_us(finding.last_us),
        opened_at: format_us(row.opened_us),
        overpaid: amounts.overpaid.to_string(),
        overcharged: amounts.overcharged.to_string(),
        underpaid: amounts.underpaid.to_string(),
        undercharged: amounts.undercharged.to_string(),
        exposure: amounts.exposure.to_string(),
        witnesses: finding.witnesses.into_iter().map(view_witness).collect(),
    }
}

fn view_witness(witness: Witness) -> WitnessView {
    WitnessView {
        role: witness.role,
        position: super::outcomes::format_position(witness.position),
        occurred_at: format_us(witness.occurred_us),
        service: witness.from.service.to_string(),
        env: witness.from.env.to_string(),
        source: witness.from.source.to_string(),
        boot: witness.boot.map(|boot| boot.to_string()),
        seq: witness.seq.map(|seq| seq.to_string()),
        outcome: witness.outcome.map(|outcome| outcome.as_str()),
        player: witness.player.map(|id| id.to_string()),
        signature: super::text::of(&witness.signature),
        r#ref: witness.reference.map(|id| id.to_string()),
        trace_id: witness.trace_id.map(|id| id.to_string()),
        window: super::text::of(&witness.window),
        reason: witness.reason.map(|reason| reason.as_str()),
        effect: super::text::of(&witness.effect),
        guard_mode: super::text::of(&witness.guard_mode),
        text: witness.text,
    }
}
