//! `live_eviction`.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use dedupwatch::audit::{Kind, Severity};
use dedupwatch::outcome::{
    Amounts, Event, Game, GuardMode, Outcome, Reason, Signature, SourceName, WindowScope,
};

use super::verdict::{BY_REASON, Verdict, Verdicts};
use super::world::{Coverage, World, before, key_of, order};

/// A pushing acceptance without numbers comes within so long.
const PUSHED_WITHIN_US: i64 = 2_000_000;

/// So many games of a player are remembered: a bound of the product.
const GAMES_MAX: usize = 8;
/// Fewer live evictions are never critical.
const CRITICAL_MIN: usize = 10;

/// What is found of one signature that fell out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Live,
    Dead,
    /// Not known.
    Skipped,
    /// Depends on when it was judged.
    Unsure,
}

pub fn judge(world: &World, verdicts: &mut Verdicts) {
    let mut found: BTreeMap<_, (u64, Amounts)> = BTreeMap::new();
    for (event, signature) in world.evictions() {
        let reason = event.reason.filter(|_| event.outcome == Outcome::Evicted);
        let cause = reason.map(Reason::as_str).filter(|reason| BY_REASON.contains(reason));
        let place = (event.from.clone(), cause.unwrap_or("fifo"));
        match find(world, event, signature, cause.is_some()) {
            Found::Live => {
                let (count, amounts) = found.entry(place.clone()).or_default();
                *count += 1;
                *amounts = amounts.plus(Amounts::at_risk(signature.net()));
            }
            Found::Dead | Found::Skipped => {}
            Found::Unsure => {
                verdicts.unsure(Kind::LiveEviction, &place);
                continue;
            }
        }
        if !world.lasting || first_is_unclear(world, event) {
            verdicts.unsure(Kind::LiveEviction, &(event.from.clone(), cause.unwrap_or("fifo")));
        }
    }
    for from in perhaps_inferred(world) {
        verdicts.unsure(Kind::LiveEviction, &(from, "fifo"));
    }
    // At most so many can have pushed out a live one, at any time.
    let few = world.evictions().len() < CRITICAL_MIN;
    for (place, (count, amounts)) in found {
        let verdict = Verdict::of(Kind::LiveEviction, &place, Severity::Warning);
        let severity = verdict.severity.filter(|_| few);
        verdicts.key(Verdict { count, amounts, severity, ..verdict });
    }
}

/// Sources whose evictions may be inferred: until somebody tells one, and not taken back then.
fn perhaps_inferred(world: &World) -> impl Iterator<Item = SourceName> {
    let tells = |event: &&Event| event.outcome == Outcome::Evicted || !event.evicted.is_empty();
    let untold = world.events.iter().take_while(move |event| !tells(event)).filter(|event| {
        let is_full = event.window.is_some_and(|window| window.len >= window.cap);
        let is_private = !matches!(event.guard_mode, Some(GuardMode::Shared | GuardMode::Off));
        event.is_acceptance() && is_full && is_private
    });
    untold.map(|event| event.from.clone())
}

fn find(world: &World, event: &Event, signature: &Signature, of_itself: bool) -> Found {
    let pushed_by =
        if event.is_acceptance() || of_itself { Ok(Some(event)) } else { pushed_by(world, event) };
    let key = key_of(event, signature);
    let acceptances = world.acceptances().remove(&key).unwrap_or_default();
    let live_for_us = world.rules.live_for_us;
    let counts = |it: &&&Event| {
        order(it, event) != Some((Ordering::Greater, true))
            || it.occurred_us - event.occurred_us <= live_for_us
    };
    let known: Vec<&Event> = acceptances.iter().filter(counts).copied().collect();
    let Some(first) = known.iter().min_by_key(|it| it.occurred_us) else { return Found::Skipped };
    // Told before its first acceptance: as of that, whatever pushed it out.
    let first_of_all = acceptances.iter().min_by_key(|it| (it.occurred_us, it.seq));
    let as_of = match pushed_by {
        Ok(pushed_by) => pushed_by.unwrap_or(event),
        Err(_) => event,
    };
    let told_before =
        first_of_all.filter(|first| !before(first, as_of) && first.occurred_us > as_of.occurred_us);
    let as_of = match (told_before, pushed_by) {
        (Some(first), _) => first,
        (None, Err(missing)) => return missing,
        (None, Ok(_)) => as_of,
    };
    let Some(game) = signature.game() else {
        let newest = known.iter().map(|it| it.occurred_us).max().unwrap_or(0);
        let live = as_of.occurred_us - newest < live_for_us;
        return if live { Found::Live } else { Found::Dead };
    };
    let begin_us = begin_us(world, event, game).unwrap_or(first.occurred_us);
    let found = live(world, event, game, as_of, first);
    let blind = world.coverage(&key.ledger, begin_us, as_of).map(|it| it == Coverage::Blind);
    match (found, blind) {
        (Found::Live, [true, true]) => Found::Skipped,
        (Found::Live, [true, false]) => Found::Unsure,
        // In whichever order, it is live; but the product need not see that.
        (Found::Live, _) if *first != as_of && order(first, as_of).is_none() => Found::Unsure,
        _ => found,
    }
}

