//! Numbers as strings: JSON readers that hold numbers as doubles round what is above 2^53, and a
//! rounded sequence number or amount is a wrong one.

use serde::Serialize;
use serde_json::Value;

/// A value as JSON in which every number is a string; `None` for what is null.
pub(super) fn of(value: &impl Serialize) -> Option<Value> {
    serde_json::to_value(value).ok().map(numbers_as_text).filter(|value| !value.is_null())
}

fn numbers_as_text(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::String(number.to_string()),
        Value::Array(values) => values.into_iter().map(numbers_as_text).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, numbers_as_text(value))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn numbers_become_strings_at_any_depth() {
        let value = json!({"a": u64::MAX, "b": [1, {"c": -2}], "d": "x", "e": true, "f": null});
        let text = json!({"a": "18446744073709551615", "b": ["1", {"c": "-2"}], "d": "x",
            "e": true, "f": null});
        assert_eq!(super::of(&value), Some(text));
        assert_eq!(super::of(&None::<u8>), None);
    }
}
