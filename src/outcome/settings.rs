//! What of the audit can be set, with the defaults of `audit.md`. A change is a record of the
//! log: the log folded again says the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `[audit]` of the configuration. All times in microseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// How long a live eviction waits for the acceptance that pushed it out.
    pub eviction_grace_us: i64,
    /// How long a block waits for the acceptance that makes it right.
    pub block_grace_us: i64,
    /// How long the collector waits for a missing number.
    pub gap_grace_us: i64,
    /// How long a new ledger is blind: guards may be warm already.
    pub warmup_us: i64,
    /// How long a message can come back.
    pub horizon_us: i64,
    /// How many of a player's newest games are live.
    pub live_games: u32,
    /// How long an opaque key is live.
    pub live_for_us: i64,
    /// How long after its use a signature may come again as a new one.
    pub reuse_after: ReuseAfter,
}

/// How far apart two honest uses of one signature are at least, by ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReuseAfter {
    /// Where nothing else is said: what senders promise (design.md: 90 days).
    pub default_us: i64,
    /// The ledgers that say something else.
    pub of_us: BTreeMap<String, i64>,
}

impl ReuseAfter {
    /// In this ledger.
    pub fn in_us(&self, ledger: &str) -> i64 {
        self.of_us.get(ledger).copied().unwrap_or(self.default_us)
    }
}

impl Default for Settings {
    fn default() -> Self {
        let seconds = |n: i64| n * 1_000_000;
        Self {
            eviction_grace_us: seconds(2),
            block_grace_us: seconds(30),
            gap_grace_us: seconds(30),
            warmup_us: seconds(24 * 3600),
            horizon_us: seconds(2 * 3600),
            live_games: 2,
            live_for_us: seconds(5 * 60),
            reuse_after: ReuseAfter { default_us: seconds(90 * 24 * 3600), of_us: BTreeMap::new() },
        }
    }
}
