//! The rooms of a crate: a room imports only from rooms below it.
//!
//! The order stands in ARCHITECTURE.md, in tables whose first column is headed "room of `CRATE`", top first; the rooms of
//! one row are on one floor. An import that runs back up is counted, and each crate's count stands in `xtask/rooms.counts`.
//! The counts only fall: more is a finding, and so is less, until the lower number stands there.

use std::collections::BTreeMap;

use super::Finding;
use super::imports::{self, Import};
use super::tree::Tree;

const PAGE: &str = "ARCHITECTURE.md";
const COUNTS: &str = "xtask/rooms.counts";

/// Which files are in which room of a crate.
struct House<'t> {
    name: &'t str,
    /// Of the table, counted from 1.
    line: usize,
    /// Room, floor (from the top) and line.
    rooms: Vec<(&'t str, usize, usize)>,
}

impl<'t> House<'t> {
    fn folder(&self) -> String {
        format!("crates/{}/src/", self.name)
    }

    /// The room that a file lies in, and its floor: of those that hold it, the innermost.
    fn room_of(&self, path: &str) -> Option<(&'t str, usize)> {
        let folder = self.folder();
        let inner = path.strip_prefix(&folder)?;
        let holds = |room: &str| match room.strip_suffix('/') {
            Some(name) => {
                let rest = inner.strip_prefix(name);
                rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
            }
            None => inner == room,
        };
        let holding = self.rooms.iter().filter(|(room, _, _)| holds(room));
        let innermost = holding.max_by_key(|(room, _, _)| room.len())?;
        Some((innermost.0, innermost.1))
    }

    /// Imports from a room that lies above the one of the file.
    fn upward<'f>(&self, tree: &'f Tree) -> Vec<Import<'f>> {
        let mut imports = imports::within(tree, &self.folder());
        imports.retain(|import| {
            let floors = (self.room_of(import.by), self.room_of(import.from));
            matches!(floors, (Some((_, by)), Some((_, from))) if from < by)
        });
        imports
    }
}

/// The tables of the page.
fn houses(page: &str) -> Vec<House<'_>> {
    let mut houses: Vec<House<'_>> = Vec::new();
    let mut inside = false;
    for (index, line) in page.lines().enumerate() {
        let Some(cell) = line.strip_prefix('|').and_then(|row| row.split('|').next()) else {
            inside = false;
            continue;
        };
        let mut quoted = cell.split('`').skip(1).step_by(2);
        if cell.trim_start().starts_with("room of `") {
            let Some(name) = quoted.next() else { continue };
            inside = true;
            houses.push(House {
                name,
                line: index + 1,
                rooms: Vec::new(),
            });
        } else if let Some(house) = houses.last_mut().filter(|_| inside) {
            house
                .rooms
                .extend(quoted.map(|room| (room, index, index + 1)));
        }
    }
    houses
}

/// How many imports each crate may have that run back up.
fn counts(text: &str) -> BTreeMap<&str, usize> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, count)| Some((name, count.trim().parse().ok()?)))
        .collect()
}

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let page = tree.get(PAGE).map_or("", |file| file.text.as_str());
    let counts = counts(tree.get(COUNTS).map_or("", |file| file.text.as_str()));
    let mut findings = Vec::new();
    for house in houses(page) {
        findings.extend(strangers(tree, &house));
        let upward = house.upward(tree);
        let found = upward.len();
        let name = house.name;
        match counts.get(name) {
            None => findings.push(Finding::new(
                PAGE,
                house.line,
                format!("`{name}` has rooms but no count of imports that run back up"),
                format!("write `{name} {found}` into {COUNTS}"),
            )),
            Some(&most) if found < most => findings.push(Finding::new(
                COUNTS,
                1,
                format!("{found} imports of `{name}` run back up, no longer {most}"),
                format!("write `{name} {found}`: the number only falls"),
            )),
            Some(&most) if found > most => {
                let what =
                    format!("{found} imports of `{name}` run back up, no more than {most} may");
                let remedy = "`cargo xtask rooms` shows them; let the lower room declare a trait, or move the line";
                findings.push(Finding::new(COUNTS, 1, what, remedy));
            }
            Some(_) => {}
        }
    }
    findings
}

