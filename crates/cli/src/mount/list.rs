//! Lists of options, with commas between them.

/// Splits a list at its commas; `\,` is a comma within a value, `\\` a backslash.
pub(crate) fn split(list: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut letters = list.chars();
    while let Some(letter) = letters.next() {
        let last = items.len() - 1;
        match letter {
            ',' => items.push(String::new()),
            '\\' => items[last].push(letters.next().unwrap_or('\\')),
            other => items[last].push(other),
        }
    }
    items.retain(|item| !item.is_empty());
    items
}

/// An item, escaped for a list.
pub(crate) fn escaped(item: &str) -> String {
    item.replace('\\', "\\\\").replace(',', "\\,")
}
