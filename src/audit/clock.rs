//! `clock_rollback` and `clock_skew`: what the stamps and numbers of a source say of its clock.
//!
//! A clock fell where the stamp of one number is before that of the number just before it: only
//! neighbours are compared, so each fall is seen once, by whichever of the two comes last. Over a
//! hole it is looked for when the hole is given up or refused; over a restart only if the older run
//! had said goodbye before the newer was heard, and what is missing at its end, or at the begin of
//! the newer, is a hole like others. Threads that stamp before they take the number make falls of
//! milliseconds: good to know, and no more.

use serde::{Deserialize, Serialize};

use super::finding::Witness;
use super::group::{Group, Occurrence};
use super::kind::Kind;
use super::run::{Run, Stretch};
use super::source::SourceId;
use super::state::Audit;
use super::waits::{Wait, Waiting};
use super::witness;
use crate::outcome::{Amounts, Boot, Heartbeat, Position};

/// A fall of less is jitter (audit.md).
const SET_BACK_US: i64 = 1_000_000;
/// A clock that is further off is skewed (audit.md).
const SKEWED_US: i64 = 60_000_000;
/// How often a clock that stays skewed is told anew, so that its row does not close as quiet.
const SKEWED_EVERY_US: i64 = 3_600_000_000;
/// Falls are told so long after they were seen: with many threads every tenth event is one.
const TELL_AFTER_US: i64 = 1_000_000;

/// Rows of `clock_rollback`: this one is info.
pub(super) const JITTER: &str = "jitter";
const SET_BACK: &str = "set_back";

/// One fall: at which number, and by how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Fall {
    pub(super) by_us: i64,
    pub(super) boot: Boot,
    /// The number with the earlier stamp.
    pub(super) seq: u64,
    pub(super) at_us: i64,
    /// The record that showed it: that of the number, or of its neighbour.
    pub(super) position: Position,
}

/// Falls of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Falling {
    count: u64,
    first_us: i64,
    last_us: i64,
    worst: Fall,
}

/// All falls of a run or source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Falls {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jitter: Option<Falling>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    set_back: Option<Falling>,
}

impl Falls {
    pub(super) fn is_empty(&self) -> bool {
        self.jitter.is_none() && self.set_back.is_none()
    }

    pub(super) fn add(&mut self, fall: Fall) {
        let (first_us, last_us) = (fall.at_us, fall.at_us);
        let one = Some(Falling { count: 1, first_us, last_us, worst: fall });
        self.merge(if fall.by_us < SET_BACK_US {
            Self { jitter: one, set_back: None }
        } else {
            Self { jitter: None, set_back: one }
        });
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.jitter = both(self.jitter, other.jitter);
        self.set_back = both(self.set_back, other.set_back);
    }
}

fn both(a: Option<Falling>, b: Option<Falling>) -> Option<Falling> {
    let (Some(a), Some(b)) = (a, b) else { return a.or(b) };
    Some(Falling {
        count: a.count.saturating_add(b.count),
        first_us: a.first_us.min(b.first_us),
        last_us: a.last_us.max(b.last_us),
        worst: a.worst.max(b.worst),
    })
}

impl Run {
    /// Looks whether the clock fell from one number to the next.
    pub(super) fn compare(
        &mut self,
        last_us: Option<i64>,
        (seq, at_us): (u64, Option<i64>),
        position: Position,
    ) {
        if let (Some(last_us), Some(at_us)) = (last_us, at_us)
            && at_us < last_us
        {
            let by_us = last_us.saturating_sub(at_us);
            self.fallen.add(Fall { by_us, boot: self.boot, seq, at_us, position });
        }
    }

    /// All falls of the clock: between neighbours, and over holes that are waited for no more.
    pub(super) fn falls(&self) -> Falls {
        let mut falls = self.fallen;
        let pairs = self.stretches.iter().zip(self.stretches.iter().skip(1));
        for (old, next) in pairs.filter(|(old, next)| self.fell_over_given_up(old, next)) {
            falls.merge(self.fall_over(old, next));
        }
        falls
    }

    /// The record, stamp and number of its begin; what is missing before is waited for no more.
    pub(super) fn began(&self) -> Option<(Position, i64, u64)> {
        if let Some((position, at_us)) = self.begun {
            return Some((position, at_us, 1));
        }
        let first = self.stretches.first().filter(|first| first.first > 1)?;
        let position = self.given_up_at.filter(|_| self.is_given_up(1, first.first - 1))?;
        Some((position, first.first_us, first.first))
    }

    /// It came after one that was over and was over itself, and numbered nothing that came.
    pub(super) fn passed_without_a_word(&self) -> bool {
        let in_turn = self.after_goodbye && !self.out_of_order;
        in_turn && self.stretches.is_empty() && self.said_goodbye()
    }

    fn fell_over_given_up(&self, old: &Stretch, next: &Stretch) -> bool {
        next.first_us < old.last_us
            && self.is_given_up(old.last.saturating_add(1), next.first.saturating_sub(1))
    }

