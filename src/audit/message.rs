//! `id_collision`: one message id names two messages.
//!
//! A message may settle a whole table and may be delivered again, also elsewhere: its deliveries
//! share settlements, directly or through others. Deliveries that share none are two messages,
//! and whoever dedups by the id loses one of them.
//!
//! A delivery that may not be known in full proves nothing: the settlement that it shares with
//! another may be what is missing.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::finding::{Coverage, Severity, Witness};
use super::kind::Kind;
use super::order::{Moment, how_known};
use super::quiet::QuietRows;
use super::row::{EXAMPLES_MAX, Row, Verdict};
use super::rule::{Context, Judged};
use super::source::Source;
use super::table::Stored;
use super::witness::Evidence;
use crate::outcome::{Amounts, Event, Game, Id, Outcome, Signature};

/// Settlements of one message kept: a table of ten seats, delivered six times. The earliest, so
/// that which ones are kept does not hang on the order in which they came; of what begins later
/// nothing is said.
const TOLD_MAX: usize = 64;
/// A source's settlements of a message that are closer than this are one delivery (audit.md).
const APART_US: i64 = 1_000_000;
/// So far apart two numbers of a source have no other message between them: at most the eviction
/// that the second one made.
const NUMBERS_APART_MAX: u64 = 2;

/// One settlement that a message brought: accepted or blocked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Told {
    at: Moment,
    received_us: i64,
    outcome: Outcome,
    player: Id,
    signature: Signature,
}

/// What is known of one message id of a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageFacts {
    pub(super) ledger: String,
    pub(super) message: Id,
    /// By time.
    told: Vec<Told>,
    /// Beyond those kept.
    more: u64,
    pub(super) rows: QuietRows,
    /// A delivery is not known in full, and that was counted.
    pub(super) skipped: bool,
}

impl Stored for MessageFacts {
    fn rows(&self) -> &[Row] {
        self.rows.rows()
    }

    fn take_back(&mut self, rows: Vec<Row>) {
        self.rows.take_back(rows);
    }
}

/// One settlement, compared byte for byte; the amount of an opaque key is no part of it.
type Key<'a> = (&'a Id, Option<&'a Game>, Option<&'a Id>, i64, bool);

impl Told {
    fn key(&self) -> Key<'_> {
        match &self.signature {
            Signature::Settlement { game, net, last } => {
                (&self.player, Some(game), None, net.0, *last)
            }
            Signature::Opaque { key, .. } => (&self.player, None, Some(key), 0, false),
        }
    }
}

impl MessageFacts {
    pub(super) fn new(ledger: String, message: Id) -> Self {
        let rows = QuietRows::default();
        Self { ledger, message, told: Vec::new(), more: 0, rows, skipped: false }
    }

    pub(super) fn tell(&mut self, event: &Event, at: Moment, received_us: i64) {
        let time = |at: &Moment| (at.at_us, at.source, at.sequence, at.position);
        let place = self.told.partition_point(|other| time(&other.at) < time(&at));
        let told = Told {
            at,
            received_us,
            outcome: event.outcome,
            player: event.player.clone(),
            signature: event.signature.clone(),
        };
        self.told.insert(place, told);
        if self.told.len() > TOLD_MAX {
            self.told.pop();
            self.more = self.more.saturating_add(1);
        }
    }

    /// All of one delivery, or of nearly all messages: in time order one stretch of one source.
    fn is_one_delivery(&self) -> bool {
        self.told.windows(2).all(|two| match two {
            [a, b] => a.at.source == b.at.source && a.at.distance_us(&b.at) < APART_US,
            _ => true,
        })
    }

    fn deliveries(&self) -> Vec<Vec<&Told>> {
        let mut told: Vec<&Told> = self.told.iter().collect();
        told.sort_by_key(|told| {
            (told.at.source, told.at.sequence, told.at.at_us, told.at.position)
        });
        let mut deliveries: Vec<Vec<&Told>> = Vec::new();
        for next in told {
            let goes_on = |delivery: &&mut Vec<&Told>| {
                delivery.last().is_some_and(|last| is_one_delivery(&last.at, &next.at))
            };
            match deliveries.last_mut().filter(goes_on) {
                Some(delivery) => delivery.push(next),
                None => deliveries.push(vec![next]),
            }
        }
        deliveries
    }

    /// When the facts end, if some were let go of: later deliveries are not known in full.
    fn known_until_us(&self) -> i64 {
        let last = self.told.last().filter(|_| self.more > 0);
        last.map_or(i64::MAX, |last| last.at.at_us.saturating_sub(APART_US))
    }
}

/// Whether two neighbours of a source, of one message, are of one delivery.
fn is_one_delivery(a: &Moment, b: &Moment) -> bool {
    if a.source != b.source {
        return false;
    }
    let Some(((boot, seq), (next_boot, next_seq))) = a.sequence.zip(b.sequence) else {
        return a.distance_us(b) < APART_US;
    };
    let was_set_back = boot == next_boot && b.at_us < a.at_us;
    a.distance_us(b) < APART_US
        || (was_set_back && next_seq.saturating_sub(seq) <= NUMBERS_APART_MAX)
}

/// Deliveries that share settlements: one message.
#[derive(Default)]
struct Message<'a> {
    keys: BTreeSet<Key<'a>>,
    deliveries: Vec<Vec<&'a Told>>,
}

fn messages<'a>(deliveries: Vec<Vec<&'a Told>>) -> Vec<Message<'a>> {
    let mut messages: Vec<Message<'a>> = Vec::new();
    for delivery in deliveries {
        let keys: BTreeSet<Key<'a>> = delivery.iter().map(|told| told.key()).collect();
        let shares = |message: &Message<'a>| !message.keys.is_disjoint(&keys);
        let (shared, others) = messages.into_iter().partition::<Vec<_>, _>(shares);
        let mut one = Message { keys, deliveries: vec![delivery] };
        for message in shared {
            one.keys.extend(message.keys);
            one.deliveries.extend(message.deliveries);
        }
        messages = others;
        messages.push(one);
    }
    messages
}

