//! `live_eviction`: the window let go of a signature that could still be replayed.
//!
//! Judged as of the acceptance that pushed it out: the one that carries it; else the next in that
//! window by number of the same boot, else within 2 s; none if it did not fall out for want of
//! room. A signature is live while its game is among the player's newest by first acceptance in
//! turn; a game known only by late acceptances ranks behind those.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::finding::OrderKnown;
use super::order::{Moment, order};
use super::player::{GameFacts, PlayerFacts, Recent};
use super::rule::Context;
use super::settle_groups::Counted;
use super::source::Sources;
use crate::outcome::{Reason, Settings, Signature, Window, WindowScope};

/// Without numbers, the acceptance that pushed it out follows within this (audit.md).
const PUSHED_WITHIN_US: i64 = 2_000_000;

/// One eviction that may be live, or may become so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Eviction {
    pub(super) at: Moment,
    pub(super) hash: i64,
    pub(super) signature: Signature,
    pub(super) game: Option<i64>,
    pub(super) room: Option<i64>,
    /// Told by the acceptance that pushed it out.
    pub(super) inline: bool,
    /// Told by nobody: what the acceptance must have pushed out of a full window.
    pub(super) inferred: bool,
    pub(super) reason: Option<Reason>,
    pub(super) window: Option<Window>,
    pub(super) received_us: i64,
    /// Its first acceptance, where that is known.
    pub(super) accepted: Option<Moment>,
    /// The acceptance that pushed it out, as far as is known; `recent` forgets sooner.
    pub(super) pushed: Option<Moment>,
    /// In which row it is counted.
    pub(super) counted: Option<Counted>,
    /// It could not be judged, and that was counted.
    pub(super) skipped: bool,
}

/// What is to be said of an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Never accepted, as far as is known: judged when it is.
    NeverAccepted,
    /// Its order to others is not known, and the answer depends on it.
    NoOrder,
    /// Somebody was blind since its game began.
    Blind,
    /// It could not be replayed any more.
    NotLive,
    /// It could.
    Live { cause: String, order: OrderKnown, pushed_by: Option<Moment> },
}

/// Judges one eviction of a player.
pub(super) fn judge(context: Context<'_>, player: &PlayerFacts, eviction: &Eviction) -> Standing {
    let Some(accepted) = &eviction.accepted else { return Standing::NeverAccepted };
    let remembered = |hash| player.games.iter().any(|game| game.game == hash);
    let pushed_by = eviction.pushed.clone();
    if !eviction.game.is_none_or(remembered) {
        // Its game is so old that it is not remembered: what was said of it stands.
        return match &eviction.counted {
            Some(Counted { cause, order, .. }) => {
                Standing::Live { cause: cause.clone(), order: *order, pushed_by }
            }
            None => Standing::NotLive,
        };
    }
    let as_of = pushed_by.as_ref().unwrap_or(&eviction.at);
    let as_of = match order(context.sources, accepted, as_of) {
        Some((Ordering::Less | Ordering::Equal, _)) => as_of,
        Some((Ordering::Greater, OrderKnown::Proven))
            if accepted.distance_us(as_of) > context.settings.live_for_us =>
        {
            return Standing::NeverAccepted;
        }
        _ if accepted.at_us > as_of.at_us => accepted,
        _ => as_of,
    };
    let live = live_as_of(context.sources, context.settings, player, eviction, accepted, as_of);
    let order = match live {
        Live::No => return Standing::NotLive,
        Live::NotKnown => return Standing::NoOrder,
        Live::Yes(order) => order,
    };
    let game = eviction.game.and_then(|hash| player.games.iter().find(|game| game.game == hash));
    // How many games came after it may have been missed; how long ago it was accepted was not.
    let missed = |game: &GameFacts| {
        context.ledger.blind(context.sources, game.accepted.at_us, as_of).is_some()
    };
    if game.is_some_and(missed)
        || (as_of.position == eviction.at.position && next_is_missing(context.sources, eviction))
    {
        return Standing::Blind;
    }
    let cause = cause(context, player, eviction, accepted, as_of).to_owned();
    // That windows let the oldest go first is assumed.
    let order = if eviction.inferred { order.max(OrderKnown::Assumed) } else { order };
    Standing::Live { cause, order, pushed_by }
}

