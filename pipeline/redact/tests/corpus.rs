//! Samples in the shapes of popular programs: of those with secrets every secret must be gone, of the others
//! everything that is named must survive. `rules` was made with the rules, `field` by somebody who had not seen them (but for
//! `-fifth` to `-tenth`, `-twelfth`, `-thirteenth`, `-seventeenth`, `-twenty-fourth` and `-thirty-first`, by somebody who had),
//! and each of its files before it was first run.
#![expect(clippy::panic, clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use std::collections::BTreeMap;
use std::path::Path;

use pipeline_redact::Redactor;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    name: String,
    kind: String,
    #[expect(dead_code, reason = "for who reads the corpus")]
    from: String,
    r#as: Form,
    r#in: String,
    #[serde(default)]
    gone: Vec<String>,
    #[serde(default)]
    kept: Vec<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Form {
    Manifest,
    Application,
    Text,
}

impl Sample {
    /// The sample as it leaves: on the way that its form takes through the program, and as a user would try it.
    fn out(&self) -> [String; 2] {
        let redactor = Redactor::new(b"the key of the corpus");
        let text = self.r#in.as_str();
        let tried = redactor.explain(text).text;
        let way = match self.r#as {
            Form::Text => redactor.text(text).into_owned(),
            Form::Manifest | Form::Application if text.trim_start().starts_with('{') => {
                redactor.manifest(text).into_owned()
            }
            Form::Manifest | Form::Application => redactor.raw(text).into_owned(),
        };
        [way, tried]
    }
}

#[derive(Default)]
struct Tally {
    gone: (usize, usize),
    kept: (usize, usize),
}

fn percent((hit, all): (usize, usize)) -> f64 {
    if all == 0 {
        100.0
    } else {
        f64::from(u32::try_from(hit).unwrap()) * 100.0 / f64::from(u32::try_from(all).unwrap())
    }
}

/// The share of secrets that are gone, and of look-alikes that survive.
fn run(corpus: &str) -> (f64, f64, usize, usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(corpus);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    // `CORPUS=-fourteenth cargo test -p pipeline-redact --test corpus` runs those files alone.
    if let Ok(part) = std::env::var("CORPUS") {
        files.retain(|file| file.to_string_lossy().contains(&part));
    }
    let mut kinds: BTreeMap<String, Tally> = BTreeMap::new();
    let (mut secrets, mut harmless) = (0, 0);
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "yaml")) {
        let text = std::fs::read_to_string(file).unwrap();
        let samples: Vec<Sample> =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for sample in samples {
            assert!(!sample.gone.is_empty() || !sample.kept.is_empty(), "{} asks for nothing", sample.name);
            for word in sample.gone.iter().chain(&sample.kept) {
                assert!(
                    sample.r#in.contains(word.as_str()),
                    "{}: {word:?} does not stand in it",
                    sample.name
                );
            }
            let out = sample.out();
            let tally = kinds.entry(sample.kind.clone()).or_default();
            for word in &sample.gone {
                tally.gone.1 += 1;
                match out.iter().find(|out| out.contains(word.as_str())) {
                    None => tally.gone.0 += 1,
                    Some(out) => println!("MISSED {} ({}): {word:?} in\n{out}\n", sample.name, sample.kind),
                }
            }
            if sample.gone.is_empty() {
                harmless += 1;
            } else {
                secrets += 1;
            }
            for word in &sample.kept {
                let lost = out.iter().find(|out| !out.contains(word.as_str()));
                tally.kept.1 += 1;
                tally.kept.0 += usize::from(lost.is_none());
                if let Some(out) = lost {
                    println!(
                        "HIDDEN {} ({}): {word:?} of\n{}\n->\n{out}\n",
                        sample.name, sample.kind, sample.r#in
                    );
                }
            }
        }
    }
    println!("{corpus:<24} gone (recall)        survived (precision)");
    let mut all = Tally::default();
    for (kind, tally) in &kinds {
        let line = |(hit, all): (usize, usize)| {
            if all == 0 {
                String::new()
            } else {
                format!("{hit:>4} of {all:>4} {:>5.1} %", percent((hit, all)))
            }
        };
        println!("  {kind:<20} {:<20} {}", line(tally.gone), line(tally.kept));
        all.gone = (all.gone.0 + tally.gone.0, all.gone.1 + tally.gone.1);
        all.kept = (all.kept.0 + tally.kept.0, all.kept.1 + tally.kept.1);
    }
    println!(
        "  {:<20} {:>4} of {:>4} {:>5.1} %  {:>4} of {:>4} {:>5.1} %",
        "all",
        all.gone.0,
        all.gone.1,
        percent(all.gone),
        all.kept.0,
        all.kept.1,
        percent(all.kept)
    );
    assert!(secrets > 0 && harmless > 0, "{corpus}: {secrets} samples with secrets and {harmless} without");
    (percent(all.gone), percent(all.kept), secrets, harmless)
}

#[test]
fn every_secret_of_the_rules_corpus_is_gone_and_every_look_alike_survives() {
    let (gone, kept, secrets, harmless) = run("rules");
    assert!(secrets >= 150 && harmless >= 150, "{secrets} samples with secrets, {harmless} without");
    assert!(gone >= 100.0 && kept >= 100.0, "{gone:.1} % gone, {kept:.1} % survived");
}

#[test]
fn of_the_field_corpus_98_percent_of_the_secrets_are_gone_and_95_percent_of_the_look_alikes_survive() {
    let (gone, kept, secrets, harmless) = run("field");
    assert!(secrets >= 100 && harmless >= 100, "{secrets} samples with secrets, {harmless} without");
    assert!(gone >= 98.0 && kept >= 95.0, "{gone:.1} % gone, {kept:.1} % survived");
}
