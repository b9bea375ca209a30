//! From addresses to lines of the source.

use std::collections::HashMap;

use crate::debug_info::{DebugInfo, Site};
use crate::report::{Block, Code, Line, Place, Touch};
use crate::step::LINE_BYTES;

/// Where the product's sources are; the first of several names of one place.
const PRODUCT: &str = "crates/";
const CORE: &str = "crates/core/";

/// Knows the sources of the modules it has seen.
#[derive(Default)]
pub(crate) struct Symbols {
    modules: HashMap<String, Option<DebugInfo>>,
    sites: HashMap<(String, u64), Vec<Site>>,
}

impl Symbols {
    /// What is at a place, innermost inlined function first.
    fn sites(&mut self, module: &str, address: u64) -> Vec<Site> {
        let key = (module.to_owned(), address);
        if let Some(known) = self.sites.get(&key) {
            return known.clone();
        }
        let mut found = match self.module(module) {
            Some(info) => info.sites(address),
            None => Vec::new(),
        };
        for site in &mut found {
            site.function = last_words(&site.function);
        }
        self.sites.insert(key, found.clone());
        found
    }

    fn module(&mut self, module: &str) -> Option<&DebugInfo> {
        let info = self
            .modules
            .entry(module.to_owned())
            // Without debug information (the vDSO has no file at all) addresses stay numbers.
            .or_insert_with(|| DebugInfo::load(module).ok());
        info.as_ref()
    }

    /// The product's functions on a chain of calls, innermost first. `exact`: the first address
    /// is that of an instruction, not one to return to.
    fn product(&mut self, modules: &[String], calls: &[Code], exact: bool) -> Vec<Site> {
        let mut product = Vec::new();
        for (index, &(module, address)) in calls.iter().enumerate() {
            // The call lies before the address it returns to.
            let back = u64::from(!(exact && index == 0));
            let Some(path) = modules.get(module) else {
                continue;
            };
            let sites = self.sites(path, address.saturating_sub(back));
            product.extend(sites.into_iter().filter_map(in_product));
        }
        product
    }

    /// The innermost function of the product, and the function of the core that called it.
    pub(crate) fn who(&mut self, modules: &[String], touch: &Touch) -> String {
        let mut text = match self.product(modules, &touch.calls, true).as_slice() {
            [] => self.outside(modules, touch),
            sites => shown(sites),
        };
        if touch.allocating {
            text += " (allocator)";
        }
        text
    }

    fn outside(&mut self, modules: &[String], touch: &Touch) -> String {
        let Some(&(module, address)) = touch.calls.first() else {
            return "unknown code".to_owned();
        };
        let path = modules.get(module).cloned().unwrap_or_default();
        match self.sites(&path, address).last() {
            Some(site) => site.function.clone(),
            None => format!("{}+{address:#x}", file_name(&path)),
        }
    }

    /// What memory it is.
    pub(crate) fn place(&mut self, modules: &[String], line: &Line) -> String {
        match &line.place {
            Place::Thread(side) => format!("stack or thread-locals of thread {}", side + 1),
            Place::Unknown if line.by_allocator() => "the allocator's own memory".to_owned(),
            Place::Unknown => "memory that nobody allocated".to_owned(),
            &Place::Module((module, address)) => {
                let path = modules.get(module).cloned().unwrap_or_default();
                let info = self.module(&path);
                // Several statics may lie in the line: the one that is written is meant.
                let written = address + line.first_written();
                let symbol = info.and_then(|info| info.symbol(written, address + LINE_BYTES));
                match symbol {
                    Some(name) => format!("static {name}"),
                    None => format!("{}+{address:#x}", file_name(&path)),
                }
            }
            Place::Heap(blocks) => {
                let shown: Vec<String> = blocks
                    .iter()
                    .map(|block| self.block(modules, block))
                    .collect();
                shown.join("; ")
            }
        }
    }

    fn block(&mut self, modules: &[String], block: &Block) -> String {
        let origin = match self.product(modules, &block.calls, false).as_slice() {
            [] if block.calls.is_empty() => "an operation under record".to_owned(),
            [] => "code outside the product".to_owned(),
            sites => shown(sites),
        };
        format!("heap block of {} bytes from {origin}", block.size)
    }

