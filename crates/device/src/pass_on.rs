//! Devices over other devices.

/// In an `impl BlockDevice` of a device over another one, forwards calls: `pass_on!(below: size,
/// flush)` forwards these to the field `below`.
#[macro_export]
macro_rules! pass_on {
    ($below:ident: $($call:ident),+ $(,)?) => {
        $($crate::pass_on!(@$call $below);)+
    };
    (@describe $below:ident) => {
        fn describe(&self) -> String {
            self.$below.describe()
        }
    };
    (@size $below:ident) => {
        fn size(&self) -> u64 {
            self.$below.size()
        }
    };
    (@alignment $below:ident) => {
        fn alignment(&self) -> u64 {
            self.$below.alignment()
        }
    };
    (@cache_identity $below:ident) => {
        fn cache_identity(&self) -> Option<u64> {
            self.$below.cache_identity()
        }
    };
    (@room $below:ident) => {
        fn room(&self) -> Option<$crate::Room> {
            self.$below.room()
        }
    };
    (@read $below:ident) => {
        fn read(&self, offset: u64, buf: &mut [u8]) -> $crate::Result<()> {
            self.$below.read(offset, buf)
        }
    };
    (@read_batch $below:ident) => {
        fn read_batch(&self, requests: &mut [$crate::ReadRequest<'_>]) -> $crate::Result<()> {
            self.$below.read_batch(requests)
        }
    };
    (@flush $below:ident) => {
        fn flush(&self) -> $crate::Result<()> {
            self.$below.flush()
        }
    };
    (@discard $below:ident) => {
        fn discard(&self, offset: u64, len: u64) -> $crate::Result<bool> {
            self.$below.discard(offset, len)
        }
    };
    (@resize $below:ident) => {
        fn resize(&self, size: u64) -> $crate::Result<()> {
            self.$below.resize(size)
        }
    };
}
