//! The rules in words: what a finding means and what to do next. Readers are on call, often at
//! night and often for the first time.

use super::encode;
use crate::audit::{Coverage, Finding, Kind, OrderKnown, Subject};
use crate::web::format::{number, several};

/// A rule for people.
pub(super) struct KindWords {
    /// Its name.
    pub(super) name: &'static str,
    /// What it says.
    pub(super) rule: &'static str,
    /// What to do, step by step.
    pub(super) steps: &'static [&'static str],
}

/// The words of a rule.
pub(super) fn of_kind(kind: Kind) -> &'static KindWords {
    match kind {
        Kind::DuplicateLeak => &DUPLICATE_LEAK,
        Kind::LiveEviction => &LIVE_EVICTION,
        Kind::FalseBlock => &FALSE_BLOCK,
        Kind::UnverifiableBlock => &UNVERIFIABLE_BLOCK,
        Kind::IndeterminateOutcome => &INDETERMINATE_OUTCOME,
        Kind::TelemetryGap => &TELEMETRY_GAP,
        Kind::IdentityConflict => &IDENTITY_CONFLICT,
        Kind::RejectedEvidence => &REJECTED_EVIDENCE,
        _ => &NOT_FOUND_YET,
    }
}

const DUPLICATE_LEAK: KindWords = KindWords {
    name: "Duplicate leak",
    rule: "One settlement may be accepted once in its ledger. Reversals undo one \
           acceptance before them, and an acceptance whose effect failed does not count. \
           Here more acceptances stand than may stand: the guard let a replay through.",
    steps: &[
        "Look at both witnesses in the service's own log, by time, boot and number.",
        "Check in the wallet that the amount was really moved more than once.",
        "Correct the surplus booking (the later acceptance) in the wallet.",
        "Close this finding with what you did. A new occurrence opens a new one.",
    ],
};

const LIVE_EVICTION: KindWords = KindWords {
    name: "Live eviction",
    rule: "A guard's window must remember every settlement of the games a player is still \
           in. Here it let one go that can still be replayed: the next replay of it would \
           be booked again. Nothing is lost yet.",
    steps: &[
        "Compare the window's capacity with what a player needs: two settlements for \
         each game, for the room just left and the room just entered.",
        "Raise the capacity, or find out why more games run side by side than expected.",
    ],
};

const FALSE_BLOCK: KindWords = KindWords {
    name: "False block",
    rule: "A settlement may be refused only if it was accepted before. This one was \
           refused, and no acceptance of it exists among all that the guards of its \
           ledger reported. It is not booked.",
    steps: &[
        "Check in the wallet that the settlement is missing.",
        "Book it by hand, or deliver it again under a ref of its own.",
        "Find out what the guard took it for: read its window at that time.",
        "Close this finding with what you did. A later acceptance closes it by itself.",
    ],
};

const UNVERIFIABLE_BLOCK: KindWords = KindWords {
    name: "Unverifiable block",
    rule: "A settlement was refused as seen before, but no acceptance of it was heard, and \
           some guard of the ledger was not heard all the time. Either it was booked \
           while nobody listened, or it is missing. No amount is claimed.",
    steps: &[
        "Look at Sources: which one is silent, or has missing numbers?",
        "Let it send what it kept. The verdict then follows by itself.",
        "If that is lost, look the settlement up in the wallet and close this finding.",
    ],
};

const INDETERMINATE_OUTCOME: KindWords = KindWords {
    name: "Indeterminate outcome",
    rule: "The guard could not tell what became of this settlement, or accepted it without \
           knowing whether the money moved. It may be booked once, twice or never.",
    steps: &[
        "Look the settlement up in the wallet.",
        "Book it if it is missing; correct it if it is there twice.",
        "Close this finding with what you found.",
    ],
};

const TELEMETRY_GAP: KindWords = KindWords {
    name: "Telemetry gap",
    rule: "Each run of a source numbers its outcomes without holes. Some numbers did not \
           come in time. What happened in them is not known, so blocks and evictions near \
           them can't be judged.",
    steps: &[
        "Check the source: does it still run, can it reach the collector, did it drop \
         outcomes?",
        "Let it send what it kept. The finding closes by itself when the hole is filled.",
        "If they are lost, compare the wallet with the game's own records for that time.",
    ],
};

const IDENTITY_CONFLICT: KindWords = KindWords {
    name: "Identity conflict",
    rule: "A source, its run and a number name one outcome. Here the same name came with \
           different content. The first content counts. Most often two processes report \
           under one source name.",
    steps: &[
        "Find the processes that report as this source; give each a name of its own.",
        "Check that a restarted process takes a new boot and counts from 1.",
    ],
};

const REJECTED_EVIDENCE: KindWords = KindWords {
    name: "Rejected evidence",
    rule: "Outcomes came that could not be taken, so the audit does not know them. They are \
           kept in the log with the reason.",
    steps: &[
        "Read the reason, and mend the sender.",
        "Send the mended outcomes again under the same numbers: they are taken then.",
    ],
};

/// A rule that nothing is found by yet.
const NOT_FOUND_YET: KindWords = KindWords {
    name: "Not found yet",
    rule: "This rule has a name and no more: nothing is found by it yet, and no row of it is ever \
           written.",
    steps: &["There is nothing to do."],
};

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
    let mut steps: Vec<Step> = of_kind(finding.kind).steps.iter().copied().map(step).collect();
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

/// What happened, in one sentence.
pub(super) fn sentence(finding: &Finding) -> String {
    if let Subject::More { .. } = finding.subject {
        return format!(
            "{} of this kind within one minute, counted together.",
            several(finding.count, "more finding", "more findings")
        );
    }
    if finding.count == 0 {
        return "Nothing of it stands any more.".into();
    }
    let times = several(finding.count, "time", "times");
    let outcomes = several(finding.count, "outcome", "outcomes");
    match finding.kind {
        Kind::DuplicateLeak => {
            let stood = i128::from(finding.count) + 1;
            format!("One settlement was accepted {} times.", number(stood))
        }
        Kind::LiveEviction => {
            let signatures = several(finding.count, "settlement that", "settlements that");
            format!("The window let go of {signatures} can still be replayed.")
        }
        Kind::FalseBlock => format!("A settlement was refused {times} and never booked."),
        Kind::UnverifiableBlock => {
            format!("A settlement was refused {times}; whether it was ever booked is not known.")
        }
        Kind::IndeterminateOutcome => "Nobody knows whether this settlement was booked.".into(),
        Kind::TelemetryGap => format!("{outcomes} did not arrive."),
        Kind::IdentityConflict => {
            format!("{outcomes} came under a number that was taken by another.")
        }
        Kind::RejectedEvidence => format!("{outcomes} could not be taken."),
        _ => format!("It happened {times}."),
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

    #[test]
    fn every_kind_has_its_words() {
        for kind in Kind::ALL {
            let words = of_kind(kind);
            assert!(!words.steps.is_empty() && words.rule.len() > 80, "{kind:?}");
        }
    }
}
