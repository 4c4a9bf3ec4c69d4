//! What a filter says, as the store is asked.

use jiff::Timestamp;
use stages_platform_store::{GroupBy, Selection, SortBy};

use crate::filter::{Filter, Grouping, Order};

pub(super) fn of(filter: &Filter, now: Timestamp) -> Selection {
    Selection {
        conditions: filter.terms.iter().map(|term| term.condition(now.as_millisecond())).collect(),
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
