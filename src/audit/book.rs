//! The book of findings: which rows are open, what they show, and their sums.
//!
//! Rules say what *is*, as a total for each subject; the book turns that into rows that grow, are
//! closed, and are followed by new ones. A suspicion that is disproved before it stood is
//! withdrawn without a trace: in a healthy fleet a block is often heard before its acceptance.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::finding::{Finding, State, Subject};
use super::kind::Kind;
use super::row::{Counted, Row, Verdict, new_finding};
use crate::outcome::{Amounts, KeyedHash};

/// New rows of a kind and service in one minute of receipt; beyond, one row `more` (audit.md).
const ROWS_A_MINUTE_MAX: u32 = 1_000;
const MINUTE_US: i64 = 60_000_000;

/// Sums over rows of one (kind, service, env, ledger).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// Rows that were ever confirmed.
    pub confirmed_ever: u64,
    /// Confirmed and open.
    pub open_confirmed: u64,
    /// Suspected.
    pub open_suspected: u64,
    /// What the confirmed and open ones come to.
    pub amounts: Amounts,
}

/// (kind, service, env, ledger); the ledger is empty where a row is about none.
pub type SumKey = (Kind, String, String, String);

/// What the store is to do with a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Write it.
    Write {
        /// The row.
        finding: Box<Finding>,
        /// Receipt of the record by which it was first said.
        opened_us: i64,
        /// Receipt of the record by which it last gained a confirmed occurrence.
        gained_us: Option<i64>,
    },
    /// Take it out: it never stood.
    Withdraw,
}

/// Rows of a kind and service that one minute opened: the bound holds over a restart too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// Which rule.
    pub kind: Kind,
    /// Which service.
    pub service: String,
    minute: i64,
    count: u32,
}

/// The book.
#[derive(Clone, Debug)]
pub struct Book {
    pub(super) hash: KeyedHash,
    sums: BTreeMap<SumKey, Sums>,
    sums_changed: BTreeSet<SumKey>,
    confirmed: BTreeMap<(Kind, String, String), u64>,
    opened: BTreeMap<(Kind, String), Opened>,
    opened_changed: BTreeSet<(Kind, String)>,
    changes: BTreeMap<String, Change>,
    /// The rows `more` by service and minute, while their keys may change them.
    pub(super) more: BTreeMap<(Kind, Subject), Row>,
    pub(super) more_changed: BTreeSet<(Kind, Subject)>,
}

impl Book {
    pub(super) fn new(hash: KeyedHash) -> Self {
        Self {
            hash,
            sums: BTreeMap::new(),
            sums_changed: BTreeSet::new(),
            confirmed: BTreeMap::new(),
            opened: BTreeMap::new(),
            opened_changed: BTreeSet::new(),
            changes: BTreeMap::new(),
            more: BTreeMap::new(),
            more_changed: BTreeSet::new(),
        }
    }

    /// Takes back stored sums.
    pub fn restore_sums(&mut self, key: SumKey, sums: Sums) {
        self.sums.insert(key, sums);
    }

    /// Takes back what a minute had opened.
    pub fn restore_opened(&mut self, opened: Opened) {
        self.opened.insert((opened.kind, opened.service.clone()), opened);
    }

    /// Takes back a stored row `more`.
    pub fn restore_more(&mut self, row: Row) {
        self.more.insert((row.finding.kind, row.finding.subject.clone()), row);
    }

    /// All sums.
    pub fn sums(&self) -> &BTreeMap<SumKey, Sums> {
        &self.sums
    }

    /// Rows that changed since the last call.
    pub fn take_changes(&mut self) -> BTreeMap<String, Change> {
        std::mem::take(&mut self.changes)
    }

    /// Rows `more` that changed since the last call.
    pub fn take_more(&mut self) -> Vec<&Row> {
        let changed = std::mem::take(&mut self.more_changed);
        changed.into_iter().filter_map(|key| self.more.get(&key)).collect()
    }

    /// What minutes opened, where that changed since the last call.
    pub fn take_opened(&mut self) -> Vec<&Opened> {
        let changed = std::mem::take(&mut self.opened_changed);
        changed.into_iter().filter_map(|key| self.opened.get(&key)).collect()
    }

