//! Brings findings in line with the facts: of one settlement, one player, one source.

use super::block;
use super::eviction::{self, Counted, Eviction, Standing};
use super::facts::SignatureFacts;
use super::finding::Subject;
use super::group::{Group, Occurrence};
use super::kind::Kind;
use super::leak;
use super::order::Moment;
use super::player::PlayerFacts;
use super::rule::Judged;
use super::state::Audit;
use super::table::{PlayerKey, SignatureKey};
use super::unclear;
use super::waits::{Wait, Waiting};
use super::witness::Evidence;
use crate::outcome::{Amounts, Boot, Id, SourceName};

impl Audit {
    /// Settles those whose time has come. What they [`Audit::needs_of`] must be loaded.
    pub fn settle(&mut self, waits: &[Wait]) {
        for wait in waits {
            self.recheck.remove(wait);
            match wait {
                Wait::Key(player, signature) => self.settle_key((*player, *signature)),
                Wait::Player(player) => self.settle_player(*player),
                Wait::Group(kind, subject) => self.settle_group(*kind, subject),
                Wait::Holes(ledger) => {
                    self.recheck.extend(self.waits.for_hole(ledger).cloned());
                    self.waits.clear(wait);
                }
            }
        }
    }

    /// Judges one settlement by all rules that are about one.
    pub(super) fn settle_key(&mut self, key: SignatureKey) {
        let Some(mut facts) = self.facts.signatures.lend(key) else { return };
        let wait = Wait::key(key);
        if facts.is_plain() {
            self.waits.clear(&wait);
            return self.facts.signatures.give_back(key, facts, false);
        }
        let was = (facts.rows.clone(), facts.is_proven());
        if let Some(waiting) = self.judge_key(key, &mut facts) {
            self.waits.set(waiting);
        }
        let changed = was != (facts.rows.clone(), facts.is_proven());
        self.facts.signatures.give_back(key, facts, changed);
    }

    fn judge_key(&mut self, key: SignatureKey, facts: &mut SignatureFacts) -> Option<Waiting> {
        let player = self.facts.players.get(key.0)?;
        let context = self.context(&player.ledger)?;
        block::prove(context, player, key.1, facts);
        let refs = |reference: &Id| self.facts.refs.get((key.0, self.ref_hash(reference)));
        let game = facts.signature.game().map(|game| game.hash(&self.hash));
        let leak = leak::judge(&self.sources, facts, game, &refs);
        let mut judged = vec![leak.judged];
        judged.extend(block::judge(context, facts));
        judged.push(unclear::judge(context, facts));
        let subject = Subject::AuditKey {
            ledger: player.ledger.clone(),
            player: player.player.clone(),
            signature: facts.signature.clone(),
        };
        let waiting = Waiting {
            wait: Wait::key(key),
            ledger: Some(player.ledger.clone()),
            due_us: judged.iter().filter_map(|judged| judged.due_us).min(),
            hole: judged.iter().any(|judged| judged.hole),
        };
        if leak.order_missing && !facts.order_missing {
            self.skip(Kind::DuplicateLeak.as_str());
        }
        facts.order_missing = leak.order_missing;
        for Judged { kind, verdict, because, .. } in judged {
            let (book, rows) = (&mut self.book, &mut facts.rows);
            book.settle(rows, &subject, kind, verdict, because, self.received_us);
        }
        Some(waiting)
    }

