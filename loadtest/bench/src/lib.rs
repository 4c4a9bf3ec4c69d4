//! `loadtest bench`: the reporter under generated load, measured, and other roles beside it.
//!
//! takes: scenarios - gives: changes per second, calls per change, latencies, memory, and beside
//! each what was lost, repeated, out of order or wrong; as a table and as JSON
//! calls: the reporter, which it builds first; the simulators, in this process: they share the
//! machine's cores - fails: exit code 1 when anything was lost, repeated, out of order or wrong, when a figure is
//! missing, or misses what it must be

mod bodies;
mod cold;
mod console;
mod drive;
pub mod entrance;
mod figures;
mod hostile;
mod ingest;
mod limit;
mod look;
mod measure;
mod measured;
mod number;
mod objects;
mod people;
mod platform;
mod play;
mod result;
mod revisions;
pub mod router;
mod scenario;
mod senders;
mod subject;
mod times;
mod track;
pub mod tunnel;
mod visitor;
mod watch;
mod windows;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;

use figures::Outcome;
use loadtest_judge::interrupt::until_interrupted;
use loadtest_judge::screen::{say, table};
use loadtest_sim::process;
use measured::{FORMAT, Results};
use result::Broken;
use scenario::Scenario;

const EXAMPLES: &str = "\
Examples:
  The table of figures, some 15 minutes on two cores; the same scenarios in small, for CI:
    loadtest bench
    loadtest bench --short
  What the platform takes, alone:
    loadtest bench ingest
  Which commits changed which of 1,000 applications, beside git itself:
    loadtest bench revisions
  What the source server says of repositories that were made to do harm, and the memory that they cost it:
    loadtest bench hostile
  20,000 ReplicaSets and 5,000 Workflows, and the resource reporter:
    loadtest bench objects
  What people see and do: lists of 5,000 applications, 200 users, 50 of whom follow logs:
    loadtest bench people
  The console with 10,000 applications of 50 runtimes and a history of 30 days, in a real browser; with a page that is open an hour:
    loadtest bench console
    loadtest bench console --minutes 60
  One scenario, a file of one's own, and what there is:
    loadtest bench steady
    loadtest bench my.yaml
    loadtest bench --list
    loadtest bench --print steady > my.yaml
  For tools:
    loadtest bench steady --json results.json";

const INGEST: &str = "ingest";
const REVISIONS: &str = "revisions";
const HOSTILE: &str = "hostile";
const PEOPLE: &str = "people";
const OBJECTS: &str = "objects";
const CONSOLE: &str = "console";
/// Those that measure other roles than the reporter, in their order, and what each is about.
const OTHERS: [(&str, &str); 6] = [
    (INGEST, "Reports that the platform takes, keeps and compares"),
    (REVISIONS, "Which commits changed which of many applications of one repository"),
    (HOSTILE, "Repositories that were made to do harm, and the memory that they cost"),
    (PEOPLE, "What people see and do, of whom there are many"),
    (OBJECTS, "The resource reporter beside very many ReplicaSets and Workflows"),
    (CONSOLE, "What people see of a large fleet with a history, in a real browser"),
];

/// Arguments of `loadtest bench`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenarios by name, or files; without any, all that the table of figures needs
    #[arg(value_name = "NAME|FILE")]
    scenarios: Vec<String>,
    /// List the scenarios
    #[arg(long, conflicts_with_all = ["short", "json"])]
    list: bool,
    /// Print the file of a scenario, to make one of your own from
    #[arg(long, value_name = "NAME", conflicts_with_all = ["list", "short", "json"])]
    print: Option<String>,
    /// The same scenarios in small; speeds are not judged
    #[arg(long)]
    short: bool,
    /// Write the results as JSON; - or nothing is standard output, and then the table is left out
    #[arg(long, value_name = "FILE|-", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Run this program and build nothing
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// How long `console` leaves a page open, instead of 3 minutes
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..=1_440))]
    minutes: Option<u32>,
    /// Have `console` keep its fleet on Postgres
    #[arg(long)]
    postgres: bool,
}

