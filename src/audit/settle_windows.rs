//! Brings the rows `window_lost` and `undersized_window` in line with the windows of a player.

use super::finding::Witness;
use super::group::Occurrence;
use super::kind::Kind;
use super::loss::{self, Loss, Standing};
use super::order::Moment;
use super::player::PlayerFacts;
use super::settle_groups::{About, Counted};
use super::state::Audit;
use super::undersized::{self, TooMany};
use super::witness;
use crate::outcome::Amounts;

/// The cause that rows `undersized_window` carry: there is but one.
const TOO_MANY: &str = "games_exceed_capacity";

impl Audit {
    /// Judges the reports of a player by which a window seems to have lost something. Returns
    /// when to look again, and whether a hole is waited for.
    pub(super) fn settle_losses(&mut self, player: &mut PlayerFacts) -> (Option<i64>, bool) {
        let (mut due_us, mut hole): (Option<i64>, bool) = (None, false);
        let mut kept = Vec::new();
        for mut loss in std::mem::take(&mut player.losses) {
            let Some(context) = self.context(&player.ledger) else { continue };
            let since_us = context.since_us(&loss.at, loss.received_us);
            let grace_us = since_us.saturating_add(context.settings.eviction_grace_us);
            let over = context.watermark_us >= grace_us;
            let Some(standing) = loss::judge(context, player, &loss.at) else {
                self.forget_loss(&loss);
                continue;
            };
            if !over && standing != Standing::Fine {
                due_us = Some(due_us.map_or(grace_us, |due_us: i64| due_us.min(grace_us)));
            }
            hole |= standing == Standing::Unknown("window_lost_blind");
            self.stand_loss(player, &mut loss, &standing, over);
            if standing != Standing::Fine {
                kept.push(loss);
            }
        }
        player.losses = kept;
        (due_us, hole)
    }

    /// What came before it is remembered no more: what stands, stands.
    fn forget_loss(&mut self, loss: &Loss) {
        match &loss.counted {
            Some(counted) if counted.confirmed => {}
            Some(counted) => {
                self.uncount_loss(loss, counted);
                self.skip("window_lost_too_many");
            }
            None if !loss.skipped => self.skip("window_lost_too_many"),
            None => {}
        }
    }

    fn stand_loss(
        &mut self,
        player: &mut PlayerFacts,
        loss: &mut Loss,
        standing: &Standing,
        over: bool,
    ) {
        if let Standing::Unknown(check) = standing
            && over
            && !loss.skipped
        {
            loss.skipped = true;
            self.skip(check);
        }
        let now = match standing {
            Standing::Lost { cause, .. } => Some((*cause, over)),
            _ => None,
        };
        let was = loss.counted.as_ref().map(|was| (was.cause.as_str(), was.confirmed));
        // Confirmed once, it stays so while it stands.
        let unchanged = was == now || (was.is_some_and(|was| now == Some((was.0, false))));
        if unchanged {
            return;
        }
        if let Some(was) = loss.counted.take() {
            self.uncount_loss(loss, &was);
        }
        if let (Some((cause, confirmed)), Standing::Lost { order, should, before, .. }) =
            (now, standing)
        {
            let said = (cause.to_owned(), confirmed, *order);
            loss.counted = self.count_loss(player, &loss.at, said, *should, before);
        }
    }

    fn uncount_loss(&mut self, loss: &Loss, was: &Counted) {
        let Some(from) = self.sources.name(loss.at.source).cloned() else { return };
        let about = About { kind: Kind::WindowLost, from, ledger: None };
        self.uncount(about, was, Amounts::default(), loss.at.position);
    }

    fn count_loss(
        &mut self,
        player: &mut PlayerFacts,
        at: &Moment,
        said: (String, bool, super::finding::OrderKnown),
        should: i64,
        before: &Moment,
    ) -> Option<Counted> {
        let from = self.sources.name(at.source).cloned()?;
        let window = |at: &Moment| player.report_at(at).and_then(|report| report.window);
        let told = |role: &str, at: &Moment, text: Option<String>| Witness {
            boot: at.sequence.map(|(boot, _)| boot),
            seq: at.sequence.map(|(_, seq)| seq),
            player: Some(player.player.clone()),
            window: window(at),
            ..witness::plain(role, at.position, at.at_us, &from, text)
        };
        let len = window(at).map(|window| window.len).unwrap_or_default();
        let text = format!("it holds {len} and should hold {should}");
        let witnesses = vec![told("window_before", before, None), told("lost", at, Some(text))];
        let occurrence = Occurrence { at_us: at.at_us, amounts: Amounts::default(), witnesses };
        let about = About { kind: Kind::WindowLost, from, ledger: None };
        Some(self.count(about, player, said, false, occurrence))
    }

    /// Judges whether the live games of a player are too many for its window. Said once, when all
    /// were heard: a game between two that seemed to be the newest takes it back. Returns when to
    /// look again.
    pub(super) fn settle_too_many(&mut self, player: &mut PlayerFacts) -> Option<i64> {
        let received_us = player.too_many?;
        let mut due_us: Option<i64> = None;
        let mut found: Vec<TooMany> = Vec::new();
        let mut skipped = Vec::new();
        for recent in player.recent.iter().filter(|recent| undersized::is_about(recent)) {
            let Some(context) = self.context(&player.ledger) else { continue };
            let since_us = context.since_us(&recent.at, received_us);
            let grace_us = since_us.saturating_add(context.settings.eviction_grace_us);
            match undersized::judge(context, player, recent) {
                undersized::Standing::Fine => {}
                _ if context.watermark_us < grace_us => {
                    due_us = Some(due_us.map_or(grace_us, |due_us: i64| due_us.min(grace_us)));
                }
                undersized::Standing::TooMany(too_many) => found.push(too_many),
                undersized::Standing::Unknown(check) => skipped.push(check),
            }
        }
        player.too_many = due_us.map(|_| received_us);
        if let Some(check) = skipped.first() {
            self.skip(check);
        }
        for too_many in found {
            self.count_too_many(player, &too_many);
        }
        due_us
    }

    fn count_too_many(&mut self, player: &mut PlayerFacts, too_many: &TooMany) {
        let TooMany { at, needed, order } = too_many;
        let Some(from) = self.sources.name(at.source).cloned() else { return };
        let window = player.report_at(at).and_then(|report| report.window);
        let text = format!("its two newest games came to {needed} settlements by then");
        let witness = Witness {
            boot: at.sequence.map(|(boot, _)| boot),
            seq: at.sequence.map(|(_, seq)| seq),
            player: Some(player.player.clone()),
            window,
            ..witness::plain("accepted", at.position, at.at_us, &from, Some(text))
        };
        let amounts = Amounts::default();
        let occurrence = Occurrence { at_us: at.at_us, amounts, witnesses: vec![witness] };
        let about = About { kind: Kind::UndersizedWindow, from, ledger: None };
        self.count_player(about, player, (TOO_MANY, *order), occurrence);
    }
}
