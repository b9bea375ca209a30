//! A window of a directory's names, merged from several layers.

use std::collections::BTreeMap;

use holdfast_core::store::EntryRecord;

/// Names of consecutive cookies.
pub(in crate::store) struct Window {
    pub(in crate::store) names: Vec<EntryRecord>,
    /// There may be more after this cookie.
    pub(in crate::store) upto: Option<u64>,
}

/// The layers' names by cookie.
#[derive(Default)]
pub(in crate::store) struct LayeredNames {
    /// The newest layer's name, or none.
    places: BTreeMap<u64, Option<EntryRecord>>,
    /// Not all layers were asked beyond this.
    pub(in crate::store) upto: Option<u64>,
}

impl LayeredNames {
    /// Adds the next older layer's names, in the order of cookies. If there are `max`, there may be
    /// more.
    pub(in crate::store) fn take(
        &mut self,
        layer: impl Iterator<Item = (u64, Option<EntryRecord>)>,
        max: usize,
    ) {
        let mut count = 0;
        let mut last = 0;
        for (cookie, entry) in layer {
            self.places.entry(cookie).or_insert(entry);
            count += 1;
            last = cookie;
        }
        if count == max {
            self.upto = Some(self.upto.map_or(last, |upto| upto.min(last)));
        }
    }

    /// The names up to where all layers are known, at most `max`.
    pub(in crate::store) fn window(self, max: usize) -> Window {
        let mut upto = self.upto;
        let known = |cookie: &u64| upto.is_none_or(|upto| *cookie <= upto);
        let names: Vec<EntryRecord> = self
            .places
            .into_iter()
            .take_while(|(cookie, _)| known(cookie))
            .filter_map(|(_, entry)| entry)
            .take(max)
            .collect();
        if names.len() == max {
            upto = names.last().map(|entry| entry.cookie);
        }
        Window { names, upto }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{FileType, Ino};

    fn entry(cookie: u64, ino: u64) -> (u64, Option<EntryRecord>) {
        let record = EntryRecord {
            name: [b'n', cookie as u8].into(),
            cookie,
            ino: Ino(ino),
            kind: FileType::Regular,
        };
        (cookie, Some(record))
    }

    fn seen(window: &Window) -> Vec<(u64, u64)> {
        let names = window.names.iter();
        names.map(|entry| (entry.cookie, entry.ino.0)).collect()
    }

    #[test]
    fn newer_layers_hide_older_ones_as_far_as_all_were_asked() {
        let mut places = LayeredNames::default();
        places.take([entry(3, 30), (5, None), entry(8, 80)].into_iter(), 3);
        places.take([entry(3, 31), entry(4, 41), entry(5, 51)].into_iter(), 3);
        assert_eq!(places.upto, Some(5));
        let window = places.window(3);
        assert_eq!(seen(&window), [(3, 30), (4, 41)]);
        assert_eq!(window.upto, Some(5), "the eighth is for the next window");
    }

    #[test]
    fn a_window_that_is_not_full_is_the_end() {
        let mut places = LayeredNames::default();
        places.take([entry(3, 30)].into_iter(), 9);
        places.take([(3, None), entry(4, 40)].into_iter(), 9);
        let window = places.window(9);
        assert_eq!(seen(&window), [(3, 30), (4, 40)]);
        assert_eq!(window.upto, None);
    }

    #[test]
    fn a_full_window_ends_at_its_last_name() {
        let mut places = LayeredNames::default();
        places.take((1..=9).map(|cookie| entry(cookie, cookie)), 20);
        let window = places.window(4);
        assert_eq!((window.names.len(), window.upto), (4, Some(4)));
    }
}
