//! Files of sections with keys: libpq's services, and profiles of buckets' keys.

use std::collections::BTreeMap;

/// The keys of a section. The first of several sections of one name counts.
pub(crate) fn section(text: &str, name: &str) -> Option<BTreeMap<String, String>> {
    let mut found: Option<BTreeMap<String, String>> = None;
    let mut is_inside = false;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(title) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            is_inside = title.trim() == name && found.is_none();
            if is_inside {
                found = Some(BTreeMap::new());
            }
        } else if let (true, Some(keys), Some((key, value))) =
            (is_inside, &mut found, line.split_once('='))
        {
            keys.insert(key.trim().into(), value.trim().into());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::section;

    #[test]
    fn a_section_has_its_own_keys() {
        let text = "# x\n[a]\nhost = db1\n\n[b]\nhost=db2\n;port=1\nport= 7\n[a]\nport=9\n";
        let of = |name, key: &str| section(text, name)?.get(key).cloned();
        assert_eq!(of("a", "host"), Some("db1".into()));
        assert_eq!(of("a", "port"), None);
        assert_eq!(of("b", "port"), Some("7".into()));
        assert_eq!(of("c", "host"), None);
    }
}
