//! Which application is meant by a name.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments::app::AppNameArgs;
use crate::error::RemoteError;
use crate::platform::{Platform, read};
use crate::show::plain;

/// What an application is called.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct AppName {
    pub(crate) runtime: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl std::fmt::Display for AppName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { runtime, namespace, name } = self;
        f.write_str(&plain(&format!("{runtime}/{namespace}/{name}")))
    }
}

impl AppName {
    /// Of a node of an answer.
    pub(crate) fn of(node: &Value) -> Self {
        let part = |name: &str| node["metadata"][name].as_str().unwrap_or_default().to_owned();
        Self { runtime: part("runtime"), namespace: part("namespace"), name: part("name") }
    }

    /// As variables of a query.
    pub(crate) fn variables(&self) -> Value {
        json!({"runtime": self.runtime, "namespace": self.namespace, "name": self.name})
    }
}

/// What somebody typed: runtime and namespace where they are said.
type Typed<'a> = (Option<&'a str>, Option<&'a str>, &'a str);

fn parse(named: &AppNameArgs) -> Result<Typed<'_>, RemoteError> {
    let parts: Vec<&str> = named.name.split('/').collect();
    let given = named.runtime.as_deref();
    let typed = match parts[..] {
        [name] => (given, None, name),
        [namespace, name] => (given, Some(namespace), name),
        [runtime, namespace, name] if given.is_none_or(|given| given == runtime) => {
            (Some(runtime), Some(namespace), name)
        }
        [runtime, ..] if parts.len() == 3 => {
            let text = format!("'{}' is of the runtime {runtime}, and --runtime says another", named.name);
            return Err(RemoteError::Usage(text));
        }
        _ => (None, None, ""),
    };
    if parts.iter().any(|part| part.is_empty()) || parts.len() > 3 {
        let text = format!(
            "'{}' is no name of an application: NAME, NAMESPACE/NAME or RUNTIME/NAMESPACE/NAME",
            named.name
        );
        return Err(RemoteError::Usage(text));
    }
    Ok(typed)
}

/// How many names that begin as what was typed are told where none is that.
const NEAR: usize = 5;

fn none(named: &AppNameArgs, near: &[AppName]) -> RemoteError {
    let of = named.runtime.as_ref().map(|runtime| format!(" of the runtime {runtime}")).unwrap_or_default();
    let near = match near {
        [] => String::new(),
        near => format!("; there is {}", near.iter().map(AppName::to_string).collect::<Vec<_>>().join(", ")),
    };
    RemoteError::Missing(format!(
        "there is no application '{}'{of} that you see{near}: `gitops-runtime app list` shows those that there are",
        named.name
    ))
}

impl Platform {
    /// The application that is meant by a name, with these fields.
    pub(crate) async fn application(
        &self,
        named: &AppNameArgs,
        fields: &str,
    ) -> Result<(AppName, Value), RemoteError> {
        let typed = parse(named)?;
        let name = match typed {
            (Some(runtime), Some(namespace), name) => AppName {
                runtime: runtime.to_owned(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            },
            typed => self.meant(named, typed).await?,
        };
        let query = format!(
            "query Application($runtime: String!, $namespace: String!, $name: String!) {{ application(runtime: $runtime, namespace: $namespace, name: $name) {{ metadata {{ runtime namespace name }} {fields} }} }}"
        );
        let found: Value = self.get("read an application", &query, name.variables(), "application").await?;
        if found.is_null() { Err(none(named, &[])) } else { Ok((name, found)) }
    }

    /// The only one of a name.
    async fn meant(
        &self,
        named: &AppNameArgs,
        (runtime, namespace, name): Typed<'_>,
    ) -> Result<AppName, RemoteError> {
        const QUERY: &str = "query Applications($pagination: SlicePaginationArgs, $runtime: String, $filters: ApplicationsFilterArgs) { applications(pagination: $pagination, runtime: $runtime, filters: $filters) { pageInfo { endCursor hasNextPage } edges { node { metadata { runtime namespace name } deleted } } } }";
        let ask = async |filters: Value, limit| {
            let variables = json!({"runtime": runtime, "filters": filters});
            self.rows("find an application", QUERY, &variables, "applications", limit).await
        };
        let named_so = |nodes: Vec<&Value>| -> Result<Vec<AppName>, RemoteError> {
            nodes.into_iter().map(|node| read(node["metadata"].clone())).collect()
        };
        let found = ask(json!({"namespace": namespace, "name": name}), 100).await?;
        // One that is gone is meant where no other is there.
        let is_there = |node: &&Value| node["deleted"] != json!(true);
        let there: Vec<&Value> = found.nodes.iter().filter(is_there).collect();
        let names = named_so(if there.is_empty() { found.nodes.iter().collect() } else { there })?;
        match &names[..] {
            [] => {
                let near = json!({"namespace": namespace, "namePrefix": name, "deleted": false});
                let near = ask(near, NEAR).await?;
                Err(none(named, &named_so(near.nodes.iter().collect())?))
            }
            [one] => Ok(one.clone()),
            many => {
                let shown: Vec<String> = many.iter().take(10).map(AppName::to_string).collect();
                let more = if many.len() > 10 { " and others" } else { "" };
                Err(RemoteError::Missing(format!(
                    "there are several applications '{}': name {}{more}",
                    named.name,
                    shown.join(" or ")
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_say_namespace_and_runtime() {
        let of = |name: &str, runtime: Option<&str>| {
            let named = AppNameArgs { name: name.to_owned(), runtime: runtime.map(str::to_owned) };
            let typed = parse(&named).map(|(runtime, namespace, name)| {
                [runtime.unwrap_or("-"), namespace.unwrap_or("-"), name].join(" ")
            });
            typed.map_err(|error| error.line())
        };
        assert_eq!(of("shop", None), Ok("- - shop".to_owned()));
        assert_eq!(of("a/shop", Some("prod")), Ok("prod a shop".to_owned()));
        assert_eq!(of("prod/a/shop", Some("prod")), Ok("prod a shop".to_owned()));
        let other = "'eu/a/shop' is of the runtime eu, and --runtime says another";
        assert_eq!(of("eu/a/shop", Some("prod")), Err(other.to_owned()));
        for wrong in ["", "a//shop", "/shop", "a/b/c/d"] {
            let said = format!(
                "'{wrong}' is no name of an application: NAME, NAMESPACE/NAME or RUNTIME/NAMESPACE/NAME"
            );
            assert_eq!(of(wrong, None), Err(said));
        }
    }
}
