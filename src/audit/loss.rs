//! `window_lost`: a window holds less than it should.
//!
//! What a guard said of a window is compared with what it had said of it just before. The two are
//! neighbours only if nothing of that source lies unheard between them; and where others may write
//! to the same window, only if they were all heard, and what they took out is allowed for. What
//! may have given its place back (an effect that failed or is not known) is never called lost.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::crossed::{self, Crossed};
use super::finding::{Coverage, OrderKnown};
use super::order::{Moment, SKEW_US, order};
use super::player::{PlayerFacts, RECENT_MAX};
use super::report::{self, Report, Told, expected};
use super::rule::Context;
use super::settle_groups::Counted;
use super::source::Heard;
use crate::outcome::{GuardMode, Reason};

/// A report by which a window seems to have lost something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Loss {
    pub(super) at: Moment,
    pub(super) received_us: i64,
    /// In which row it is counted.
    pub(super) counted: Option<Counted>,
    /// It could not be judged, and that was counted.
    pub(super) skipped: bool,
}

/// What is to be said of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The window holds what it should, as far as can be told.
    Fine,
    /// It seems to have lost something, and that can't be known, for this reason.
    Unknown(&'static str),
    /// It has: how many it should hold.
    Lost { cause: &'static str, order: OrderKnown, should: i64, before: Moment },
}

/// Two reports of a window with nothing known of it between them.
struct Pair<'a> {
    /// What came before `before`.
    earlier: Option<Report<'a>>,
    before: Report<'a>,
    now: Report<'a>,
    /// What came after.
    later: Option<Report<'a>>,
    /// How many should be there now.
    should: i64,
}

/// Judges the report of a moment; `None` if what came before it is not remembered.
pub(super) fn judge(context: Context<'_>, player: &PlayerFacts, at: &Moment) -> Option<Standing> {
    let now = player.report_at(at).filter(Report::is_comparable)?;
    let mut chain = player.chain(&now);
    let is_now = |report: &Report<'_>| report.at.position == at.position;
    if !chain.iter().any(is_now) {
        return None;
    }
    report::let_go_of_no_news(context.sources, &mut chain);
    let Some(i) = chain.iter().position(is_now) else { return Some(Standing::Fine) };
    let told: Vec<_> =
        chain.get(..i)?.iter().filter(|report| report.is_comparable()).copied().collect();
    let all_known = player.recent.len() < RECENT_MAX;
    let pair = pair(&chain, i, &now, &told, all_known)?;
    let crossed = || {
        let others_write = match now.mode.or(pair.before.mode) {
            Some(GuardMode::Local | GuardMode::Off) => false,
            Some(GuardMode::Shared) => true,
            None => player.writers.iter().any(|writer| *writer != now.at.source),
        };
        crossed::look(context.sources, &chain, &now, (others_write, player.forgets_reports()))
    };
    judge_pair(context, player, &pair, crossed)
}

fn pair<'a>(
    chain: &[Report<'a>],
    i: usize,
    now: &Report<'a>,
    told: &[Report<'a>],
    all_known: bool,
) -> Option<Pair<'a>> {
    let before = *told.last()?;
    let earlier = told.len().checked_sub(2).and_then(|i| told.get(i)).copied();
    let later = chain.iter().skip(i + 1).find(|report| report.is_comparable()).copied();
    let upto = chain.get(..=i).unwrap_or_default();
    // Each may give its place back once, at a time that nobody told.
    let unsure = upto.iter().filter(|report| report.unsure && report.at != now.at).count();
    // What was told without a window, between the two.
    let silent = upto.iter().filter(|report| {
        !report.is_comparable() && report.at.list_order(before.at).is_gt() && report.at != now.at
    });
    let gone: usize =
        silent.map(|report| report.left + usize::from(report.told == Told::Left)).sum();
    let base = before.len().saturating_sub(i64::try_from(unsure + gone).unwrap_or(i64::MAX));
    let mut should = expected(&before, now, base);
    let restarted = before.boot() != now.boot()
        && now.told == Told::Entered
        && now.mode != Some(GuardMode::Shared)
        && now.cap() >= 2
        && base >= 1;
    if restarted && now.len() == 1 {
        should = should.max(2);
    }
    // There was room after the first already; only the first of a run counts.
    let in_a_row = before.made_room()
        && now.made_room()
        && before.at.sequence.is_some()
        && before.boot() == now.boot()
        && before.len() < before.cap().min(now.cap())
        && earlier.map_or(all_known, |earlier| !earlier.made_room());
    if in_a_row {
        should = should.max(before.len());
    }
    Some(Pair { earlier, before, now: *now, later, should })
}

fn judge_pair(
    context: Context<'_>,
    player: &PlayerFacts,
    pair: &Pair<'_>,
    crossed: impl FnOnce() -> Crossed,
) -> Option<Standing> {
    if pair.should <= pair.now.len() {
        return Some(Standing::Fine);
    }
    let Some(order) = known_order(context, pair) else {
        return Some(Standing::Unknown("window_lost_order"));
    };
    if !heard_between(context, pair) {
        return Some(Standing::Unknown("window_lost_blind"));
    }
    let should = match others(context, player, pair) {
        Ok(should) => should,
        Err(reason) => return Some(Standing::Unknown(reason)),
    };
    if should <= pair.now.len() {
        return Some(Standing::Unknown("window_lost_shared"));
    }
    let unknown = match crossed() {
        Crossed::No => {
            let before = pair.before.at.clone();
            return Some(Standing::Lost { cause: cause(context, pair), order, should, before });
        }
        Crossed::Forgotten => return None,
        Crossed::Perhaps => "window_lost_order",
        Crossed::Unheard => "window_lost_blind",
    };
    Some(Standing::Unknown(unknown))
}

