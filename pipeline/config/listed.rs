//! A list of settings of which each has members of its own: what is wrong with one says which.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The items of a list, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listed<T>(pub(crate) Vec<T>);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Listed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items = Vec::<Value>::deserialize(deserializer)?;
        let several = items.len() > 1;
        let read = |(at, item)| {
            serde_json::from_value(item).map_err(|error| match several {
                true => D::Error::custom(format!("item {}: {error}", at + 1)),
                false => D::Error::custom(error),
            })
        };
        items.into_iter().enumerate().map(read).collect::<Result<_, _>>().map(Self)
    }
}

impl<T: JsonSchema> JsonSchema for Listed<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("listed-{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<T>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_one_of_several_says_which() {
        let read = |text| serde_json::from_str::<Listed<u8>>(text).map(|Listed(items)| items);
        assert_eq!(read("[1, 2]").unwrap(), [1, 2]);
        let wrong = "invalid type: string \"x\", expected u8";
        assert_eq!(read("[1, \"x\"]").unwrap_err().to_string(), format!("item 2: {wrong}"));
        assert_eq!(read("[\"x\"]").unwrap_err().to_string(), wrong);
    }
}
