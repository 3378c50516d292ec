//! `indeterminate_outcome`, `telemetry_gap`, `identity_conflict`, `rejected_evidence`.

use std::collections::{BTreeMap, BTreeSet};

use dedupwatch::audit::{Kind, Severity};
use dedupwatch::outcome::{Amounts, Effect, Outcome, Reason};

use super::verdict::{Verdict, Verdicts};
use super::world::World;

/// So many conflicts within a minute are two processes under one name.
const CONFLICTS_MANY: usize = 10;
const MINUTE_US: i64 = 60_000_000;

pub fn judge(world: &World, verdicts: &mut Verdicts) {
    unclear(world, verdicts);
    gaps(world, verdicts);
    conflicts(world, verdicts);
    refusals(world, verdicts);
}

fn unclear(world: &World, verdicts: &mut Verdicts) {
    let acceptances = world.acceptances();
    let mut unknowns = world.of_outcome(Outcome::Unknown);
    for (key, events) in &acceptances {
        let unclear = events.iter().filter(|it| it.effect == Some(Effect::Unknown));
        unknowns.entry(key.clone()).or_default().extend(unclear);
    }
    for (key, events) in unknowns {
        // Those of unknown effect say nothing themselves.
        let accepted = acceptances.get(&key).into_iter().flatten();
        let accepted = accepted.filter(|it| it.effect != Some(Effect::Unknown)).count() > 0;
        let only_waits = events
            .iter()
            .all(|event| matches!(event.reason, Some(Reason::Held | Reason::InProgress)));
        if accepted && only_waits {
            continue;
        }
        let net = world.net(&key);
        let (count, amounts) = (events.len() as u64, Amounts::at_risk(net));
        let verdict = Verdict::of(Kind::IndeterminateOutcome, &key, Severity::Warning);
        verdicts.key(Verdict { count, amounts, ..verdict });
    }
}

fn gaps(world: &World, verdicts: &mut Verdicts) {
    for (from, source) in &world.sources {
        for (boot, run) in &source.runs {
            let missing = run.given_up.iter().filter(|seq| !run.times.contains_key(seq)).count();
            if missing > 0 {
                let verdict = Verdict::of(
                    Kind::TelemetryGap,
                    &(from, format!("{boot:?}")),
                    Severity::Warning,
                );
                verdicts.key(Verdict { count: missing as u64, ..verdict });
            }
        }
    }
}

fn conflicts(world: &World, verdicts: &mut Verdicts) {
    let mut received: BTreeMap<_, Vec<i64>> = BTreeMap::new();
    for (event, received_us) in &world.conflicts {
        received.entry((event.from.clone(), event.boot)).or_default().push(*received_us);
    }
    for (other, received_us) in &world.move_conflicts {
        received.entry((other.from.clone(), other.boot)).or_default().push(*received_us);
    }
    received.values_mut().for_each(|times_us| times_us.sort_unstable());
    for ((from, boot), times_us) in received {
        let place = (from, boot.map_or("event_id".to_owned(), |boot| format!("{boot:?}")));
        let within_a_minute = |many: &[i64]| many[CONFLICTS_MANY - 1] - many[0] <= MINUTE_US;
        let critical = times_us.windows(CONFLICTS_MANY).any(within_a_minute);
        let severity = if critical { Severity::Critical } else { Severity::Warning };
        let verdict = Verdict::of(Kind::IdentityConflict, &place, severity);
        verdicts.key(Verdict { count: times_us.len() as u64, ..verdict });
    }
}

fn refusals(world: &World, verdicts: &mut Verdicts) {
    let mut counts: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (from, boot, seq, code) in &world.refusals {
        counts.entry(code).or_default().insert((from, boot, seq));
    }
    for (place, refused) in counts {
        let verdict = Verdict::of(Kind::RejectedEvidence, &place, Severity::Warning);
        verdicts.key(Verdict { count: refused.len() as u64, ..verdict });
    }
}
