//! `window_lost`.

use std::collections::{BTreeMap, BTreeSet};

use dedupwatch::audit::{Kind, Severity};
use dedupwatch::outcome::{
    Boot, Effect, Event, GuardMode, Outcome, Reason, SourceName, Window, WindowScope,
};

use super::verdict::{Verdict, Verdicts};
use super::world::{Coverage, SKEW_US, World, before, key_of};

const CAUSES: [&str; 5] = ["restart", "cap_changed", "ttl", "on_block", "cleared"];
/// So many acceptances and evictions, and refusals, of a player are kept: bounds of the product.
const RECENT_MAX: usize = 16;
const STAYED_MAX: usize = 8;
/// What threads told crosswise is tried in every order, so much at a time.
const TRIED_MAX: usize = 8;

#[derive(Clone, Copy, PartialEq)]
enum Found {
    Lost(&'static str),
    Fine,
    Unsure(&'static str),
}

/// What one source told of one window, in order.
struct Chain<'a> {
    world: &'a World,
    /// With what told no window but may have changed it.
    all: Vec<&'a Event>,
    /// Somebody else wrote for the player.
    others: bool,
}

pub fn judge(world: &World, verdicts: &mut Verdicts) {
    let mut players: BTreeMap<_, Vec<&Event>> = BTreeMap::new();
    for event in world.events.iter().filter(|event| changes(event) || event.window.is_some()) {
        players.entry((event.ledger(), event.player.clone())).or_default().push(event);
    }
    let mut counts: BTreeMap<(SourceName, &str), u64> = BTreeMap::new();
    for events in players.into_values() {
        let long = events.iter().filter(|it| changes(it)).count() >= RECENT_MAX
            || events.iter().filter(|it| !changes(it)).count() >= STAYED_MAX;
        for from in events.iter().map(|it| &it.from).collect::<BTreeSet<_>>() {
            for cause in CAUSES.iter().filter(|_| long || !world.lasting) {
                verdicts.unsure(Kind::WindowLost, &(from, cause));
            }
            for chain in chains(world, &events, from) {
                for at in 0..chain.all.len() {
                    match chain.find(at) {
                        Found::Fine => {}
                        Found::Lost(cause) => {
                            *counts.entry((from.clone(), cause)).or_default() += 1
                        }
                        Found::Unsure(cause) => verdicts.unsure(Kind::WindowLost, &(from, cause)),
                    }
                }
            }
        }
    }
    for (place, count) in counts {
        let verdict = Verdict::of(Kind::WindowLost, &place, Severity::Warning);
        verdicts.key(Verdict { count, ..verdict });
    }
}

fn changes(event: &Event) -> bool {
    event.is_acceptance() || event.outcome == Outcome::Evicted
}

fn is_comparable(event: &Event) -> bool {
    event.guard_mode != Some(GuardMode::Off)
        && event.window.is_some_and(|window| match window.scope {
            WindowScope::Player => true,
            WindowScope::Room => event.signature.room().is_some(),
            WindowScope::Source => false,
        })
}

fn chains<'a>(world: &'a World, events: &[&'a Event], from: &SourceName) -> Vec<Chain<'a>> {
    let others = events.iter().any(|it| changes(it) && it.from != *from);
    let mut own: Vec<&Event> = events.iter().filter(|it| it.from == *from).copied().collect();
    own.sort_by_key(|it| (it.sequence(), it.occurred_us));
    let window = |it: &Event| it.window.filter(|_| is_comparable(it)).map(|it| it.scope);
    let rooms = own.iter().filter(|it| window(it) == Some(WindowScope::Room));
    let rooms: BTreeSet<_> = rooms.map(|it| it.signature.room().cloned()).collect();
    let in_room = |room: &Option<_>, it: &Event| it.signature.room().cloned() == *room;
    let touches = |it: &Event, scope| it.window.is_none_or(|window| window.scope == scope);
    let mut chains =
        vec![own.iter().filter(|it| touches(it, WindowScope::Player)).copied().collect()];
    for room in &rooms {
        let of_room = own.iter().filter(|it| touches(it, WindowScope::Room) && in_room(room, it));
        chains.push(of_room.copied().collect::<Vec<_>>());
    }
    chains
        .into_iter()
        .map(|all| Chain { world, all: without_no_news(world, all), others })
        .collect()
}

/// A reading: a refusal that says what was said just before, with no hole between, is nothing.
fn without_no_news<'a>(world: &World, all: Vec<&'a Event>) -> Vec<&'a Event> {
    let mut kept: Vec<&Event> = Vec::new();
    for event in all {
        let same = |last: &&&Event| {
            is_comparable(last)
                && last.window == event.window
                && last.boot == event.boot
                && is_whole(world, last, event)
        };
        if changes(event) || kept.last().filter(same).is_none() {
            kept.push(event);
        }
    }
    kept
}

