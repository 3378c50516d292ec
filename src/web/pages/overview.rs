//! `/`: is money safe now? The answer first; then amounts, rates, services, findings, alerts.

use std::collections::BTreeMap;

use actix_web::http::header::HeaderValue;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::chart::{self, Rates};
use super::lines::{self, Amount, FindingLine, WORST_FIRST};
use super::verdict::{Facts, Verdict, verdict};
use super::{Shell, encode, has_data, render, service_url, words};
use crate::alert::page;
use crate::alert::rule::Rule;
use crate::alert::state::Instance;
use crate::audit::Kind;
use crate::outcome::{Amounts, Outcome, format_us};
use crate::store::AlertRow;
use crate::store::alerts::Open;
use crate::web::AppState;
use crate::web::coverage;
use crate::web::error::PageError;
use crate::web::format::{Moment, number};
use crate::web::query::Params;
use crate::web::summary::{self, ServiceSummary, Services, Summary};

/// Findings shown here at most; the page of findings has all.
const FINDINGS_SHOWN: usize = 8;
/// The newest of a severity, from which the worst are taken: amounts have no index.
const FINDINGS_READ: u32 = 100;
/// Alerts shown here at most; the page of alerts has all.
const ALERTS_SHOWN: u32 = 8;
/// Amounts of one alert that are shown; more are counted.
const AMOUNTS_SHOWN: usize = 4;

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    shell: Shell,
    verdict: Verdict,
    refresh_s: Option<u32>,
    example: Example,
    ledgers: Vec<LedgerAmounts>,
    rates: Rates,
    services: Vec<ServiceLine>,
    findings: Vec<FindingLine>,
    /// How many of a severity were looked at, if there may be more.
    findings_of: Option<u32>,
    alerts: Vec<AlertLine>,
    more_alerts: i64,
}

/// A first push, ready to be pasted.
struct Example {
    base: String,
    occurred_at: String,
}

