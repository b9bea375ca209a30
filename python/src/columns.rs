//! Attributes as columns, by the Arrow C data interface.
//!
//! The row of an inode that could not be read has nulls. A time after 2262 is null, since Arrow's
//! nanoseconds end there.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder as _, BinaryBuilder, Int8Builder, StringBuilder, TimestampNanosecondBuilder,
    UInt32Builder, UInt64Builder,
};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use holdfast::{Metadata, NodeKind};

use crate::stat::nanoseconds;

/// Rows of a batch at most.
const BATCH: usize = 65_536;
/// Bytes of a batch's paths at most: their offsets have 31 bits.
const PATH_BYTES: usize = 1 << 28;

const UTC: &str = "UTC";

/// What the column `type` says, in the order of `type_number`.
const TYPES: [&str; 7] = [
    "file",
    "directory",
    "symlink",
    "fifo",
    "socket",
    "block",
    "char",
];

/// What the column of paths holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathKind {
    Text,
    Bytes,
}

impl PathKind {
    pub(crate) fn of(word: &str) -> PyResult<Self> {
        match word {
            "str" => Ok(Self::Text),
            "bytes" => Ok(Self::Bytes),
            _ => {
                let text = format!("paths: \"str\" or \"bytes\", not {word:?}");
                Err(PyValueError::new_err(text))
            }
        }
    }
}

/// A table: batches of the same columns.
#[pyclass(frozen, module = "holdfast._holdfast")]
pub(crate) struct Columns {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Columns {
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    #[getter]
    fn column_names(&self) -> Vec<&str> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().as_str()).collect()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema).map_err(unexpected)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The batches as a stream; a schema that is asked for is left to the consumer's cast.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        let (rows, names) = (self.num_rows(), self.column_names().join(", "));
        format!("<Columns of {rows} rows: {names}>")
    }
}

/// The paths of a batch.
enum Paths {
    Text(StringBuilder),
    Bytes(BinaryBuilder),
}

impl Paths {
    fn new(kind: PathKind) -> Self {
        match kind {
            PathKind::Text => Self::Text(StringBuilder::new()),
            PathKind::Bytes => Self::Bytes(BinaryBuilder::new()),
        }
    }

    fn kind(&self) -> DataType {
        match self {
            Self::Text(_) => DataType::Utf8,
            Self::Bytes(_) => DataType::Binary,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Text(paths) => paths.values_slice().len(),
            Self::Bytes(paths) => paths.values_slice().len(),
        }
    }