/// How the order of the two is known. Clocks of threads that wait for one lock cross: by clock
/// alone, only what stands well apart from its neighbours is in order.
fn known_order(context: Context<'_>, pair: &Pair<'_>) -> Option<OrderKnown> {
    let (ordering, known) = order(context.sources, pair.before.at, pair.now.at)?;
    if ordering != Ordering::Less {
        return None;
    }
    let near = |a: &Report<'_>, b: &Report<'_>| a.at.distance_us(b.at) <= SKEW_US;
    let near_earlier = pair.earlier.as_ref().is_some_and(|earlier| near(earlier, &pair.before));
    let near_later = pair.later.as_ref().is_some_and(|later| near(&pair.now, later));
    if pair.before.at.sequence.is_none() || pair.now.at.sequence.is_none() {
        let same_sort = pair.before.at.sequence.is_some() == pair.now.at.sequence.is_some();
        let apart = same_sort && !near(&pair.before, &pair.now) && !near_earlier && !near_later;
        return apart.then_some(known);
    }
    // A window never grows by two at once: numbers that say so were not given under its lock.
    let grew = |a: &Report<'_>, b: &Report<'_>| b.len() > a.len().saturating_add(1);
    let crossed = pair.before.boot() == pair.now.boot()
        && near(&pair.before, &pair.now)
        && (near_earlier && pair.earlier.as_ref().is_some_and(|e| grew(e, &pair.before))
            || near_later && pair.later.as_ref().is_some_and(|l| grew(&pair.now, l)));
    (!crossed).then_some(known)
}

/// Whether nothing of the source lies unheard between the two. A run that ended without a word may
/// have told more: then only what no eviction explains is lost, all of it, or what a smaller
/// window has no room for.
fn heard_between(context: Context<'_>, pair: &Pair<'_>) -> bool {
    let (Some(from), Some(to)) = (pair.before.at.sequence, pair.now.at.sequence) else {
        return true;
    };
    match context.sources.heard_between(pair.now.at.source, from, to) {
        Heard::Whole => true,
        Heard::Hole => false,
        Heard::Tail => {
            let wiped = pair.now.told == Told::Entered && pair.now.len() <= 1;
            wiped || is_smaller(pair)
        }
    }
}

/// How many should be there, allowing for what others did to the window in the meantime; or why
/// that is not known.
fn others(
    context: Context<'_>,
    player: &PlayerFacts,
    pair: &Pair<'_>,
) -> Result<i64, &'static str> {
    let own = pair.now.at.source;
    let declared = pair.now.mode.or(pair.before.mode);
    let alone = player.writers.iter().all(|writer| *writer == own);
    match declared {
        Some(GuardMode::Local | GuardMode::Off) => return Ok(pair.should),
        None if alone => return Ok(pair.should),
        Some(GuardMode::Shared) | None => {}
    }
    let (from_us, to_us) = (pair.before.at.at_us, pair.now.at.at_us);
    let (from_us, to_us) = (from_us.min(to_us), to_us.max(from_us));
    let until = Moment { at_us: to_us, ..pair.now.at.clone() };
    let heard = context.ledger.heard(context.sources, from_us, &until);
    if heard == Coverage::Blind || (declared.is_some() && heard != Coverage::Full) {
        return Err("window_lost_blind");
    }
    let own_offset_us = context.sources.offset_us(own).unwrap_or(0);
    let between = |report: &Report<'_>| {
        let offset_us = context.sources.offset_us(report.at.source).unwrap_or(0);
        let at_us = report.at.at_us.saturating_add(offset_us).saturating_sub(own_offset_us);
        let (from_us, to_us) = (from_us.saturating_sub(SKEW_US), to_us.saturating_add(SKEW_US));
        report.at.source != own && (from_us..=to_us).contains(&at_us)
    };
    let mut should = pair.should;
    for other in player.reports().filter(between) {
        let gone = other.left + usize::from(other.told == Told::Left || other.unsure);
        should = should.saturating_sub(i64::try_from(gone).unwrap_or(i64::MAX));
        if other.window.is_some() {
            should = should.min(other.cap());
        }
    }
    Ok(should)
}

/// Whether the window became smaller, and holds all that it has room for.
fn is_smaller(pair: &Pair<'_>) -> bool {
    pair.now.cap() < pair.before.cap() && pair.now.len() >= pair.now.cap()
}

fn cause(context: Context<'_>, pair: &Pair<'_>) -> &'static str {
    let since = pair.earlier.as_ref().filter(|_| pair.before.told == Told::Left);
    let since = since.unwrap_or(&pair.before);
    if is_smaller(pair) {
        "cap_changed"
    } else if pair.before.boot() != pair.now.boot() || pair.now.reason == Some(Reason::Restart) {
        "restart"
    } else if since.at.distance_us(pair.now.at) >= context.settings.live_for_us {
        "ttl"
    } else if pair.now.told == Told::Stayed {
        "on_block"
    } else {
        "cleared"
    }
}
