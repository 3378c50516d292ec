//! `/findings`: all findings, newest first, with filters.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::lines::{self, FindingLine};
use super::{Shell, has_data, render, topics};
use crate::audit::{Kind, State};
use crate::store::FindingFilter;
use crate::web::AppState;
use crate::web::api::findings::{FILTERS, filter, format_key, parse_key};
use crate::web::error::PageError;
use crate::web::query::Params;

const HERE: &str = "/findings";
/// Findings of one page.
const PAGE_ROWS: u32 = 50;

#[derive(Template)]
#[template(path = "findings.html")]
struct Findings {
    shell: Shell,
    has_data: bool,
    filtered: bool,
    selects: Vec<Select>,
    fields: Vec<Field>,
    findings: Vec<FindingLine>,
    is_first: bool,
    first: String,
    older: Option<String>,
    csv: String,
    json: String,
}

/// A choice of the filter.
struct Select {
    name: &'static str,
    label: &'static str,
    /// Value, words, whether it is chosen.
    options: Vec<(&'static str, String, bool)>,
}

/// A text of the filter.
struct Field {
    name: &'static str,
    label: &'static str,
    value: String,
    hint: &'static str,
}

/// The list.
pub(in crate::web) async fn show(
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, PageError> {
    let params = Params::parse(request.query_string(), &FILTERS)?;
    let filter = filter(&params)?;
    let limit = params.limit(PAGE_ROWS)?;
    let after = params.after(parse_key)?;
    let now_us = state.clock.now_us();
    let page = state.store.findings(&filter, after.as_ref(), limit).await?;
    let older = page.next.as_ref().map(|key| params.address(HERE, Some(&format_key(key))));
    render(&Findings {
        shell: Shell::new(HERE, now_us),
        has_data: has_data(&state).await?,
        filtered: filter != FindingFilter::default(),
        selects: selects(&params),
        fields: fields(&params),
        findings: lines::lines(&page.rows, now_us),
        is_first: after.is_none(),
        first: params.address(HERE, None),
        csv: params.address("/api/v1/findings.csv", None),
        json: params.address("/api/v1/findings", None),
        older,
    })
}

fn selects(params: &Params) -> Vec<Select> {
    let select = |name: &'static str, label, options: Vec<(&'static str, String)>| Select {
        name,
        label,
        options: options
            .into_iter()
            .map(|(value, text)| (value, text, params.raw(name).unwrap_or("") == value))
            .collect(),
    };
    let states = [State::Confirmed, State::Suspected, State::Closed].map(State::as_str);
    let severities = lines::WORST_FIRST.map(|severity| severity.as_str());
    let same = |value: &'static str| (value, value.to_owned());
    let with_any = |rest: Vec<(&'static str, String)>| {
        let mut options = vec![("", "any".to_owned())];
        options.extend(rest);
        options
    };
    let kind = |kind: Kind| (kind.as_str(), topics::of_kind(kind).name.to_owned());
    vec![
        select("kind", "Kind", with_any(Kind::ALL.into_iter().map(kind).collect())),
        select("state", "State", with_any(states.into_iter().map(same).collect())),
        select("severity", "Severity", with_any(severities.into_iter().map(same).collect())),
    ]
}

fn fields(params: &Params) -> Vec<Field> {
    let field = |name, label, hint| Field {
        name,
        label,
        value: params.raw(name).unwrap_or_default().to_owned(),
        hint,
    };
    vec![
        field("service", "Service", ""),
        field("env", "Env", ""),
        field("ledger", "Ledger", ""),
        field("player", "Player", ""),
        field("from", "From (UTC)", "2026-11-30T12:00"),
        field("to", "To (UTC)", "2026-11-30T13:00"),
    ]
}
