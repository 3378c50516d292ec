//! Rows `more`: what is found beyond so many new rows in a minute is counted in one row.

use super::book::Book;
use super::finding::{Finding, State, Subject};
use super::kind::Kind;
use super::row::{Counted, Row, more_finding};

impl Book {
    /// One row for what a minute may not open singly: the difference that a key makes goes there.
    pub(super) fn show_more(
        &mut self,
        was: Option<&Finding>,
        now: Option<&Finding>,
        minute: i64,
        received_us: i64,
    ) {
        let Some(about) = now.or(was) else { return };
        let subject = Subject::More {
            service: about.service.clone(),
            env: about.env.clone(),
            ledger: about.ledger.clone().unwrap_or_default(),
            minute,
        };
        let key = (about.kind, subject);
        let last = self.more.get(&key);
        let open = last.filter(|row| row.is_open()).cloned();
        let finding = match &open {
            Some(row) => row.finding.clone(),
            None => {
                let ordinal = last.map_or(1, |row| row.finding.ordinal.saturating_add(1));
                more_finding(&self.hash, key.1.clone(), ordinal, about)
            }
        };
        let counted = |finding: Option<&Finding>| {
            let confirmed = finding.filter(|finding| finding.state == State::Confirmed);
            confirmed.map_or_else(Counted::default, Counted::of)
        };
        let sum = Counted::of(&finding).plus(counted(now)).minus(counted(was));
        if open.is_none() && sum.count == 0 {
            return;
        }
        let is_over = sum.count == 0;
        let finding = Finding {
            count: sum.count,
            amounts: sum.amounts,
            first_us: finding.first_us.min(about.first_us),
            last_us: finding.last_us.max(about.last_us),
            severity: finding.severity.max(about.severity),
            state: if is_over { State::Closed } else { State::Confirmed },
            closed_because: is_over.then(|| "made_good".to_owned()),
            ..finding
        };
        self.put_more(key, open, finding, received_us);
    }

    fn put_more(&mut self, key: (Kind, Subject), was: Option<Row>, now: Finding, received_us: i64) {
        let before = was.as_ref().map(|row| &row.finding);
        self.account(before, Some(&now));
        let gained =
            now.state == State::Confirmed && now.count > before.map_or(0, |finding| finding.count);
        let was =
            was.unwrap_or_else(|| Row::new(now.clone(), Counted::default(), None, received_us));
        let gained_us = if gained { Some(received_us) } else { was.gained_us };
        let row = Row { finding: now, gained_us, ..was };
        self.emit(&row);
        self.more_changed.insert(key.clone());
        self.more.insert(key, row);
    }

    /// Closes a row `more` as it stands.
    pub(super) fn close_more(&mut self, closed: &Finding, because: &str, received_us: i64) {
        let key = (closed.kind, closed.subject.clone());
        let is_it = |row: &&Row| row.is_open() && row.finding.id == closed.id;
        let open = self.more.get(&key).filter(is_it).cloned();
        if let Some(was) = open {
            let because = Some(because.to_owned());
            let finding = was.finding.clone();
            let now = Finding { state: State::Closed, closed_because: because, ..finding };
            self.put_more(key, Some(was), now, received_us);
        }
    }
}
