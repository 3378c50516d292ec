//! Findings beside the truth: what is right, what was missed, and what is false.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::check::CheckError;
use super::truth::{About, Expected, Money, Wanted};
use crate::outcome::{Id, Signature, SourceName};

/// What of a finding is compared, as `/api/v1/findings` has it.
#[derive(Clone, Debug, Deserialize)]
pub struct Reported {
    kind: String,
    state: String,
    #[serde(default)]
    cause: String,
    service: String,
    env: String,
    ledger: Option<String>,
    source: Option<String>,
    player: Option<Id>,
    signature: Option<Signature>,
    count: String,
    overpaid: String,
    overcharged: String,
    #[serde(default)]
    underpaid: String,
    #[serde(default)]
    undercharged: String,
}

/// How the collector did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Found as it must be, by kind.
    pub right: BTreeMap<&'static str, u64>,
    /// Not found, or less than there is.
    pub missed: Vec<String>,
    /// Found and not so, or more than there is.
    pub false_alarms: Vec<String>,
}

/// The rows about one subject, taken together.
#[derive(Clone, Default)]
struct Found {
    count: u64,
    rows: u64,
    /// Rows of which the audit is not sure yet.
    suspected: u64,
    money: Money,
    causes: BTreeSet<String>,
}

impl Comparison {
    /// Whether nothing differs.
    pub fn is_right(&self) -> bool {
        self.missed.is_empty() && self.false_alarms.is_empty()
    }

    /// All that was found as it must be.
    pub fn right_in_all(&self) -> u64 {
        self.right.values().sum()
    }

    fn one(
        &mut self,
        (kind, about, wanted): (&'static str, &About, &Wanted),
        found: Option<&Found>,
        more: &mut More,
    ) {
        let Some(found) = found else {
            if wanted.least > 0 && more.take(kind, about, wanted) {
                *self.right.entry(kind).or_default() += 1;
            } else if wanted.least > 0 {
                self.missed.push(format!("{kind} {}: {}", text(about), describe(wanted)));
            }
            return;
        };
        let count = if is_of_many(kind) { found.rows } else { found.count };
        let line = || {
            let (money, causes) = (found.money, &found.causes);
            let right = describe(wanted);
            let sure = if found.suspected > 0 { ", suspected only" } else { "" };
            format!("{kind} {}: {right}; found {count}, {money:?}, {causes:?}{sure}", text(about))
        };
        let other_cause = |cause: &String| !wanted.causes.contains(&cause.as_str());
        let unsure = wanted.least > 0 && found.suspected > 0;
        let other_money = wanted.money.is_some_and(|money| money != found.money);
        if count < wanted.least || other_money || unsure {
            self.missed.push(line());
        } else if count > wanted.most
            || (!wanted.causes.is_empty() && found.causes.iter().any(other_cause))
        {
            self.false_alarms.push(line());
        } else {
            *self.right.entry(kind).or_default() += 1;
        }
    }
}

/// Compares findings that stand with the truth.
pub fn compare(expected: &Expected, reported: &[Reported]) -> Result<Comparison, CheckError> {
    let mut found: BTreeMap<(&str, About), Found> = BTreeMap::new();
    for finding in reported {
        let all = found.entry((finding.kind.as_str(), finding.about()?)).or_default();
        all.rows += 1;
        all.suspected += u64::from(finding.state == "suspected");
        all.count += number::<u64>(&finding.count)?;
        all.causes.insert(finding.cause.clone());
        all.money.overpaid += number::<i128>(&finding.overpaid)?;
        all.money.overcharged += number::<i128>(&finding.overcharged)?;
        all.money.underpaid += number_or_none(&finding.underpaid)?;
        all.money.undercharged += number_or_none(&finding.undercharged)?;
    }
    let mut comparison = Comparison::default();
    let mut more = More::of(&mut found);
    for (kind, about, wanted) in expected.iter() {
        let one = found.remove(&(kind, about.clone()));
        comparison.one((kind, about, wanted), one.as_ref(), &mut more);
    }
    for ((kind, about), one) in found.into_iter().chain(more.left()) {
        let (count, money, causes) = (one.count, one.money, one.causes);
        let line = format!("{kind} {}: none; found {count}, {money:?}, {causes:?}", text(&about));
        comparison.false_alarms.push(line);
    }
    Ok(comparison)
}

/// Rows that put together what one minute may not open singly: of settlements, by ledger.
struct More(BTreeMap<(String, String), Found>);

impl More {
    fn of(found: &mut BTreeMap<(&str, About), Found>) -> Self {
        let mut more: BTreeMap<(String, String), Found> = BTreeMap::new();
        found.retain(|(kind, about), one| {
            let About::More(ledger) = about else { return true };
            let all = more.entry(((*kind).to_owned(), ledger.clone())).or_default();
            all.count += one.count;
            all.money = all.money.plus(one.money);
            false
        });
        Self(more)
    }

