//! Rows about a source or a boot: what many events come to, each of which is counted once.
//!
//! An occurrence is first suspected and then stands, or is taken back; who counted it remembers
//! how ([`Counted`]).

use serde::{Deserialize, Serialize};

use super::finding::{OrderKnown, Subject};
use super::group::{Group, Occurrence};
use super::kind::Kind;
use super::player::PlayerFacts;
use super::state::Audit;
use super::waits::{Wait, Waiting};
use crate::outcome::{Amounts, Boot, Id, Position, SourceName};

/// Rows in which a player is remembered to be counted: the newest.
const COUNTED_IN_MAX: usize = 8;

/// How an occurrence is counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counted {
    pub(super) cause: String,
    pub(super) confirmed: bool,
    /// The row of its cause, by its number.
    pub(super) ordinal: u32,
    /// How the order was known that it was judged by.
    pub(super) order: OrderKnown,
}

/// One occurrence about a source, to be counted or taken back.
pub(super) struct About<'a> {
    pub(super) kind: Kind,
    pub(super) from: SourceName,
    pub(super) ledger: Option<&'a str>,
}

fn row_name(kind: Kind, from: &SourceName, cause: &str, ordinal: u32) -> String {
    let SourceName { service, env, source } = from;
    format!("{}/{service}/{env}/{source}/{cause}/{ordinal}", kind.as_str())
}

impl Audit {
    /// Takes an occurrence out of the row in which it is counted.
    pub(super) fn uncount(
        &mut self,
        about: About<'_>,
        was: &Counted,
        amounts: Amounts,
        position: Position,
    ) {
        self.group_of_source(about.kind, (Some(about.from), about.ledger), &was.cause, |group| {
            if !was.confirmed {
                group.unsuspect(amounts);
            } else if group.ordinal() == was.ordinal {
                group.take_back(amounts, position);
            }
        });
    }

    /// Counts an occurrence of which a player has one in each row, if it is its first.
    pub(super) fn count_player(
        &mut self,
        about: About<'_>,
        player: &mut PlayerFacts,
        (cause, order): (&str, OrderKnown),
        occurrence: Occurrence,
    ) {
        let subject = Subject::Source {
            from: Some(about.from.clone()),
            ledger: about.ledger.map(str::to_owned),
            cause: cause.to_owned(),
        };
        let ordinal = self.groups.get(&(about.kind, subject)).map_or(1, Group::ordinal);
        let row = row_name(about.kind, &about.from, cause, ordinal);
        if !player.counted_in.contains(&row) {
            self.count(about, player, (cause.to_owned(), true, order), false, occurrence);
        }
    }

    /// Counts an occurrence in the row of its cause, and its player once in each row.
    pub(super) fn count(
        &mut self,
        about: About<'_>,
        player: &mut PlayerFacts,
        (cause, confirmed, order): (String, bool, OrderKnown),
        critical: bool,
        occurrence: Occurrence,
    ) -> Counted {
        let received_us = self.received_us;
        let About { kind, from, ledger } = about;
        let name = from.clone();
        let counted_in = &mut player.counted_in;
        let mut ordinal = 1;
        self.group_of_source(kind, (Some(from), ledger), &cause, |group| {
            group.order(order);
            if confirmed {
                group.add(occurrence, received_us);
                group.critical |= critical;
            } else {
                group.suspect(occurrence, received_us);
            }
            ordinal = group.ordinal();
            let row = row_name(kind, &name, &cause, ordinal);
            if confirmed && !counted_in.contains(&row) {
                group.players = group.players.saturating_add(1);
                counted_in.push(row);
                if counted_in.len() > COUNTED_IN_MAX {
                    counted_in.remove(0);
                }
            }
        });
        Counted { cause, confirmed, ordinal, order }
    }

    /// Changes what is counted about a source, and brings its row in line.
    pub(super) fn group_of_source(
        &mut self,
        kind: Kind,
        (from, ledger): (Option<SourceName>, Option<&str>),
        cause: &str,
        change: impl FnOnce(&mut Group),
    ) {
        let about = from.as_ref().map_or_else(Default::default, |from| {
            (from.service.to_string(), from.env.to_string(), Some(from.source.clone()))
        });
        let ledger = ledger.map(str::to_owned);
        let subject = Subject::Source { from, ledger, cause: cause.to_owned() };
        self.group(kind, subject, cause, about, change);
    }

    /// Changes what is counted about a boot, and brings its row in line.
    pub(super) fn group_of_boot(
        &mut self,
        kind: Kind,
        (from, boot): (&SourceName, Boot),
        change: impl FnOnce(&mut Group),
    ) {
        let about = (from.service.to_string(), from.env.to_string(), Some(from.source.clone()));
        let subject = Subject::Boot { from: from.clone(), boot };
        self.group(kind, subject, kind.as_str(), about, change);
    }

    pub(super) fn group(
        &mut self,
        kind: Kind,
        subject: Subject,
        cause: &str,
        about: (String, String, Option<Id>),
        change: impl FnOnce(&mut Group),
    ) {
        let received_us = self.received_us;
        let key = (kind, subject.clone());
        let group = self
            .groups
            .entry(key.clone())
            .or_insert_with(|| Group::new(kind, subject, cause, about, received_us));
        change(group);
        self.settle_group(key.0, &key.1);
    }

    pub(super) fn settle_group(&mut self, kind: Kind, subject: &Subject) {
        let key = (kind, subject.clone());
        let received_us = self.received_us;
        let Some(group) = self.groups.get_mut(&key) else { return };
        let open = group.rows.last().is_some_and(super::row::Row::is_open);
        if open && group.is_quiet(received_us) {
            let id = group.rows.last().map(|row| row.finding.id.clone()).unwrap_or_default();
            self.book.close_as_is(&mut group.rows, &id, "quiet", received_us);
        } else {
            let (verdict, _) = group.verdict(received_us);
            let because = match kind {
                Kind::TelemetryGap => "filled",
                Kind::ClockSkew => "made_good",
                _ => "disproved",
            };
            self.book.settle(&mut group.rows, subject, kind, verdict, because, received_us);
            // Closed rows are in the store; the newest says where the next begins.
            let surplus = group.rows.len().saturating_sub(1);
            group.rows.drain(..surplus);
        }
        let (_, due_us) = group.verdict(received_us);
        let wait = Wait::Group(kind, subject.clone());
        self.waits.set(Waiting::new(wait, None, due_us, false));
        self.groups_changed.insert(key);
    }
}
