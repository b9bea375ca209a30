use super::{Acl, check, chmod, create, equivalent_mode, mode_of, permission, to_xattr};
use holdfast_types::{Access, Caller, Caps, Errno, FileType};
use proptest::collection::vec;
use proptest::prelude::*;

const OWNER: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP_OBJ: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

/// Entries as tag, permissions, id.
type Row = (u16, u16, u32);

fn value(version: u32, rows: &[Row]) -> Vec<u8> {
    let mut bytes = version.to_le_bytes().to_vec();
    for (tag, perm, id) in rows {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(perm.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

fn acl(rows: &[Row]) -> Acl {
    Acl::parse(&value(2, rows)).unwrap().unwrap()
}

fn access(bits: u8) -> Access {
    Access::from_bits_truncate(bits)
}

/// What an ACL says, apart from how it is kept.
#[derive(Clone, Debug)]
struct Sketch {
    owner: u16,
    group: u16,
    other: u16,
    users: Vec<(u32, u16)>,
    groups: Vec<(u32, u16)>,
    mask: Option<u16>,
}

impl Sketch {
    fn rows(&self) -> Vec<Row> {
        let mut rows = vec![(OWNER, self.owner, 7)];
        rows.extend(self.users.iter().map(|&(id, perm)| (USER, perm, id)));
        rows.push((GROUP_OBJ, self.group, u32::MAX));
        rows.extend(self.groups.iter().map(|&(id, perm)| (GROUP, perm, id)));
        rows.extend(self.mask.map(|perm| (MASK, perm, 0)));
        rows.push((OTHER, self.other, u32::MAX));
        rows
    }

    /// The algorithm as acl(5) tells it, group by group.
    fn grants(&self, who: &Caller, uid: u32, gid: u32, want: u16) -> bool {
        let mask = self.mask.unwrap_or(7);
        if who.uid == uid {
            return self.owner & want == want;
        }
        if let Some((_, perm)) = self.users.iter().find(|(id, _)| *id == who.uid) {
            return perm & mask & want == want;
        }
        let owning = std::iter::once((gid, self.group));
        let mine: Vec<u16> = owning
            .chain(self.groups.iter().copied())
            .filter(|(id, _)| who.gid == *id || who.groups.contains(id))
            .map(|(_, perm)| perm & mask)
            .collect();
        match mine.is_empty() {
            true => self.other & want == want,
            false => mine.iter().any(|perm| perm & want == want),
        }
    }
}

fn sketches() -> impl Strategy<Value = Sketch> {
    let named = || vec((0..4_u32, 0..8_u16), 0..4);
    (
        0..8_u16,
        0..8_u16,
        0..8_u16,
        named(),
        named(),
        proptest::option::of(0..8_u16),
        0..8_u16,
    )
        .prop_map(
            |(owner, group, other, users, groups, mask, unmark_freeing)| {
                let needs_mask = !users.is_empty() || !groups.is_empty();
                let mask = if needs_mask {
                    mask.or(Some(unmark_freeing))
                } else {
                    mask
                };
                Sketch {
                    owner,
                    group,
                    other,
                    users,
                    groups,
                    mask,
                }
            },
        )
}

fn callers() -> impl Strategy<Value = Caller> {
    (0..4_u32, 0..4_u32, vec(0..4_u32, 0..3))
        .prop_map(|(uid, gid, groups)| Caller::user(uid, gid).with_groups(&groups))
}

#[test]
fn every_rule_of_validity_is_enforced() {
    let minimal = [(OWNER, 6, 0), (GROUP_OBJ, 4, 0), (OTHER, 0, 0)];
    assert!(Acl::parse(&value(2, &minimal)).unwrap().is_some());
    let bad: &[&[Row]] = &[
        &minimal[..2],
        &minimal[1..],
        &[minimal[0], minimal[2]],
        &[minimal[1], minimal[0], minimal[2]],
        &[minimal[0], minimal[0], minimal[1], minimal[2]],
        &[minimal[0], minimal[1], minimal[1], minimal[2]],
        &[minimal[0], minimal[1], minimal[2], minimal[2]],
        &[minimal[0], (USER, 4, 5), minimal[1], minimal[2]],
        &[minimal[0], minimal[1], (GROUP, 4, 5), minimal[2]],
        &[
            minimal[0],
            minimal[1],
            (MASK, 4, 0),
            (MASK, 4, 0),
            minimal[2],
        ],
        &[minimal[0], minimal[1], minimal[2], (MASK, 4, 0)],
        &[
            minimal[0],
            minimal[1],
            (USER, 4, 5),
            (MASK, 4, 0),
            minimal[2],
        ],
        &[
            minimal[0],
            (GROUP, 4, 5),
            minimal[1],
            (MASK, 4, 0),
            minimal[2],
        ],
        &[
            minimal[0],
            (USER, 4, u32::MAX),
            minimal[1],
            (MASK, 4, 0),
            minimal[2],
        ],
        &[
            minimal[0],
            minimal[1],
            (GROUP, 4, u32::MAX),
            (MASK, 4, 0),
            minimal[2],
        ],
        &[(OWNER, 8, 0), minimal[1], minimal[2]],
        &[(OWNER, 0x104, 0), minimal[1], minimal[2]],
        &[minimal[0], minimal[1], (0, 0, 0), minimal[2]],
        &[minimal[0], minimal[1], (0x101, 0, 0), minimal[2]],
        &[minimal[0], minimal[1], minimal[2], (0x40, 0, 0)],
    ];
    for rows in bad {
        assert_eq!(Acl::parse(&value(2, rows)), Err(Errno::EINVAL), "{rows:?}");
    }
}

#[test]
fn what_linux_accepts_is_accepted() {
    let twice = [
        (OWNER, 7, 9),
        (USER, 1, 5),
        (USER, 2, 5),
        (USER, 4, 3),
        (GROUP_OBJ, 0, 0),
    ];
    let tail = [(GROUP, 1, 9), (GROUP, 1, 9), (MASK, 7, 1), (OTHER, 0, 3)];
    let acl = acl(&[&twice[..], &tail[..]].concat());
    let who = Caller::user(5, 100);
    assert!(check(&acl, &who, 0, 0, Access::EXEC));
    assert!(!check(&acl, &who, 0, 0, Access::WRITE));
}

#[test]
fn the_header_is_judged_before_the_entries() {
    assert_eq!(Acl::parse(b""), Err(Errno::EINVAL));
    assert_eq!(Acl::parse(b"\x02\0\0"), Err(Errno::EINVAL));
    assert_eq!(Acl::parse(b"\x01\0\0\0junk"), Err(Errno::EOPNOTSUPP));
    assert_eq!(Acl::parse(b"\x02\0\0\0"), Ok(None));
    assert_eq!(Acl::parse(b"\x02\0\0\0\x01\0\0"), Err(Errno::EINVAL));
    assert_eq!(Acl::parse(&vec![2; (1 << 16) + 1]), Err(Errno::E2BIG));
    let mut rows = vec![(OWNER, 6, 0)];
    rows.extend((0..8187).map(|id| (USER, 6, id)));
    rows.extend([(GROUP_OBJ, 4, 0), (MASK, 7, 0), (OTHER, 0, 0)]);
    assert!(Acl::parse(&value(2, &rows)).unwrap().is_some());
}

#[test]
fn a_value_has_the_bytes_that_the_kernel_writes() {
    let acl = acl(&[
        (OWNER, 6, 3),
        (USER, 5, 0x0102),
        (GROUP_OBJ, 4, 3),
        (MASK, 7, 3),
        (OTHER, 0, 3),
    ]);
    let none = [0xff; 4];
    let mut expected = vec![2, 0, 0, 0, 1, 0, 6, 0];
    expected.extend(none);
    expected.extend([2, 0, 5, 0, 2, 1, 0, 0, 4, 0, 4, 0]);
    expected.extend(none);
    expected.extend([0x10, 0, 7, 0]);
    expected.extend(none);
    expected.extend([0x20, 0, 0, 0]);
    expected.extend(none);
    assert_eq!(*to_xattr(&acl), *expected);
}

#[test]
fn capabilities_open_what_linux_lets_them_open() {
    use FileType::{Directory, Regular};
    let (read, write, exec) = (Access::READ, Access::WRITE, Access::EXEC);
    let (search, all) = (Caps::DAC_READ_SEARCH, Caps::DAC_OVERRIDE);
    let table = [
        (search, Regular, 0o000, read, true),
        (search, Regular, 0o000, write, false),
        (search, Regular, 0o111, read | exec, false),
        (search, Regular, 0o100, exec, false),
        (search, Regular, 0o100, read | exec, false),
        (search, Directory, 0o000, read | exec, true),
        (search, Directory, 0o000, exec, true),
        (search, Directory, 0o000, write | exec, false),
        (all, Regular, 0o000, read | write, true),
        (all, Regular, 0o000, exec, false),
        (all, Regular, 0o666, exec, false),
        (all, Regular, 0o100, exec | write, true),
        (all, Directory, 0o000, read | write | exec, true),
        (Caps::FOWNER, Regular, 0o000, read, false),
    ];
    for (caps, kind, perm, want, expected) in table {
        let who = Caller {
            caps,
            ..Caller::user(1000, 1000)
        };
        assert_eq!(
            permission(&who, 0, 0, perm, None, kind, want),
            expected,
            "{perm:o} {want:?}"
        );
    }
    let checked = Caller {
        checked: true,
        ..Caller::user(1000, 1000)
    };
    assert!(permission(&checked, 0, 0, 0, None, Regular, exec));
}

#[test]
fn an_empty_mask_gives_the_named_the_rights_of_others() {
    let acl = acl(&[
        (OWNER, 7, 0),
        (USER, 7, 5),
        (GROUP_OBJ, 7, 0),
        (MASK, 0, 0),
        (OTHER, 4, 0),
    ]);
    let who = Caller::user(5, 100);
    let ask = |want| {
        permission(
            &who,
            0,
            0,
            mode_of(&acl),
            Some(&acl),
            FileType::Regular,
            want,
        )
    };
    assert!(ask(Access::READ));
    assert!(!ask(Access::WRITE));
    assert!(!check(&acl, &who, 0, 0, Access::READ));
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in vec(any::<u8>(), 0..64), versioned: bool) {
        let mut bytes = bytes;
        if versioned {
            bytes.splice(0..0, 2_u32.to_le_bytes());
        }
        if let Ok(Some(acl)) = Acl::parse(&bytes) {
            prop_assert_eq!(to_xattr(&acl).len(), bytes.len());
        }
    }

    #[test]
    fn shuffled_entries_are_valid_only_by_the_state_machine(
        tags in vec(0..6_u32, 1..9),
    ) {
        let rows: Vec<Row> = tags.iter().map(|tag| (1 << tag, 4, 1)).collect();
        let valid = Acl::parse(&value(2, &rows)).is_ok();
        let text: String = tags.iter().map(|&tag| b"ouGgmt"[tag as usize] as char).collect();
        // The grammar: o u* G g* m? t, where a name demands the mask.
        let rest = text.strip_prefix('o').map(|rest| rest.trim_start_matches('u'));
        let rest = rest.and_then(|rest| rest.strip_prefix('G'));
        let rest = rest.map(|rest| rest.trim_start_matches('g'));
        let named = text.contains(['u', 'g']);
        prop_assert_eq!(valid, rest == Some("mt") || rest == Some("t") && !named);
    }

    #[test]
    fn a_value_survives_the_round_trip(sketch in sketches()) {
        let acl = acl(&sketch.rows());
        prop_assert_eq!(Acl::parse(&to_xattr(&acl)), Ok(Some(acl)));
    }

    #[test]
    fn the_check_agrees_with_the_manual(
        sketch in sketches(), who in callers(), uid in 0..4_u32, gid in 0..4_u32, want in 0..8_u8,
    ) {
        let acl = acl(&sketch.rows());
        let expected = sketch.grants(&who, uid, gid, u16::from(want));
        prop_assert_eq!(check(&acl, &who, uid, gid, access(want)), expected);
        let perm = mode_of(&acl);
        let granted =
            permission(&who, uid, gid, perm, Some(&acl), FileType::Regular, access(want));
        if perm & 0o070 != 0 {
            prop_assert_eq!(granted, expected);
        }
        // An ACL that says no more than the mode decides as the mode does.
        if let Some(mode) = equivalent_mode(&acl) {
            let bare = permission(&who, uid, gid, mode, None, FileType::Regular, access(want));
            prop_assert_eq!(bare, expected);
        }
    }

    #[test]
    fn the_mode_shows_what_chmod_set(sketch in sketches(), perm in 0..0o10000_u16) {
        let mut acl = acl(&sketch.rows());
        chmod(&mut acl, perm);
        prop_assert_eq!(mode_of(&acl), perm & 0o777);
        let mut expected = Sketch { owner: perm >> 6 & 7, other: perm & 7, ..sketch };
        match &mut expected.mask {
            Some(mask) => *mask = perm >> 3 & 7,
            None => expected.group = perm >> 3 & 7,
        }
        prop_assert_eq!(acl, self::acl(&expected.rows()));
    }

    #[test]
    fn a_child_gets_no_more_than_asked_and_no_more_than_the_default(
        sketch in sketches(), perm in 0..0o10000_u16,
    ) {
        let default = acl(&sketch.rows());
        let (child, child_perm) = create(&default, perm);
        let mut expected = sketch.clone();
        expected.owner &= perm >> 6;
        expected.other &= perm;
        match &mut expected.mask {
            Some(mask) => *mask &= perm >> 3,
            None => expected.group &= perm >> 3,
        }
        let full = acl(&expected.rows());
        prop_assert_eq!(child_perm, perm & 0o7000 | mode_of(&full));
        let minimal = equivalent_mode(&default).is_some();
        prop_assert_eq!(child, (!minimal).then_some(full));
    }
}