/// Whether no number between two events of a source is missing.
fn is_whole(world: &World, from: &Event, to: &Event) -> bool {
    to.sequence().is_some_and(|(boot, seq)| {
        world.back_from(to, boot, seq).iter().any(|it| it.sequence() == from.sequence())
    })
}

fn is_unsure(event: &Event) -> bool {
    event.is_acceptance() && matches!(event.effect, Some(Effect::Failed | Effect::Unknown))
}

fn len(event: &Event) -> i64 {
    event.window.map_or(0, |window: Window| window.len as i64)
}

fn cap(event: &Event) -> i64 {
    event.window.map_or(0, |window| window.cap as i64)
}

/// It fell out for want of room; a reading: not so by ttl, the reaper or an acknowledgement.
fn made_room(event: &Event) -> bool {
    let by_rule = matches!(event.reason, Some(Reason::Ttl | Reason::Reaper | Reason::Ack));
    event.outcome == Outcome::Evicted && !by_rule
}

impl Chain<'_> {
    fn again(&self, now: &Event) -> bool {
        let key = key_of(now, &now.signature);
        let told = |it: &&Event| {
            it.is_acceptance() || matches!(it.outcome, Outcome::ReplayBlocked | Outcome::Unknown)
        };
        let others = self.world.events.iter().filter(told).filter(|it| *it != now);
        others.filter(|it| key_of(it, &it.signature) == key).any(|it| !before(now, it))
    }

    /// How many should be there, if there were `base`.
    fn expected(&self, prior: &Event, now: &Event, base: i64) -> i64 {
        let left = now.evicted.len() as i64;
        match now.outcome {
            Outcome::Evicted => base - 1,
            _ if !now.is_acceptance() => base,
            _ if self.again(now) || is_unsure(now) => base - left,
            _ if left > 0 => base + 1 - left,
            _ => (base + 1).min(cap(prior)),
        }
    }

    /// What was told without a window, after `from` and until `to`.
    fn silent(&self, from: usize, to: usize) -> (i64, i64) {
        let silent = || self.all[from + 1..to].iter().filter(|it| !is_comparable(it));
        let gone =
            silent().map(|it| it.evicted.len() as i64 + i64::from(it.outcome == Outcome::Evicted));
        (silent().filter(|it| it.is_acceptance()).count() as i64, gone.sum())
    }

    fn unsure_until(&self, to: usize) -> i64 {
        self.all[..to].iter().filter(|it| is_unsure(it)).count() as i64
    }

    fn find(&self, at: usize) -> Found {
        let now = self.all[at];
        let told: Vec<usize> = (0..at).filter(|at| is_comparable(self.all[*at])).collect();
        let Some(prior_at) = told.last().copied().filter(|_| is_comparable(now)) else {
            return Found::Fine;
        };
        let prior = self.all[prior_at];
        let earlier = told.len().checked_sub(2).map(|i| self.all[told[i]]);
        let later = self.all[at + 1..].iter().find(|it| is_comparable(it)).copied();
        // A reading: each of unknown fate may have given its place back at any time since.
        let base = len(prior) - self.unsure_until(at) - self.silent(prior_at, at).1;
        let mut should = self.expected(prior, now, base);
        let private = now.guard_mode != Some(GuardMode::Shared);
        let restarted = prior.boot != now.boot && now.is_acceptance() && private && cap(now) >= 2;
        if restarted && base >= 1 && len(now) == 1 {
            should = should.max(2);
        }
        let had_room = len(prior) < cap(prior).min(cap(now));
        let same_run = prior.sequence().is_some() && prior.boot == now.boot;
        let first = earlier.is_none_or(|earlier| !made_room(earlier));
        if made_room(prior) && made_room(now) && same_run && had_room && first {
            should = should.max(len(prior));
        }
        if should <= len(now) {
            return Found::Fine;
        }
        let cause = cause(self.world, earlier, prior, now);
        self.weigh(at, (earlier, prior, later), cause)
    }

    /// Something seems to be lost: whether that is known.
    fn weigh(
        &self,
        at: usize,
        (earlier, prior, later): (Option<&Event>, &Event, Option<&Event>),
        cause: &'static str,
    ) -> Found {
        let now = self.all[at];
        let near = |a: &Event, b: &Event| (a.occurred_us - b.occurred_us).abs() <= SKEW_US;
        let near_earlier = earlier.is_some_and(|earlier| near(earlier, prior));
        let near_later = later.is_some_and(|later| near(now, later));
        if now.sequence().is_none() {
            // A reading: threads that wait for a lock stamp crosswise.
            if near(prior, now) || near_earlier || near_later {
                return Found::Fine;
            }
        } else if prior.boot == now.boot {
            if !is_whole(self.world, prior, now) {
                return Found::Fine;
            }
            // Who tells of a window that grew by two does not number under its lock.
            let grew = |a: &Event, b: &Event| len(b) > len(a) + 1;
            let crossed = near_earlier && earlier.is_some_and(|earlier| grew(earlier, prior))
                || near_later && later.is_some_and(|later| grew(now, later));
            if near(prior, now) && crossed {
                return Found::Fine;
            }
        } else if !is_whole(self.world, prior, now) {
            // A run that ended without a word may have told more.
            let wiped = now.is_acceptance() && len(now) <= 1;
            if !(wiped || is_smaller(prior, now)) || !is_whole_but_tails(self.world, prior, now) {
                return Found::Fine;
            }
        }
        match now.guard_mode.or(prior.guard_mode) {
            Some(GuardMode::Local | GuardMode::Off) => {}
            None if !self.others => {}
            _ if self.others => return Found::Unsure(cause),
            _ => {
                let (one, two) = (prior.occurred_us, now.occurred_us);
                let until = Event { occurred_us: one.max(two), ..now.clone() };
                let heard = self.world.coverage(&now.ledger(), one.min(two), &until);
                match heard.map(|it| it == Coverage::Full) {
                    [true, true] => {}
                    [false, false] => return Found::Fine,
                    _ => return Found::Unsure(cause),
                }
            }
        }
        if self.is_right_in_some_order(at) { Found::Fine } else { Found::Lost(cause) }
    }

    /// A reading: threads that number after they left the lock cross. What one run told within a
    /// second, one after the other, may have been in any order.
    fn is_right_in_some_order(&self, at: usize) -> bool {
        let told: Vec<usize> =
            (0..self.all.len()).filter(|at| is_comparable(self.all[*at])).collect();
        let joined = |i: usize| {
            let pair = i.checked_sub(1).and_then(|before| told.get(before)).zip(told.get(i));
            pair.is_some_and(|(a, b)| {
                let (a, b) = (self.all[*a], self.all[*b]);
                let apart_us = (a.occurred_us - b.occurred_us).abs();
                a.sequence().is_some() && a.boot == b.boot && apart_us <= SKEW_US
            })
        };
        let now = told.iter().position(|i| *i == at).unwrap();
        if !joined(now) {
            return false;
        }
        let (mut first, mut last) = (now - 1, now);
        for _ in 0..TRIED_MAX {
            first -= usize::from(last - first + 1 < TRIED_MAX && joined(first));
            last += usize::from(last - first + 1 < TRIED_MAX && joined(last + 1));
        }
        if joined(first) || joined(last + 1) {
            return true;
        }
        let same_run = |i: &usize| self.all[told[*i]].boot == self.all[at].boot;
        let mut befores: Vec<usize> = first.checked_sub(1).into_iter().filter(same_run).collect();
        while let Some(i) = befores.last().copied().filter(|i| joined(*i))
            && befores.len() < TRIED_MAX
        {
            befores.push(i - 1);
        }
        let next = Some(last + 1).filter(|i| *i < told.len());
        let mut afters: Vec<usize> = next.into_iter().filter(same_run).collect();
        while let Some(i) = afters.last().map(|i| i + 1).filter(|i| joined(*i))
            && afters.len() < TRIED_MAX
        {
            afters.push(i);
        }
        let event = |i: &usize| self.all[told[*i]];
        if !befores.iter().all(|i| is_whole(self.world, event(i), event(&first))) {
            befores.clear();
        }
        if !afters.iter().all(|i| is_whole(self.world, event(&last), event(i))) {
            afters.clear();
        }
        let from = told[befores.last().copied().unwrap_or(first)];
        let to = told[afters.last().copied().unwrap_or(last)];
        let (mut more, gone) = self.silent(from, to);
        let shared = match self.all[at].guard_mode.or(event(&(now - 1)).guard_mode) {
            Some(mode) => mode == GuardMode::Shared,
            None => self.others,
        };
        if shared || !is_whole(self.world, event(&first), event(&last)) {
            more = i64::MAX / 2;
        }
        let slack = (more, gone + self.unsure_until(to + 1));
        let tried: Vec<&Event> = (first..=last).map(|i| event(&i)).collect();
        let befores: Vec<&Event> = befores.iter().map(event).collect();
        let afters: Vec<&Event> = afters.iter().map(event).collect();
        self.goes_on(&befores, &tried, &afters, slack)
    }

    /// Whether what is left can follow, in some order, one of those that may have been last.
    fn goes_on(
        &self,
        lasts: &[&Event],
        left: &[&Event],
        ends: &[&Event],
        slack: (i64, i64),
    ) -> bool {
        let follows = |next: &Event| {
            lasts.is_empty() || lasts.iter().any(|last| self.follows(last, next, slack))
        };
        if left.is_empty() {
            // More than follows shows that the next ones crossed too.
            let slack = (i64::MAX / 2, slack.1);
            let follows = |end: &Event| lasts.iter().any(|last| self.follows(last, end, slack));
            return ends.is_empty() || ends.iter().any(|end| follows(end));
        }
        left.iter().enumerate().filter(|(_, next)| follows(next)).any(|(i, next)| {
            let mut rest = left.to_vec();
            rest.remove(i);
            self.goes_on(&[*next], &rest, ends, slack)
        })
    }

    fn follows(&self, prior: &Event, now: &Event, (more, fewer): (i64, i64)) -> bool {
        let most = match now.outcome {
            Outcome::Evicted => len(prior) - 1,
            _ if now.is_acceptance() => len(prior) + 1 - now.evicted.len() as i64,
            _ => len(prior),
        };
        let in_a_row = made_room(prior) && made_room(now) && len(prior) < cap(prior);
        let least = self.expected(prior, now, len(prior)) - fewer;
        !in_a_row && (least..=most + more).contains(&len(now))
    }
}

