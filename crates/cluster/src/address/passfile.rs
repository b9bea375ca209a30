//! `~/.pgpass`: lines of `host:port:database:user:password`, where `*` matches all.

/// The password of the first line that matches.
pub(super) fn password(text: &str, wanted: [&str; 4]) -> Option<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(fields).find_map(|fields| match &fields[..] {
        [before @ .., password] if before.len() == wanted.len() => {
            let fits = |(field, wanted): (&String, &str)| field == "*" || field == wanted;
            let all = before.iter().zip(wanted).all(fits);
            (all && !password.is_empty()).then(|| password.clone())
        }
        _ => None,
    })
}

/// Splits a line at its colons; `\:` and `\\` stand for themselves.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            ':' => {
                fields.push(String::new());
                continue;
            }
            '\\' => chars.next().unwrap_or('\\'),
            c => c,
        };
        if let Some(last) = fields.last_mut() {
            last.push(c);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::password;

    #[test]
    fn the_first_line_that_matches_has_the_password() {
        let text = "# comment:*:*:*:no\ndb1:5432:x:fs:one\n*:*:*:fs:a\\:b\\\\c\n*:*:*:*:last\n";
        let of = |host, user| password(text, [host, "5432", "x", user]);
        assert_eq!(of("db1", "fs"), Some("one".into()));
        assert_eq!(of("db2", "fs"), Some("a:b\\c".into()));
        assert_eq!(of("db2", "other"), Some("last".into()));
        assert_eq!(
            password("db1:5432:x:fs\n\n:::", ["db1", "5432", "x", "fs"]),
            None
        );
    }
}
