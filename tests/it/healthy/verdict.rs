//! What may be said of a healthy fleet, at any moment.
//!
//! Nothing critical, and no warning but `unverifiable_block` and `telemetry_gap`, and those of what
//! really was never told. One thing is allowed while it can't be known better: a block that is
//! heard before its acceptance is suspected, and no more, until that comes.

use std::collections::{BTreeMap, BTreeSet};

use dedupwatch::audit::{Audit, Finding, Kind, Severity, State, Subject};
use dedupwatch::outcome::{Body, Boot, KeyedHash, Outcome, Record, SourceName};

use super::plan::Plan;
use super::world::{Key, Play};
use crate::cases::fold;

/// What was found that is not so: by sort, with the first finding of each.
pub type Wrong = BTreeMap<String, String>;

/// What has come so far.
#[derive(Default)]
struct Heard {
    accepted: BTreeSet<Key>,
    blocked: BTreeSet<Key>,
    evicted: BTreeSet<Key>,
    numbers: BTreeSet<(SourceName, Boot, u64)>,
}

/// How much was asked and said, so that silence is no silence of the test.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub blocks: u64,
    pub lost: u64,
    pub unverifiable: u64,
}

impl Seen {
    pub fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.lost += other.lost;
        self.unverifiable += other.unverifiable;
    }
}

/// Folds a log, and judges each finding at each moment.
pub fn judge(plan: &Plan, play: &Play, records: &[Record]) -> (Wrong, Seen) {
    let mut all = Heard::default();
    records.iter().for_each(|record| all.take(record));
    let mut audit = Audit::in_memory(plan.settings.clone(), KeyedHash::new([5; 16]));
    let (mut rows, mut heard, mut wrong) = (BTreeMap::new(), Heard::default(), Wrong::new());
    for record in records {
        heard.take(record);
        fold(&mut audit, &mut rows, record);
        for finding in rows.values().filter(|finding| finding.state != State::Closed) {
            if let Some(why) = refuse(play, &all, &heard, finding) {
                let sort = format!("{} {why}", finding.kind.as_str());
                wrong.entry(sort).or_insert_with(|| format!("{record:?}\n{finding:#?}"));
            }
        }
    }
    let mut seen = Seen { blocks: heard.blocked.len() as u64, ..Seen::default() };
    for finding in rows.values().filter(|finding| finding.state == State::Suspected) {
        wrong.insert(
            format!("{} suspected for good", finding.kind.as_str()),
            format!("{finding:#?}"),
        );
    }
    for key in heard.blocked.iter().filter(|key| !heard.accepted.contains(*key)) {
        seen.lost += 1;
        let about = |row: &&Finding| key_of(row).as_ref() == Some(key);
        let open = rows.values().filter(about).filter(|row| row.state == State::Confirmed);
        let said = open.filter(|row| row.kind == Kind::UnverifiableBlock).count() as u64;
        seen.unverifiable += said;
        if said == 0 && !heard.evicted.contains(key) {
            wrong.insert("unverifiable_block missed".into(), format!("{key:?}"));
        }
    }
    (wrong, seen)
}

fn key_of(finding: &Finding) -> Option<Key> {
    finding.player.clone().zip(finding.signature.clone())
}

impl Heard {
    fn take(&mut self, record: &Record) {
        let Body::Event(event) = &record.body else { return };
        let key = (event.player.clone(), event.signature.clone());
        self.evicted.extend(event.evicted.iter().map(|gone| (key.0.clone(), gone.clone())));
        match event.outcome {
            Outcome::ReplayBlocked => self.blocked.insert(key),
            Outcome::Evicted => self.evicted.insert(key),
            _ => self.accepted.insert(key),
        };
        let number = event.sequence().map(|(boot, seq)| (event.from.clone(), boot, seq));
        self.numbers.extend(number);
    }
}

/// Why a finding must not stand at this moment.
fn refuse(play: &Play, all: &Heard, heard: &Heard, finding: &Finding) -> Option<&'static str> {
    let key = key_of(finding);
    let accepted = key.as_ref().is_some_and(|key| heard.accepted.contains(key));
    let (state, severity) = (finding.state, finding.severity);
    match finding.kind {
        Kind::FalseBlock if accepted => Some("of what was accepted"),
        Kind::FalseBlock if state == State::Confirmed => Some("confirmed"),
        Kind::UnverifiableBlock if accepted => Some("of what was accepted"),
        Kind::UnverifiableBlock if severity == Severity::Info => None,
        Kind::UnverifiableBlock if key.is_some_and(|key| all.accepted.contains(&key)) => {
            Some("warns of what only came late")
        }
        Kind::TelemetryGap => refuse_gap(play, all, heard, finding),
        Kind::FalseBlock | Kind::UnverifiableBlock => None,
        _ if severity == Severity::Critical => Some("critical"),
        _ if severity == Severity::Warning && state == State::Confirmed => Some("warns"),
        _ => None,
    }
}

/// A gap stands while something is missing that was given out, and warns only of what never comes.
fn refuse_gap(play: &Play, all: &Heard, heard: &Heard, finding: &Finding) -> Option<&'static str> {
    let Subject::Boot { from, boot } = &finding.subject else { return Some("of no boot") };
    let numbers = play.numbers.get(&(from.clone(), *boot)).into_iter().flatten();
    let missing = |come: &Heard| {
        let run = |seq: &u64| (from.clone(), *boot, *seq);
        numbers.clone().any(|seq| !come.numbers.contains(&run(seq)))
    };
    match finding.severity {
        _ if !missing(heard) => Some("of what has come"),
        Severity::Info => None,
        _ => (!missing(all)).then_some("warns of what only came late"),
    }
}
