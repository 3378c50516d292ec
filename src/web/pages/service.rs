//! `/services/NAME`: one service by itself, in all its envs: how long its windows have to be,
//! and how its deliveries move.

use std::collections::{BTreeMap, BTreeSet};

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::window::{self, WindowSection};
use super::{Shell, encode, render, service_url};
use crate::limits::MINUTE_US;
use crate::outcome::DeliveryState;
use crate::store::transitions::TransitionCount;
use crate::web::AppState;
use crate::web::api::transitions;
use crate::web::error::{PageError, Problem};
use crate::web::format::{Moment, number};
use crate::web::query::Params;
use crate::web::summary;

#[derive(Template)]
#[template(path = "service.html")]
struct Service {
    shell: Shell,
    name: String,
    /// Where its findings and its sources are.
    findings: String,
    sources: String,
    /// What the window advisor says, for programs.
    advice_json: String,
    windows: Vec<WindowSection>,
    /// The moves, for programs.
    moves_json: String,
    moves: Moves,
}

/// How deliveries moved, minute by minute.
struct Moves {
    /// Each pair of states that occurred.
    columns: Vec<Column>,
    /// Newest first; only minutes in which anything was heard.
    rows: Vec<Row>,
    any_illegal: bool,
}

struct Column {
    /// `received to checking`.
    name: String,
    legal: bool,
}

struct Row {
    minute: Moment,
    /// Unless it is `prod`.
    env: Option<String>,
    /// In the order of the columns; `None` where there was no such move.
    counts: Vec<Option<String>>,
}

/// The page of a service.
pub(in crate::web) async fn show(
    request: HttpRequest,
    name: web::Path<String>,
    state: web::Data<AppState>,
) -> Result<HttpResponse, PageError> {
    Params::parse(request.query_string(), &[])?;
    let now_us = state.clock.now_us();
    let counts = transitions::read(&state.store, &name, now_us).await?;
    let summary = summary::read(&state.store, now_us, Some(&name)).await?;
    if summary.services.is_empty() && counts.is_empty() {
        let told = format!("Nothing was heard of service {name}. The overview lists all services.");
        return Err(Problem::not_found(told).into());
    }
    let of_service = |page: &str| format!("{page}?service={}", encode(&name));
    render(&Service {
        shell: Shell::new("", now_us),
        findings: of_service("/findings"),
        sources: of_service("/sources"),
        advice_json: format!("/api/v1{}", service_url(&name)),
        windows: windows(&state, &name, now_us).await?,
        moves_json: format!("/api/v1{}/transitions", service_url(&name)),
        moves: moves(&counts, now_us),
        name: name.into_inner(),
    })
}

type Pair = (DeliveryState, DeliveryState);

fn moves(counts: &[TransitionCount], now_us: i64) -> Moves {
    let pairs: BTreeSet<Pair> = counts.iter().map(|count| (count.left, count.entered)).collect();
    let column = |&(left, entered): &Pair| Column {
        name: format!("{} to {}", left.as_str(), entered.as_str()),
        legal: left.leads_to(entered),
    };
    let mut minutes: BTreeMap<(i64, &str), BTreeMap<Pair, u64>> = BTreeMap::new();
    for count in counts {
        let minute = minutes.entry((count.minute, count.env.as_str())).or_default();
        *minute.entry((count.left, count.entered)).or_default() += count.count;
    }
    let row = |((minute, env), counts): (&(i64, &str), &BTreeMap<Pair, u64>)| Row {
        minute: Moment::new(minute.saturating_mul(MINUTE_US), now_us),
        env: Some(*env).filter(|env| *env != "prod").map(str::to_owned),
        counts: pairs.iter().map(|pair| counts.get(pair).map(|count| number(*count))).collect(),
    };
    let columns: Vec<Column> = pairs.iter().map(column).collect();
    Moves {
        any_illegal: columns.iter().any(|column| !column.legal),
        columns,
        rows: minutes.iter().rev().map(row).collect(),
    }
}

async fn windows(
    state: &AppState,
    name: &str,
    now_us: i64,
) -> Result<Vec<WindowSection>, PageError> {
    let advices = summary::advice(&state.store, Some(name), Some(now_us)).await?;
    let section = |(advice, measured)| window::section(&advice, &measured);
    Ok(advices.into_iter().map(section).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Id;

    fn counted(env: &str, minute: i64, (left, entered): Pair, count: u64) -> TransitionCount {
        let [service, env] = ["s", env].map(|text| Id::parse(text).unwrap());
        TransitionCount { service, env, minute, left, entered, count }
    }

    #[test]
    fn a_row_for_each_minute_and_a_column_for_each_move_that_occurred() {
        use DeliveryState::{Accepted, Checking, Received};
        let forward = (Received, Checking);
        let counts = [
            counted("prod", 8, forward, 1_200),
            counted("test", 8, forward, 2),
            counted("prod", 5, (Accepted, Checking), 1),
        ];
        let moves = moves(&counts, 9 * MINUTE_US);
        let columns: Vec<_> = moves.columns.iter().map(|it| (&*it.name, it.legal)).collect();
        assert_eq!(columns, [("received to checking", true), ("accepted to checking", false)]);
        assert!(moves.any_illegal);
        let row = |row: &Row| (row.minute.clock.clone(), row.env.clone(), row.counts.clone());
        let some = |text: &str| Some(text.to_owned());
        let expected = [
            ("00:08:00".into(), some("test"), vec![some("2"), None]),
            ("00:08:00".into(), None, vec![some("1\u{202f}200"), None]),
            ("00:05:00".into(), None, vec![None, some("1")]),
        ];
        assert_eq!(moves.rows.iter().map(row).collect::<Vec<_>>(), expected);
    }
}