/// Whether nothing is missing but what runs that ended without a word may have told last.
fn is_whole_but_tails(world: &World, from: &Event, to: &Event) -> bool {
    let (Some((older, first)), Some((newer, last))) = (from.sequence(), to.sequence()) else {
        return false;
    };
    let runs = world.sources[&from.from].runs.range(older..=newer);
    runs.into_iter().all(|(boot, run): (&Boot, _)| {
        let begin = if *boot == older { first } else { 1 };
        let named = run.heartbeats.iter().map(|heartbeat| heartbeat.last_seq);
        let known = run.times.keys().chain(run.refused.keys()).copied().chain(named).max();
        let end = if *boot == newer { last } else { known.unwrap_or(0) };
        !run.out_of_order && (begin..=end).all(|seq| run.times.contains_key(&seq))
    })
}

fn is_smaller(prior: &Event, now: &Event) -> bool {
    cap(now) < cap(prior) && len(now) >= cap(now)
}

fn cause(world: &World, earlier: Option<&Event>, prior: &Event, now: &Event) -> &'static str {
    // A reading: an eviction just before belongs to what took its place.
    let since = earlier.filter(|_| prior.outcome == Outcome::Evicted).unwrap_or(prior);
    if is_smaller(prior, now) {
        "cap_changed"
    } else if prior.boot != now.boot || now.reason == Some(Reason::Restart) {
        "restart"
    } else if (since.occurred_us - now.occurred_us).abs() >= world.rules.live_for_us {
        "ttl"
    } else if !changes(now) {
        "on_block"
    } else {
        "cleared"
    }
}