/// The acceptance that pushed it out, by what is known now.
pub(super) fn pushed_by(player: &PlayerFacts, eviction: &Eviction) -> Option<Moment> {
    if eviction.inline {
        return Some(eviction.at.clone());
    }
    if !matches!(eviction.reason, None | Some(Reason::Fifo)) {
        return None;
    }
    // In a window for all players somebody else's acceptance may have pushed it out: one of this
    // player's only if it is the very next number.
    let of_all = eviction.window.is_some_and(|window| window.scope == WindowScope::Source);
    let room = eviction.window.is_some_and(|window| window.scope == WindowScope::Room);
    let entered = player.recent.iter().filter(|recent| {
        recent.entered
            && recent.at.source == eviction.at.source
            && (!room || recent.room == eviction.room)
    });
    let by_number = |at: &&Moment| match (at.sequence, eviction.at.sequence) {
        (Some(accepted), Some(evicted)) => {
            let follows = accepted.1 > evicted.1 && (!of_all || accepted.1 - evicted.1 == 1);
            accepted.0 == evicted.0 && follows
        }
        _ => false,
    };
    let by_time = |at: &&Moment| {
        let after_us = at.at_us.saturating_sub(eviction.at.at_us);
        !of_all
            && (at.sequence.is_none() || eviction.at.sequence.is_none())
            && (0..=PUSHED_WITHIN_US).contains(&after_us)
    };
    let known = entered.map(|recent| &recent.at).chain(&eviction.pushed);
    let next = known.clone().filter(by_number).min_by_key(|at| at.sequence);
    next.or_else(|| known.filter(by_time).min_by_key(|at| (at.at_us, at.position))).cloned()
}

/// Whether what pushed it out may be the very event that is missing.
fn next_is_missing(sources: &Sources, eviction: &Eviction) -> bool {
    let of_itself = eviction.inline || !matches!(eviction.reason, None | Some(Reason::Fifo));
    let Some((boot, seq)) = eviction.at.sequence.filter(|_| !of_itself) else { return false };
    let next = seq.saturating_add(1);
    sources.run(eviction.at.source, boot).is_some_and(|run| run.is_missing(next))
}

enum Live {
    Yes(OrderKnown),
    No,
    NotKnown,
}

fn live_as_of(
    sources: &Sources,
    settings: &Settings,
    player: &PlayerFacts,
    eviction: &Eviction,
    accepted: &Moment,
    as_of: &Moment,
) -> Live {
    let Some(hash) = eviction.game else {
        // An opaque key has no game; it is live for a time.
        let age_us = as_of.at_us.saturating_sub(accepted.at_us);
        return if age_us < settings.live_for_us {
            Live::Yes(OrderKnown::Assumed)
        } else {
            Live::No
        };
    };
    live_game(sources, settings, player, hash, as_of)
}

/// Whether a game of a player is live at a moment; `None` where the order decides and is not known.
pub(super) fn is_live(
    sources: &Sources,
    settings: &Settings,
    player: &PlayerFacts,
    game: i64,
    as_of: &Moment,
) -> Option<bool> {
    match live_game(sources, settings, player, game, as_of) {
        Live::Yes(_) => Some(true),
        Live::No => Some(false),
        Live::NotKnown => None,
    }
}

fn live_game(
    sources: &Sources,
    settings: &Settings,
    player: &PlayerFacts,
    hash: i64,
    as_of: &Moment,
) -> Live {
    let Some(game) = player.games.iter().find(|game| game.game == hash) else { return Live::No };
    let (mut newer, mut perhaps, mut known) = (0, 0, OrderKnown::Proven);
    for other in player.games.iter().filter(|other| other.game != hash) {
        match is_newer(sources, other, game, as_of) {
            Some((true, how)) => {
                newer += 1;
                known = known.max(how);
            }
            Some((false, how)) => known = known.max(how),
            None => perhaps += 1,
        }
    }
    if newer >= settings.live_games {
        Live::No
    } else if newer + perhaps >= settings.live_games {
        Live::NotKnown
    } else {
        Live::Yes(known)
    }
}

