//! What one event says about the window that it was decided by: how much the window had to hold,
//! how far back a replay was, how late an acceptance came. Only what is known to have gone into
//! that window before is counted, so a measure is never too high for want of order.

use serde::{Deserialize, Serialize};

use super::advice::{Need, Why};
use super::eviction::is_live;
use super::order::{Moment, is_before, order};
use super::player::{GameFacts, PlayerFacts, Recent};
use super::rule::Context;
use super::source::Sources;
use crate::outcome::{GuardMode, Settings, Window, WindowScope};

/// What is measured at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum What {
    /// How many signatures a window has to hold.
    Live,
    /// How far back a replay was.
    Replay {
        /// It was booked again.
        leaked: bool,
    },
    /// How late an acceptance was.
    Late,
}

/// One event that says something about the window that it was decided by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Measure {
    pub(super) what: What,
    pub(super) at: Moment,
    pub(super) received_us: i64,
    pub(super) signature: i64,
    pub(super) game: Option<i64>,
    pub(super) room: Option<i64>,
    pub(super) window: Option<Window>,
    pub(super) mode: Option<GuardMode>,
    /// Of a replay: the acceptance that it repeats.
    pub(super) first: Option<Moment>,
}

impl Measure {
    pub(super) fn scope(&self) -> WindowScope {
        self.window.map_or(WindowScope::Player, |window| window.scope)
    }
}

/// What measures are made by.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) sources: &'a Sources,
    pub(super) settings: &'a Settings,
    pub(super) player: &'a PlayerFacts,
}

impl<'a> Known<'a> {
    pub(super) fn of(context: Context<'a>, player: &'a PlayerFacts) -> Self {
        Self { sources: context.sources, settings: context.settings, player }
    }

    fn is_live(self, game: i64, as_of: &Moment) -> Option<bool> {
        is_live(self.sources, self.settings, self.player, game, as_of)
    }
}

/// What went into the window of an event before it, oldest first.
fn before<'a>(known: Known<'a>, measure: &'a Measure) -> impl Iterator<Item = &'a Recent> {
    let name = |id| known.sources.name(id);
    known.player.recent.iter().filter(move |recent| {
        let shares = recent.at.source == measure.at.source
            || (measure.mode == Some(GuardMode::Shared)
                && recent.mode == Some(GuardMode::Shared)
                && name(measure.at.source).zip(name(recent.at.source)).is_some_and(
                    |(own, other)| own.service == other.service && own.env == other.env,
                ));
        let in_scope = match measure.scope() {
            WindowScope::Player => true,
            WindowScope::Room => recent.room == measure.room,
            WindowScope::Source => false,
        };
        recent.entered
            && !recent.unsure
            && shares
            && in_scope
            && recent.scope().unwrap_or_default() == measure.scope()
            && is_before(known.sources, &recent.at, &measure.at)
    })
}

/// A number, and whether it is more: further back than is remembered.
pub(super) type Counted = (u64, bool);

/// How many other signatures went into the window between an acceptance and its replay.
fn distance(known: Known<'_>, measure: &Measure) -> Option<Counted> {
    let first = measure.first.as_ref()?;
    let mut others: Vec<i64> = Vec::new();
    for recent in before(known, measure) {
        let is_later = is_before(known.sources, first, &recent.at);
        if is_later && recent.signature != measure.signature && !others.contains(&recent.signature)
        {
            others.push(recent.signature);
        }
    }
    let forgotten = known.player.forgot(known.sources, first);
    Some((others.len() as u64, forgotten))
}

/// The signatures that the window has to hold at an acceptance, and why.
fn live(known: Known<'_>, measure: &Measure) -> Option<Need> {
    let mut held: Vec<&Recent> = Vec::new();
    let itself = known.player.recent.iter().filter(|recent| recent.at == measure.at);
    for recent in before(known, measure).chain(itself) {
        if !held.iter().any(|other| other.signature == recent.signature) {
            held.push(recent);
        }
    }
    let is_live = |recent: &&&Recent| match recent.game {
        Some(game) => known.is_live(game, &measure.at) == Some(true),
        // An opaque key has no game; it is live for a time.
        None => measure.at.at_us.saturating_sub(recent.at.at_us) < known.settings.live_for_us,
    };
    let oldest = held.iter().find(is_live)?;
    let oldest = held.iter().position(|recent| recent.at == oldest.at)?;
    let held = held.get(oldest..)?;
    let (games, settlements) = games(held);
    let more = oldest == 0
        && held
            .first()
            .and_then(|first| game_of(known.player, first.game))
            .is_some_and(|game| known.player.forgot(known.sources, &game.accepted));
    let late = held.iter().filter_map(|recent| lateness(known, recent.game, &recent.at));
    let late = late.map(|(_, games)| games).max().unwrap_or(0);
    let games = games.min(u64::from(known.settings.live_games));
    Some(Need { capacity: held.len() as u64, more, why: Why::Live { settlements, games, late } })
}

