//! The rooms of a crate: a room imports only from rooms below it.
//!
//! The order stands in ARCHITECTURE.md, in tables with a first column headed "room of `CRATE`", top
//! first. The rooms of one row are on one floor. The budget counts the imports of each crate that
//! run back up.

use super::Finding;
use super::imports::{self, Import};
use super::tree::Tree;

const PAGE: &str = "ARCHITECTURE.md";

/// Which files are in which room of a crate.
struct House<'t> {
    name: &'t str,
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

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let page = tree.get(PAGE).map_or("", |file| file.text.as_str());
    let houses = houses(page);
    houses
        .iter()
        .flat_map(|house| strangers(tree, house))
        .collect()
}

/// How many imports of each crate with rooms run back up.
pub(super) fn counts(tree: &Tree) -> Vec<(&str, usize)> {
    let page = tree.get(PAGE).map_or("", |file| file.text.as_str());
    let counts = houses(page).into_iter();
    counts
        .map(|house| (house.name, house.upward(tree).len()))
        .collect()
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

    fn house(page: &str, low: &str) -> Tree {
        Tree::of(&[
            (PAGE, page),
            ("crates/c/src/lib.rs", "mod low;\nmod side;\nmod top;\n"),
            (
                "crates/c/src/side.rs",
                "use crate::low::Low;\nuse crate::top::Top;\n",
            ),
            ("crates/c/src/top/mod.rs", "mod cellar;\nuse crate::low;\n"),
            ("crates/c/src/top/cellar.rs", "use super::Top;\n"),
            ("crates/c/src/low.rs", low),
        ])
    }

    #[test]
    fn imports_that_run_back_up_are_counted_and_those_on_a_floor_or_downwards_are_not() {
        assert_eq!(counts(&house(TABLE, LOW)), [("c", 3)]);
        assert_eq!(counts(&house(TABLE, "")), [("c", 1)]);
    }

    #[test]
    fn a_file_has_a_room_and_a_room_has_a_file() {
        let page = TABLE.replace("`side.rs`", "`site.rs`");
        let all: Vec<String> = check(&house(&page, LOW))
            .iter()
            .map(Finding::to_string)
            .collect();
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