/// What is wrong in one ledger. The four are never netted, and ledgers never added.
struct LedgerAmounts {
    ledger: String,
    /// Name, text, whether it is more than nothing.
    parts: [(&'static str, String, bool); 5],
}

struct ServiceLine {
    name: String,
    /// Where to read on.
    page: String,
    heard: Option<Moment>,
    /// Sources by how they stand.
    open: i64,
    silent: i64,
    quiet: i64,
    gone: i64,
    closed: i64,
    /// By outcome in the order of the charts; `None`: nothing was heard for an hour.
    outcomes: Option<Vec<String>>,
    confirmed: i64,
    suspected: i64,
    url: String,
}

pub(super) struct AlertLine {
    pub(super) name: String,
    pub(super) service: String,
    /// Where to read on.
    pub(super) url: String,
    /// Its newest finding.
    pub(super) newest: Option<String>,
    /// What is confirmed and open.
    pub(super) amounts: Vec<Amount>,
    pub(super) more_amounts: usize,
    pub(super) severity: String,
    pub(super) started: Moment,
    pub(super) ended: Option<Moment>,
}

impl AlertLine {
    pub(super) fn new(row: AlertRow, now_us: i64) -> Self {
        let rule = Rule::parse(&row.rule);
        let kind = rule.and_then(Rule::kind);
        let seen = serde_json::from_str::<Instance>(&row.body).map(|alert| alert.seen).ok();
        let example = seen.as_ref().and_then(|seen| seen.example.as_deref());
        let mut amounts = seen.as_ref().map_or_else(Vec::new, |seen| open_amounts(&seen.open));
        let more_amounts = amounts.len().saturating_sub(AMOUNTS_SHOWN);
        amounts.truncate(AMOUNTS_SHOWN);
        Self {
            name: words::of_rule(&row.rule),
            url: page(rule, &row.service, &row.env),
            newest: kind.and(example).map(|id| format!("/findings/{}", encode(id))),
            amounts,
            more_amounts,
            service: lines::service(&row.service, &row.env),
            severity: row.severity,
            started: Moment::new(row.started_us, now_us),
            ended: row.ended_us.map(|at_us| Moment::new(at_us, now_us)),
        }
    }
}

fn open_amounts(open: &[Open]) -> Vec<Amount> {
    let of = |open: &Open| {
        let ledger = (!open.ledger.is_empty()).then_some(&*open.ledger);
        lines::amounts(&open.amounts, ledger)
    };
    open.iter().flat_map(of).collect()
}

/// The first alerts of a state, and how many more there are.
pub(super) async fn alert_lines(
    state: &AppState,
    of: &str,
    most: u32,
    now_us: i64,
) -> Result<(Vec<AlertLine>, i64), PageError> {
    let rows = state.store.alert_rows(Some(of), None, most).await?;
    let all = state.store.alert_counts().await?.get(of).copied().unwrap_or(0);
    let more = all.saturating_sub_unsigned(rows.len() as u64).max(0);
    Ok((rows.into_iter().map(|row| AlertLine::new(row, now_us)).collect(), more))
}

/// The overview. `?refresh=10` reloads it every 10 s, for walls; without it nothing moves under
/// a reader's hands.
pub(in crate::web) async fn show(
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, PageError> {
    let params = Params::parse(request.query_string(), &["refresh"])?;
    let refresh_s = params.number("refresh", 2, 3_600)?;
    let page = read(&state, refresh_s).await?;
    let mut response = render(&page)?;
    if let Some(Ok(value)) = refresh_s.map(|s| HeaderValue::from_str(&s.to_string())) {
        response.headers_mut().insert(actix_web::http::header::REFRESH, value);
    }
    Ok(response)
}

async fn read(state: &AppState, refresh_s: Option<u32>) -> Result<Overview, PageError> {
    let now_us = state.clock.now_us();
    let store = &state.store;
    let Summary { services, is_cut, .. } = summary::read(store, now_us, None).await?;
    let (first, last) = chart::minutes(now_us);
    let counts = store.outcomes_by_minute(first, last, None).await?;
    let (alerts, more_alerts) = alert_lines(state, "firing", ALERTS_SHOWN, now_us).await?;
    let (findings, is_worst_of) = worst(state, now_us).await?;
    let warmup_us = state.config.audit.warmup_us;
    let facts = Facts {
        has_data: has_data(state).await?,
        is_cut,
        new_ledgers: coverage::new_ledgers(store, now_us, warmup_us).await?,
        ..facts(state, &services)
    };
    Ok(Overview {
        shell: Shell::new("/", now_us),
        verdict: verdict(&facts),
        refresh_s,
        example: Example {
            base: state.config.external_url.clone(),
            occurred_at: format_us(now_us),
        },
        ledgers: ledgers(&services),
        rates: chart::rates(&counts, now_us),
        services: services.iter().map(|(name, sum)| service_line(name, sum, now_us)).collect(),
        findings,
        findings_of: is_worst_of.then_some(FINDINGS_READ),
        alerts,
        more_alerts,
    })
}

/// Open findings, worst first, and whether not all of a severity were looked at.
async fn worst(state: &AppState, now_us: i64) -> Result<(Vec<FindingLine>, bool), PageError> {
    let (mut worst, mut is_cut) = (Vec::new(), false);
    for severity in WORST_FIRST {
        if worst.len() < FINDINGS_SHOWN {
            let store = &state.store;
            let mut rows = store.open_findings(severity.as_str(), None, FINDINGS_READ).await?;
            is_cut |= rows.len() >= FINDINGS_READ as usize;
            lines::sort_worst_first(&mut rows);
            worst.extend(rows);
        }
    }
    worst.truncate(FINDINGS_SHOWN);
    Ok((lines::lines(&worst, now_us), is_cut))
}

fn facts(state: &AppState, services: &Services) -> Facts {
    let mut facts = Facts {
        wrong_ledgers: amounts(services).values().filter(|sum| is_wrong(sum)).count(),
        audit_lag_us: state.vitals.audit_lag_us(),
        database_away: state.vitals.database_away(),
        ..Facts::default()
    };
    for summary in services.values() {
        facts.silent += summary.sources.get("silent").copied().unwrap_or(0);
        for (kind, (confirmed, suspected)) in &summary.findings {
            facts.suspected += suspected;
            if let Some(count) = Kind::parse(kind).and_then(|kind| facts.of_kind(kind)) {
                *count += confirmed;
            }
        }
    }
    facts
}

fn amounts(services: &Services) -> BTreeMap<&str, Amounts> {
    let mut ledgers: BTreeMap<&str, Amounts> = BTreeMap::new();
    for (ledger, sum) in services.values().flat_map(|summary| &summary.ledgers) {
        let amounts = ledgers.entry(ledger.as_str()).or_default();
        *amounts = amounts.plus(*sum);
    }
    ledgers
}

fn is_wrong(sum: &Amounts) -> bool {
    Amounts { exposure: 0, ..*sum } != Amounts::default()
}

fn ledgers(services: &Services) -> Vec<LedgerAmounts> {
    let part = |name, amount: i128| (name, number(amount), amount != 0);
    let view = |(ledger, sum): (&str, Amounts)| LedgerAmounts {
        ledger: if ledger.is_empty() { "several ledgers" } else { ledger }.to_owned(),
        parts: [
            part("Overpaid", sum.overpaid),
            part("Overcharged", sum.overcharged),
            part("Underpaid", sum.underpaid),
            part("Undercharged", sum.undercharged),
            part("At risk", sum.exposure),
        ],
    };
    amounts(services).into_iter().map(view).collect()
}

/// What is known of those whose name can't be read.
const REFUSED: &str = "/findings?kind=rejected_evidence";

fn service_line(
    (service, env): &(String, String),
    summary: &ServiceSummary,
    now_us: i64,
) -> ServiceLine {
    let sources = |state: &str| summary.sources.get(state).copied().unwrap_or(0);
    let count =
        |outcome: Outcome| number(summary.outcomes.get(outcome.as_str()).copied().unwrap_or(0));
    let heard = !summary.outcomes.is_empty();
    let (confirmed, suspected) = summary.open();
    let (page, url) = match service.as_str() {
        "" => (REFUSED.to_owned(), REFUSED.to_owned()),
        _ => (service_url(service), format!("/findings?service={}", encode(service))),
    };
    ServiceLine {
        name: lines::service(service, env),
        page,
        heard: summary.last_push_us.map(|at_us| Moment::new(at_us, now_us)),
        open: sources("open"),
        silent: sources("silent"),
        quiet: sources("quiet"),
        gone: sources("gone"),
        closed: sources("closed"),
        outcomes: heard.then(|| chart::SHOWN.into_iter().map(count).collect()),
        confirmed,
        suspected,
        url,
    }
}
