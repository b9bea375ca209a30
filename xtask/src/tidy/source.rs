//! Just enough of Rust's lexer to tell code from comments and literals.
//!
//! *Invariant*: the result of [`code_only`] has the same number of bytes and the same line breaks
//! as its input, so a place in one is a place in the other.

/// `text` with comments, strings and character literals replaced by blanks.
pub(super) fn code_only(text: &str) -> String {
    replaced(text, false)
}

/// As [`code_only`], with the quotes of strings kept, and a digit for each character literal.
pub(super) fn marked(text: &str) -> String {
    replaced(text, true)
}

fn replaced(text: &str, marks: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => line_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => block_comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' if starts_word(bytes, at) => match raw_string_end(bytes, at) {
                Some(end) => end,
                None => word_end(bytes, at),
            },
            b'\'' => match character_end(bytes, at) {
                Some(end) => end,
                None => at + 1,
            },
            _ => {
                at += 1;
                continue;
            }
        };
        let literal = !bytes[at].is_ascii_alphabetic() || raw_string_end(bytes, at).is_some();
        if literal && end > at + 1 {
            blank(&mut out[at..end]);
            match bytes[at] {
                b'\'' if marks => out[at] = b'0',
                b'"' | b'r' if marks => mark_string(&mut out, at, end),
                _ => {}
            }
        }
        at = end;
    }
    String::from_utf8(out).expect("only whole characters are blanked")
}

/// Puts the quotes of a string back, and takes the prefix of a byte string away.
fn mark_string(out: &mut [u8], at: usize, end: usize) {
    (out[at], out[end - 1]) = (b'"', b'"');
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if at > 0 && out[at - 1] == b'b' && (at == 1 || !is_word(out[at - 2])) {
        out[at - 1] = b' ';
    }
}

fn blank(part: &mut [u8]) {
    for byte in part {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..]
        .iter()
        .position(|&byte| byte == b'\n')
        .map_or(bytes.len(), |length| at + length)
}

/// Block comments nest.
fn block_comment_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut next = at + 1;
    while next < bytes.len() {
        match bytes[next] {
            b'\\' => next += 2,
            b'"' => return next + 1,
            _ => next += 1,
        }
    }
    bytes.len()
}

/// Whether the `r` at `at` can open a raw string: it begins a word, or follows `b` or `c` that
/// does.
fn starts_word(bytes: &[u8], at: usize) -> bool {
    let is_word = |index: usize| bytes[index].is_ascii_alphanumeric() || bytes[index] == b'_';
    match at {
        0 => true,
        1 => !is_word(0) || matches!(bytes[0], b'b' | b'c'),
        _ => !is_word(at - 1) || (matches!(bytes[at - 1], b'b' | b'c') && !is_word(at - 2)),
    }
}

fn word_end(bytes: &[u8], at: usize) -> usize {
    let length = bytes[at..]
        .iter()
        .position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))
        .unwrap_or(bytes.len() - at);
    at + length.max(1)
}

/// The end of `r"…"` or `r##"…"##`; nothing for other words and for raw identifiers.
fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..]
        .iter()
        .take_while(|&&byte| byte == b'#')
        .count();
    let open = at + 1 + hashes;
    if bytes[at] != b'r' || bytes.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'#'; hashes + 1];
    close[0] = b'"';
    let inside = &bytes[open + 1..];
    let length = inside
        .windows(close.len())
        .position(|window| window == close.as_slice());
    Some(length.map_or(bytes.len(), |length| open + 1 + length + close.len()))
}

/// The end of a character literal; nothing for a lifetime.
fn character_end(bytes: &[u8], at: usize) -> Option<usize> {
    let first = *bytes.get(at + 1)?;
    if first == b'\\' {
        // The escaped character itself may be the quote.
        let rest = bytes.get(at + 3..)?;
        let length = rest.iter().position(|&byte| byte == b'\'')?;
        return Some(at + 3 + length + 1);
    }
    let width = match first {
        0..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    };
    (bytes.get(at + 1 + width) == Some(&b'\'')).then_some(at + 2 + width)
}