/// Runs `loadtest bench`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.list {
        say(&list()?);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &args.print {
        say(scenario::text(name)?.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    // They measure other roles, and stand behind the table of the reporter's figures.
    let (others, named): (Vec<String>, Vec<String>) =
        args.scenarios.iter().cloned().partition(|name| OTHERS.iter().any(|(other, _)| name == other));
    let is_with = |name: &str| match args.scenarios.is_empty() {
        // In small a browser takes longer than all else, and times are not judged: it is opened where that is asked for.
        true => args.json.is_none() && !(args.short && name == CONSOLE),
        false => others.iter().any(|other| other == name),
    };
    let with: Vec<&str> = OTHERS.into_iter().map(|(name, _)| name).filter(|name| is_with(name)).collect();
    let scenarios = match named.is_empty() && !others.is_empty() {
        true => Vec::new(),
        false => scenario::chosen(&named, args.short)?,
    };
    until_interrupted(Box::pin(async move {
        let mut ended = ExitCode::SUCCESS;
        if !scenarios.is_empty() {
            ended = bench(args, scenarios).await?;
        }
        for name in with {
            let program = process::program(args.program.as_deref()).await?;
            let is_good = match name {
                INGEST => Box::pin(ingest::run(&program, args.short)).await?,
                REVISIONS => revisions::run(&program, args.short).await?,
                HOSTILE => Box::pin(hostile::run(&program, args.short)).await?,
                PEOPLE => Box::pin(people::run(&program, args.short)).await?,
                OBJECTS => Box::pin(objects::run(&program, args.short)).await?,
                _ => {
                    let (is_short, minutes, on_postgres) = (args.short, args.minutes, args.postgres);
                    let chosen = console::Chosen { is_short, minutes, on_postgres };
                    Box::pin(console::run(&program, chosen)).await?
                }
            };
            if !is_good {
                ended = ExitCode::FAILURE;
            }
        }
        Ok(ended)
    }))
}

async fn bench(args: &Args, scenarios: Vec<Scenario>) -> anyhow::Result<ExitCode> {
    let program = process::program(args.program.as_deref()).await?;
    let is_quiet = args.json.as_deref() == Some(Path::new("-"));
    let mut when = None;
    let (mut outcomes, mut broken): (Vec<Outcome>, Vec<Broken>) = (Vec::new(), Vec::new());
    for (scenario, number) in scenarios.into_iter().zip(1..) {
        if !is_quiet {
            say(&format!("== {number}. {}: {}", scenario.name, scenario.about));
        }
        match Box::pin(play::play(&scenario, &program)).await {
            Ok(played) => {
                when.get_or_insert(played.when);
                let mut outcome = Outcome::new(&scenario, played);
                outcome.compare(&outcomes);
                outcomes.push(outcome);
            }
            Err(error) => {
                if !is_quiet {
                    say(&format!("{error:#}"));
                }
                broken.push(Broken { scenario: scenario.name, error });
            }
        }
    }
    let failed = !result::failures(&outcomes, &broken).is_empty();
    let text = result::text(&outcomes, &broken);
    let results = Results {
        format: FORMAT,
        when: when.unwrap_or_else(jiff::Timestamp::now),
        cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
        runs: outcomes.into_iter().map(|outcome| outcome.run).collect(),
    };
    if let Some(file) = &args.json {
        let json = result::json(&results).context("write the results as JSON")?;
        if is_quiet {
            say(&json);
        } else {
            std::fs::write(file, format!("{json}\n")).with_context(|| format!("write {}", file.display()))?;
        }
    }
    if !is_quiet {
        say(&format!("\n{text}"));
    }
    Ok(ExitCode::from(u8::from(failed)))
}

fn list() -> anyhow::Result<String> {
    let rows: Vec<Vec<String>> = scenario::own(false)?
        .iter()
        .map(|own| {
            let table = if own.table { "in the table" } else { "" };
            vec![own.name.clone(), table.to_owned(), own.about.clone()]
        })
        .collect();
    let others = OTHERS.map(|(name, about)| [name, "in the table", about].map(str::to_owned).to_vec());
    let rows = [rows, others.to_vec()].concat();
    Ok(table(3, &["scenario", "", "about"], &rows))
}
