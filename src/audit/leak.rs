//! `duplicate_leak`: a settlement stands more often than once.
//!
//! Per ref, in order: a reversal undoes *one* acceptance before it; the ref is voided when none is
//! left; what stands may be 1, voided 0. Acceptances without ref: 1 in all, 0 if others that stand
//! carry refs. Effect `failed` never stands; effect `unknown` counts as neither: surplus is what
//! is certain without it.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::facts::{Acceptance, SignatureFacts};
use super::finding::{Coverage, Severity};
use super::kind::Kind;
use super::order::{how_known, is_before, order};
use super::ref_facts::{RefFacts, Reversal};
use super::row::Verdict;
use super::rule::{Context, Judged};
use super::source::Sources;
use super::witness::Evidence;
use crate::outcome::{Amounts, GuardMode, Id};

/// Two acceptances closer than this raced (audit.md).
const RACE_US: i64 = 1_000_000;

/// Judges one key. `refs` are the refs of its acceptances.
pub(super) fn judge<'a>(
    context: Context<'_>,
    facts: &SignatureFacts,
    game: Option<i64>,
    refs: &dyn Fn(&Id) -> Option<&'a RefFacts>,
) -> Judged {
    let nothing = Judged::nothing(Kind::DuplicateLeak, "made_good");
    if facts.accepted.len() < 2 {
        return nothing;
    }
    let least = surplus(context, facts, game, refs, Placing::Late);
    let most = surplus(context, facts, game, refs, Placing::Early);
    Judged {
        order_missing: least.too_many.len() != most.too_many.len(),
        verdict: verdict(context.sources, facts, &least),
        ..nothing
    }
}

/// Where a reversal is put among acceptances whose order to it is not known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Placing {
    /// After them: the least surplus.
    Late,
    /// Before them: the most.
    Early,
}

struct Surplus<'a> {
    /// The one that they are shown beside.
    first: Option<&'a Acceptance>,
    /// Those beyond what may stand, in order.
    too_many: Vec<&'a Acceptance>,
}

fn surplus<'a, 'r>(
    context: Context<'_>,
    facts: &'a SignatureFacts,
    game: Option<i64>,
    refs: &dyn Fn(&Id) -> Option<&'r RefFacts>,
    placing: Placing,
) -> Surplus<'a> {
    let mut by_ref: BTreeMap<Option<&Id>, Vec<&Acceptance>> = BTreeMap::new();
    for accepted in facts.accepted.iter().filter(|accepted| accepted.stands()) {
        by_ref.entry(accepted.reference.as_ref()).or_default().push(accepted);
    }
    let unnamed = by_ref.remove(&None).unwrap_or_default();
    let (mut standing, mut too_many) = (Vec::new(), Vec::new());
    for (reference, accepted) in by_ref {
        let undone = reference.and_then(refs).map(|known| reversals(known, facts, game));
        let group = one_ref(context.sources, &accepted, &undone.unwrap_or_default(), placing);
        let may_stand = usize::from(!group.voided);
        too_many.extend(group.standing.iter().skip(may_stand).copied());
        standing.extend(group.standing);
    }
    for one_use in uses(context, unnamed.iter().copied()) {
        let named = standing.iter().any(|named| of_one_use(context, one_use.first(), named));
        too_many.extend(one_use.into_iter().skip(usize::from(!named)));
    }
    standing.extend(unnamed);
    too_many.sort_by(|a, b| a.at.list_order(&b.at));
    let first = other_side(facts, &standing, &too_many);
    Surplus { first, too_many }
}

/// Acceptances told apart by when a signature may have been used anew: further than the ledger's
/// `reuse_after` from the beginning of the use before. A ref names one booking, however late.
pub(super) fn uses<'a>(
    context: Context<'_>,
    accepted: impl Iterator<Item = &'a Acceptance>,
) -> Vec<Vec<&'a Acceptance>> {
    let mut uses: Vec<Vec<&Acceptance>> = Vec::new();
    for accepted in accepted {
        let same = |one: &&mut Vec<&Acceptance>| {
            let named = |other: &&Acceptance| other.reference == accepted.reference;
            accepted.reference.is_some() && one.iter().any(named)
        };
        match uses.iter_mut().find(same) {
            Some(one) => one.push(accepted),
            None => match uses.last_mut() {
                Some(last) if of_one_use(context, last.first(), accepted) => last.push(accepted),
                _ => uses.push(vec![accepted]),
            },
        }
    }
    uses
}

fn of_one_use(context: Context<'_>, first: Option<&&Acceptance>, other: &Acceptance) -> bool {
    let reuse_after_us = context.settings.reuse_after.in_us(&context.ledger.name);
    first.is_some_and(|first| first.at.distance_us(&other.at) <= reuse_after_us)
}