/// The acceptance that pushed it out, if there is one; else what follows if it may be missing.
fn pushed_by<'a>(world: &'a World, event: &Event) -> Result<Option<&'a Event>, Found> {
    let Some((boot, first)) = event.sequence() else {
        let next = world.events.iter().filter(|it| {
            let after_us = it.occurred_us - event.occurred_us;
            it.is_acceptance()
                && it.from == event.from
                && it.player == event.player
                && (0..=PUSHED_WITHIN_US).contains(&after_us)
        });
        return Ok(next.min_by_key(|it| it.occurred_us));
    };
    let run = &world.sources[&event.from].runs[&boot];
    let named = run.heartbeats.iter().map(|heartbeat| heartbeat.last_seq);
    let last = run.times.keys().chain(run.refused.keys()).copied().chain(named).max();
    let last = last.unwrap_or(first);
    for seq in first + 1..=last {
        // What was lost later may be nothing to it.
        let missing = if seq == first + 1 { Found::Skipped } else { Found::Unsure };
        let next = world.by_sequence(event, boot, seq).ok_or(missing)?;
        let same_room = next.signature.room() == event.signature.room();
        let in_window = match event.window.map(|window| window.scope).unwrap_or_default() {
            WindowScope::Source => true,
            WindowScope::Player => next.player == event.player,
            WindowScope::Room => next.player == event.player && same_room,
        };
        if next.is_acceptance() && in_window {
            return Ok(Some(next));
        }
    }
    Ok(None)
}

fn begin_us(world: &World, event: &Event, game: &Game) -> Option<i64> {
    let of_game = of_player(world, event).filter(|it| it.signature.game() == Some(game));
    of_game.map(|it| it.occurred_us).min()
}

fn of_player<'a>(world: &'a World, event: &'a Event) -> impl Iterator<Item = &'a Event> {
    world.events.iter().filter(|it| {
        it.is_acceptance() && it.player == event.player && it.ledger() == event.ledger()
    })
}

/// Whether the game is among the newest as of an event, if all possible orders agree.
fn live(world: &World, event: &Event, game: &Game, as_of: &Event, first: &Event) -> Found {
    let until = |it: &&Event| *it == as_of || !before(as_of, it);
    let turns = |game: &Game| -> Vec<&Event> {
        let of_game = of_player(world, event).filter(|it| it.signature.game() == Some(game));
        of_game.filter(until).collect()
    };
    let own: Vec<&Event> = turns(game);
    let own_turn = own.iter().any(|it| it.outcome == Outcome::Processed);
    let others: BTreeSet<&Game> = of_player(world, event)
        .filter_map(|it| it.signature.game())
        .filter(|it| *it != game)
        .collect();
    let (mut surely, mut maybe) = (0, 0);
    for other in others {
        let theirs = turns(other);
        let in_turn: Vec<&&Event> =
            theirs.iter().filter(|it| it.outcome == Outcome::Processed).collect();
        let ranked = if own_turn {
            let firsts = own.iter().filter(|it| it.outcome == Outcome::Processed);
            let firsts: Vec<&&Event> = firsts.collect();
            // Newer if our first was before all of theirs.
            let sure = !in_turn.is_empty()
                && firsts.iter().any(|mine| in_turn.iter().all(|it| before(mine, it)));
            let older = in_turn.iter().any(|it| firsts.iter().all(|mine| before(it, mine)));
            (sure, !older && !in_turn.is_empty())
        } else if !in_turn.is_empty() {
            (true, true)
        } else {
            let sure = theirs.iter().all(|it| before(first, it)) && !theirs.is_empty();
            (sure, theirs.iter().all(|it| !before(it, first)) && !theirs.is_empty())
        };
        let already = theirs.iter().any(|it| *it == as_of || before(it, as_of));
        surely += usize::from(ranked.0 && already);
        maybe += usize::from(ranked.1);
    }
    let live_games = world.rules.live_games;
    if surely >= live_games {
        Found::Dead
    } else if maybe < live_games {
        Found::Live
    } else {
        Found::Skipped
    }
}

/// Whether it is not known which acceptance was the first of some game: of two sources at once.
fn first_is_unclear(world: &World, event: &Event) -> bool {
    let all: Vec<&Event> = of_player(world, event).collect();
    // Or the first is no more remembered.
    let games: BTreeSet<&Game> = all.iter().filter_map(|it| it.signature.game()).collect();
    if games.len() > GAMES_MAX {
        return true;
    }
    let same_game = |a: &Event, b: &Event| {
        a.signature.game().is_some() && a.signature.game() == b.signature.game()
    };
    let no_order = |a: &&Event, b: &&Event| same_game(a, b) && order(a, b).is_none();
    all.iter().enumerate().any(|(at, a)| all.iter().skip(at + 1).any(|b| no_order(a, b)))
}
