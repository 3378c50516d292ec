//! The cases of `tests/cases`: short streams of real faults, traps and healthy guards, each with
//! its right verdict. Here in memory; `cases_stored.rs` runs them through the whole collector.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dedupwatch::audit::{Audit, Change, Finding, Kind, Settings, Severity, State};
use dedupwatch::outcome::{
    Body, Boot, Event, GivenUp, Heartbeat, KeyedHash, Position, Record, Refused, Silent,
    SourceName, SourceState, format_us, parse_us,
};
use serde_json::Value;

/// One case.
pub struct Case {
    pub id: String,
    pub events: Vec<Value>,
    pub must_find: BTreeSet<String>,
    pub may_find: BTreeSet<String>,
    pub overpaid: i128,
    pub overcharged: i128,
}

/// All cases.
pub fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases: Vec<Case> =
        std::fs::read_dir(folder).unwrap().map(|entry| read(&entry.unwrap().path())).collect();
    cases.sort_by(|a, b| a.id.cmp(&b.id));
    assert_eq!(cases.len(), 84, "cases went missing");
    cases
}

fn read(path: &Path) -> Case {
    let case: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let kinds = |name: &str| {
        let list = case[name].as_array().unwrap().iter();
        list.map(|kind| kind.as_str().unwrap().to_owned()).collect()
    };
    let amount = |name: &str| case[name].as_str().unwrap().parse().unwrap();
    Case {
        id: case["id"].as_str().unwrap().into(),
        events: case["events"].as_array().unwrap().clone(),
        must_find: kinds("must_find"),
        may_find: kinds("may_find"),
        overpaid: amount("overpaid"),
        overcharged: amount("overcharged"),
    }
}

impl Case {
    /// The newest time in the stream.
    pub fn end_us(&self) -> i64 {
        self.events
            .iter()
            .map(|event| {
                let at = event["heartbeat"]["at"].as_str().or(event["occurred_at"].as_str());
                parse_us(at.unwrap()).unwrap()
            })
            .max()
            .unwrap()
    }

    /// What is wrong with these findings; nothing if they are the right verdict.
    pub fn differences(&self, findings: &[Finding]) -> Vec<String> {
        let said = |finding: &Finding| Said {
            kind: finding.kind.as_str().into(),
            open: finding.state != State::Closed,
            info: finding.severity == Severity::Info,
            overpaid: finding.amounts.overpaid,
            overcharged: finding.amounts.overcharged,
            whole: format!("{finding:#?}"),
        };
        self.differences_of(&findings.iter().map(said).collect::<Vec<_>>())
    }

    /// As [`Case::differences`], of findings as any door tells them.
    pub fn differences_of(&self, findings: &[Said]) -> Vec<String> {
        let open: Vec<&Said> = findings.iter().filter(|said| said.open).collect();
        let found: BTreeSet<String> = open.iter().map(|said| said.kind.clone()).collect();
        let missed = self.must_find.difference(&found).map(|kind| format!("{kind} missed"));
        let mut differences: Vec<String> = missed.collect();
        for said in &open {
            let telemetry = [Kind::UnverifiableBlock, Kind::TelemetryGap].map(Kind::as_str);
            let info = said.info && !telemetry.contains(&said.kind.as_str());
            if !info && !self.must_find.contains(&said.kind) && !self.may_find.contains(&said.kind)
            {
                differences.push(format!("false: {}", said.whole));
            }
        }
        let leaks = open.iter().filter(|said| said.kind == Kind::DuplicateLeak.as_str());
        let sum = leaks.fold((0, 0), |(over, charged), leak| {
            (over + leak.overpaid, charged + leak.overcharged)
        });
        if sum != (self.overpaid, self.overcharged) {
            differences.push(format!("leaks come to {sum:?}"));
        }
        differences
    }
}

/// What a finding says, as far as cases ask.
pub struct Said {
    pub kind: String,
    pub open: bool,
    pub info: bool,
    pub overpaid: i128,
    pub overcharged: i128,
    pub whole: String,
}

/// By sequence, else by `event_id`.
type Identity = (SourceName, Option<(Boot, u64)>, Option<String>);

/// A collector in a few lines: identity, refusals, conflicts, giving up.
#[derive(Default)]
struct Collector {
    n: i64,
    seen: BTreeMap<Identity, Event>,
    refused: BTreeSet<String>,
    conflicts: BTreeSet<String>,
    named: BTreeMap<(SourceName, Boot), u64>,
    closed: BTreeSet<(SourceName, Boot)>,
}

impl Collector {
    fn record(&mut self, received_us: i64, body: Body) -> Record {
        self.n += 1;
        Record { position: Position { collector: 1, n: self.n }, received_us, body }
    }

    fn take(&mut self, value: &Value, received_us: i64) -> Option<Record> {
        if let Some(heartbeat) = value.get("heartbeat") {
            let heartbeat: Heartbeat = serde_json::from_value(heartbeat.clone()).unwrap();
            let boot = (heartbeat.from.clone(), heartbeat.boot);
            self.named.insert(boot.clone(), heartbeat.last_seq);
            if heartbeat.state == SourceState::Closing {
                self.closed.insert(boot);
            }
            return Some(self.record(received_us, Body::Heartbeat(heartbeat)));
        }
        let mut value = value.clone();
        value.as_object_mut().unwrap().entry("env").or_insert("prod".into());
        let Ok(event) = serde_json::from_value::<Event>(value.clone()) else {
            return self.refuse(&value, received_us);
        };
        let id = match event.sequence() {
            Some(sequence) => (event.from.clone(), Some(sequence), None),
            None => (event.from.clone(), None, event.event_id.as_ref().map(|id| id.to_string())),
        };
        match self.seen.get(&id) {
            None => {
                self.seen.insert(id, event.clone());
                Some(self.record(received_us, Body::Event(Box::new(event))))
            }
            Some(known) if known.content() == event.content() => None,
            Some(_) if !self.conflicts.insert(value.to_string()) => None,
            Some(_) => Some(self.record(received_us, Body::Conflict(Box::new(event)))),
        }
    }

