//! The schema: what may be asked, and how much at a time.

mod account;
mod application;
mod change;
mod cluster;
mod component;
mod flat;
mod git_source;
mod mutation;
mod page;
mod promotion;
mod query;
mod runtime;
mod subscription;
mod workflow;

use async_graphql::{Context, Error, SchemaBuilder};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::de::value::{self, StrDeserializer};
use stages_platform_store::{Sequence, Store};

pub(crate) use self::account::ACCOUNT;
pub(crate) use self::subscription::Credentials;
use crate::caller::Caller;

pub(crate) type Schema = async_graphql::Schema<query::Query, mutation::Mutation, subscription::Subscription>;

/// How deep fields may stand within each other: what introspection asks stands thirteen deep.
const DEPTH: usize = 15;
/// How many fields an answer may have, where each row of a page counts with its own, and what looks through all that there is with
/// what that is worth.
const COMPLEXITY: usize = 20_000;
/// Directives on a field.
const DIRECTIVES: usize = 8;

/// What time it is.
#[derive(Clone, Copy)]
struct Clock(fn() -> Timestamp);

fn builder() -> SchemaBuilder<query::Query, mutation::Mutation, subscription::Subscription> {
    Schema::build(query::Query, mutation::Mutation, subscription::Subscription)
        .limit_depth(DEPTH)
        .limit_complexity(COMPLEXITY)
        .limit_directives(DIRECTIVES)
        .disable_suggestions()
}

pub(crate) fn build(store: Store, sequence: Sequence, clock: fn() -> Timestamp) -> Schema {
    builder().data(store).data(sequence).data(subscription::shares()).data(Clock(clock)).finish()
}

/// The schema, in the language that schemas are written in.
#[must_use]
pub fn sdl() -> String {
    builder().finish().sdl()
}

fn caller<'c>(context: &Context<'c>) -> Result<&'c Caller, Error> {
    context.data::<Caller>()
}

fn store<'c>(context: &Context<'c>) -> Result<&'c Store, Error> {
    context.data::<Store>()
}

fn now(context: &Context<'_>) -> Result<i64, Error> {
    Ok((context.data::<Clock>()?.0)().as_millisecond())
}

/// What was said, if anything was.
fn told(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// A state by the name that it is kept under; one that is not known here is told as such.
fn named<T: DeserializeOwned + Default>(name: &str) -> T {
    T::deserialize(StrDeserializer::<value::Error>::new(name)).unwrap_or_default()
}

fn time(at: i64) -> String {
    Timestamp::from_millisecond(at).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}