/// Whether `other` had begun at a moment and ranks above `game`; `None` if the order is not known.
pub(super) fn is_newer(
    sources: &Sources,
    other: &GameFacts,
    game: &GameFacts,
    as_of: &Moment,
) -> Option<(bool, OrderKnown)> {
    let before = |a: &Moment, b: &Moment| {
        order(sources, a, b).map(|(order, how)| (order != Ordering::Greater, how))
    };
    if let Some((false, how)) = before(&other.accepted, as_of) {
        return Some((false, how));
    }
    // A game that was begun in turn after the moment was then at most known by a late acceptance;
    // where that is not known, both are tried.
    let in_turn = |game: &GameFacts| {
        let begun = game.processed.as_ref().map(|first| before(first, as_of));
        let both = matches!(begun, Some(None));
        let surely = matches!(begun, Some(Some((true, _))));
        [(both || surely).then_some(true), (!surely).then_some(false)].into_iter().flatten()
    };
    let rank = |other_in_turn, game_in_turn| match (other_in_turn, game_in_turn) {
        (false, true) => Some((false, OrderKnown::Proven)),
        (true, false) => Some((true, OrderKnown::Proven)),
        (true, true) => before(game.processed.as_ref()?, other.processed.as_ref()?),
        (false, false) => match before(&other.accepted, as_of)? {
            (false, how) => Some((false, how)),
            (true, _) => before(&game.accepted, &other.accepted),
        },
    };
    let mut answer: Option<(bool, OrderKnown)> = None;
    for other_in_turn in in_turn(other) {
        for game_in_turn in in_turn(game) {
            let (newer, how) = rank(other_in_turn, game_in_turn)?;
            match answer {
                Some((known, _)) if known != newer => return None,
                Some((_, known)) => answer = Some((newer, known.max(how))),
                None => answer = Some((newer, how)),
            }
        }
    }
    answer
}

fn cause(
    context: Context<'_>,
    player: &PlayerFacts,
    eviction: &Eviction,
    accepted: &Moment,
    as_of: &Moment,
) -> &'static str {
    match eviction.reason {
        None | Some(Reason::Fifo) => {}
        Some(reason) => return reason.as_str(),
    }
    let newest = newest_games(context, player, as_of);
    let by_then = |signature: &&i64| was_accepted(context, player, **signature, as_of);
    let needed = newest.iter().flat_map(|game| &game.signatures).filter(by_then).count();
    // Inline, the window is told after the acceptance; by itself, after the eviction.
    let full = |window: Window| {
        let before = if eviction.inline { window.len } else { window.len.saturating_add(1) };
        before >= window.cap
    };
    let third = player.recent.iter().any(|recent| {
        recent.entered
            && recent.game.is_some()
            && !newest.iter().any(|game| Some(game.game) == recent.game)
            && order(context.sources, accepted, &recent.at).is_some_and(|(o, _)| o.is_lt())
            && order(context.sources, &recent.at, as_of).is_some_and(|(o, _)| o.is_le())
    });
    match eviction.window {
        Some(window) if !full(window) => "not_full",
        Some(window) if needed as u64 > window.cap => "undersized",
        _ if third => "late_third_game",
        _ if newest.iter().any(|game| Some(game.room) != eviction.room) => "parallel_rooms",
        _ => "unknown",
    }
}

/// The games that are live at a moment.
pub(super) fn newest_games<'a>(
    context: Context<'_>,
    player: &'a PlayerFacts,
    as_of: &Moment,
) -> Vec<&'a GameFacts> {
    let mut games: Vec<&GameFacts> = player
        .games
        .iter()
        .filter(|game| {
            order(context.sources, &game.accepted, as_of).is_none_or(|(order, _)| order.is_le())
        })
        .collect();
    // What began in turn later was known by a late acceptance alone.
    let by_then = |first: &&Moment| {
        order(context.sources, first, as_of).is_none_or(|(order, _)| order.is_le())
    };
    let rank = |game: &GameFacts| {
        let processed = game.processed.as_ref().filter(by_then);
        let first = processed.unwrap_or(&game.accepted);
        (processed.is_some(), first.at_us, first.position)
    };
    games.sort_by_key(|game| std::cmp::Reverse(rank(game)));
    games.truncate(context.settings.live_games as usize);
    games
}

/// Whether a signature of a game was accepted by then: surely, or it is among the newest no more,
/// and so was before them.
pub(super) fn was_accepted(
    context: Context<'_>,
    player: &PlayerFacts,
    signature: i64,
    as_of: &Moment,
) -> bool {
    let mut entries =
        player.recent.iter().filter(|recent| recent.entered && recent.signature == signature);
    let by_then = |recent: &Recent| {
        order(context.sources, &recent.at, as_of).is_some_and(|(order, _)| order.is_le())
    };
    entries.clone().next().is_none() || entries.any(by_then)
}