    fn refuse(&mut self, value: &Value, received_us: i64) -> Option<Record> {
        if !self.refused.insert(value.to_string()) {
            return None;
        }
        let from: SourceName = serde_json::from_value(value.clone()).unwrap();
        let boot = Boot::parse(value["boot"].as_str().unwrap()).unwrap();
        let refused = Refused {
            from: Some(from),
            sequence: Some((boot, value["seq"].as_u64().unwrap())),
            event_id: None,
            ledger: None,
            code: "bad_value".into(),
            message: "net: not an integer".into(),
            text: value.to_string(),
        };
        Some(self.record(received_us, Body::Refused(Box::new(refused))))
    }

    /// What the collector gives up at last.
    fn give_up(&mut self, received_us: i64) -> Vec<Record> {
        let mut boots: BTreeMap<(SourceName, Boot), BTreeSet<u64>> = BTreeMap::new();
        for (from, sequence, _) in self.seen.keys() {
            if let Some((boot, seq)) = sequence {
                boots.entry((from.clone(), *boot)).or_default().insert(*seq);
            }
        }
        let mut bodies = Vec::new();
        let known: BTreeSet<SourceName> = boots.keys().map(|(from, _)| from.clone()).collect();
        for from in known {
            let mut later = false;
            for ((_, boot), seqs) in boots.iter().filter(|((name, _), _)| *name == from) {
                let named = self.named.get(&(from.clone(), *boot)).copied().unwrap_or(0);
                let first = if later { 1 } else { *seqs.first().unwrap() };
                let last = named.max(*seqs.last().unwrap());
                for seq in (first..=last).filter(|seq| !seqs.contains(seq)) {
                    let (from, boot) = (from.clone(), *boot);
                    bodies.push(Body::GivenUp(GivenUp {
                        from,
                        boot,
                        first_seq: seq,
                        last_seq: seq,
                    }));
                }
                later = true;
            }
        }
        let open: Vec<_> =
            self.named.keys().filter(|boot| !self.closed.contains(boot)).cloned().collect();
        bodies.extend(open.into_iter().map(|(from, boot)| Body::Silent(Silent { from, boot })));
        bodies.push(Body::Tick);
        bodies.into_iter().map(|body| self.record(received_us, body)).collect()
    }
}

/// Folds a record in memory, settles what is due, and keeps the rows.
pub fn fold(audit: &mut Audit, rows: &mut BTreeMap<String, Finding>, record: &Record) {
    audit.fold(record);
    loop {
        let ready = audit.ready();
        if ready.is_empty() {
            break;
        }
        audit.settle(&ready);
    }
    for (id, change) in audit.book.take_changes() {
        match change {
            Change::Write { finding, .. } => rows.insert(id, *finding),
            Change::Withdraw => rows.remove(&id),
        };
    }
}

fn run(case: &Case, repeat: usize) -> Vec<Finding> {
    let settings = Settings { warmup_us: 0, ..Settings::default() };
    let mut audit = Audit::in_memory(settings, KeyedHash::new([7; 16]));
    let (mut collector, mut rows) = (Collector::default(), BTreeMap::new());
    let received_us = case.end_us() + 10_000_000;
    for event in &case.events {
        for _ in 0..repeat {
            if let Some(record) = collector.take(event, received_us) {
                fold(&mut audit, &mut rows, &record);
            }
        }
    }
    for record in collector.give_up(received_us + 90_000_000) {
        fold(&mut audit, &mut rows, &record);
    }
    rows.into_values().collect()
}

/// The stream, moved in time as a whole.
pub fn moved(case: &Case, by_us: i64) -> Vec<Value> {
    let mut events = case.events.clone();
    for event in &mut events {
        let place = match event.get("heartbeat") {
            Some(_) => &mut event["heartbeat"]["at"],
            None => &mut event["occurred_at"],
        };
        let at_us = parse_us(place.as_str().unwrap()).unwrap();
        *place = format_us(at_us + by_us).into();
    }
    events
}

/// Findings without what may differ between two ways of sending the same: places in the log.
pub fn same(mut findings: Vec<Finding>) -> Vec<Finding> {
    for witness in findings.iter_mut().flat_map(|finding| &mut finding.witnesses) {
        witness.position = Position { collector: 0, n: 0 };
    }
    findings
}

/// Whole findings: words, times, counts and evidence. After a change that is meant to differ, look
/// at what differs, and run the test with `INSTA_UPDATE=always`.
#[test]
fn the_findings_of_each_case_are_told_as_approved() {
    insta::with_settings!({snapshot_path => "findings", prepend_module_to_snapshot => false}, {
        for case in cases() {
            insta::assert_json_snapshot!(case.id.as_str(), run(&case, 1));
        }
    });
}

#[test]
fn each_case_gets_its_verdict() {
    let mut wrong = Vec::new();
    for case in cases() {
        let findings = run(&case, 1);
        wrong.extend(case.differences(&findings).iter().map(|what| format!("{}: {what}", case.id)));
        assert_eq!(same(run(&case, 2)), same(findings), "{}: sent twice", case.id);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
