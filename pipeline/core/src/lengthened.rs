//! A value that a later version may have written with more members.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A value whose members stand in a list, and whatever a later version adds behind them is passed over: it changes the meaning of
/// nothing before it. What is read so survives a rollback, and is understood by replicas that are older for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengthened<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lengthened<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Members(PhantomData))
    }
}

/// The members, one after the other.
struct Members<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
    type Value = Lengthened<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of members")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Lengthened<T>, A::Error> {
        let value = T::deserialize(SeqAccessDeserializer::new(&mut all))?;
        while all.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Lengthened(value))
    }
}