    /// Rows that became confirmed since the last call, by kind, service and env.
    pub fn take_confirmed(&mut self) -> BTreeMap<(Kind, String, String), u64> {
        std::mem::take(&mut self.confirmed)
    }

    /// Sums that changed since the last call.
    pub fn take_sums(&mut self) -> Vec<(SumKey, Sums)> {
        let changed = std::mem::take(&mut self.sums_changed);
        let sums = |key: &SumKey| self.sums.get(key).copied().unwrap_or_default();
        changed.into_iter().map(|key| (key.clone(), sums(&key))).collect()
    }

    /// Brings the rows of a subject in line with what its rule says now; `because` is why a row
    /// that stands no more is closed.
    pub(super) fn settle(
        &mut self,
        rows: &mut Vec<Row>,
        subject: &Subject,
        kind: Kind,
        verdict: Option<Verdict>,
        because: &str,
        received_us: i64,
    ) {
        let Some(i) = rows.iter().rposition(|row| row.finding.kind == kind) else {
            if let Some(verdict) = verdict.filter(|verdict| verdict.count > 0) {
                rows.push(self.open(subject, kind, None, verdict, received_us));
            }
            return;
        };
        let Some(row) = rows.get_mut(i) else { return };
        if !row.is_open() {
            let total = verdict.as_ref().map_or_else(Counted::default, |verdict| Counted {
                count: verdict.count,
                amounts: verdict.amounts,
            });
            // What was undone since counts again when it comes again.
            if total.count < row.end_count() {
                row.ended = Some(total);
            }
            let more = verdict.filter(|verdict| verdict.count > row.end_count());
            let next =
                more.map(|verdict| self.open(subject, kind, Some(&*row), verdict, received_us));
            if let Some(next) = next {
                follow(rows, i, next);
            }
            return;
        }
        let stands = verdict.filter(|verdict| verdict.count > row.base.count);
        match (row.is_open(), stands) {
            (true, Some(verdict)) => self.update(row, subject, verdict, received_us),
            (true, None) if row.finding.state == State::Suspected => {
                let row = rows.remove(i);
                self.withdraw(&row, received_us);
                self.did_not_open(kind, &row.finding.service, received_us.div_euclid(MINUTE_US));
            }
            (true, None) => self.close(row, because, Counted::default(), received_us),
            (false, _) => {}
        }
    }

    /// Closes an open row as it stands: what happens after counts from there.
    pub(super) fn close_as_is(
        &mut self,
        rows: &mut [Row],
        id: &str,
        because: &str,
        received_us: i64,
    ) {
        let open = rows.iter_mut().find(|row| row.finding.id == id && row.is_open());
        if let Some(row) = open {
            let stands = Counted::of(&row.finding);
            self.close(row, because, stands, received_us);
        }
    }

    fn open(
        &mut self,
        subject: &Subject,
        kind: Kind,
        last: Option<&Row>,
        verdict: Verdict,
        received_us: i64,
    ) -> Row {
        let minute = received_us.div_euclid(MINUTE_US);
        let ordinal = last.map_or(1, |row| row.finding.ordinal.saturating_add(1));
        let base = last.map_or_else(Counted::default, Row::end);
        let more = (!self.may_open(kind, &verdict.service, minute)).then_some(minute);
        let finding = new_finding(&self.hash, subject, kind, ordinal, verdict, base);
        let mut row = Row::new(finding, base, more, received_us);
        self.show(None, &mut row, received_us);
        row
    }

    fn may_open(&mut self, kind: Kind, service: &str, minute: i64) -> bool {
        let key = (kind, service.to_owned());
        self.opened_changed.insert(key.clone());
        let opened = self.opened.entry(key).or_insert_with_key(|(kind, service)| Opened {
            kind: *kind,
            service: service.clone(),
            minute,
            count: 0,
        });
        if opened.minute != minute {
            (opened.minute, opened.count) = (minute, 0);
        }
        opened.count = opened.count.saturating_add(1);
        opened.count <= ROWS_A_MINUTE_MAX
    }

