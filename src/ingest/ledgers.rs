//! Which ledgers there are. Senders name them, and the judge holds each of them for good, with
//! all sources that write to it: so there is a bound, and what would go beyond it is rejected.

use std::collections::HashSet;

use crate::limits;
use crate::store::{Store, StoreError};

/// The ledgers that records have named.
#[derive(Debug, Default)]
pub(super) struct Ledgers {
    known: HashSet<String>,
    new: Vec<String>,
}

impl Ledgers {
    /// Reads all that are stored.
    pub(super) async fn load(store: &Store) -> Result<Self, StoreError> {
        Ok(Self { known: store.load_ledgers().await?.into_iter().collect(), new: Vec::new() })
    }

    /// As many and the same, to be let go of again.
    pub(super) fn copy(&self) -> Self {
        Self { known: self.known.clone(), new: Vec::new() }
    }

    /// Whether these can be written to.
    pub(super) fn have_room<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> bool {
        let new = names.into_iter().filter(|name| !self.known.contains(*name)).count();
        new == 0 || self.known.len() + new <= limits::LEDGERS_MAX
    }

    /// A record names it.
    pub(super) fn add(&mut self, name: &str) {
        if !self.known.contains(name) {
            self.known.insert(name.to_owned());
            self.new.push(name.to_owned());
        }
    }

    /// A refused event names it; `false` if its record must not.
    pub(super) fn add_refused(&mut self, name: &str) -> bool {
        let has_room = self.known.len() < limits::LEDGERS_REFUSED_MAX;
        if has_room {
            self.add(name);
        }
        has_room || self.known.contains(name)
    }

    /// Those that are new since it was last asked.
    pub(super) fn take_new(&mut self) -> Vec<String> {
        std::mem::take(&mut self.new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_bound_only_known_ones_have_room() {
        let mut ledgers = Ledgers::default();
        for n in 0..limits::LEDGERS_REFUSED_MAX {
            assert!(ledgers.add_refused(&n.to_string()));
        }
        assert!(!ledgers.add_refused("x"));
        assert!(ledgers.add_refused("0"));
        for n in limits::LEDGERS_REFUSED_MAX..limits::LEDGERS_MAX {
            assert!(ledgers.have_room([n.to_string().as_str(), "0"]));
            assert!(n < limits::LEDGERS_MAX - 1 || !ledgers.have_room(["x", "y"]));
            ledgers.add(&n.to_string());
        }
        assert!(!ledgers.have_room(["x"]));
        assert!(ledgers.have_room(["0", "1"]));
        assert_eq!(ledgers.take_new().len(), limits::LEDGERS_MAX);
        assert!(ledgers.take_new().is_empty());
    }
}
