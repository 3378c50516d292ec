//! Who was heard, as the judge has it: read from its own state, so that pages and verdicts can't
//! differ. The judge holds all of it in memory, so reading all of it here stays within bounds.

use std::collections::BTreeMap;

use crate::audit::{Blind, Ledger, Source};
use crate::outcome::SourceName;
use crate::store::{Store, StoreError, part};

/// Stretches in which a source was blind that are told, the newest ones.
const BLIND_TOLD: usize = 5;

/// The newest stretches in which each source was blind, newest first.
pub(super) async fn blind(store: &Store) -> Result<BTreeMap<SourceName, Vec<Blind>>, StoreError> {
    let sources: Vec<Source> = store.read_part(part::SOURCE).await?;
    let newest = |source: Source| {
        let mut blind = source.blind();
        blind.sort_by_key(|stretch| std::cmp::Reverse(stretch.from_us));
        blind.truncate(BLIND_TOLD);
        (source.name, blind)
    };
    Ok(sources.into_iter().map(newest).collect())
}

/// How many ledgers are so new that their guards may remember what was never heard here.
pub(super) async fn new_ledgers(
    store: &Store,
    now_us: i64,
    warmup_us: i64,
) -> Result<usize, StoreError> {
    let ledgers: Vec<Ledger> = store.read_part(part::LEDGER).await?;
    let is_new = |ledger: &&Ledger| ledger.first_us.saturating_add(warmup_us) > now_us;
    Ok(ledgers.iter().filter(is_new).count())
}
