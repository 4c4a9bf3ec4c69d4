//! Rules: what the members of teams may do, to what. They are evaluated here and nowhere else: for one subject by
//! [`Access::may`], for lists by a [`View`] that becomes part of the query.

use serde::{Deserialize, Serialize};

use crate::accounts::Role;
use crate::own_cluster::spellings;
use crate::statement::{Value, parameter};

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "each is named after what it is")]
pub enum Entity {
    Clusters,
    Environments,
    ExecutionContext,
    GitContexts,
    GitopsApplications,
    HelmCharts,
    Pipelines,
    Products,
    Projects,
    PromotionFlows,
    SharedConfiguration,
    Workflows,
    WorkflowTemplates,
}

/// What may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "each is named after what it does")]
pub enum Action {
    AccessArtifacts,
    AccessLogs,
    AppRollback,
    Create,
    DeleteResource,
    ExecToPod,
    PromoteTo,
    Refresh,
    Restart,
    Resubmit,
    RetryRelease,
    RolloutAbort,
    RolloutPause,
    RolloutPromoteFull,
    RolloutRestart,
    RolloutResume,
    RolloutRetry,
    RolloutSkipCurrentStep,
    Stop,
    Sync,
    Terminate,
    TerminateSync,
    TriggerPromotion,
    View,
    ViewPodLogs,
}

/// The name of an [`Entity`], an [`Action`] or an [`AttributeName`], as rules are written and kept with it.
#[must_use]
pub fn name_of(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).ok();
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// By what a subject is told from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "each is named after what it is")]
pub enum AttributeName {
    Cluster,
    EnvironmentKind,
    EnvironmentName,
    GitSource,
    Label,
    Namespace,
    ProductName,
    Runtime,
}

/// What a subject must have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Attribute {
    /// Which of it.
    pub name: AttributeName,
    /// Of a label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What it must be.
    pub value: String,
}

/// What the members of some teams may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// Its number, once it is kept.
    #[serde(default, skip_serializing)]
    pub id: i64,
    /// About what.
    pub entity_type: Entity,
    /// Whose members may.
    pub teams: Vec<String>,
    /// For people to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// What they may do.
    pub actions: Vec<Action>,
    /// To what: all of these must hold, where several of one name (and key) are alternatives. None: to everything.
    #[serde(default)]
    pub attributes: Vec<Attribute>,
}

/// An application, as rules see it. What is not known of it is no match.
#[derive(Debug, Clone, Copy, Default)]
#[expect(missing_docs, reason = "each is the attribute of that name")]
pub struct Subject<'a> {
    pub runtime: &'a str,
    pub namespace: &'a str,
    pub cluster: Option<&'a str>,
    pub environment_name: Option<&'a str>,
    pub environment_kind: Option<&'a str>,
    pub git_source: Option<&'a str>,
    pub product: Option<&'a str>,
    pub labels: &'a [(&'a str, &'a str)],
}

/// What somebody may: their role, and the rules of their teams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Their name.
    pub who: String,
    /// Which account that is: a name may have been somebody else's before, and this never was.
    pub uid: String,
    /// Their role.
    pub role: Role,
    /// The rules that name a team of theirs.
    pub(crate) rules: Vec<Rule>,
    /// The provider, by its issuer, that gave them something which does not count: they came in by it [`PROVIDED_LASTS`] ago or before.
    ///
    /// [`PROVIDED_LASTS`]: crate::PROVIDED_LASTS
    pub lapsed: Option<String>,
}

/// Whether somebody may, and what says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// They may do everything.
    Admin,
    /// They may, by the rule of this number.
    Rule(i64),
    /// They may not: these rules of theirs allow it, and of something else.
    None(Vec<i64>),
}

/// Which applications somebody sees: alternatives, each of which wants one of the values of each attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View(Option<Vec<Vec<Wanted>>>);

type Wanted = (AttributeName, Option<String>, Vec<String>);

/// Whether a team can be called so: forms have commas between teams, and drop white space around them.
///
/// # Errors
/// What is wrong with the name.
pub fn check_team(name: &str) -> Result<(), &'static str> {
    if name.contains(|c: char| c == ',' || c.is_control()) || name.trim() != name {
        return Err("the name of a team has no comma, no control character and no white space around it");
    }
    Ok(())
}

