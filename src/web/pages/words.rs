//! A finding in words: what happened, how sure it is, what to do next.

use super::{encode, topics};
use crate::audit::{Coverage, Finding, Kind, OrderKnown};

/// A step of what to do, with an address if there is more to read.
pub(super) struct Step {
    /// What to do.
    pub(super) text: &'static str,
    /// What is to read, and where.
    pub(super) more: Option<(&'static str, String)>,
}

/// What to do about a finding, step by step.
pub(super) fn steps(finding: &Finding) -> Vec<Step> {
    let step = |text| Step { text, more: None };
    let mut steps: Vec<Step> =
        topics::of_kind(finding.kind).steps.iter().copied().map(step).collect();
    match finding.kind {
        Kind::DuplicateLeak => {
            steps.insert(steps.len().saturating_sub(1), step(remedy(&finding.cause)));
        }
        Kind::LiveEviction => steps.push(Step {
            text: "Watch for duplicate leaks: the examples below are some of what was let go of.",
            more: Some(("Duplicate leaks of this service", leaks_url(finding))),
        }),
        _ => {}
    }
    steps
}

fn leaks_url(finding: &Finding) -> String {
    let (kind, service) = (Kind::DuplicateLeak.as_str(), encode(&finding.service));
    format!("/findings?kind={kind}&service={service}&env={}", encode(&finding.env))
}

/// How the cause of a leak is removed.
fn remedy(cause: &str) -> &'static str {
    match cause {
        "guard_off" => {
            "Remove the cause: the guard was off. Switch it on, and find out who switched it off."
        }
        "evicted" => {
            "Remove the cause: the window is too short. It had let go of this settlement before \
             it came again. Raise the capacity, or the age if it fell out by age."
        }
        "restart" => {
            "Remove the cause: the guard lost its memory when it restarted. Keep the window \
             where a restart can\u{2019}t lose it."
        }
        "race" => {
            "Remove the cause: two deliveries passed within one second. Either two guards have \
             separate memories, or looking and remembering are not one step: make them one."
        }
        "split" => {
            "Remove the cause: two guards with separate memories. Let them share one, or send \
             all of a player\u{2019}s settlements to the same guard."
        }
        _ => {
            "Find the cause, it is not known: a window that is too short, a guard that is off, \
             two guards with separate memories?"
        }
    }
}

/// How the order of the witnesses is known.
pub(super) fn of_order(order: OrderKnown) -> &'static str {
    match order {
        OrderKnown::Proven => {
            "The order of the witnesses is proven: by their numbers within one run, or by the \
             order of the runs of one source."
        }
        OrderKnown::Assumed => {
            "The order of the witnesses is assumed: it follows from the clocks of their sources, \
             which differ by more than the clocks may."
        }
        OrderKnown::Unproven => {
            "The order of the witnesses is not proven. The verdict is the same in any order."
        }
    }
}

/// Whether all guards were heard.
pub(super) fn of_coverage(coverage: Coverage) -> &'static str {
    match coverage {
        Coverage::Full => "All guards of the ledger were heard for as long as it matters.",
        Coverage::Assumed => {
            "As far as anybody can tell, all guards of the ledger were heard; but some source \
             sends no heartbeats or no numbers, so its silence proves nothing."
        }
        Coverage::Blind => {
            "Not all guards of the ledger were heard: part of the evidence is missing."
        }
    }
}

/// How it came about.
pub(super) fn of_cause(cause: &str) -> String {
    let words = match cause {
        "" | "unknown" => "not known",
        "guard_off" => "the guard was off",
        "evicted" => "the window had let go of it in between",
        "restart" => "the guard restarted in between and forgot",
        "race" => "two deliveries within one second",
        "split" => "two sources decided, each by a memory of its own",
        "undersized" => "the window is smaller than a player's two newest games",
        "late_third_game" => "a settlement came late, when a third game had begun",
        "parallel_rooms" => "the player was in several rooms at once",
        "ttl" => "it fell out by age",
        "reaper" => "a clean-up job removed it",
        "memory" => "the guard ran short of memory",
        "ack" => "its consumer acknowledged it",
        "not_full" => "it fell out although the window had room",
        "not_in_window" => "the guard\u{2019}s window did not hold it",
        "never_accepted" => "no guard of the ledger accepted it",
        "possibly_twice" => "it was accepted too, so it may be booked twice",
        "effect_unknown" => "it was accepted, but whether the money moved is not known",
        "effect_failed" => "it was accepted, and the money did not move",
        "other_room" => "it was booked in the book of another room",
        "other_ref" => "a delivery under another ref was refused",
        "undecided" => "the guard could not decide",
        other => return other.replace('_', " "),
    };
    words.into()
}

/// Why a finding is closed.
pub(super) fn of_closing(because: &str) -> String {
    match because {
        "disproved" => "later evidence disproved it".into(),
        "made_good" => "it was made good".into(),
        "quiet" => "nothing new came for 24 hours".into(),
        "accepted" => "it was accepted after all".into(),
        "effect_reported" => "what became of it was told".into(),
        "judged_again" => "more was heard, and another finding took its place".into(),
        "filled" => "what was missing came".into(),
        other => match other.split_once(": ") {
            Some((reason, "")) => format!("a person says: {}", plain(reason)),
            Some((reason, note)) => format!("a person says: {}. {note}", plain(reason)),
            None => plain(other),
        },
    }
}

/// An alert's rule as a heading: `SourceSilent` to `Source silent`.
pub(super) fn of_rule(rule: &str) -> String {
    let mut heading = String::new();
    for letter in plain(rule).chars() {
        match (letter.is_ascii_uppercase(), heading.is_empty()) {
            (_, true) => heading.push(letter.to_ascii_uppercase()),
            (true, false) => heading.extend([' ', letter.to_ascii_lowercase()]),
            (false, false) => heading.push(letter),
        }
    }
    heading
}

/// A name of the wire for people: `accepted_again` to `accepted again`.
pub(super) fn plain(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_as_words() {
        assert_eq!(of_rule("SourceSilent"), "Source silent");
        assert_eq!(of_rule("telemetry_gap"), "Telemetry gap");
        assert_eq!(of_closing("made_good: T-12"), "a person says: made good. T-12");
        assert_eq!(of_closing("expected: "), "a person says: expected");
        assert_eq!(of_cause("some_new_cause"), "some new cause");
    }
}
