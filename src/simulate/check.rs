//! Compares what the collector found with the truth, and says each difference on a line.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::run::Played;
use super::truth::{Between, Expected, Key, TruthSettings};
use crate::clock::Clock;
use crate::outcome::{Id, Signature, SourceName};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long the audit may take beyond its graces.
const PATIENCE_US: i64 = 30_000_000;
/// After the graces, so that what they confirm is there. False alarms get this long too.
const MARGIN_US: i64 = 3_000_000;
/// Pages of findings that are read at most; with 1,000 each.
const PAGES_MAX: usize = 1_000;

/// The collector's `[audit]`, as `/api/v1/config` has it.
#[derive(Clone, Debug, Deserialize)]
pub struct AuditSettings {
    eviction_grace_us: String,
    block_grace_us: String,
    gap_grace_us: String,
    warmup_us: String,
    horizon_us: String,
    live_games: u32,
}

#[derive(Deserialize)]
struct ConfigAnswer {
    audit: AuditSettings,
}

/// What of a finding is compared, as `/api/v1/findings` has it.
#[derive(Clone, Debug, Deserialize)]
pub struct Reported {
    kind: String,
    state: String,
    service: String,
    env: String,
    ledger: Option<String>,
    source: Option<String>,
    player: Option<Id>,
    signature: Option<Signature>,
    count: String,
    overpaid: String,
    overcharged: String,
}

#[derive(Deserialize)]
struct Page {
    findings: Vec<Reported>,
    next: Option<String>,
}

/// Why nothing could be compared.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The collector did not answer.
    #[error("the collector's API did not answer: {0}")]
    Http(#[from] reqwest::Error),
    /// The answer can't be read.
    #[error("the collector's API answered what can't be read: {0}")]
    Unreadable(String),
}

/// How the collector did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Found as it must be.
    pub right: u64,
    /// Not found, or less than there is.
    pub missed: Vec<String>,
    /// Found and not so, or more than there is.
    pub false_alarms: Vec<String>,
}

impl Comparison {
    /// Whether nothing differs.
    pub fn is_right(&self) -> bool {
        self.missed.is_empty() && self.false_alarms.is_empty()
    }
}

impl AuditSettings {
    fn truth(&self) -> Result<TruthSettings, CheckError> {
        Ok(TruthSettings {
            live_games: usize::try_from(self.live_games).unwrap_or(usize::MAX),
            warmup_us: number(&self.warmup_us)?,
            horizon_us: number(&self.horizon_us)?,
        })
    }

    /// Until when the audit may wait before it has to be sure. After all goodbyes its time is that
    /// of receipt.
    fn settled_us(&self, played: &Played, ended_us: i64, losses: bool) -> Result<i64, CheckError> {
        let grace_us = number::<i64>(&self.eviction_grace_us)?.max(number(&self.block_grace_us)?);
        let told_us = played.end_us + grace_us;
        let gaps_us = if losses { ended_us + number::<i64>(&self.gap_grace_us)? } else { 0 };
        Ok(told_us.max(gaps_us).max(ended_us) + MARGIN_US)
    }
}