/// Files without a room, and rooms without a file.
fn strangers(tree: &Tree, house: &House<'_>) -> Vec<Finding> {
    let folder = house.folder();
    let files: Vec<&str> = tree.rust().map(|file| file.path.as_str()).collect();
    let homeless = files.iter().filter(|path| {
        let module = imports::module_path(path, &folder);
        module.is_some_and(|module| !module.is_empty()) && house.room_of(path).is_none()
    });
    let mut findings: Vec<Finding> = homeless
        .map(|path| {
            let what = format!("no room of `{}` holds this file", house.name);
            Finding::new(path, 1, what, "name one in the table of ARCHITECTURE.md")
        })
        .collect();
    for (room, _, line) in &house.rooms {
        let lived_in = files
            .iter()
            .any(|path| house.room_of(path).is_some_and(|(own, _)| own == *room));
        if !lived_in {
            let what = format!("no file lies in the room `{room}` of `{}`", house.name);
            findings.push(Finding::new(PAGE, *line, what, "take it from the table"));
        }
    }
    findings
}

/// What runs back up, line by line, and how many that are.
pub(super) fn list(tree: &Tree) -> String {
    let page = tree.get(PAGE).map_or("", |file| file.text.as_str());
    let mut text = String::new();
    for house in houses(page) {
        let upward = house.upward(tree);
        for import in &upward {
            let room = |path| house.room_of(path).map_or("", |(room, _)| room);
            let (by, from) = (room(import.by), room(import.from));
            let name = match import.name.as_str() {
                "" => import.from,
                name => name,
            };
            text += &format!(
                "{}:{}: {by} imports {name} of {from}\n",
                import.by, import.line
            );
        }
        text += &format!("{} {}\n", house.name, upward.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# Shape\n\n| room of `c` | is |\n|---|---|\n| `top/`, `side.rs` | above |\n| `top/cellar/` | within, and below |\n| `low/` | below |\n";
    const LOW: &str = "use crate::top::Top;\nfn f() { crate::side::go() }\n";

    fn found(page: &str, count: &str, low: &str) -> Vec<String> {
        let tree = Tree::of(&[
            (PAGE, page),
            (COUNTS, count),
            ("crates/c/src/lib.rs", "mod low;\nmod side;\nmod top;\n"),
            (
                "crates/c/src/side.rs",
                "use crate::low::Low;\nuse crate::top::Top;\n",
            ),
            ("crates/c/src/top/mod.rs", "mod cellar;\nuse crate::low;\n"),
            ("crates/c/src/top/cellar.rs", "use super::Top;\n"),
            ("crates/c/src/low.rs", low),
        ]);
        check(&tree).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn imports_that_run_back_up_are_counted_and_those_on_a_floor_or_downwards_are_not() {
        assert_eq!(found(TABLE, "# why\nc 3\n", LOW), Vec::<String>::new());
        assert_eq!(found(TABLE, "c 1\n", ""), Vec::<String>::new());
    }

    #[test]
    fn a_count_neither_grows_nor_stays_behind() {
        let more = found(TABLE, "c 2\n", LOW);
        let start = "xtask/rooms.counts:1: 3 imports of `c` run back up, no more than 2 may; ";
        assert!(more.len() == 1 && more[0].starts_with(start), "{more:?}");
        let less = found(TABLE, "c 2\n", "");
        let start = "xtask/rooms.counts:1: 1 imports of `c` run back up, no longer 2; write `c 1`";
        assert!(less.len() == 1 && less[0].starts_with(start), "{less:?}");
        let none = found(TABLE, "", LOW);
        assert!(
            none.len() == 1 && none[0].contains("write `c 3` into"),
            "{none:?}"
        );
    }

    #[test]
    fn a_file_has_a_room_and_a_room_has_a_file() {
        let page = TABLE.replace("`side.rs`", "`site.rs`");
        let all = found(&page, "c 2\n", LOW);
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all[0].starts_with("crates/c/src/side.rs:1: no room of `c` holds"));
        assert!(all[1].starts_with("ARCHITECTURE.md:5: no file lies in the room `site.rs`"));
    }

    #[test]
    fn the_list_names_file_line_and_both_rooms() {
        let tree = Tree::of(&[
            (PAGE, TABLE),
            ("crates/c/src/top/mod.rs", "pub struct Top;\n"),
            ("crates/c/src/low.rs", LOW),
        ]);
        assert_eq!(
            list(&tree),
            "crates/c/src/low.rs:1: low/ imports Top of top/\nc 1\n"
        );
    }
}
