//! `/players/LEDGER/PLAYER`: a plain table of a player's deliveries, in order.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::lines::{self, FindingLine};
use super::{Shell, encode, player_url, render, words};
use crate::outcome::{Body, Event, Position, Signature};
use crate::store::{Delivery, FindingRow};
use crate::web::AppState;
use crate::web::api::players::{format_key, parse_key};
use crate::web::error::PageError;
use crate::web::format::{Moment, number};
use crate::web::query::Params;

/// Deliveries of one page.
const PAGE_ROWS: u32 = 200;
/// Findings shown above them.
const FINDINGS_SHOWN: u32 = 20;

#[derive(Template)]
#[template(path = "player.html")]
struct Player {
    shell: Shell,
    ledger: String,
    player: String,
    findings: Vec<FindingLine>,
    deliveries: Vec<DeliveryLine>,
    newest: Option<String>,
    earlier: Option<String>,
}

struct DeliveryLine {
    at: Moment,
    day: String,
    event: Option<EventLine>,
    /// What it shows, and the finding that it is a witness of.
    marks: Vec<(String, String)>,
}

struct EventLine {
    outcome: &'static str,
    outcome_words: String,
    session: String,
    room: String,
    round: String,
    net: String,
    is_final: bool,
    window: String,
    source: String,
    number: String,
    notes: Vec<String>,
}

/// The newest deliveries, or those before a place, in the order in which they occurred.
pub(in crate::web) async fn show(
    request: HttpRequest,
    path: web::Path<(String, String)>,
    state: web::Data<AppState>,
) -> Result<HttpResponse, PageError> {
    let (ledger, player) = path.into_inner();
    let params = Params::parse(request.query_string(), &["after"])?;
    let before = params.after(parse_key)?;
    let store = &state.store;
    let mut rows = store.deliveries(&ledger, &player, before, PAGE_ROWS).await?;
    let findings = store.findings_of_player(&ledger, &player, FINDINGS_SHOWN).await?;
    let now_us = state.clock.now_us();
    let here = player_url(&ledger, &player);
    let next = rows.last().filter(|_| rows.len() >= PAGE_ROWS as usize);
    let earlier = next.map(|row| format!("{here}?after={}", encode(&format_key(row.key))));
    // Read from the newest on, shown in order.
    rows.reverse();
    render(&Player {
        shell: Shell::new("/players", now_us),
        ledger,
        player,
        findings: lines::lines(&findings, now_us),
        deliveries: rows.iter().map(|row| line(row, &findings, now_us)).collect(),
        newest: before.map(|_| here),
        earlier,
    })
}

fn line(delivery: &Delivery, findings: &[FindingRow], now_us: i64) -> DeliveryLine {
    let at = Moment::new(delivery.key.occurred_us, now_us);
    let event = delivery.record.as_ref().and_then(|record| match &record.body {
        Body::Event(event) | Body::Conflict(event) => Some(event_line(event)),
        _ => None,
    });
    let marks = marks(delivery.key.position, findings);
    DeliveryLine { marks, day: at.text.get(..10).unwrap_or_default().to_owned(), at, event }
}

fn marks(position: Position, findings: &[FindingRow]) -> Vec<(String, String)> {
    let mut marks = Vec::new();
    for finding in findings.iter().map(|row| &row.finding) {
        let here = finding.witnesses.iter().filter(|witness| witness.position == position);
        marks.extend(
            here.map(|witness| (words::plain(&witness.role), format!("/findings/{}", finding.id))),
        );
    }
    marks
}

fn event_line(event: &Event) -> EventLine {
    let (session, room, round, is_final) = match &event.signature {
        Signature::Opaque { key, .. } => {
            (String::new(), format!("key {key}"), String::new(), false)
        }
        Signature::Settlement { game, last, .. } => {
            let session = lines::text_of(game.session.as_ref());
            (session, game.room.to_string(), game.round.to_string(), *last)
        }
    };
    EventLine {
        outcome: event.outcome.as_str(),
        outcome_words: words::plain(event.outcome.as_str()),
        session,
        room,
        round,
        net: number(event.signature.net().0),
        is_final,
        window: event
            .window
            .map_or(String::new(), |window| format!("{}/{}", window.len, window.cap)),
        source: event.from.source.to_string(),
        number: event.seq.map(number).unwrap_or_default(),
        notes: notes(event),
    }
}

fn notes(event: &Event) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(event.reason.map(|reason| words::plain(reason.as_str())));
    notes.extend(event.reference.as_ref().map(|id| format!("ref {id}")));
    notes.extend(event.reversal_of.as_ref().map(|id| format!("undoes {id}")));
    notes.extend(event.effect.map(|effect| format!("effect {}", effect.as_str())));
    notes.extend(event.booked_room.as_ref().map(|room| format!("booked in room {room}")));
    notes.extend(event.attempt.map(|attempt| format!("attempt {attempt}")));
    for signature in &event.evicted {
        notes.push(format!("pushed out {}", lines::settlement(signature)));
    }
    notes
}
