//! Keyed hashes. Without a key, whoever chooses signatures could make two of them collide and
//! so hide a duplicate.

use std::hash::Hasher;

use siphasher::{sip::SipHasher13, sip128};

/// SipHash-1-3 with a secret key that is made once for each database.
#[derive(Clone, Copy)]
pub struct KeyedHash {
    key: [u8; 16],
}

impl KeyedHash {
    /// A hash with this key.
    pub fn new(key: [u8; 16]) -> Self {
        Self { key }
    }

    /// 64 bits of these parts; `["a", "bc"]` and `["ab", "c"]` differ.
    pub fn of(&self, parts: &[&[u8]]) -> i64 {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        for part in parts {
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part);
        }
        hasher.finish().cast_signed()
    }

    /// 128 bits of these parts, where a collision would lose an event.
    pub fn wide(&self, parts: &[&[u8]]) -> [u8; 16] {
        let mut hasher = sip128::SipHasher13::new_with_key(&self.key);
        for part in parts {
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part);
        }
        sip128::Hasher128::finish128(&hasher).as_bytes()
    }
}

impl std::fmt::Debug for KeyedHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyedHash(..)")
    }
}