    /// The functions that wrote to a line.
    pub(crate) fn writers(&mut self, modules: &[String], line: &Line) -> Vec<String> {
        let mut writers: Vec<String> = Vec::new();
        for touch in line.sides.iter().flatten().filter(|touch| touch.write) {
            let who = self.who(modules, touch);
            if !writers.contains(&who) {
                writers.push(who);
            }
        }
        writers
    }
}

/// The same place with its path from the top of the tree, if it is one of the product.
fn in_product(site: Site) -> Option<Site> {
    // Registries keep packages in folders that may be called the same.
    if site.file.contains("/registry/") || site.file.contains("/rustc/") {
        return None;
    }
    let at = match site.file.find(&format!("/{PRODUCT}")) {
        Some(slash) => slash + 1,
        None if site.file.starts_with(PRODUCT) => 0,
        None => return None,
    };
    let file = site.file[at..].to_owned();
    Some(Site { file, ..site })
}

/// The innermost place, and the first one of the core where that is another.
fn shown(sites: &[Site]) -> String {
    let one = |site: &Site| {
        let file = site.file.strip_prefix(PRODUCT).unwrap_or(&site.file);
        format!("{} {}:{}", site.function, file, site.line)
    };
    let first = one(&sites[0]);
    match sites.iter().find(|site| site.file.starts_with(CORE)) {
        Some(core) if !sites[0].file.starts_with(CORE) => format!("{first} for {}", one(core)),
        _ => first,
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A function's name and what it belongs to, without the rest of its path; generics only where
/// the name says nothing without.
fn last_words(name: &str) -> String {
    let mut depth = 0_usize;
    let mut plain = String::new();
    let mut before = ' ';
    for letter in name.chars() {
        match letter {
            '<' => depth += 1,
            // The arrow of a function's type closes nothing.
            '>' if before != '-' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
        before = letter;
    }
    let mut words: Vec<&str> = plain.split("::").filter(|word| !word.is_empty()).collect();
    if words.last().is_some_and(|word| is_hash(word)) {
        words.pop();
    }
    let start = words.len().saturating_sub(2);
    let words = words[start..].join("::");
    match name.split_once("drop_in_place<") {
        Some((_, dropped)) => {
            let dropped = dropped.split(['<', '>']).next().unwrap_or_default();
            let of = dropped.rsplit("::").next().unwrap_or(dropped);
            format!("drop of {of}")
        }
        None => words,
    }
}

/// The end of a mangled name: `h` and 16 digits.
fn is_hash(word: &str) -> bool {
    word.len() == 17
        && word.starts_with('h')
        && word[1..].chars().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_to_what_tells_them_apart() {
        assert_eq!(
            last_words("holdfast_core::open::opened::h0123456789abcdef"),
            "open::opened"
        );
        assert_eq!(last_words("alloc::sync::Arc<T,A>::clone"), "Arc::clone");
        assert_eq!(last_words("malloc"), "malloc");
        let method = "<a::Map<b::Inode>>::get_with::<b::Node, fn(&b::Inode) -> b::Node>";
        assert_eq!(last_words(method), "get_with");
        let glue = "core::ptr::drop_in_place<holdfast_core::open::OpenFile>";
        assert_eq!(last_words(glue), "drop of OpenFile");
    }

    #[test]
    fn only_the_product_is_blamed_with_its_path() {
        let site = |file: &str| Site {
            function: "f".to_owned(),
            file: file.to_owned(),
            line: 7,
        };
        let product = in_product(site("/home/me/holdfast/crates/sync/src/a.rs")).expect("ours");
        assert_eq!(product.file, "crates/sync/src/a.rs");
        assert_eq!(
            in_product(site("/home/me/.cargo/registry/src/x/crates/y.rs")),
            None
        );
        assert_eq!(in_product(site("/rustc/abc/library/core/src/a.rs")), None);
        let core = site("crates/core/src/b.rs");
        assert_eq!(
            shown(&[product, core]),
            "f sync/src/a.rs:7 for f core/src/b.rs:7"
        );
    }
}
