//! A strict parser of OpenMetrics' text, for tests.

use std::collections::BTreeMap;

/// The labels of a sample.
pub(crate) type Labels = BTreeMap<String, String>;

/// A family of metrics.
#[derive(Debug, Default)]
pub(crate) struct Family {
    /// `gauge`, `counter`, ...
    pub(crate) kind: String,
    pub(crate) help: String,
    /// Name, labels and value of each sample, in their order.
    pub(crate) samples: Vec<(String, Labels, f64)>,
}

impl Family {
    /// The value of the first sample that has these labels, among others.
    pub(crate) fn value(&self, labels: &[(&str, &str)]) -> Option<f64> {
        let has = |all: &Labels| {
            let mut wanted = labels.iter();
            wanted.all(|(name, value)| all.get(*name).is_some_and(|is| is == value))
        };
        let sample = self.samples.iter().find(|(_, all, _)| has(all));
        sample.map(|(_, _, value)| *value)
    }
}

/// The families, by their names.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<String, Family>, String> {
    let body = text.strip_suffix("# EOF\n").ok_or("no end")?;
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut open = String::new();
    for line in body.split_terminator('\n') {
        let wrong = |what: &str| format!("{what}: {line:?}");
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (Some(what), Some(name), Some(text)) = (words.next(), words.next(), words.next())
            else {
                return Err(wrong("no descriptor"));
            };
            if name != open {
                if !is_name(name) || families.contains_key(name) {
                    return Err(wrong("a name that is none, or comes again"));
                }
                name.clone_into(&mut open);
            }
            let family = families.entry(open.clone()).or_default();
            if !family.samples.is_empty() {
                return Err(wrong("a descriptor behind samples"));
            }
            match what {
                "HELP" if family.help.is_empty() => text.clone_into(&mut family.help),
                "TYPE" if family.kind.is_empty() => text.clone_into(&mut family.kind),
                _ => return Err(wrong("a descriptor that is none, or comes again")),
            }
            continue;
        }
        let (name, labels, value) = sample(line).ok_or_else(|| wrong("no sample"))?;
        let family = families.get_mut(&open).ok_or_else(|| wrong("no family"))?;
        let suffixes: &[&str] = match family.kind.as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => return Err(wrong("a type that is none")),
        };
        let suffix = name.strip_prefix(open.as_str());
        if !suffix.is_some_and(|suffix| suffixes.contains(&suffix)) {
            return Err(wrong("not of the family"));
        }
        if family.kind != "gauge" && (value.is_nan() || value < 0.0) {
            return Err(wrong("less than nothing"));
        }
        if family
            .samples
            .iter()
            .any(|it| (&it.0, &it.1) == (&name, &labels))
        {
            return Err(wrong("told twice"));
        }
        family.samples.push((name, labels, value));
    }
    for (name, family) in &families {
        if family.help.is_empty() || family.kind.is_empty() {
            return Err(format!("{name} lacks a help or a type"));
        }
        histogram(name, family)?;
    }
    Ok(families)
}

/// Buckets of a histogram grow, up to the count, in the order of their bounds.
fn histogram(name: &str, family: &Family) -> Result<(), String> {
    let mut last: BTreeMap<Labels, (f64, f64)> = BTreeMap::new();
    for (sample, labels, value) in &family.samples {
        let mut labels = labels.clone();
        let Some(bound) = labels.remove("le") else {
            continue;
        };
        let bound: f64 = bound.parse().map_err(|_| format!("{sample}: no bound"))?;
        let before = last.insert(labels, (bound, *value));
        if before.is_some_and(|(least, count)| least >= bound || count > *value) {
            return Err(format!("{sample} falls at {bound}"));
        }
    }
    let counts = family.samples.iter();
    for (_, labels, count) in counts.filter(|it| it.0 == format!("{name}_count")) {
        if last.get(labels) != Some(&(f64::INFINITY, *count)) {
            return Err(format!(
                "{name} has buckets for {:?}, of {count}",
                last.get(labels)
            ));
        }
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters
        .next()
        .is_some_and(|it| it.is_ascii_alphabetic() || it == '_')
        && letters.all(|it| it.is_ascii_alphanumeric() || it == '_')
}

fn sample(line: &str) -> Option<(String, Labels, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Labels::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, behind) = rest.split_once("=\"")?;
            let (value, behind) = quoted(behind)?;
            if !is_name(label) || labels.insert(label.to_owned(), value).is_some() {
                return None;
            }
            rest = match behind.strip_prefix(',') {
                Some(next) if !next.starts_with('}') => next,
                Some(_) => return None,
                None => behind,
            };
            if !rest.starts_with('}') && rest.len() == behind.len() {
                return None;
            }
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ')?.parse().ok()?;
    is_name(name).then(|| (name.to_owned(), labels, value))
}

/// A label's value up to its closing quote, and what comes behind that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut letters) = (String::new(), text.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match letters.next()?.1 {
                'n' => '\n',
                same @ ('"' | '\\') => same,
                _ => return None,
            }),
            '\n' => return None,
            other => value.push(other),
        }
    }
    None
}
