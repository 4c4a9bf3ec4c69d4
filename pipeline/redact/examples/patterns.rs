//! How long redaction takes with texts that were made to be slow, beside plain YAML of the same size: each row's marks
//! repeated, and what the other readers of text stumble over. `cargo run --release -p pipeline-redact --example patterns`.
#![expect(clippy::print_stdout, reason = "it is a program")]

use std::time::{Duration, Instant};

use pipeline_redact::{ROWS, Redactor};

/// Times of plain YAML that the worst of the table's marks may take.
const MOST: f64 = 5.0;
/// How often each of the table's marks is tried, and with how many bytes.
const RUNS: usize = 40;
const BYTES: usize = 50_000;

/// The fastest of several, which says most of the work itself: short ones, which other programs interrupt less.
fn fastest(redactor: &Redactor, text: &str) -> Duration {
    let once = || {
        let start = Instant::now();
        std::hint::black_box(redactor.text(std::hint::black_box(text)));
        start.elapsed()
    };
    (0..RUNS).map(|_| once()).min().unwrap_or_default()
}

fn repeated(one: &str, length: usize) -> String {
    one.repeat(length / one.len())
}

/// What it costs to write a secret into a text where it stands, beside the same text without one, and beside writing it
/// anew, as it is done where a comment tells one.
fn in_place(redactor: &Redactor, name: &str, plain: &str) {
    let secret = plain.replacen("{name: LEVEL, value: debug}", "{name: DB_PASSWORD, value: thistle}", 1);
    let told = secret.replacen("# pinned", "# password: thistle", 1);
    let rate = |text: &str| {
        let once = || {
            let start = Instant::now();
            std::hint::black_box(redactor.raw(std::hint::black_box(text)));
            start.elapsed()
        };
        let fastest = (0..RUNS).map(|_| once()).min().unwrap_or_default();
        f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX)) / fastest.as_secs_f64() / 1e6
    };
    let (plain, secret, anew) = (rate(plain), rate(&secret), rate(&told));
    println!(
        "{name}: {plain:.1} MB/s without a secret, {secret:.1} MB/s with one that is replaced in place ({:.2} times as long), {anew:.1} MB/s written anew ({:.2} times)",
        plain / secret,
        plain / anew
    );
}

fn main() {
    let megabytes = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(8);
    let length = megabytes * 1_000_000;
    let redactor = Redactor::new(b"the key of the benchmark");
    let yaml = "  containers:\n  - name: web\n    image: registry.example/shop/web:1.2.3\n    resources:\n      limits: {cpu: 500m, memory: 256Mi}\n    ports: [{containerPort: 8080, protocol: TCP}]\n";
    let plain = fastest(&redactor, &repeated(yaml, BYTES));
    println!("plain YAML, {BYTES} bytes: {plain:?}");
    let times = |time: Duration| time.as_secs_f64() / plain.as_secs_f64();
    let mut all: Vec<(f64, String)> = Vec::new();
    for row in ROWS {
        // Beside the mark that is most often searched for, the shortest.
        for mark in row.marks.iter().take(1).chain(row.marks.iter().min_by_key(|mark| mark.len())) {
            let text = repeated(&format!("{mark}-"), BYTES);
            all.push((times(fastest(&redactor, &text)), format!("{}: {mark}-", row.name)));
        }
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let worst = all.first().map_or(0.0, |(times, _)| *times);
    let within = if worst <= MOST { "within" } else { "beyond" };
    println!(
        "the table's marks, repeated, in times of plain YAML: {worst:.2} at most, {within} the {MOST} allowed:"
    );
    for (times, name) in all.iter().take(8) {
        println!("  {times:>7.2}  {name}");
    }
    let head = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers:\n";
    let container = "      - name: web\n        image: registry.example/shop/web:1.2.3 # pinned\n        env:\n        - {name: LEVEL, value: debug}\n        resources:\n          limits: {cpu: 500m, memory: 256Mi}\n";
    in_place(&redactor, "many documents", &repeated(&format!("{head}{container}"), BYTES));
    in_place(&redactor, "one document", &format!("{head}{}", repeated(container, BYTES)));
    println!("other texts, {megabytes} eighths of a MB and four times as much (linear is a factor of 4):");
    for one in [
        "a_key=",
        "password=",
        "password: ",
        "password=\"",
        "password='\\\"",
        "token: {",
        "token:\n ",
        "value=",
        "name: token value: ",
        "://",
        "a://b:c",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "bearer ",
        "basic  ",
        "--token ",
        "-u ",
        "mysql -p ",
        "redis auth ",
        "%3D",
        "kind: Secret ",
        "kind",
        "\"kind\": ",
        "# ",
        "password ",
        "user password ",
        "passpass",
        "pass-",
        "pass_pass.",
        "\\\"password\\\":\\\"",
        "<password>",
        "A",
        "YWFh",
        "eyJhIjoi",
        "$(",
        "${",
        "{{",
        "password=${",
        "password={{",
        "password=<",
        "a@b:",
        "x:y@",
        "stats auth ",
        "\" \"",
        "key, ",
        "define('password', ",
        "password(",
        "\\n",
        "secret: rotate the ",
    ] {
        let time = |length| {
            let text = repeated(one, length);
            let start = Instant::now();
            std::hint::black_box(redactor.text(&text));
            let whole = Instant::now();
            std::hint::black_box(redactor.raw(&text));
            (whole - start, whole.elapsed())
        };
        let (small, large) = (time(length / 8), time(length / 2));
        let factor =
            |small: Duration, large: Duration| large.as_secs_f64() / small.as_secs_f64().max(0.000_1);
        println!(
            "  {one:<30?} text {:>10.1?} x{:<6.1} raw {:>10.1?} x{:.1}",
            large.0,
            factor(small.0, large.0),
            large.1,
            factor(small.1, large.1)
        );
    }
}