/// Waits until the graces are over, then looks until all is as it must be, for a bounded time.
pub async fn check(
    http: &reqwest::Client,
    target: &str,
    mut played: Played,
) -> Result<Comparison, CheckError> {
    let ended_us = Clock::System.now_us();
    let config: ConfigAnswer = get(http, &format!("{target}/api/v1/config")).await?;
    let truth = std::mem::take(&mut played.truth);
    let expected = truth.expected(&config.audit.truth()?);
    let losses = !expected.gaps.is_empty() || !expected.unverifiable.is_empty();
    let settled_us = config.audit.settled_us(&played, ended_us, losses)?;
    let give_up_us = settled_us + PATIENCE_US;
    loop {
        let now_us = Clock::System.now_us();
        if now_us >= settled_us {
            let found = read_findings(http, target, &played).await?;
            let comparison = compare(&expected, &found)?;
            if comparison.is_right() || now_us >= give_up_us {
                return Ok(comparison);
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn get<T: DeserializeOwned>(http: &reqwest::Client, url: &str) -> Result<T, CheckError> {
    let body = http.get(url).send().await?.error_for_status()?.bytes().await?;
    serde_json::from_slice(&body).map_err(|error| {
        let start: String = String::from_utf8_lossy(&body).chars().take(200).collect();
        CheckError::Unreadable(format!("GET {url}: {error}: {start}"))
    })
}

/// All findings that stand, of the sources that pushed and the books that they wrote to.
async fn read_findings(
    http: &reqwest::Client,
    target: &str,
    played: &Played,
) -> Result<Vec<Reported>, CheckError> {
    let mut found = Vec::new();
    let mut after = String::new();
    for _ in 0..PAGES_MAX {
        let url = format!("{target}/api/v1/findings?limit=1000{after}");
        let page: Page = get(http, &url).await?;
        found.extend(page.findings);
        let Some(next) = page.next else { break };
        let next = percent_encoding::utf8_percent_encode(&next, percent_encoding::NON_ALPHANUMERIC);
        after = format!("&after={next}");
    }
    found.retain(|finding| finding.state != "closed" && finding.is_of(played));
    Ok(found)
}

/// The findings of each kind, put together as the truth has them.
#[derive(Default)]
struct Found {
    leaks: BTreeMap<Key, super::truth::Leak>,
    live_evictions: BTreeMap<SourceName, u64>,
    false_blocks: BTreeSet<Key>,
    unverifiable: BTreeSet<Key>,
    gaps: BTreeMap<SourceName, u64>,
    /// Kinds that nothing in a simulation can bring about.
    strange: Vec<String>,
}

/// Compares findings that stand with the truth.
pub fn compare(expected: &Expected, found: &[Reported]) -> Result<Comparison, CheckError> {
    let mut all = Found::default();
    for finding in found {
        all.add(finding)?;
    }
    let mut gaps: BTreeMap<SourceName, Between> = BTreeMap::new();
    for ((from, _), missing) in &expected.gaps {
        let gap = gaps.entry(from.clone()).or_default();
        gap.least += missing;
        gap.most += missing;
    }
    let mut comparison = Comparison { false_alarms: all.strange, ..Comparison::default() };
    comparison.leaks(&expected.leaks, &all.leaks);
    comparison.counts("live_eviction", &expected.live_evictions, &all.live_evictions);
    comparison.keys("false_block", &expected.false_blocks, &all.false_blocks);
    comparison.keys("unverifiable_block", &expected.unverifiable, &all.unverifiable);
    comparison.counts("telemetry_gap", &gaps, &all.gaps);
    Ok(comparison)
}

impl Found {
    fn add(&mut self, finding: &Reported) -> Result<(), CheckError> {
        let count: u64 = number(&finding.count)?;
        match finding.kind.as_str() {
            "duplicate_leak" => {
                let leak = self.leaks.entry(finding.key()?).or_default();
                leak.count += count;
                leak.overpaid += number::<i128>(&finding.overpaid)?;
                leak.overcharged += number::<i128>(&finding.overcharged)?;
            }
            "live_eviction" => *self.live_evictions.entry(finding.from()?).or_default() += count,
            "false_block" => drop(self.false_blocks.insert(finding.key()?)),
            "unverifiable_block" => drop(self.unverifiable.insert(finding.key()?)),
            "telemetry_gap" => *self.gaps.entry(finding.from()?).or_default() += count,
            // Follow-ups of the faults that are none of the truth's business.
            "window_lost"
            | "undersized_window"
            | "cap_mismatch"
            | "replica_disagreement"
            | "outcome_flip"
            | "two_writers"
            | "retry_storm"
            | "stuck_claim" => {}
            kind => {
                let (service, source) = (&finding.service, finding.source.as_deref());
                let source = source.unwrap_or("-");
                self.strange.push(format!("{kind} of {service}, source {source}: none happened"));
            }
        }
        Ok(())
    }
}

impl Comparison {
    fn leaks(
        &mut self,
        expected: &BTreeMap<Key, super::truth::Leak>,
        found: &BTreeMap<Key, super::truth::Leak>,
    ) {
        for (key, leak) in expected {
            match found.get(key) {
                Some(other) if other == leak => self.right += 1,
                Some(other) => self.missed.push(format!(
                    "duplicate_leak {}: it is {leak:?}, the collector says {other:?}",
                    text(key)
                )),
                None => self.missed.push(format!("duplicate_leak {}: {leak:?}", text(key))),
            }
        }
        for (key, leak) in found.iter().filter(|(key, _)| !expected.contains_key(*key)) {
            self.false_alarms
                .push(format!("duplicate_leak {}: accepted once, not {leak:?}", text(key)));
        }
    }

    fn keys(&mut self, kind: &str, expected: &BTreeSet<Key>, found: &BTreeSet<Key>) {
        self.right += expected.intersection(found).count() as u64;
        let missed = expected.difference(found);
        self.missed.extend(missed.map(|key| format!("{kind} {}: not found", text(key))));
        let wrong = found.difference(expected);
        self.false_alarms.extend(wrong.map(|key| format!("{kind} {}: it is none", text(key))));
    }

    fn counts(
        &mut self,
        kind: &str,
        expected: &BTreeMap<SourceName, Between>,
        found: &BTreeMap<SourceName, u64>,
    ) {
        let sources: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
        for from in sources {
            let Between { least, most } = expected.get(from).copied().unwrap_or_default();
            let count = found.get(from).copied().unwrap_or_default();
            let line = || {
                let (service, source) = (&from.service, &from.source);
                let right = format!("{least} to {most} are right");
                format!("{kind} of {service}, source {source}: {count} found, {right}")
            };
            match count {
                _ if count < least => self.missed.push(line()),
                _ if count > most => self.false_alarms.push(line()),
                _ => self.right += 1,
            }
        }
    }
}

impl Reported {
    fn is_of(&self, played: &Played) -> bool {
        let source = self.source.as_deref();
        let pushed = |from: &SourceName| Some(from.source.as_str()) == source;
        let is_ours = |ledger: &String| played.ledgers.contains(ledger);
        (source.is_none() || played.sources.iter().any(pushed))
            && self.ledger.as_ref().is_none_or(is_ours)
    }

    fn key(&self) -> Result<Key, CheckError> {
        let parts = (self.ledger.clone(), self.player.clone(), self.signature.clone());
        match parts {
            (Some(ledger), Some(player), Some(signature)) => Ok((ledger, player, signature)),
            _ => Err(CheckError::Unreadable(format!("a {} without its settlement", self.kind))),
        }
    }

    fn from(&self) -> Result<SourceName, CheckError> {
        let id = |text: &str| {
            Id::parse(text).map_err(|error| CheckError::Unreadable(format!("{text:?} {error}")))
        };
        let source = self.source.as_deref().unwrap_or_default();
        Ok(SourceName { service: id(&self.service)?, env: id(&self.env)?, source: id(source)? })
    }
}

fn text((ledger, player, signature): &Key) -> String {
    let net = signature.net();
    let game = signature
        .game()
        .map_or(String::new(), |game| format!("{} round {}", game.room, game.round));
    let last = matches!(signature, Signature::Settlement { last: true, .. });
    let which = if last { "final" } else { "immediate" };
    format!("in {ledger} of {player}, {game} {which} {net}")
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, CheckError> {
    text.parse().map_err(|_| CheckError::Unreadable(format!("{text:?} is no number")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::truth::Leak;
    use super::*;

    fn leak_json(count: &str, overpaid: &str) -> Value {
        json!({
            "kind": "duplicate_leak", "state": "confirmed", "service": "s", "env": "prod",
            "ledger": "s", "source": null, "player": "p",
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
        let leak = Leak { count: 1, overpaid: 5, overcharged: 0 };
        Expected {
            leaks: [(reported.key().unwrap(), leak)].into(),
            live_evictions: [(evicted.from().unwrap(), Between { least: 3, most: 4 })].into(),
            ..Expected::default()
        }
    }

    #[test]
    fn what_is_found_as_it_must_be_is_right() {
        // Rows of one subject add up.
        let found = vec![leak_json("1", "5"), eviction_json("a", "2"), eviction_json("a", "1")];
        let comparison = compared(&expected(), found);
        assert!(comparison.is_right());
        assert_eq!(comparison.right, 2);
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
        assert_eq!((comparison.right, comparison.false_alarms.len()), (0, 3));
        assert!(comparison.false_alarms.iter().any(|line| line.contains("round 1 final 5")));
    }
}
