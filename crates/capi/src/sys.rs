//! Pointers of C, turned into safe types.
//!
//! `border!` makes a function of C of each function in a table: its arguments become what
//! [`Argument::Safe`] says before its body sees them. A null pointer is `EINVAL` at the first use.
//! All other pointers are taken on trust: `holdfast.h` says what each one must lead to.

#![expect(unsafe_code, reason = "the arguments of C are raw pointers")]

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr::without_provenance_mut;
use std::slice;
use std::sync::Arc;

use crate::failure::{Failure, Result};
use crate::grow::{self, Growing};
use crate::objects::{self, Kind, Listing, Opened, Place};
use crate::types::{hf_dir, hf_file, hf_fs, hf_timespec};

/// A type that a function of C takes.
pub(crate) trait Argument {
    /// What the body of the function sees.
    type Safe<'a>;

    /// # Safety
    /// A pointer is null or leads to what `holdfast.h` says, which lives during `'a`. Nothing else
    /// uses what the function writes during `'a`.
    unsafe fn enter<'a>(self) -> Self::Safe<'a>;
}

/// Makes the functions of C from a table of safe ones.
macro_rules! border {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $answer:ty $body:block
    )*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// Each pointer is null or leads to what is said here.
        // SAFETY: no other library has names that begin with `hf_`.
        #[expect(unsafe_code, reason = "the border to C")]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) -> $answer {
            $(
                // SAFETY: the caller of this function promises the same until it returns.
                let $argument = unsafe { $crate::sys::Argument::enter($argument) };
            )*
            $crate::border::run(stringify!($name), move || $body)
        }
    )*};
}
pub(crate) use border;

macro_rules! plain {
    ($($type:ty)*) => {$(
        impl Argument for $type {
            type Safe<'a> = Self;

            unsafe fn enter<'a>(self) -> Self::Safe<'a> {
                self
            }
        }
    )*};
}

plain! { u32 u64 i64 c_int usize }

pub(crate) fn null(what: &str) -> Failure {
    Failure::invalid(format!("{what} is NULL; pass a pointer"))
}

/// A handle: its pointer is a number of the table of objects.
pub(crate) struct Handle<K> {
    number: usize,
    kind: PhantomData<K>,
}

impl<K: Kind> Handle<K> {
    pub(crate) fn get(&self) -> Result<Arc<K>> {
        objects::find(self.number)
    }

    /// Ends the handle, also of a file system that is dead.
    pub(crate) fn take(&self) -> Result<Arc<K>> {
        objects::remove(self.number)
    }
}

/// Where a new handle goes.
pub(crate) struct NewHandle<'a, C, K> {
    place: Option<&'a mut *mut C>,
    kind: PhantomData<K>,
}

impl<C, K: Kind> NewHandle<'_, C, K> {
    /// Puts the handle of what `make` makes, which is not run without a place for it.
    pub(crate) fn put(self, make: impl FnOnce() -> Result<K>) -> Result<()> {
        let place = self.place.ok_or_else(|| null("the place for the handle"))?;
        *place = without_provenance_mut(objects::insert(make()?)?);
        Ok(())
    }
}

macro_rules! handles {
    ($($c:ident is $kind:ident),*) => {$(
        impl Argument for *mut $c {
            type Safe<'a> = Handle<$kind>;

            unsafe fn enter<'a>(self) -> Self::Safe<'a> {
                Handle { number: self.addr(), kind: PhantomData }
            }
        }

        impl Argument for *mut *mut $c {
            type Safe<'a> = NewHandle<'a, $c, $kind>;

            unsafe fn enter<'a>(self) -> Self::Safe<'a> {
                // SAFETY: the caller promises a pointer to one handle, or null.
                let place = unsafe { self.as_mut() };
                NewHandle { place, kind: PhantomData }
            }
        }
    )*};
}

handles! { hf_fs is Place, hf_file is Opened, hf_dir is Listing }

/// A string of C, or null.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a>(Option<&'a CStr>);

impl<'a> Text<'a> {
    /// # Safety
    /// The pointer is null or leads to a string that lives during `'a`.
    unsafe fn new(pointer: *const c_char) -> Self {
        // SAFETY: the caller promises a string, and null is not read.
        let text = (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) });
        Self(text)
    }

    pub(crate) fn bytes(self) -> Result<&'a OsStr> {
        let text = self.0.ok_or_else(|| null("a string"))?;
        Ok(OsStr::from_bytes(text.to_bytes()))
    }

    pub(crate) fn path(self) -> Result<&'a Path> {
        Ok(Path::new(self.bytes()?))
    }
}

impl Argument for *const c_char {
    type Safe<'a> = Text<'a>;

    unsafe fn enter<'a>(self) -> Self::Safe<'a> {
        // SAFETY: as this function's caller promises.
        unsafe { Text::new(self) }
    }
}

/// Many values of one type for the library to read, or null. Made by `enter`.
pub(crate) struct Items<'a, T> {
    first: *const T,
    lives: PhantomData<&'a T>,
}

impl<'a, T> Items<'a, T> {
    fn new(first: *const T) -> Self {
        let lives = PhantomData;
        Self { first, lives }
    }

    /// `count` values. Null stands for none.
    pub(crate) fn slice(self, count: usize) -> Result<&'a [T]> {
        check_length::<T>(self.first.is_null(), count)?;
        if count == 0 {
            return Ok(&[]);
        }
        if !self.first.is_aligned() {
            return Err(Failure::invalid("an array is not aligned; align it"));
        }
        // SAFETY: the maker of this promised values during `'a`; they are aligned, and their bytes
        // have a length.
        Ok(unsafe { slice::from_raw_parts(self.first, count) })
    }
}

