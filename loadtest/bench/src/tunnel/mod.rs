//! `loadtest tunnel`: what a tunnel costs, beside a direct connection.
//!
//! takes: nothing - gives: bytes a second of one stream and of 100, latencies of requests of 1 kB, those of 99 visitors alone and
//! beside one who does not read with the memory that costs, bytes a second of one stream over a network that is far away, and the
//! memory of streams that are held open
//! calls: the tunnel's server and client as processes on loopback, with TLS and without; shares the machine's cores with them - fails: when an answer is not whole, or in the long form when a
//! figure misses its bound

mod delay;
mod service;
mod way;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::way::{Idle, Kind, Way};
use crate::measure::{Measure, Measures};
use crate::times::Times;
use crate::watch::most_while;
use loadtest_judge::interrupt;
use loadtest_judge::median;
use loadtest_judge::screen::{say, table};
use loadtest_sim::process;

const EXAMPLES: &str = "\
Examples:
  The table of figures, some minutes:
    loadtest tunnel
  The same in small and without a judgement of speed:
    loadtest tunnel --short";

/// Arguments of `loadtest tunnel`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Little of everything, without a judgement of speed
    #[arg(long)]
    short: bool,
    /// The program; else it is built
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Be the service behind the tunnel: prints its address, and ends with its standard input
    #[arg(long, hide = true)]
    serve: bool,
}

/// Visitors of the latencies, those beside a slow one, and streams that are open at a time.
const VISITORS: usize = 8;
const OTHERS: usize = 99;
const STREAMS: usize = 100;
/// To the other side of the delayed network: 100 ms there and back.
const FAR: Duration = Duration::from_millis(50);
/// How often the memory is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// What must be reached in the long form.
const FAR_RATE: f64 = 50e6;
const SLOW_RATIO: f64 = 1.2;
/// What a visitor who does not read may take of the memory of server and client together: their windows, and nothing of the 1 GB.
const SLOW: u64 = 32 << 20;
/// What clients who come again may leave in the server's memory: what an allocator keeps, and nothing of 10,000 of them.
const LEFT: u64 = 8 << 20;

/// So often bytes a second are measured of each way, in turns with the others: the median counts, since a neighbour on the
/// machine takes some seconds from whoever runs in them.
const TURNS: usize = 3;

/// What is measured.
const KINDS: [Kind; 3] = [Kind::Direct, Kind::Own, Kind::OwnTls];

/// How much of everything.
#[derive(Debug, Clone, Copy)]
struct Form {
    stream: u64,
    of_hundred: u64,
    requests: usize,
    slow: u64,
    far: u64,
    /// Streams that are held open through one tunnel.
    held: usize,
    /// Times that a client connects and is gone.
    reconnects: usize,
    /// Tunnels that nobody visits, beside it.
    idle: usize,
    /// Streams that are held open through these then.
    held_by_idle: usize,
    is_judged: bool,
}

const SHORT: Form = Form {
    stream: 4 << 20,
    of_hundred: 64 << 10,
    requests: 200,
    slow: 64 << 20,
    far: 1 << 20,
    held: 200,
    reconnects: 200,
    idle: 8,
    held_by_idle: 40,
    is_judged: false,
};
const LONG: Form = Form {
    stream: 512 << 20,
    of_hundred: 8 << 20,
    requests: 20_000,
    slow: 1 << 30,
    far: 512 << 20,
    held: 6_000,
    reconnects: 10_000,
    idle: 1_000,
    held_by_idle: 4_000,
    is_judged: true,
};

/// A way that stands, and its bytes a second in each turn.
struct Standing {
    kind: Kind,
    way: Arc<Way>,
    one: Vec<f64>,
    hundred: Vec<f64>,
}

/// What was measured of one way.
struct Figures {
    kind: Kind,
    one: f64,
    hundred: f64,
    alone: Times,
    /// Of many visitors, and of as many beside one who does not read.
    many: Times,
    beside: Times,
    far: f64,
    memory: Option<Memory>,
}

/// Resident bytes.
struct Memory {
    /// Of server and client, without streams.
    alone: [u64; 2],
    /// With many visitors, and at the most with as many beside one who does not read.
    many: [u64; 2],
    slow: [u64; 2],
    /// With those that are held.
    held: [u64; 2],
    idle: Idle,
    /// Of the server before a client connected again and again, and after it.
    reconnects: (u64, u64),
}

