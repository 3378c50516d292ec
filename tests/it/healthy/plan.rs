//! What a healthy fleet is like: how it is balanced, what its windows are, how it tells.
//!
//! Healthy is whom the contract of `design.md` and `wire.md` fits: a window that holds all that
//! can come back, reached by whatever comes back. So a fleet that is not sticky shares its windows,
//! and where nothing tells that a source is gone (nobody watched, no numbers) nothing gets lost.

use dedupwatch::audit::Settings;
use dedupwatch::outcome::{GuardMode, WindowScope};

use super::dice::Dice;
use super::{BEGIN_US, COPY_US_MAX, SECOND_US};

/// How a delivery finds its instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    ByPlayer,
    ByRoom,
    NotSticky,
}

/// How a guard tells what fell out of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evictions {
    WithTheAcceptance,
    BeforeIt,
    Untold,
}

/// In which order the settlements of a player come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Games {
    /// The final of a game before the next is settled.
    Punctual,
    /// The final of a game after the next was settled.
    Late,
    /// Now so, now so: that takes a fifth place.
    Mixed,
}

/// A fleet.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub instances: usize,
    pub players: usize,
    pub balance: Balance,
    pub mode: Option<GuardMode>,
    pub scope: WindowScope,
    pub capacity: usize,
    pub games: Games,
    pub evictions: Evictions,
    /// They send heartbeats.
    pub watched: bool,
    /// They count their events.
    pub numbered: bool,
    /// A boot is its start time; else a number.
    pub started: bool,
    /// How far each clock is ahead.
    pub ahead_us: Vec<i64>,
    /// Threads stamp before they wait for the lock, so long at most.
    pub stamped_before_us: i64,
    /// Threads take their number after the lock, so late at most.
    pub numbered_after_us: i64,
    /// How long a batch waits for company.
    pub gather_us: i64,
    /// So many of 100 batches are sent again because no answer came, or come only at a later try.
    pub troubled: i64,
    /// Settlements carry refs, message ids, versions of the room's state.
    pub refs: bool,
    pub messages: bool,
    pub states: bool,
    /// Instances of which a later run has another name.
    pub renamed: bool,
    /// What a private window remembers outlives its run.
    pub kept: bool,
    /// The collector takes nothing before.
    pub install_us: i64,
    /// The collector takes nothing from, to; then the backlog drains for so long.
    pub outage: Option<(i64, i64, i64)>,
    /// How long the fleet is watched.
    pub length_us: i64,
    pub settings: Settings,
}

impl Plan {
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let dice = &mut dice;
        let balance = dice.pick(&[Balance::ByPlayer, Balance::ByRoom, Balance::NotSticky]);
        let mode = match balance {
            Balance::NotSticky => Some(GuardMode::Shared),
            _ => dice.pick(&[None, Some(GuardMode::Local), Some(GuardMode::Shared)]),
        };
        let numbered = dice.chance(88);
        let watched = numbered && dice.chance(80);
        let warm = numbered && dice.chance(25);
        let outage = watched && dice.chance(35);
        let games = dice.pick(&[Games::Punctual, Games::Late, Games::Mixed]);
        let length_us = SECOND_US * if outage { 1_200 } else { dice.between(120, 500) };
        let from_us = BEGIN_US + SECOND_US * dice.between(60, 180);
        let drain_us = SECOND_US * dice.between(2, 150);
        let settings = Settings {
            warmup_us: SECOND_US * Self::warmup_s(dice, warm),
            // A message comes back sooner than that; where the collector was away, counted from
            // before that.
            horizon_us: if outage || dice.chance(40) { 7_200 } else { 150 } * SECOND_US,
            ..Settings::default()
        };
        let instances = dice.below(4) + 1;
        // Who forgets can't tell what is late from what is in turn.
        let tells_late = mode == Some(GuardMode::Shared) || games == Games::Punctual;
        let tight = games != Games::Mixed && balance == Balance::ByPlayer;
        let states = tells_late && dice.chance(40);
        // Which of two games began first, and which version came first, is told by number alone.
        let numbered_after_us =
            if states { 0 } else { Dice::new(seed ^ 0x7d).pick(&[0, 0, 2_000, 20_000]) };
        let tight = tight && numbered_after_us == 0;
        let spare = if numbered_after_us > 0 { 40 } else { 0 };
        Self {
            seed,
            instances,
            players: dice.below(4) + 1,
            balance,
            mode,
            scope: dice.pick(&[WindowScope::Player, WindowScope::Player, WindowScope::Room]),
            capacity: if tight && dice.chance(60) { 4 } else { 5 + spare + dice.below(4) },
            games,
            evictions: dice.pick(&[
                Evictions::WithTheAcceptance,
                Evictions::BeforeIt,
                Evictions::Untold,
            ]),
            watched,
            numbered,
            started: dice.chance(70),
            ahead_us: (0..instances).map(|_| dice.between(-150_000, 150_000)).collect(),
            // The stamps of who does not count are all that tells the order: taken under the lock.
            stamped_before_us: if numbered { dice.pick(&[0, 0, 2_000, 200_000]) } else { 0 },
            numbered_after_us,
            gather_us: dice.pick(&[1_000, 100_000, 1_000_000]),
            troubled: dice.pick(&[0, 5, 30]),
            refs: dice.chance(30),
            messages: dice.chance(30),
            states,
            renamed: dice.chance(40),
            kept: dice.chance(60),
            install_us: if warm { BEGIN_US + SECOND_US * dice.between(5, 60) } else { BEGIN_US },
            outage: outage.then_some((from_us, from_us + 600 * SECOND_US, drain_us)),
            length_us,
            settings,
        }
    }

    /// A collector that is new to a fleet that is not is told so, for as long as a message can come
    /// back at least.
    fn warmup_s(dice: &mut Dice, warm: bool) -> i64 {
        if dice.chance(25) {
            86_400
        } else if warm {
            COPY_US_MAX / SECOND_US + 60
        } else {
            0
        }
    }

    /// A run that ends without goodbye may take what it had not told with it. Where nobody watches,
    /// at most a later run of the same name shows that, and too late.
    pub fn may_lose(&self) -> bool {
        self.watched
    }

    /// What is remembered ends with the run of a private guard; under the same name that would be a
    /// lost window.
    pub fn keeps(&self) -> bool {
        self.mode == Some(GuardMode::Shared) || self.kept || !self.renamed
    }
}
