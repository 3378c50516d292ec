//! Content hashes of what was written, for as long as one group is planned: those it writes
//! itself, and those of repeats, read from disk. Repeats come in order, so one row read answers
//! for many of them.

use std::collections::BTreeMap;

use crate::limits;
use crate::store::identity::HashRun;
use crate::store::{Store, StoreError};

/// Hashes held at a time: 32 MB.
const READ_MAX: usize = 4 << 20;

/// Content hashes by boot and number.
#[derive(Debug, Default)]
pub(super) struct Contents {
    written: BTreeMap<(i64, u64), i64>,
    read: BTreeMap<(i64, u64), Vec<i64>>,
    read_hashes: usize,
}

impl Contents {
    /// A number was written by this group.
    pub(super) fn write(&mut self, boot_id: i64, seq: u64, content: i64) {
        self.written.insert((boot_id, seq), content);
    }

    /// The hash of a number; none if it was never written.
    pub(super) async fn get(
        &mut self,
        store: &Store,
        boot_id: i64,
        seq: u64,
    ) -> Result<Option<i64>, StoreError> {
        if let Some(content) = self.known(boot_id, seq) {
            return Ok(Some(content));
        }
        if self.read_hashes > READ_MAX {
            self.read.clear();
            self.read_hashes = 0;
        }
        for run in store.hash_runs(boot_id, seq).await? {
            self.read_hashes += run.hashes.len();
            self.read.insert((boot_id, run.first_seq), run.hashes);
        }
        Ok(self.known(boot_id, seq))
    }

    fn known(&self, boot_id: i64, seq: u64) -> Option<i64> {
        if let Some(content) = self.written.get(&(boot_id, seq)) {
            return Some(*content);
        }
        let (&(_, first), hashes) = self.read.range((boot_id, 0)..=(boot_id, seq)).next_back()?;
        hashes.get(usize::try_from(seq - first).ok()?).copied()
    }

    /// What this group writes, as runs of numbers without holes.
    pub(super) fn into_runs(self) -> Vec<HashRun> {
        let mut runs: Vec<HashRun> = Vec::new();
        for ((boot_id, seq), content) in self.written {
            match runs.last_mut() {
                Some(run) if run.boot_id == boot_id && next_of(run) == seq => {
                    run.hashes.push(content);
                }
                _ => runs.push(HashRun { boot_id, first_seq: seq, hashes: vec![content] }),
            }
        }
        runs
    }
}

fn next_of(run: &HashRun) -> u64 {
    run.first_seq + run.hashes.len() as u64
}

const _: () = assert!(READ_MAX > limits::GROUP_EVENTS_MAX, "what a group repeats fits");
