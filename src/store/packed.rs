//! The stored form of the judge's facts: one number that names the form, the facts as `postcard`
//! writes them, and then, where they have any, their rows as JSON.
//!
//! There are some facts for nearly each event, so they are small and quick to read: a quarter of
//! the bytes of JSON, and a fifth of the time. What that asks of the types is said at
//! [`Stored`].

use super::StoreError;
use super::facts::{json, parse};
use crate::audit::Stored;

/// The one form that there is.
const FORM: u8 = 1;

/// Writes facts.
pub(super) fn pack<T: Stored>(facts: &T) -> Result<Vec<u8>, StoreError> {
    let mut body = postcard::to_extend(facts, vec![FORM])
        .map_err(|error| unreadable(format!("can't be written: {error}")))?;
    if !facts.rows().is_empty() {
        body.extend(json(&facts.rows())?.into_bytes());
    }
    debug_assert!(unpack::<T>(&body).is_ok_and(|read| read == *facts), "see `audit::Stored`");
    Ok(body)
}

/// Reads facts back.
pub(super) fn unpack<T: Stored>(body: &[u8]) -> Result<T, StoreError> {
    let Some((&FORM, body)) = body.split_first() else {
        return Err(unreadable(format!("form {:?} is not known", body.first())));
    };
    let (mut facts, rows): (T, &[u8]) =
        postcard::take_from_bytes(body).map_err(|error| unreadable(error.to_string()))?;
    if !rows.is_empty() {
        let rows = std::str::from_utf8(rows).map_err(|error| unreadable(error.to_string()))?;
        facts.take_back(parse("facts", rows)?);
    }
    Ok(facts)
}

fn unreadable(detail: String) -> StoreError {
    StoreError::Unreadable { table: "facts", detail }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;
    use crate::audit::RefFacts;
    use crate::outcome::{Amounts, Net, Signature, Window, WindowScope};

    fn reads_back<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + Debug>(
        value: &T,
    ) {
        let bytes = postcard::to_allocvec(value).unwrap();
        assert_eq!(postcard::from_bytes::<T>(&bytes).unwrap(), *value);
        let text = serde_json::to_string(value).unwrap();
        assert_eq!(serde_json::from_str::<T>(&text).unwrap(), *value);
    }

    #[test]
    fn wire_types_have_two_forms_that_read_back() {
        for net in [Net(0), Net(i64::MIN), Net(i64::MAX)] {
            reads_back(&net);
            reads_back(&Amounts::surplus(net).plus(Amounts::missing(net)));
        }
        for scope in [WindowScope::Player, WindowScope::Room, WindowScope::Source] {
            reads_back(&vec![Window { len: 4, cap: 300, scope }; 2]);
        }
        for signature in [
            r#"{"room":"","round":"1","net":"-5","final":true}"#,
            r#"{"session":"s","room":"r","round":"1","net":"5","final":false}"#,
            r#"{"key":"k","net":"0"}"#,
        ] {
            reads_back(&vec![serde_json::from_str::<Signature>(signature).unwrap(); 2]);
        }
    }

    #[test]
    fn facts_of_another_form_are_an_error() {
        let mut body = pack(&RefFacts::default()).unwrap();
        assert_eq!(unpack::<RefFacts>(&body).unwrap(), RefFacts::default());
        body[0] = FORM + 1;
        assert!(unpack::<RefFacts>(&body).is_err());
        assert!(unpack::<RefFacts>(&[]).is_err());
    }
}