impl Rule {
    /// Whether there is no more in it than may be kept, and nothing that can never hold.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), &'static str> {
        let named = |name: &String| !name.trim().is_empty() && name.len() <= 100;
        if self.teams.is_empty() || self.teams.len() > 50 || !self.teams.iter().all(named) {
            return Err("a rule names 1 to 50 teams, each by at most 100 characters");
        }
        self.teams.iter().try_for_each(|team| check_team(team))?;
        if self.actions.is_empty() || self.actions.len() > 50 {
            return Err("a rule grants at least one action");
        }
        if self.tags.len() > 50 || !self.tags.iter().all(named) {
            return Err("a rule has at most 50 tags, each of at most 100 characters");
        }
        if self.attributes.len() > 50 {
            return Err("a rule has at most 50 attributes");
        }
        for Attribute { name, key, value } in &self.attributes {
            if (*name == AttributeName::Label) != key.is_some() {
                return Err("a LABEL has a key, and no other attribute has one");
            }
            if value.is_empty() || value.len() > 253 || key.as_ref().is_some_and(|key| key.len() > 317) {
                return Err("the value of an attribute has 1 to 253 characters");
            }
        }
        Ok(())
    }

    /// The applications that it is about, whoever may do whatever to them.
    #[must_use]
    pub fn matches(&self) -> View {
        View(Some(vec![self.wanted()]))
    }

    /// What a subject must have, the alternatives of each together.
    fn wanted(&self) -> Vec<Wanted> {
        let mut wanted: Vec<Wanted> = Vec::new();
        for Attribute { name, key, value } in &self.attributes {
            match wanted.iter_mut().find(|(other, of, _)| other == name && of == key) {
                Some((.., values)) => values.push(value.clone()),
                None => wanted.push((*name, key.clone(), vec![value.clone()])),
            }
        }
        wanted
    }
}

impl Subject<'_> {
    fn has(&self, (name, key, values): &Wanted) -> bool {
        let one = |value: Option<&str>| value.is_some_and(|value| values.iter().any(|one| one == value));
        match name {
            AttributeName::Runtime => one(Some(self.runtime)),
            AttributeName::Namespace => one(Some(self.namespace)),
            AttributeName::Cluster => {
                self.cluster.is_some_and(|cluster| spellings(values).iter().any(|one| one == cluster))
            }
            AttributeName::EnvironmentName => one(self.environment_name),
            AttributeName::EnvironmentKind => one(self.environment_kind),
            AttributeName::GitSource => one(self.git_source),
            AttributeName::ProductName => one(self.product),
            AttributeName::Label => {
                self.labels.iter().any(|(of, value)| Some(*of) == key.as_deref() && one(Some(value)))
            }
        }
    }
}

impl Access {
    /// Whether they may do everything.
    #[must_use]
    pub fn is_admin(&self) -> bool {
        self.role == Role::Admin
    }

    /// Whether they may do that to this.
    #[must_use]
    pub fn may(&self, action: Action, entity: Entity, subject: &Subject<'_>) -> bool {
        !matches!(self.decide(action, entity, subject), Decision::None(_))
    }

    /// The same, and what says so.
    #[must_use]
    pub fn decide(&self, action: Action, entity: Entity, subject: &Subject<'_>) -> Decision {
        if self.is_admin() {
            return Decision::Admin;
        }
        let holds = |rule: &&Rule| rule.wanted().iter().all(|want| subject.has(want));
        match self.granting(action, entity).find(holds) {
            Some(rule) => Decision::Rule(rule.id),
            None => Decision::None(self.granting(action, entity).map(|rule| rule.id).collect()),
        }
    }

    /// Which applications they see.
    #[must_use]
    pub fn view(&self) -> View {
        self.view_of(Entity::GitopsApplications)
    }

    /// Which workflows they see, whatever application these belong to.
    #[must_use]
    pub fn view_of_workflows(&self) -> View {
        self.view_of(Entity::Workflows)
    }

    fn view_of(&self, entity: Entity) -> View {
        View((!self.is_admin()).then(|| self.granting(Action::View, entity).map(Rule::wanted).collect()))
    }

    /// Whether a rule says by itself that they see something of a runtime: one that names it, or names nothing. Applications that are
    /// told by anything else are where they were reported from; of whatever else there is it is not known where it is.
    pub(crate) fn is_shown(&self, runtime: &str) -> bool {
        let shows = |rule: &Rule| {
            let wanted = rule.wanted();
            let named = wanted.iter().find(|(name, ..)| *name == AttributeName::Runtime);
            rule.actions.contains(&Action::View)
                && named.map_or(
                    wanted.is_empty() || rule.entity_type != Entity::GitopsApplications,
                    |(.., values)| values.iter().any(|value| value == runtime),
                )
        };
        self.is_admin() || self.rules.iter().any(shows)
    }

    fn granting(&self, action: Action, entity: Entity) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| rule.entity_type == entity && rule.actions.contains(&action))
    }
}

impl View {
    /// Everything.
    pub const ALL: Self = Self(None);
    /// Nothing.
    pub const NOTHING: Self = Self(Some(Vec::new()));

    /// What a runtime reported.
    #[must_use]
    pub fn of_runtime(name: &str) -> Self {
        Self(Some(vec![vec![(AttributeName::Runtime, None, vec![name.to_owned()])]]))
    }

