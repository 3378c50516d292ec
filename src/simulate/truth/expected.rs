//! What must be found, and what may be: everything else is a false alarm.

use std::collections::BTreeMap;

use crate::outcome::{Id, Net, Signature, SourceName};

/// (ledger, player, signature).
pub type Key = (String, Id, Signature);

/// What a finding is about, as far as the API tells.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// A settlement.
    Key(Key),
    /// A player in a ledger.
    Player(String, Id),
    /// A source, and one of its runs.
    Source(SourceName),
    /// A ledger: the messages of it.
    Ledger(String),
    /// More of a ledger than one minute may open singly.
    More(String),
    /// A service in an env.
    Service(String, String),
}

/// Amounts, each in full and never set off against another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Money {
    /// Paid too often.
    pub overpaid: i128,
    /// Taken too often.
    pub overcharged: i128,
    /// Owed to players.
    pub underpaid: i128,
    /// Owed by players.
    pub undercharged: i128,
}

/// How a finding must look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Occurrences at least; none: it may be missing.
    pub least: u64,
    /// Occurrences at most.
    pub most: u64,
    /// What it comes to, where the rule comes to money.
    pub money: Option<Money>,
    /// The causes that are right; any if there are none.
    pub causes: Vec<&'static str>,
}

/// All findings that are right, by kind and subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    all: BTreeMap<&'static str, BTreeMap<About, Wanted>>,
    /// Some of it is wrong only if nobody tries again.
    pub waits_for_retries: bool,
}

impl Money {
    /// Surplus acceptances.
    pub fn surplus(net: Net, count: u64) -> Self {
        let moved = i128::from(net.0) * i128::from(count);
        Self { overpaid: moved.max(0), overcharged: (-moved).max(0), ..Self::default() }
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            overpaid: self.overpaid + other.overpaid,
            overcharged: self.overcharged + other.overcharged,
            underpaid: self.underpaid + other.underpaid,
            undercharged: self.undercharged + other.undercharged,
        }
    }

    /// What is left without the other.
    pub fn minus(self, other: Self) -> Self {
        Self {
            overpaid: self.overpaid - other.overpaid,
            overcharged: self.overcharged - other.overcharged,
            underpaid: self.underpaid - other.underpaid,
            undercharged: self.undercharged - other.undercharged,
        }
    }

    /// A missing acceptance.
    pub fn missing(net: Net) -> Self {
        let moved = i128::from(net.0);
        Self { underpaid: moved.max(0), undercharged: (-moved).max(0), ..Self::default() }
    }
}

impl Wanted {
    /// From so many occurrences to so many.
    pub fn between(least: u64, most: u64) -> Self {
        Self { least, most, money: None, causes: Vec::new() }
    }

    /// So many occurrences.
    pub fn exactly(count: u64) -> Self {
        Self::between(count, count)
    }

    /// It must be there; how often it happened is not compared.
    pub fn some() -> Self {
        Self::between(1, u64::MAX)
    }

    /// It may be there.
    pub fn perhaps() -> Self {
        Self::between(0, u64::MAX)
    }

    /// It must come to this.
    pub fn worth(self, money: Money) -> Self {
        Self { money: Some(money), ..self }
    }

    /// It must have one of these causes.
    pub fn because(self, causes: Vec<&'static str>) -> Self {
        Self { causes, ..self }
    }
}

impl Expected {
    /// Adds one.
    pub fn add(&mut self, kind: &'static str, about: About, wanted: Wanted) {
        self.all.entry(kind).or_default().insert(about, wanted);
    }

    /// Occurrences about one subject add up.
    pub fn count(&mut self, kind: &'static str, about: About, least: u64, most: u64) {
        let of_kind = self.all.entry(kind).or_default();
        let wanted = of_kind.entry(about).or_insert_with(|| Wanted::exactly(0));
        wanted.least = wanted.least.saturating_add(least);
        wanted.most = wanted.most.saturating_add(most);
    }

    /// All of one kind.
    pub fn of(&self, kind: &str) -> impl Iterator<Item = (&About, &Wanted)> {
        self.all.get(kind).into_iter().flatten()
    }

    /// Those of a kind that must be there.
    pub fn must(&self, kind: &str) -> usize {
        self.of(kind).filter(|(_, wanted)| wanted.least > 0).count()
    }

    /// How this one must look.
    pub fn get(&self, kind: &str, about: &About) -> Option<&Wanted> {
        self.all.get(kind)?.get(about)
    }

    /// Every one.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &About, &Wanted)> {
        self.all
            .iter()
            .flat_map(|(kind, of)| of.iter().map(move |(about, wanted)| (*kind, about, wanted)))
    }
}
