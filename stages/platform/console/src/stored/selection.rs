//! What a filter says, as the store is asked.

use jiff::{SignedDuration, Timestamp};
use stages_platform_store::{Condition, Field, GroupBy, Selection, SortBy};

use crate::filter::{Filter, Grouping, Order, Term};

pub(super) fn of(filter: &Filter, now: Timestamp) -> Selection {
    let condition = |term: &Term| match term {
        Term::Text(text) => Condition::Text(text.clone()),
        Term::Environment(all) => Condition::AnyOf(Field::Environment, all.clone()),
        Term::Runtime(all) => Condition::AnyOf(Field::Runtime, all.clone()),
        Term::Project(all) => Condition::AnyOf(Field::Project, all.clone()),
        Term::Cluster(all) => Condition::AnyOf(Field::Cluster, all.clone()),
        Term::Product(all) => Condition::AnyOf(Field::Product, all.clone()),
        Term::Health(all) => {
            Condition::AnyOf(Field::Health, all.iter().map(|one| one.word().to_owned()).collect())
        }
        Term::Sync(all) => {
            Condition::AnyOf(Field::Sync, all.iter().map(|one| one.word().to_owned()).collect())
        }
        Term::Label(key, value) => Condition::Label(key.clone(), value.clone()),
        Term::Image(text) => Condition::Image(text.clone()),
        Term::Resource(text) => Condition::Resource(text.clone()),
        Term::Commit(text) => Condition::Commit(text.clone()),
        Term::By(text) => Condition::Author(text.clone()),
        Term::Deployed(within) => {
            let span = SignedDuration::try_from(within.span()).unwrap_or(SignedDuration::MAX);
            let since = now.checked_sub(span).unwrap_or(Timestamp::UNIX_EPOCH);
            Condition::DeployedSince(since.as_millisecond())
        }
    };
    Selection {
        conditions: filter.terms.iter().map(condition).collect(),
        group_by: match filter.grouping {
            Grouping::Environment => GroupBy::Environment,
            Grouping::Runtime => GroupBy::Runtime,
            Grouping::Project => GroupBy::Project,
            Grouping::Product => GroupBy::Product,
            Grouping::Health => GroupBy::Health,
            Grouping::Matrix => GroupBy::Application,
            Grouping::None => GroupBy::Nothing,
        },
        sort_by: match filter.order {
            Order::Attention => SortBy::Attention,
            Order::Name => SortBy::Name,
            Order::Deployed => SortBy::Deployed,
        },
    }
}
