//! What guards say of the windows of a player, window by window and in order.
//!
//! Acceptances and evictions are remembered for what the windows hold (`player`); refusals only
//! where they may say something new. Looking whether a window may have lost something is done for
//! each event that tells of one, and so without allocating; what is found is judged by `loss`.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::facts::push_newest;
use super::loss::Loss;
use super::order::Moment;
use super::player::{PlayerFacts, Recent, STAYED_MAX};
use super::source::Sources;
use crate::outcome::{Boot, GuardMode, Id, Reason, Window, WindowScope};

/// The strategy whose windows are compared (audit.md); others forget by rules of their own.
const STRATEGY: &str = "signature_window";

/// What a refusal or an undecided delivery said of the window, which it left as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stayed {
    pub(super) at: Moment,
    pub(super) room: Option<i64>,
    pub(super) window: Window,
    pub(super) mode: Option<GuardMode>,
}

/// What happened to a window by an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Entered,
    Left,
    Stayed,
}

/// What a guard said of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report<'a> {
    pub(super) at: &'a Moment,
    pub(super) told: Told,
    pub(super) window: Option<Window>,
    pub(super) room: Option<i64>,
    pub(super) mode: Option<GuardMode>,
    /// The signature was accepted, blocked or held before.
    pub(super) again: bool,
    pub(super) unsure: bool,
    pub(super) left: usize,
    pub(super) reason: Option<Reason>,
}

/// Whether windows of this guard are compared.
pub(super) fn is_compared(guard: Option<&Id>) -> bool {
    guard.is_none_or(|guard| guard.as_str() == STRATEGY)
}

impl<'a> Report<'a> {
    pub(super) fn of(recent: &'a Recent) -> Self {
        Self {
            at: &recent.at,
            told: if recent.entered { Told::Entered } else { Told::Left },
            window: recent.window.filter(|_| !recent.other_guard),
            room: recent.room,
            mode: recent.mode,
            again: recent.again,
            unsure: recent.unsure,
            left: recent.left.len(),
            reason: recent.reason,
        }
    }

    pub(super) fn stayed(stayed: &'a Stayed) -> Self {
        Self {
            at: &stayed.at,
            told: Told::Stayed,
            window: Some(stayed.window),
            room: stayed.room,
            mode: stayed.mode,
            again: false,
            unsure: false,
            left: 0,
            reason: None,
        }
    }

    /// Whether it is about a window that can be compared.
    pub(super) fn is_comparable(&self) -> bool {
        self.mode != Some(GuardMode::Off)
            && self.window.is_some_and(|window| match window.scope {
                WindowScope::Player => true,
                WindowScope::Room => self.room.is_some(),
                WindowScope::Source => false,
            })
    }

    /// Whether the other may have changed the window that this one tells of.
    fn touches(&self, other: &Self) -> bool {
        let scope = |report: &Self| report.window.map(|window| window.scope);
        let same_room = scope(self) != Some(WindowScope::Room) || self.room == other.room;
        self.at.source == other.at.source
            && (other.window.is_none() || scope(self) == scope(other))
            && same_room
    }

    /// It left the window as it was told just before, with nothing unheard between.
    fn says_the_same(&self, before: &Self, sources: &Sources) -> bool {
        self.told == Told::Stayed
            && before.window == self.window
            && before.at.sequence.zip(self.at.sequence).is_some_and(|(from, to)| {
                from.0 == to.0 && sources.whole_between(self.at.source, from, to)
            })
    }

    pub(super) fn len(&self) -> i64 {
        self.window.map_or(0, |window| i64::try_from(window.len).unwrap_or(i64::MAX))
    }

    pub(super) fn cap(&self) -> i64 {
        self.window.map_or(0, |window| i64::try_from(window.cap).unwrap_or(i64::MAX))
    }

    /// It fell out for want of room.
    pub(super) fn made_room(&self) -> bool {
        let reason = self.reason;
        let by_rule = matches!(reason, Some(Reason::Ttl | Reason::Reaper | Reason::Ack));
        self.told == Told::Left && !by_rule
    }

    pub(super) fn boot(&self) -> Option<Boot> {
        self.at.sequence.map(|(boot, _)| boot)
    }
}