    /// Judges the evictions of one player.
    pub(super) fn settle_player(&mut self, key: PlayerKey) {
        if self.facts.players.get(key).is_none_or(|player| player.evictions.is_empty()) {
            return self.waits.clear(&Wait::Player(key));
        }
        let Some(mut player) = self.facts.players.lend(key) else { return };
        let mut due_us: Option<i64> = None;
        let mut kept = Vec::new();
        for mut eviction in std::mem::take(&mut player.evictions) {
            let Some(context) = self.context(&player.ledger) else { continue };
            let since_us = context.since_us(&eviction.at, eviction.received_us);
            let grace_us = since_us.saturating_add(context.settings.eviction_grace_us);
            let over = context.watermark_us >= grace_us;
            eviction.pushed = eviction::pushed_by(&player, &eviction);
            let standing = eviction::judge(context, &player, &eviction);
            // What is not live waits for nothing, but late news may still make it so.
            if !over && standing != Standing::NotLive {
                due_us = Some(due_us.map_or(grace_us, |due_us: i64| due_us.min(grace_us)));
            }
            self.stand(&mut player, &mut eviction, &standing, over);
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
        self.waits.set(Waiting {
            wait: Wait::Player(key),
            ledger: Some(player.ledger.clone()),
            due_us,
            hole: false,
        });
        self.facts.players.give_back(key, player, true);
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
        if over && now.is_none() && !eviction.skipped && eviction.counted.is_none() {
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
            self.uncount(player, eviction, &was);
        }
        eviction.counted = None;
        if let (Some((cause, confirmed)), Standing::Live { order, pushed_by, .. }) = (now, standing)
        {
            self.count(player, eviction, (cause, confirmed), *order, pushed_by.as_ref());
        }
    }

    /// An eviction that is kept no more: where it is still suspected, it is counted as not judged.
    pub(super) fn let_go(&mut self, player: PlayerKey, eviction: &Eviction) {
        let Some(was) = eviction.counted.as_ref().filter(|was| !was.confirmed) else { return };
        let Some(facts) = self.facts.players.lend(player) else { return };
        self.uncount(&facts, eviction, was);
        self.facts.players.give_back(player, facts, false);
        self.skip("live_eviction_too_many");
    }

    fn uncount(&mut self, player: &PlayerFacts, eviction: &Eviction, was: &Counted) {
        let amounts = Amounts::at_risk(eviction.signature.net());
        let Some(from) = self.sources.name(eviction.at.source).cloned() else { return };
        let at = eviction.at.clone();
        let about = (Some(from), Some(player.ledger.as_str()));
        self.group_of_source(Kind::LiveEviction, about, &was.cause, |group| {
            if !was.confirmed {
                group.unsuspect(amounts);
            } else if group.ordinal() == was.ordinal {
                group.take_back(amounts, at.position);
            }
        });
    }

    fn count(
        &mut self,
        player: &mut PlayerFacts,
        eviction: &mut Eviction,
        (cause, confirmed): (String, bool),
        order: super::finding::OrderKnown,
        pushed_by: Option<&Moment>,
    ) {
        let Some(from) = self.sources.name(eviction.at.source).cloned() else { return };
        let evidence = Evidence::about(&self.sources, &player.player, &eviction.signature);
        let evicted =
            evidence.moment("evicted", &eviction.at).map(|witness| super::finding::Witness {
                outcome: Some(crate::outcome::Outcome::Evicted),
                window: eviction.window,
                reason: eviction.reason,
                ..witness
            });
        let accepted = eviction.accepted.as_ref().and_then(|at| evidence.moment("accepted", at));
        let pushed = pushed_by
            .filter(|pushed| pushed.position != eviction.at.position)
            .and_then(|at| evidence.moment("pushed_out_by", at))
            .map(|witness| super::finding::Witness { signature: None, ..witness });
        let amounts = Amounts::at_risk(eviction.signature.net());
        let witnesses = evicted.into_iter().chain(accepted).chain(pushed).collect();
        let occurrence = Occurrence { at_us: eviction.at.at_us, amounts, witnesses };
        let critical = confirmed && {
            let service = self.service(from.service.as_str());
            service.count(eviction.at.at_us, 0, 1);
            service.is_critical(eviction.at.at_us)
        };
        let received_us = self.received_us;
        let name = from.clone();
        let mut counted_in = std::mem::take(&mut player.counted_in);
        let mut ordinal = 1;
        let about = (Some(from), Some(player.ledger.as_str()));
        self.group_of_source(Kind::LiveEviction, about, &cause, |group| {
            group.order(order);
            if confirmed {
                group.add(occurrence, received_us);
                group.critical |= critical;
            } else {
                group.suspect(occurrence, received_us);
            }
            ordinal = group.ordinal();
            let row = format!("{}/{}/{}/{cause}/{ordinal}", name.service, name.env, name.source);
            if confirmed && !counted_in.contains(&row) {
                group.players = group.players.saturating_add(1);
                counted_in.push(row);
                if counted_in.len() > 8 {
                    counted_in.remove(0);
                }
            }
        });
        player.counted_in = counted_in;
        eviction.counted = Some(Counted { cause, confirmed, ordinal, order });
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

    fn group(
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
            self.book.close_as_is(&mut group.rows, &id, "quiet");
        } else {
            let (verdict, _) = group.verdict(received_us);
            let because = if kind == Kind::TelemetryGap { "filled" } else { "disproved" };
            self.book.settle(&mut group.rows, subject, kind, verdict, because, received_us);
            // Closed rows are in the store; the newest says where the next begins.
            let surplus = group.rows.len().saturating_sub(1);
            group.rows.drain(..surplus);
        }
        let (_, due_us) = group.verdict(received_us);
        let wait = Wait::Group(kind, subject.clone());
        self.waits.set(Waiting { wait, ledger: None, due_us, hole: false });
        self.groups_changed.insert(key);
    }
}
