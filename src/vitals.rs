//! What the running parts tell each other: how far the log is, how far the judge, whether the
//! database answers. Numbers only; whoever waits, waits on a `watch` channel.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use tokio::sync::watch;

use crate::limits;

/// No tick is wanted.
const NEVER: i64 = i64::MAX;

/// Nothing is known yet, or there is nothing.
const UNKNOWN: i64 = i64::MIN;

/// The signs of life of one collector.
#[derive(Debug)]
pub struct Vitals {
    appended: watch::Sender<i64>,
    findings: watch::Sender<i64>,
    judged_n: AtomicI64,
    audit_lag_us: AtomicI64,
    tick_due_us: AtomicI64,
    queue_events: AtomicU64,
    turned_away: AtomicBool,
    database_away: AtomicBool,
    closing: AtomicBool,
    database_bytes: AtomicI64,
    disk_cap_bytes: AtomicI64,
    retained_us: AtomicI64,
}

impl Default for Vitals {
    fn default() -> Self {
        Self {
            appended: watch::Sender::new(0),
            findings: watch::Sender::new(0),
            judged_n: AtomicI64::new(0),
            audit_lag_us: AtomicI64::new(0),
            tick_due_us: AtomicI64::new(NEVER),
            queue_events: AtomicU64::new(0),
            turned_away: AtomicBool::new(false),
            database_away: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            database_bytes: AtomicI64::new(UNKNOWN),
            disk_cap_bytes: AtomicI64::new(UNKNOWN),
            retained_us: AtomicI64::new(UNKNOWN),
        }
    }
}

impl Vitals {
    /// The writer has put the log on disk up to here.
    pub fn set_appended(&self, n: i64) {
        self.appended.send_replace(n);
    }

    /// Follows the end of the log.
    pub fn appended(&self) -> watch::Receiver<i64> {
        self.appended.subscribe()
    }

    /// How far the log is on disk.
    pub fn appended_n(&self) -> i64 {
        *self.appended.borrow()
    }

    /// The judge has written findings up to this `change`.
    pub fn set_findings(&self, change: i64) {
        self.findings.send_replace(change);
    }

    /// Follows the changes of the findings.
    pub fn findings(&self) -> watch::Receiver<i64> {
        self.findings.subscribe()
    }

    /// The judge is done up to here, and was this far behind.
    pub fn set_judged(&self, n: i64, lag_us: i64) {
        self.judged_n.store(n, Ordering::Release);
        self.audit_lag_us.store(lag_us, Ordering::Release);
    }

    /// The position up to which the judge has judged.
    pub fn judged_n(&self) -> i64 {
        self.judged_n.load(Ordering::Acquire)
    }

    /// How far the judge is behind, in microseconds of receipt.
    pub fn audit_lag_us(&self) -> i64 {
        self.audit_lag_us.load(Ordering::Acquire)
    }

    /// Whether that is too far for more outcomes to be taken.
    pub fn is_audit_behind(&self) -> bool {
        self.audit_lag_us() > limits::AUDIT_LAG_US_MAX
    }

    /// The judge waits for this moment of receipt; `None` if it waits for nothing.
    pub fn set_tick_due(&self, at_us: Option<i64>) {
        self.tick_due_us.store(at_us.unwrap_or(NEVER), Ordering::Release);
    }

    /// Whether the judge waits for a moment that is past: then the log needs a tick.
    pub fn tick_due(&self, now_us: i64) -> bool {
        self.tick_due_us.load(Ordering::Acquire) <= now_us
    }

    /// The moment of receipt that the judge waits for.
    pub fn tick_due_us(&self) -> Option<i64> {
        Some(self.tick_due_us.load(Ordering::Acquire)).filter(|at_us| *at_us != NEVER)
    }

    /// Events that wait for the writer.
    pub fn set_queue_events(&self, events: u64) {
        self.queue_events.store(events, Ordering::Release);
    }

    /// Events that wait for the writer.
    pub fn queue_events(&self) -> u64 {
        self.queue_events.load(Ordering::Acquire)
    }

    /// A request found no room in the queue.
    pub fn set_turned_away(&self) {
        self.turned_away.store(true, Ordering::Release);
    }

    /// Whether a request found no room since this was last asked.
    pub fn take_turned_away(&self) -> bool {
        self.turned_away.swap(false, Ordering::AcqRel)
    }

    /// Whether the last write found no database.
    pub fn set_database_away(&self, away: bool) {
        self.database_away.store(away, Ordering::Release);
    }

    /// Whether the last write found no database.
    pub fn database_away(&self) -> bool {
        self.database_away.load(Ordering::Acquire)
    }

    /// The database and its base hold so much.
    pub fn set_database_bytes(&self, bytes: i64) {
        self.database_bytes.store(bytes, Ordering::Release);
    }

    /// How much the database and its base hold, once that is known.
    pub fn database_bytes(&self) -> Option<i64> {
        known(&self.database_bytes)
    }

    /// They may hold so much.
    pub fn set_disk_cap(&self, bytes: Option<i64>) {
        self.disk_cap_bytes.store(bytes.unwrap_or(UNKNOWN), Ordering::Release);
    }

    /// How much they may hold, if there is a bound.
    pub fn disk_cap_bytes(&self) -> Option<i64> {
        known(&self.disk_cap_bytes)
    }

    /// What was old was looked for at this moment.
    pub fn set_retained(&self, at_us: i64) {
        self.retained_us.store(at_us, Ordering::Release);
    }

    /// When what was old was last looked for.
    pub fn retained_us(&self) -> Option<i64> {
        known(&self.retained_us)
    }

    /// The collector takes no more.
    pub fn set_closing(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// Whether the collector takes no more.
    pub fn closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }
}

fn known(number: &AtomicI64) -> Option<i64> {
    Some(number.load(Ordering::Acquire)).filter(|number| *number != UNKNOWN)
}
