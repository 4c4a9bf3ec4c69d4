//! Which applications a list is about, and the statement of it: built of constants and numbered parameters, with nothing
//! that anybody typed in its text.

use crate::columns::Column;
use crate::connection::{Connection, Row};
use crate::error::StoreError;
use crate::fleet::condition::Condition;
use crate::fleet::listing::ApplicationName;
use crate::rule::View;
use crate::statement::{self, Value, parameter};

/// What rows stand together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GroupBy {
    /// Where they run.
    #[default]
    Environment,
    /// Who reports them.
    Runtime,
    /// Their Argo CD project.
    Project,
    /// The product that they belong to.
    Product,
    /// Their health.
    Health,
    /// Their name without that of their environment: the same application wherever it runs.
    Application,
    /// Nothing.
    Nothing,
}

impl GroupBy {
    /// Each, as people choose among them.
    pub const ALL: [Self; 7] = [
        Self::Environment,
        Self::Application,
        Self::Product,
        Self::Runtime,
        Self::Project,
        Self::Health,
        Self::Nothing,
    ];

    /// Its word in an address and on a page.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::Runtime => "runtime",
            Self::Project => "project",
            Self::Product => "product",
            Self::Health => "health",
            Self::Application => "matrix",
            Self::Nothing => "none",
        }
    }
}

/// What rows are ordered by within their group; groups stand by their most urgent row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortBy {
    /// What needs attention first.
    #[default]
    Attention,
    /// By name.
    Name,
    /// The last deployed first.
    Deployed,
}

impl SortBy {
    /// Each, as people choose among them.
    pub const ALL: [Self; 3] = [Self::Attention, Self::Name, Self::Deployed];

    /// Its word in an address and on a page.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Attention => "attention",
            Self::Name => "name",
            Self::Deployed => "deployed",
        }
    }
}

/// Which applications, and in which order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// The grouping.
    pub group_by: GroupBy,
    /// The order.
    pub sort_by: SortBy,
}

/// A statement with its parameters.
#[derive(Default)]
pub(super) struct Query {
    pub(super) sql: String,
    values: Vec<Value>,
}

/// What needs attention comes first; alike in the console's order of states.
const ATTENTION: &str = "CASE a.health WHEN 'Degraded' THEN 0 WHEN 'Missing' THEN 3 WHEN 'Progressing' THEN 6 \
                         WHEN 'Suspended' THEN 12 WHEN 'Healthy' THEN 15 ELSE 9 END + \
                         CASE a.sync WHEN 'OutOfSync' THEN 0 WHEN 'Synced' THEN 2 ELSE 1 END";

/// `payments` of `payments-staging` and of `staging-payments` where the environment is `staging`; every other name as it is.
const OF_ANY_ENVIRONMENT: &str = "CASE WHEN a.environment = '' OR length(a.name) < length(a.environment) + 2 THEN a.name \
     WHEN substr(a.name, length(a.name) - length(a.environment)) = '-' || lower(a.environment) \
     THEN substr(a.name, 1, length(a.name) - length(a.environment) - 1) \
     WHEN substr(a.name, 1, length(a.environment) + 1) = lower(a.environment) || '-' \
     THEN substr(a.name, length(a.environment) + 2) ELSE a.name END";

/// The groups of what a selection leaves.
const GROUPS: &str = "groups AS (SELECT in_group AS own, min(attention) AS urgency, max(deployed) AS newest, \
                      count(*) AS of_group FROM matching GROUP BY in_group)";

impl Query {
    /// Begins with every application that somebody sees and a selection leaves, as the table `matching`: with its group, and what
    /// it is ordered by.
    pub(super) fn matching(view: &View, selection: &Selection) -> Self {
        Self::begin(view, selection, "AS")
    }