    /// Whether the clock fell over a hole beside a number that has just come, and that is waited
    /// for no more.
    pub(super) fn fell_beside(&self, seq: u64) -> bool {
        let at = self.stretches.partition_point(|stretch| stretch.last < seq);
        let around = at.saturating_sub(1)..self.stretches.len().min(at.saturating_add(2));
        let around = self.stretches.get(around).unwrap_or_default();
        around.iter().zip(around.iter().skip(1)).any(|(a, b)| self.fell_over_given_up(a, b))
    }

    pub(super) fn fall_over(&self, old: &Stretch, next: &Stretch) -> Falls {
        let mut falls = Falls::default();
        if let Some(position) = self.given_up_at.filter(|_| next.first_us < old.last_us) {
            let (by_us, boot) = (old.last_us.saturating_sub(next.first_us), self.boot);
            falls.add(Fall { by_us, boot, seq: next.first, at_us: next.first_us, position });
        }
        falls
    }
}

impl Audit {
    /// Something of a source's clock is to be told: within a second.
    pub(super) fn clock_fell(&mut self, id: SourceId) {
        let wait = Wait::Clock(id);
        if !self.waits.has(&wait) {
            let due_us = Some(self.received_us.saturating_add(TELL_AFTER_US));
            self.waits.set(Waiting::new(wait, None, due_us, false));
        }
    }

    /// Tells how often the clock of a source fell.
    pub(super) fn settle_clock(&mut self, id: SourceId) {
        self.waits.clear(&Wait::Clock(id));
        let Some(falls) = self.sources.get(id).map(super::source::Source::falls) else { return };
        self.tell_falls(id, JITTER, falls.jitter);
        self.tell_falls(id, SET_BACK, falls.set_back);
    }

    fn tell_falls(&mut self, id: SourceId, cause: &str, falling: Option<Falling>) {
        let Some(from) = self.sources.name(id).cloned() else { return };
        let count = falling.map_or(0, |falling| falling.count);
        let subject = super::finding::Subject::Source {
            from: Some(from.clone()),
            ledger: None,
            cause: cause.to_owned(),
        };
        let known = self.groups.get(&(Kind::ClockRollback, subject));
        if known.map_or(0, |group| group.confirmed) == count {
            return;
        }
        let is_first = known.is_none();
        let received_us = self.received_us;
        let occurrence =
            |at_us, witnesses| Some(Occurrence { at_us, amounts: Amounts::default(), witnesses });
        let worst = falling.map(|falling| {
            let Fall { by_us, boot, seq, at_us, position } = falling.worst;
            let text = format!("number {seq} is stamped {} before the one before it", time(by_us));
            let witness = witness::plain("clock_fell", position, at_us, &from, Some(text));
            Witness { boot: Some(boot), seq: Some(seq), ..witness }
        });
        self.group_of_source(Kind::ClockRollback, (Some(from), None), cause, |group| {
            if let Some(falling) = falling.filter(|_| is_first) {
                group.set(count, occurrence(falling.first_us, Vec::new()), received_us);
            }
            let newest = falling.zip(worst);
            let newest = newest.and_then(|(all, worst)| occurrence(all.last_us, vec![worst]));
            group.set(count, newest, received_us);
        });
    }

    /// Looks whether a clock is far from the collector's.
    pub(super) fn measure_clock(
        &mut self,
        id: SourceId,
        heartbeat: &Heartbeat,
        position: Position,
    ) {
        let Some(offset_us) = self.sources.offset_us(id) else { return };
        let received_us = self.received_us;
        let Some(source) = self.sources.entry(&heartbeat.from, heartbeat.at_us) else { return };
        let is_skewed = offset_us.saturating_abs() > SKEWED_US;
        let is_news = match source.skew_told_us {
            None => is_skewed,
            Some(told_us) => !is_skewed || received_us >= told_us.saturating_add(SKEWED_EVERY_US),
        };
        if !is_news {
            return;
        }
        source.skew_told_us = is_skewed.then_some(received_us);
        let side = if offset_us > 0 { "behind" } else { "ahead of" };
        let off = time(offset_us.saturating_abs());
        let text = format!("its clock is {off} {side} the collector's");
        let at_us = heartbeat.at_us;
        let witness = witness::plain("heartbeat", position, at_us, &heartbeat.from, Some(text));
        let witnesses = vec![Witness { boot: Some(heartbeat.boot), ..witness }];
        let occurrence = Occurrence { at_us, amounts: Amounts::default(), witnesses };
        let from = Some(heartbeat.from.clone());
        self.group_of_source(Kind::ClockSkew, (from, None), "clock", |group: &mut Group| {
            group.set(u64::from(is_skewed), is_skewed.then_some(occurrence), received_us);
            group.gained_us = received_us;
        });
    }
}

/// A time in seconds, in words.
fn time(us: i64) -> String {
    format!("{}.{:06} s", us / 1_000_000, us % 1_000_000)
}
