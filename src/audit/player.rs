//! What is known of one player in one ledger: games, windows, evictions.

use serde::{Deserialize, Serialize};

use super::eviction::Eviction;
use super::facts::{ACCEPTANCES_MAX, Acceptance, push_newest};
use super::infer::Untold;
use super::loss::Loss;
use super::measure::Measure;
use super::order::Moment;
use super::report::Stayed;
use super::row::Row;
use super::source::SourceId;
use super::table::Stored;
use crate::outcome::{GuardMode, Id, Reason, Window, WindowScope};

/// Games of a player remembered: the newest. Two are live; the others rank what comes late.
const GAMES_MAX: usize = 8;
/// Acceptances and evictions of a player remembered, for the contents of its windows.
pub(super) const RECENT_MAX: usize = 16;
/// Refusals of a player remembered that said something new of a window, or may have.
pub(super) const STAYED_MAX: usize = 8;
/// Evictions of a player that may still be judged anew: a live one every second, while one of
/// the sources is a minute behind.
const EVICTIONS_MAX: usize = 64;
/// Sources that wrote for a player, kept to know whether a window was its only one.
const WRITERS_MAX: usize = 8;

/// One game of a player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GameFacts {
    pub(super) game: i64,
    pub(super) room: i64,
    /// First acceptance in turn.
    pub(super) processed: Option<Moment>,
    /// First acceptance of any sort.
    pub(super) accepted: Moment,
    /// Its accepted signatures.
    pub(super) signatures: Vec<i64>,
}

/// What entered or left a window of a player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Recent {
    pub(super) at: Moment,
    pub(super) signature: i64,
    /// By its own event; inline evictions come with their acceptance.
    pub(super) entered: bool,
    pub(super) game: Option<i64>,
    pub(super) room: Option<i64>,
    pub(super) left: Vec<i64>,
    /// The window after it, and whose memory it is.
    pub(super) window: Option<Window>,
    pub(super) mode: Option<GuardMode>,
    /// It may have given its place back: its effect failed or is not known.
    pub(super) unsure: bool,
    /// Its signature was accepted, blocked or held before.
    pub(super) again: bool,
    /// Its guard is none whose windows are compared.
    pub(super) other_guard: bool,
    /// Why it fell out.
    pub(super) reason: Option<Reason>,
}

impl Recent {
    /// What its window is for.
    pub(super) fn scope(&self) -> Option<WindowScope> {
        self.window.map(|window| window.scope)
    }
}

/// What is known of one player in one ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerFacts {
    pub(super) ledger: String,
    pub(super) player: Id,
    pub(super) games: Vec<GameFacts>,
    pub(super) recent: Vec<Recent>,
    pub(super) writers: Vec<SourceId>,
    pub(super) evictions: Vec<Eviction>,
    /// Acceptances into full windows that told of no eviction.
    pub(super) untold: Vec<Untold>,
    /// What the window advisor is not sure of yet.
    pub(super) unmeasured: Vec<Measure>,
    /// What refusals said of a window, where that may be news.
    pub(super) stayed: Vec<Stayed>,
    /// Reports by which a window seems to have lost something.
    pub(super) losses: Vec<Loss>,
    /// Since this receipt, its newest games may be too many for a window.
    pub(super) too_many: Option<i64>,
    /// Findings about several players in which this one is counted.
    pub(super) counted_in: Vec<String>,
    #[serde(skip)]
    pub(super) rows: Vec<Row>,
}

impl Stored for PlayerFacts {
    fn rows(&self) -> &[Row] {
        &self.rows
    }

    fn take_back(&mut self, rows: Vec<Row>) {
        self.rows = rows;
    }
}

impl PlayerFacts {
    pub(super) fn new(ledger: String, player: Id) -> Self {
        Self {
            ledger,
            player,
            games: Vec::new(),
            recent: Vec::new(),
            writers: Vec::new(),
            evictions: Vec::new(),
            untold: Vec::new(),
            unmeasured: Vec::new(),
            stayed: Vec::new(),
            losses: Vec::new(),
            too_many: None,
            counted_in: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Nothing about its windows is in question.
    pub(super) fn is_plain(&self) -> bool {
        self.unmeasured.is_empty()
            && self.untold.is_empty()
            && self.evictions.is_empty()
            && self.losses.is_empty()
            && self.too_many.is_none()
    }

    /// Whether a game is remembered.
    pub(super) fn remembers(&self, game: i64) -> bool {
        self.games.iter().any(|known| known.game == game)
    }

    /// Takes an acceptance into the player's games.
    pub(super) fn play(&mut self, game: i64, room: i64, signature: i64, late: bool, at: &Moment) {
        let earlier = |old: &Moment| at.list_order(old).is_lt();
        match self.games.iter_mut().find(|old| old.game == game) {
            Some(old) => {
                if earlier(&old.accepted) {
                    old.accepted = at.clone();
                }
                if !late && old.processed.as_ref().is_none_or(earlier) {
                    old.processed = Some(at.clone());
                }
                if !old.signatures.contains(&signature) && old.signatures.len() < ACCEPTANCES_MAX {
                    old.signatures.push(signature);
                }
            }
            None => {
                let processed = (!late).then(|| at.clone());
                let accepted = at.clone();
                let signatures = vec![signature];
                self.games.push(GameFacts { game, room, processed, accepted, signatures });
                self.forget_oldest_game();
            }
        }
    }

    fn forget_oldest_game(&mut self) {
        if self.games.len() <= GAMES_MAX {
            return;
        }
        let age = |game: &GameFacts| {
            let moment = game.processed.as_ref().unwrap_or(&game.accepted);
            (game.processed.is_some(), moment.at_us, moment.position)
        };
        let oldest = self.games.iter().enumerate().min_by_key(|(_, game)| age(game));
        if let Some((i, _)) = oldest {
            self.games.swap_remove(i);
        }
    }

    /// Returns whether somebody wrote for the player who had not before.
    pub(super) fn remember(&mut self, recent: Recent) -> bool {
        let source = recent.at.source;
        let _ = push_newest(&mut self.recent, recent, RECENT_MAX, |recent| &recent.at);
        let is_new = !self.writers.contains(&source) && self.writers.len() < WRITERS_MAX;
        if is_new {
            self.writers.push(source);
        }
        is_new && self.writers.len() > 1
    }

    /// What is known now of acceptances of a signature: whether it may have given its place back.
    /// Returns whether that changes anything.
    pub(super) fn doubt(
        &mut self,
        signature: i64,
        accepted: &[Acceptance],
        received_us: i64,
    ) -> bool {
        let mut changed = false;
        for recent in self.recent.iter_mut().filter(|recent| recent.signature == signature) {
            let same = accepted.iter().find(|accepted| recent.entered && accepted.at == recent.at);
            if let Some(accepted) = same {
                changed |= accepted.stands() == recent.unsure;
                recent.unsure = !accepted.stands();
            }
        }
        if changed {
            // What it may have given back counts for all that was told later.
            let told: Vec<Moment> = self.reports().map(|report| report.at.clone()).collect();
            told.iter().for_each(|at| self.look_for_loss(at, received_us));
        }
        changed
    }

    /// Whether something that entered or left a window may be remembered no more.
    pub(super) fn is_full(&self) -> bool {
        self.recent.len() >= RECENT_MAX
    }

    /// Takes an eviction to be judged; returns the oldest, if there are too many.
    pub(super) fn watch(&mut self, eviction: Eviction) -> Option<Eviction> {
        push_newest(&mut self.evictions, eviction, EVICTIONS_MAX, |eviction| &eviction.at)
    }
}
