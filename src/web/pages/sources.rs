//! `/sources`: who reports, who is silent, whose numbers are missing, and since when.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::{Shell, lines, render, words};
use crate::audit::{Blind, Kind};
use crate::outcome::SourceName;
use crate::store::{SourceRow, size_of};
use crate::web::AppState;
use crate::web::api::sources::{FILTERS, next, read};
use crate::web::coverage;
use crate::web::error::PageError;
use crate::web::format::{Moment, number, several};
use crate::web::query::Params;
use crate::web::summary::{GONE_US, QUIET_US};

const HERE: &str = "/sources";
/// Sources of one page.
const PAGE_ROWS: u32 = 200;
/// Holes told by their numbers; more are counted.
const HOLES_TOLD: usize = 3;

#[derive(Template)]
#[template(path = "sources.html")]
struct Sources {
    shell: Shell,
    sources: Vec<SourceLine>,
    /// Whether some send no heartbeats.
    any_unwatched: bool,
    /// Checks that the audit could not make.
    skipped: Vec<SkippedLine>,
    is_first: bool,
    /// Whose sources, unless all.
    of: Option<String>,
    first: String,
    more: Option<String>,
}

struct SourceLine {
    service: String,
    source: String,
    /// `heard`, `silent`, `gone`, `closed`, `unwatched` or `quiet`, and in words.
    state: &'static str,
    state_words: &'static str,
    heard: Moment,
    boot: Option<BootLine>,
    /// Newest first: from and to.
    blind: Vec<(Moment, Moment)>,
}

/// A check that could not be made, and how often.
struct SkippedLine {
    /// About what, with its help page if it is a kind.
    about: String,
    help: Option<String>,
    why: &'static str,
    count: String,
}

struct BootLine {
    boot: String,
    since: Moment,
    last_seq: String,
    /// `None` if they can't be counted.
    received: Option<String>,
    /// What is not known of it, in words.
    troubles: Vec<String>,
}

/// The list.
pub(in crate::web) async fn show(
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, PageError> {
    let params = Params::parse(request.query_string(), &FILTERS)?;
    let rows = read(&params, PAGE_ROWS, &state).await?;
    let next = next(&params, PAGE_ROWS, &rows)?;
    let now_us = state.clock.now_us();
    let blind = coverage::blind(&state.store, &rows).await?;
    render(&Sources {
        shell: Shell::new(HERE, now_us),
        any_unwatched: rows.iter().any(|row| row.last_heartbeat_us.is_none()),
        sources: rows.into_iter().map(|row| line(row, &blind, now_us)).collect(),
        skipped: state.metrics.skipped_checks().iter().map(skipped).collect(),
        is_first: params.raw("after").is_none(),
        of: of(&params),
        first: params.address(HERE, None),
        more: next.map(|key| params.address(HERE, Some(&key))),
    })
}

fn skipped((check, count): &(String, i64)) -> SkippedLine {
    let reasons = [
        ("_order", "the order of two events is not proven"),
        ("_blind", "something that bears on it was not heard"),
        ("_never_accepted", "what was evicted was never accepted, as far as was heard"),
        ("_shared", "others may have written to the same window"),
        ("_too_many", "more waited than are remembered"),
        ("_unmatched", "it was told of a settlement that nobody accepted, as far as was heard"),
        ("_too_late", "it came later than what is remembered"),
    ];
    let known = reasons.into_iter().find_map(|(end, why)| Some((check.strip_suffix(end)?, why)));
    let (about, why) = known.unwrap_or((check, "the order of two events is not proven"));
    SkippedLine {
        about: words::plain(about),
        help: Kind::parse(about).map(|kind| format!("/help/{}", kind.as_str())),
        why,
        count: number(*count),
    }
}

fn of(params: &Params) -> Option<String> {
    match (params.raw("service"), params.raw("env")) {
        (None, None) => None,
        (Some(service), env) => Some(lines::service(service, env.unwrap_or_default())),
        (None, Some(env)) => Some(format!("env {env}")),
    }
}

fn line(row: SourceRow, blind: &BTreeMap<SourceName, Vec<Blind>>, now_us: i64) -> SourceLine {
    let stretches = row.name().and_then(|name| blind.get(&name)).into_iter().flatten();
    let moment = |at_us| Moment::new(at_us, now_us);
    let passed_us = now_us.saturating_sub(row.last_push_us);
    let (state, state_words) = match (row.state.as_str(), row.last_heartbeat_us) {
        ("silent", _) if passed_us >= GONE_US => ("gone", "Gone: silent for over a day"),
        ("silent", _) => ("silent", "Silent: blind since it was last heard"),
        ("closed", _) => ("closed", "Said goodbye"),
        (_, Some(_)) => ("heard", "Heard"),
        (_, None) if passed_us >= QUIET_US => ("quiet", "Not heard lately"),
        (_, None) => ("unwatched", "Not watched"),
    };
    SourceLine {
        blind: stretches.map(|it| (moment(it.from_us), moment(it.to_us))).collect(),
        service: lines::service(&row.service, &row.env),
        source: row.source,
        state,
        state_words,
        heard: Moment::new(row.last_push_us, now_us),
        boot: row.boot.map(|boot| BootLine {
            since: Moment::new(boot.first_received_us, now_us),
            last_seq: number(boot.last_seq),
            received: boot.taken().map(number),
            troubles: [
                trouble(&boot.missing(), "missing"),
                trouble(&boot.refused, "refused"),
                trouble(&boot.lost, "lost").map(|told| format!("up to {told}")),
            ]
            .into_iter()
            .flatten()
            .collect(),
            boot: boot.boot,
        }),
    }
}

/// `3 missing: 5 to 6, 9`.
fn trouble(ranges: &[(i64, i64)], what: &str) -> Option<String> {
    if ranges.is_empty() {
        return None;
    }
    let mut told: Vec<String> = ranges
        .iter()
        .take(HOLES_TOLD)
        .map(|(first, last)| match first == last {
            true => number(*first),
            false => format!("{} to {}", number(*first), number(*last)),
        })
        .collect();
    if ranges.len() > HOLES_TOLD {
        let rest = ranges.len() - HOLES_TOLD;
        told.push(several(rest as i128, "more run", "more runs"));
    }
    Some(format!("{} {what}: {}", number(size_of(ranges)), told.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_which_numbers_are_missing() {
        assert_eq!(trouble(&[], "missing"), None);
        let told = trouble(&[(5, 6), (9, 9)], "missing");
        assert_eq!(told.as_deref(), Some("3 missing: 5 to 6, 9"));
        let told = trouble(&[(1, 1), (3, 3), (5, 5), (7, 7), (9, 9)], "refused");
        assert_eq!(told.as_deref(), Some("5 refused: 1, 3, 5, 2 more runs"));
    }
}
