//! Brings the rows `live_eviction` in line with the evictions of a player.

use super::eviction::{self, Eviction, Standing};
use super::finding::{OrderKnown, Witness};
use super::group::Occurrence;
use super::kind::Kind;
use super::order::Moment;
use super::player::PlayerFacts;
use super::settle_groups::{About, Counted};
use super::state::Audit;
use super::witness::Evidence;
use crate::outcome::{Amounts, Outcome};

impl Audit {
    /// Judges the evictions of one player. Returns when to look again, and whether a hole is waited
    /// for.
    pub(super) fn settle_evictions(&mut self, player: &mut PlayerFacts) -> (Option<i64>, bool) {
        let (mut due_us, mut hole): (Option<i64>, bool) = (None, false);
        let mut kept = Vec::new();
        for mut eviction in std::mem::take(&mut player.evictions) {
            let Some(context) = self.context(&player.ledger) else { continue };
            eviction.pushed = eviction::pushed_by(player, &eviction);
            // A hole before what it is judged by may fill as long as one after the eviction.
            let others = eviction.accepted.iter().chain(&eviction.pushed);
            let since_us = others
                .map(|at| context.since_us(at, at.at_us))
                .fold(context.since_us(&eviction.at, eviction.received_us), i64::max);
            let grace_us = since_us.saturating_add(context.settings.eviction_grace_us);
            let over = context.watermark_us >= grace_us;
            let standing = eviction::judge(context, player, &eviction);
            // Who is blind by a hole may see when it fills.
            let (wait_us, over) = if standing == Standing::Blind {
                let given_up_us = grace_us.saturating_add(context.settings.gap_grace_us);
                hole |= context.watermark_us < given_up_us;
                (given_up_us, context.watermark_us >= given_up_us)
            } else {
                (grace_us, over)
            };
            // What is not live waits for nothing, but late news may still make it so.
            if !over && standing != Standing::NotLive {
                due_us = Some(due_us.map_or(wait_us, |due_us: i64| due_us.min(wait_us)));
            }
            self.stand(player, &mut eviction, &standing, over);
            let settled = match standing {
                Standing::NotLive | Standing::NoOrder | Standing::Blind => over,
                Standing::NeverAccepted => false,
                // What pushed it out may still come.
                Standing::Live { .. } => over && eviction.inline,
            };
            if !settled {
                kept.push(eviction);
            }
        }
        player.evictions = kept;
        (due_us, hole)
    }

    /// Counts an eviction in the row of its cause, or takes it out.
    fn stand(
        &mut self,
        player: &mut PlayerFacts,
        eviction: &mut Eviction,
        standing: &Standing,
        over: bool,
    ) {
        let now = match standing {
            Standing::Live { cause, .. } => Some((cause.clone(), over)),
            _ => None,
        };
        let stood = eviction.counted.as_ref().is_some_and(|was| was.confirmed);
        if over && now.is_none() && !eviction.skipped && !stood {
            let check = match standing {
                Standing::NeverAccepted => "live_eviction_never_accepted",
                Standing::NoOrder => "live_eviction_order",
                Standing::Blind => "live_eviction_blind",
                Standing::NotLive | Standing::Live { .. } => "",
            };
            if !check.is_empty() {
                eviction.skipped = true;
                self.skip(check);
            }
        }
        let was = eviction.counted.clone();
        let was_said = was.as_ref().map(|was| (was.cause.clone(), was.confirmed));
        // Confirmed once, only disproved by what makes it not live.
        let unchanged = was_said == now
            || (was.as_ref().is_some_and(|was| was.confirmed)
                && matches!(standing, Standing::Live { .. } | Standing::Blind));
        if unchanged {
            return;
        }
        if let Some(was) = was {
            self.uncount_eviction(player, eviction, &was);
        }
        eviction.counted = None;
        if let (Some((cause, confirmed)), Standing::Live { order, pushed_by, .. }) = (now, standing)
        {
            self.count_eviction(player, eviction, (cause, confirmed), *order, pushed_by.as_ref());
        }
    }

    /// An eviction that is kept no more: where it is still suspected, it is counted as not judged.
    pub(super) fn let_go(&mut self, player: &PlayerFacts, eviction: &Eviction) {
        let Some(was) = eviction.counted.as_ref().filter(|was| !was.confirmed) else { return };
        self.uncount_eviction(player, eviction, was);
        self.skip("live_eviction_too_many");
    }

    fn uncount_eviction(&mut self, player: &PlayerFacts, eviction: &Eviction, was: &Counted) {
        let amounts = Amounts::at_risk(eviction.signature.net());
        let Some(from) = self.sources.name(eviction.at.source).cloned() else { return };
        if was.confirmed {
            self.service(from.service.as_str()).take_back(eviction.at.at_us);
        }
        let about = About { kind: Kind::LiveEviction, from, ledger: Some(&player.ledger) };
        self.uncount(about, was, amounts, eviction.at.position);
    }

    fn count_eviction(
        &mut self,
        player: &mut PlayerFacts,
        eviction: &mut Eviction,
        (cause, confirmed): (String, bool),
        order: OrderKnown,
        pushed_by: Option<&Moment>,
    ) {
        let Some(from) = self.sources.name(eviction.at.source).cloned() else { return };
        let evidence = Evidence::about(&self.sources, &player.player, &eviction.signature);
        let role = if eviction.inferred { "eviction_inferred" } else { "evicted" };
        let evicted = evidence.moment(role, &eviction.at).map(|witness| Witness {
            outcome: (!eviction.inferred).then_some(Outcome::Evicted),
            window: eviction.window,
            reason: eviction.reason,
            ..witness
        });
        let accepted = eviction.accepted.as_ref().and_then(|at| evidence.moment("accepted", at));
        let pushed = pushed_by
            .filter(|pushed| pushed.position != eviction.at.position)
            .and_then(|at| evidence.moment("pushed_out_by", at))
            .map(|witness| Witness { signature: None, ..witness });
        let amounts = Amounts::at_risk(eviction.signature.net());
        let witnesses = evicted.into_iter().chain(accepted).chain(pushed).collect();
        let occurrence = Occurrence { at_us: eviction.at.at_us, amounts, witnesses };
        let critical = confirmed && {
            let service = self.service(from.service.as_str());
            service.count(eviction.at.at_us, 0, 1);
            service.is_critical(eviction.at.at_us)
        };
        let ledger = player.ledger.clone();
        let about = About { kind: Kind::LiveEviction, from, ledger: Some(&ledger) };
        let counted = self.count(about, player, (cause, confirmed, order), critical, occurrence);
        eviction.counted = Some(counted);
    }
}