    /// # Errors
    /// `ValueError` for a path that is not UTF-8 in a column of text.
    fn push(&mut self, path: Option<&[u8]>) -> PyResult<()> {
        match self {
            Self::Bytes(paths) => paths.append_option(path),
            Self::Text(paths) => {
                let text = path.map(std::str::from_utf8).transpose().map_err(|_| {
                    let path = String::from_utf8_lossy(path.unwrap_or_default());
                    PyValueError::new_err(format!(
                        "{path}: this path is not UTF-8; ask for paths=\"bytes\""
                    ))
                })?;
                paths.append_option(text);
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(paths) => Arc::new(paths.finish()),
            Self::Bytes(paths) => Arc::new(paths.finish()),
        }
    }
}

/// Rows in the making.
pub(crate) struct Rows {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    paths: Option<Paths>,
    ino: UInt64Builder,
    kind: Int8Builder,
    /// Mode, names, user, group.
    small: [UInt32Builder; 4],
    /// Size, blocks, device.
    large: [UInt64Builder; 3],
    /// Access, change of the content, change of the inode, creation.
    times: [TimestampNanosecondBuilder; 4],
}

const SMALL: [&str; 4] = ["mode", "nlink", "uid", "gid"];
const LARGE: [&str; 3] = ["size", "blocks", "rdev"];
const TIMES: [&str; 4] = ["atime", "mtime", "ctime", "birthtime"];

impl Rows {
    /// No rows yet, with a column of paths or without.
    pub(crate) fn new(paths: Option<PathKind>) -> Self {
        let paths = paths.map(Paths::new);
        let mut fields = Vec::new();
        if let Some(paths) = &paths {
            fields.push(Field::new("path", paths.kind(), true));
        }
        fields.push(Field::new("ino", DataType::UInt64, false));
        let word = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        fields.push(Field::new("type", word, false));
        let time = DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into()));
        fields.extend(SMALL.map(|name| Field::new(name, DataType::UInt32, true)));
        fields.extend(LARGE.map(|name| Field::new(name, DataType::UInt64, true)));
        fields.extend(TIMES.map(|name| Field::new(name, time.clone(), true)));
        Self {
            schema: Arc::new(Schema::new(fields)),
            batches: Vec::new(),
            paths,
            ino: UInt64Builder::new(),
            kind: Int8Builder::new(),
            small: Default::default(),
            large: Default::default(),
            times: [(); 4].map(|()| TimestampNanosecondBuilder::new().with_timezone(UTC)),
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// `ValueError` for a path that is not UTF-8 in a column of text.
    pub(crate) fn push(
        &mut self,
        path: Option<&[u8]>,
        ino: u64,
        kind: NodeKind,
        metadata: Option<&Metadata>,
    ) -> PyResult<()> {
        if let Some(paths) = &mut self.paths {
            paths.push(path)?;
        }
        self.ino.append_value(ino);
        self.kind.append_value(type_number(kind));
        let nlink = |it: &Metadata| u32::try_from(it.nlink()).unwrap_or(u32::MAX);
        let small = metadata.map(|it| [it.mode(), nlink(it), it.uid(), it.gid()]);
        let large = metadata.map(|it| [it.len(), it.blocks(), it.rdev()]);
        let times = metadata.map(|it| {
            let attr = it.attr();
            [attr.atime, attr.mtime, attr.ctime, attr.btime]
        });
        for (index, column) in self.small.iter_mut().enumerate() {
            column.append_option(small.map(|values| values[index]));
        }
        for (index, column) in self.large.iter_mut().enumerate() {
            column.append_option(large.map(|values| values[index]));
        }
        for (index, column) in self.times.iter_mut().enumerate() {
            let time = times.and_then(|values| {
                let time = values[index];
                i64::try_from(nanoseconds((time.secs(), time.subsec_nanos().into()))).ok()
            });
            column.append_option(time);
        }
        let bytes = self.paths.as_ref().map_or(0, Paths::len);
        if self.ino.len() >= BATCH || bytes >= PATH_BYTES {
            self.end_batch()?;
        }
        Ok(())
    }

    fn end_batch(&mut self) -> PyResult<()> {
        let mut columns: Vec<ArrayRef> = Vec::new();
        if let Some(paths) = &mut self.paths {
            columns.push(paths.finish());
        }
        columns.push(Arc::new(self.ino.finish()));
        let words = Arc::new(StringArray::from_iter_values(TYPES));
        let kinds = DictionaryArray::<Int8Type>::try_new(self.kind.finish(), words);
        columns.push(Arc::new(kinds.map_err(unexpected)?));
        let small = self.small.iter_mut();
        columns.extend(small.map(|column| Arc::new(column.finish()) as ArrayRef));
        let large = self.large.iter_mut();
        columns.extend(large.map(|column| Arc::new(column.finish()) as ArrayRef));
        let times = self.times.iter_mut();
        columns.extend(times.map(|column| Arc::new(column.finish()) as ArrayRef));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(unexpected)?;
        self.batches.push(batch);
        Ok(())
    }

    /// The table of all rows.
    ///
    /// # Errors
    /// `RuntimeError` for columns that do not fit together, which is a mistake of this module.
    pub(crate) fn finish(mut self) -> PyResult<Columns> {
        self.end_batch()?;
        Ok(Columns {
            schema: self.schema,
            batches: self.batches,
        })
    }
}

fn type_number(kind: NodeKind) -> i8 {
    match kind {
        NodeKind::Regular => 0,
        NodeKind::Directory => 1,
        NodeKind::Symlink => 2,
        NodeKind::Fifo => 3,
        NodeKind::Socket => 4,
        NodeKind::BlockDevice => 5,
        NodeKind::CharDevice => 6,
    }
}

fn unexpected(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
