//! Whether somebody must be told, and why or why not: one function, against what was told last.

use super::state::{AlertState, Instance, Seen, Told};
use crate::limits::MINUTE_US;
use crate::outcome::Amounts;
use crate::store::alerts::Open;

/// What is new of an alert that fires is told at most this often.
pub const GROWTH_EVERY_US: i64 = MINUTE_US;
/// An amount that grew by this much is another matter than the one that was told.
pub const AMOUNT_FACTOR: i128 = 10;

/// Why the receiver is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// It came to fire.
    Fired,
    /// It is over.
    Resolved,
    /// There is something new.
    Grew,
    /// It got worse.
    SeverityRose,
    /// An amount is ten times what was told.
    AmountGrew,
}

impl Because {
    /// Its name in the log of deliveries.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fired => "fired",
            Self::Resolved => "resolved",
            Self::Grew => "grew",
            Self::SeverityRose => "severity_rose",
            Self::AmountGrew => "amount_grew",
        }
    }
}

/// Why the receiver is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// It does not fire yet.
    Pending,
    /// Nothing has happened since it was told.
    NothingNew,
    /// That was decided, or delivered, less than a minute ago.
    TooSoon,
    /// It is over, and that it fired was never told.
    NeverTold,
    /// That it is over was told.
    EndTold,
}

/// The decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Tell it.
    Notify(Because),
    /// Don't.
    Hold(WhyNot),
}

/// Whether the receiver must be told of this alert. `lately`: something of it was delivered within
/// [`GROWTH_EVERY_US`], however long ago that was decided.
pub fn decide(alert: &Instance, lately: bool, now_us: i64) -> Decision {
    let told = alert.told.as_ref();
    match (alert.state, told.map(|told| (told.state, told))) {
        (AlertState::Pending, _) => Decision::Hold(WhyNot::Pending),
        (AlertState::Resolved, Some((AlertState::Firing, _))) => {
            Decision::Notify(Because::Resolved)
        }
        (AlertState::Resolved, Some(_)) => Decision::Hold(WhyNot::EndTold),
        (AlertState::Resolved, None) => Decision::Hold(WhyNot::NeverTold),
        (AlertState::Firing, Some((AlertState::Firing, told))) => {
            decide_growth(&alert.seen, told, lately, now_us)
        }
        (AlertState::Firing, _) => Decision::Notify(Because::Fired),
    }
}

fn decide_growth(seen: &Seen, told: &Told, lately: bool, now_us: i64) -> Decision {
    if seen.severity > told.seen.severity {
        Decision::Notify(Because::SeverityRose)
    } else if amount_grew(&told.seen.open, &seen.open) {
        Decision::Notify(Because::AmountGrew)
    } else if seen.newest_us <= told.seen.newest_us {
        Decision::Hold(WhyNot::NothingNew)
    } else if lately || now_us < told.at_us.saturating_add(GROWTH_EVERY_US) {
        Decision::Hold(WhyNot::TooSoon)
    } else {
        Decision::Notify(Because::Grew)
    }
}

