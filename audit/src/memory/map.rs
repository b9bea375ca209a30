//! Which file an address of this process comes from.

use anyhow::{Context, Result};
use std::fs;

/// The files that are mapped, and where.
pub(crate) struct Map {
    /// Each file's path and the address where it begins.
    pub(crate) modules: Vec<(String, u64)>,
    /// Start, end, module.
    ranges: Vec<(u64, u64, usize)>,
}

impl Map {
    /// The map of this moment.
    ///
    /// # Errors
    /// When the system does not show it.
    pub(crate) fn now() -> Result<Self> {
        let text = fs::read_to_string("/proc/self/maps").context("/proc/self/maps")?;
        Self::parse(&text).context("/proc/self/maps has another form")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut map = Self {
            modules: Vec::new(),
            ranges: Vec::new(),
        };
        // The pages behind a program's last mapping are its zeroed statics.
        let mut last: Option<(u64, usize)> = None;
        for line in text.lines() {
            let (start, rest) = line.split_once('-')?;
            let (end, rest) = rest.split_once(' ')?;
            let start = u64::from_str_radix(start, 16).ok()?;
            let end = u64::from_str_radix(end, 16).ok()?;
            // Only the path can hold these; it may hold blanks as well.
            let path = rest.find(['/', '[']).map_or("", |at| &rest[at..]);
            let module = if path.starts_with('/') || path == "[vdso]" {
                let known = map.modules.iter().position(|(name, _)| name == path);
                Some(known.unwrap_or_else(|| {
                    map.modules.push((path.to_owned(), start));
                    map.modules.len() - 1
                }))
            } else {
                last.filter(|&(behind, _)| path.is_empty() && behind == start)
                    .map(|(_, module)| module)
            };
            last = module.map(|module| (end, module));
            if let Some(module) = module {
                map.ranges.push((start, end, module));
            }
        }
        Some(map)
    }

    /// The module at an address, and the address within it; `None` for the heap and stacks.
    pub(crate) fn locate(&self, address: u64) -> Option<(usize, u64)> {
        let &(_, _, module) = self
            .ranges
            .iter()
            .find(|&&(start, end, _)| (start..end).contains(&address))?;
        Some((module, address - self.modules[module].1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
5000-6000 r--p 00000000 fe:00 1 /bin/tool
6000-8000 r-xp 00001000 fe:00 1 /bin/tool
8000-9000 rw-p 00003000 fe:00 1 /bin/tool
9000-a000 rw-p 00000000 00:00 0
b000-c000 rw-p 00000000 00:00 0 [heap]
d000-e000 r-xp 00000000 00:00 0 [vdso]
";

    #[test]
    fn statics_belong_to_their_program_and_the_heap_to_none() {
        let map = Map::parse(TEXT).expect("well formed");
        assert_eq!(map.locate(0x6123), Some((0, 0x1123)));
        assert_eq!(map.locate(0x9008), Some((0, 0x4008)));
        assert_eq!(map.locate(0xb000), None);
        assert_eq!(map.locate(0xd010), Some((1, 0x10)));
    }

    #[test]
    fn this_program_is_in_its_map() {
        static HERE: u8 = 1;
        let map = Map::now().expect("Linux shows it");
        let (module, _) = map
            .locate(std::ptr::from_ref(&HERE) as u64)
            .expect("mapped");
        let program = std::env::current_exe().expect("known");
        assert_eq!(map.modules[module].0, program.to_string_lossy());
    }
}