    /// Whether it leaves nothing out.
    pub(crate) fn is_all(&self) -> bool {
        self.0.as_ref().is_none_or(|alternatives| alternatives.iter().any(Vec::is_empty))
    }

    /// As a condition on the tables `a` (applications) and `r` (their runtimes) of a query, whose parameters it takes from
    /// behind those that are there.
    pub(crate) fn condition(&self, values: &mut Vec<Value>) -> String {
        self.condition_by(values, want_condition)
    }

    /// The same of workflows, on the tables `e` (entities) and `r`: they are told by their runtime and namespace, and by nothing else.
    pub(crate) fn condition_of_workflows(&self, values: &mut Vec<Value>) -> String {
        let one = |(name, _, wanted): &Wanted, values: &mut Vec<Value>| match name {
            AttributeName::Runtime => Some(one_of("r.name", wanted, values)),
            AttributeName::Namespace => Some(one_of("e.namespace", wanted, values)),
            _ => None,
        };
        self.condition_by(values, one)
    }

    fn condition_by(
        &self,
        values: &mut Vec<Value>,
        one: impl Fn(&Wanted, &mut Vec<Value>) -> Option<String>,
    ) -> String {
        let Some(alternatives) = self.0.as_ref().filter(|_| !self.is_all()) else {
            return "1 = 1".to_owned();
        };
        let mut any = Vec::new();
        for wanted in alternatives {
            let before = values.len();
            let all: Option<Vec<String>> = wanted.iter().map(|want| one(want, values)).collect();
            match all {
                Some(all) => any.push(format!("({})", all.join(" AND "))),
                None => values.truncate(before),
            }
        }
        if any.is_empty() { "1 = 0".to_owned() } else { format!("({})", any.join(" OR ")) }
    }

    /// As a condition on the table `r` alone: runtimes that a rule names by nothing else, and those that have an
    /// application which is seen.
    pub(crate) fn condition_of_runtimes(&self, values: &mut Vec<Value>) -> String {
        if self.is_all() {
            return "1 = 1".to_owned();
        }
        let seen = self.condition(values);
        // Of its own runtimes: the applications are read once, and not for each runtime.
        let seen = format!(
            "SELECT a.runtime_id FROM applications a JOIN runtimes r ON r.id = a.runtime_id \
             WHERE a.name <> '' AND a.deleted = 0 AND {seen}"
        );
        self.condition_of_runtimes_within(&seen, values)
    }

    /// The same, where a query of the numbers of those that have an application which is seen is at hand.
    pub(crate) fn condition_of_runtimes_within(&self, seen: &str, values: &mut Vec<Value>) -> String {
        let Some(alternatives) = self.0.as_ref().filter(|_| !self.is_all()) else {
            return "1 = 1".to_owned();
        };
        let whole = |wanted: &&Vec<Wanted>| wanted.iter().all(|(name, ..)| *name == AttributeName::Runtime);
        let mut any: Vec<String> = Vec::new();
        for wanted in alternatives.iter().filter(whole) {
            any.extend(wanted.iter().filter_map(|want| want_condition(want, values)));
        }
        any.push(format!("r.id IN ({seen})"));
        format!("({})", any.join(" OR "))
    }
}

/// One of several values of an attribute, as a condition; `None`: no application is known by it.
fn want_condition((name, key, wanted): &Wanted, values: &mut Vec<Value>) -> Option<String> {
    let column = match name {
        AttributeName::Runtime => "r.name",
        AttributeName::Namespace => "a.namespace",
        AttributeName::Cluster => return Some(one_of("a.cluster", &spellings(wanted), values)),
        AttributeName::EnvironmentName => "a.environment",
        AttributeName::ProductName => "a.product",
        AttributeName::Label => {
            let key = key.as_deref()?;
            let has: Vec<String> = wanted.iter().map(|value| has_label(key, value, values)).collect();
            return Some(format!("({})", has.join(" OR ")));
        }
        AttributeName::EnvironmentKind | AttributeName::GitSource => return None,
    };
    Some(one_of(column, wanted, values))
}

/// Whether a column has one of several values, as a condition.
fn one_of(column: &str, wanted: &[String], values: &mut Vec<Value>) -> String {
    let places: Vec<String> = wanted.iter().map(|value| parameter(values, &**value)).collect();
    format!("{column} IN ({})", places.join(", "))
}

/// Whether an application of the table `a` has a label of that value, as a condition.
pub(crate) fn has_label(key: &str, value: &str, values: &mut Vec<Value>) -> String {
    let line = parameter(values, Value::Text(format!("\n{key}={value}\n")));
    // Letter by letter on both databases, which their LIKE is not.
    format!("replace(a.labels, {line}, '') <> a.labels")
}
