//! What the READMEs point at is there: files, links and headings.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// Folders of the project that hold its files.
const HELD: [&str; 5] = ["config", "helm", "loadtest", "pipeline", "stages"];

/// The paths below `folder`, from the root on; a folder's ends with a slash.
fn paths(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mut told = path.strip_prefix(ROOT).unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            paths(&path, found);
            told.push('/');
        }
        found.push(told);
    }
}

/// What stands in backticks and is named as a file of this project is: a source, or a folder by a slash at its end.
fn named(text: &str) -> Vec<&str> {
    let is_path = |word: &&str| {
        word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte))
            && (word.ends_with(".rs") || (word.ends_with('/') && !word.starts_with('/')))
    };
    // Blocks of code are examples, and not prose.
    let prose = text.split("```").step_by(2);
    prose.flat_map(|prose| prose.split('`').skip(1).step_by(2)).filter(is_path).collect()
}

/// The targets of links.
fn links(text: &str) -> Vec<&str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target).collect()
}

/// The fragment that leads to a heading, as the hosts of repositories make it.
fn fragment(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn every_file_and_heading_that_a_readme_points_at_is_there() {
    let mut held = Vec::new();
    for folder in HELD {
        held.push(format!("{folder}/"));
        paths(&Path::new(ROOT).join(folder), &mut held);
    }
    let readmes = held.iter().filter(|path| path.ends_with("/README.md")).map(String::as_str);
    let readmes: Vec<&str> = readmes.chain(["README.md"]).collect();
    let (mut seen, mut lost) = (0, Vec::new());
    for readme in &readmes {
        let text = std::fs::read_to_string(Path::new(ROOT).join(readme)).unwrap();
        for name in named(&text) {
            seen += 1;
            let is_it = |path: &String| {
                path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
            };
            if !held.iter().any(is_it) {
                lost.push(format!("{readme}: there is no {name}"));
            }
        }
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            seen += 1;
            let (file, heading) = link.split_once('#').map_or((link, None), |(file, of)| (file, Some(of)));
            let beside = Path::new(ROOT).join(readme).parent().unwrap().join(file);
            let target: PathBuf = if file.is_empty() { Path::new(ROOT).join(readme) } else { beside };
            let is_there = match heading {
                None => target.exists(),
                Some(heading) => std::fs::read_to_string(&target).is_ok_and(|text| {
                    let headings = text.lines().filter(|line| line.starts_with('#'));
                    headings
                        .map(|line| line.trim_start_matches('#').trim())
                        .any(|line| fragment(line) == heading)
                }),
            };
            if !is_there {
                lost.push(format!("{readme}: nothing is at {link}"));
            }
        }
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
    assert!(readmes.len() > 3 && seen > 150, "{} READMEs and {seen} pointers are not all", readmes.len());
}
