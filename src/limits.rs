//! Every bound of the program, with its reason. What is not bounded here grows until it fails.

/// Events of one request (wire.md).
pub const BATCH_EVENTS_MAX: usize = 10_000;
/// A body as sent (wire.md).
pub const BODY_BYTES_MAX: usize = 10 << 20;
/// A body inflated (wire.md): a bomb of gzip or zstd stops here.
pub const BODY_INFLATED_BYTES_MAX: usize = 64 << 20;
/// The largest window of a zstd frame, as a power of two: 8 MiB, which is all that RFC 9659 allows
/// as a content encoding. It is memory beyond that of the body.
pub const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// One event (wire.md).
pub const EVENT_BYTES_MAX: usize = 16 << 10;
/// Signatures that one acceptance may name as pushed out: each costs the judge facts. A window
/// gives up one at a time, or all of it when its capacity falls.
pub const EVICTED_MAX: usize = 64;
/// How long a body may take to arrive, in seconds (wire.md).
pub const BODY_SECONDS_MAX: u64 = 30;
/// How old an event may be (design.md, section 3).
pub const EVENT_AGE_US_MAX: i64 = 14 * DAY_US;
/// How far ahead of the collector's clock an event may be (wire.md).
pub const EVENT_AHEAD_US_MAX: i64 = 10 * MINUTE_US;
/// Errors told in one answer (wire.md).
pub const ERRORS_TOLD_MAX: usize = 100;
/// Ranges in the three sets of one boot; beyond, the lowest hole is lost (wire.md).
pub const RANGES_OF_A_BOOT_MAX: usize = 4_096;
/// Sources known at a time, about 1 KB each in memory: far more than one casino's guards. A source
/// is forgotten when it has said nothing for [`IDENTITY_AGE_US_MAX`], so a fleet may name its
/// sources by pod: 700 new ones a day. Those of transitions are known apart, as many again.
pub const SOURCES_MAX: usize = 10_000;
/// Boots known at a time, of all sources: a guard that restarts every minute for a week makes
/// 10,000. Of transitions as many again.
pub const BOOTS_MAX: usize = 100_000;
/// Of these, refused events make so many at most: a broken sender that invents boots leaves the
/// other half to those that send what is right.
pub const BOOTS_REFUSED_MAX: usize = BOOTS_MAX / 2;
/// Ledgers known, for good: the judge holds each with its sources, about 1 KB. One for each
/// service, env and currency of a very large house is a few hundred.
pub const LEDGERS_MAX: usize = 10_000;
/// Of these, refused events make so many at most, as with boots.
pub const LEDGERS_REFUSED_MAX: usize = LEDGERS_MAX / 2;
/// Heartbeats of a boot by which a repeat is seen: the newest three minutes.
pub const HEARTBEATS_KNOWN_MAX: usize = 36;
/// Rows of old identities that one step forgets: about 20 ms.
pub const FORGET_ROWS_MAX: u32 = 10_000;
/// How long an identity is known after its receipt: an event can be told again for 14 days after
/// it happened, and may have come 10 minutes before that by the sender's clock.
pub const IDENTITY_AGE_US_MAX: i64 = EVENT_AGE_US_MAX + EVENT_AHEAD_US_MAX;
/// How long a watched source may say nothing (audit.md).
pub const SILENCE_US: i64 = 60 * SECOND_US;
/// Text kept of a refused event (design.md).
pub const REFUSED_TEXT_BYTES_MAX: usize = 1 << 10;