/// Whether an amount of a ledger is ten times what was told of it. The first amount after none is
/// more than ten times as much.
fn amount_grew(told: &[Open], now: &[Open]) -> bool {
    now.iter().any(|now| {
        let before = told.iter().find(|told| told.ledger == now.ledger);
        let before = before.map_or(Amounts::default(), |told| told.amounts);
        let grew =
            |before: i128, now: i128| now > 0 && now >= before.max(0).saturating_mul(AMOUNT_FACTOR);
        grew(before.overpaid, now.amounts.overpaid)
            || grew(before.overcharged, now.amounts.overcharged)
            || grew(before.underpaid, now.amounts.underpaid)
            || grew(before.undercharged, now.amounts.undercharged)
            || grew(before.exposure, now.amounts.exposure)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Severity;

    const TOLD_AT: i64 = 1_000;

    fn seen(severity: Severity, newest_us: i64, overpaid: i128) -> Seen {
        let amounts = Amounts { overpaid, ..Amounts::default() };
        let open = vec![Open { ledger: "chips".into(), rows: 1, amounts }];
        Seen { severity, count: 1, others: 0, newest_us, example: None, open, asked_us: 0 }
    }

    fn told(state: AlertState) -> Option<Told> {
        Some(Told { at_us: TOLD_AT, state, seen: seen(Severity::Warning, 5, 100) })
    }

    fn alert(state: AlertState, told: Option<Told>, seen: Seen) -> Instance {
        Instance { state, started_us: 1, ended_us: None, seen, told }
    }

    #[test]
    fn each_change_of_state_is_told_once() {
        use AlertState::{Firing, Pending, Resolved};
        use Decision::{Hold, Notify};
        let table = [
            (Pending, None, Hold(WhyNot::Pending)),
            (Pending, told(Resolved), Hold(WhyNot::Pending)),
            (Firing, None, Notify(Because::Fired)),
            (Firing, told(Resolved), Notify(Because::Fired)),
            (Firing, told(Firing), Hold(WhyNot::NothingNew)),
            (Resolved, None, Hold(WhyNot::NeverTold)),
            (Resolved, told(Firing), Notify(Because::Resolved)),
            (Resolved, told(Resolved), Hold(WhyNot::EndTold)),
        ];
        for (state, told, wanted) in table {
            for lately in [false, true] {
                let alert = alert(state, told.clone(), seen(Severity::Warning, 5, 100));
                assert_eq!(decide(&alert, lately, TOLD_AT), wanted, "{state:?} {told:?}");
            }
        }
    }

    #[test]
    fn what_is_new_waits_a_minute_unless_it_is_worse() {
        use Decision::{Hold, Notify};
        use Severity::{Critical, Info, Warning};
        let minute = GROWTH_EVERY_US;
        let table = [
            // (seen, delivered lately, since it was told, decision)
            (seen(Warning, 5, 100), false, minute, Hold(WhyNot::NothingNew)),
            (seen(Warning, 6, 100), false, minute - 1, Hold(WhyNot::TooSoon)),
            (seen(Warning, 6, 100), false, minute, Notify(Because::Grew)),
            (seen(Warning, 6, 100), true, minute, Hold(WhyNot::TooSoon)),
            (seen(Critical, 5, 100), true, 0, Notify(Because::SeverityRose)),
            (seen(Info, 5, 100), false, minute, Hold(WhyNot::NothingNew)),
            (seen(Warning, 6, 999), false, 0, Hold(WhyNot::TooSoon)),
            (seen(Warning, 6, 1_000), true, 0, Notify(Because::AmountGrew)),
            (seen(Critical, 6, 1_000), false, 0, Notify(Because::SeverityRose)),
            (seen(Warning, 6, 1), false, 0, Hold(WhyNot::TooSoon)),
        ];
        for (seen, lately, later_us, wanted) in table {
            let alert = alert(AlertState::Firing, told(AlertState::Firing), seen.clone());
            assert_eq!(decide(&alert, lately, TOLD_AT + later_us), wanted, "{seen:?}");
        }
    }

    #[test]
    fn amounts_of_ledgers_and_of_the_four_sorts_are_compared_each_with_itself() {
        let open = |ledger: &str, amounts| Open { ledger: ledger.into(), rows: 1, amounts };
        let over = |overpaid| Amounts { overpaid, ..Amounts::default() };
        let under = |underpaid| Amounts { underpaid, ..Amounts::default() };
        let told = [open("a", over(100)), open("b", over(1))];
        assert!(!amount_grew(&told, &[open("a", over(900)), open("b", over(9))]));
        assert!(amount_grew(&told, &[open("a", over(900)), open("b", over(10))]));
        assert!(amount_grew(&told, &[open("a", under(1))]), "none before");
        assert!(amount_grew(&told, &[open("c", over(1))]), "no such ledger before");
        assert!(!amount_grew(&told, &[open("a", over(0)), open("c", over(0))]));
        assert!(!amount_grew(&[open("a", over(i128::MAX))], &[open("a", over(i128::MAX - 1))]));
    }
}
