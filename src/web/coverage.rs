//! Who was heard, as the judge has it: read from its own state, so that pages and verdicts can't
//! differ. Only of what is shown: a page must not cost what the whole fleet weighs.

use std::collections::BTreeMap;

use crate::audit::{Blind, Source};
use crate::outcome::SourceName;
use crate::store::{SourceRow, Store, StoreError, part};

/// Stretches in which a source was blind that are told, the newest ones.
const BLIND_TOLD: usize = 5;

/// The newest stretches in which each of these sources was blind, newest first.
pub(super) async fn blind(
    store: &Store,
    shown: &[SourceRow],
) -> Result<BTreeMap<SourceName, Vec<Blind>>, StoreError> {
    let names: Vec<SourceName> = shown.iter().filter_map(SourceRow::name).collect();
    let sources: Vec<Source> = store.read_part_by_name(part::SOURCE, &names).await?;
    let newest = |source: Source| {
        let mut blind = source.blind();
        blind.sort_by_key(|stretch| std::cmp::Reverse(stretch.from_us));
        blind.truncate(BLIND_TOLD);
        (source.name, blind)
    };
    Ok(sources.into_iter().map(newest).collect())
}

/// How many ledgers are so new that their guards may remember what was never heard here. One
/// without any outcome is not new but empty.
pub(super) async fn new_ledgers(
    store: &Store,
    now_us: i64,
    warmup_us: i64,
) -> Result<i64, StoreError> {
    store.count_ledgers_after(now_us.saturating_sub(warmup_us)).await
}
