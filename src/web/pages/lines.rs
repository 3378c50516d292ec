//! A finding as one line of a list, and its parts in words; shared by the pages that list some.

use std::cmp::Reverse;

use super::{player_url, sentence, topics};
use crate::audit::{Finding, Severity, State};
use crate::outcome::{Amounts, Id, Signature};
use crate::store::FindingRow;
use crate::web::format::{Moment, number};

/// A finding in a list.
pub(super) struct FindingLine {
    /// Where to read on.
    pub(super) url: String,
    /// The rule.
    pub(super) name: &'static str,
    /// `critical`, `warning` or `info`.
    pub(super) severity: &'static str,
    /// `suspected`, `confirmed` or `closed`.
    pub(super) state: &'static str,
    /// What happened, in a sentence.
    pub(super) sentence: String,
    /// What it is about: settlement or source.
    pub(super) about: String,
    /// The player, with the address of the player's page.
    pub(super) player: Option<(String, String)>,
    /// Service, with the env unless it is `prod`.
    pub(super) service: String,
    /// What it comes to.
    pub(super) amounts: Vec<Amount>,
    /// Time of the newest witness.
    pub(super) last: Moment,
}

/// One amount with its book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Amount {
    /// `overpaid`, ...
    pub(super) name: &'static str,
    /// In full.
    pub(super) text: String,
    /// The book whose minor units these are.
    pub(super) ledger: String,
}

impl FindingLine {
    /// The line of a finding, as seen at `now_us`.
    pub(super) fn new(row: &FindingRow, now_us: i64) -> Self {
        let finding = &row.finding;
        Self {
            url: format!("/findings/{}", finding.id),
            name: topics::of_kind(finding.kind).name,
            severity: finding.severity.as_str(),
            state: finding.state.as_str(),
            sentence: sentence::of(finding),
            about: about(finding),
            player: player(finding),
            service: service(&finding.service, &finding.env),
            amounts: amounts(&finding.amounts, finding.ledger.as_deref()),
            last: Moment::new(finding.last_us, now_us),
        }
    }
}

/// The lines of these findings.
pub(super) fn lines(rows: &[FindingRow], now_us: i64) -> Vec<FindingLine> {
    rows.iter().map(|row| FindingLine::new(row, now_us)).collect()
}

/// The player and the address of the player's page.
pub(super) fn player(finding: &Finding) -> Option<(String, String)> {
    let (ledger, player) = (finding.ledger.as_ref()?, finding.player.as_ref()?);
    Some((player.to_string(), player_url(ledger, player.as_str())))
}

/// The amounts that are not zero.
pub(super) fn amounts(amounts: &Amounts, ledger: Option<&str>) -> Vec<Amount> {
    [
        ("overpaid", amounts.overpaid),
        ("overcharged", amounts.overcharged),
        ("underpaid", amounts.underpaid),
        ("undercharged", amounts.undercharged),
        ("at risk", amounts.exposure),
    ]
    .into_iter()
    .filter(|(_, amount)| *amount != 0)
    .map(|(name, amount)| Amount {
        name,
        text: number(amount),
        ledger: ledger.unwrap_or("several ledgers").to_owned(),
    })
    .collect()
}

/// A service; its env is told unless it is `prod`.
pub(super) fn service(service: &str, env: &str) -> String {
    match (service, env) {
        ("", _) => "not readable".into(),
        (_, "prod" | "") => service.into(),
        _ => format!("{service} ({env})"),
    }
}

/// A settlement in words.
pub(super) fn settlement(signature: &Signature) -> String {
    match signature {
        Signature::Opaque { key, .. } => format!("key {key}"),
        Signature::Settlement { game, net, last } => {
            let session =
                game.session.as_ref().map_or(String::new(), |id| format!("session {id}, "));
            let room = if game.room.as_str().is_empty() { "(none)" } else { game.room.as_str() };
            let last = if *last { ", final" } else { "" };
            format!("{session}room {room}, round {}, net {}{last}", game.round, number(net.0))
        }
    }
}

fn about(finding: &Finding) -> String {
    match (&finding.signature, &finding.source) {
        (Some(signature), _) => settlement(signature),
        (None, Some(source)) => format!("source {source}"),
        (None, None) => String::new(),
    }
}

/// Open findings come worst first; these are the steps.
pub(super) const WORST_FIRST: [Severity; 3] =
    [Severity::Critical, Severity::Warning, Severity::Info];

/// Of one severity, the most money booked wrong comes first; then the most at risk, then the
/// newest. Ledgers may differ in what their units are worth: it is an order, not a sum.
pub(super) fn sort_worst_first(rows: &mut [FindingRow]) {
    rows.sort_by_cached_key(|row| {
        let it = &row.finding.amounts;
        let booked = [it.overpaid, it.overcharged, it.underpaid, it.undercharged]
            .into_iter()
            .fold(0_i128, i128::saturating_add);
        Reverse((booked, it.exposure, row.finding.last_us))
    });
}

/// Whether a person can still close it.
pub(super) fn is_open(finding: &Finding) -> bool {
    finding.state != State::Closed
}

/// An id, or a dash for readers who look for what is not there.
pub(super) fn text_of(id: Option<&Id>) -> String {
    id.map_or_else(String::new, ToString::to_string)
}
