//! A guard with real windows, and what it tells.

use std::collections::{BTreeMap, VecDeque};

use dedupwatch::outcome::{Boot, GuardMode, Signature, SourceName, WindowScope};

use super::BEGIN_US;
use super::dice::Dice;
use super::guards::named;

/// One guard.
pub struct Guard {
    pub from: SourceName,
    pub boot: Boot,
    pub seq: u64,
    pub windows: BTreeMap<String, VecDeque<Signature>>,
    pub cap: usize,
    pub scope: WindowScope,
    pub mode: Option<GuardMode>,
    pub watched: bool,
    pub counts: bool,
    pub tells_window: bool,
    pub inline: bool,
    pub tells_evictions: bool,
    pub skew_us: i64,
    pub event_ids: u64,
}

impl Guard {
    pub fn new(dice: &mut Dice, name: &str, calm: bool) -> Self {
        let counts = dice.chance(88);
        let boot = if dice.chance(50) {
            Boot::Number(1)
        } else {
            Boot::Started { at_us: BEGIN_US - dice.between(0, 5_000_000) }
        };
        let mode = *dice.pick(&[
            None,
            None,
            Some(GuardMode::Local),
            Some(GuardMode::Local),
            Some(GuardMode::Shared),
        ]);
        Self {
            from: named(name),
            boot,
            seq: if dice.chance(12) { dice.below(6) } else { 0 },
            windows: BTreeMap::new(),
            cap: usize::try_from(dice.between(3, 5)).unwrap(),
            scope: *dice.pick(&[
                WindowScope::Player,
                WindowScope::Player,
                WindowScope::Player,
                WindowScope::Room,
                WindowScope::Source,
            ]),
            mode,
            watched: counts && (calm || dice.chance(70)),
            counts,
            tells_window: dice.chance(85),
            inline: dice.chance(50),
            tells_evictions: dice.chance(85),
            skew_us: dice.between(-300_000, 300_000),
            event_ids: 0,
        }
    }

    /// Which of its windows a settlement belongs to.
    pub fn place(&self, player: &str, signature: &Signature) -> String {
        match self.scope {
            WindowScope::Player => player.into(),
            WindowScope::Room => {
                format!("{player} {}", signature.room().map_or("", |room| room.as_str()))
            }
            WindowScope::Source => String::new(),
        }
    }
}
