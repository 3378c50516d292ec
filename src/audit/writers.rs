//! `two_writers`: two sources with memories of their own accept for one player at once, so that
//! neither would stop what the other has booked.

use super::finding::{Coverage, OrderKnown, Severity, Subject, Witness};
use super::kind::Kind;
use super::order::{Moment, SKEW_US};
use super::player::{PlayerFacts, Recent};
use super::row::{EXAMPLES_MAX, Row, Verdict};
use super::source::Sources;
use super::state::Audit;
use super::table::PlayerKey;
use super::witness;
use crate::outcome::{Amounts, GuardMode};

/// Acceptances of two sources so near are at once (audit.md: 1 s).
const AT_ONCE_US: i64 = SKEW_US;

impl PlayerFacts {
    /// What other sources accepted at once with it, each by a memory of its own.
    fn at_once<'a>(
        &'a self,
        sources: &'a Sources,
        at: &'a Moment,
    ) -> impl Iterator<Item = &'a Recent> {
        let at_us =
            |at: &Moment| at.at_us.saturating_add(sources.offset_us(at.source).unwrap_or(0));
        self.recent.iter().filter(move |other| {
            other.entered
                && other.mode == Some(GuardMode::Local)
                && other.at.source != at.source
                && at_us(&other.at).saturating_sub(at_us(at)).saturating_abs() <= AT_ONCE_US
        })
    }
}

impl Audit {
    /// Looks who else accepted for a player at once with an acceptance of a private guard: each
    /// two are counted when the second comes, whichever that is.
    pub(super) fn look_for_two_writers(&mut self, key: PlayerKey, at: &Moment) {
        let Some(player) = self.facts.players.get(key) else { return };
        let Some(other) = player.at_once(&self.sources, at).next().map(|other| other.at.clone())
        else {
            return;
        };
        let new = player.at_once(&self.sources, at).count() as u64;
        let Some(mut player) = self.facts.players.lend(key) else { return };
        let verdict = verdict(&self.sources, &player.rows, [&other, at], new);
        let (ledger, name) = (player.ledger.clone(), player.player.clone());
        let subject = Subject::Player { ledger, player: name };
        let received_us = self.received_us;
        self.book.settle(
            &mut player.rows,
            &subject,
            Kind::TwoWriters,
            verdict,
            "disproved",
            received_us,
        );
        self.facts.players.give_back(key, player, true);
    }
}

fn verdict(
    sources: &Sources,
    rows: &[Row],
    [first, second]: [&Moment; 2],
    new: u64,
) -> Option<Verdict> {
    let row = rows.iter().rev().find(|row| row.finding.kind == Kind::TwoWriters);
    let open = row.filter(|row| row.is_open()).map(|row| &row.finding);
    let mut witnesses: Vec<Witness> = open.map(|open| open.witnesses.clone()).unwrap_or_default();
    for at in [first, second] {
        let from = sources.name(at.source)?;
        let told = Witness {
            boot: at.sequence.map(|(boot, _)| boot),
            seq: at.sequence.map(|(_, seq)| seq),
            guard_mode: Some(GuardMode::Local),
            ..witness::plain("accepted", at.position, at.at_us, from, None)
        };
        if witnesses.len() < EXAMPLES_MAX && !witnesses.contains(&told) {
            witnesses.push(told);
        }
    }
    let name = sources.name(second.source)?;
    let (a_us, b_us) = (first.at_us, second.at_us);
    Some(Verdict {
        count: row.map_or(0, Row::end_count).saturating_add(new),
        amounts: Amounts::default(),
        players: 1,
        severity: Severity::Info,
        confirmed: true,
        cause: "private_guards".to_owned(),
        order: OrderKnown::Unproven,
        coverage: Coverage::Full,
        service: name.service.to_string(),
        env: name.env.to_string(),
        source: None,
        first_us: open.map_or(i64::MAX, |open| open.first_us).min(a_us).min(b_us),
        last_us: open.map_or(i64::MIN, |open| open.last_us).max(a_us).max(b_us),
        witnesses,
    })
}
