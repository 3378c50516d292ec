//! `/findings/ID`: one finding: the rule in words, the witnesses side by side, how sure, what to
//! do; and the form by which a person closes it.

use actix_web::http::header::LOCATION;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::lines::{self, Amount};
use super::topics::{self, Topic};
use super::words::{self, Step};
use super::{Shell, help, player_url, render, sentence};
use crate::audit::{Finding, Kind, Subject, Witness};
use crate::limits::{MINUTE_US, SECOND_US};
use crate::store::FindingRow;
use crate::web::AppState;
use crate::web::api::close::{self, CloseRequest};
use crate::web::api::findings::absent;
use crate::web::error::PageError;
use crate::web::format::{Moment, number, several, span};
use crate::web::query::Params;

#[derive(Template)]
#[template(path = "finding.html")]
struct FindingPage {
    shell: Shell,
    id: String,
    topic: &'static Topic,
    help_url: String,
    steps: Vec<Step>,
    sentence: String,
    severity: &'static str,
    state: &'static str,
    is_open: bool,
    is_closing: bool,
    closed_because: Option<String>,
    amounts: Vec<Amount>,
    amounts_before: Vec<Amount>,
    claims_nothing: bool,
    facts: Vec<Fact>,
    between: Option<String>,
    same_trace: bool,
    witnesses: Vec<WitnessCard>,
    /// What the order of the witnesses and the coverage of the ledger say; nothing of findings
    /// that are about a source itself.
    sure: Vec<&'static str>,
}

/// A name and what it is; with an address if there is more to read.
struct Fact {
    name: &'static str,
    text: String,
    url: Option<String>,
}

struct WitnessCard {
    title: String,
    at: Moment,
    day: String,
    facts: Vec<Fact>,
    text: Option<String>,
}

/// The page of one finding.
pub(in crate::web) async fn show(
    request: HttpRequest,
    id: web::Path<String>,
    state: web::Data<AppState>,
) -> Result<HttpResponse, PageError> {
    let params = Params::parse(request.query_string(), &["closing"])?;
    let row = state.store.finding(&id).await?.ok_or_else(|| absent(&id))?;
    let is_closing = params.raw("closing").is_some() && lines::is_open(&row.finding);
    render(&page(&row, is_closing, state.clock.now_us()))
}

/// A person closes it: written to the log, then back to the page. The audit follows.
pub(in crate::web) async fn close(
    request: HttpRequest,
    id: web::Path<String>,
    form: web::Form<CloseRequest>,
    state: web::Data<AppState>,
) -> Result<HttpResponse, PageError> {
    close::write(&request, &id, form.into_inner(), &state).await?;
    let back = format!("/findings/{}?closing=1", super::encode(&id));
    Ok(HttpResponse::SeeOther().insert_header((LOCATION, back)).finish())
}

fn page(row: &FindingRow, is_closing: bool, now_us: i64) -> FindingPage {
    let finding = &row.finding;
    let ledger = finding.ledger.as_deref();
    let amounts_before = finding.amounts_before_closing.as_ref();
    let topic = topics::of_kind(finding.kind);
    FindingPage {
        shell: Shell::new("/findings", now_us),
        id: finding.id.clone(),
        topic,
        help_url: help::url(topic),
        steps: words::steps(finding),
        sentence: sentence::of(finding),
        severity: finding.severity.as_str(),
        state: finding.state.as_str(),
        is_open: lines::is_open(finding),
        is_closing,
        closed_because: finding.closed_because.as_deref().map(words::of_closing),
        amounts: lines::amounts(&finding.amounts, ledger),
        amounts_before: amounts_before.map_or_else(Vec::new, |sum| lines::amounts(sum, ledger)),
        claims_nothing: finding.kind == Kind::UnverifiableBlock,
        facts: facts(row, now_us),
        between: between(finding),
        same_trace: same_trace(finding),
        witnesses: finding.witnesses.iter().map(|witness| card(witness, finding, now_us)).collect(),
        sure: sure(finding),
    }
}

fn fact(name: &'static str, text: impl Into<String>) -> Fact {
    Fact { name, text: text.into(), url: None }
}

fn sure(finding: &Finding) -> Vec<&'static str> {
    if matches!(finding.subject, Subject::Source { ledger: None, .. } | Subject::Boot { .. }) {
        return vec!["It is about what a source said of itself: nothing else bears on it."];
    }
    vec![words::of_order(finding.order), words::of_coverage(finding.coverage)]
}

