//! `undersized_window`.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use dedupwatch::audit::{Kind, Severity};
use dedupwatch::outcome::{Effect, Event, GuardMode, Outcome, WindowScope};

use super::verdict::{Verdict, Verdicts};
use super::world::{Coverage, World, identity, order};

/// The one cause.
const CAUSE: &str = "games_exceed_capacity";
/// So many acceptances and evictions, and games, of a player are kept: bounds of the product.
const RECENT_MAX: usize = 16;
const GAMES_MAX: usize = 8;

enum Found {
    TooMany,
    Fine,
    Unsure,
}

pub fn judge(world: &World, verdicts: &mut Verdicts) {
    // A reading: a player counts once for each source.
    let mut found: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for event in &world.events {
        let of_player = event.window.is_some_and(|window| window.scope == WindowScope::Player);
        let guarded = event.guard_mode != Some(GuardMode::Off);
        if !event.is_acceptance() || !of_player || !guarded {
            continue;
        }
        match find(world, event) {
            Found::Fine => {}
            Found::Unsure => verdicts.unsure(Kind::UndersizedWindow, &(&event.from, CAUSE)),
            Found::TooMany => {
                let players: &mut BTreeSet<_> = found.entry(event.from.clone()).or_default();
                players.insert((event.ledger(), event.player.clone()));
                if !world.lasting {
                    verdicts.unsure(Kind::UndersizedWindow, &(&event.from, CAUSE));
                }
            }
        }
    }
    for (from, players) in found {
        let subject = (&from, CAUSE);
        let verdict = Verdict::of(Kind::UndersizedWindow, &subject, Severity::Warning);
        verdicts.key(Verdict { count: players.len() as u64, ..verdict });
    }
}

/// Whether the games that were live as of an acceptance came to more than its window holds.
fn find(world: &World, event: &Event) -> Found {
    let cap = event.window.map_or(u64::MAX, |window| window.cap);
    let same = |it: &&Event| it.player == event.player && it.ledger() == event.ledger();
    let told: Vec<&Event> = world.events.iter().filter(same).collect();
    let of_windows = told.iter().filter(|it| it.is_acceptance() || it.outcome == Outcome::Evicted);
    let accepted: Vec<&Event> = told.iter().filter(|it| it.is_acceptance()).copied().collect();
    let in_games = accepted.iter().filter(|it| it.signature.game().is_some());
    let in_games: Vec<&Event> = in_games.copied().collect();
    let games: BTreeSet<_> = in_games.iter().filter_map(|it| it.signature.game()).collect();
    let all: BTreeSet<String> = in_games.iter().map(|it| identity(&it.signature)).collect();
    if all.len() as u64 <= cap {
        return Found::Fine;
    }
    // Or clock and numbers say otherwise: then the product leaves it.
    let no_order = |one: &Event, other: &Event| {
        let by_clock = one.occurred_us.cmp(&other.occurred_us);
        one != other && order(one, other).is_none_or(|(known, _)| known != by_clock)
    };
    if of_windows.count() > RECENT_MAX
        || games.len() > GAMES_MAX
        || in_games.iter().any(|one| in_games.iter().any(|other| no_order(one, other)))
        || in_games.iter().any(|one| no_order(one, event))
    {
        return Found::Unsure;
    }
    let by_then = |it: &&&Event| **it == event || cmp(it, &event) == Ordering::Less;
    let known: Vec<&Event> = in_games.iter().filter(by_then).copied().collect();
    let of_live = of_live_games(world, &known);
    // A reading: what may have given its place back, each time by then, needs none.
    let may_be_back = |it: &Event| {
        let mut same =
            known.iter().filter(|one| identity(&one.signature) == identity(&it.signature));
        same.all(|it| matches!(it.effect, Some(Effect::Failed | Effect::Unknown)))
    };
    // And what was told of that only later may come when it is said already.
    let told_later = |it: &Event| {
        told.iter().any(|one| {
            one.outcome == Outcome::EffectReported
                && identity(&one.signature) == identity(&it.signature)
        })
    };
    let count = |needs: &dyn Fn(&Event) -> bool| {
        let needed = of_live.iter().filter(|it| needs(it));
        needed.map(|it| identity(&it.signature)).collect::<BTreeSet<String>>().len() as u64
    };
    let least = count(&|it| !may_be_back(it) && !told_later(it));
    let most = count(&|it| !may_be_back(it) || told_later(it));
    if most <= cap {
        return Found::Fine;
    }
    if least <= cap {
        return Found::Unsure;
    }
    let began_us = of_live.iter().map(|it| it.occurred_us).min().unwrap_or(event.occurred_us);
    let began_us = began_us.min(event.occurred_us);
    match world.coverage(&event.ledger(), began_us, event).map(|it| it == Coverage::Blind) {
        [true, true] if world.lasting => Found::Fine,
        [false, false] => Found::TooMany,
        _ => Found::Unsure,
    }
}

fn cmp(a: &&Event, b: &&Event) -> Ordering {
    order(a, b).map_or(Ordering::Equal, |(order, _)| order)
}

/// Acceptances of the newest games. Games known by late ones alone rank behind those begun in turn.
fn of_live_games<'a>(world: &World, known: &[&'a Event]) -> Vec<&'a Event> {
    let games: BTreeSet<_> = known.iter().filter_map(|it| it.signature.game()).collect();
    let mut ranked: Vec<(bool, &Event)> = Vec::new();
    for game in games {
        let of_game = || known.iter().filter(|it| it.signature.game() == Some(game)).copied();
        let in_turn = of_game().filter(|it| it.outcome == Outcome::Processed).min_by(cmp);
        let first = in_turn.or_else(|| of_game().min_by(cmp));
        ranked.extend(first.map(|first| (in_turn.is_some(), first)));
    }
    ranked.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| cmp(&b.1, &a.1)));
    ranked.truncate(world.rules.live_games);
    let live: BTreeSet<_> = ranked.iter().filter_map(|(_, first)| first.signature.game()).collect();
    let is_live = |it: &&Event| it.signature.game().is_some_and(|game| live.contains(game));
    known.iter().copied().filter(is_live).collect()
}
