//! What a person reads in a notification. Amounts in full: whoever is woken must not have to open
//! a page to know how much.

use std::fmt::Write;

use crate::alert::key::Key;
use crate::alert::rule::Rule;
use crate::alert::state::{AlertState, Instance, Seen};
use crate::outcome::Amounts;

/// Ledgers told one by one; a message is for reading.
const LEDGERS_TOLD_MAX: usize = 10;

/// One line: what, and where.
pub(super) fn summary(key: &Key) -> String {
    format!("{} in {} ({})", key.rule.title(), key.service, key.env)
}

/// How much, and since when or what is left of it.
pub(super) fn description(key: &Key, alert: &Instance) -> String {
    let seen = &alert.seen;
    let over = alert.state == AlertState::Resolved;
    match (key.rule, over) {
        (Rule::SourceSilent, false) => silent(seen),
        (Rule::SourceSilent, true) => "All watched sources are heard, said goodbye, or have been \
             silent for over a day."
            .into(),
        (Rule::RejectedOutcomes, false) => format!(
            "Outcomes were rejected in each of the last six 10-second slices: {} in all. What they \
             say is not audited.",
            seen.count
        ),
        (Rule::RejectedOutcomes, true) => "A 10-second slice went by without a reject.".into(),
        (Rule::WindowTooSmall, false) => {
            let derivation = seen.example.as_deref().unwrap_or_default();
            format!("{derivation} The next replay that comes as late can be booked again.")
        }
        (Rule::WindowTooSmall, true) => "Windows hold what they were found to need in the last \
             seven days."
            .into(),
        (_, false) => format!(
            "Findings with a new occurrence in the last 15 minutes: {}. {}",
            seen.count,
            open("Confirmed and open", seen)
        ),
        (_, true) => format!(
            "No confirmed finding has gained an occurrence in the last 15 minutes. {}",
            open("Still open", seen)
        ),
    }
}

fn silent(seen: &Seen) -> String {
    let example = seen.example.as_deref().unwrap_or("?");
    let last = if seen.others == 0 {
        "No other source of the service is heard: nothing of it is audited.".into()
    } else {
        format!("Other sources still heard: {}.", seen.others)
    };
    format!("Silent sources: {} ({example} is one). {last}", seen.count)
}

fn open(what: &str, seen: &Seen) -> String {
    let rows: i64 = seen.open.iter().map(|open| open.rows).sum();
    if rows == 0 {
        return format!("{what}: nothing.");
    }
    let mut text = format!("{what}: {rows} {}.", if rows == 1 { "finding" } else { "findings" });
    let moved: Vec<_> =
        seen.open.iter().filter_map(|open| Some((&open.ledger, amounts(&open.amounts)?))).collect();
    for (ledger, amounts) in moved.iter().take(LEDGERS_TOLD_MAX) {
        let _ = match ledger.as_str() {
            "" => write!(text, " Amounts: {amounts} (minor units)."),
            ledger => write!(text, " Ledger {ledger}: {amounts} (minor units)."),
        };
    }
    if moved.len() > LEDGERS_TOLD_MAX {
        let _ = write!(text, " And {} ledgers more.", moved.len() - LEDGERS_TOLD_MAX);
    }
    text
}

fn amounts(amounts: &Amounts) -> Option<String> {
    let parts = [
        ("overpaid", amounts.overpaid),
        ("overcharged", amounts.overcharged),
        ("underpaid", amounts.underpaid),
        ("undercharged", amounts.undercharged),
        ("exposed", amounts.exposure),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, amount)| *amount != 0)
        .map(|(name, amount)| format!("{name} {amount}"))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Severity;
    use crate::store::alerts::Open;

    fn seen(open: Vec<Open>) -> Seen {
        let severity = Severity::Critical;
        Seen { severity, count: 1, others: 0, newest_us: 0, example: None, open, asked_us: 0 }
    }

    #[test]
    fn each_sort_of_amount_is_told_by_ledger_and_in_full() {
        let all = Amounts {
            overpaid: i128::MAX,
            overcharged: 2,
            underpaid: 3,
            undercharged: 4,
            exposure: 5,
        };
        let open_rows = |ledger: &str, rows, amounts| Open { ledger: ledger.into(), rows, amounts };
        let seen = seen(vec![
            open_rows("", 1, Amounts { exposure: 7, ..Amounts::default() }),
            open_rows("chips", 2, all),
            open_rows("none", 3, Amounts::default()),
        ]);
        assert_eq!(
            open("Still open", &seen),
            "Still open: 6 findings. Amounts: exposed 7 (minor units). Ledger chips: overpaid \
             170141183460469231731687303715884105727, overcharged 2, underpaid 3, undercharged 4, \
             exposed 5 (minor units)."
        );
    }

    #[test]
    fn many_ledgers_are_counted_instead() {
        let amounts = Amounts { overpaid: 1, ..Amounts::default() };
        let open_of = |n| Open { ledger: format!("l{n:02}"), rows: 1, amounts };
        let text = open("Still open", &seen((0..12).map(open_of).collect()));
        assert!(text.contains("Ledger l09: overpaid 1"), "{text}");
        assert!(text.ends_with("And 2 ledgers more."), "{text}");
        assert!(!text.contains("l10"), "{text}");
    }
}