/// Measures.
///
/// # Errors
/// When the program cannot be built, or a way does not stand.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    interrupt::exit_of(all(args))
}

async fn all(args: &Args) -> anyhow::Result<bool> {
    if args.serve {
        return service::serve().await.map(|()| true);
    }
    let program = process::program(args.program.as_deref()).await?;
    let form = if args.short { SHORT } else { LONG };
    let service = service::beside().await?;
    let (mut measured, mut rows) = (Vec::new(), Vec::new());
    let mut standing = Vec::new();
    for kind in KINDS {
        let way = Arc::new(Way::make(kind, &program, service.at, Duration::ZERO).await?);
        standing.push(Standing { kind, way, one: Vec::new(), hundred: Vec::new() });
    }
    for turn in 1..=TURNS {
        say(&format!("== bytes a second of each, turn {turn} of {TURNS}"));
        for standing in &mut standing {
            standing.one.push(rate(&standing.way, 1, form.stream).await?);
            standing.hundred.push(rate(&standing.way, STREAMS, form.of_hundred).await?);
        }
    }
    for standing in standing {
        measured.push(Box::pin(measure(standing, &program, service.at, form)).await?);
    }
    let direct = measured.first().context("measure a direct connection")?;
    for figures in &measured {
        rows.push(row(figures, direct));
    }
    let header = [
        "way",
        "1 stream MB/s",
        "",
        "100 streams MB/s",
        "",
        "p50 of 1 kB",
        "p99",
        "",
        "p99 of 99",
        "beside a slow one",
        "",
        "100 ms away MB/s",
    ];
    say(&table(1, &header, &rows));
    say(&format!(
        "bytes a second are the median of {TURNS}, in turns; ratios are to the direct connection, and of the slow one to the \
         p99 without it; {VISITORS} visitors and {OTHERS}, {} requests; visitors speak TLS where the client does",
        form.requests
    ));
    let own = measured.iter().find(|figures| figures.kind == Kind::Own).context("measure the tunnel")?;
    let memory = own.memory.as_ref().context("measure the memory of the tunnel")?;
    say_memory(memory, form);
    let Memory { many, slow, reconnects, .. } = memory;
    let taken = slow.iter().sum::<u64>().saturating_sub(many.iter().sum());
    let left = reconnects.1.saturating_sub(reconnects.0);
    let beside = p99(&own.beside) / p99(&own.many);
    let mut measures = Measures::new("tunnel", !form.is_judged);
    measures.add([
        Measure::at_least("MB/s of one stream 100 ms away", own.far / 1e6, FAR_RATE / 1e6),
        Measure::ratio("p99 beside a slow visitor, over that without", beside, SLOW_RATIO),
        Measure::memory("what a visitor who does not read takes", taken, SLOW),
        Measure::memory("what clients who came again left in the server", left, LEFT),
    ]);
    Ok(measures.judge())
}

fn say_memory(memory: &Memory, form: Form) {
    let Memory { alone: before, many, slow, held: after, idle, reconnects } = memory;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    say(&format!(
        "memory with {OTHERS} visitors: server {:.1} MiB, client {:.1} MiB; beside one who reads nothing of {} MiB at most \
         {:.1} and {:.1} MiB",
        mib(many[0]),
        mib(many[1]),
        form.slow >> 20,
        mib(slow[0]),
        mib(slow[1])
    ));
    say(&format!(
        "memory: server {:.1} MiB, client {:.1} MiB; with {} streams held open {:.1} and {:.1} MiB",
        mib(before[0]),
        mib(before[1]),
        form.held,
        mib(after[0]),
        mib(after[1])
    ));
    say(&format!(
        "then {} idle tunnels of two connections: server {:.1} MiB, after {:.1}, {:.1} MiB a client; with {} streams in all {:.1} MiB",
        idle.tunnels,
        mib(idle.after),
        mib(idle.before),
        mib(idle.of_clients) / idle.tunnels as f64,
        form.held + form.held_by_idle,
        mib(idle.visited)
    ));
    say(&format!(
        "a client that connects and is gone {} times: server {:.1} MiB, after {:.1}",
        form.reconnects,
        mib(reconnects.1),
        mib(reconnects.0)
    ));
}