    /// Takes one settlement out; `false` if it can't be in there.
    fn take(&mut self, kind: &str, about: &About, wanted: &Wanted) -> bool {
        let About::Key((ledger, _, _)) = about else { return false };
        let Some(all) = self.0.get_mut(&(kind.to_owned(), ledger.clone())) else { return false };
        let most = if wanted.most == u64::MAX { wanted.least } else { wanted.most };
        let Some(count) = all.count.checked_sub(most) else { return false };
        all.count = count;
        all.money = all.money.minus(wanted.money.unwrap_or_default());
        true
    }

    /// What no settlement explains.
    fn left(&self) -> impl Iterator<Item = ((&str, About), Found)> {
        let wrong = |all: &Found| all.count > 0 || all.money != Money::default();
        self.0.iter().filter(move |(_, all)| wrong(all)).map(|((kind, ledger), all)| {
            ((kind.as_str(), About::More(ledger.clone())), all.clone())
        })
    }
}

/// Kinds with a row for each message or ref, of which the API names the ledger or player only.
fn is_of_many(kind: &str) -> bool {
    matches!(kind, "id_collision" | "missed_duplicate")
}

impl Reported {
    /// Whether it stands and is about these sources and books.
    pub(super) fn is_of(&self, sources: &[SourceName], ledgers: &[String]) -> bool {
        let source = self.source.as_deref();
        let pushed = |from: &SourceName| Some(from.source.as_str()) == source;
        let is_ours = |ledger: &String| ledgers.contains(ledger);
        self.state != "closed"
            && (source.is_some() || self.ledger.is_some())
            && (source.is_none() || sources.iter().any(pushed))
            && self.ledger.as_ref().is_none_or(is_ours)
    }