    fn begin(view: &View, selection: &Selection, how: &str) -> Self {
        let mut query = Self::default();
        let seen = query.seen(view);
        let group = match selection.group_by {
            GroupBy::Environment => "a.environment",
            GroupBy::Runtime => "r.name",
            GroupBy::Project => "a.project",
            GroupBy::Product => "a.product",
            GroupBy::Health => "a.health",
            GroupBy::Application => OF_ANY_ENVIRONMENT,
            GroupBy::Nothing => "''",
        };
        query.sql = format!(
            "WITH matching {how} (SELECT a.id, a.name, a.namespace, r.name AS runtime, {group} AS in_group, \
             {ATTENTION} AS attention, COALESCE(a.deployed_at, 0) AS deployed \
             FROM applications a JOIN runtimes r ON r.id = a.runtime_id WHERE a.name <> '' AND a.deleted = 0 AND {seen}"
        );
        for condition in &selection.conditions {
            let condition = condition.sql(&mut query.values);
            query.sql.push_str(" AND ");
            query.sql.push_str(&condition);
        }
        query.sql.push_str(") ");
        query
    }

    /// Where an application stands among what somebody sees of a selection: how many there are, its own position, and the runtime,
    /// namespace and name of who stands before and after it. All others are compared to it, which is a fraction of what it takes to
    /// put them in their order.
    pub(super) fn place(view: &View, selection: &Selection, name: &ApplicationName) -> Self {
        let mut query = Self::begin(view, selection, "AS MATERIALIZED");
        let [runtime, namespace, own] =
            [&name.runtime, &name.namespace, &name.name].map(|text| query.text(text));
        let (others, own_ranks) = (ranks("grouped", selection), ranks("here", selection));
        let compared = |how: &str| {
            let [others, own] = [&others, &own_ranks].map(|all| all.join(", "));
            format!("FROM grouped JOIN here ON ({others}) {how} ({own})")
        };
        let backwards: Vec<String> = others.iter().map(|rank| format!("{rank} DESC")).collect();
        let before = format!("{} ORDER BY {} LIMIT 1", compared("<"), backwards.join(", "));
        let behind = format!("{} ORDER BY {} LIMIT 1", compared(">"), others.join(", "));
        query.sql.push_str(&format!(
            ", {GROUPS}, grouped AS MATERIALIZED (SELECT matching.*, urgency, newest FROM matching JOIN groups ON own = in_group), \
             here AS MATERIALIZED (SELECT * FROM grouped WHERE runtime = {runtime} AND namespace = {namespace} AND name = {own}) \
             SELECT (SELECT count(*) FROM matching), (SELECT count(*) {}), p.name, b.namespace, b.name, n.name, c.namespace, c.name \
             FROM (SELECT 1 AS one) q \
             LEFT JOIN applications b ON b.id = (SELECT grouped.id {before}) LEFT JOIN runtimes p ON p.id = b.runtime_id \
             LEFT JOIN applications c ON c.id = (SELECT grouped.id {behind}) LEFT JOIN runtimes n ON n.id = c.runtime_id",
            compared("<=")
        ));
        query
    }

    /// As [`Query::matching`], and then so many of them from behind others, in their order, as the table `page`: with how many
    /// stand in its group. No more than these are put in their order, which is a fraction of what it takes to place all.
    pub(super) fn page(view: &View, selection: &Selection, skip: u64, limit: u32) -> Self {
        // It is read twice, and made once.
        let mut query = Self::begin(view, selection, "AS MATERIALIZED");
        let skip = query.int(i64::try_from(skip).unwrap_or(i64::MAX));
        let limit = query.int(limit.into());
        query.sql.push_str(&format!(
            ", {GROUPS}, grouped AS (SELECT matching.*, urgency, newest, of_group FROM matching JOIN groups ON own = in_group), \
             page AS (SELECT * FROM grouped ORDER BY {} LIMIT {limit} OFFSET {skip}) ",
            order("grouped", selection)
        ));
        query
    }

