use super::*;
use std::collections::HashSet;
use std::time::Duration;

/// A directory with nothing in memory, its scan, and a thread that looks names up in it.
struct World {
    scan: Scan,
    /// Numbers and names, by index. The cookie of a file is its index plus 3.
    files: Vec<(Ino, Vec<u8>)>,
    there: HashSet<Ino>,
    unmet: HashSet<Ino>,
    now: Millis,
    tickets: u64,
    loads: usize,
    issued: usize,
}

impl World {
    fn new(files: Vec<(Ino, Vec<u8>)>) -> Self {
        Self {
            scan: Scan::of(Ino(1)),
            files,
            there: HashSet::new(),
            unmet: HashSet::new(),
            now: Millis(1000),
            tickets: 0,
            loads: 0,
            issued: 0,
        }
    }

    /// With this number of files; names and numbers ascend.
    fn of(count: usize) -> Self {
        let file = |place| (Ino(100 + place as u64), format!("{place:08}").into_bytes());
        Self::new((0..count).map(file).collect())
    }

    fn list(&mut self) {
        let visible = self.files.iter().position(|(_, name)| !is_hidden(name));
        self.scan.listed = Some([3, 3 + visible.unwrap_or(0) as u64]);
    }

    fn look_up(&mut self, place: usize) {
        let (ino, name) = self.files[place].clone();
        self.unmet.remove(&ino);
        if !self.there.insert(ino) {
            return;
        }
        self.loads += 1;
        let demand = Demand {
            dir: Ino(1),
            name: &name,
            cookie: 3 + place as u64,
            ino,
            names: self.files.len() as u64,
        };
        let unmet = |ino| self.there.contains(&ino).then(|| self.unmet.contains(&ino));
        let Some((order, len)) = self.scan.decide(&demand, self.now, &unmet) else {
            return;
        };
        self.tickets += 1;
        self.scan.begin(self.tickets, self.now);
        let came = self.bring(place, order, len);
        for ino in &came.inos {
            self.there.insert(*ino);
            self.unmet.insert(*ino);
            self.issued += 1;
        }
        self.scan.brought(self.tickets, len, came, self.now);
    }

    fn bring(&self, place: usize, order: Order, len: usize) -> Brought {
        match order {
            Order::Listing { hidden } => self.bring_listing(place, hidden, len),
            Order::All => {
                let inos = self.files.iter().map(|(ino, _)| *ino);
                let inos = inos.filter(|ino| !self.there.contains(ino)).collect();
                Brought {
                    inos,
                    reach: Reach::All,
                }
            }
            Order::Sort(by, first, loads) => {
                let mut files = self.files.clone();
                match by {
                    By::Number => files.sort_by_key(|(ino, _)| *ino),
                    By::Name => files.sort_by(|one, other| one.1.cmp(&other.1)),
                }
                let order: Arc<[Ino]> = files.into_iter().map(|(ino, _)| ino).collect();
                match place_of(&order, first, self.files[place].0, loads) {
                    Some(at) => self.bring_sorted(order, at, len),
                    None => Brought {
                        inos: Vec::new(),
                        reach: Reach::Nothing,
                    },
                }
            }
            Order::Sorted(order, at) => self.bring_sorted(order, at, len),
        }
    }

    fn bring_listing(&self, place: usize, hidden: bool, len: usize) -> Brought {
        let behind = (place + 1..self.files.len()).filter(|place| {
            let (ino, name) = &self.files[*place];
            !self.there.contains(ino) && (hidden || !is_hidden(name))
        });
        let mut behind = behind.peekable();
        let mut inos = Vec::new();
        let mut end = 3 + place as u64;
        while inos.len() < len
            && let Some(place) = behind.next()
        {
            end = 3 + place as u64;
            inos.push(self.files[place].0);
        }
        let next = behind.peek().map(|place| 3 + *place as u64);
        Brought {
            inos,
            reach: Reach::Listing { hidden, end, next },
        }
    }

    fn bring_sorted(&self, order: Arc<[Ino]>, at: usize, len: usize) -> Brought {
        let behind = order.iter().enumerate().skip(at);
        let absent = behind.filter(|(_, ino)| !self.there.contains(*ino));
        let some: Vec<(usize, Ino)> = absent.map(|(at, ino)| (at, *ino)).take(len).collect();
        let next = some.last().map_or(at, |(at, _)| at + 1);
        let inos = some.into_iter().map(|(_, ino)| ino).collect();
        Brought {
            inos,
            reach: Reach::Sorted(order, next),
        }
    }
}

/// Numbers without an order.
fn mixed(number: usize) -> u64 {
    let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 31).wrapping_mul(0x94d0_49bb_1331_11eb) >> 20
}

#[test]
fn a_listing_and_a_look_at_each_name_takes_windows_that_double_up_to_a_batch() {
    let mut world = World::of(100_000);
    world.list();
    (0..100_000).for_each(|place| world.look_up(place));
    // The windows of 8 to 4,096 are 10, and then 12 of 8,192.
    assert_eq!(world.loads, 10 + 12);
    assert_eq!(world.unmet.len(), 0);
}

#[test]
fn the_third_load_in_the_order_of_the_listing_begins_a_scan_anywhere() {
    let mut world = World::of(10_000);
    (5_000..6_000).for_each(|place| world.look_up(place));
    assert_eq!(world.loads, 2 + 7);
    // And continues elsewhere.
    (1_000..1_100).for_each(|place| world.look_up(place));
    assert!(world.loads < 2 + 7 + 9, "{} loads", world.loads);
}