/// Events waiting for the writer: two seconds of work at 50,000/s. A usual event takes 1.2 KB,
/// as a value and as its text in the log: 120 MB. Large ones are bounded by their bytes.
pub const QUEUE_EVENTS_MAX: usize = 100_000;
/// Bytes of bodies under way, as sent or inflated, from before a body is read until its events are
/// written: two of the largest inflated, or 300 pushes of 1,000 usual events of 400 bytes. A body
/// whose length is not told counts as one of [`BODY_BYTES_MAX`] until it is there, a small one as
/// [`EVENT_BYTES_MAX`].
pub const BYTES_UNDER_WAY_MAX: usize = 2 * BODY_INFLATED_BYTES_MAX;
/// Bodies inflated and decoded at a time: one for each core of a usual machine. Each may hold
/// [`BODY_INFLATED_BYTES_MAX`] beyond the room that it had taken.
pub const DECODED_AT_A_TIME: usize = 4;
/// Events of one commit (design.md).
pub const GROUP_EVENTS_MAX: usize = 20_000;
/// Tries of one group before it is split (design.md).
pub const GROUP_TRIES_MAX: u32 = 3;
/// How long a statement waits for another process that writes, in milliseconds: a group that is
/// tried as often as it may be, and then the database once more, is answered within 5 s.
pub const DATABASE_BUSY_MS: u64 = 5_000 / (GROUP_TRIES_MAX as u64 + 1);
/// Rows kept in `commits` (design.md).
pub const COMMITS_KEPT: i64 = 1_000;
/// How far the audit may be behind before ingest answers 429 (design.md).
pub const AUDIT_LAG_US_MAX: i64 = 5 * SECOND_US;

/// Rows of one page of a list.
pub const LIST_ROWS_MAX: u32 = 1_000;
/// Rows that one request reads of the log at most.
pub const SCAN_ROWS_MAX: u32 = 10_000;

/// Services that become labels (the issue of the metrics: 200); more become `other`.
pub const LABEL_SERVICES_MAX: usize = 200;
/// Envs that become labels; more become `other`.
pub const LABEL_ENVS_MAX: usize = 10;
/// Senders of rejected events that are told apart, for a minute: as many as services; the rest
/// are told of as `other`.
pub const REJECTED_SENDERS_MAX: usize = LABEL_SERVICES_MAX;
/// Ledgers that become labels: as many as services. The amounts of more have no series, since
/// amounts of two ledgers must not be added; pages and API show them.
pub const LABEL_LEDGERS_MAX: usize = LABEL_SERVICES_MAX;

/// Alerts that are not inactive: twelve rules for 200 services in four envs.
pub const ALERTS_MAX: u32 = 9_600;
/// Notifications that wait for their receiver. What is new of an alert waits for its turn, so this
/// many wait only if as many alerts changed; then the oldest say least.
pub const NOTIFICATIONS_WAITING_MAX: u32 = 1_000;
/// Notifications kept when they are done: a few weeks of a bad month.
pub const NOTIFICATIONS_KEPT_MAX: u32 = 10_000;

/// Upper bounds of the latency buckets, in microseconds: from a look-up in memory to a time-out.
pub const LATENCY_BUCKETS_US: [u64; 16] = [
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
    1_000_000, 5_000_000,
];

/// The longest time that `[audit]` takes: signatures are kept for 90 days.
pub const AUDIT_SETTING_US_MAX: i64 = 90 * DAY_US;
/// The shortest times that `[retention]` takes: a record is kept for a day, so that the cap takes
/// whole days, and a minute for as long as an event of it may come.
pub const RAW_AGE_US_MIN: i64 = DAY_US;
/// See [`RAW_AGE_US_MIN`].
pub const ROLLUPS_AGE_US_MIN: i64 = EVENT_AGE_US_MAX + DAY_US;
/// The longest time that `[retention]` takes: far beyond what anybody keeps.
pub const RETENTION_US_MAX: i64 = 36_500 * DAY_US;
/// The least cap of the disk: an empty database, and a day of a small service.
pub const DISK_CAP_BYTES_MIN: i64 = 64 << 20;

/// Games that are remembered of a player (design.md): more can't be live.
pub const LIVE_GAMES_MAX: u32 = 3;

/// The longest latency that is counted as it is: an hour. A sender's mistake must not fill the
/// 63 bits in which sums are kept; like this they hold two billion mistakes.
pub const LATENCY_US_MAX: u64 = 3_600_000_000;

/// A second in microseconds.
pub const SECOND_US: i64 = 1_000_000;
/// A minute in microseconds.
pub const MINUTE_US: i64 = 60 * SECOND_US;
/// A day in microseconds.
pub const DAY_US: i64 = 24 * 60 * MINUTE_US;

const _: () = assert!(BODY_INFLATED_BYTES_MAX <= BYTES_UNDER_WAY_MAX, "a body can be taken");
const _: () = assert!(BATCH_EVENTS_MAX <= GROUP_EVENTS_MAX, "a request fits into one commit");
const _: () = assert!(GROUP_EVENTS_MAX <= QUEUE_EVENTS_MAX, "a group can be full");