    /// As [`Query::matching`], and then so many of their groups from behind others, in their order, as the table `page`.
    pub(super) fn groups(view: &View, selection: &Selection, skip: u64, limit: u32) -> Self {
        let mut query = Self::begin(view, selection, "AS MATERIALIZED");
        let skip = query.int(i64::try_from(skip).unwrap_or(i64::MAX));
        let limit = query.int(limit.into());
        query.sql.push_str(&format!(
            ", {GROUPS}, page AS (SELECT own AS in_group, urgency, newest FROM groups ORDER BY {} LIMIT {limit} OFFSET {skip}) ",
            order_of_groups(selection).join(", ").replace("in_group", "own")
        ));
        query
    }

    /// A parameter, as it stands in the text.
    pub(super) fn int(&mut self, value: i64) -> String {
        parameter(&mut self.values, value)
    }

    pub(super) fn text(&mut self, value: impl Into<String>) -> String {
        parameter(&mut self.values, Value::Text(value.into()))
    }

    /// What somebody sees, of the tables `a` and `r`.
    pub(super) fn seen(&mut self, view: &View) -> String {
        view.condition(&mut self.values)
    }

    /// How many applications somebody sees at all, and how many runtimes: the applications are read once for both.
    pub(super) fn totals(view: &View) -> Self {
        let mut query = Self::default();
        let seen = query.seen(view);
        let runtimes = view.condition_of_runtimes_within("SELECT runtime_id FROM seen", &mut query.values);
        // Of everything the runtimes need no look at it.
        let how = if view.is_all() { "AS" } else { "AS MATERIALIZED" };
        query.sql = format!(
            "WITH seen {how} (SELECT a.runtime_id FROM applications a JOIN runtimes r ON r.id = a.runtime_id \
             WHERE a.name <> '' AND a.deleted = 0 AND {seen}) \
             SELECT (SELECT count(*) FROM seen), (SELECT count(*) FROM runtimes r WHERE {runtimes})"
        );
        query
    }

    /// The runtimes of which somebody sees anything, of the table `r`.
    pub(super) fn seen_runtimes(&mut self, view: &View) -> String {
        view.condition_of_runtimes(&mut self.values)
    }

    pub(super) async fn rows(self, connection: &mut Connection) -> Result<Vec<Row>, StoreError> {
        statement::rows(connection, self.sql, &self.values).await
    }

    /// What stands in its rows.
    pub(super) async fn all<T: Column>(self, connection: &mut Connection) -> Result<Vec<T>, StoreError> {
        self.rows(connection).await?.iter().map(Row::read).collect()
    }
}

/// What groups are ordered by: by their most urgent row, but where each is an application, which is what is asked for.
pub(super) fn order_of_groups(selection: &Selection) -> &'static [&'static str] {
    match (selection.group_by, selection.sort_by) {
        (GroupBy::Application, SortBy::Name) => &["in_group"],
        (GroupBy::Application, SortBy::Deployed) => &["newest DESC", "in_group"],
        _ => &["urgency", "in_group"],
    }
}

/// What rows are ordered by: no two have all of it alike.
fn order_of_rows(selection: &Selection) -> impl Iterator<Item = &'static str> {
    let columns: &[&str] = match selection.sort_by {
        SortBy::Attention => &["attention", "name", "namespace", "runtime"],
        SortBy::Name => &["name", "namespace", "runtime"],
        SortBy::Deployed => &["deployed DESC", "name", "namespace", "runtime"],
    };
    order_of_groups(selection).iter().chain(columns).copied()
}

/// The same of a table.
pub(super) fn order(table: &str, selection: &Selection) -> String {
    order_of_rows(selection).map(|column| format!("{table}.{column}")).collect::<Vec<_>>().join(", ")
}

