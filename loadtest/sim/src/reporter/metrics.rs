//! Prometheus' text form, as much of it as a counter needs.

/// The samples of one scrape.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    samples: Vec<Sample>,
}

#[derive(Debug, Clone, PartialEq)]
struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

impl Metrics {
    /// Reads a scrape; a line that is no sample is skipped.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self { samples: lines.filter_map(sample).collect() }
    }

    /// The sum of a family's samples that have all these labels.
    #[must_use]
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let meets = |sample: &&Sample| {
            sample.name == name && labels.iter().all(|(name, value)| sample.label(name) == Some(value))
        };
        self.samples.iter().filter(meets).map(|sample| sample.value).sum()
    }

    /// How many samples there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The values of a label within a family, each once, sorted.
    #[must_use]
    pub fn values(&self, name: &str, label: &str) -> Vec<String> {
        let own = self.samples.iter().filter(|sample| sample.name == name);
        let mut values: Vec<String> =
            own.filter_map(|sample| sample.label(label)).map(str::to_owned).collect();
        values.sort();
        values.dedup();
        values
    }
}

impl Sample {
    fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// `name{label="value",...} number`.
fn sample(line: &str) -> Option<Sample> {
    let Some((name, rest)) = line.split_once('{') else {
        let (name, value) = line.split_once(' ')?;
        return Some(Sample { name: name.to_owned(), labels: Vec::new(), value: value.trim().parse().ok()? });
    };
    let mut labels = Vec::new();
    let mut rest = rest;
    while let Some((label, after)) = rest.split_once("=\"") {
        let (value, after) = quoted(after)?;
        labels.push((label.trim_start_matches(',').trim().to_owned(), value));
        rest = after;
        if rest.starts_with('}') {
            break;
        }
    }
    let value = rest.strip_prefix('}')?.trim().parse().ok()?;
    Some(Sample { name: name.to_owned(), labels, value })
}

/// A text up to its closing quote, unescaped, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            _ => value.push(letter),
        }
    }
    None
}