impl PlayerFacts {
    pub(super) fn reports(&self) -> impl Iterator<Item = Report<'_>> {
        self.recent.iter().map(Report::of).chain(self.stayed.iter().map(Report::stayed))
    }

    /// What was told of the same window just before and just after.
    fn neighbours(
        &self,
        report: &Report<'_>,
        counts: impl Fn(&Report<'_>) -> bool,
    ) -> [Option<Report<'_>>; 2] {
        let (mut before, mut after): (Option<Report<'_>>, Option<Report<'_>>) = (None, None);
        let told = |other: &Report<'_>| other.is_comparable() && report.touches(other);
        for other in self.reports().filter(|other| told(other) && counts(other)) {
            match other.at.list_order(report.at) {
                Ordering::Less if before.is_none_or(|b| b.at.list_order(other.at).is_lt()) => {
                    before = Some(other);
                }
                Ordering::Greater if after.is_none_or(|a| other.at.list_order(a.at).is_lt()) => {
                    after = Some(other);
                }
                _ => {}
            }
        }
        [before, after]
    }

    /// Whether it is worth looking closely: cheap, since it is asked of every event with a window.
    fn may_have_lost(&self, report: &Report<'_>) -> bool {
        if !report.is_comparable() {
            return false;
        }
        let suspicious = |before: &Report<'_>, now: &Report<'_>| {
            expected(before, now, before.len()) > now.len()
                || (before.made_room() && now.made_room())
                || (before.boot() != now.boot() && now.len() == 1)
        };
        let any = |[before, after]: [Option<Report<'_>>; 2]| {
            before.is_some_and(|before| suspicious(&before, report))
                || after.is_some_and(|after| suspicious(report, &after))
                || after.is_some_and(|after| after.told == Told::Left)
        };
        // A refusal between two of them may be no news.
        any(self.neighbours(report, |_| true))
            || any(self.neighbours(report, |other| other.told != Told::Stayed))
    }

    /// All that is remembered of one window, in order: the one that a report is about.
    pub(super) fn chain(&self, about: &Report<'_>) -> Vec<Report<'_>> {
        let mut chain: Vec<_> = self.reports().filter(|other| about.touches(other)).collect();
        chain.sort_by(|a, b| a.at.list_order(b.at));
        if self.stayed.len() >= STAYED_MAX
            && let Some(oldest) = self.stayed.first()
        {
            // What stood between older ones is not remembered.
            chain.retain(|report| report.at.list_order(&oldest.at).is_ge());
        }
        if self.is_full()
            && let Some(oldest) = self.recent.first()
        {
            chain.retain(|report| report.at.list_order(&oldest.at).is_ge());
        }
        chain
    }

    /// Whether some of what was told of its windows may be remembered no more.
    pub(super) fn forgets_reports(&self) -> bool {
        self.is_full() || self.stayed.len() >= STAYED_MAX
    }

    /// Whether a refusal may say something new of its window: not what was told just before it.
    pub(super) fn is_news(&self, sources: &Sources, stayed: &Stayed) -> bool {
        let report = Report::stayed(stayed);
        let [before, _] = self.neighbours(&report, |_| true);
        // What entered or left in between without telling the window makes it news.
        let changed_since = |before: &Moment| {
            self.reports().any(|other| {
                report.touches(&other)
                    && before.list_order(other.at).is_lt()
                    && other.at.list_order(report.at).is_lt()
            })
        };
        let known = before.filter(|before| report.says_the_same(before, sources));
        report.is_comparable() && known.is_none_or(|before| changed_since(before.at))
    }

    /// Remembers what a refusal said.
    pub(super) fn stay(&mut self, stayed: Stayed) {
        let _ = push_newest(&mut self.stayed, stayed, STAYED_MAX, |stayed| &stayed.at);
    }

    /// Takes a report that has come: it and those after it are to be looked at if need be.
    pub(super) fn look_for_loss(&mut self, at: &Moment, received_us: i64) {
        let Some(report) = self.report_at(at).filter(|report| self.may_have_lost(report)) else {
            return;
        };
        let after = |other: &Report<'_>| {
            other.is_comparable() && report.touches(other) && other.at.list_order(report.at).is_ge()
        };
        let suspects: Vec<Moment> = self.reports().filter(after).map(|r| r.at.clone()).collect();
        for at in suspects {
            if !self.losses.iter().any(|loss| loss.at == at) {
                self.losses.push(Loss { at, received_us, counted: None, skipped: false });
            }
        }
    }

    /// The report of this moment, while it is remembered.
    pub(super) fn report_at(&self, at: &Moment) -> Option<Report<'_>> {
        self.reports().find(|report| report.at.position == at.position)
    }
}

/// Takes refusals out of a chain that are no news: of them some are remembered and some are not, as
/// they came.
pub(super) fn let_go_of_no_news(sources: &Sources, chain: &mut Vec<Report<'_>>) {
    let mut before: Option<Report<'_>> = None;
    chain.retain(|report| {
        let is_news = before.is_none_or(|before| !report.says_the_same(&before, sources));
        if is_news {
            before = Some(*report).filter(Report::is_comparable);
        }
        is_news
    });
}

/// How many a window should hold after an event, if it held `base` before.
pub(super) fn expected(before: &Report<'_>, now: &Report<'_>, base: i64) -> i64 {
    let left = i64::try_from(now.left).unwrap_or(i64::MAX);
    match now.told {
        Told::Stayed => base,
        Told::Left => base.saturating_sub(1),
        Told::Entered if now.again || now.unsure => base.saturating_sub(left),
        Told::Entered if left > 0 => base.saturating_add(1).saturating_sub(left),
        Told::Entered => base.saturating_add(1).min(before.cap()),
    }
}
