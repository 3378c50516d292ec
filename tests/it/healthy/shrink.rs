//! The smallest script that still shows something.

use std::fmt::Write as _;

use super::line;
use super::plan::Plan;
use super::script::Step;
use super::world::{Words, play};
use super::{BEGIN_US, collector};

/// Takes away steps that are not needed, many at a time at first.
pub fn smallest(mut steps: Vec<Step>, shows: &impl Fn(&[Step]) -> bool) -> Vec<Step> {
    let mut size = steps.len().div_ceil(2).max(1);
    loop {
        let (before, mut at) = (steps.len(), 0);
        while at < steps.len() {
            let mut without = steps.clone();
            without.drain(at..(at + size).min(steps.len()));
            if shows(&without) {
                steps = without;
            } else {
                at += size;
            }
        }
        if size == 1 && steps.len() == before {
            return steps;
        }
        size = size.div_ceil(2);
    }
}

/// What the collector wrote, but heartbeats.
pub fn lines(plan: &Plan, steps: &[Step]) -> String {
    let mut lines = String::new();
    for entry in line::entries(plan, &play(plan, steps).said) {
        if let Words::Event(event) = &entry.words {
            let event = serde_json::to_string(event).unwrap();
            let _ = writeln!(lines, "{:>12} {event}", entry.received_us - BEGIN_US);
        }
    }
    for record in collector::records(plan, &line::entries(plan, &play(plan, steps).said)) {
        use dedupwatch::outcome::Body;
        if let Body::GivenUp(_) | Body::Silent(_) = &record.body {
            let _ = writeln!(lines, "{:>12} {:?}", record.received_us - BEGIN_US, record.body);
        }
    }
    lines
}