/// The acceptance that those beyond what may stand are shown beside: the first that rightly
/// stands; where none does, the first at all, undone since.
fn other_side<'a>(
    facts: &'a SignatureFacts,
    standing: &[&'a Acceptance],
    too_many: &[&'a Acceptance],
) -> Option<&'a Acceptance> {
    let is_right = |one: &&&Acceptance| !too_many.iter().any(|other| other.at == one.at);
    let by_order = |a: &&Acceptance, b: &&Acceptance| a.at.list_order(&b.at);
    let rightly = standing.iter().filter(is_right).copied().min_by(by_order);
    let all: Vec<&Acceptance> = facts.accepted.iter().filter(|one| one.stands()).collect();
    rightly.or_else(|| all.iter().filter(is_right).copied().min_by(by_order))
}

/// The reversals of a ref that are about this key: of the opposite amount, and of the same game
/// where the ref was booked under several signatures.
fn reversals(known: &RefFacts, facts: &SignatureFacts, game: Option<i64>) -> Vec<Reversal> {
    let undoes = |reversal: &Reversal| {
        let undone = -i128::from(reversal.net.0);
        facts.accepted.iter().any(|accepted| i128::from(accepted.net.0) == undone)
    };
    let about_it =
        |reversal: &&Reversal| undoes(reversal) && (known.keys.len() == 1 || reversal.game == game);
    known.reversals.iter().filter(about_it).cloned().collect()
}

struct OneRef<'a> {
    standing: Vec<&'a Acceptance>,
    voided: bool,
}

fn one_ref<'a>(
    sources: &Sources,
    accepted: &[&'a Acceptance],
    undone: &[Reversal],
    placing: Placing,
) -> OneRef<'a> {
    let mut group = OneRef { standing: Vec::new(), voided: false };
    let mut next = accepted.iter();
    let mut taken = 0;
    for reversal in undone {
        let before = accepted
            .iter()
            .filter(|accepted| match order(sources, &accepted.at, &reversal.at) {
                Some((order, _)) => order == Ordering::Less,
                None => placing == Placing::Late,
            })
            .count();
        while taken < before {
            group.standing.extend(next.next());
            taken += 1;
        }
        if group.standing.pop().is_some() && group.standing.is_empty() {
            group.voided = true;
        }
    }
    group.standing.extend(next);
    group
}

fn verdict(sources: &Sources, facts: &SignatureFacts, surplus: &Surplus<'_>) -> Option<Verdict> {
    let (first, again, newest) =
        (surplus.first?, surplus.too_many.first()?, surplus.too_many.last()?);
    let nets = surplus.too_many.iter().map(|accepted| Amounts::surplus(accepted.net));
    let amounts =
        nets.fold(facts.more_amounts.as_deref().copied().unwrap_or_default(), Amounts::plus);
    let severity = if amounts == Amounts::default() { Severity::Info } else { Severity::Critical };
    let name = sources.name(again.at.source)?;
    let evidence = Evidence::about_the_subject(sources);
    Some(Verdict {
        count: surplus.too_many.len() as u64 + facts.more_accepted,
        amounts,
        players: 1,
        severity,
        confirmed: true,
        cause: cause(sources, facts, first, again).to_owned(),
        order: how_known(sources, &first.at, &again.at),
        coverage: Coverage::Full,
        service: name.service.to_string(),
        env: name.env.to_string(),
        source: Some(name.source.clone()),
        first_us: first.at.at_us,
        last_us: newest.at.at_us,
        witnesses: [
            evidence.acceptance("accepted", first),
            evidence.acceptance("accepted_again", again),
        ]
        .into_iter()
        .flatten()
        .collect(),
    })
}

/// The first cause of `audit.md` that holds between the two.
fn cause(
    sources: &Sources,
    facts: &SignatureFacts,
    first: &Acceptance,
    again: &Acceptance,
) -> &'static str {
    let same_source = first.at.source == again.at.source;
    let boot = |accepted: &Acceptance| accepted.at.sequence.map(|(boot, _)| boot);
    let between = facts.evicted.iter().any(|evicted| {
        is_before(sources, &first.at, &evicted.at) && is_before(sources, &evicted.at, &again.at)
    });
    if again.mode == Some(GuardMode::Off) {
        "guard_off"
    } else if between {
        "evicted"
    } else if same_source && boot(first) != boot(again) {
        "restart"
    } else if first.at.distance_us(&again.at) < RACE_US {
        "race"
    } else if !same_source {
        "split"
    } else {
        "unknown"
    }
}