/// How many games, and how many signatures of one of them at most.
fn games(held: &[&Recent]) -> (u64, u64) {
    let mut counts: Vec<(Option<i64>, u64)> = Vec::new();
    for recent in held {
        match counts.iter_mut().find(|(game, _)| *game == recent.game) {
            Some((_, count)) => *count += 1,
            None => counts.push((recent.game, 1)),
        }
    }
    (counts.len() as u64, counts.iter().map(|(_, count)| *count).max().unwrap_or(0))
}

fn game_of(player: &PlayerFacts, game: Option<i64>) -> Option<&GameFacts> {
    player.games.iter().find(|known| Some(known.game) == game)
}

/// How long after its game's first acceptance an acceptance came, and how many games had begun
/// since; `None` where it is that first one, or the game is not remembered.
fn lateness(known: Known<'_>, game: Option<i64>, at: &Moment) -> Option<(u64, u64)> {
    let game = game_of(known.player, game)?;
    if !is_before(known.sources, &game.accepted, at) {
        return None;
    }
    let began_between = |other: &&GameFacts| {
        other.processed.as_ref().is_some_and(|began| {
            is_before(known.sources, &game.accepted, began) && is_before(known.sources, began, at)
        })
    };
    let others = known.player.games.iter().filter(|other| other.game != game.game);
    let late_us = at.at_us.saturating_sub(game.accepted.at_us).max(0).unsigned_abs();
    Some((late_us, others.filter(began_between).count() as u64))
}

/// What an event comes to.
pub(super) enum Found {
    Live(Need),
    Replay { others: Counted, is_live: bool },
    Late { late_us: u64, games: u64 },
}

pub(super) fn measure(known: Known<'_>, measure: &Measure) -> Option<Found> {
    match measure.what {
        What::Live => live(known, measure).map(Found::Live),
        What::Replay { .. } => {
            let is_over =
                |game| measure.first.is_some() && known.is_live(game, &measure.at) == Some(false);
            let is_live = !measure.game.is_some_and(is_over);
            Some(Found::Replay { others: distance(known, measure)?, is_live })
        }
        What::Late => lateness(known, measure.game, &measure.at)
            .map(|(late_us, games)| Found::Late { late_us, games }),
    }
}

/// Whether nothing can come any more that makes a measure another one: it depends on one source
/// alone, and that has no hole.
pub(super) fn is_certain(known: Known<'_>, of: &Measure, result: &Found) -> bool {
    let from = match (result, of.what) {
        (Found::Live(_), _) => return false,
        // One that would be told of is looked at twice.
        (Found::Replay { is_live: false, .. }, _) => return false,
        (_, What::Late) => game_of(known.player, of.game).map(|game| &game.accepted),
        _ => of.first.as_ref(),
    };
    let Some(from) = from else { return false };
    let alone = of.mode != Some(GuardMode::Shared) && from.source == of.at.source;
    alone
        && from
            .sequence
            .zip(of.at.sequence)
            .is_some_and(|(from, to)| known.sources.whole_between(of.at.source, from, to))
}

/// Whether all that a need counts was heard: no source was blind since its oldest game began.
pub(super) fn is_heard(context: Context<'_>, player: &PlayerFacts, of: &Measure) -> bool {
    let known = Known::of(context, player);
    let live_since = player
        .games
        .iter()
        .filter(|game| known.is_live(game.game, &of.at) == Some(true))
        .map(|game| game.accepted.at_us)
        .min();
    let from_us = live_since.unwrap_or(of.at.at_us);
    context.ledger.blind(context.sources, from_us, &of.at).is_none()
}

impl PlayerFacts {
    /// Whether a moment is as old as what is not remembered any more.
    fn forgot(&self, sources: &Sources, at: &Moment) -> bool {
        self.is_full()
            && self.recent.first().is_some_and(|oldest| {
                order(sources, at, &oldest.at).is_none_or(|(order, _)| order.is_lt())
            })
    }
}
