//! `missed_duplicate`: one intended booking was accepted under several signatures.
//!
//! A ref names one intended booking and survives retries. Accepted with one net under several
//! signatures it was booked several times, and no guard could see it: each signature was new.
//! What a reversal undid is no booking.

use std::collections::BTreeMap;

use super::facts::{Acceptance, SignatureFacts};
use super::finding::{Coverage, Severity, Witness};
use super::kind::Kind;
use super::order::{how_known, order};
use super::ref_facts::RefFacts;
use super::row::{EXAMPLES_MAX, Verdict};
use super::rule::{Context, Judged};
use super::witness::Evidence;
use crate::outcome::{Amounts, Id, Net};

/// One acceptance under the ref.
#[derive(Clone, Copy)]
struct Booking<'a> {
    facts: &'a SignatureFacts,
    accepted: &'a Acceptance,
    game: Option<i64>,
}

/// Where a reversal is put among acceptances whose order to it is not known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Placing {
    /// After them: it undoes the most.
    Late,
    /// Before them: the least.
    Early,
}

/// Judges one ref; `keys` are the signatures accepted under it, with their games.
pub(super) fn judge(
    context: Context<'_>,
    reference: &Id,
    refs: &RefFacts,
    keys: &[(&SignatureFacts, Option<i64>)],
) -> Judged {
    let nothing = Judged::nothing(Kind::MissedDuplicate, "made_good");
    let mut by_net: BTreeMap<Net, Vec<Booking<'_>>> = BTreeMap::new();
    for (facts, game) in keys {
        let under_it = |accepted: &&Acceptance| {
            accepted.reference.as_ref() == Some(reference) && accepted.stands()
        };
        for accepted in facts.accepted.iter().filter(under_it) {
            let booking = Booking { facts, accepted, game: *game };
            by_net.entry(accepted.net).or_default().push(booking);
        }
    }
    let (mut surplus, mut most) = (Vec::new(), 0);
    for (net, mut bookings) in by_net {
        bookings.sort_by(|a, b| a.accepted.at.list_order(&b.accepted.at));
        most += distinct(standing(context, refs, net, &bookings, Placing::Early)).len().max(1) - 1;
        let standing = distinct(standing(context, refs, net, &bookings, Placing::Late));
        if standing.len() > 1 {
            surplus.push(standing);
        }
    }
    let least: usize = surplus.iter().map(|standing| standing.len() - 1).sum();
    let mut due_us = None;
    let verdict = verdict(context, &surplus).map(|verdict| {
        // A reversal may be in a push that is yet to come: as long as for a block.
        let newest = surplus.iter().flatten().map(|booking| &booking.accepted.at);
        let since_us = newest.map(|at| context.since_us(at, at.at_us)).max();
        let until_us = since_us.unwrap_or_default().saturating_add(context.settings.block_grace_us);
        let confirmed = context.watermark_us >= until_us;
        due_us = (!confirmed).then_some(until_us);
        Verdict { confirmed, ..verdict }
    });
    // The order of a reversal could have changed that.
    Judged { order_missing: least < most, verdict, due_us, ..nothing }
}

/// What the reversals of a net left: each undoes one acceptance before it, of its own game if
/// there is one.
fn standing<'a>(
    context: Context<'_>,
    refs: &RefFacts,
    net: Net,
    bookings: &[Booking<'a>],
    placing: Placing,
) -> Vec<Booking<'a>> {
    let mut standing: Vec<Booking<'a>> = bookings.to_vec();
    let undoes = -i128::from(net.0);
    for reversal in refs.reversals.iter().filter(|undone| i128::from(undone.net.0) == undoes) {
        let is_before = |booking: &Booking<'a>| match order(
            context.sources,
            &booking.accepted.at,
            &reversal.at,
        ) {
            Some((order, _)) => order.is_lt(),
            None => placing == Placing::Late,
        };
        let of_its_game =
            standing.iter().rposition(|one| one.game == reversal.game && is_before(one));
        if let Some(i) = of_its_game.or_else(|| standing.iter().rposition(is_before)) {
            standing.remove(i);
        }
    }
    standing
}

/// The first of each signature.
fn distinct(standing: Vec<Booking<'_>>) -> Vec<Booking<'_>> {
    let mut firsts: Vec<Booking<'_>> = Vec::new();
    for booking in standing {
        if !firsts.iter().any(|first| first.facts.signature == booking.facts.signature) {
            firsts.push(booking);
        }
    }
    firsts
}

fn verdict(context: Context<'_>, surplus: &[Vec<Booking<'_>>]) -> Option<Verdict> {
    let (first, again) = match surplus.first()?.as_slice() {
        [first, again, ..] => (first, again),
        _ => return None,
    };
    let sources = context.sources;
    let evidence = |(i, booking): (usize, &Booking<'_>)| {
        let role = if i == 0 { "accepted" } else { "accepted_as_another" };
        let witness = Evidence::about_the_subject(sources).acceptance(role, booking.accepted)?;
        Some(Witness { signature: Some(booking.facts.signature.clone()), ..witness })
    };
    let too_many = || surplus.iter().flat_map(|standing| standing.iter().skip(1));
    let amounts = too_many().map(|booking| Amounts::at_risk(booking.accepted.net));
    let moments = || surplus.iter().flatten().map(|booking| booking.accepted.at.at_us);
    let witnesses = surplus.iter().flat_map(|standing| standing.iter().enumerate());
    let elsewhere = first.accepted.at.source != again.accepted.at.source;
    let name = sources.name(again.accepted.at.source)?;
    Some(Verdict {
        count: too_many().count() as u64,
        amounts: amounts.fold(Amounts::default(), Amounts::plus),
        players: 1,
        severity: Severity::Warning,
        confirmed: false,
        cause: if elsewhere { "two_sources" } else { "one_source" }.to_owned(),
        order: how_known(sources, &first.accepted.at, &again.accepted.at),
        coverage: Coverage::Full,
        service: name.service.to_string(),
        env: name.env.to_string(),
        source: Some(name.source.clone()),
        first_us: moments().min()?,
        last_us: moments().max()?,
        witnesses: witnesses.filter_map(evidence).take(EXAMPLES_MAX).collect(),
    })
}
