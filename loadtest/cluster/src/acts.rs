//! `loadtest cluster acts`: what people ask an app proxy for, carried out by real Argo CD, Argo Rollouts and Argo Workflows, whose
//! server and executor are real too, on a node that runs every pod.
//!
//! takes: nothing - gives: a table of operations by who asks, a runtime that a command installs and takes away, what is wrong, and
//! one last line
//! calls: the cluster, which it starts and ends; a platform and an app proxy as processes, the latter as an account with exactly
//! the rights that it prints - fails: exit code 1 unless every operation is refused to whoever may not, who is told why,
//! with nothing changed by it; has its effect in the cluster for whoever may; and stands in the audit log either way; and unless the
//! app proxy's account asked the API server for no more than it may

mod effects;
mod installing;
mod operations;
mod world;

use std::path::Path;
use std::process::ExitCode;

use anyhow::ensure;
use loadtest_judge::interrupt;
use loadtest_judge::screen::{judged, say, table};
use serde_json::Value;

use self::operations::{OPERATIONS, Operation, Shows};
use self::world::{Answer, World};
use super::Ground;

/// Arguments of `loadtest cluster acts`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Only operations whose names hold this text; may be repeated
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Programs, and what stays.
    #[command(flatten)]
    ground: Ground,
}

/// Who asks, as the columns of the table have them.
const COLUMNS: [&str; 7] =
    ["operation", "nobody", "no rule", "rule elsewhere", "reading key", "rule", "admin"];

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    interrupt::exit_of(
        args.ground.play("acts", async |program, folder| Box::pin(played(args, program, folder)).await),
    )
}

/// What is wrong in the end.
async fn played(args: &Args, program: &Path, folder: &Path) -> anyhow::Result<Vec<String>> {
    let is_wanted = |one: &&Operation| {
        args.only.is_empty() || args.only.iter().any(|part| one.title().contains(part.as_str()))
    };
    ensure!(OPERATIONS.iter().any(|one| is_wanted(&one)), "no operation has such a name");
    let mut world = Box::pin(World::start(args.ground.binaries.as_deref(), program, folder)).await?;
    let (mut wrong, mut rows) = (Vec::new(), Vec::new());
    for operation in OPERATIONS.iter().filter(is_wanted) {
        let cells = match Box::pin(judge(&mut world, operation)).await {
            Ok(cells) => cells,
            Err(error) => {
                let why = format!("{}: {error:#}", operation.title());
                say(&judged(&format!("  {why}"), false));
                wrong.push(why);
                continue;
            }
        };
        let mut row = vec![operation.title()];
        for (column, cell) in COLUMNS.iter().skip(1).zip(cells) {
            row.push(match &cell {
                Cell::Held(what) => judged(what, true),
                Cell::Wrong(why) => {
                    let why = format!("{}, {column}: {why}", operation.title());
                    say(&judged(&format!("  {why}"), false));
                    wrong.push(why);
                    judged("WRONG", false)
                }
            });
        }
        say(&format!("  {}", row.join("  ")));
        rows.push(row);
    }
    if args.only.is_empty() {
        wrong.extend(Box::pin(world.installs(program, folder)).await?);
    }
    wrong.extend(world.unrecorded().await?);
    say(&table(COLUMNS.len(), &COLUMNS, &rows));
    wrong.extend(Box::pin(world.stop()).await?);
    Ok(wrong)
}

/// What came of one operation that one person asked for.
enum Cell {
    Held(&'static str),
    Wrong(String),
}

/// An operation, asked for by everybody: first those who may not, then those who may.
async fn judge(world: &mut World, operation: &Operation) -> anyhow::Result<Vec<Cell>> {
    let mut cells = Vec::new();
    let mut place = world.prepare(operation).await?;
    let mut before = world.state(operation, &place).await?;
    let mut is_done = false;
    for (person, said) in world.expected_of(operation) {
        if is_done {
            place = world.prepare(operation).await?;
            before = world.state(operation, &place).await?;
            is_done = false;
        }
        let answer = world.ask(person, operation, &place).await?;
        let cell = match (said, answer) {
            (Some(said), Answer::Refused(why)) if said.is(&why) => {
                let now = world.state(operation, &place).await?;
                if now == before {
                    world.expect(person, operation, "refused");
                    Cell::Held("refused")
                } else {
                    Cell::Wrong(format!("it was refused, and {before} is {now}"))
                }
            }
            (Some(said), other) => Cell::Wrong(format!("expected {said}, and not {other}")),
            (None, Answer::Refused(why)) => Cell::Wrong(format!("it is refused: {why}")),
            (None, Answer::Given(given)) => {
                is_done = operation.is_act;
                if operation.is_act {
                    world.expect(person, operation, "done");
                }
                holds(world, operation, &place, &before, &given).await?
            }
        };
        cells.push(cell);
    }
    Ok(cells)
}

/// Whether what was given, or what has become of the cluster, is what the operation is for.
async fn holds(
    world: &World,
    operation: &Operation,
    place: &str,
    before: &Value,
    given: &Value,
) -> anyhow::Result<Cell> {
    match operation.shows {
        Shows::Place if !place.is_empty() && given.to_string().contains(place) => Ok(Cell::Held("told")),
        Shows::Place => Ok(Cell::Wrong(format!("{place:?} does not stand in {given}"))),
        Shows::Text(text) if given.to_string().contains(text) => Ok(Cell::Held("told")),
        Shows::Text(text) => Ok(Cell::Wrong(format!("{text:?} does not stand in {given}"))),
        Shows::Effect => match world.becomes(operation, place, before).await? {
            Ok(()) => Ok(Cell::Held("done")),
            Err(now) => Ok(Cell::Wrong(format!("it is said to be done, and {before} is {now}"))),
        },
    }
}