fn facts(row: &FindingRow, now_us: i64) -> Vec<Fact> {
    let finding = &row.finding;
    let moment = |at_us| {
        let moment = Moment::new(at_us, now_us);
        format!("{} ({})", moment.text, moment.ago)
    };
    let mut facts = vec![fact("Service", lines::service(&finding.service, &finding.env))];
    facts.extend(finding.ledger.as_ref().map(|ledger| fact("Ledger", ledger)));
    if let Some((player, url)) = lines::player(finding) {
        facts.push(Fact { name: "Player", text: player, url: Some(url) });
    }
    let signature = finding.signature.as_ref();
    facts.extend(signature.map(|it| fact("Settlement", lines::settlement(it))));
    facts.extend(finding.source.as_ref().map(|source| fact("Source", source.as_str())));
    facts.push(fact("Cause", words::of_cause(&finding.cause)));
    facts.push(fact("Occurrences", number(finding.count)));
    if finding.players > 1 {
        facts.push(fact("Players", several(finding.players, "player", "players")));
    }
    facts.push(fact("First", moment(finding.first_us)));
    facts.push(fact("Newest", moment(finding.last_us)));
    facts.push(fact("Found", moment(row.opened_us)));
    facts
}

/// The time from the first acceptance to the next, as a sentence: tells a race from a replay.
fn between(finding: &Finding) -> Option<String> {
    let (Kind::DuplicateLeak, [first, second, ..]) = (finding.kind, &*finding.witnesses) else {
        return None;
    };
    let one_clock = first.from == second.from;
    let clocks = if one_clock { "" } else { ", by the clocks of two sources" };
    let passed_us = (second.occurred_us - first.occurred_us).abs();
    let length = match passed_us {
        SECOND_US..MINUTE_US => {
            format!("{}.{:03} s", passed_us / SECOND_US, passed_us % SECOND_US / 1_000)
        }
        _ => span(passed_us),
    };
    Some(format!("The first two are {length} apart{clocks}."))
}

fn same_trace(finding: &Finding) -> bool {
    match &*finding.witnesses {
        [first, second, ..] => first.trace_id.is_some() && first.trace_id == second.trace_id,
        _ => false,
    }
}

fn card(witness: &Witness, finding: &Finding, now_us: i64) -> WitnessCard {
    let at = Moment::new(witness.occurred_us, now_us);
    let mut facts = vec![
        fact("Service", lines::service(witness.from.service.as_str(), witness.from.env.as_str())),
        fact("Source", witness.from.source.as_str()),
    ];
    facts.extend(witness.boot.as_ref().map(|boot| fact("Boot", boot.to_string())));
    facts.extend(witness.seq.map(|seq| fact("Number", seq.to_string())));
    facts.extend(witness.outcome.map(|outcome| fact("Outcome", words::plain(outcome.as_str()))));
    facts.extend(witness.reason.map(|reason| fact("Reason", words::plain(reason.as_str()))));
    facts.extend(witness.effect.as_ref().map(|effect| fact("Effect", name(effect))));
    if let Some(player) = &witness.player {
        let url = finding.ledger.as_ref().map(|ledger| player_url(ledger, player.as_str()));
        facts.push(Fact { name: "Player", text: player.to_string(), url });
    }
    let signature = witness.signature.as_ref();
    facts.extend(signature.map(|it| fact("Settlement", lines::settlement(it))));
    facts.extend(witness.window.map(|it| fact("Window", format!("{} of {}", it.len, it.cap))));
    facts.extend(witness.guard_mode.as_ref().map(|mode| fact("Guard", name(mode))));
    facts.extend(witness.reference.as_ref().map(|id| fact("Ref", id.as_str())));
    facts.extend(witness.trace_id.as_ref().map(|id| fact("Trace", id.as_str())));
    let position = crate::web::api::outcomes::format_position(witness.position);
    facts.push(fact("Log position", position));
    let day = at.text.get(..10).unwrap_or_default().to_owned();
    WitnessCard { title: words::plain(&witness.role), at, day, facts, text: witness.text.clone() }
}

/// A word of the wire for people.
fn name(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_value(value).ok();
    text.as_ref().and_then(|text| text.as_str()).map(words::plain).unwrap_or_default()
}
