//! Looks at a list again and again, and shows what changed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::error::RemoteError;
use crate::platform::Rows;
use crate::show::screen::beside;
use crate::show::{Output, Screen};

/// Between two looks.
const AGAIN: Duration = Duration::from_secs(2);
/// Looks in a row that may fail while nobody answers: five minutes.
const UNANSWERED: u32 = 150;
/// Looks in a row that may fail where somebody refuses.
const REFUSED: u32 = 5;

/// Shows rows, with a header or without.
type Show<'a> = dyn Fn(&[Value], bool) -> Result<String, RemoteError> + 'a;

/// What a list looks like.
pub(crate) struct Watched<'a> {
    pub(crate) screen: &'a Screen,
    pub(crate) output: Output,
    /// What tells one row from another.
    pub(crate) id: fn(&Value) -> String,
    /// Rows, with or without their header.
    pub(crate) show: &'a Show<'a>,
}

impl Watched<'_> {
    /// Shows the list, and then what changes of it, until Ctrl-C: on a terminal the whole again, else the rows that changed.
    pub(crate) async fn run(
        &self,
        fetch: impl AsyncFn() -> Result<Rows, RemoteError>,
    ) -> Result<(), RemoteError> {
        tokio::select! {
            ended = self.look(fetch) => ended,
            _ = tokio::signal::ctrl_c() => Ok(()),
        }
    }

    async fn look(&self, fetch: impl AsyncFn() -> Result<Rows, RemoteError>) -> Result<(), RemoteError> {
        let redraw = self.screen.is_terminal && matches!(self.output, Output::Table | Output::Wide);
        let mut known: Option<BTreeMap<String, Value>> = None;
        let (mut failures, mut said, mut is_cut) = (0, String::new(), false);
        loop {
            match fetch().await {
                Ok(Rows { nodes: rows, more, mistyped }) => {
                    (failures, said) = (0, String::new());
                    let now: BTreeMap<String, Value> =
                        rows.iter().map(|row| ((self.id)(row), row.clone())).collect();
                    match &known {
                        // Ages move on also where nothing else does.
                        _ if redraw => {
                            let below = mistyped.iter().map(|one| beside(one) + "\n");
                            self.screen.redraw(&((self.show)(&rows, true)? + &below.collect::<String>()))?;
                        }
                        None => {
                            mistyped.iter().for_each(|one| self.screen.note(one));
                            self.screen.say(&self.lines(&rows, true)?)?;
                        }
                        Some(before) => {
                            let changed = rows.iter().filter(|row| before.get(&(self.id)(row)) != Some(row));
                            let changed: Vec<Value> = changed.cloned().collect();
                            if !changed.is_empty() {
                                self.screen.say(&self.lines(&changed, false)?)?;
                            }
                            for gone in gone(before, &now, more) {
                                self.screen.note(&format!("{gone} is not listed any more"));
                            }
                        }
                    }
                    if more && !is_cut && !redraw {
                        let shown = rows.len();
                        self.screen.note(&format!(
                            "there are more than {shown}: what goes is not told of then; --limit shows more"
                        ));
                    }
                    (known, is_cut) = (Some(now), more);
                }
                // Somebody restarts the platform: that is no reason to stop looking.
                Err(error) if known.is_some() && failures + 1 < patience(&error) => {
                    failures += 1;
                    let now = error.line();
                    if now != said {
                        self.screen.note(&now);
                        said = now;
                    }
                }
                Err(error) => return Err(error),
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Rows as a stream has them: a document a row.
    fn lines(&self, rows: &[Value], first: bool) -> Result<String, RemoteError> {
        let document = |row: &Value| match self.output {
            Output::Json => Ok(format!("{row}\n")),
            _ => serde_saphyr::to_string(row)
                .map(|text| format!("---\n{text}"))
                .map_err(|error| RemoteError::Format(error.into())),
        };
        match self.output {
            Output::Json | Output::Yaml => rows.iter().map(document).collect(),
            _ => (self.show)(rows, first),
        }
    }
}

/// What a list does not hold any more; nothing of one that is cut, as it may be behind the end.
fn gone<'a>(
    before: &'a BTreeMap<String, Value>,
    now: &'a BTreeMap<String, Value>,
    is_cut: bool,
) -> impl Iterator<Item = &'a String> {
    before.keys().filter(move |id| !is_cut && !now.contains_key(*id))
}

/// How many looks in a row may fail so.
fn patience(error: &RemoteError) -> u32 {
    if error.may_pass() { UNANSWERED } else { REFUSED }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use stages_client::{Fault, HttpError};

    use super::*;

    #[test]
    fn what_the_end_of_a_list_that_is_cut_pushed_out_is_not_gone() {
        let rows = |ids: [&str; 2]| ids.map(|id| (id.to_owned(), Value::Null)).into();
        let (before, now) = (rows(["b", "c"]), rows(["a", "b"]));
        assert_eq!(gone(&before, &now, true).count(), 0);
        assert_eq!(gone(&before, &now, false).collect::<Vec<_>>(), ["c"]);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_away_is_looked_for_again_and_whoever_refuses_not_for_long() {
        let screen = Screen { is_terminal: false, width: None, colour: false };
        let show = |_: &[Value], _| Ok(String::new());
        let watched = Watched { screen: &screen, output: Output::Table, id: |_| String::new(), show: &show };
        let looks = Cell::new(0);
        let fetch = async || {
            looks.set(looks.get() + 1);
            match looks.get() {
                1 | 100 => Ok(Vec::new().into()),
                number if number < 100 => {
                    Err(HttpError::new("list applications", "platform".into(), Fault::Timeout(None)).into())
                }
                _ => Err(RemoteError::Missing("it is not there any more".to_owned())),
            }
        };
        assert!(matches!(watched.look(fetch).await, Err(RemoteError::Missing(_))));
        assert_eq!(looks.get(), 105);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_does_not_answer_at_all_is_not_waited_for() {
        let screen = Screen { is_terminal: false, width: None, colour: false };
        let show = |_: &[Value], _| Ok(String::new());
        let watched = Watched { screen: &screen, output: Output::Table, id: |_| String::new(), show: &show };
        let away = || HttpError::new("list applications", "platform".into(), Fault::Timeout(None));
        assert!(matches!(watched.look(async || Err(away().into())).await, Err(RemoteError::Http(..))));
    }
}
