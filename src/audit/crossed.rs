//! Whether two reports of a window crossed on their way: threads that take their number after they
//! have left the lock number what they did the other way round, now and then.
//!
//! What one run told at about the same time is tried in every order. If there is one in which
//! nothing was lost, nothing is said.

use super::order::SKEW_US;
use super::report::{Report, Told, expected};
use super::source::Sources;

/// So many are tried, those nearest to the two in question.
const TRIED_MAX: usize = 8;

/// How an order without a loss is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crossed {
    /// There is none.
    No,
    /// There is one.
    Perhaps,
    /// There is none by what is still remembered.
    Forgotten,
    /// There is one by what was heard, and not all was.
    Unheard,
}

/// What may have been told or given back beside: so many more, and so many fewer.
#[derive(Clone, Copy)]
struct Slack {
    more: i64,
    fewer: i64,
}

/// Looks at the reports around the one at `now` and the one before it. Of what is not
/// remembered (`forgotten`) some may have belonged to the first ones.
pub(super) fn look(
    sources: &Sources,
    chain: &[Report<'_>],
    now: &Report<'_>,
    (others_write, forgotten): (bool, bool),
) -> Crossed {
    let told: Vec<&Report<'_>> = chain.iter().filter(|report| report.is_comparable()).collect();
    let Some(at) = told.iter().position(|report| report.at.position == now.at.position) else {
        return Crossed::No;
    };
    if !is_joined(&told, at) {
        return Crossed::No;
    }
    let (first, last) = stretch(&told, at);
    if is_joined(&told, first) || is_joined(&told, last + 1) {
        // Too many at once: which of them crossed is not to be told.
        return Crossed::Perhaps;
    }
    let Some(tried) = told.get(first..=last) else { return Crossed::No };
    let whole = |a: &Report<'_>, b: &Report<'_>| {
        a.at.sequence.zip(b.at.sequence).is_some_and(|(from, to)| {
            from.0 == to.0 && sources.whole_between(a.at.source, from, to)
        })
    };
    // At the ends too threads may have crossed: then any of those stands there.
    let of_run = |report: &&Report<'_>| report.boot() == now.boot();
    let (mut earlier, mut later) = (Vec::new(), Vec::new());
    for i in (0..first).rev().take(TRIED_MAX) {
        if i + 1 < first && !is_joined(&told, i + 1) {
            break;
        }
        earlier.extend(told.get(i).copied().filter(of_run));
    }
    for i in (last + 1..told.len()).take(TRIED_MAX) {
        if i > last + 1 && !is_joined(&told, i) {
            break;
        }
        later.extend(told.get(i).copied().filter(of_run));
    }
    let (Some(begin), Some(end)) = (tried.first(), tried.last()) else { return Crossed::No };
    let heard = whole(begin, end);
    let (earlier, before) = known(earlier, |earlier| whole(earlier, begin));
    let (later, after) = known(later, |later| whole(end, later));
    let slack = slack(
        chain,
        earlier.last().copied().unwrap_or(begin),
        later.last().copied().unwrap_or(end),
    );
    let more = if others_write || !heard { i64::MAX } else { slack.more };
    match is_any_order_right(tried, (&earlier, &later), Slack { more, ..slack }) {
        false if first == 0 && forgotten => Crossed::Forgotten,
        false => Crossed::No,
        true if heard && before && after => Crossed::Perhaps,
        true => Crossed::Unheard,
    }
}

/// Whether the report at a place was told soon after the one before, by the same run.
fn is_joined(told: &[&Report<'_>], at: usize) -> bool {
    let pair = told.get(at.wrapping_sub(1)).zip(told.get(at));
    pair.is_some_and(|(a, b)| {
        a.boot().is_some() && a.boot() == b.boot() && a.at.distance_us(b.at) <= SKEW_US
    })
}

/// From where to where reports that are joined lie around the one at a place.
fn stretch(told: &[&Report<'_>], at: usize) -> (usize, usize) {
    let (mut first, mut last) = (at.saturating_sub(1), at);
    loop {
        let was = (first, last);
        if last - first + 1 < TRIED_MAX && is_joined(told, first) {
            first -= 1;
        }
        if last - first + 1 < TRIED_MAX && is_joined(told, last + 1) {
            last += 1;
        }
        if was == (first, last) {
            return was;
        }
    }
}

/// What stands at an end, if nothing is unheard up to there; and whether that is so.
fn known<'a, 'b>(
    ends: Vec<&'a Report<'b>>,
    whole: impl Fn(&Report<'b>) -> bool,
) -> (Vec<&'a Report<'b>>, bool) {
    if ends.iter().all(|end| whole(end)) { (ends, true) } else { (Vec::new(), false) }
}

/// What was told without a window between two reports, and what may have given its place back.
fn slack(chain: &[Report<'_>], from: &Report<'_>, to: &Report<'_>) -> Slack {
    let upto = |report: &&Report<'_>| report.at.list_order(to.at).is_le();
    let unsure = chain.iter().filter(upto).filter(|report| report.unsure).count();
    let silent = chain
        .iter()
        .filter(upto)
        .filter(|report| !report.is_comparable() && report.at.list_order(from.at).is_gt());
    let gone = silent.clone().map(|it| it.left + usize::from(it.told == Told::Left));
    let entered = silent.clone().filter(|report| report.told == Told::Entered).count();
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    Slack { more: count(entered), fewer: count(unsure.saturating_add(gone.sum())) }
}

/// Whether the reports can be put in an order, after the one end and before the other, in which
/// each window follows from the one before.
fn is_any_order_right(
    tried: &[&Report<'_>],
    (earlier, later): (&[&Report<'_>], &[&Report<'_>]),
    slack: Slack,
) -> bool {
    // By set of those that were put already: which may be the last of them.
    let mut lasts = [0_u8; 1 << TRIED_MAX];
    let mark = |lasts: &mut [u8], set: usize, last: usize| {
        if let Some(known) = lasts.get_mut(set) {
            *known |= 1 << last;
        }
    };
    let all = (1_usize << tried.len().min(TRIED_MAX)) - 1;
    // More than follows shows that the next ones crossed too, and not all of them came yet.
    let ends = Slack { more: i64::MAX, ..slack };
    let is_end = |last: &Report<'_>| {
        later.is_empty() || later.iter().any(|later| follows(last, later, ends))
    };
    let bits = || tried.iter().enumerate().take(TRIED_MAX);
    for (i, report) in bits() {
        if earlier.is_empty() || earlier.iter().any(|earlier| follows(earlier, report, slack)) {
            mark(&mut lasts, 1 << i, i);
        }
    }
    for set in 1..=all {
        let may_be_last = lasts.get(set).copied().unwrap_or_default();
        for (i, last) in bits().filter(|(i, _)| may_be_last & (1 << i) != 0) {
            if set == all && is_end(last) {
                return true;
            }
            for (next, report) in bits().filter(|(next, _)| set & (1 << next) == 0) {
                if i != next && follows(last, report, slack) {
                    mark(&mut lasts, set | (1 << next), next);
                }
            }
        }
    }
    false
}

/// Whether a window can be what it is told to be, if it was so just before.
fn follows(before: &Report<'_>, now: &Report<'_>, slack: Slack) -> bool {
    let left = i64::try_from(now.left).unwrap_or(i64::MAX);
    let most = match now.told {
        Told::Entered => before.len().saturating_add(1).saturating_sub(left),
        Told::Stayed => before.len(),
        Told::Left => before.len().saturating_sub(1),
    };
    let least = expected(before, now, before.len()).saturating_sub(slack.fewer);
    // There was room already.
    let in_a_row = before.made_room() && now.made_room() && before.len() < before.cap();
    !in_a_row && (least..=most.saturating_add(slack.more)).contains(&now.len())
}
