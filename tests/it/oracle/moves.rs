//! `illegal_transition`.

use std::collections::BTreeMap;

use dedupwatch::audit::{Kind, Severity};
use dedupwatch::outcome::DeliveryState;

use super::verdict::{Verdict, Verdicts};
use super::world::World;

pub fn judge(world: &World, verdicts: &mut Verdicts) {
    let mut counts: BTreeMap<_, u64> = BTreeMap::new();
    for moved in &world.moves {
        if !forward(moved.left).contains(&moved.entered) {
            let name = |state: DeliveryState| format!("{state:?}").to_lowercase();
            let cause = format!("{}_to_{}", name(moved.left), name(moved.entered));
            *counts.entry((&moved.from, cause)).or_default() += 1;
        }
    }
    for (place, count) in counts {
        let verdict = Verdict::of(Kind::IllegalTransition, &place, Severity::Warning);
        verdicts.key(Verdict { count, ..verdict });
    }
}

/// Where a delivery may go; a step may be left out, an end is an end.
fn forward(left: DeliveryState) -> &'static [DeliveryState] {
    use DeliveryState::{Accepted, Checking, Received, Refused};
    match left {
        Received => &[Checking, Accepted, Refused],
        Checking => &[Accepted, Refused],
        Accepted | Refused => &[],
    }
}
