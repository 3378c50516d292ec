//! `/alerts`: what is firing, what is over, and what was sent about it.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::overview::{AlertLine, alert_lines};
use super::{Shell, encode, lines, render, words};
use crate::store::NotificationRow;
use crate::web::AppState;
use crate::web::error::PageError;
use crate::web::format::{Moment, number};
use crate::web::query::Params;

/// Alerts of one state that are shown; more are counted.
const PART_ROWS: u32 = 100;
/// Notifications of one page.
const PAGE_ROWS: u32 = 50;

#[derive(Template)]
#[template(path = "alerts.html")]
struct Alerts {
    shell: Shell,
    is_first: bool,
    has_receiver: bool,
    firing: Part,
    pending: Part,
    resolved: Part,
    notifications: Vec<NotificationLine>,
    older: Option<String>,
}

/// The alerts of one state.
struct Part {
    lines: Vec<AlertLine>,
    /// How many there are beyond those shown.
    more: i64,
}

struct NotificationLine {
    at: Moment,
    name: String,
    service: String,
    because: String,
    receiver: String,
    state: String,
    state_words: String,
    attempts: String,
    error: Option<String>,
    delivered: Option<Moment>,
}

/// Alerts, and the log of notifications.
pub(in crate::web) async fn show(
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, PageError> {
    let params = Params::parse(request.query_string(), &["after"])?;
    let after = params.after(parse_key)?;
    let now_us = state.clock.now_us();
    let key = after.as_ref().map(|(at_us, id)| (*at_us, id.as_str()));
    let rows = state.store.notification_rows(key, PAGE_ROWS).await?;
    let next = rows.last().filter(|_| rows.len() >= PAGE_ROWS as usize);
    let older = next.map(|row| encode(&format!("{}.{}", row.created_us, row.id)));
    render(&Alerts {
        shell: Shell::new("/alerts", now_us),
        is_first: after.is_none(),
        has_receiver: state.config.webhook.is_some(),
        firing: part(&state, "firing", now_us).await?,
        pending: part(&state, "pending", now_us).await?,
        resolved: part(&state, "resolved", now_us).await?,
        notifications: rows.into_iter().map(|row| notification(row, now_us)).collect(),
        older: older.map(|key| format!("/alerts?after={key}")),
    })
}

async fn part(state: &AppState, of: &str, now_us: i64) -> Result<Part, PageError> {
    let (lines, more) = alert_lines(state, of, PART_ROWS, now_us).await?;
    Ok(Part { lines, more })
}

fn parse_key(text: &str) -> Option<(i64, String)> {
    let (created_us, id) = text.split_once('.')?;
    Some((created_us.parse().ok()?, id.to_owned()))
}

fn notification(row: NotificationRow, now_us: i64) -> NotificationLine {
    NotificationLine {
        at: Moment::new(row.created_us, now_us),
        name: words::of_rule(&row.rule),
        service: lines::service(&row.service, &row.env),
        because: words::plain(&row.because),
        receiver: row.receiver,
        state_words: words::plain(&row.state),
        state: row.state,
        attempts: number(row.attempts),
        error: row.last_error,
        delivered: row.delivered_us.map(|at_us| Moment::new(at_us, now_us)),
    }
}