/// The same as values that all ascend, so that rows are compared by them.
fn ranks(table: &str, selection: &Selection) -> Vec<String> {
    let rank = |column: &'static str| match column.strip_suffix(" DESC") {
        Some(column) => format!("-{table}.{column}"),
        None => format!("{table}.{column}"),
    };
    order_of_rows(selection).map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plans;
    use crate::rule::{Action, Attribute, AttributeName, Entity, Rule};

    #[tokio::test]
    async fn what_a_page_is_of_is_read_once_and_what_stands_on_it_alone_is_put_in_its_order() {
        let plans = Plans::open().await;
        for group_by in [GroupBy::Environment, GroupBy::Nothing] {
            let query = Query::page(&View::ALL, &Selection { group_by, ..Selection::default() }, 0, 200);
            let lines = plans.of(&format!("{}SELECT * FROM page", query.sql)).await;
            let read = lines.iter().filter(|line| line.starts_with("SCAN a")).count();
            let ordered = lines.iter().filter(|line| line.contains("FOR ORDER BY")).count();
            assert_eq!((read, ordered), (1, 1), "{lines:#?}");
        }
        plans.close().await;
    }

    #[tokio::test]
    async fn what_somebody_sees_at_all_is_counted_in_one_look_at_the_applications() {
        let plans = Plans::open().await;
        let attributes = vec![Attribute {
            name: AttributeName::Label,
            key: Some("team".to_owned()),
            value: "shop".to_owned(),
        }];
        let rule = Rule {
            id: 1,
            entity_type: Entity::GitopsApplications,
            teams: Vec::new(),
            tags: Vec::new(),
            actions: vec![Action::View],
            attributes,
        };
        for view in [View::ALL, View::of_runtime("prod"), rule.matches()] {
            let lines = plans.of(&Query::totals(&view).sql).await;
            let read = lines.iter().filter(|line| line.starts_with("SCAN a") || line.starts_with("SEARCH a"));
            assert_eq!(read.count(), 1, "{lines:#?}");
            assert!(!lines.iter().any(|line| line.contains("CORRELATED")), "{lines:#?}");
        }
        plans.close().await;
    }

    #[tokio::test]
    async fn where_an_application_stands_is_told_without_an_order_of_all() {
        let plans = Plans::open().await;
        let name = |text: &str| text.to_owned();
        let name = ApplicationName { runtime: name("prod"), namespace: name("argocd"), name: name("web") };
        for (group_by, sort_by) in
            [(GroupBy::Environment, SortBy::Attention), (GroupBy::Application, SortBy::Deployed)]
        {
            let selection = Selection { group_by, sort_by, ..Selection::default() };
            let query = Query::place(&View::ALL, &selection, &name);
            assert!(!query.sql.contains(" OVER "), "{}", query.sql);
            let lines = plans.of(&query.sql).await;
            let read = lines.iter().filter(|line| line.starts_with("SCAN a")).count();
            // Of each the first alone is kept.
            let ordered = lines.iter().filter(|line| line.contains("FOR ORDER BY")).count();
            let beside = |table: &str| format!("SEARCH {table} USING INTEGER PRIMARY KEY (rowid=?)");
            let looked_up = |table: &str| lines.iter().any(|line| line.starts_with(&beside(table)));
            assert_eq!((read, ordered, looked_up("b"), looked_up("c")), (1, 2, true, true), "{lines:#?}");
        }
        plans.close().await;
    }

    #[tokio::test]
    async fn resources_of_an_application_are_looked_up_from_it_in_an_index() {
        let plans = Plans::open().await;
        let conditions = vec![Condition::Resource("web".to_owned())];
        let query = Query::page(&View::ALL, &Selection { conditions, ..Selection::default() }, 0, 200);
        let lines = plans.of(&format!("{}SELECT * FROM page", query.sql)).await;
        // What stands between differs with how SQLite was built.
        let own = |line: &&String| {
            line.starts_with("SEARCH e ")
                && line.ends_with("USING COVERING INDEX entities_found (application_id=?)")
        };
        assert_eq!(lines.iter().filter(own).count(), 1, "{lines:#?}");
        plans.close().await;
    }
}