/// Whether `word` stands in `line` with no letter, digit or underscore next to it.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(is_word) && !line[at + word.len()..].starts_with(is_word)
    })
}

/// Number of lines of `code` (blanked Rust) outside `#[cfg(test)] mod … { … }`.
pub(super) fn lines_without_tests(code: &str) -> usize {
    let lines: Vec<&str> = code.lines().collect();
    let mut count = 0;
    let mut at = 0;
    while at < lines.len() {
        match test_module_end(&lines, at) {
            Some(end) => at = end,
            None => {
                count += 1;
                at += 1;
            }
        }
    }
    count
}

/// The same lines, those of test modules empty.
pub(super) fn without_tests(code: &str) -> String {
    let lines: Vec<&str> = code.lines().collect();
    let mut kept = String::with_capacity(code.len());
    let mut at = 0;
    while at < lines.len() {
        let end = test_module_end(&lines, at);
        if end.is_none() {
            kept += lines[at];
        }
        for _ in at..end.unwrap_or(at + 1) {
            kept.push('\n');
        }
        at = end.unwrap_or(at + 1);
    }
    kept
}

/// The line behind the test module that has its `#[cfg(test)]` on line `at`. Formatted code closes
/// a module with a brace in the column of its first attribute.
fn test_module_end(lines: &[&str], at: usize) -> Option<usize> {
    let first = lines[at].trim();
    if !first.starts_with("#[cfg(") || !has_word(first, "test") {
        return None;
    }
    let head = (at + 1..lines.len()).find(|&line| !lines[line].trim().starts_with("#["))?;
    let text = lines[head].trim();
    if !text.ends_with('{') || !has_word(text, "mod") {
        return None;
    }
    let indent = lines[at].len() - lines[at].trim_start().len();
    let close = format!("{}}}", " ".repeat(indent));
    let end = (head..lines.len()).find(|&line| lines[line].trim_end() == close)?;
    Some(end + 1)
}

/// Words, `::`, and single characters, with their lines from 1.
pub(super) fn tokens(code: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            let len = match word.unwrap_or(rest.len()) {
                0 if rest.starts_with("::") => 2,
                0 => first.len_utf8(),
                len => len,
            };
            let (token, behind) = rest.split_at(len);
            found.push((token, index + 1));
            rest = behind.trim_start();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_code_is_kept() {
        let text =
            "let a = \"todo!\\\"\"; // todo!\nlet b = r#\"x \" todo!\"#; /* todo! /* */ */ c();\n";
        let code = code_only(text);
        assert!(!code.contains("todo!"), "{code}");
        assert!(code.contains("let b =") && code.contains("c();"), "{code}");
        assert_eq!(code.len(), text.len());
        assert_eq!(code.lines().count(), 2);
    }

    #[test]
    fn lifetimes_do_not_open_a_literal() {
        let code = code_only("fn f<'a>(x: &'a str) { let q = '\"'; unsafe_call(x, '\\'', 'ü') }");
        assert!(
            code.contains("&'a str") && code.contains("unsafe_call(x,"),
            "{code}"
        );
        assert!(!code.contains('"') && !code.contains('ü'), "{code}");
    }

    #[test]
    fn raw_identifiers_and_words_with_r_stay() {
        assert_eq!(code_only("let r#type = bar(r);"), "let r#type = bar(r);");
        assert_eq!(code_only("br\"todo\" + x"), "b        + x");
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("unsafe {", "unsafe"));
        assert!(!has_word("unsafe_code", "unsafe"));
        assert!(has_word("unsafe_code unsafe", "unsafe"));
    }

    #[test]
    fn modules_of_tests_do_not_count() {
        let code = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n";
        assert_eq!(lines_without_tests(code), 3);
        assert_eq!(
            lines_without_tests("#[cfg(test)]\nmod tests;\nfn c() {}\n"),
            3
        );
    }
}