    /// A row that is withdrawn is no new row. An eviction told apart from its acceptance is
    /// suspected until that comes, a moment later: thousands a minute at a healthy service.
    fn did_not_open(&mut self, kind: Kind, service: &str, minute: i64) {
        let key = (kind, service.to_owned());
        if let Some(opened) = self.opened.get_mut(&key).filter(|opened| opened.minute == minute) {
            opened.count = opened.count.saturating_sub(1);
            self.opened_changed.insert(key);
        }
    }

    fn update(&mut self, row: &mut Row, subject: &Subject, mut verdict: Verdict, received_us: i64) {
        let was = row.finding.clone();
        verdict.confirmed |= was.state == State::Confirmed;
        let finding = new_finding(&self.hash, subject, was.kind, was.ordinal, verdict, row.base);
        row.finding = Finding { service: was.service.clone(), env: was.env.clone(), ..finding };
        if row.finding != was {
            self.show(Some(&was), row, received_us);
        }
    }

    fn withdraw(&mut self, row: &Row, received_us: i64) {
        if let Some(minute) = row.more {
            return self.show_more(Some(&row.finding), None, minute, received_us);
        }
        self.account(Some(&row.finding), None);
        self.changes.insert(row.finding.id.clone(), Change::Withdraw);
    }

    fn close(&mut self, row: &mut Row, because: &str, stands: Counted, received_us: i64) {
        let was = row.finding.clone();
        row.finding.state = State::Closed;
        row.finding.closed_because = Some(because.to_owned());
        if was.amounts != stands.amounts {
            row.finding.amounts_before_closing = Some(was.amounts);
        }
        row.finding.count = stands.count;
        row.finding.amounts = stands.amounts;
        self.show(Some(&was), row, received_us);
    }

    /// Accounts for a row that changed, and has it written.
    fn show(&mut self, was: Option<&Finding>, row: &mut Row, received_us: i64) {
        if let Some(minute) = row.more {
            return self.show_more(was, Some(&row.finding), minute, received_us);
        }
        self.account(was, Some(&row.finding));
        let confirmed = |finding: &&Finding| finding.state == State::Confirmed;
        let was_count = was.filter(confirmed).map_or(0, |was| was.count);
        if confirmed(&&row.finding) && row.finding.count > was_count {
            row.gained_us = Some(received_us);
        }
        self.emit(row);
    }

    pub(super) fn emit(&mut self, row: &Row) {
        let finding = Box::new(row.finding.clone());
        let (opened_us, gained_us) = (row.opened_us, row.gained_us);
        let change = Change::Write { finding, opened_us, gained_us };
        self.changes.insert(row.finding.id.clone(), change);
    }

    pub(super) fn account(&mut self, was: Option<&Finding>, now: Option<&Finding>) {
        let Some(about) = now.or(was) else { return };
        let ledger = about.ledger.clone().unwrap_or_default();
        let key = (about.kind, about.service.clone(), about.env.clone(), ledger);
        let sums = self.sums.entry(key.clone()).or_default();
        let state = |finding: Option<&Finding>| finding.map(|finding| finding.state);
        match state(was) {
            Some(State::Confirmed) => {
                sums.open_confirmed = sums.open_confirmed.saturating_sub(1);
                sums.amounts = sums.amounts.minus(was.map(|f| f.amounts).unwrap_or_default());
            }
            Some(State::Suspected) => {
                sums.open_suspected = sums.open_suspected.saturating_sub(1);
            }
            _ => {}
        }
        match state(now) {
            Some(State::Confirmed) => {
                sums.open_confirmed += 1;
                sums.amounts = sums.amounts.plus(now.map(|f| f.amounts).unwrap_or_default());
                if state(was) != Some(State::Confirmed) {
                    sums.confirmed_ever += 1;
                    let about = (about.kind, about.service.clone(), about.env.clone());
                    *self.confirmed.entry(about).or_default() += 1;
                }
            }
            Some(State::Suspected) => sums.open_suspected += 1,
            _ => {}
        }
        self.sums_changed.insert(key);
    }
}

/// Puts a row after the one at `i`. That one stays: the new one may be withdrawn. Those of its
/// kind before it go, since the store has them: somebody may open and close rows for ever.
fn follow(rows: &mut Vec<Row>, i: usize, next: Row) {
    let mut at = 0;
    rows.retain(|row| {
        at += 1;
        at > i || row.finding.kind != next.finding.kind
    });
    rows.push(next);
}
