use super::*;

fn read(layers: &[&Layer], below: &[u8], offset: usize, len: usize) -> Vec<u8> {
    let mut buf: Vec<u8> = below.iter().copied().skip(offset).take(len).collect();
    buf.resize(len, 0);
    for layer in layers {
        layer.lay_over(offset as u64, &mut buf);
    }
    buf
}

#[test]
fn bytes_lie_over_older_ones_and_holes_hide_them() {
    let below = vec![9; 5 * LEN];
    let mut layer = Layer::default();
    layer.write(10, &[1; 5]);
    layer.set(1, 3, Kind::Hole);
    layer.write(2 * PAGE + 4, &[2; 4]);
    assert!(layer.page(2).is_some_and(Page::is_whole));
    layer.truncate(4 * PAGE + 100);
    layer.write(4 * PAGE + 200, &[3]);
    let mut expected = below.clone();
    expected[10..15].fill(1);
    expected[LEN..3 * LEN].fill(0);
    expected[2 * LEN + 4..2 * LEN + 8].fill(2);
    expected[4 * LEN + 100..].fill(0);
    expected[4 * LEN + 200] = 3;
    assert_eq!(read(&[&layer], &below, 0, 5 * LEN), expected);
    assert_eq!(
        read(&[&layer], &below, 7, 3 * LEN),
        expected[7..3 * LEN + 7]
    );
    assert!(layer.needs_below(0) && !layer.needs_below(1) && layer.needs_below(3));
    assert!(layer.needs_below(4) && !layer.needs_below(5));
}

#[test]
fn space_keeps_what_is_there() {
    let mut layer = Layer::default();
    layer.write(PAGE, &[1]);
    layer.set(2, 3, Kind::Hole);
    layer.truncate(8 * PAGE);
    layer.set(0, 10, Kind::Space);
    let says: Vec<Says> = (0..11).map(|page| layer.says(page).0).collect();
    let (space, zeros) = (Says::Run(Kind::Space), Says::Run(Kind::Zeros));
    assert_eq!(says[..4], [space, Says::Page, zeros, space]);
    assert_eq!(says[7..], [space, zeros, zeros, Says::Run(Kind::Hole)]);
    layer.truncate(5);
    assert!(layer.says(0).0 == space && layer.page_count() == 0);
    assert_eq!(layer.says(1), (Says::Run(Kind::Hole), u64::MAX));
}

/// A step of the generator SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

fn change(layer: &mut Layer, seed: &mut u64) {
    let (from, len) = (random(seed) % (8 * PAGE), random(seed) % (3 * PAGE));
    let kinds = [Kind::Hole, Kind::Zeros, Kind::Space];
    match random(seed) % 6 {
        0 => layer.truncate(from),
        1 | 2 => layer.set(from / PAGE, (from + len) / PAGE, kinds[(len % 3) as usize]),
        _ => layer.write(from, &vec![random(seed) as u8; len as usize]),
    }
}

#[test]
fn a_merged_layer_is_both() {
    for seed in 0..500 {
        let state = &mut (seed * 977);
        let below: Vec<u8> = (0..8 * LEN).map(|_| random(state) as u8).collect();
        let (mut first, mut second) = (Layer::default(), Layer::default());
        for _ in 0..random(state) % 6 {
            change(&mut first, state);
        }
        for _ in 0..random(state) % 6 {
            change(&mut second, state);
        }
        let expected = read(&[&first, &second], &below, 0, 12 * LEN);
        let mut both = first.clone();
        both.merge(second.clone());
        assert_eq!(read(&[&both], &below, 0, 12 * LEN), expected, "seed {seed}");
        for page in 0..12 {
            let upper = match second.says(page).0 {
                Says::Below => first.says(page).0,
                other => other,
            };
            let has_space = |says| !matches!(says, Says::Below | Says::Run(Kind::Hole));
            let says = both.says(page).0;
            assert_eq!(
                has_space(says),
                has_space(upper),
                "seed {seed}, page {page}"
            );
            if !both.needs_below(page) {
                let other: Vec<u8> = below.iter().map(|byte| !byte).collect();
                let at = (page * PAGE) as usize;
                let bytes = read(&[&both], &other, at, LEN);
                assert_eq!(bytes, expected[at..at + LEN], "seed {seed}, page {page}");
            }
        }
    }
}
