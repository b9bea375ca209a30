//! The start of the content of files.

use super::blocks::Blocks;
use super::clock::Clock;
use super::dirty::Dirty;
use super::disk::Disk;
use super::files::Files;
use super::limits::Limits;
use super::notices::Notices;
use super::options::FileOptions;
use super::readahead::Readahead;
use super::table::Table;
use crate::meta::Meta;
use crate::numbers::Numbers;
use crate::objects::Objects;
use std::io;
use std::sync::{Arc, OnceLock};

impl Files {
    /// No files. Starts the thread of writeback.
    ///
    /// # Errors
    /// Those of starting a thread, and of the directory of the cache on disk.
    pub(crate) fn new(
        meta: Arc<dyn Meta>,
        objects: Arc<dyn Objects>,
        numbers: Arc<Numbers>,
        options: FileOptions,
    ) -> io::Result<Arc<Self>> {
        let settings = meta.settings();
        let limits = Limits::new(options.dirty);
        let disk = match &options.cache {
            Some(dir) => {
                let uuid = settings.uuid.iter().map(|byte| format!("{byte:02x}"));
                let name = format!("{}-{}", uuid.collect::<String>(), settings.incarnation);
                Some(Disk::open(&dir.join(name), options.cache_size)?)
            }
            None => None,
        };
        let blocks = Arc::new(Blocks::new(
            Arc::clone(&objects),
            disk.clone(),
            limits.blocks(),
        ));
        let files = Arc::new(Self {
            meta,
            objects,
            numbers,
            options,
            body_limit: settings.staged.max(settings.inline),
            clock: Clock::default(),
            table: Table::new(),
            limits,
            readahead: Readahead::new(Arc::clone(&blocks)),
            blocks,
            disk,
            dirty: Dirty::new(),
            notices: Notices::default(),
            joined: OnceLock::new(),
        });
        files.start_writeback()?;
        Ok(files)
    }
}
