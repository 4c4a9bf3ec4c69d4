//! How long redaction takes with texts that were made to be slow, beside plain YAML of the same size: each row's marks
//! repeated, and what the other readers of text stumble over. `cargo run --release -p pipeline-redact --example patterns`.
#![expect(clippy::print_stdout, reason = "it is a program")]

use std::time::{Duration, Instant};

use pipeline_redact::{ROWS, Redactor};

const LENGTH: usize = 8_000_000;

/// The fastest of three, which says most of the work itself.
fn fastest(redactor: &Redactor, text: &str) -> Duration {
    let once = || {
        let start = Instant::now();
        std::hint::black_box(redactor.text(std::hint::black_box(text)));
        start.elapsed()
    };
    once().min(once()).min(once())
}

fn repeated(one: &str, length: usize) -> String {
    one.repeat(length / one.len())
}

fn main() {
    let redactor = Redactor::new(b"the key of the benchmark");
    let yaml = "  containers:\n  - name: web\n    image: registry.example/shop/web:1.2.3\n    resources:\n      limits: {cpu: 500m, memory: 256Mi}\n    ports: [{containerPort: 8080, protocol: TCP}]\n";
    let plain = fastest(&redactor, &repeated(yaml, LENGTH));
    println!("plain YAML, 8 MB: {plain:?}");
    let times = |time: Duration| time.as_secs_f64() / plain.as_secs_f64();
    let mut all: Vec<(f64, String)> = Vec::new();
    for row in ROWS {
        for mark in row.marks {
            let text = repeated(&format!("{mark}-"), LENGTH);
            all.push((times(fastest(&redactor, &text)), format!("{}: {mark}-", row.name)));
        }
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    println!("the table's marks, repeated, in times of plain YAML:");
    for (times, name) in all.iter().take(8) {
        println!("  {times:>7.2}  {name}");
    }
    println!("other texts, 1 MB and 4 MB (linear is a factor of 4):");
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
        let (small, large) = (time(1_000_000), time(4_000_000));
        let factor = |small: Duration, large: Duration| large.as_secs_f64() / small.as_secs_f64().max(0.001);
        println!(
            "  {one:<30?} text {:>10.1?} x{:<6.1} raw {:>10.1?} x{:.1}",
            large.0,
            factor(small.0, large.0),
            large.1,
            factor(small.1, large.1)
        );
    }
}