fn row(figures: &Figures, direct: &Figures) -> Vec<String> {
    let rate = |rate: f64| format!("{:.1}", rate / 1e6);
    let ratio = |mine: f64, other: f64| format!("{:.2}x", mine / other.max(f64::MIN_POSITIVE));
    let time = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
    vec![
        figures.kind.name().to_owned(),
        rate(figures.one),
        ratio(figures.one, direct.one),
        rate(figures.hundred),
        ratio(figures.hundred, direct.hundred),
        time(figures.alone.quantile(0.5).as_secs_f64()),
        time(p99(&figures.alone)),
        ratio(p99(&figures.alone), p99(&direct.alone)),
        time(p99(&figures.many)),
        time(p99(&figures.beside)),
        ratio(p99(&figures.beside), p99(&figures.many)),
        rate(figures.far),
    ]
}

/// In seconds, and never 0.
fn p99(latencies: &Times) -> f64 {
    latencies.quantile(0.99).as_secs_f64().max(1e-6)
}

/// What is measured of a way alone, after its bytes a second; then it ends.
async fn measure(
    standing: Standing,
    program: &Path,
    service: SocketAddr,
    form: Form,
) -> anyhow::Result<Figures> {
    let Standing { kind, way, one, hundred } = standing;
    let one = median(one).context("measure one stream")?;
    let hundred = median(hundred).context("measure many streams")?;
    say(&format!("== {}", kind.name()));
    let alone = latencies(&way, VISITORS, form.requests).await?;
    let before = way.resident();
    let many = latencies(&way, OTHERS, form.requests).await?;
    let with_many = way.resident();
    let mut slow = way.visitor().await?;
    slow.ask(&format!("/bytes/{}", form.slow)).await?;
    let doing = latencies(&way, OTHERS, form.requests);
    let (beside, with_slow) = most_while(LOOK, || way.resident(), doing).await;
    drop(slow);
    let memory = match kind {
        Kind::Own => {
            let read = "read the memory of the tunnel";
            let (alone, many, slow) =
                (before.context(read)?, with_many.context(read)?, with_slow.context(read)?);
            let reconnects = way.reconnect(form.reconnects).await?;
            let mut held = Vec::new();
            for _ in 0..form.held {
                let mut visitor = way.visitor().await?;
                visitor.hold().await?;
                held.push(visitor);
            }
            let with_held = way.resident().context(read)?;
            let idle = way.idle(program, service, form.idle, form.held_by_idle).await?;
            drop(held);
            Some(Memory { alone, many, slow, held: with_held, idle, reconnects })
        }
        Kind::Direct | Kind::OwnTls => None,
    };
    Arc::into_inner(way).context("end a way")?.end().await?;
    let far = Arc::new(Way::make(kind, program, service, FAR).await?);
    let far_rate = rate(&far, 1, form.far).await?;
    Arc::into_inner(far).context("end a way")?.end().await?;
    Ok(Figures { kind, one, hundred, alone, many, beside: beside?, far: far_rate, memory })
}

/// Bytes a second of so many streams at a time, of so many bytes each.
async fn rate(way: &Arc<Way>, streams: usize, bytes: u64) -> anyhow::Result<f64> {
    let path = format!("/bytes/{bytes}");
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..streams {
        let (way, path) = (way.clone(), path.clone());
        running.spawn(async move { way.visitor().await?.get(&path).await });
    }
    let mut read = 0;
    while let Some(done) = running.join_next().await {
        read += done.context("read a stream")??;
    }
    ensure!(read == bytes * streams as u64, "{read} bytes were read of {}", bytes * streams as u64);
    Ok(read as f64 / begun.elapsed().as_secs_f64())
}

/// How long requests of 1 kB take that so many visitors make.
async fn latencies(way: &Arc<Way>, visitors: usize, requests: usize) -> anyhow::Result<Times> {
    let mut running = JoinSet::new();
    for _ in 0..visitors {
        let way = way.clone();
        running.spawn(async move {
            let mut visitor = way.visitor().await?;
            let mut taken = Vec::new();
            for _ in 0..requests.div_ceil(visitors) {
                let begun = Instant::now();
                ensure!(visitor.get("/bytes/1024").await? == 1_024, "an answer has another length");
                taken.push(begun.elapsed());
            }
            Ok(taken)
        });
    }
    let mut all = Times::new()?;
    while let Some(done) = running.join_next().await {
        for taken in done.context("ask")?? {
            all.add(taken)?;
        }
    }
    Ok(all)
}
