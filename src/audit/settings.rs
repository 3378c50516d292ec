//! What of the audit can be set, with the defaults of `audit.md`.

/// `[audit]` of the configuration. All times in microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        }
    }
}