    fn about(&self) -> Result<About, CheckError> {
        let id = |text: &str| {
            Id::parse(text).map_err(|error| CheckError::Unreadable(format!("{text:?} {error}")))
        };
        let book = || self.ledger.clone().unwrap_or_default();
        if let (Some(player), Some(signature)) = (&self.player, &self.signature) {
            return Ok(About::Key((book(), player.clone(), signature.clone())));
        }
        if let Some(player) = &self.player {
            return Ok(About::Player(book(), player.clone()));
        }
        if self.kind == "id_collision" {
            return Ok(About::Ledger(book()));
        }
        let of_ledger = matches!(self.kind.as_str(), "live_eviction" | "guard_bypass");
        if self.source.is_none() && self.ledger.is_some() && !of_ledger {
            return Ok(About::More(book()));
        }
        match &self.source {
            Some(source) => Ok(About::Source(SourceName {
                service: id(&self.service)?,
                env: id(&self.env)?,
                source: id(source)?,
            })),
            None => Ok(About::Service(self.service.clone(), self.env.clone())),
        }
    }
}

fn text(about: &About) -> String {
    let (ledger, player, signature) = match about {
        About::Key(key) => key,
        About::Player(ledger, player) => return format!("of {player} in {ledger}"),
        About::Source(from) => return format!("of {}, source {}", from.service, from.source),
        About::Ledger(ledger) => return format!("in {ledger}"),
        About::More(ledger) => return format!("in {ledger}, more of one minute"),
        About::Service(service, env) => return format!("of {service}, {env}"),
    };
    let net = signature.net();
    let game = signature
        .game()
        .map_or(String::new(), |game| format!("{} round {}", game.room, game.round));
    let last = matches!(signature, Signature::Settlement { last: true, .. });
    let which = if last { "final" } else { "immediate" };
    format!("in {ledger} of {player}, {game} {which} {net}")
}

fn describe(wanted: &Wanted) -> String {
    let Wanted { least, most, money, causes } = wanted;
    let most = if *most == u64::MAX { "any number".to_owned() } else { most.to_string() };
    let money = money.map_or(String::new(), |money| format!(", {money:?}"));
    format!("{least} to {most} are right{money} {causes:?}")
}

fn number_or_none(text: &str) -> Result<i128, CheckError> {
    if text.is_empty() { Ok(0) } else { number(text) }
}

/// Reads a number of the API, where 64-bit numbers and amounts are text.
pub(super) fn number<T: std::str::FromStr>(text: &str) -> Result<T, CheckError> {
    text.parse().map_err(|_| CheckError::Unreadable(format!("{text:?} is no number")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn leak_json(count: &str, overpaid: &str) -> Value {
        json!({
            "kind": "duplicate_leak", "state": "confirmed", "cause": "race", "service": "s",
            "env": "prod", "ledger": "s", "source": null, "player": "p",
            "signature": {"room": "r", "round": "1", "net": "5", "final": true},
            "count": count, "overpaid": overpaid, "overcharged": "0",
        })
    }

    fn eviction_json(source: &str, count: &str) -> Value {
        json!({
            "kind": "live_eviction", "state": "confirmed", "service": "s", "env": "prod",
            "ledger": null, "source": source, "player": null, "signature": null,
            "count": count, "overpaid": "0", "overcharged": "0",
        })
    }

    fn compared(expected: &Expected, found: Vec<Value>) -> Comparison {
        let found: Vec<Reported> = serde_json::from_value(Value::Array(found)).unwrap();
        compare(expected, &found).unwrap()
    }

    fn expected() -> Expected {
        let reported: Reported = serde_json::from_value(leak_json("1", "5")).unwrap();
        let evicted: Reported = serde_json::from_value(eviction_json("a", "1")).unwrap();
        let money = Money { overpaid: 5, ..Money::default() };
        let leak = Wanted::exactly(1).worth(money).because(vec!["race"]);
        let mut expected = Expected::default();
        expected.add("duplicate_leak", reported.about().unwrap(), leak);
        expected.count("live_eviction", evicted.about().unwrap(), 3, 4);
        expected
    }

    #[test]
    fn what_is_found_as_it_must_be_is_right() {
        // Rows of one subject add up.
        let found = vec![leak_json("1", "5"), eviction_json("a", "2"), eviction_json("a", "1")];
        let comparison = compared(&expected(), found);
        assert!(comparison.is_right());
        assert_eq!(comparison.right_in_all(), 2);
    }

    #[test]
    fn nothing_found_is_all_missed() {
        let comparison = compared(&expected(), vec![]);
        assert_eq!((comparison.missed.len(), comparison.false_alarms.len()), (2, 0));
    }

    #[test]
    fn another_amount_or_count_differs() {
        let comparison = compared(&expected(), vec![leak_json("1", "6"), eviction_json("a", "2")]);
        assert_eq!(comparison.missed.len(), 2, "{comparison:?}");
        let comparison = compared(&expected(), vec![leak_json("1", "5"), eviction_json("a", "5")]);
        assert_eq!(comparison.false_alarms.len(), 1, "{comparison:?}");
    }

    #[test]
    fn what_did_not_happen_is_a_false_alarm() {
        let mut strange = eviction_json("a", "1");
        strange["kind"] = json!("identity_conflict");
        let found = vec![leak_json("1", "5"), eviction_json("b", "1"), strange];
        let comparison = compared(&Expected::default(), found);
        assert_eq!((comparison.right_in_all(), comparison.false_alarms.len()), (0, 3));
        assert!(comparison.false_alarms.iter().any(|line| line.contains("round 1 final 5")));
    }

    #[test]
    fn another_cause_is_false() {
        let mut leak = leak_json("1", "5");
        leak["cause"] = json!("split");
        let comparison = compared(&expected(), vec![leak, eviction_json("a", "3")]);
        assert_eq!((comparison.missed.len(), comparison.false_alarms.len()), (0, 1));
    }

    #[test]
    fn what_is_only_suspected_is_not_found_yet() {
        let mut leak = leak_json("1", "5");
        leak["state"] = json!("suspected");
        let comparison = compared(&expected(), vec![leak, eviction_json("a", "3")]);
        assert_eq!((comparison.missed.len(), comparison.false_alarms.len()), (1, 0));
    }

    #[test]
    fn what_may_be_found_need_not_be() {
        let mut expected = expected();
        let from = match expected.of("live_eviction").next() {
            Some((about, _)) => about.clone(),
            None => panic!("it was added"),
        };
        expected.add("telemetry_gap", from, Wanted::perhaps());
        let found = vec![leak_json("1", "5"), eviction_json("a", "3")];
        assert!(compared(&expected, found).is_right());
    }

    #[test]
    fn more_rows_than_a_minute_may_open_are_put_together() {
        let more = |count: &str, overpaid: &str| {
            let mut more = leak_json(count, overpaid);
            more["player"] = json!(null);
            more["signature"] = json!(null);
            vec![more, eviction_json("a", "3")]
        };
        assert!(compared(&expected(), more("1", "5")).is_right());
        assert!(!compared(&expected(), more("1", "6")).is_right());
        assert!(!compared(&expected(), more("2", "5")).is_right());
    }
}