#[test]
fn hidden_names_are_left_out_until_one_is_asked_for() {
    let file = |place: u64| {
        let dot = if place.is_multiple_of(2) { "." } else { "" };
        (Ino(100 + place), format!("{dot}{place}").into_bytes())
    };
    for all in [false, true] {
        let mut world = World::new((0..4_000).map(file).collect());
        world.list();
        let wanted = |place: &usize| all || !place.is_multiple_of(2);
        (0..4_000)
            .filter(wanted)
            .for_each(|place| world.look_up(place));
        assert!(world.loads < 15, "{} loads, all: {all}", world.loads);
        assert_eq!(world.unmet.len(), 0, "all: {all}");
    }
}

#[test]
fn a_directory_of_few_names_comes_with_its_third_load_in_whatever_order() {
    let mut world = World::of(100);
    for place in [70, 3, 50, 49, 48, 0, 99] {
        world.look_up(place);
    }
    assert_eq!((world.loads, world.issued), (3, 97));
    // Not if the loads take longer than a second.
    let mut slow = World::of(100);
    for place in [70, 3, 50, 20, 90, 0] {
        slow.now = slow.now.after(Duration::from_millis(600));
        slow.look_up(place);
    }
    assert_eq!((slow.loads, slow.issued), (6, 0));
}

#[test]
fn eight_loads_that_ascend_by_number_or_by_name_begin_a_scan_in_that_order() {
    for by in [By::Number, By::Name] {
        let file = |place| match by {
            By::Number => (
                Ino(mixed(place)),
                format!("{:016x}", mixed(place + 9)).into_bytes(),
            ),
            By::Name => (
                Ino(mixed(place + 9)),
                format!("{:016x}", mixed(place)).into_bytes(),
            ),
        };
        let mut world = World::new((0..10_000).map(file).collect());
        let mut order: Vec<usize> = (0..10_000).collect();
        match by {
            By::Number => order.sort_by_key(|place| world.files[*place].0),
            By::Name => order.sort_by_key(|place| world.files[*place].1.clone()),
        }
        order.into_iter().for_each(|place| world.look_up(place));
        assert!(world.loads < 7 + 9, "{} loads by {by:?}", world.loads);
        assert_eq!(world.unmet.len(), 0);
    }
}

#[test]
fn a_wrong_guess_ends_within_eight_loads_and_after_few_inodes_in_vain() {
    let count = 10_000;
    let orders: [(&str, Vec<usize>); 3] = [
        ("random", {
            let mut order: Vec<usize> = (1..count).collect();
            order.sort_by_key(|place| mixed(*place));
            order
        }),
        ("reverse", (1..count).rev().collect()),
        ("every tenth", (1..count).step_by(10).collect()),
    ];
    for (name, order) in orders {
        for listed in [true, false] {
            let mut world = World::of(count);
            if listed {
                // Like a program that reads the first file of a listing, and then does something
                // else.
                world.list();
                world.look_up(0);
                assert_eq!(world.issued, 8, "{name}");
            }
            let few = order.iter().take(9);
            few.for_each(|place| world.look_up(*place));
            let soon = world.issued;
            order.iter().for_each(|place| world.look_up(*place));
            assert_eq!(world.issued, soon, "{name}: more came after nine loads");
            assert!(world.issued <= 8, "{name}: {} came", world.issued);
        }
    }
}

#[test]
fn a_directory_rests_after_a_wrong_guess_and_longer_after_the_next() {
    let mut world = World::of(100_000);
    let mut place = 0;
    let mut guess = |world: &mut World| {
        // The first of each ten that follow each other reads eight ahead, none of which is used.
        let before = world.issued;
        world.list();
        world.scan.listed = Some([3 + place, 3 + place]);
        world.look_up(place as usize);
        (1..=STRAYS as u64).for_each(|stray| world.look_up((place + 100 * stray) as usize));
        place += 2_000;
        world.issued - before
    };
    assert_eq!(guess(&mut world), 8);
    assert_eq!(guess(&mut world), 0, "it rests");
    world.now = world.now.after(Duration::from_secs(1));
    assert_eq!(guess(&mut world), 8);
    world.now = world.now.after(Duration::from_secs(1));
    assert_eq!(guess(&mut world), 0, "for two seconds now");
    world.now = world.now.after(Duration::from_secs(1));
    assert_eq!(guess(&mut world), 8);
}

#[test]
fn who_comes_while_inodes_are_on_their_way_is_neither_in_order_nor_out_of_it() {
    let mut scan = Scan::of(Ino(1));
    let demand = |cookie| Demand {
        dir: Ino(1),
        name: b"x",
        cookie,
        ino: Ino(cookie),
        names: 1_000,
    };
    let met = |_| Some(false);
    scan.listed = Some([3, 3]);
    assert!(scan.decide(&demand(3), Millis(0), &met).is_some());
    scan.begin(1, Millis(0));
    for cookie in (5..100).rev() {
        assert_eq!(scan.decide(&demand(cookie), Millis(0), &met), None);
    }
    let reach = Reach::Listing {
        hidden: false,
        end: 11,
        next: Some(12),
    };
    scan.brought(
        1,
        8,
        Brought {
            inos: Vec::new(),
            reach,
        },
        Millis(0),
    );
    let next = scan.decide(&demand(12), Millis(0), &met);
    assert_eq!(next, Some((Order::Listing { hidden: false }, 16)));
}