/// One message of several, as far as it is certain.
struct Apart<'a> {
    first: &'a Told,
    /// When nothing of its first whole delivery can come any more.
    due_us: i64,
    /// Some delivery of it is known in full.
    whole: bool,
    last_us: i64,
}

/// What is to be said, and whether some delivery is not known in full.
pub(super) struct Collision {
    pub(super) judged: Judged,
    pub(super) incomplete: bool,
}

/// Judges one message id.
pub(super) fn judge(context: Context<'_>, facts: &MessageFacts) -> Collision {
    let nothing = Judged::nothing(Kind::IdCollision, "disproved");
    if facts.is_one_delivery() {
        return Collision { judged: nothing, incomplete: false };
    }
    let messages = messages(facts.deliveries());
    if messages.len() < 2 {
        return Collision { judged: nothing, incomplete: false };
    }
    let apart = messages.iter().filter_map(|message| apart(context, facts, message));
    let mut apart: Vec<Apart<'_>> = apart.collect();
    apart.sort_by_key(|apart| (apart.first.at.at_us, apart.first.at.source, apart.first.key()));
    let is_due = |apart: &&Apart<'_>| apart.due_us <= context.watermark_us;
    let whole: Vec<&Apart<'_>> = apart.iter().filter(|apart| apart.whole).collect();
    let settled: Vec<&Apart<'_>> = whole.iter().copied().filter(|apart| is_due(apart)).collect();
    let beyond_one = |list: &[&Apart<'_>]| (list.len() as u64).saturating_sub(1);
    let (all_count, settled_count) = (beyond_one(&whole), beyond_one(&settled));
    let (count, confirmed) = facts.rows.shown(Kind::IdCollision, settled_count, all_count);
    let shown = if confirmed { &settled } else { &whole };
    let verdict = verdict(context, facts, shown);
    Collision {
        incomplete: apart.iter().any(|apart| !apart.whole && is_due(&apart)),
        judged: Judged {
            verdict: verdict.map(|verdict| Verdict { count, confirmed, ..verdict }),
            due_us: apart.iter().filter(|apart| !is_due(apart)).map(|apart| apart.due_us).min(),
            hole: whole.len() < apart.len(),
            ..nothing
        },
    }
}

fn apart<'a>(
    context: Context<'_>,
    facts: &MessageFacts,
    message: &Message<'a>,
) -> Option<Apart<'a>> {
    let mut best: Option<(bool, i64)> = None;
    for delivery in &message.deliveries {
        let ends = delivery.iter().map(|told| context.since_us(&told.at, told.received_us));
        // The rest of a delivery may be in a push that is yet to come: as long as for a block.
        let due_us = ends.max()?.saturating_add(context.settings.block_grace_us);
        let is_whole = is_whole(context, facts, delivery);
        let is_better = best.is_none_or(|(whole, best_us)| {
            (is_whole && !whole) || (is_whole == whole && due_us < best_us)
        });
        if is_better {
            best = Some((is_whole, due_us));
        }
    }
    let (whole, due_us) = best?;
    let told = || message.deliveries.iter().flatten();
    let first = told().min_by_key(|told| (told.at.at_us, told.at.source, told.key()))?;
    let last_us = told().map(|told| told.at.at_us).max()?;
    Some(Apart { first, due_us, whole, last_us })
}

/// Whether nothing of a delivery can be missing: its source was not blind around it.
fn is_whole(context: Context<'_>, facts: &MessageFacts, delivery: &[&Told]) -> bool {
    let times = || delivery.iter().map(|told| told.at.at_us);
    let (Some(first_us), Some(last_us)) = (times().min(), times().max()) else { return false };
    if last_us >= facts.known_until_us() {
        return false;
    }
    let source = delivery.first().and_then(|told| context.sources.get(told.at.source));
    let blind = source.map(Source::blind).unwrap_or_default();
    blind.iter().all(|blind| {
        blind.to_us <= first_us.saturating_sub(APART_US)
            || last_us.saturating_add(APART_US) <= blind.from_us
    })
}

fn verdict(context: Context<'_>, facts: &MessageFacts, shown: &[&Apart<'_>]) -> Option<Verdict> {
    let [first, second, ..] = shown else { return None };
    let evidence = |apart: &&Apart<'_>| {
        let Told { at, outcome, player, signature, .. } = apart.first;
        let witness = Evidence::about(context.sources, player, signature).moment("delivered", at);
        witness.map(|witness| Witness { outcome: Some(*outcome), ..witness })
    };
    let from = context.sources.name(first.first.at.source)?;
    let same_source = first.first.at.source == second.first.at.source;
    let players: BTreeSet<&Id> = facts.told.iter().map(|told| &told.player).collect();
    Some(Verdict {
        count: 0,
        amounts: Amounts::default(),
        players: players.len() as u64,
        severity: Severity::Critical,
        confirmed: false,
        cause: if same_source { "one_source" } else { "two_sources" }.to_owned(),
        order: how_known(context.sources, &first.first.at, &second.first.at),
        coverage: Coverage::Full,
        service: from.service.to_string(),
        env: from.env.to_string(),
        source: Some(from.source.clone()),
        first_us: first.first.at.at_us,
        last_us: shown.iter().map(|apart| apart.last_us).max()?,
        witnesses: shown.iter().take(EXAMPLES_MAX).filter_map(evidence).collect(),
    })
}
