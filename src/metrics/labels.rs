//! Which names become label values. Senders choose them, and every new one is a new series for
//! ever: so the first few hundred do, first come first served, and the rest share one.

use std::collections::BTreeSet;

use crate::limits;

/// The label value of all names beyond the bound.
pub(super) const OTHER: &str = "other";
/// The label value where a name could not be read: an empty one would look like none.
pub(super) const UNREAD: &str = "unknown";

/// The names that became label values.
#[derive(Debug)]
pub(super) struct Labels {
    services: Bounded,
    envs: Bounded,
    ledgers: Bounded,
}

#[derive(Debug)]
struct Bounded {
    known: BTreeSet<String>,
    max: usize,
}

impl Default for Labels {
    fn default() -> Self {
        let bounded = |max| Bounded { known: BTreeSet::new(), max };
        Self {
            services: bounded(limits::LABEL_SERVICES_MAX),
            envs: bounded(limits::LABEL_ENVS_MAX),
            ledgers: bounded(limits::LABEL_LEDGERS_MAX),
        }
    }
}

impl Labels {
    /// The label value of a service.
    pub(super) fn service(&self, name: &str) -> String {
        self.services.look_up(name).unwrap_or(OTHER).to_owned()
    }

    /// The label value of an env.
    pub(super) fn env(&self, name: &str) -> String {
        self.envs.look_up(name).unwrap_or(OTHER).to_owned()
    }

    /// Makes service and env label values while there is room. Only for what was written: names
    /// in what was refused may be anything, and would use up the room.
    pub(super) fn admit(&mut self, service: &str, env: &str) {
        self.services.admit(service);
        self.envs.admit(env);
    }

    /// The label value of a ledger; beyond the bound there is none, since amounts of two ledgers
    /// must not be added.
    pub(super) fn ledger(&mut self, name: &str) -> Option<String> {
        self.ledgers.admit(name);
        self.ledgers.look_up(name).map(str::to_owned)
    }
}

impl Bounded {
    fn admit(&mut self, name: &str) {
        if self.look_up(name).is_none() && self.known.len() < self.max {
            self.known.insert(name.to_owned());
        }
    }

    fn look_up<'a>(&self, name: &'a str) -> Option<&'a str> {
        match name {
            "" => Some(UNREAD),
            OTHER | UNREAD => Some(name),
            _ => Some(name).filter(|name| self.known.contains(*name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_become_labels_and_stay_so() {
        let mut labels = Labels::default();
        for n in 0..limits::LABEL_SERVICES_MAX {
            assert_eq!(labels.service(&format!("s{n}")), OTHER, "not by being looked up");
            labels.admit(&format!("s{n}"), &format!("e{n}"));
            assert_eq!(labels.service(&format!("s{n}")), format!("s{n}"));
        }
        labels.admit("one more", "one more");
        assert_eq!(labels.service("one more"), OTHER);
        assert_eq!(labels.service("s0"), "s0");
        let env = |n| labels.env(&format!("e{n}"));
        assert_eq!(env(limits::LABEL_ENVS_MAX - 1), format!("e{}", limits::LABEL_ENVS_MAX - 1));
        assert_eq!(env(limits::LABEL_ENVS_MAX), OTHER);
    }

    #[test]
    fn names_that_are_shared_anyway_take_no_place() {
        let mut labels = Labels::default();
        assert_eq!(labels.env(""), UNREAD);
        assert_eq!(labels.env(OTHER), OTHER);
        for name in ["", OTHER, UNREAD] {
            labels.admit(name, name);
        }
        for n in 0..limits::LABEL_ENVS_MAX {
            labels.admit("s", &format!("e{n}"));
            assert_ne!(labels.env(&format!("e{n}")), OTHER);
        }
    }

    #[test]
    fn a_ledger_beyond_the_bound_is_not_added_to_others() {
        let mut labels = Labels::default();
        for n in 0..limits::LABEL_LEDGERS_MAX {
            assert!(labels.ledger(&format!("l{n}")).is_some());
        }
        assert_eq!(labels.ledger("one more"), None);
    }
}
