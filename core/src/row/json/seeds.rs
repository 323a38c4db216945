//! Collects the members of one entity from JSON, borrowed from the text where it has no escapes.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};

use super::members::{EntityMembers, JsonScalar};

impl<'de> DeserializeSeed<'de> for &mut EntityMembers<'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut EntityMembers<'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entity")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(NameSeed)? {
            self.add_member(name, map.next_value_seed(ValueSeed)?);
        }
        Ok(())
    }
}

/// Deserializes the name of a member, borrowed if the answer contains it without escapes.
#[derive(Debug)]
pub struct NameSeed;

impl<'de> DeserializeSeed<'de> for NameSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for NameSeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

struct ValueSeed;

impl<'de> DeserializeSeed<'de> for ValueSeed {
    type Value = JsonScalar<'de>;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<JsonScalar<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed {
    type Value = JsonScalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property's value")
    }

    fn visit_unit<E>(self) -> Result<JsonScalar<'de>, E> {
        Ok(JsonScalar::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<JsonScalar<'de>, E> {
        Ok(JsonScalar::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<JsonScalar<'de>, E> {
        Ok(JsonScalar::Integer(value))
    }

    #[allow(clippy::cast_precision_loss, reason = "beyond Int64 only a Double is left")]
    fn visit_u64<E>(self, value: u64) -> Result<JsonScalar<'de>, E> {
        Ok(i64::try_from(value).map_or(JsonScalar::Number(value as f64), JsonScalar::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<JsonScalar<'de>, E> {
        Ok(JsonScalar::Number(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<JsonScalar<'de>, E> {
        Ok(JsonScalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<JsonScalar<'de>, E> {
        Ok(JsonScalar::Text(Cow::Owned(text.to_owned())))
    }
}