impl<'a> Items<'a, *const c_char> {
    /// `count` strings.
    pub(crate) fn texts(self, count: usize) -> Result<impl Iterator<Item = Text<'a>>> {
        let pointers = self.slice(count)?.iter();
        // SAFETY: the maker of this promised that each pointer leads to a string or is null.
        Ok(pointers.map(|&pointer| unsafe { Text::new(pointer) }))
    }
}

impl<'a> Items<'a, hf_timespec> {
    /// The two times of utimensat(2); null stands for now.
    pub(crate) fn times(self) -> Result<Option<&'a [hf_timespec]>> {
        match self.first.is_null() {
            true => Ok(None),
            false => self.slice(2).map(Some),
        }
    }
}

macro_rules! items {
    ($($type:ty),*) => {$(
        impl Argument for *const $type {
            type Safe<'a> = Items<'a, $type>;

            unsafe fn enter<'a>(self) -> Self::Safe<'a> {
                Items::new(self)
            }
        }
    )*};
}

items! { u32, hf_timespec, *const c_char }

/// Bytes for the library to read, or null.
impl Argument for *const c_void {
    type Safe<'a> = Items<'a, u8>;

    unsafe fn enter<'a>(self) -> Self::Safe<'a> {
        Items::new(self.cast())
    }
}

/// Memory for the library to write, or null. Made by `enter`.
pub(crate) struct Buffer<'a> {
    first: *mut u8,
    lives: PhantomData<&'a mut u8>,
}

impl<'a> Buffer<'a> {
    fn new(first: *mut u8) -> Self {
        let lives = PhantomData;
        Self { first, lives }
    }

    pub(crate) fn bytes(self, len: usize) -> Result<&'a mut [u8]> {
        check_length::<u8>(self.first.is_null(), len)?;
        if len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: the maker of this promised so much memory, for this alone during `'a`. It is the
        // caller's, so each byte has a value.
        Ok(unsafe { slice::from_raw_parts_mut(self.first, len) })
    }
}

macro_rules! buffers {
    ($($type:ty)*) => {$(
        impl Argument for *mut $type {
            type Safe<'a> = Buffer<'a>;

            unsafe fn enter<'a>(self) -> Self::Safe<'a> {
                Buffer::new(self.cast())
            }
        }
    )*};
}

buffers! { c_void c_char }

/// A number that the library reads and writes, or null.
impl Argument for *mut u64 {
    type Safe<'a> = Option<&'a mut u64>;

    unsafe fn enter<'a>(self) -> Self::Safe<'a> {
        // SAFETY: the caller promises a number, or null.
        unsafe { self.as_mut() }
    }
}

/// Structs that begin with their size, or null. Made by `enter`.
pub(crate) struct Structs<'a, T> {
    first: *mut u8,
    lives: PhantomData<&'a mut T>,
}

impl<'a, T: Growing> Structs<'a, T> {
    pub(crate) fn is_null(&self) -> bool {
        self.first.is_null()
    }

    /// The size that the caller set in the first one.
    fn size(&self) -> Result<usize> {
        if self.first.is_null() {
            return Err(null(&format!("struct {}", T::NAME)));
        }
        // SAFETY: the maker of this promised a struct, which begins with its size.
        grow::check_size::<T>(unsafe { self.first.cast::<u32>().read_unaligned() })
    }

    /// What the caller set; null stands for zeros.
    pub(crate) fn read(self) -> Result<T> {
        if self.first.is_null() {
            return Ok(T::new_zeroed());
        }
        let size = self.size()?;
        grow::read(Items::new(self.first.cast_const()).slice(size)?)
    }

    /// The bytes of one struct, to be filled by [`grow::write`].
    pub(crate) fn one(self) -> Result<&'a mut [u8]> {
        let size = self.size()?;
        Buffer::new(self.first).bytes(size)
    }

    /// Fills one struct.
    pub(crate) fn put(self, value: impl Into<T>) -> Result<()> {
        grow::write(self.one()?, &value.into());
        Ok(())
    }

    /// The bytes of each of `count` structs, all of the size of the first one.
    pub(crate) fn array(self, count: usize) -> Result<slice::ChunksExactMut<'a, u8>> {
        let size = self.size()?;
        let bytes = Buffer::new(self.first).bytes(size.saturating_mul(count))?;
        Ok(bytes.chunks_exact_mut(size))
    }
}

impl<T: Growing> Argument for *mut T {
    type Safe<'a> = Structs<'a, T>;

    unsafe fn enter<'a>(self) -> Self::Safe<'a> {
        Structs {
            first: self.cast(),
            lives: PhantomData,
        }
    }
}

impl<T: Growing> Argument for *const T {
    type Safe<'a> = Structs<'a, T>;

    unsafe fn enter<'a>(self) -> Self::Safe<'a> {
        Structs {
            first: self.cast_mut().cast(),
            lives: PhantomData,
        }
    }
}

/// Checks a number of values behind a pointer.
///
/// # Errors
/// `EINVAL` for null with a length, and for a length that no memory has.
fn check_length<T>(is_null: bool, count: usize) -> Result<()> {
    if is_null && count > 0 {
        return Err(null("a buffer with a length"));
    }
    if count
        .checked_mul(size_of::<T>())
        .is_none_or(|bytes| isize::try_from(bytes).is_err())
    {
        let reason =
            format!("a length of {count} is more than memory has; pass that of the buffer");
        return Err(Failure::invalid(reason));
    }
    Ok(())
}
