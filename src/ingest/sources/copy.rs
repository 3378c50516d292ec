//! A copy to plan against that nobody keeps: what a request would be told, and nothing of it
//! remembered. A request names few of the sources, so only those are copied; of the others it
//! counts that they are there.

use super::Sources;
use crate::outcome::SourceName;

impl Sources {
    /// These sources, as far as they are known, among as many others as there are. Of transitions
    /// it knows nothing.
    pub(in crate::ingest) fn copy_of<'a>(
        &self,
        names: impl IntoIterator<Item = &'a SourceName>,
    ) -> Self {
        let mut copy = Self {
            ledgers: self.ledgers.copy(),
            last_source_id: self.last_source_id,
            last_boot_id: self.last_boot_id,
            boots: self.boots,
            ..Self::default()
        };
        for name in names {
            if !copy.by_name.contains_key(name)
                && let Some(source) = self.by_name.get(name)
            {
                copy.by_name.insert(name.clone(), source.clone());
            }
        }
        copy.elsewhere = self.by_name.len().saturating_sub(copy.by_name.len());
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;
    use crate::outcome::{Boot, Id};

    fn name(source: usize) -> SourceName {
        let id = |text: &str| Id::parse(text).unwrap();
        SourceName { service: id("s"), env: id("prod"), source: id(&source.to_string()) }
    }

    #[test]
    fn a_copy_is_as_full_as_what_it_was_taken_of() {
        let mut sources = Sources::default();
        for source in 0..limits::SOURCES_MAX {
            sources.hear_boot(&name(source), Boot::Number(1), 1, 5).unwrap();
        }
        let new = name(limits::SOURCES_MAX);
        let mut copy = sources.copy_of([&name(7), &name(7), &new]);
        assert!(copy.hear(&name(7), 6).is_some());
        assert!(copy.hear(&new, 6).is_none());
        sources.forget(&name(0));
        let mut copy = sources.copy_of([&new]);
        assert!(copy.hear(&new, 6).is_some());
        assert!(copy.hear(&name(0), 6).is_none());
    }

    #[test]
    fn what_a_copy_hears_stays_in_it() {
        let mut sources = Sources::default();
        sources.hear_boot(&name(1), Boot::Number(1), 1, 5).unwrap();
        sources.ledgers.add("a");
        sources.take_changed().unwrap();
        let before = format!("{sources:?}");
        let mut copy = sources.copy_of([&name(1), &name(2)]);
        for source in 1..=2 {
            let heard = copy.hear_boot(&name(source), Boot::Number(2), 1, 9).unwrap();
            heard.boots.get_mut(&Boot::Number(2)).unwrap().receive(4, 0, 9, 0);
        }
        copy.ledgers.add("b");
        assert_eq!(format!("{sources:?}"), before);
    }
}
